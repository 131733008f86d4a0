//! [`Site`]: where the ledgers of a torture are.

use std::path::PathBuf;
use std::time::Duration;

use demur_ledger::Location;
use demur_testkit::PostgresServer;

/// A folder of our own, and what is kept elsewhere.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    kind: Kind,
}

enum Kind {
    /// Ledgers in the folder.
    Files,
    /// One ledger at a place that was given.
    Given(Location),
    /// Databases of a server of our own; anchors are in the folder.
    Server(PostgresServer),
}

impl Site {
    /// Files in the fastest folder: killing a process loses nothing it gave to the system.
    pub(crate) fn files() -> Result<Self, String> {
        Self::new(Kind::Files)
    }

    /// A place that was given; it has one ledger.
    pub(crate) fn given(url: &str) -> Result<Self, String> {
        Self::new(Kind::Given(place(url)?))
    }

    /// A PostgreSQL server that is gone when this is.
    pub(crate) fn server() -> Result<Self, String> {
        Self::new(Kind::Server(PostgresServer::start()?))
    }

    fn new(kind: Kind) -> Result<Self, String> {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.map_err(|error| format!("there is no folder for the ledgers: {error}"))?;
        Ok(Self { folder, kind })
    }

    pub(crate) fn has_one_ledger(&self) -> bool {
        matches!(self.kind, Kind::Given(_))
    }

    /// Where the ledger is whose life begins with this round.
    pub(crate) fn place(&self, round: u64) -> Result<Location, String> {
        match &self.kind {
            Kind::Files => Ok(Location::Sqlite(self.own(round).join("ledger.db"))),
            Kind::Given(place) => Ok(place.clone()),
            Kind::Server(server) => Ok(place(&server.database())?.keep_in(&self.folder.path().join("demur"))),
        }
    }

    /// Removes that ledger.
    pub(crate) fn clear(&self, round: u64) {
        let _ = std::fs::remove_dir_all(self.own(round));
    }

    /// What workers have to know beside the URL: where the anchors of a server's ledgers are.
    pub(crate) fn environment(&self) -> Option<(&'static str, PathBuf)> {
        self.is_server().then(|| ("XDG_STATE_HOME", self.folder.path().to_owned()))
    }

    /// The time in which a worker usually comes to its end; a server takes longer to reach.
    pub(crate) fn usual(&self) -> Duration {
        Duration::from_millis(if self.is_server() { 120 } else { 12 })
    }

    fn is_server(&self) -> bool {
        matches!(self.kind, Kind::Server(_))
    }

    fn own(&self, round: u64) -> PathBuf {
        self.folder.path().join(round.to_string())
    }
}

/// The place of this URL.
pub(crate) fn place(url: &str) -> Result<Location, String> {
    url.parse::<Location>().map_err(|error| error.to_string())
}
