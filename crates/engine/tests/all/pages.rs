//! Every example of docs/sql.md, and the questions of hospital.sql, asked of examples/visits.

use std::path::{Path, PathBuf};

use demur_engine::{Ask, Embedded, Engine, Project, Quote, Table};
use demur_ledger::{Location, Options};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What becomes of a question: its table, nothing for a plan alone, or the code of the refusal.
fn asked(sql: &str) -> Result<Option<Table>, String> {
    let project = Project::open(&root().join("examples/visits")).unwrap();
    let priced = sql.contains("epsilon") || sql.contains("max_error");
    let epsilon = (!priced).then(|| "1".to_owned());
    let ask = Ask { sql: sql.to_owned(), epsilon, requester: "test".to_owned(), ..Ask::default() };
    let quote = Quote::make(&project, &ask).map_err(|error| error.code().to_owned())?;
    if quote.bounded.explain {
        return Ok(None);
    }
    let folder = tempfile::tempdir().unwrap();
    let place = Location::Sqlite(folder.path().join("ledger.db"));
    let engine = Engine::for_project(&project, &place, Options::default()).unwrap();
    let backend = Embedded::new(&project.folder).unwrap();
    let answer = engine.query(&project, &ask, &quote, &backend).map_err(|error| error.code().to_owned())?;
    Ok(Some(Table::read(&answer.certificate.columns, &answer.certificate.released).unwrap()))
}

/// Asks, and fails unless the question is answered, or refused with the code.
fn expect(sql: &str, code: Option<&str>) {
    match (asked(sql), code) {
        (Ok(Some(table)), None) => {
            assert!(!table.rows.is_empty(), "no rows: {sql}");
            assert!(
                table.headings.iter().any(|heading| heading.interval
                    || heading.kind.ends_with("[]")
                    || heading.kind == "VARCHAR"),
                "{sql}"
            );
        }
        (Ok(None), None) => {}
        (Ok(_), Some(code)) => unreachable!("answered, but {code} was expected:\n{sql}"),
        (Err(found), code) => assert_eq!(Some(found.as_str()), code, "{sql}"),
    }
}

/// The statements of a text, each with what is said behind it on its line.
fn statements(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((sql, after)) = rest.split_once(';') {
        let (said, _) = after.split_once('\n').unwrap_or((after, ""));
        found.push((sql.trim(), said.trim()));
        rest = &after[said.len()..];
    }
    found.extend(Some((rest.trim(), "")).filter(|(rest, _)| !rest.is_empty()));
    found
}

#[test]
fn every_example_of_the_page_is_answered_or_refused_as_it_says() {
    let page = std::fs::read_to_string(root().join("docs/sql.md")).unwrap();
    let (mut answered, mut refused) = (0, 0);
    for block in page.split("```sql\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for (sql, said) in statements(block) {
            let code = said.strip_prefix("-- refused ");
            assert!(code.is_some() || said.is_empty(), "{said}");
            expect(sql, code);
            *if code.is_some() { &mut refused } else { &mut answered } += 1;
        }
    }
    assert!(answered >= 30 && refused >= 25, "only {answered} and {refused} examples");
}

#[test]
fn the_page_names_every_function() {
    let page = std::fs::read_to_string(root().join("docs/sql.md")).unwrap().to_lowercase();
    let words: std::collections::HashSet<&str> =
        page.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).collect();
    let missing: Vec<_> =
        demur_plan::function_names().into_iter().filter(|name| !words.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/sql.md does not name {missing:?}");
}

#[test]
fn questions_of_a_hospital_are_answered_in_the_sql_that_people_write() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hospital.sql")).unwrap();
    let (_, text) = text.split_once("\n\n").unwrap();
    let mut answered = 0;
    for (sql, _) in statements(text) {
        let mut lines = sql.lines().filter_map(|line| line.strip_prefix("-- not yet "));
        let code = lines.next();
        expect(sql, code);
        answered += usize::from(code.is_none());
    }
    assert!(answered >= 10, "only {answered} questions are answered");
}
