//! A first demur.toml from metadata of SmartNoise SQL.
//!
//! **What is carried over.** Tables, columns and their types, `private_id` and `row_privacy` as the unit, `max_ids` as limits, `lower` and `upper` as bounds.
//! **What is not** stands as a comment where it would have been, beginning with [`MARK`]: switches that turn a protection off have no counterpart here.
//!
//! The format is that of SmartNoise SQL's metadata: collection, schema, table, column; the names `is_key`, `min` and `max` are those of its first versions.

use std::path::{Path, PathBuf};

use demur_engine::stored_columns;
use demur_plan::catalog::ColumnType;
use saphyr::{LoadableYamlNode, Scalar, Yaml};

use super::{key, quoted, relative, table_name};
use crate::failure::Failure;

/// What a comment about something that was not carried over begins with.
pub(super) const MARK: &str = "# not carried over: ";
/// The largest metadata that is read.
const BYTES: u64 = 1 << 20;

/// The tables of a metadata file, as they stand in demur.toml.
pub(super) fn tables(
    yaml: &Path,
    files: &[PathBuf],
    project: &Path,
) -> Result<Vec<(String, String)>, Failure> {
    let wrong = |text: &str| Failure::new("cli.smartnoise", format!("`{}` {text}", yaml.display()));
    let long = std::fs::metadata(yaml).map_err(|error| wrong(&format!("cannot be read: {error}")))?.len();
    if long > BYTES {
        return Err(wrong("is larger than 1 MiB, which no metadata is"));
    }
    let text = std::fs::read_to_string(yaml).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    let documents = Yaml::load_from_str(&text).map_err(|error| wrong(&format!("is no YAML: {error}")))?;
    let root = documents.first().map(entries).unwrap_or_default();
    let mut found: Vec<Found<'_>> = Vec::new();
    for (name, collection) in root.iter().filter(|(name, _)| name != "engine") {
        for (schema, tables) in entries(collection) {
            for (table, columns) in entries(tables) {
                found.push(Found {
                    collection: name.clone(),
                    schema: schema.clone(),
                    table,
                    columns: entries(columns),
                });
            }
        }
    }
    if found.is_empty() {
        return Err(wrong("names no table").hint(
            "SmartNoise metadata reads: a collection, in it a schema, in it a table, in it its columns",
        ));
    }
    let twice = |table: &str| found.iter().filter(|other| plain(&other.table) == table).count() > 1;
    let unused = |file: &&PathBuf| !found.iter().any(|found| table_name(file) == plain(&found.table));
    if let Some(file) = files.iter().find(unused) {
        let names: Vec<_> = found.iter().map(|found| found.table.as_str()).collect();
        return Err(wrong(&format!("has no table named like `{}`", file.display()))
            .hint(format!("it has: {}", names.join(", "))));
    }
    let write = |found: &Found<'_>| {
        let plain_name = plain(&found.table);
        let name = if twice(&plain_name) {
            plain(&format!("{}_{}", found.schema, found.table))
        } else {
            plain_name.clone()
        };
        let file = files.iter().find(|file| table_name(file) == plain_name);
        found.write(&name, file.map(PathBuf::as_path), project).map(|text| (name, text))
    };
    found.iter().map(write).collect()
}

/// A table of the metadata.
struct Found<'a> {
    collection: String,
    schema: String,
    table: String,
    columns: Vec<(String, &'a Yaml<'a>)>,
}

