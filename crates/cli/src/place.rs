//! [`Place`]: which ledger a command means, and who said so.
//!
//! In this order: `--ledger`, the variable `DEMUR_LEDGER`, `.demur/ledger.db` beside the nearest `demur.toml` in this folder
//! or above it, `.demur/ledger.db` in this folder.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use demur_engine::{Answer, Engine, Opening, Project};
use demur_ledger::{Ledger, LedgerError, Location, Options};

use crate::failure::Failure;
use crate::query::target;

/// Names a ledger for all commands of a shell.
const VARIABLE: &str = "DEMUR_LEDGER";
/// Marks the folder of a project.
const PROJECT: &str = "demur.toml";

/// Where the ledger is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) location: Location,
    said: Said,
}

/// Who named the place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Flag,
    Variable,
    Project(PathBuf),
    Nobody,
}

impl Place {
    /// The ledger of this flag, or of where we are.
    pub(crate) fn find(flag: Option<&str>) -> Result<Self, Failure> {
        Self::choose(flag, std::env::var_os(VARIABLE), Path::new(""))
    }

    /// The ledger of this flag, or of a project in that folder.
    pub(crate) fn of_project(flag: Option<&str>, folder: &Path) -> Result<Self, Failure> {
        Self::choose(flag, std::env::var_os(VARIABLE), folder)
    }

    fn choose(flag: Option<&str>, variable: Option<OsString>, folder: &Path) -> Result<Self, Failure> {
        if let Some(url) = flag {
            return Self::of_url(url, Said::Flag);
        }
        if let Some(url) = variable.filter(|url| !url.is_empty()) {
            let url = url.to_str().ok_or_else(|| {
                let message = format!("the variable {VARIABLE} is not valid UTF-8");
                Failure::new("ledger.url", message)
            })?;
            return Self::of_url(url, Said::Variable);
        }
        let (folder, said) = match project(folder) {
            Some(found) => (found.clone(), Said::Project(found.join(PROJECT))),
            None => (folder.to_owned(), Said::Nobody),
        };
        Ok(Self { location: own_ledger(&folder), said })
    }

    fn of_url(url: &str, said: Said) -> Result<Self, Failure> {
        let location = url.parse().map_err(|error: LedgerError| {
            let failure = Failure::from(error);
            match said {
                Said::Variable => failure.hint(format!("this place comes from the variable {VARIABLE}")),
                _ => failure.hint("write --ledger sqlite:path/to/ledger.db, or just the path"),
            }
        })?;
        Ok(Self { location, said })
    }

    /// A handle to the ledger, which must be there.
    pub(crate) fn open(&self) -> Result<Ledger, Failure> {
        Ledger::open(&self.location, options()).map_err(|error| self.failure(error))
    }

