//! Holes that other systems had, and questions that must be refused: each has a test named after it.

#![expect(clippy::unwrap_used, reason = "tests say what they expect")]

use demur_core::Adjacency;
use demur_plan::{Bounded, Catalog, Keys, PlanError, Recipe, plan};
use demur_tally::{Bounds, Measure, Step};

const CATALOG: &str = r#"
[budget]
name = "visits"

[tables.visits]
files = "visits.parquet"
unit = "user_id"
max_groups_per_unit = 3
max_rows_per_group = 4
[tables.visits.columns]
user_id = { type = "int64" }
region = { type = "string", values = ["north", "south"] }
city = { type = "string" }
age = { type = "int64", low = 0, high = 120 }
spend = { type = "float64", low = 0, high = 500 }
price = { type = "decimal(9, 2)", low = 0, high = 99.99 }
free = { type = "int64" }
day = { type = "date" }
"Ünï Côde" = { type = "int64", low = 0, high = 1 }

[tables.readings]
files = "readings.csv"
unit = "row"
adjacency = "replace"
[tables.readings.columns]
x = { type = "int64", low = -3, high = 5 }

[tables.regions]
files = "regions.csv"
public = true
[tables.regions.columns]
name = { type = "string" }
"#;

fn asked(sql: &str) -> Result<Bounded, PlanError> {
    plan(&Catalog::read(CATALOG).unwrap(), sql)
}

fn bounded(sql: &str) -> Bounded {
    asked(sql).unwrap_or_else(|error| unreachable!("{sql}: {error}"))
}

/// The code of the refusal.
fn code(sql: &str) -> &'static str {
    match asked(sql) {
        Err(error) => error.code(),
        Ok(_) => "answered",
    }
}

#[test]
fn a_missing_bound_does_not_mean_no_noise() {
    for sql in [
        "SELECT SUM(free) FROM visits",
        "SELECT AVG(free + age) FROM visits",
        "SELECT MEDIAN(free) FROM visits",
    ] {
        assert_eq!(code(sql), "plan.unbounded", "{sql}");
    }
    assert_eq!(code("SELECT SUM(free, contribution_bounds_per_row => (0, 9)) FROM visits"), "answered");
}

#[test]
fn the_clamp_is_on_the_expression_and_not_on_the_column() {
    let plan = bounded("SELECT SUM(age * 10) FROM visits");
    let [Measure::Deviation { row, most: 4, centre: 0, .. }] = plan.spec.measures.as_slice() else {
        unreachable!("{:?}", plan.spec.measures)
    };
    assert_eq!(*row, Bounds { low: 0, high: 1200 });
    assert_eq!(plan.sensitivity(&plan.spec.measures[0]).unwrap().linf().to_string(), "4800");
}

#[test]
fn a_query_narrows_the_catalog_and_never_widens_it() {
    let row = |sql: &str| match bounded(sql).spec.measures[0] {
        Measure::Deviation { row, .. } => row,
        ref other => unreachable!("{other:?}"),
    };
    assert_eq!(
        row("SELECT SUM(age, contribution_bounds_per_row => (10, 1000)) FROM visits"),
        Bounds { low: 10, high: 120 }
    );
    assert_eq!(
        row("SELECT SUM(age, contribution_bounds_per_row => (-9, 20)) FROM visits"),
        Bounds { low: 0, high: 20 }
    );
    assert_eq!(code("SELECT SUM(age, contribution_bounds_per_row => (500, 600)) FROM visits"), "plan.bounds");
    let groups = |n: u64| {
        bounded(&format!("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = {n}) city, COUNT(*) FROM visits GROUP BY city"))
            .spec
            .groups_per_unit
    };
    assert_eq!([groups(1), groups(2), groups(1_000_000)], [1, 2, 3]);
    assert_eq!(
        code("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = city) COUNT(*) FROM visits"),
        "plan.unit"
    );
}

#[test]
fn replace_one_is_not_counted_as_add_or_remove() {
    let plan = bounded("SELECT SUM(x) FROM readings");
    assert_eq!(plan.adjacency(), Adjacency::Replace);
    assert_eq!(plan.groups_moved(), 2);
    // From −3 to 5 a replaced row moves the sum by 8: two groups that move by 6 cover it, since 2·6² ≥ 8².
    assert_eq!(plan.sensitivity(&plan.spec.measures[0]).unwrap().linf().to_string(), "6");
}

