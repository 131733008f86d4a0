//! What `EXPLAIN` says, and how questions are refused, word by word: files in `tests/golden`.
//!
//! `DEMUR_GOLDEN=update` writes them anew; look at the difference.

use std::path::Path;

use demur_engine::{Ask, EngineError, Project, Quote};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

/// Answers every question with its plan.
struct Plans(Project);

impl DB for Plans {
    type Error = Refusal;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Refusal> {
        let (sql, price) = match sql.split_once("-- ") {
            Some((sql, price)) => (sql, price.trim()),
            None => (sql, "epsilon 1"),
        };
        let mut ask = Ask { sql: sql.to_owned(), ..Ask::default() };
        match price.split_once(' ') {
            Some(("error", error)) => ask.error = Some(error.to_owned()),
            Some((_, epsilon)) => ask.epsilon = Some(epsilon.to_owned()),
            None => {}
        }
        let rows = Quote::make(&self.0, &ask).map(|quote| plan(&quote));
        let rows = rows.map_err(|error| Refusal { error, sql: ask.sql })?;
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text; 2], rows })
    }
}

/// The plan, line by line.
fn plan(quote: &Quote) -> Vec<Vec<String>> {
    let explained = quote.explain();
    let guarantee = &quote.guarantee;
    let mut lines = vec![
        ("hidden", format!("{} of {}, {}", explained.unit, explained.table, explained.adjacency)),
        ("price", format!("ε = {}, δ = {}", guarantee.epsilon.value(), guarantee.delta.value())),
        ("keys", explained.keys),
    ];
    for item in explained.items {
        lines.push(("measure", format!("{}: {}", item.what, item.bounds)));
        lines.push(("noise", format!("{}; moves by {}", item.noise, item.sensitivity)));
    }
    for statistic in explained.statistics {
        lines.push(("answer", format!("{}: {}", statistic.name, statistic.error_text)));
    }
    lines.into_iter().map(|(name, text)| vec![name.to_owned(), text]).collect()
}

/// A refusal with its code and its place in the question.
#[derive(Debug)]
struct Refusal {
    error: EngineError,
    sql: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { error, sql } = self;
        let kind = if error.is_refusal() { "refused" } else { "mistake" };
        write!(f, "{kind} {}: {error}", error.code())?;
        match error.place().and_then(|place| place.show(sql)) {
            Some(shown) => write!(f, "\n{shown}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

#[test]
fn plans_and_refusals_are_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for name in ["explain.slt", "refusals.slt"] {
        let mut runner = Runner::new(|| {
            let folder = folder.clone();
            async move { Ok(Plans(Project::open(&folder).unwrap())) }
        });
        let file = folder.join(name);
        if std::env::var_os("DEMUR_GOLDEN").is_some_and(|value| value == "update") {
            let updated = runner.update_test_file(
                &file,
                " ",
                sqllogictest::default_validator,
                sqllogictest::default_normalizer,
                sqllogictest::default_column_validator,
            );
            futures::executor::block_on(updated).unwrap();
        }
        if let Err(error) = runner.run_file(&file) {
            unreachable!("{error}");
        }
    }
}