    /// A handle to the ledger, made if it is not there; and whether it was made.
    pub(crate) fn open_or_create(&self) -> Result<(Ledger, bool), Failure> {
        match Ledger::create(&self.location, options()) {
            Ok(ledger) => Ok((ledger, true)),
            Err(error) if error.code() == "ledger.exists" => Ok((self.open()?, false)),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Begins to open the ledger, for who has something to do meanwhile.
    pub(crate) fn opening(&self) -> Opening {
        Opening::start(&self.location, options())
    }

    /// The engine for a project, over this ledger; what demur.toml does not tell about its budget goes to stderr.
    pub(crate) fn engine(&self, project: &Project) -> Result<Engine, Failure> {
        self.opened(self.opening(), project)
    }

    /// The same, once it is opened.
    pub(crate) fn opened(&self, opening: Opening, project: &Project) -> Result<Engine, Failure> {
        let is_new = !self.location.exists()?;
        let engine = opening.engine(project)?;
        let own = own_ledger(&project.folder);
        if is_new && self.location != own && own.exists()? {
            let _ = writeln!(
                std::io::stderr(),
                "note: {self} is a new ledger, so the budget begins anew; what was spent in the project's own, {own}, does not count in it"
            );
        }
        if let Some(remark) = engine.remark(project)? {
            let _ = writeln!(std::io::stderr(), "note: {remark}");
        }
        Ok(engine)
    }

    /// What a person should know when this place is the wrong one.
    pub(crate) fn failure(&self, error: LedgerError) -> Failure {
        let about_place = matches!(error.code(), "ledger.none" | "ledger.missing" | "ledger.store");
        let failure = Failure::from(error);
        match &self.said {
            _ if !about_place => failure,
            Said::Flag => failure,
            Said::Variable => failure.hint(format!("this place comes from the variable {VARIABLE}")),
            Said::Project(file) => failure.hint(format!(
                "this place comes from {}; --ledger or {VARIABLE} name another",
                file.display()
            )),
            Said::Nobody => {
                failure.hint(format!("--ledger or the variable {VARIABLE} name a ledger elsewhere"))
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.location.fmt(f)
    }
}

/// The ledger of a project that names no other.
fn own_ledger(folder: &Path) -> Location {
    Location::Sqlite(folder.join(".demur").join("ledger.db"))
}

/// The nearest folder with a project in it: this one, or one above.
pub(crate) fn project(folder: &Path) -> Option<PathBuf> {
    if folder.join(PROJECT).is_file() {
        return Some(folder.to_owned());
    }
    let absolute = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let absolute = absolute.ok()?;
    absolute.ancestors().skip(1).find(|above| above.join(PROJECT).is_file()).map(Path::to_owned)
}

/// How the command opens a ledger: it says on stderr whom it waits for.
pub(crate) fn options() -> Options {
    let on_wait = |holder: &str| {
        let _ = writeln!(std::io::stderr(), "waiting: the ledger is in use by {holder}");
    };
    Options {
        on_wait: Arc::new(on_wait),
        software: concat!("demur ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..Options::default()
    }
}

/// The name of whoever runs the command.
pub(crate) fn user() -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "somebody".to_owned())
}

/// Writes the certificate of a release to a file.
pub(crate) fn write_certificate(path: &Path, answer: &Answer) -> Result<(), Failure> {
    target::guard(path)?;
    std::fs::write(path, answer.certificate.text()? + "\n").map_err(|error| {
        let message = format!("the certificate could not be written to `{}`: {error}", path.display());
        let entry = answer.certificate.charge.sequence;
        Failure::new("cli.file", message)
            .hint(format!("it is kept in the ledger: demur certificate show {entry}"))
            .without_note()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(flag: Option<&str>, variable: Option<&str>, folder: &Path) -> Place {
        Place::choose(flag, variable.map(OsString::from), folder).unwrap()
    }

    #[test]
    fn the_flag_goes_before_the_variable_and_that_before_the_project() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(PROJECT), "").unwrap();
        let path = |place: &Place| place.location.to_string();
        assert_eq!(path(&choose(Some("a.db"), Some("b.db"), folder.path())), "sqlite:a.db");
        assert_eq!(path(&choose(None, Some("sqlite:b.db"), folder.path())), "sqlite:b.db");
        let project = format!("sqlite:{}", folder.path().join(".demur/ledger.db").display());
        assert_eq!(path(&choose(None, None, folder.path())), project);
        assert_eq!(path(&choose(None, Some(""), folder.path())), project);
    }

    #[test]
    fn the_nearest_project_above_counts() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a").join("b");
        std::fs::create_dir_all(&deep).unwrap();
        let ledger = |folder: &Path| Location::Sqlite(folder.join(".demur").join("ledger.db"));
        assert_eq!(choose(None, None, &deep), Place { location: ledger(&deep), said: Said::Nobody });
        std::fs::write(folder.path().join(PROJECT), "").unwrap();
        assert_eq!(choose(None, None, &deep).location, ledger(folder.path()));
        std::fs::write(folder.path().join("a").join(PROJECT), "").unwrap();
        assert_eq!(choose(None, None, &deep).location, ledger(&folder.path().join("a")));
    }

    #[test]
    fn other_places_are_refused() {
        for url in ["mysql://host/db", "sqlite:"] {
            assert_eq!(Place::choose(Some(url), None, Path::new("")).unwrap_err().code(), "ledger.url");
        }
    }
}
