//! Questions from SQL to release, over small files in a folder of their own.

use crate::folder::{Folder, ask};
use demur_engine::{Quote, Table, verify};
use serde_json::Value;

/// A folder with these rows, whose table has this unit and limits.
fn folder(csv: &str, unit: &str, limits: &str) -> Folder {
    let catalog = format!(
        "[budget]\nname = \"t\"\nepsilon = 1000000\ndelta = 0.001\nmax_epsilon_per_question = 500000\n\
         [tables.t]\nfiles = \"t.csv\"\nunit = \"{unit}\"\n{limits}\n[tables.t.columns]\nid = {{ type = \"int64\" }}\n\
         k = {{ type = \"string\" }}\np = {{ type = \"string\", values = [\"a\", \"b\"] }}\nx = {{ type = \"int64\", low = 0, high = 100 }}\n\
         r = {{ type = \"float64\", low = -1, high = 10 }}\n"
    );
    Folder::new(&catalog, csv)
}

const SMALL: &str = "id,k,p,x,r\n1,u,a,10,1.5\n1,u,a,20,2.5\n2,u,b,30,\n3,v,a,500,NaN\n4,v,c,-5,1e400\n";

fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 0.51)
}

#[test]
fn sums_counts_and_means_are_those_of_clamped_values() {
    let folder = folder(SMALL, "row", "");
    let rows = folder.nearly_exact("SELECT COUNT(*), COUNT(r), SUM(x), AVG(x), SUM(r) FROM t");
    let [count, present, sum, mean, reals] = rows[0].as_slice() else { unreachable!("{rows:?}") };
    assert!(near(count, 5.0), "{rows:?}");
    // NULL and NaN are not there; what is too large for a double is infinite, and clamped.
    assert!(near(present, 3.0), "{rows:?}");
    assert!(near(sum, 160.0), "{rows:?}");
    assert!(near(mean, 32.0), "{rows:?}");
    assert!(near(reals, 14.0), "{rows:?}");
}

/// Of x two values lie outside 0 … 100, of r one, which is infinite; NaN is no value.
#[test]
fn values_outside_their_bounds_are_counted() {
    let folder = folder(SMALL, "row", "");
    let sql = "SELECT CLIPPED(x), CLIPPED(r), CLIPPED(x, contribution_bounds_per_row => (15, 25)), CLIPPED(x + x), SUM(x) FROM t";
    let rows = folder.nearly_exact(sql);
    let expected = [2.0, 1.0, 4.0, 2.0, 160.0];
    assert!(rows[0].iter().zip(expected).all(|(value, expected)| near(value, expected)), "{rows:?}");
}

#[test]
fn public_keys_answer_even_when_empty_and_others_are_left_out() {
    let folder = folder("id,k,p,x,r\n1,u,a,1,\n2,u,c,1,\n", "row", "");
    let rows = folder.nearly_exact("SELECT p, COUNT(*) AS n FROM t GROUP BY p");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(
        rows[0][0] == "a" && near(&rows[0][1], 1.0) && rows[1][0] == "b" && near(&rows[1][1], 0.0),
        "{rows:?}"
    );
}

#[test]
fn an_empty_table_answers() {
    let folder = folder("id,k,p,x,r\n", "id", "");
    let rows = folder.nearly_exact("SELECT COUNT(*), SUM(x), AVG(x), MEDIAN(x) FROM t");
    assert!(near(&rows[0][0], 0.0) && near(&rows[0][1], 0.0), "{rows:?}");
    assert!(folder.nearly_exact("SELECT k, COUNT(*) FROM t GROUP BY k").is_empty());
}

#[test]
fn an_all_null_column_answers() {
    let folder = folder("id,k,p,x,r\n1,,,,\n2,,,,\n", "id", "");
    let rows = folder.nearly_exact("SELECT COUNT(x), SUM(x), COUNT(*) FROM t");
    assert!(near(&rows[0][0], 0.0) && near(&rows[0][1], 0.0) && near(&rows[0][2], 2.0), "{rows:?}");
}

#[test]
fn a_csv_cell_that_does_not_parse_is_null() {
    let folder =
        folder("id,k,p,x,r\n1,u,a,seven,x\n2,u,a\n3,u,a,4,5,6,7\n\"4\",\"u\n\",a,\"9\",1\n", "row", "");
    let rows = folder.nearly_exact("SELECT COUNT(*), COUNT(x), SUM(x) FROM t");
    assert!(near(&rows[0][0], 4.0) && near(&rows[0][1], 2.0) && near(&rows[0][2], 13.0), "{rows:?}");
}

