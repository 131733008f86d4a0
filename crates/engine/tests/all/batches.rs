//! Questions that are declared together: one charge, exact composition, and what each gets.

use crate::folder::Folder;
use demur_accounting::Account;
use demur_core::Delta;
use demur_engine::{Ask, Batch, Quote, verify};
use demur_ledger::BudgetName;

const CATALOG: &str = "[budget]\nname = \"t\"\nepsilon = 100000\ndelta = 0.001\nmax_epsilon_per_question = 50000\n\
    [tables.t]\nfiles = \"t.csv\"\nunit = \"row\"\n[tables.t.columns]\nk = { type = \"string\" }\n\
    p = { type = \"string\", values = [\"a\", \"b\"] }\nx = { type = \"int64\", low = 0, high = 100 }\n\
    [tables.s]\nfiles = \"t.csv\"\nunit = \"row\"\nadjacency = \"replace\"\n[tables.s.columns]\nx = { type = \"int64\", low = 0, high = 100 }\n";

fn folder() -> Folder {
    let mut csv = "k,p,x\n".to_owned();
    (0..300).for_each(|row| csv.push_str(&format!("k{},{},{}\n", row % 3, ["a", "b"][row % 2], row % 100)));
    Folder::new(CATALOG, &csv)
}

fn ask(epsilon: &str, delta: &str) -> Ask {
    Ask {
        epsilon: Some(epsilon.to_owned()),
        delta: Some(delta.to_owned()),
        requester: "test".to_owned(),
        ..Ask::default()
    }
}

fn refusal(folder: &Folder, questions: &[&str], ask: &Ask) -> (Option<usize>, &'static str) {
    let error = Batch::make(&folder.project(), questions, ask).err().unwrap();
    (error.question(), error.code())
}

#[test]
fn a_batch_is_one_charge_and_one_certificate_and_again_costs_nothing() {
    let folder = folder();
    let (project, engine) = (folder.project(), folder.engine());
    let questions = [
        "SELECT COUNT(*) AS n FROM t",
        "SELECT p, SUM(x) AS s FROM t GROUP BY p",
        "SELECT k, COUNT(*) AS n, MEDIAN(x) AS m FROM t GROUP BY k",
    ];
    let ask = ask("30000", "1e-6");
    let batch = Batch::make(&project, &questions, &ask).unwrap();
    let backend = folder.backend();
    let (answer, tables) = engine.query_batch(&project, &ask, &batch, &backend).unwrap();
    assert!(!answer.replayed);
    assert_eq!(tables[0].rows[0][0].value.as_i64(), Some(300));
    assert_eq!(tables[1].rows.len(), 2);
    assert_eq!(
        tables[1].rows[0][1].value.as_i64(),
        Some((0..300).filter(|row| row % 2 == 0).map(|row| row % 100).sum())
    );
    assert_eq!(tables[2].rows.iter().map(|row| row[1].value.as_i64()).collect::<Vec<_>>(), [Some(100); 3]);
    let (again, same) = engine.query_batch(&project, &ask, &batch, &backend).unwrap();
    assert!(again.replayed && same == tables);
    let book = engine.ledger().book().unwrap();
    assert_eq!(book.budget(&BudgetName::whole("t")).unwrap().releases, 1);
    let verdict =
        verify(answer.certificate.text().unwrap().as_bytes(), Some(&folder.location()), None).unwrap();
    assert!(verdict.is_good(), "{verdict:?}");
}

/// What the accountant says of everything that is charged is the batch's guarantee, and nearly all of it is used.
#[test]
fn all_together_keep_the_guarantee_and_each_gets_more_than_an_equal_part() {
    let project = folder();
    let project = project.project();
    for (count, at_least) in [(2, 0.499), (10, 0.11), (40, 0.035)] {
        let texts: Vec<String> =
            (0..count).map(|nth| format!("SELECT COUNT(*) AS n FROM t WHERE x > {nth}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let batch = Batch::make(&project, &texts, &ask("1", "1e-6")).unwrap();
        let losses = batch.quotes.iter().map(|quote| quote.pricing.loss());
        let loss = losses.reduce(|all, one| all.compose(one)).unwrap();
        let delta = Delta::new(1e-6).unwrap();
        let found = Account::of(&loss).unwrap().epsilon(&delta.exact()).unwrap().bounds.upper;
        assert!(found <= 1.0, "{count}: {found}");
        assert!(found > 0.98, "{count}: only {found} of 1 is used");
        let share = batch.quotes[0].guarantee.epsilon.value();
        assert!(share >= at_least, "{count}: {share}");
    }
}

#[test]
fn pure_parts_add_up() {
    let folder = folder();
    let texts = ["SELECT COUNT(*) FROM t", "SELECT SUM(x) FROM t", "SELECT COUNT(x) FROM t"];
    let batch = Batch::make(&folder.project(), &texts, &ask("1", "0")).unwrap();
    let sum: f64 = batch.quotes.iter().map(|quote| quote.guarantee.epsilon.value()).sum();
    assert!(sum <= 1.0 && sum > 0.995, "{sum}");
}

/// A question that names its error has the least ε for it, the same as alone; the others share the rest.
#[test]
fn what_a_question_names_it_has() {
    let folder = folder();
    let project = folder.project();
    let named = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_error = 20) COUNT(*) AS n FROM t";
    let texts = [
        named,
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.2, delta = 0) COUNT(*) AS n FROM t",
        "SELECT SUM(x) AS s FROM t",
    ];
    let batch = Batch::make(&project, &texts, &ask("1", "0")).unwrap();
    let epsilons: Vec<f64> = batch.quotes.iter().map(|quote| quote.guarantee.epsilon.value()).collect();
    let alone =
        Quote::make(&project, &Ask { sql: named.to_owned(), delta: Some("0".to_owned()), ..Ask::default() });
    assert_eq!(epsilons[0], alone.unwrap().guarantee.epsilon.value());
    assert_eq!(epsilons[1], 0.2);
    assert!(epsilons[2] > 0.98 * (0.8 - epsilons[0]) && epsilons.iter().sum::<f64>() <= 1.0, "{epsilons:?}");
}

#[test]
fn what_is_wrong_with_one_question_is_said_of_it_and_costs_nothing() {
    let folder = folder();
    let good = "SELECT COUNT(*) FROM t";
    let named = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.8) COUNT(*) FROM t";
    let one = ask("1", "1e-6");
    assert_eq!(refusal(&folder, &[good, "SELECT * FROM t", good], &one), (Some(2), "plan.rows"));
    assert_eq!(refusal(&folder, &[good, "EXPLAIN SELECT COUNT(*) FROM t"], &one), (Some(2), "engine.batch"));
    assert_eq!(refusal(&folder, &[good, "SELECT k, COUNT(*) FROM t GROUP BY k"], &ask("1", "0")).0, Some(2));
    assert_eq!(refusal(&folder, &[], &one), (None, "engine.batch"));
    assert_eq!(refusal(&folder, &[good; 101], &one), (None, "engine.batch"));
    assert_eq!(refusal(&folder, &[good], &Ask::default()), (None, "engine.batch"));
    assert_eq!(refusal(&folder, &[named, named], &ask("1", "0")), (None, "engine.batch"));
    assert_eq!(refusal(&folder, &[good, "SELECT COUNT(*) FROM s"], &one), (None, "engine.batch"));
    assert_eq!(refusal(&folder, &[good], &ask("-1", "0")), (None, "engine.guarantee"));
}
