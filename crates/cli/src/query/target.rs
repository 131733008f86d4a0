//! [`Target`]: the file an answer is written to.
//!
//! A draft is made beside it before anything is charged, so that a wrong name costs nothing; it takes the file's place when it is whole.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use demur_engine::Project;

use crate::args::query::Form;
use crate::failure::Failure;

pub(crate) struct Target {
    path: PathBuf,
    /// Nothing for what is no plain file, such as a pipe: that is written to as it is.
    draft: Option<PathBuf>,
}

impl Target {
    /// Makes sure that the file can be written.
    pub(crate) fn prepare(path: &Path) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::new("cli.file", format!("`{}` cannot be written: {error}", path.display()))
        };
        if path.is_dir() {
            return Err(wrong(&"it is a folder").hint("name a file in it"));
        }
        guard(path)?;
        if path.exists() && !path.is_file() {
            return Ok(Self { path: path.to_owned(), draft: None });
        }
        let Some(name) = path.file_name() else { return Err(wrong(&"it names no file")) };
        let mut draft = std::ffi::OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}.draft", std::process::id()));
        let draft = path.with_file_name(draft);
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&draft)
            .map_err(|error| wrong(&error))?;
        Ok(Self { path: path.to_owned(), draft: Some(draft) })
    }

    /// Writes the file.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &self.draft {
            Some(draft) => write_whole(draft, bytes).and_then(|()| fs::rename(draft, &self.path)),
            None => {
                OpenOptions::new().write(true).open(&self.path).and_then(|mut file| file.write_all(bytes))
            }
        };
        written.map_err(|error| {
            Failure::new("cli.file", format!("`{}` cannot be written: {error}", self.path.display()))
                .after_release()
        })
    }
}

/// Refuses to write over what a project lives on: its catalog, its tables, its ledger.
pub(crate) fn guard(path: &Path) -> Result<(), Failure> {
    match kept(path) {
        None => Ok(()),
        Some(what) => {
            Err(Failure::new("cli.file", format!("`{}` is not written over: {what}", path.display()))
                .hint("name another file"))
        }
    }
}

/// What a file is, if a project lives on it.
fn kept(path: &Path) -> Option<&'static str> {
    let absolute = std::path::absolute(path).ok()?;
    let folder = absolute.parent()?;
    if folder.components().any(|part| part.as_os_str() == ".demur") {
        return Some("it lies in the folder of a ledger");
    }
    if absolute.file_name()? == "demur.toml" {
        return Some("it is the catalog of a project");
    }
    let (real, project) = (absolute.canonicalize().ok()?, Project::find(folder).ok()?);
    let is_read = |file: &String| {
        let file = project.folder.join(file);
        let same = file.canonicalize().is_ok_and(|file| real.starts_with(file));
        let pattern = file.to_string_lossy().contains(['*', '?', '[']);
        let within = file.parent().and_then(|folder| folder.canonicalize().ok()).as_deref() == real.parent();
        same || (pattern && within && file.extension() == real.extension())
    };
    project
        .catalog
        .tables
        .values()
        .any(|table| table.files.iter().any(is_read))
        .then_some("a table of the project is read from it")
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A draft that was not needed goes away.
impl Drop for Target {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            let _ = fs::remove_file(draft);
        }
    }
}

/// How a file is written, by its ending.
pub(crate) fn form_of(path: &Path) -> Result<Form, Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("").to_lowercase();
    Ok(match ending.as_str() {
        "parquet" => Form::Parquet,
        "arrow" | "feather" | "ipc" => Form::Arrow,
        "csv" => Form::Csv,
        "json" => Form::Json,
        "jsonl" | "ndjson" => Form::Lines,
        "txt" => Form::Table,
        "svg" | "png" => {
            let text = format!("`{}` is a picture, and nothing says how to draw it", path.display());
            return Err(Failure::new("cli.format", text).hint("add --plot bar, line or heat"));
        }
        _ => {
            let text = format!("the ending of `{}` does not tell how to write it", path.display());
            return Err(Failure::new("cli.format", text).hint(
                "add --format, or use one of .parquet, .arrow, .csv, .json, .jsonl, .txt (and .svg, .png with --plot)",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_project_lives_on_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let catalog = "[budget]\nname = \"t\"\n[tables.t]\nfiles = [\"t.csv\", \"more/*.csv\"]\nunit = \"row\"\n[tables.t.columns.a]\ntype = \"int64\"\n";
        fs::write(at("demur.toml"), catalog).unwrap();
        for name in [".demur", "more"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["t.csv", "more/x.csv", "more/x.json", "old.csv", ".demur/ledger.db"] {
            fs::write(at(name), "a\n1\n").unwrap();
        }
        assert!(Project::find(folder.path()).is_ok(), "{:?}", Project::find(folder.path()).err());
        for name in
            ["demur.toml", "t.csv", "more/x.csv", "./more/../t.csv", ".demur/ledger.db", ".demur/new.csv"]
        {
            let refused = Target::prepare(&at(name)).err().map(|failure| failure.code());
            assert_eq!(refused, Some("cli.file"), "{name}");
        }
        for name in ["old.csv", "more/x.json", "new.csv"] {
            assert!(Target::prepare(&at(name)).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, "old").unwrap();
        drop(Target::prepare(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        Target::prepare(&path).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft stays");
    }

    #[test]
    fn what_cannot_be_written_is_known_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("missing").join("a.csv")] {
            assert_eq!(Target::prepare(&path).err().map(|failure| failure.code()), Some("cli.file"));
        }
    }

    #[test]
    fn endings_tell_the_form() {
        assert_eq!(form_of(Path::new("a.PARQUET")).unwrap(), Form::Parquet);
        assert_eq!(form_of(Path::new("a.feather")).unwrap(), Form::Arrow);
        for name in ["a", "a.xls", "a.svg"] {
            assert_eq!(form_of(Path::new(name)).unwrap_err().code(), "cli.format");
        }
    }
}