impl Found<'_> {
    fn write(&self, name: &str, file: Option<&Path>, project: &Path) -> Result<String, Failure> {
        let stored = file.map(stored_columns).transpose()?;
        let mut text = format!("\n# {}\n[tables.{}]\n", self.origin(), key(name));
        match file {
            Some(file) => text.push_str(&format!("files = {}\n", quoted(&relative(file, project)))),
            None => text.push_str(&format!(
                "files = {}    # where the rows are: the metadata does not say\n",
                quoted(&format!("{name}.csv"))
            )),
        }
        self.unit(&mut text)?;
        for (option, value) in self.columns.iter().filter(|(_, value)| !is_mapping(value)) {
            if let Some(why) = not_carried(option, value) {
                text.push_str(&format!("{MARK}{why}\n"));
            }
        }
        text.push_str(&format!("\n[tables.{}.columns]\n", key(name)));
        for (column, facts) in self.columns.iter().filter(|(_, value)| is_mapping(value)) {
            text.push_str(&self.column(column, &entries(facts), stored.as_deref())?);
        }
        Ok(text)
    }

    fn origin(&self) -> String {
        let parts = [&self.collection, &self.schema, &self.table].map(|part| plain_line(part));
        format!(
            "{} in SmartNoise",
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
        )
    }

    fn option(&self, name: &str) -> Option<&Yaml<'_>> {
        self.columns
            .iter()
            .find(|(option, value)| option == name && !is_mapping(value))
            .map(|(_, value)| *value)
    }

    /// Whose privacy counts, and how far one person reaches.
    fn unit(&self, text: &mut String) -> Result<(), Failure> {
        let is_id = |facts: &Yaml<'_>| {
            entries(facts)
                .iter()
                .any(|(name, value)| (name == "private_id" || name == "is_key") && is_true(value))
        };
        let ids: Vec<&str> =
            self.columns.iter().filter(|(_, facts)| is_id(facts)).map(|(name, _)| name.as_str()).collect();
        let per_row = self.option("row_privacy").is_some_and(is_true);
        match (ids.as_slice(), per_row) {
            ([id], per_row) => {
                let limit = self.limit()?;
                text.push_str(&format!("unit = {}\n", quoted(unquoted(id))));
                if per_row {
                    text.push_str(&format!("{MARK}row_privacy, because a column names the person; write unit = \"row\" if every row is somebody of its own\n"));
                }
                text.push_str(&format!(
                    "max_groups_per_unit = {limit}          # max_ids: in how many groups of an answer a person may count,\n\
                     max_rows_per_group = {limit}           # and for how many rows in each; smaller limits need less noise\n"
                ));
            }
            ([], true) => text.push_str("unit = \"row\"                    # row_privacy: every row is somebody of its own\n"),
            ([], false) => text.push_str(&format!(
                "{MARK}whose privacy counts, which the metadata does not say; SmartNoise refuses such a table, and so does demur until this is written\n\
                 # unit = \"row\"\n"
            )),
            (ids, _) => text.push_str(&format!(
                "{MARK}a person named by {} together; write the one column that names the person\n# unit = {}\n",
                plain_line(&ids.join(" and ")),
                quoted(unquoted(ids[0]))
            )),
        }
        Ok(())
    }

    /// How many rows of a person count.
    fn limit(&self) -> Result<i64, Failure> {
        match self.option("max_ids").or(self.option("max_contributions")) {
            None => Ok(1),
            Some(value) => match value.as_integer() {
                Some(limit) if (1..=1 << 20).contains(&limit) => Ok(limit),
                _ => Err(self.wrong(&format!(
                    "max_ids must be a whole number from 1 to 2^20, but it is {}",
                    word(value)
                ))),
            },
        }
    }

    fn wrong(&self, text: &str) -> Failure {
        Failure::new("cli.smartnoise", format!("table `{}` of the metadata: {text}", self.table))
    }

    fn column(
        &self,
        name: &str,
        facts: &[(String, &Yaml<'_>)],
        stored: Option<&[(String, Option<ColumnType>)]>,
    ) -> Result<String, Failure> {
        let name = unquoted(name);
        let wrong = |text: String| self.wrong(&format!("column `{name}`: {text}"));
        let fact = |names: &[&str]| {
            facts.iter().find(|(fact, _)| names.contains(&fact.as_str())).map(|(_, value)| *value)
        };
        let declared = fact(&["type"]).map(word).unwrap_or_default();
        let in_file = match stored {
            None => None,
            Some(stored) => match stored.iter().find(|(found, _)| found == name) {
                Some((_, found)) => *found,
                None => {
                    return Ok(format!("{MARK}column {}, which the file does not have\n", plain_line(name)));
                }
            },
        };
        let kind = match declared.as_str() {
            "int" => ColumnType::Int(64),
            "float" => ColumnType::Float(64),
            "string" => ColumnType::String,
            "boolean" => ColumnType::Boolean,
            "datetime" => ColumnType::Timestamp,
            "unknown" | "" => {
                return Ok(format!("{MARK}column {}, whose type is unknown\n", plain_line(name)));
            }
            other => return Err(wrong(format!("`{}` is no type of SmartNoise", plain_line(other)))),
        };
        // A CSV file says of every column that it is text.
        let kind = in_file.filter(|found| *found != ColumnType::String).unwrap_or(kind);
        let bound = |names: &[&str]| {
            fact(names)
                .map(|value| number(value).ok_or_else(|| wrong(format!("`{}` is no bound", word(value)))))
                .transpose()
        };
        let (low, high) = (bound(&["lower", "min"])?, bound(&["upper", "max"])?);
        if let (Some((low, _)), Some((high, _))) = (&low, &high)
            && low > high
        {
            return Err(wrong("its lower is above its upper".to_owned()));
        }
        let mut notes = Vec::new();
        let bounds = match (low, high) {
            (Some((_, low)), Some((_, high))) if kind.is_numeric() => format!(", low = {low}, high = {high}"),
            (None, None) => String::new(),
            _ => {
                notes.push(format!(
                    "the bounds of {}, which need both ends and a number between them",
                    plain_line(name)
                ));
                String::new()
            }
        };
        notes.extend(facts.iter().filter_map(|(fact, value)| not_carried_of_column(name, fact, value)));
        let mut text = format!("{} = {{ type = \"{kind}\"{bounds} }}", key(name));
        if declared == "datetime" && kind == ColumnType::Timestamp {
            text.push_str("    # or date, if it holds days");
        }
        text.push('\n');
        text.extend(notes.into_iter().map(|note| format!("{MARK}{note}\n")));
        Ok(text)
    }
}

/// What is said of an option of a table; nothing of those that are carried over or need nothing.
fn not_carried(option: &str, value: &Yaml<'_>) -> Option<String> {
    let shown = format!("{} = {}", plain_line(option), word(value));
    let why = match (option, is_true(value)) {
        ("row_privacy" | "max_ids" | "max_contributions", _) => return None,
        ("sample_max_ids" | "clamp_columns" | "censor_dims", true) => return None,
        ("clamp_counts" | "use_dpsu", false) => return None,
        ("rows" | "rows_exact", _) => "how many rows there are stays secret",
        ("sample_max_ids", _) => "limits of a person are always enforced",
        ("clamp_columns", _) => "values are always clamped to their bounds",
        ("censor_dims", _) => "keys are secret unless the column lists its public values",
        ("clamp_counts", _) => "write greatest(COUNT(*), 0) in the query",
        ("use_dpsu", _) => "secret keys are chosen by a threshold",
        _ => "it has no counterpart",
    };
    Some(format!("{shown}; {why}"))
}

/// The same for a fact of a column.
fn not_carried_of_column(column: &str, fact: &str, value: &Yaml<'_>) -> Option<String> {
    let shown = format!("{} of {} = {}", plain_line(fact), plain_line(column), word(value));
    let why = match fact {
        "type" | "name" | "private_id" | "is_key" | "lower" | "upper" | "min" | "max" => return None,
        "nullable" if is_true(value) => return None,
        "nullable" => "any value may be missing, whatever is said of it".to_owned(),
        "missing_value" if word(value) == "null" => return None,
        "missing_value" => format!("write coalesce({}, …) in the query", plain_line(column)),
        "cardinality" | "card" => "list the values if they are public: values = […]".to_owned(),
        "sensitivity" => "it follows from the bounds".to_owned(),
        _ => "it has no counterpart".to_owned(),
    };
    Some(format!("{shown}; {why}"))
}

/// The entries of a mapping by name.
fn entries<'a>(yaml: &'a Yaml<'a>) -> Vec<(String, &'a Yaml<'a>)> {
    let entry = |(name, value): (&'a Yaml<'a>, &'a Yaml<'a>)| (name_of(name), value);
    yaml.as_mapping().map(|mapping| mapping.iter().map(entry).collect()).unwrap_or_default()
}

