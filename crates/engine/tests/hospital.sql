-- Questions that somebody who runs a hospital would ask of examples/visits, in the SQL they would write.
--
-- One question: a line of words, then SQL that ends with a semicolon. A line `-- not yet CODE` before the SQL says that it is refused
-- with that code today; the test tells when that is no longer so.

-- How many visits did each region have?
SELECT region, COUNT(*) AS visits FROM visits GROUP BY region ORDER BY visits DESC;

-- How many different patients did we see?
SELECT COUNT(DISTINCT patient_id) AS patients FROM visits;

-- Which departments are the busiest, and what does a visit cost there?
SELECT department, COUNT(*) AS visits, AVG(cost) AS mean_cost
FROM visits
GROUP BY department
HAVING COUNT(*) > 100
ORDER BY visits DESC;

-- How do visits go up and down over the year?
SELECT date_trunc('month', day) AS month, COUNT(*) AS visits FROM visits GROUP BY month ORDER BY month;

-- How many visits are by children, adults and the old?
SELECT CASE WHEN age < 18 THEN 'children' WHEN age < 65 THEN 'adults' ELSE 'old' END AS who, COUNT(*) AS visits
FROM visits
GROUP BY who;

-- What does a typical visit cost, and what do the dearest ten percent cost at least?
SELECT MEDIAN(cost) AS typical, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost) AS dear FROM visits;

-- Which share of visits in each region stays overnight?
SELECT region, 100.0 * COUNT(*) FILTER (WHERE nights > 0) / COUNT(*) AS percent_overnight FROM visits GROUP BY region;

-- How long do those who stay overnight stay, by department?
SELECT department, AVG(nights) AS mean_nights FROM visits WHERE nights > 0 GROUP BY department ORDER BY mean_nights DESC;

-- On which weekdays does the emergency department need the most people?
SELECT EXTRACT(DOW FROM day) AS weekday, COUNT(*) AS visits FROM visits WHERE department = 'emergency' GROUP BY weekday ORDER BY visits DESC;

-- What did people over 65 cost us in the last quarter, by region?
SELECT region, SUM(cost) AS total
FROM visits
WHERE age > 65 AND day >= '2025-10-01'
GROUP BY region
ORDER BY total DESC;

-- How many patients came more than once?
SELECT COUNT(*) AS patients FROM (SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id) AS p WHERE visits > 1;

-- What does a patient cost in a year, on average?
SELECT AVG(total, contribution_bounds_per_row => (0, 20000)) AS per_patient FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS p;

-- How much do costs vary within each department?
SELECT department, AVG(cost) AS mean_cost, STDDEV(cost) AS spread FROM visits GROUP BY department;

-- What was the longest stay?
SELECT MAX(nights) AS longest FROM visits;

-- How many visits were there by region and life stage, with totals?
SELECT region, CASE WHEN age < 18 THEN 'child' ELSE 'grown' END AS life, COUNT(*) AS visits
FROM visits
GROUP BY ROLLUP(region, CASE WHEN age < 18 THEN 'child' ELSE 'grown' END);