#[test]
fn one_user_with_100_000_rows_counts_as_few() {
    let mut csv = "id,k,p,x,r\n".to_owned();
    (0..100_000).for_each(|_| csv.push_str("1,u,a,100,\n"));
    csv.push_str("2,u,a,1,\n");
    let folder = folder(&csv, "id", "max_rows_per_group = 3");
    let rows = folder.nearly_exact("SELECT COUNT(*), SUM(x), COUNT(DISTINCT id) FROM t");
    assert!(near(&rows[0][0], 4.0) && near(&rows[0][1], 301.0) && near(&rows[0][2], 2.0), "{rows:?}");
}

#[test]
fn a_division_by_zero_and_an_overflow_are_null() {
    let folder = folder(SMALL, "row", "");
    let sql = "SELECT COUNT(1 / (x - 10)), COUNT(x % (x - 20)), COUNT(x * 9223372036854775807), COUNT(CAST(k AS INT)), COUNT(*) FROM t";
    let rows = folder.nearly_exact(sql);
    let counts: Vec<_> = rows[0].iter().map(|value| value.as_f64().unwrap().round()).collect();
    assert_eq!(counts, [4.0, 4.0, 0.0, 0.0, 5.0]);
}

/// sqrt refuses what is below 0; of an answer, and of where its interval begins, that is NULL.
/// 500 is no TINYINT, nor is it less, more or something else than one.
/// Two hundred times as long at each level, a text of one person's would take all memory: with that person the question would fail, and without not.
#[test]
fn a_text_that_grows_in_subqueries_is_null() {
    let folder = folder(SMALL, "id", "");
    let often = vec!["s"; 200].join(", ");
    let mut levels = vec!["WITH t0 AS (SELECT id, k AS s FROM t WHERE id = 1)".to_owned()];
    for level in 1..=4 {
        levels.push(format!("d{level} AS (SELECT id, CONCAT({often}) AS s FROM t{})", level - 1));
        levels.push(format!("t{level} AS (SELECT id, MAX(s) AS s FROM d{level} GROUP BY id)"));
    }
    // Of nothing but NULL, CONCAT makes an empty text.
    for (last, there) in [(1, 1.0), (2, 0.0), (4, 1.0)] {
        let sql = format!("{} SELECT COUNT(*), COUNT(s) FROM t{last}", levels[..=2 * last].join(", "));
        let found = folder.nearly_exact(&sql);
        assert!(near(&found[0][0], 1.0) && near(&found[0][1], there), "{last}: {found:?}");
    }
    let found = folder.nearly_exact("SELECT COUNT(*) FROM t WHERE p || '-' || k || x = 'a-u10'");
    assert!(near(&found[0][0], 1.0), "{found:?}");
}

#[test]
fn a_cast_beside_a_comparison_is_not_left_out() {
    let folder = folder(SMALL, "row", "");
    let sql = "SELECT COUNT_IF(CAST(x AS TINYINT) > 0), COUNT_IF(NOT TRY_CAST(x AS TINYINT) <= 0), COUNT_IF(CAST(x AS TINYINT) IN (10, 20)),
               COUNT_IF(CAST(x AS TINYINT) BETWEEN -128 AND 127), COUNT_IF(CAST(x AS DECIMAL(2, 0)) <> 10), COUNT_IF(x >= 1) FROM t";
    let rows = folder.nearly_exact(sql);
    let expected = [3.0, 3.0, 2.0, 4.0, 3.0, 4.0];
    assert!(rows[0].iter().zip(expected).all(|(value, expected)| near(value, expected)), "{rows:?}");
}

#[test]
fn a_function_that_fails_on_an_answer_is_null_and_so_is_its_interval() {
    let folder = folder(SMALL, "row", "");
    let rows = folder.nearly_exact("SELECT sqrt(COUNT(*) - 9), sqrt(COUNT(*) - 1), COUNT(*) FROM t");
    assert!(rows[0][0].is_null() && near(&rows[0][1], 2.0) && near(&rows[0][2], 5.0), "{rows:?}");
    // At this ε the interval of COUNT(*) mostly reaches below 1: that it never does in twelve answers has a chance below 1e-15.
    let mut reached = false;
    for time in 0..12 {
        let sql = format!("SELECT COUNT(*), sqrt(COUNT(*) - 1) FROM t WHERE x < {}", 1000 + time);
        let answer = folder.answer(&sql, "0.01").unwrap();
        let table = Table::read(&answer.certificate.columns, &answer.certificate.released).unwrap();
        let [count, root] = &table.rows[0][..] else { unreachable!("{table:?}") };
        let below = count.interval.is_some_and(|(low, _)| low < 1.0);
        assert_eq!(root.interval.is_none(), below || root.value.is_null(), "{table:?}");
        reached |= below;
    }
    assert!(reached);
    assert!(folder.nearly_exact("SELECT COUNT(*) AS n FROM t HAVING sqrt(COUNT(*) - 9) > 1").is_empty());
}