fn is_mapping(yaml: &Yaml<'_>) -> bool {
    yaml.as_mapping().is_some()
}

/// True as YAML 1.1 has it, which SmartNoise reads.
fn is_true(yaml: &Yaml<'_>) -> bool {
    matches!(word(yaml).to_lowercase().as_str(), "true" | "yes" | "on" | "1")
}

/// A name as it is written.
fn name_of(yaml: &Yaml<'_>) -> String {
    match yaml {
        Yaml::Value(Scalar::String(name)) => name.to_string(),
        other => word(other),
    }
}

/// A scalar as text, on one line.
fn word(yaml: &Yaml<'_>) -> String {
    match yaml {
        Yaml::Value(Scalar::Null) => "null".to_owned(),
        Yaml::Value(Scalar::Boolean(value)) => value.to_string(),
        Yaml::Value(Scalar::Integer(value)) => value.to_string(),
        Yaml::Value(Scalar::FloatingPoint(value)) => value.to_string(),
        Yaml::Value(Scalar::String(value)) => plain_line(value),
        Yaml::Sequence(_) => "a list".to_owned(),
        Yaml::Mapping(_) => "a mapping".to_owned(),
        _ => "something unreadable".to_owned(),
    }
}

/// A bound and how TOML writes it; SmartNoise reads texts such as 1e6 as numbers too.
fn number(yaml: &Yaml<'_>) -> Option<(f64, String)> {
    match yaml {
        Yaml::Value(Scalar::Integer(whole)) => Some((*whole as f64, whole.to_string())),
        _ => {
            let value: f64 = word(yaml).parse().ok().filter(|value: &f64| value.is_finite())?;
            let whole = value.fract() == 0.0 && value.abs() < 1e15;
            Some((value, if whole { format!("{value:.0}") } else { format!("{value:?}") }))
        }
    }
}

