//! Random catalogs of several tables, and random questions about them.

use crate::near::Dice;
use datafusion::common::ScalarValue;

/// How six tables are declared: visits and orders of patients, lines of orders, parts of lines, readings that are nobody's, public places.
pub(crate) struct Schema {
    /// The type of what names a person.
    people: &'static str,
    /// The type of what names an order or a line.
    keys: &'static str,
    /// Groups of a person, and rows in each, by table.
    limits: [(u64, u64); 4],
    /// What is said about regions of visits.
    regions: &'static str,
}

impl Schema {
    pub(crate) fn random(dice: &mut Dice) -> Self {
        let limits = [(); 4].map(|()| (1 + dice.below(3), 1 + dice.below(3)));
        Self { limits, ..Self::without_limits(dice) }
    }

    /// Nobody has as many rows as count.
    pub(crate) fn without_limits(dice: &mut Dice) -> Self {
        let mut kind = || dice.pick(&["int64", "int64", "string"]);
        let (people, keys) = (kind(), kind());
        let regions = dice.pick(&["", "", r#", values = ["a", "b", "nowhere"]"#]);
        Self { people, keys, limits: [(3, 1_000_000); 4], regions }
    }

    /// What a person is called in rows.
    pub(crate) fn person(&self, number: Option<i64>) -> String {
        match self.people {
            "int64" => ScalarValue::Int64(number.map(numbered)),
            _ => ScalarValue::Utf8View(number.map(|number| format!("k{number}"))),
        }
        .to_string()
    }

    /// As `demur.toml` says it.
    pub(crate) fn text(&self) -> String {
        let Self { people, keys, limits, regions } = self;
        let [visits, orders, lines, parts] = limits
            .map(|(groups, rows)| format!("max_groups_per_unit = {groups}\nmax_rows_per_group = {rows}"));
        format!(
            r#"
[budget]
name = "t"

[tables.visits]
files = "visits.parquet"
unit = "id"
people = "patients"
{visits}
columns = {{ id = {{ type = "{people}" }}, region = {{ type = "string"{regions} }}, x = {{ type = "int64", low = -10, high = 100 }}, y = {{ type = "float64", low = -5, high = 50.5 }} }}

[tables.orders]
files = "orders.parquet"
unit = "who"
people = "patients"
{orders}
columns = {{ number = {{ type = "{keys}" }}, who = {{ type = "{people}" }}, region = {{ type = "string" }}, x = {{ type = "int64", low = 0, high = 9 }}, y = {{ type = "float64", low = 0, high = 1 }} }}

[tables.lines]
files = "lines.parquet"
unit = {{ column = "of", table = "orders", key = "number" }}
{lines}
columns = {{ of = {{ type = "{keys}" }}, serial = {{ type = "{keys}" }}, region = {{ type = "string" }}, x = {{ type = "int64", low = 0, high = 9 }}, y = {{ type = "float64", low = -1, high = 1 }} }}

[tables.parts]
files = "parts.parquet"
unit = {{ column = "line", table = "lines", key = "serial" }}
{parts}
columns = {{ line = {{ type = "{keys}" }}, region = {{ type = "string" }}, x = {{ type = "int64", low = 0, high = 9 }}, y = {{ type = "float64", low = -1, high = 1 }} }}

[tables.readings]
files = "readings.parquet"
unit = "row"
columns = {{ region = {{ type = "string" }}, x = {{ type = "int64", low = 0, high = 9 }}, y = {{ type = "float64", low = -1, high = 1 }} }}

[tables.places]
files = "places.parquet"
public = true
columns = {{ name = {{ type = "string" }}, continent = {{ type = "string", values = ["north", "south"] }}, weight = {{ type = "float64", low = 0, high = 10 }} }}
"#
        )
    }
}

/// What a number of ours is where it names somebody. Two of them are one as a REAL.
pub(crate) fn numbered(number: i64) -> i64 {
    (1 << 24) + number
}

/// Rows with the columns id, region, x, y; mostly of persons, and mostly in ways that are allowed.
pub(crate) fn relation(dice: &mut Dice, depth: u32) -> String {
    if depth == 0 {
        return dice
            .pick(&[
                "SELECT id, region, x, y FROM visits",
                "SELECT who AS id, region, x, y FROM orders",
                // Another column under the unit's name is not the unit.
                "SELECT x AS id, region, x, y FROM visits",
                // Nor is what two people have in common.
                "SELECT CAST(id AS REAL) AS id, region, x, y FROM visits",
                "SELECT o.who AS id, l.region, l.x, o.y FROM lines l JOIN orders o ON l.of = o.number",
                "SELECT o.who AS id, l.region, o.x, l.y FROM orders o, lines l WHERE l.of = o.number AND l.x > 0",
                "SELECT a.who AS id, b.region, a.x, b.y FROM orders a LEFT JOIN lines b ON a.number = b.of",
                "SELECT o.who AS id, p.region, p.x, o.y FROM parts p JOIN lines l ON p.line = l.serial JOIN orders o ON l.of = o.number",
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
    let rows = match dice.below(7) {
        0 => readings(dice),
        1 => "SELECT region, x, y FROM lines".to_owned(),
        2 => "SELECT region, x, y FROM parts".to_owned(),
        _ => {
            let depth = 1 + dice.below(2) as u32;
            relation(dice, depth)
        }
    };
    let aggregate = |dice: &mut Dice| {
        dice.pick(&[
            "COUNT(*)",
            "COUNT(*)",
            "COUNT(x)",
            "COUNT(DISTINCT x)",
            "APPROX_COUNT_DISTINCT(region)",
            "COUNT_IF(x > 0)",
            "SUM(x, contribution_bounds_per_row => (-4, 20))",
            "SUM(y, contribution_bounds_per_row => (-4, 20)) FILTER (WHERE x > 0 OR y < 1)",
            "SUM(y, contribution_bounds_per_group => (-30, 9.5))",
            "AVG(y, contribution_bounds_per_row => (0, 12.5))",
            "MEDIAN(x, contribution_bounds_per_row => (0, 100))",
            "MAX(y, contribution_bounds_per_row => (0, 40))",
            "VAR_POP(x, contribution_bounds_per_row => (-2, 9.5))",
            "CORR(x, y, contribution_bounds_per_row => (-3, 12))",
            "CLIPPED(x, contribution_bounds_per_row => (-4, 20))",
        ])
    };
    let aggregates: Vec<_> =
        (0..1 + dice.below(2)).map(|index| format!("{} AS a{index}", aggregate(dice))).collect();
    let aggregates = aggregates.join(", ");
    let keys = dice.pick(&[
        "",
        " GROUP BY region",
        " GROUP BY region",
        " GROUP BY x",
        " GROUP BY ROLLUP(region, CASE WHEN x > 0 THEN 'more' ELSE 'less' END)",
        " GROUP BY CUBE(region, CASE WHEN y > 0 THEN 'more' ELSE 'less' END)",
    ]);
    match dice.below(3) {
        0 => format!("WITH rows_of_it AS ({rows}) SELECT {aggregates} FROM rows_of_it{keys}"),
        _ => format!("SELECT {aggregates} FROM ({rows}) AS rows_of_it{keys}"),
    }
}