#[test]
fn rows_that_wait_on_disk_are_answered_about() {
    let mut csv = "id,k,p,x,r\n".to_owned();
    (0..20_000).for_each(|row| csv.push_str(&format!("{},u,a,{},\n", row % 5000, row % 100)));
    let folder = folder(&csv, "id", "max_rows_per_group = 3");
    let (project, ask) = (folder.project(), ask("SELECT COUNT(*), COUNT(DISTINCT id) FROM t", "100000"));
    let quote = Quote::make(&project, &ask).unwrap();
    let backend = folder.backend().with_memory(1000);
    let answer = folder.engine().query(&project, &ask, &quote, &backend).unwrap();
    let table = Table::read(&answer.certificate.columns, &answer.certificate.released).unwrap();
    assert!(near(&table.rows[0][0].value, 15_000.0) && near(&table.rows[0][1].value, 5000.0), "{table:?}");
}

#[test]
fn keys_that_few_have_are_not_shown() {
    let mut csv = "id,k,p,x,r\n".to_owned();
    (0..500).for_each(|id| csv.push_str(&format!("{id},many,a,1,\n")));
    csv.push_str("999,secret,a,1,\n");
    let folder = folder(&csv, "id", "");
    let answer = folder.answer("SELECT k, COUNT(*) AS n FROM t GROUP BY k", "1").unwrap();
    let text = answer.certificate.text().unwrap();
    assert!(text.contains("many") && !text.contains("secret"), "{text}");
}

#[test]
fn the_same_question_is_answered_from_the_ledger() {
    let folder = folder(SMALL, "row", "");
    let first = folder.answer("SELECT COUNT(*) FROM t", "1").unwrap();
    let again = folder.answer("select  COUNT( * )\nfrom t", "1").unwrap();
    assert!(!first.replayed);
    assert_eq!(first.certificate.released, again.certificate.released);
    assert!(again.replayed, "spelling made a difference");
    assert!(!folder.answer("SELECT COUNT(*) FROM t", "2").unwrap().replayed);
    assert_eq!(folder.releases(), 2);
}

/// A default of another type, a division by zero in a table that is written in the question: they fail for every table, so nothing is paid.
#[test]
fn what_fails_whatever_the_rows_are_is_told_before_the_charge() {
    let folder = folder(SMALL, "id", "max_rows_per_group = 2");
    let lag = |default: &str| {
        format!(
            "SELECT COUNT(*) FROM (SELECT id, LAG(x, 1, {default}) OVER (PARTITION BY id ORDER BY x) AS l FROM t) AS s WHERE l > 0"
        )
    };
    let joined = |values: &str| {
        format!("SELECT COUNT(*) FROM t JOIN (VALUES {values}) AS v(k, n) ON t.k = v.k WHERE n > 0")
    };
    for sql in [lag("'x'"), joined("('u', 1/0)")] {
        assert_eq!(folder.answer(&sql, "1").unwrap_err().code(), "engine.question", "{sql}");
    }
    assert_eq!(folder.releases(), 0);
    assert!(near(&folder.nearly_exact(&joined("('u', 1)"))[0][0], 3.0));
    assert!(near(&folder.nearly_exact(&lag("0"))[0][0], 1.0));
}