/// A name without the quotes of some database around it.
fn unquoted(name: &str) -> &str {
    let pairs = [('"', '"'), ('`', '`'), ('[', ']')];
    let inside = |(open, close): &(char, char)| name.strip_prefix(*open)?.strip_suffix(*close);
    pairs.iter().find_map(inside).unwrap_or(name)
}

/// The name of a table as demur has it.
fn plain(name: &str) -> String {
    table_name(Path::new(&format!("{}.csv", unquoted(name))))
}

/// Text of somebody else in a comment: it stays on its line.
fn plain_line(text: &str) -> String {
    crate::table::one_line(text, 80)
}

#[cfg(test)]
mod tests {
    use demur_plan::Catalog;

    use super::*;

    fn imported(yaml: &str) -> Result<String, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("meta.yaml");
        std::fs::write(&path, yaml).unwrap();
        Ok(tables(&path, &[], folder.path())?.into_iter().map(|(_, text)| text).collect())
    }

    fn catalog(yaml: &str) -> Catalog {
        let text = imported(yaml).unwrap();
        let text = format!("[budget]\nname = \"b\"\nepsilon = 1\ndelta = 1e-6\n{text}");
        Catalog::read(&text).unwrap_or_else(|error| unreachable!("{error}\n{text}"))
    }

    const PEOPLE: &str = "
\"\":
  PUMS:
    PUMS:
      max_ids: 3
      rows: 1000
      censor_dims: False
      clamp_counts: True
      sample_max_ids: no
      age: { type: int, lower: 0, upper: 100 }
      income: { type: float, lower: 0.5, upper: 5e5, nullable: False, sensitivity: 500 }
      married: { type: boolean }
      educ: { type: string, cardinality: 13 }
      seen: { type: datetime, missing_value: null }
      noise: { type: unknown }
      pid: { type: int, private_id: True }
