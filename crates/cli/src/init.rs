//! `demur init`: a first demur.toml from what files say about themselves.

mod smartnoise;

use std::io::Write;
use std::path::Path;

use demur_engine::stored_columns;
use demur_plan::catalog::{ColumnType, FILE};

use crate::args::query::Init;
use crate::bounds;
use crate::failure::Failure;
use crate::limits;

pub(crate) fn run(args: &Init, out: &mut impl Write) -> Result<(), Failure> {
    match &args.smartnoise_yaml {
        Some(yaml) => import(args, yaml, out)?,
        None if !args.files.is_empty() => write(args, out)?,
        None => {}
    }
    if let Some(epsilon) = args.private_limits {
        limits::find(&args.project, args.ledger.as_deref(), epsilon, out)?;
    }
    match args.private_bounds {
        Some(epsilon) => bounds::find(&args.project, args.ledger.as_deref(), epsilon, out),
        None => Ok(()),
    }
}

/// Writes a new demur.toml.
fn write(args: &Init, out: &mut impl Write) -> Result<(), Failure> {
    let name = args.files.first().map_or_else(|| "data".to_owned(), |file| table_name(file));
    let mut text = head("the files' own descriptions", &name);
    for file in &args.files {
        text.push_str(&table(file, args)?);
    }
    make(&args.project, &text, out)?;
    let missing = text.matches("# low and high, if").count();
    if missing > 0 && args.private_bounds.is_none() {
        writeln!(
            out,
            "{missing} columns have no bounds yet: write low and high for those you want summed, or let \
             `demur init --private-bounds 0.5` find them"
        )?;
    }
    next(out)
}

/// Writes a new demur.toml from metadata of SmartNoise SQL.
fn import(args: &Init, yaml: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let tables = smartnoise::tables(yaml, &args.files, &args.project)?;
    let name = tables.first().map_or("data", |(name, _)| name.as_str());
    let mut text = head("metadata of SmartNoise SQL", name);
    text.extend(tables.iter().map(|(_, table)| table.as_str()));
    make(&args.project, &text, out)?;
    let tables = tables.len();
    writeln!(out, "{tables} table{} carried over", if tables == 1 { "" } else { "s" })?;
    let missing = text.matches(smartnoise::MARK).count();
    if missing > 0 {
        let mark = smartnoise::MARK.trim_end();
        writeln!(out, "{missing} things were not: look for `{mark}` in demur.toml")?;
    }
    next(out)
}

/// Makes the file, which must not be there.
fn make(project: &Path, text: &str, out: &mut impl Write) -> Result<(), Failure> {
    let path = project.join(FILE);
    let mut made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| {
        let failure = Failure::new("cli.init", format!("`{}` cannot be made: {error}", path.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                failure.hint("edit it, or move it away first; it is never overwritten")
            }
            _ => failure,
        }
    })?;
    made.write_all(text.as_bytes())?;
    Ok(writeln!(out, "wrote {}", path.display())?)
}

fn next(out: &mut impl Write) -> Result<(), Failure> {
    let ask = "demur query \"SELECT COUNT(*) FROM …\" --epsilon 0.5";
    Ok(writeln!(out, "next: review it, run `demur check`, then ask with `{ask}`")?)
}

/// What stands before the tables; the budget is named after the first of them.
fn head(source: &str, name: &str) -> String {
    format!(
        "\
# What demur may answer about these files, and whose privacy counts.
# Names and types come from {source}; no row was read.

[budget]
name = {}
epsilon = 10                     # all questions together, for ever; opened on first use
delta = 1e-6
filter = \"renyi\"                 # counts both kinds of noise well; zcdp is for Gaussian noise alone
delta_per_question = 1e-8        # where a question names none
# max_epsilon_per_question = 1
",
        quoted(name)
    )
}

fn table(file: &Path, args: &Init) -> Result<String, Failure> {
    let columns = stored_columns(file)?;
    let unit = args.unit.as_deref();
    if let Some(unit) = unit
        && unit != "row"
        && !columns.iter().any(|(name, _)| name == unit)
    {
        let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("`{}` has no column `{unit}`", file.display());
        return Err(Failure::new("cli.unit", message).hint(format!("it has: {}", names.join(", "))));
    }
    let mut text = format!(
        "\n[tables.{}]\nfiles = {}\n",
        key(&table_name(file)),
        quoted(&relative(file, &args.project))
    );
    text.push_str(&match unit {
        Some("row") => "unit = \"row\"                    # every row is somebody of its own\n".to_owned(),
        Some(unit) => format!(
            "unit = {}    # all rows with the same value are one person's\n\
             max_groups_per_unit = 1          # in how many groups of an answer a person may count\n\
             max_rows_per_group = 1           # and for how many rows in each\n",
            quoted(unit)
        ),
        None => "# whose privacy counts: \"row\" if every row is somebody of its own, else the column that names the person\n\
                 # unit = \"row\"\n"
            .to_owned(),
    });
    text.push_str(&format!("\n[tables.{}.columns]\n", key(&table_name(file))));
    for (name, found) in &columns {
        text.push_str(&column(name, *found, unit));
    }
    if file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")) {
        text.push_str("# A CSV file does not say what its columns are: write int64, float64, decimal(p, s), date, timestamp or boolean where it is not string.\n");
    }
    Ok(text)
}

fn column(name: &str, found: Option<ColumnType>, unit: Option<&str>) -> String {
    let name_and = |rest: &str| format!("{} = {rest}\n", key(name));
    match found {
        None => format!("# {} has a type that cannot be asked about\n", key(name)),
        Some(found) if unit == Some(name) => name_and(&format!("{{ type = \"{found}\" }}")),
        Some(found) if found.is_ordered_number() => {
            name_and(&format!("{{ type = \"{found}\" }}    # low and high, if it is to be summed"))
        }
        Some(found) => {
            name_and(&format!("{{ type = \"{found}\" }}    # values = [\"…\"] if they are public"))
        }
    }
}

fn table_name(file: &Path) -> String {
    let stem = file.file_stem().map_or_else(|| "data".into(), |stem| stem.to_string_lossy().into_owned());
    let plain = |letter: char| if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '_' };
    stem.chars().map(plain).collect()
}

/// The file as seen from the project's folder, where that is simple.
fn relative(file: &Path, project: &Path) -> String {
    let (Ok(file_there), Ok(folder)) = (file.canonicalize(), project.canonicalize()) else {
        return file.to_string_lossy().into_owned();
    };
    file_there.strip_prefix(&folder).unwrap_or(&file_there).to_string_lossy().into_owned()
}

/// A TOML key, in quotes where it must be.
fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
    if bare { name.to_owned() } else { quoted(name) }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
