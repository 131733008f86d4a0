//! [`Location`]: where a ledger is, by its URL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::LedgerError;
use crate::store::{OnWait, Sqlite, Store, beside};
#[cfg(feature = "postgres")]
use crate::store::{Postgres, PostgresUrl};

/// `sqlite:path`, or a plain path, or `postgres://user@host/database`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file.
    Sqlite(PathBuf),
    /// A database.
    #[cfg(feature = "postgres")]
    Postgres(PostgresUrl),
}

impl FromStr for Location {
    type Err = LedgerError;

    fn from_str(text: &str) -> Result<Self, LedgerError> {
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
                (scheme, rest)
            }
            _ => ("sqlite", text),
        };
        match scheme {
            "sqlite" if !rest.is_empty() => Ok(Self::Sqlite(PathBuf::from(rest))),
            "sqlite" => {
                Err(LedgerError::misuse("ledger.url", "a ledger needs a file name, as in `sqlite:ledger.db`"))
            }
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => text.parse().map(Self::Postgres),
            #[cfg(not(feature = "postgres"))]
            "postgres" | "postgresql" => {
                let text = "this build of demur knows no PostgreSQL; build it with the feature `postgres`, or use `sqlite:path`";
                Err(LedgerError::misuse("ledger.url", text))
            }
            _ => {
                let text =
                    format!("a ledger is at `sqlite:path` or `postgres://…`, but `{scheme}:` was given");
                Err(LedgerError::misuse("ledger.url", text))
            }
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => fmt::Display::fmt(url, f),
        }
    }
}

impl Location {
    /// Whether something is there.
    pub fn exists(&self) -> Result<bool, LedgerError> {
        match self {
            Self::Sqlite(path) => path.try_exists().map_err(|error| {
                LedgerError::broken(
                    "ledger.store",
                    format!("{} cannot be looked at: {error}", path.display()),
                )
            }),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Postgres::exists(url),
        }
    }

    /// Makes an empty store, unless there is one.
    pub(crate) fn create(&self, patience: Duration, on_wait: OnWait) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(path) => Sqlite::create(path, patience, on_wait),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Postgres::create(url, patience),
        }
    }

    /// The store that is there, for reading and writing.
    pub fn open(&self, patience: Duration, on_wait: OnWait) -> Result<Box<dyn Store>, LedgerError> {
        match self {
            Self::Sqlite(path) => Ok(Box::new(Sqlite::open(path, patience, on_wait)?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Ok(Box::new(Postgres::open(url, patience, on_wait)?)),
        }
    }

    pub(crate) fn open_to_read(&self) -> Result<Box<dyn Store>, LedgerError> {
        match self {
            Self::Sqlite(path) => Ok(Box::new(Sqlite::open_to_read(path)?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Ok(Box::new(Postgres::open_to_read(url)?)),
        }
    }

    /// Where the anchor of this ledger is.
    pub fn anchor(&self) -> PathBuf {
        match self {
            Self::Sqlite(path) => beside(path, "anchor"),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.file("anchor"),
        }
    }

    /// Where the key that signs its certificates is.
    pub fn key(&self) -> PathBuf {
        match self {
            Self::Sqlite(path) => beside(path, "key"),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.file("key"),
        }
    }

    /// The same place, with what this machine remembers of a server's ledger in another folder; a file has its own beside it.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "there are only files"))]
    pub fn keep_in(self, folder: &Path) -> Self {
        match self {
            Self::Sqlite(path) => Self::Sqlite(path),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Self::Postgres(url.keep_in(folder)),
        }
    }

    /// The folder its files are in, to be made if need be.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => path.parent().filter(|folder| !folder.as_os_str().is_empty()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Some(url.folder()),
        }
    }
}