";

    #[test]
    fn what_has_a_counterpart_is_carried_over() {
        let catalog = catalog(PEOPLE);
        let table = catalog.table("pums").unwrap();
        assert_eq!(table.unit, demur_plan::catalog::PrivacyUnit::Column("pid".to_owned()));
        assert_eq!((table.max_groups_per_unit, table.max_rows_per_group), (3, 3));
        let column = |name: &str| &table.columns[name];
        assert_eq!(column("age").high.as_ref().map(ToString::to_string).as_deref(), Some("100"));
        assert_eq!(column("income").low.as_ref().map(|low| low.to_f64()), Some(0.5));
        assert_eq!(column("income").high.as_ref().map(|high| high.to_f64()), Some(500_000.0));
        assert_eq!(
            [column("seen").column_type, column("married").column_type],
            [ColumnType::Timestamp, ColumnType::Boolean]
        );
        assert_eq!(table.columns.len(), 6);
    }

    #[test]
    fn what_has_none_is_said() {
        let text = imported(PEOPLE).unwrap();
        let notes: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(MARK)).collect();
        assert_eq!(
            notes,
            [
                "rows = 1000; how many rows there are stays secret",
                "censor_dims = false; keys are secret unless the column lists its public values",
                "clamp_counts = true; write greatest(COUNT(*), 0) in the query",
                "sample_max_ids = no; limits of a person are always enforced",
                "nullable of income = false; any value may be missing, whatever is said of it",
                "sensitivity of income = 500; it follows from the bounds",
                "cardinality of educ = 13; list the values if they are public: values = […]",
                "column noise, whose type is unknown",
            ]
        );
    }

    #[test]
    fn rows_may_be_the_unit_and_names_may_be_in_quotes() {
        let catalog = catalog(
            "engine: postgres\nFinance:\n  Sales:\n    '\"Backlog-Orders\"':\n      row_privacy: True\n      '`Sale-Amount`': {type: int, lower: 0, upper: 100000}\n",
        );
        let table = catalog.table("backlog_orders").unwrap();
        assert_eq!(table.unit, demur_plan::catalog::PrivacyUnit::Row);
        assert!(table.columns.contains_key("Sale-Amount"));
    }

    #[test]
    fn tables_of_one_name_are_told_apart_and_a_missing_unit_is_said() {
        let text = imported("db:\n  a: {t: {x: {type: int}}}\n  b: {t: {x: {type: int}, p: {type: int, private_id: true}, q: {type: int, private_id: true}}}\n").unwrap();
        assert!(text.contains("[tables.a_t]") && text.contains("[tables.b_t]"), "{text}");
        assert!(
            text.contains("# unit = \"row\"") && text.contains("a person named by p and q together"),
            "{text}"
        );
    }

    #[test]
    fn metadata_that_is_none_is_refused() {
        for yaml in [
            "",
            "a: [",
            "just text",
            "a: {b: {}}",
            "a: {b: {c: {x: {type: colour}}}}",
            "a: {b: {c: {x: {type: int, lower: 2, upper: 1}}}}",
            "a: {b: {c: {max_ids: 0, x: {type: int, private_id: true}}}}",
        ] {
            assert_eq!(imported(yaml).err().map(|failure| failure.code()), Some("cli.smartnoise"), "{yaml}");
        }
    }

    #[test]
    fn names_cannot_leave_their_comment() {
        let text =
            imported("a: {b: {\"t\\nunit = 'x'\": {row_privacy: true, \"tau\\nx = 1\": 3, x: {type: int}}}}")
                .unwrap();
        assert!(
            !text.lines().any(|line| line.starts_with("x = 1") || line.starts_with("unit = 'x'")),
            "{text}"
        );
    }
}