/// One row of somebody that is paired with ten, and those with ten more, and so on.
#[test]
fn a_row_is_not_paired_with_more_public_rows_than_it_may() {
    let folder = folder(SMALL, "id", "max_rows_per_group = 1000");
    let catalog = std::fs::read_to_string(folder.path().join("demur.toml")).unwrap();
    let public = "[tables.p]\nfiles = \"p.csv\"\npublic = true\n[tables.p.columns]\nx = { type = \"int64\" }\nk = { type = \"string\" }\n";
    folder.declare(&format!("{catalog}{public}"));
    let rows: String = (0..300).map(|x| format!("{x},{}\n", if x == 0 { "u" } else { "w" })).collect();
    std::fs::write(folder.path().join("p.csv"), format!("x,k\n{rows}")).unwrap();
    let ten = "(VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) AS v";
    let tens = |times: usize| {
        let joins: String = (0..times).map(|at| format!(" CROSS JOIN {ten}{at}(x{at})")).collect();
        format!("SELECT COUNT(*) FROM (SELECT * FROM t WHERE id = 4) AS s{joins}")
    };
    let times = |joins: &[&str]| format!("SELECT COUNT(*) FROM t {}", joins.join(" "));
    assert!(near(&folder.nearly_exact(&tens(3))[0][0], 1000.0));
    let releases = folder.releases();
    for sql in [
        tens(5),
        tens(9),
        times(&["CROSS JOIN p", "CROSS JOIN p AS q"]),
        times(&["LEFT JOIN p ON t.k = p.k OR t.k = p.k", "JOIN p AS q ON t.x < q.x"]),
        // 299 of them agree on `w`, whether anybody has it or not.
        times(&["JOIN p ON t.k = p.k", "JOIN p AS q ON t.k = q.k"]),
    ] {
        assert_eq!(folder.answer(&sql, "1").unwrap_err().code(), "plan.partners", "{sql}");
    }
    // Where it is only asked whether there are any, they must still be found: 300⁶ of them.
    let many = "(SELECT a.x FROM p a, p b, p c, p d, p e, p f)";
    for sql in [
        format!("SELECT COUNT(*) FROM t WHERE id = 4 AND x IN {many}"),
        format!("SELECT COUNT(*) FROM t WHERE x = (SELECT MAX(m.x) FROM {many} AS m)"),
        format!("SELECT COUNT(*) FROM t WHERE x > 5 OR EXISTS (SELECT 1 FROM {many} AS m WHERE m.x = t.x)"),
    ] {
        let code = folder.answer(&sql, "1").unwrap_err().code();
        assert!(code == "plan.partners" || code == "plan.expression", "{code}: {sql}");
    }
    assert_eq!(folder.releases(), releases);
    // Each number stands there once, so these joins may be many.
    let one_each: Vec<String> = (0..5).map(|at| format!("JOIN p AS p{at} ON t.x = p{at}.x")).collect();
    let one_each: Vec<&str> = one_each.iter().map(String::as_str).collect();
    assert!(near(&folder.nearly_exact(&times(&one_each))[0][0], 3.0));
}

/// Years after 262142 have no text: the answer stands, and its key is NULL.
#[test]
fn a_date_beyond_all_calendars_is_shown_as_null() {
    let folder = folder(SMALL, "row", "");
    let key = "SELECT CAST(CAST(x * 0 + 2147483647 AS INT) AS DATE) AS k, COUNT(*) AS n FROM t GROUP BY 1";
    let rows = folder.nearly_exact(key);
    assert!(rows.len() == 1 && rows[0][0].is_null() && near(&rows[0][1], 5.0), "{rows:?}");
    let answer = "SELECT CAST(CAST(COUNT(*) * 0 + 2147483647 AS INT) AS DATE) AS d, COUNT(*) AS n FROM t";
    let rows = folder.nearly_exact(answer);
    assert!(rows[0][0].is_null() && near(&rows[0][1], 5.0), "{rows:?}");
}

/// Quantiles of so many groups are found for some of them at a time.
#[test]
fn every_group_of_many_gets_its_own_median() {
    let value = |id: i64| (id % 90) as f64 / 10.0;
    let csv: String = (0..9000).map(|row| format!("{},u,a,1,{}\n", row / 3, value(row / 3))).collect();
    let folder = folder(&format!("id,k,p,x,r\n{csv}"), "row", "");
    let rows = folder.nearly_exact("SELECT id, COUNT(*) AS n, MEDIAN(r) AS m FROM t GROUP BY id");
    assert_eq!(rows.len(), 3000);
    for row in rows {
        let (id, median) = (row[0].as_i64().unwrap(), row[2].as_f64().unwrap());
        assert!(near(&row[1], 3.0) && (median - value(id)).abs() < 0.01, "{row:?}");
    }
}

