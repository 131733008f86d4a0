//! Random questions about several tables.

use crate::near::Dice;

pub(crate) const CATALOG: &str = r#"
[budget]
name = "t"

[tables.visits]
files = "visits.parquet"
unit = "id"
people = "patients"
max_groups_per_unit = 2
max_rows_per_group = 3
columns = { id = { type = "int64" }, region = { type = "string" }, x = { type = "int64", low = -10, high = 100 }, y = { type = "float64", low = -5, high = 50.5 } }

[tables.orders]
files = "orders.parquet"
unit = "who"
people = "patients"
max_groups_per_unit = 2
max_rows_per_group = 2
columns = { number = { type = "int64" }, who = { type = "int64" }, region = { type = "string" }, x = { type = "int64", low = 0, high = 9 }, y = { type = "float64", low = 0, high = 1 } }

[tables.lines]
files = "lines.parquet"
unit = { column = "of", table = "orders", key = "number" }
max_groups_per_unit = 3
max_rows_per_group = 2
columns = { of = { type = "int64" }, region = { type = "string" }, x = { type = "int64", low = 0, high = 9 }, y = { type = "float64", low = -1, high = 1 } }

[tables.readings]
files = "readings.parquet"
unit = "row"
columns = { region = { type = "string" }, x = { type = "int64", low = 0, high = 9 }, y = { type = "float64", low = -1, high = 1 } }

[tables.places]
files = "places.parquet"
public = true
columns = { name = { type = "string" }, continent = { type = "string", values = ["north", "south"] }, weight = { type = "float64", low = 0, high = 10 } }
"#;