#[test]
fn keys_cannot_be_redefined_after_bounding() {
    // The keys that are bounded are those that are grouped by, however they are renamed on the way.
    let plan = bounded("SELECT k, COUNT(*) FROM (SELECT city || 'x' AS k, age FROM visits) AS s GROUP BY k");
    assert!(plan.rows.to_string().contains("key 0"), "{}", plan.rows);
    assert_eq!(plan.keys, Keys::Private);
    assert_eq!(
        code(
            "SELECT city || 'x', SUM(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s GROUP BY 1"
        ),
        "plan.group"
    );
}

#[test]
fn public_keys_are_offered_for_the_column_alone() {
    assert!(
        matches!(bounded("SELECT region, COUNT(*) FROM visits GROUP BY region").keys, Keys::Public(keys) if keys.len() == 2)
    );
    assert_eq!(bounded("SELECT UPPER(region), COUNT(*) FROM visits GROUP BY 1").keys, Keys::Private);
    assert_eq!(
        bounded("SELECT region, city, COUNT(*) FROM visits GROUP BY region, city").keys,
        Keys::Private
    );
    let sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(group_selection_strategy = PUBLIC_GROUPS) city, COUNT(*) FROM visits GROUP BY city";
    assert_eq!(code(sql), "plan.keys");
}

#[test]
fn a_counted_null_is_not_free() {
    // A cast that makes NULLs is counted by what it makes, and costs what any count costs.
    let plan =
        bounded("SELECT COUNT(CAST(city AS INT)), COUNT(age / (age - 40)), COUNT(age % 0) FROM visits");
    assert_eq!(plan.spec.measures.len(), 3);
    assert!(
        plan.spec
            .measures
            .iter()
            .all(|measure| matches!(measure, Measure::Count { input: Some(_), most: 4 }))
    );
    let rows = plan.rows.to_string();
    assert!(!rows.contains(" / ") || rows.contains("total /"), "{rows}");
}

#[test]
fn rows_are_never_shown() {
    for sql in
        ["SELECT * FROM visits", "SELECT age FROM visits LIMIT 1", "SELECT age + 1 FROM visits ORDER BY 1"]
    {
        assert_eq!(code(sql), "plan.rows", "{sql}");
    }
}

#[test]
fn everything_else_is_refused() {
    for (sql, expected) in [
        ("SELECT COUNT(*) FROM regions LEFT JOIN visits ON visits.region = regions.name", "plan.join"),
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.region = b.region", "plan.join"),
        ("SELECT COUNT(*) FROM visits a JOIN readings b ON a.age = b.x", "plan.people"),
        (
            "SELECT COUNT(*) FROM visits WHERE user_id NOT IN (SELECT user_id FROM visits WHERE age > 3)",
            "plan.join",
        ),
        ("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits", "plan.node"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 5) AS s", "plan.node"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT city FROM visits) AS s", "plan.group"),
        ("SELECT COUNT(*) OVER () FROM visits", "plan.node"),
        ("SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)", "plan.group"),
        ("SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits)", "plan.join"),
        ("SELECT FIRST_VALUE(age) FROM visits", "plan.function"),
        ("SELECT STRING_AGG(city, ',') FROM visits", "plan.function"),
        ("SELECT COUNT(*) FROM visits WHERE random() < 0.5", "plan.function"),
        ("SELECT COUNT(*) FROM visits WHERE version() = 'x'", "plan.function"),
        ("SELECT COUNT(*) FROM 'other.parquet'", "plan.meaning"),
        ("SELECT COUNT(*) FROM information_schema.tables", "plan.meaning"),
        ("SELECT COUNT(*) FROM regions", "plan.public"),
        ("SELECT COUNT(nothing) FROM visits", "plan.meaning"),
        ("SELECT SUM(DISTINCT age) FROM visits", "plan.distinct"),
        ("SELECT SUM(city) FROM visits", "plan.type"),
        ("SELECT 1", "plan.node"),
        ("SELECT COUNT(*) FROM visits WHERE age = $1", "plan.expression"),
    ] {
        assert_eq!(code(sql), expected, "{sql}: {:?}", asked(sql).err());
    }
}