#[test]
fn more_answers_than_there_is_memory_for_are_refused() {
    let folder = folder(SMALL, "row", "");
    let keys = |many: usize| {
        let all: Vec<_> = (0..many).map(|at| format!("CASE WHEN x > {at} THEN 1 ELSE 0 END")).collect();
        all.join(", ")
    };
    let ask = |what: &str, many: usize| {
        Quote::make(&folder.project(), &ask(&format!("SELECT {what} FROM t GROUP BY {}", keys(many)), "1"))
            .map(|_| "answered")
            .unwrap_or_else(|error| error.code())
    };
    assert_eq!(
        (ask("COUNT(*)", 17), ask("MEDIAN(r)", 17), ask("COUNT(*)", 18)),
        ("answered", "answered", "plan.keys")
    );
    assert_eq!((ask("HISTOGRAM(r, 1000)", 13), ask("HISTOGRAM(r, 1000)", 14)), ("answered", "engine.size"));
    let sums: Vec<_> =
        (0..60).map(|at| format!("SUM(x + {at}, contribution_bounds_per_row => (60, 69))")).collect();
    assert_eq!((ask(&sums.join(", "), 14), ask(&sums.join(", "), 15)), ("answered", "engine.size"));
}

/// With δ = 1/2 nearly exact answers have a small ε, and a budget without δ pays for what is lost in the worst case.
#[test]
fn a_large_delta_does_not_get_around_the_limit_of_a_question() {
    let quote = |budget: &str, epsilon: &str, delta: &str, sql: &str| {
        let catalog = format!(
            "[budget]\nname = \"t\"\nepsilon = 10\n{budget}\nmax_epsilon_per_question = 2\n[tables.t]\nfiles = \"t.csv\"\nunit = \"id\"\n\
             max_groups_per_unit = 3\nmax_rows_per_group = 2\n[tables.t.columns]\nid = {{ type = \"int64\" }}\n\
             p = {{ type = \"string\", values = [\"a\", \"b\", \"c\"] }}\n"
        );
        let folder = Folder::new(&catalog, "id,p\n1,a\n");
        let asked = demur_engine::Ask { delta: Some(delta.to_owned()), ..ask(sql, epsilon) };
        Quote::make(&folder.project(), &asked).map(|_| "priced").unwrap_or_else(|error| error.code())
    };
    let sql = "SELECT p, COUNT(*) FROM t GROUP BY p";
    let option = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta = 0.5) p, COUNT(*) FROM t GROUP BY p";
    assert_eq!(quote("delta = 1e-6", "2", "1e-6", sql), "priced");
    assert_eq!(quote("delta = 1e-6", "2", "1.1e-6", sql), "engine.policy");
    assert_eq!(quote("delta = 1e-6", "0.000001", "0.5", sql), "engine.policy");
    assert_eq!(quote("delta = 1e-6", "0.000001", "1e-8", option), "engine.policy");
    assert_eq!(quote("", "2", "0", sql), "priced");
    assert_eq!(quote("", "1.5", "1e-6", sql), "priced");
    assert_eq!(quote("", "2", "0.5", sql), "engine.policy");
}

#[test]
fn a_refusal_charges_nothing() {
    let folder = folder(SMALL, "row", "");
    let before = folder.engine().ledger().book().unwrap().head();
    for (sql, epsilon, code) in [
        ("SELECT ARRAY_AGG(x) FROM t", "1", "plan.function"),
        ("SELECT COUNT(*) FROM t", "600000", "engine.policy"),
        ("SELECT COUNT(*) FROM t", "1e20", "engine.guarantee"),
        ("SELECT COUNT(*) FROM t", "-1", "core.epsilon"),
        ("SELECT COUNT(*) FROM t", "0", "engine.guarantee"),
        ("SELECT COUNT(*) FROM t", "NaN", "core.epsilon"),
    ] {
        let error = folder.answer(sql, epsilon).err().unwrap();
        assert!(
            error.code() == code || code == "core.epsilon",
            "{sql} at {epsilon}: {} {error}",
            error.code()
        );
    }
    assert_eq!(folder.engine().ledger().book().unwrap().head(), before);
}

#[test]
fn a_release_can_be_verified() {
    let folder = folder(SMALL, "id", "max_groups_per_unit = 2");
    let answer = folder.answer("SELECT p, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY p", "1").unwrap();
    let verdict =
        verify(answer.certificate.text().unwrap().as_bytes(), Some(&folder.location()), None).unwrap();
    assert!(verdict.is_good(), "{verdict:?}");
}

