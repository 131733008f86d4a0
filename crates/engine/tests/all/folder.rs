//! [`Folder`]: a project for one test, with a file of rows, a catalog and a ledger of its own.

use std::path::Path;

use demur_engine::{Answer, Ask, Embedded, Engine, EngineError, Project, Quote, Table};
use demur_ledger::{BudgetName, Location, Options};
use serde_json::Value;

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with this `demur.toml`, and these rows in `t.csv`.
    pub(crate) fn new(catalog: &str, csv: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("t.csv"), csv).unwrap();
        folder.declare(catalog);
        folder
    }

    /// Writes `demur.toml` anew.
    pub(crate) fn declare(&self, catalog: &str) {
        std::fs::write(self.path().join("demur.toml"), catalog).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn project(&self) -> Project {
        Project::open(self.path()).unwrap()
    }

    pub(crate) fn location(&self) -> Location {
        Location::Sqlite(self.path().join(".demur/ledger.db"))
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine::for_project(&self.project(), &self.location(), Options::default()).unwrap()
    }

    pub(crate) fn backend(&self) -> Embedded {
        Embedded::new(self.path()).unwrap()
    }

    pub(crate) fn answer(&self, sql: &str, epsilon: &str) -> Result<Answer, EngineError> {
        let project = Project::open(self.path())?;
        let engine = Engine::for_project(&project, &self.location(), Options::default())?;
        let ask = ask(sql, epsilon);
        let quote = Quote::make(&project, &ask)?;
        engine.query(&project, &ask, &quote, &Embedded::new(self.path())?)
    }

    pub(crate) fn table(&self, sql: &str, epsilon: &str) -> Result<Table, EngineError> {
        let answer = self.answer(sql, epsilon)?;
        Table::read(&answer.certificate.columns, &answer.certificate.released)
    }

    pub(crate) fn rows(&self, sql: &str, epsilon: &str) -> Vec<Vec<Value>> {
        let table = self.table(sql, epsilon).unwrap_or_else(|error| unreachable!("{sql}: {error}"));
        table.rows.into_iter().map(|row| row.into_iter().map(|cell| cell.value).collect()).collect()
    }

    /// The rows at an ε so large that noise is next to nothing: here a whole number has any with probability below e^−100.
    pub(crate) fn nearly_exact(&self, sql: &str) -> Vec<Vec<Value>> {
        self.rows(sql, "100000")
    }

    /// How many answers the budget `t` has paid for.
    pub(crate) fn releases(&self) -> u64 {
        let book = self.engine().ledger().book().unwrap();
        book.budget(&BudgetName::whole("t")).unwrap().releases
    }
}

/// A question at this price, with δ = 10⁻⁶.
pub(crate) fn ask(sql: &str, epsilon: &str) -> Ask {
    Ask {
        sql: sql.to_owned(),
        epsilon: Some(epsilon.to_owned()),
        delta: Some("1e-6".to_owned()),
        requester: "test".to_owned(),
        ..Ask::default()
    }
}