/// As a join, a value that is several would double rows.
#[test]
fn a_value_from_a_subquery_is_one_whatever_its_table_holds() {
    let visits = |condition: &str| code(&format!("SELECT COUNT(*) FROM visits WHERE {condition}"));
    let from_regions = |value: &str| visits(&format!("city = (SELECT {value} FROM regions)"));
    assert_eq!(from_regions("MAX(name)"), "answered");
    assert_eq!(from_regions("name"), "plan.value");
    assert_eq!(from_regions("DISTINCT name"), "plan.value");
    assert_eq!(visits("city = (SELECT MAX(name) FROM regions GROUP BY name)"), "plan.value");
    assert_eq!(visits("city = (SELECT name FROM regions WHERE name = 'a')"), "plan.value");
    assert_eq!(visits("city = (SELECT name FROM regions WHERE name = visits.city)"), "plan.value");
    assert_eq!(
        visits("city IN (SELECT name FROM regions WHERE name > (SELECT name FROM regions))"),
        "plan.value"
    );
    assert_eq!(visits("age > (SELECT MIN(age) FROM visits a WHERE a.user_id = visits.user_id)"), "answered");
    assert_eq!(visits("city IN (SELECT name FROM regions)"), "answered");
}

/// A group that is named twice would be shown twice; one that no number names, as NULL.
#[test]
fn public_values_differ_and_are_values() {
    let read = |values: &str| {
        let catalog = CATALOG.replace("values = [\"north\", \"south\"]", values);
        Catalog::read(&catalog).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(read("values = [\"north\", \"North\"]"), Ok(()));
    let twice = read("values = [\"north\", \"south\", \"north\"]").unwrap_err();
    assert!(twice.contains("\"north\" stands twice among its values"), "{twice}");
    let floats = |values: &str| {
        let catalog =
            CATALOG.replace("low = 0, high = 500 }", &format!("low = 0, high = 500, values = {values} }}"));
        Catalog::read(&catalog).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(floats("[1.5, 2]"), Ok(()));
    assert!(floats("[]").unwrap_err().contains("list of values is empty"));
    assert!(floats("[1.5, nan]").is_err() && floats("[inf]").is_err() && floats("[2, 2.0]").is_err());
}

/// A line that was forgotten takes all protection away.
#[test]
fn what_is_private_is_not_public_too() {
    let public = |old: &str, new: &str| {
        Catalog::read(&CATALOG.replace(old, new)).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let both = public("public = true", "public = true\nunit = \"name\"");
    assert!(both.contains("leave out one of the two"), "{both}");
    for file in ["readings.csv", "./readings.csv", "a/../readings.csv", ".//readings.csv"] {
        let shared = public("files = \"regions.csv\"", &format!("files = [\"regions.csv\", \"{file}\"]"));
        assert!(shared.contains("has a file of the private table `readings`"), "{file}: {shared}");
    }
    assert_eq!(public("files = \"regions.csv\"", "files = [\"regions.csv\", \"a/readings.csv\"]"), "");
}

/// Nothing can hold them, so they would fail after the charge.
#[test]
fn values_that_cannot_be_counted_are_refused() {
    for what in ["COUNT(CAST(city AS INTERVAL))", "COUNT(DISTINCT CAST(city AS INTERVAL))"] {
        assert_eq!(code(&format!("SELECT {what} FROM visits")), "plan.type", "{what}");
    }
    assert_eq!(code("SELECT CAST(city AS INTERVAL) AS k, COUNT(*) FROM visits GROUP BY 1"), "plan.type");
    for list in ["CAST(city AS INT[])", "CAST(city AS TEXT[])"] {
        assert_ne!(code(&format!("SELECT COUNT({list}) FROM visits")), "answered", "{list}");
    }
    for kind in ["TIMESTAMP", "TIME", "DATE"] {
        assert_eq!(code(&format!("SELECT COUNT(CAST(city AS {kind})) FROM visits")), "answered", "{kind}");
    }
}

/// What would fail only where a row comes to it, or would take all memory there, is refused by its words.
#[test]
fn what_only_a_row_could_make_fail_is_refused_before() {
    let visits = |condition: &str| code(&format!("SELECT COUNT(*) FROM visits WHERE {condition}"));
    assert_eq!(visits(&format!("city LIKE '{}'", "_".repeat(1000))), "answered");
    assert_eq!(visits(&format!("city LIKE '{}'", "_".repeat(1001))), "plan.size");
    assert_eq!(visits(&format!("age = 1 AND city NOT ILIKE '{}'", "ä".repeat(1001))), "plan.size");
    assert_eq!(visits("city LIKE CONCAT('a', '%')"), "plan.expression");
    assert_eq!(visits("CAST(spend AS DECIMAL(5, -2)) > 0"), "plan.meaning");
    assert_eq!(visits("CAST(price AS DECIMAL(5, 2)) > 0"), "answered");
}

/// Nine rows of somebody, paired twelve times, are 9¹³.
#[test]
fn rows_of_a_person_are_paired_with_each_other_a_few_times_only() {
    let paired = |times: usize| {
        let joins: String =
            (0..times).map(|at| format!(" JOIN visits v{at} ON v.user_id = v{at}.user_id")).collect();
        code(&format!("SELECT COUNT(*) FROM visits v{joins}"))
    };
    assert_eq!((paired(3), paired(4), paired(12)), ("answered", "plan.join", "plan.join"));
    let one = "(SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id)";
    let joins: String = (0..6).map(|at| format!(" JOIN {one} v{at} ON v.user_id = v{at}.user_id")).collect();
    assert_eq!(code(&format!("SELECT COUNT(*) FROM visits v{joins}")), "answered");
}

/// What counts rows below us would overflow where somebody has any.
#[test]
fn windows_reach_no_further_than_there_can_be_rows() {
    let window = |call: &str, frame: &str| {
        code(&format!(
            "SELECT COUNT(*) FROM (SELECT user_id, {call} OVER (PARTITION BY user_id ORDER BY age {frame}) AS l FROM visits WHERE age > 3) AS s WHERE l > 0"
        ))
    };
    let rows =
        |end: &str| window("FIRST_VALUE(age)", &format!("ROWS BETWEEN 1 FOLLOWING AND {end} FOLLOWING"));
    assert_eq!((rows("2147483648"), rows("2147483649")), ("answered", "plan.window"));
    assert_eq!((rows("18446744073709551615"), rows("UNBOUNDED")), ("plan.window", "answered"));
    let start = "ROWS BETWEEN 18446744073709551615 PRECEDING AND CURRENT ROW";
    assert_eq!(window("SUM(age)", start), "plan.window");
    for far in ["9223372036854775807", "-9223372036854775808"] {
        assert_eq!(
            (window(&format!("LAG(age, {far})"), ""), window(&format!("LEAD(age, {far})"), "")),
            ("plan.window", "plan.window")
        );
    }
    assert_eq!(window("LAG(age, 2, 9223372036854775807)", ""), "answered");
}

/// Fifteen copies of a row, each paired with each of fifteen.
#[test]
fn a_row_is_not_copied_without_end() {
    let copies = |many: usize| vec!["SELECT user_id, age FROM visits"; many].join(" UNION ALL ");
    let sql = |many: usize| {
        format!("SELECT COUNT(*) FROM ({0}) AS a JOIN ({0}) AS b ON a.user_id = b.user_id", copies(many))
    };
    assert_eq!((code(&sql(8)), code(&sql(9))), ("answered", "plan.size"));
}

/// Thirty subqueries, each of which doubles what the one before computes.
#[test]
fn what_doubles_in_each_subquery_is_refused() {
    for doubled in ["x + x", "GREATEST(x, x + 1)", "CASE WHEN x > 1 THEN x ELSE 0 END"] {
        let mut levels = vec!["WITH t0 AS (SELECT age AS x FROM visits)".to_owned()];
        levels.extend((1..=30).map(|at| format!("t{at} AS (SELECT {doubled} AS x FROM t{})", at - 1)));
        let sql =
            |last: usize| format!("{} SELECT COUNT(*) FROM t{last} WHERE x > 3", levels[..=last].join(", "));
        assert_eq!((code(&sql(4)), code(&sql(30))), ("answered", "plan.size"), "{doubled}");
    }
}

/// What the planner below says about itself is not for those who ask.
#[test]
fn mistakes_are_told_in_words_of_ours() {
    let told = |sql: &str| asked(sql).map_err(|error| format!("{}: {error}", error.code())).err().unwrap();
    assert_eq!(
        told("SELECT COUNT(*) FROM visits LIMIT -1"),
        "plan.limit: LIMIT must be a whole number from 0 on, but it is -1"
    );
    assert_eq!(
        told("SELECT COUNT(*) FROM visits LIMIT 1 OFFSET -2"),
        "plan.limit: OFFSET must be a whole number from 0 on, but it is -2"
    );
    assert_eq!(
        told("SELECT COUNT(*) FROM visits LIMIT 1/0"),
        "plan.limit: LIMIT must be a whole number from 0 on, but it is something to be computed"
    );
    assert_eq!(
        told("SELECT COUNT(*) FROM visit"),
        "plan.meaning: there is no table `visit`; did you mean `visits`? there are: readings, regions, visits"
    );
    let advised = |sql: &str| asked(sql).map_err(|error| error.advice().unwrap().to_owned()).err().unwrap();
    assert!(advised("SELECT MEDAIN(age) FROM visits").starts_with("did you mean MEDIAN? "));
    assert!(advised("SELECT ARRAY_AGG(age) FROM visits").starts_with("aggregates: "));
    assert_eq!(
        told("SELECT COUNT(*) FROM visits WHERE 1"),
        "plan.type: WHERE and HAVING need a condition, which is true or false"
    );
    assert_eq!(
        told("SELECT COUNT(*), COUNT(*) FROM visits"),
        "plan.name: two columns would have the same name"
    );
    assert_eq!(
        told("SELECT SUM(CAST(age AS BIGINT)) AS a, SUM(age) AS b FROM visits"),
        "plan.name: two aggregates or keys would have the same name"
    );
    assert_eq!(code("SELECT SUM(CAST(age AS BIGINT) + 0) AS a, SUM(age) AS b FROM visits"), "answered");
    assert_eq!(
        told("SELECT COUNT(*) AS n FROM visits HAVING n > (SELECT COUNT(*) FROM visits)"),
        "plan.expression: a subquery beside answers cannot be used here"
    );
}

/// So many are read, and one more is told by the same words.
#[test]
fn forty_levels_of_brackets_are_read() {
    let nested =
        |depth: usize| format!("SELECT SUM({}age{}) FROM visits", "(".repeat(depth), ")".repeat(depth));
    assert_eq!((code(&nested(39)), code(&nested(40))), ("answered", "plan.size"));
}

#[test]
fn a_refusal_speaks_of_the_query_and_the_catalog_alone() {
    let error = asked("SELECT FIRST_VALUE(age) FROM visits").err().unwrap();
    assert!(error.to_string().contains("first_value"), "{error}");
    assert!(error.advice().is_some_and(|hint| hint.contains("MEDIAN")));
}

#[test]
fn a_mean_is_made_of_well_conditioned_sums_and_shares_them() {
    let plan = bounded("SELECT COUNT(age), SUM(age), AVG(age) FROM visits");
    assert_eq!(plan.spec.measures.len(), 2, "{:?}", plan.spec.measures);
    assert!(matches!(plan.statistics[0].recipe, Recipe::Plain { .. }));
    assert!(matches!(plan.statistics[1].recipe, Recipe::Sum { centre: 60, .. }));
    assert!(matches!(plan.statistics[2].recipe, Recipe::Mean { centre: 60, .. }));
}

#[test]
fn the_unit_itself_is_counted_as_units() {
    assert_eq!(bounded("SELECT COUNT(DISTINCT user_id) FROM visits").statistics[0].recipe, Recipe::Units);
    assert_eq!(
        bounded("SELECT COUNT(DISTINCT u) FROM (SELECT user_id AS u FROM visits) AS s").statistics[0].recipe,
        Recipe::Units
    );
    assert!(matches!(
        bounded("SELECT COUNT(DISTINCT user_id + 1) FROM visits").statistics[0].recipe,
        Recipe::Plain { .. }
    ));
}

/// 16 777 217 is no REAL: cast to it, two people become one, and a join by that would pair their rows.
#[test]
fn a_cast_that_makes_two_people_one_names_nobody() {
    let codes = |to: &str| {
        let people = format!("(SELECT CAST(user_id AS {to}) AS u, age FROM visits)");
        [
            format!("SELECT COUNT(*) FROM {people} a JOIN {people} b ON a.u = b.u"),
            format!("SELECT COUNT(*) FROM visits a JOIN visits b ON CAST(a.user_id AS {to}) = CAST(b.user_id AS {to})"),
            format!("SELECT COUNT(*) FROM (SELECT u FROM {people} GROUP BY u)"),
            format!("SELECT SUM(s, contribution_bounds_per_row => (0, 9)) FROM (SELECT SUM(age) OVER (PARTITION BY u) AS s FROM {people})"),
        ]
        .map(|sql| code(&sql))
    };
    for to in ["REAL", "DOUBLE", "INT", "TINYINT", "DECIMAL(3, 0)", "VARCHAR"] {
        assert_eq!(codes(to), ["plan.join", "plan.join", "plan.group", "plan.window"], "{to}");
        let counted = bounded(&format!("SELECT COUNT(DISTINCT CAST(user_id AS {to})) FROM visits"));
        assert_ne!(counted.statistics[0].recipe, Recipe::Units, "{to}");
    }
    assert_eq!(codes("BIGINT"), ["answered"; 4]);
}

#[test]
fn decimals_are_counted_in_their_last_place() {
    let plan = bounded("SELECT SUM(price) FROM visits");
    assert!(matches!(
        plan.spec.measures[0],
        Measure::Deviation { step: Step::Decimal(2), row: Bounds { low: 0, high: 9999 }, .. }
    ));
}

#[test]
fn identifiers_keep_their_letters() {
    assert_eq!(code("SELECT SUM(\"Ünï Côde\") FROM visits"), "answered");
    assert_eq!(code("SELECT COUNT(AGE), Count(Age) FROM VISITS"), "answered");
    assert_eq!(code("SELECT COUNT(\"AGE\") FROM visits"), "plan.meaning");
}

#[test]
fn intervals_follow_answers() {
    let plan = bounded(
        "SELECT region, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM visits GROUP BY region ORDER BY n DESC LIMIT 1",
    );
    let with: Vec<_> = plan.after.shown.iter().map(|shown| shown.interval.is_some()).collect();
    assert_eq!(with, [false, true, false]);
}

#[test]
fn intervals_follow_arithmetic_as_far_as_they_can() {
    let shown = |expr: &str| {
        let plan = bounded(&format!("SELECT {expr} AS it FROM visits"));
        (plan.after.shown[0].interval.is_some(), plan.after.widths)
    };
    assert_eq!(shown("COUNT(*) * 2 + 1"), (true, 1));
    assert_eq!(shown("round(100.0 * COUNT(*), 1)"), (true, 1));
    assert_eq!(shown("SUM(age) / COUNT(*)"), (true, 2));
    assert_eq!(shown("-AVG(age) - COUNT(*) * SUM(age)"), (true, 3));
    assert!(!shown("COUNT(*) % 2").0);
    assert!(!shown("CASE WHEN COUNT(*) > 5 THEN 1 ELSE 0 END").0);
    assert!(!shown("abs(COUNT(*))").0);
    let five = "COUNT(*) + COUNT(age) + SUM(age) + AVG(age) + MEDIAN(age)";
    assert!(!shown(five).0);
    let outer = bounded(
        "SELECT a / b AS r, DP_INTERVAL_HIGH(r) AS h FROM (SELECT COUNT(*) AS a, SUM(age) + 1 AS b FROM visits) AS x",
    );
    let with: Vec<_> = outer.after.shown.iter().map(|shown| shown.interval.is_some()).collect();
    assert_eq!(with, [true, false]);
}