/// Rows with the columns id, region, x, y; mostly of persons, and mostly in ways that are allowed.
pub(crate) fn relation(dice: &mut Dice, depth: u32) -> String {
    if depth == 0 {
        return dice
            .pick(&[
                "SELECT id, region, x, y FROM visits",
                "SELECT who AS id, region, x, y FROM orders",
                "SELECT o.who AS id, l.region, l.x, o.y FROM lines l JOIN orders o ON l.of = o.number",
                "SELECT o.who AS id, l.region, o.x, l.y FROM orders o, lines l WHERE l.of = o.number AND l.x > 0",
                "SELECT a.who AS id, b.region, a.x, b.y FROM orders a LEFT JOIN lines b ON a.number = b.of",
            ])
            .to_owned();
    }
    let inner = relation(dice, depth - 1);
    let other = |dice: &mut Dice| relation(dice, 0);
    match dice.below(16) {
        0 => format!("SELECT * FROM ({inner}) AS s WHERE x > 0 OR y < 0.25"),
        1 => {
            let kind = dice.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
            format!(
                "SELECT s.id, p.continent AS region, s.x, p.weight AS y FROM ({inner}) AS s {kind} places p ON s.region = p.name"
            )
        }
        2 | 3 => {
            let kind = dice.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
            let on = dice.pick(&[
                "a.id = b.id",
                "a.id = b.id AND a.x > b.x",
                "a.id = b.id",
                "a.region = b.region",
                "a.id = b.x",
            ]);
            let id = dice.pick(&["a.id", "COALESCE(a.id, b.id)"]);
            format!(
                "SELECT {id} AS id, b.region, a.x, b.y FROM ({inner}) AS a {kind} ({}) AS b ON {on}",
                other(dice)
            )
        }
        4 | 5 => {
            let by = dice.pick(&["id", "id", "id, region", "region"]);
            format!("SELECT MAX(id) AS k, {} AS id, MIN(region) AS region, SUM(x) AS x, AVG(y) AS y FROM ({inner}) AS s GROUP BY {by}",
                if by == "region" { "MAX(id)" } else { "id" })
            .replace("MAX(id) AS k, ", "")
        }
        6 => format!(
            "SELECT id, MAX(region) AS region, COUNT(DISTINCT x) AS x, SUM(y) AS y FROM ({inner}) AS s GROUP BY id"
        ),
        7 | 8 => {
            let over = dice.pick(&[
                "PARTITION BY id ORDER BY x",
                "PARTITION BY id",
                "PARTITION BY id, region ORDER BY y DESC",
                "ORDER BY x",
            ]);
            let rank =
                dice.pick(&["ROW_NUMBER()", "RANK()", "LAG(x)", "COUNT(*)", "SUM(x)", "FIRST_VALUE(x)"]);
            let frame = dice.pick(&["", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"]);
            let frame = if over.contains("ORDER") { frame } else { "" };
            format!(
                "SELECT id, region, CAST({rank} OVER ({over}) AS BIGINT) AS x, SUM(y) OVER ({over}{frame}) AS y FROM ({inner}) AS s"
            )
        }
        9 => format!("{inner} UNION ALL {}", other(dice)),
        10 => {
            let not = dice.pick(&["", "NOT "]);
            format!(
                "SELECT * FROM ({inner}) AS a WHERE {not}EXISTS (SELECT 1 FROM ({}) AS b WHERE a.id = b.id AND b.x > 0)",
                other(dice)
            )
        }
        11 => {
            let what = dice.pick(&["id", "id", "region"]);
            let not = dice.pick(&["", "", "NOT "]);
            format!(
                "SELECT * FROM ({inner}) AS a WHERE {what} {not}IN (SELECT {what} FROM ({}) AS b)",
                other(dice)
            )
        }
        12 => {
            let on = dice.pick(&["b.id = a.id", "b.id = a.id", "b.region = a.region", "true"]);
            format!(
                "SELECT * FROM ({inner}) AS a WHERE x >= (SELECT MIN(x) FROM ({}) AS b WHERE {on})",
                other(dice)
            )
        }
        13 => format!("SELECT DISTINCT id, region, x, y FROM ({inner}) AS s"),
        14 => {
            format!("SELECT * FROM ({inner}) AS s WHERE region IN (SELECT name FROM places WHERE weight > 1)")
        }
        _ => format!("SELECT id, region, x + 1 AS x, y / x AS y FROM ({inner}) AS s"),
    }
}

/// Rows of `readings`, each of them a unit.
pub(crate) fn readings(dice: &mut Dice) -> String {
    dice.pick(&[
        "SELECT region, x, y FROM readings",
        "SELECT p.continent AS region, r.x, p.weight AS y FROM readings r JOIN places p ON r.region = p.name",
        "SELECT r.region, r.x, p.weight AS y FROM readings r LEFT JOIN places p ON r.region = p.name",
        "SELECT r.region, r.x, p.weight AS y FROM readings r CROSS JOIN places p",
        "SELECT r.region, r.x, r.y FROM readings r CROSS JOIN (SELECT MAX(weight) AS w FROM places) AS p WHERE r.y < p.w",
        "SELECT region, x, y FROM readings UNION ALL SELECT region, x, y FROM readings",
        "SELECT region, SUM(x) AS x, MAX(y) AS y FROM readings GROUP BY region",
        "SELECT a.region, a.x, b.y FROM readings a JOIN readings b ON a.region = b.region",
        "SELECT region, ROW_NUMBER() OVER (ORDER BY x) AS x, y FROM readings",
        "SELECT region, x, y FROM readings WHERE region IN (SELECT name FROM places)",
        "SELECT region, x, y FROM readings WHERE x > (SELECT AVG(weight) FROM places)",
        "SELECT region, x, y FROM readings WHERE x > (SELECT AVG(x) FROM readings)",
    ])
    .to_owned()
}

pub(crate) fn query(dice: &mut Dice) -> String {
    let rows = match dice.below(6) {
        0 => readings(dice),
        1 => "SELECT region, x, y FROM lines".to_owned(),
        _ => {
            let depth = 1 + dice.below(2) as u32;
            relation(dice, depth)
        }
    };
    let aggregate = |dice: &mut Dice| {
        dice.pick(&[
            "COUNT(*)",
            "COUNT(x)",
            "COUNT(DISTINCT x)",
            "SUM(x, contribution_bounds_per_row => (-4, 20))",
            "SUM(y, contribution_bounds_per_row => (-4, 20))",
            "SUM(y, contribution_bounds_per_group => (-30, 9.5))",
            "AVG(y, contribution_bounds_per_row => (0, 12.5))",
            "MEDIAN(x, contribution_bounds_per_row => (0, 100))",
        ])
    };
    let aggregates: Vec<_> =
        (0..1 + dice.below(2)).map(|index| format!("{} AS a{index}", aggregate(dice))).collect();
    let keys = dice.pick(&["", " GROUP BY region", " GROUP BY region", " GROUP BY x"]);
    format!("SELECT {} FROM ({rows}) AS rows_of_it{keys}", aggregates.join(", "))
}
