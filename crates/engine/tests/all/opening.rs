//! demur.toml is changed after its budget was opened.

use demur_accounting::Filter;
use demur_engine::{ANY_UNIT, Engine, SCRATCH};
use demur_ledger::{BudgetName, Ledger, Options};

use crate::folder::Folder;

fn catalog(unit: &str, epsilon: &str) -> String {
    format!(
        "[budget]\nname = \"t\"\nepsilon = {epsilon}\ndelta = 0.001\n\n\
         [tables.t]\nfiles = \"t.csv\"\nunit = \"{unit}\"\n\n\
         [tables.t.columns]\nperson = {{ type = \"int64\" }}\nhouse = {{ type = \"int64\" }}\n"
    )
}

fn folder(unit: &str) -> Folder {
    Folder::new(&catalog(unit, "10"), "person,house\n1,1\n1,2\n2,1\n")
}

fn refusal(folder: &Folder) -> Option<&'static str> {
    folder.answer("SELECT COUNT(*) FROM t", "1").err().map(|error| error.code())
}

#[test]
fn a_budget_for_one_unit_does_not_pay_for_another() {
    let units = ["row", "person", "house"];
    for opened in units {
        let folder = folder(opened);
        folder.answer("SELECT COUNT(*) FROM t", "1").unwrap();
        for now in units {
            folder.declare(&catalog(now, "10"));
            assert_eq!(refusal(&folder), (now != opened).then_some("engine.unit"), "{opened} to {now}");
        }
        folder.declare(&catalog(opened, "10"));
        assert_eq!(folder.releases(), 1, "refusals charge nothing, and the same question is not paid again");
        // Without a word about how much, the ledger's budget is asked all the same.
        let other = if opened == "row" { "person" } else { "row" };
        let silent = catalog(other, "10").replace("epsilon = 10\ndelta = 0.001\n", "");
        folder.declare(&silent);
        assert_eq!(refusal(&folder), Some("engine.unit"));
    }
}

#[test]
fn a_budget_that_nobody_named_a_unit_for_goes_with_every_project_and_so_does_a_scratch_one() {
    for (dataset, unit) in [("t".to_owned(), ANY_UNIT), (format!("{SCRATCH}t"), "row")] {
        let folder = folder("person");
        let ledger = Ledger::create(&folder.location(), Options::default()).unwrap();
        let filter = Filter::zcdp("10".parse().unwrap(), "0.001".parse().unwrap()).unwrap();
        ledger.create_budget(BudgetName::whole("t"), &dataset, unit, filter, "").unwrap();
        drop(ledger);
        assert_eq!(refusal(&folder), None, "{dataset}");
    }
}

#[test]
fn an_epsilon_that_was_changed_in_the_catalog_is_remarked() {
    let folder = folder("person");
    let remark = |folder: &Folder| folder.engine().remark(&folder.project()).unwrap();
    assert_eq!(remark(&folder), None);
    for (epsilon, named) in [("2", "ε = 2, δ = 0.001"), ("11", "ε = 11, δ = 0.001")] {
        folder.declare(&catalog("person", epsilon));
        let remark = remark(&folder).unwrap();
        assert!(remark.contains(named) && remark.contains("has ε = 10, δ = 0.001"), "{remark}");
    }
    let larger = Filter::zcdp("11".parse().unwrap(), "0.001".parse().unwrap()).unwrap();
    let engine: Engine = folder.engine();
    engine.ledger().raise_budget(BudgetName::whole("t"), larger, "a second study").unwrap();
    drop(engine);
    assert_eq!(remark(&folder), None);
}
