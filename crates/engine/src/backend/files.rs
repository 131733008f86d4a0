//! Which files a table is made of, and whether they are what the catalog says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use datafusion::arrow::datatypes::{DataType, Schema};
use demur_plan::catalog::{ColumnType, FILE, Format, Table};

use crate::EngineError;

/// The files of a table, by name; relative names start at the project's folder.
pub(super) fn of(table: &Table, folder: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let mut files = Vec::new();
    for name in &table.files {
        let path = folder.join(name);
        let found = if path.is_dir() { inside(&path, table)? } else { matching(&path)? };
        if found.is_empty() {
            let text = format!("table `{}` has no file `{}`", table.name, path.display());
            return Err(EngineError::new("engine.files", text));
        }
        files.extend(found);
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn inside(folder: &Path, table: &Table) -> Result<Vec<PathBuf>, EngineError> {
    let ending = match table.format {
        Format::Parquet => "parquet",
        Format::Csv => "csv",
    };
    let has_ending =
        |path: &PathBuf| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    Ok(entries(folder)?.into_iter().filter(|path| path.is_file() && has_ending(path)).collect())
}

/// The file itself, or those a pattern with `*` in its last part matches.
fn matching(path: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let pattern = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !pattern.contains('*') {
        return Ok(if path.is_file() { vec![path.to_owned()] } else { Vec::new() });
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let fits = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| glob(pattern, name))
    };
    Ok(entries(folder)?.into_iter().filter(|path| path.is_file() && fits(path)).collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let read = || {
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<Vec<_>>>()
    };
    read().map_err(|error| {
        EngineError::new("engine.files", format!("`{}` cannot be listed: {error}", folder.display()))
    })
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut last = "";
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        last = part;
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || last.is_empty() || name.ends_with(last)
}

/// The columns a file states about itself, with those types that can be asked about; no row is read.
pub fn stored_columns(file: &Path) -> Result<Vec<(String, Option<ColumnType>)>, EngineError> {
    let format =
        match file.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("parquet") => Format::Parquet,
            Some("csv") => Format::Csv,
            _ => {
                let text = format!("`{}` is neither a .parquet nor a .csv file", file.display());
                return Err(EngineError::new("engine.files", text));
            }
        };
    let schema = stored_schema(file, format)?;
    let column = |field: &std::sync::Arc<datafusion::arrow::datatypes::Field>| {
        (field.name().clone(), ColumnType::of_arrow(field.data_type()))
    };
    Ok(schema.fields().iter().map(column).collect())
}

/// The columns of a table's first file, in the order of that file.
pub(crate) fn stored_order(table: &Table, folder: &Path) -> Result<Vec<String>, EngineError> {
    let Some(first) = of(table, folder)?.into_iter().next() else { return Ok(Vec::new()) };
    let schema = stored_schema(&first, table.format)?;
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// The names and types a file states about itself.
pub(super) fn stored_schema(file: &Path, format: Format) -> Result<Schema, EngineError> {
    let wrong = |error: String| {
        EngineError::new("engine.files", format!("`{}` cannot be read: {error}", file.display()))
    };
    let open = || File::open(file).map_err(|error| wrong(error.to_string()));
    match format {
        Format::Parquet => {
            // The library's words may quote the file; ours do not.
            super::parquet::stored(&open()?).map_err(|_| wrong("it is no Parquet file".to_owned()))
        }
        Format::Csv => super::csv::header(open()?).map_err(|error| wrong(error.to_string())),
    }
}

/// Whether a table's files are there, with the declared columns; no row is read.
pub fn check_files(table: &Table, folder: &Path) -> Result<(), EngineError> {
    of(table, folder)?.iter().try_for_each(|file| check(table, file))
}

/// Whether a file has the declared columns.
fn check(table: &Table, file: &Path) -> Result<(), EngineError> {
    let stored = stored_schema(file, table.format)?;
    for (name, column) in &table.columns {
        let text = match stored.field_with_name(name) {
            Err(_) => format!("has no column `{name}`, which {FILE} declares"),
            Ok(field) if fits(field.data_type(), column.column_type, table.format) => continue,
            Ok(field) => {
                format!("stores `{name}` as {}, but {FILE} says {}", field.data_type(), column.column_type)
            }
        };
        return Err(EngineError::new("engine.schema", format!("`{}` {text}", file.display())));
    }
    Ok(())
}

fn fits(stored: &DataType, declared: ColumnType, format: Format) -> bool {
    format == Format::Csv || ColumnType::of_arrow(stored) == Some(declared)
}