#[test]
fn what_is_done_with_answers_costs_nothing_and_keeps_their_order() {
    let folder = folder(SMALL, "row", "");
    let sql = "SELECT p, COUNT(*) AS n, COUNT(*) * 2 + 1 AS twice, DP_INTERVAL_LOW(n) AS low FROM t GROUP BY p HAVING n > -100 ORDER BY p DESC LIMIT 1";
    let rows = folder.nearly_exact(sql);
    assert_eq!(rows.len(), 1);
    assert!(rows[0][0] == "b" && near(&rows[0][2], 3.0), "{rows:?}");
    assert!(rows[0][3].as_f64().unwrap() <= rows[0][1].as_f64().unwrap());
}

/// 95 % intervals hold: of 400 answers about 380 contain the truth; fewer than 355 have a chance below 1e-5 if the intervals are right.
/// Intervals that hold in 85 of 100 cases are caught with probability 0.999.
#[test]
fn intervals_hold_as_often_as_they_say() {
    let mut csv = "id,k,p,x,r\n".to_owned();
    (0..200).for_each(|id| csv.push_str(&format!("{id},u,a,{},{}\n", id % 100, f64::from(id % 10))));
    let folder = folder(&csv, "id", "");
    let truths = [200.0, 9900.0, 49.5, 4.5];
    let mut inside = 0;
    for round in 0..100 {
        let sql = format!("SELECT COUNT(*), SUM(x), AVG(x), AVG(r) FROM t WHERE id < {}", 1000 + round);
        let answer = folder.answer(&sql, "1").unwrap();
        let table = Table::read(&answer.certificate.columns, &answer.certificate.released).unwrap();
        for (cell, truth) in table.rows[0].iter().zip(truths) {
            let (low, high) = cell.interval.unwrap();
            inside += u32::from(low <= truth && truth <= high);
        }
    }
    assert!(inside >= 355, "{inside} of 400 intervals hold");
}

/// Each interval holds with probability 0.95 or more; of 200 fewer than 172 do by chance with probability below 1e-6.
#[test]
fn intervals_of_arithmetic_hold_as_often_as_they_say() {
    let mut csv = "id,k,p,x,r\n".to_owned();
    (0..400).for_each(|id| csv.push_str(&format!("{id},k,a,{},{}\n", id % 50, id % 9)));
    let (people, sum_x, sum_r) =
        (400.0, (0..400).map(|id| id % 50).sum::<i32>(), (0..400).map(|id| id % 9).sum::<i32>());
    let truth = [
        people * 2.0 + 1.0,
        f64::from(sum_x) / f64::from(sum_r),
        f64::from(sum_x) / people - f64::from(sum_r) / people,
        (100.0 * f64::from(sum_r) / people).round(),
        -people * people,
    ];
    let sql = "SELECT COUNT(*) * 2 + 1 AS a, SUM(x) / SUM(r) AS b, AVG(x) - AVG(r) AS c, round(100 * SUM(r) / COUNT(*)) AS d, -(COUNT(*) * COUNT(*)) AS e FROM t";
    let folder = folder(&csv, "row", "");
    let mut held = [0; 5];
    for run in 0..200 {
        let answer = folder.answer(&format!("{sql} WHERE id > -{}", run + 1), "2").unwrap();
        let table = Table::read(&answer.certificate.columns, &answer.certificate.released).unwrap();
        for (index, cell) in table.rows[0].iter().enumerate() {
            let (low, high) = cell.interval.unwrap();
            let value = cell.value.as_f64().unwrap();
            assert!(low <= value && value <= high, "{index}: {value} is not in {low} to {high}");
            held[index] += usize::from(low <= truth[index] && truth[index] <= high);
        }
    }
    assert!(held.iter().all(|&held| held >= 172), "{held:?}");
}

#[test]
fn a_report_is_json() {
    let folder = folder(SMALL, "row", "");
    let rows = folder.nearly_exact(
        "SELECT COUNT(*, report_format => 'JSON') AS n, AVG(x, report_format => JSON) AS m FROM t",
    );
    for cell in &rows[0] {
        let report: Value = serde_json::from_str(cell.as_str().unwrap()).unwrap();
        let number = |name: &str| report[name].as_f64().unwrap();
        assert!(number("low") <= number("value") && number("value") <= number("high"), "{report}");
        assert!(number("confidence") > 0.949);
    }
    assert_eq!(
        folder.answer("SELECT COUNT(*, report_format => 'PROTO') FROM t", "1").unwrap_err().code(),
        "plan.argument"
    );
}
