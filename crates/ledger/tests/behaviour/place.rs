//! [`Place`]: an empty place for one ledger, and what a vandal could do to it.

use std::path::Path;

use demur_accounting::Filter;
use demur_ledger::entry::{Entry, Position};
use demur_ledger::store::{OnWait, Sqlite, Store};
use demur_ledger::{BudgetName, Charged, Ledger, LedgerError, Location, Options, Receipt, Request};
#[cfg(feature = "postgres")]
use demur_testkit::PostgresServer;

pub(crate) struct Place {
    pub(crate) location: Location,
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { location: Location::Sqlite(folder.path().join("ledger.db")), folder }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn postgres() -> Self {
        Self::on(PostgresServer::shared())
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn on(server: &PostgresServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url: demur_ledger::store::PostgresUrl = server.database().parse().unwrap();
        Self { location: Location::Postgres(url.keep_in(folder.path())), folder }
    }

    /// Another place like this one.
    pub(crate) fn another(&self) -> Self {
        match &self.location {
            Location::Sqlite(_) => Self::sqlite(),
            #[cfg(feature = "postgres")]
            Location::Postgres(_) => Self::postgres(),
        }
    }

    pub(crate) fn create(&self) -> Ledger {
        Ledger::create(&self.location, Options::default()).unwrap()
    }

    pub(crate) fn open(&self) -> Ledger {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Ledger, LedgerError> {
        Ledger::open(&self.location, Options::default())
    }

    /// The code of the error with which it refuses to open.
    pub(crate) fn refusal(&self) -> &'static str {
        self.try_open().err().expect("it should not open").code()
    }

    /// The store itself, without a ledger around it.
    pub(crate) fn store(&self, on_wait: OnWait) -> Box<dyn Store> {
        let patience = std::time::Duration::from_secs(60);
        match &self.location {
            Location::Sqlite(path) => Box::new(Sqlite::open(path, patience, on_wait).unwrap()),
            #[cfg(feature = "postgres")]
            Location::Postgres(url) => {
                Box::new(demur_ledger::store::Postgres::open(url, patience, on_wait).unwrap())
            }
        }
    }

    /// The store as a reader has it.
    pub(crate) fn reader(&self) -> Box<dyn Store> {
        match &self.location {
            Location::Sqlite(path) => Box::new(Sqlite::open_to_read(path).unwrap()),
            #[cfg(feature = "postgres")]
            Location::Postgres(url) => Box::new(demur_ledger::store::Postgres::open_to_read(url).unwrap()),
        }
    }

    pub(crate) fn entries(&self) -> Vec<(Position, Entry)> {
        let mut entries = Vec::new();
        let mut add = |sealed: demur_ledger::entry::Sealed| {
            entries.push((sealed.position, sealed.read()?));
            Ok(())
        };
        Ledger::entries(&self.location, 0, &mut add).unwrap();
        entries
    }

    /// Runs a statement behind the ledger's back, on tables named as `{entry}`; what it says comes as text.
    pub(crate) fn sql(&self, statement: &str) -> String {
        match &self.location {
            Location::Sqlite(path) => {
                let statement = statement.replace(['{', '}'], "");
                let connection = rusqlite::Connection::open(path).unwrap();
                let mut statement = connection.prepare(&statement).unwrap();
                let mut rows = statement.query([]).unwrap();
                rows.next().unwrap().map(|row| row.get(0).unwrap()).unwrap_or_default()
            }
            #[cfg(feature = "postgres")]
            Location::Postgres(url) => {
                let statement = statement.replace('{', "demur.").replace('}', "");
                let statement = statement.replace("hex(", "pg_temp.hex(").replace("x'", "'\\x");
                let function = "CREATE FUNCTION pg_temp.hex(bytea) RETURNS text RETURN encode($1, 'hex');";
                PostgresServer::shared().sql(&url.to_string(), &format!("{function} {statement}"))
            }
        }
    }

    /// Changes one byte of a column of an entry.
    pub(crate) fn flip(&self, sequence: u64, column: &str, place: usize) {
        let text = self.sql(&format!("SELECT hex({column}) FROM {{entry}} WHERE sequence = {sequence}"));
        let mut text: Vec<char> = text.to_lowercase().chars().collect();
        let place = 2 * place % text.len();
        text[place] = if text[place] == '6' { '7' } else { '6' };
        let text: String = text.into_iter().collect();
        self.sql(&format!("UPDATE {{entry}} SET {column} = x'{text}' WHERE sequence = {sequence}"));
    }

    /// Takes all entries from this one on away.
    pub(crate) fn cut(&self, sequence: u64) {
        for (table, column) in [("entry", "sequence"), ("answer", "release")] {
            self.sql(&format!("DELETE FROM {{{table}}} WHERE {column} >= {sequence}"));
        }
    }

    /// Takes the ledger away and leaves its anchor.
    pub(crate) fn destroy(&self) {
        match &self.location {
            Location::Sqlite(path) => std::fs::remove_file(path).unwrap(),
            #[cfg(feature = "postgres")]
            Location::Postgres(_) => drop(self.sql("DROP SCHEMA demur CASCADE")),
        }
    }

    pub(crate) fn anchor(&self) -> std::path::PathBuf {
        let anchor = self.location.anchor();
        assert!(anchor.starts_with(self.folder()));
        anchor
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

pub(crate) fn pure(epsilon: &str) -> Filter {
    Filter::pure(epsilon.parse().unwrap()).unwrap()
}

/// A ledger with one budget, `visits`, of this ε.
pub(crate) fn with_budget(place: &Place, epsilon: &str) -> Ledger {
    let ledger = place.create();
    ledger.create_budget(BudgetName::whole("visits"), "visits", "user_id", pure(epsilon), "").unwrap();
    ledger
}

/// A question of alice's about `visits`, at this ε.
pub(crate) fn request(epsilon: &str) -> Request {
    Request::new("visits", "alice", "how many?", format!("pure({epsilon})").parse().unwrap())
}

pub(crate) fn charge(ledger: &Ledger, request: Request) -> Receipt {
    match ledger.charge(request).unwrap() {
        Charged::Now(receipt) => receipt,
        Charged::Before(replay) => panic!("replayed entry {}", replay.charge),
    }
}

/// Charges, and leaves it at that.
pub(crate) fn spend(ledger: &Ledger, request: Request) {
    drop(charge(ledger, request));
}

/// Charges and answers.
pub(crate) fn answer(ledger: &Ledger, request: Request, answer: &[u8]) -> u64 {
    let receipt = charge(ledger, request);
    let paid = receipt.position().sequence;
    ledger.record(receipt, answer).unwrap();
    paid
}

/// The answer that costs nothing, and the entry that paid for it.
pub(crate) fn replayed(ledger: &Ledger, request: Request) -> (u64, Vec<u8>) {
    match ledger.charge(request).unwrap() {
        Charged::Now(receipt) => panic!("charged entry {}", receipt.position().sequence),
        Charged::Before(replay) => (replay.charge, replay.answer),
    }
}

pub(crate) fn code(ledger: &Ledger, request: Request) -> &'static str {
    ledger.charge(request).expect_err("it should be refused").code()
}

pub(crate) const EXHAUSTED: &str = "accounting.filter.exhausted";

/// What has been spent of a budget, as people read it.
pub(crate) fn spent(ledger: &Ledger, name: BudgetName) -> String {
    let book = ledger.book().unwrap();
    let budget = book.budget(&name).unwrap();
    budget.filter.spent(&budget.spent).to_string()
}
