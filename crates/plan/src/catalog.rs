//! [`Catalog`]: what the owner says about the tables, in `demur.toml`.
//!
//! **What it holds.** Where tables are, what their columns are called and of which type, whose privacy counts, how far one
//! unit may reach, which values are public, which budget pays. All of it is the owner's word; none of it is read from rows.
//!
//! **What a query may do with it.** Narrow it: tighter bounds, fewer groups. Never widen it.

mod column;
mod people;
mod read;

use std::collections::BTreeMap;

use demur_core::{Adjacency, Delta, Epsilon};

pub use column::{Column, ColumnType};

use crate::PlanError;

/// The name of the file.
pub const FILE: &str = "demur.toml";

/// Tables and the rules they are asked under.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    /// Who pays.
    pub budget: Budget,
    /// The tables by name.
    pub tables: BTreeMap<String, Table>,
}

/// The budget all questions of the project are charged to.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Its name in the ledger.
    pub name: String,
    /// What it is opened with on first use; without, somebody must have opened it.
    pub opens_with: Option<(Epsilon, Delta, Option<String>)>,
    /// The δ of a question that names none.
    pub delta: Option<Delta>,
    /// The largest ε of one question.
    pub most_per_question: Option<Epsilon>,
}

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Files, directories or patterns, as written.
    pub files: Vec<String>,
    /// How the files are written.
    pub format: Format,
    /// Whether it is about nobody, so that it may be shown.
    pub public: bool,
    /// Whose privacy counts.
    pub unit: PrivacyUnit,
    /// Who else is hidden, in the same guarantee.
    pub second_unit: Option<SecondUnit>,
    /// Whose names the unit's values are; tables about the same people may be joined by them.
    pub people: String,
    /// Which datasets must look alike.
    pub adjacency: Adjacency,
    /// In how many groups one unit may appear.
    pub max_groups_per_unit: u32,
    /// For how many rows one unit may count in a group.
    pub max_rows_per_group: u64,
    /// The noise that is used, unless the better one may be chosen.
    pub noise: NoisePreference,
    /// A name for the state of the data, if the owner gives it one.
    pub version: Option<String>,
    /// Columns by name.
    pub columns: BTreeMap<String, Column>,
}

/// How files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values, the first line naming the columns.
    Csv,
}

/// Whose data is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivacyUnit {
    /// Each row is somebody of its own.
    Row,
    /// All rows with the same value of this column are one.
    Column(String),
    /// A row belongs to everybody whose row of another table it names.
    Through(Through),
}

/// Somebody else who is hidden, such as the hospital of a patient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondUnit {
    /// All rows with the same value of this column are one.
    pub column: String,
    /// For how many rows one of them may count in a group.
    pub max_rows_per_group: u64,
}

/// The way from a row to the row of another table that says whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Through {
    /// The column that names the other row.
    pub column: String,
    /// The other table.
    pub table: String,
    /// The column of the other table that it is named by.
    pub key: String,
}

/// Which noise to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoisePreference {
    /// Whichever errs least.
    #[default]
    Any,
    /// Laplace, for pure ε.
    Laplace,
    /// Gaussian.
    Gaussian,
}

impl Catalog {
    /// Reads the text of a `demur.toml`.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        read::catalog(text)
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Result<&Table, PlanError> {
        self.tables.get(name).ok_or_else(|| {
            let names: Vec<_> = self.tables.keys().map(String::as_str).collect();
            PlanError::mistake("plan.table", format!("there is no table `{name}` in {FILE}"))
                .hint(format!("there are: {}", names.join(", ")))
        })
    }
}

impl Table {
    /// The column that names the unit; `None` where each row is one.
    ///
    /// Whoever reads the table alone needs it to stand in the table itself.
    pub fn unit_column(&self) -> Result<Option<&str>, PlanError> {
        if let Some(second) = &self.second_unit {
            let text = format!(
                "`{}` hides each `{}` as well, and this hides one kind of units alone",
                self.name, second.column
            );
            return Err(
                PlanError::refused("plan.second_unit", text).hint("ask in SQL: COUNT, SUM and AVG hide both")
            );
        }
        match &self.unit {
            PrivacyUnit::Row => Ok(None),
            PrivacyUnit::Column(column) => Ok(Some(column)),
            PrivacyUnit::Through(through) => {
                let text = format!(
                    "whose the rows of `{}` are stands in `{}`, and this looks at one table alone",
                    self.name, through.table
                );
                Err(PlanError::refused("plan.unit", text)
                    .hint("put the column that names the person into the table, or ask in SQL"))
            }
        }
    }

    /// Whose privacy counts, all of them, in words.
    pub fn units(&self) -> String {
        match &self.second_unit {
            Some(second) => format!("{} and {}", self.unit_name(), second.column),
            None => self.unit_name().to_owned(),
        }
    }

    /// Whose privacy counts, in a word: a column, or `row`.
    pub fn unit_name(&self) -> &str {
        match &self.unit {
            PrivacyUnit::Row => "row",
            PrivacyUnit::Column(column) => column,
            PrivacyUnit::Through(through) => &through.column,
        }
    }
}

impl std::str::FromStr for NoisePreference {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        match text.to_ascii_lowercase().as_str() {
            "any" => Ok(Self::Any),
            "laplace" => Ok(Self::Laplace),
            "gaussian" => Ok(Self::Gaussian),
            _ => Err(PlanError::mistake("plan.noise", format!("`{text}` is no kind of noise"))
                .hint("there are: any, laplace, gaussian")),
        }
    }
}
