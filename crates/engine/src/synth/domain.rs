//! [`Domain`]: which codes the columns of a table have, as far as the owner's words tell, and what must be asked for the rest.
//!
//! **Known.** Truth values; listed values; numbers, days and moments with bounds, which are cut into ranges of equal width, or one for each whole number where these are few.
//!
//! **Asked.** Texts without a list: those that enough units have are found by a charged question. On request, ranges that hold about equally many rows, by charged
//! quantiles. Both are ordinary SQL under the ordinary rules ([`Quote`](crate::Quote)).

use demur_exact::Rational;
use demur_plan::catalog::{Column, ColumnType, Table};

use super::coding::{CodedColumn, Coding};
use crate::EngineError;

/// The most parts a question for quantiles may have.
const QUANTILES: u32 = 100;

/// A table's columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Domain {
    pub(crate) columns: Vec<Part>,
}

/// One column: known, or with a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Its coding follows from the catalog.
    Known(CodedColumn),
    /// Its values are the rows of this question's answer.
    Values {
        /// Its name.
        name: String,
        /// What is asked.
        sql: String,
    },
    /// Its cuts are the list that this question answers; where it is no help, these stand.
    Cuts {
        /// The column with cuts of equal width.
        column: CodedColumn,
        /// What is asked.
        sql: String,
    },
}

/// What is wanted of the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Into how many ranges numbers are cut.
    pub bins: u32,
    /// Whether ranges hold about equally many rows, which must be asked for.
    pub quantiles: bool,
    /// The columns, or all but the one that names the unit.
    pub columns: Option<Vec<String>>,
}

impl Default for Shape {
    fn default() -> Self {
        Self { bins: 32, quantiles: false, columns: None }
    }
}

impl Part {
    /// The column's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Known(column) | Self::Cuts { column, .. } => &column.name,
            Self::Values { name, .. } => name,
        }
    }

    /// The column as far as it is known before its question is answered.
    pub(crate) fn guess(&self) -> CodedColumn {
        match self {
            Self::Known(column) | Self::Cuts { column, .. } => column.clone(),
            Self::Values { name, .. } => {
                let coding = Coding::Values { values: Vec::new(), others: true };
                CodedColumn { name: name.clone(), kind: "string".to_owned(), coding }
            }
        }
    }

    /// The question, if there is one.
    pub(crate) fn sql(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Values { sql, .. } | Self::Cuts { sql, .. } => Some(sql),
        }
    }
}

impl Domain {
    /// What the catalog says about a table; `order` names its columns in the order in which they are shown.
    pub(crate) fn of(table: &Table, order: &[String], shape: &Shape) -> Result<Self, EngineError> {
        if shape.bins < 2 || shape.bins > 4096 {
            let text = format!("numbers are cut into 2 to 4096 ranges, not {}", shape.bins);
            return Err(EngineError::new("engine.synth.bins", text));
        }
        let names = chosen(table, order, shape)?;
        let mut columns = Vec::new();
        let mut open = Vec::new();
        for name in names {
            match part(table, &name, &table.columns[&name], shape) {
                Some(part) => columns.push(part),
                None => open.push(format!("`{name}`")),
            }
        }
        if open.is_empty() {
            return Ok(Self { columns });
        }
        let text = format!("the catalog does not say between which bounds {} lie", open.join(", "));
        Err(EngineError::new("engine.synth.bounds", text).hint(
            "write low and high for them in demur.toml, let `demur init --private-bounds 0.5` find them, or leave them out with --columns",
        ))
    }
}

/// The columns that are wanted, in the table's order.
fn chosen(table: &Table, order: &[String], shape: &Shape) -> Result<Vec<String>, EngineError> {
    let unit = table.unit_column()?;
    let Some(wanted) = &shape.columns else {
        let listed = order.iter().filter(|name| table.columns.contains_key(*name));
        let others = table.columns.keys().filter(|name| !order.contains(name));
        return Ok(listed.chain(others).filter(|name| Some(name.as_str()) != unit).cloned().collect());
    };
    for (place, name) in wanted.iter().enumerate() {
        let wrong = if !table.columns.contains_key(name) {
            format!("the table `{}` has no column `{name}`", table.name)
        } else if Some(name.as_str()) == unit {
            format!("`{name}` names whose data a row is, and is not imitated")
        } else if wanted[..place].contains(name) {
            format!("the column `{name}` is named twice")
        } else {
            continue;
        };
        let all: Vec<_> = table.columns.keys().map(String::as_str).collect();
        return Err(
            EngineError::new("engine.synth.columns", wrong).hint(format!("there are: {}", all.join(", ")))
        );
    }
    if wanted.is_empty() {
        return Err(EngineError::new("engine.synth.columns", "no column is left to imitate"));
    }
    Ok(wanted.clone())
}

/// How a column is coded; `None` if the catalog does not say enough.
fn part(table: &Table, name: &str, column: &Column, shape: &Shape) -> Option<Part> {
    let coded = |coding| CodedColumn { name: name.to_owned(), kind: column.column_type.to_string(), coding };
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    if let Some(values) = &column.values {
        let values = values.iter().map(ToString::to_string).collect();
        return Some(Part::Known(coded(Coding::Values { values, others: true })));
    }
    match column.column_type {
        ColumnType::Boolean => {
            let values = ["false", "true"].map(str::to_owned).to_vec();
            Some(Part::Known(coded(Coding::Values { values, others: false })))
        }
        ColumnType::String => {
            let (column, table) = (quoted(name), quoted(&table.name));
            let sql = format!("SELECT {column} FROM {table} GROUP BY {column}");
            Some(Part::Values { name: name.to_owned(), sql })
        }
        kind => {
            let (low, high) = (column.low.as_ref()?, column.high.as_ref()?);
            let column = coded(equal_width(kind, low, high, shape.bins)?);
            let few = column.codes() <= shape.bins as usize;
            if !shape.quantiles || few || !kind.is_numeric() {
                return Some(Part::Known(column));
            }
            let sql = format!(
                "SELECT APPROX_QUANTILES({}, {}) FROM {}",
                quoted(name),
                shape.bins.min(QUANTILES),
                quoted(&table.name)
            );
            Some(Part::Cuts { column, sql })
        }
    }
}

/// Ranges of equal width between two bounds.
fn equal_width(kind: ColumnType, low: &Rational, high: &Rational, bins: u32) -> Option<Coding> {
    if let ColumnType::Float(_) = kind {
        let (low, high) = (low.to_f64(), high.to_f64());
        let cut = |index: u32| low + (high - low) * (f64::from(index) / f64::from(bins));
        let cuts = if low < high { (0..bins).map(cut).chain([high]).collect() } else { vec![low, high] };
        return Some(Coding::Real { cuts });
    }
    let scale = match kind {
        ColumnType::Decimal(_, scale) => Rational::from(10u64.checked_pow(u32::try_from(scale).ok()?)?),
        _ => Rational::one(),
    };
    let low: i128 = (low * &scale).ceil().to_string().parse().ok()?;
    let high: i128 = (high * &scale).floor().to_string().parse().ok()?;
    let high = high.max(low);
    let width = high.checked_sub(low)?.checked_add(1)?;
    let bins = width.min(i128::from(bins));
    let cut = |index: i128| Some(low + width.checked_mul(index)? / bins);
    Some(Coding::Whole { cuts: (0..=bins).map(cut).collect::<Option<_>>()? })
}

impl CodedColumn {
    /// The same column with cuts at released quantiles, between its own first and last cut.
    pub(crate) fn cut_at(&self, quantiles: &[f64]) -> Self {
        let coding = match &self.coding {
            Coding::Real { cuts } => Coding::Real { cuts: between(cuts, quantiles.iter().copied()) },
            Coding::Whole { cuts } => {
                let scale = match self.column_type() {
                    Ok(ColumnType::Decimal(_, scale)) => 10f64.powi(scale.into()),
                    _ => 1.0,
                };
                let whole = quantiles.iter().map(|cut| (cut * scale).round() as i128);
                Coding::Whole { cuts: between(cuts, whole) }
            }
            other => other.clone(),
        };
        Self { coding, ..self.clone() }
    }
}

/// The first and last cut, and those of the others that lie between, rising.
fn between<T: PartialOrd + Copy>(cuts: &[T], others: impl Iterator<Item = T>) -> Vec<T> {
    let (Some(&first), Some(&last)) = (cuts.first(), cuts.last()) else { return cuts.to_vec() };
    let mut rising = vec![first];
    for cut in others {
        if rising.last().is_some_and(|before| *before < cut) && cut < last {
            rising.push(cut);
        }
    }
    rising.push(last);
    rising
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_plan::Catalog;

    const CATALOG: &str = "[budget]\nname = \"b\"\n[tables.t]\nfiles = \"t.csv\"\nunit = \"who\"\n[tables.t.columns]\n\
        who = { type = \"int64\" }\nsex = { type = \"string\", values = [\"f\", \"m\"] }\ncity = { type = \"string\" }\n\
        age = { type = \"int64\", low = 0, high = 99 }\nkids = { type = \"uint8\", low = 0, high = 3 }\n\
        pay = { type = \"float64\", low = 0, high = 1 }\nfee = { type = \"decimal(8, 2)\", low = \"0.5\", high = 1 }\n\
        born = { type = \"date\", low = \"1970-01-01\", high = \"1970-01-04\" }\nill = { type = \"boolean\" }\n";

    fn domain(shape: &Shape) -> Result<Vec<Part>, EngineError> {
        let catalog = Catalog::read(CATALOG).unwrap();
        let order = ["sex", "who", "city"].map(str::to_owned);
        Ok(Domain::of(&catalog.tables["t"], &order, shape)?.columns)
    }

    fn coding(parts: &[Part], wanted: &str) -> Coding {
        parts
            .iter()
            .find_map(|part| match part {
                Part::Known(column) | Part::Cuts { column, .. } if column.name == wanted => {
                    Some(column.coding.clone())
                }
                _ => None,
            })
            .unwrap()
    }

    #[test]
    fn what_is_declared_needs_no_question() {
        let parts = domain(&Shape { bins: 4, ..Shape::default() }).unwrap();
        let names: Vec<_> = parts.iter().map(Part::name).collect();
        assert_eq!(names, ["sex", "city", "age", "born", "fee", "ill", "kids", "pay"]);
        let asked: Vec<_> = parts.iter().filter_map(Part::sql).collect();
        assert_eq!(asked, ["SELECT \"city\" FROM \"t\" GROUP BY \"city\""]);
        assert_eq!(coding(&parts, "age"), Coding::Whole { cuts: vec![0, 25, 50, 75, 100] });
        assert_eq!(coding(&parts, "kids"), Coding::Whole { cuts: vec![0, 1, 2, 3, 4] });
        assert_eq!(coding(&parts, "fee"), Coding::Whole { cuts: vec![50, 62, 75, 88, 101] });
        assert_eq!(coding(&parts, "born"), Coding::Whole { cuts: vec![0, 1, 2, 3, 4] });
        assert_eq!(coding(&parts, "pay"), Coding::Real { cuts: vec![0.0, 0.25, 0.5, 0.75, 1.0] });
        let sexes = Coding::Values { values: vec!["f".into(), "m".into()], others: true };
        assert_eq!(coding(&parts, "sex"), sexes);
    }

    #[test]
    fn quantiles_are_asked_for_where_ranges_are_many() {
        let parts = domain(&Shape { bins: 5, quantiles: true, columns: None }).unwrap();
        let asked: Vec<_> = parts.iter().filter(|part| part.sql().is_some()).map(Part::name).collect();
        assert_eq!(asked, ["city", "age", "fee", "pay"]);
        let Some(Part::Cuts { column, sql }) = parts.iter().find(|part| part.name() == "age") else {
            unreachable!()
        };
        assert_eq!(sql, "SELECT APPROX_QUANTILES(\"age\", 5) FROM \"t\"");
        let cut = column.cut_at(&[0.0, 20.4, 20.4, 33.6, f64::NAN, 99.9, 140.0]);
        assert_eq!(cut.coding, Coding::Whole { cuts: vec![0, 20, 34, 100] });
    }

    #[test]
    fn columns_that_are_not_there_or_have_no_bounds_are_named() {
        let wrong = |columns: &[&str]| {
            let columns = Some(columns.iter().map(|name| (*name).to_owned()).collect());
            domain(&Shape { columns, ..Shape::default() }).unwrap_err().to_string()
        };
        assert!(wrong(&["agee"]).contains("no column `agee`"));
        assert!(wrong(&["who"]).contains("names whose data"));
        assert!(wrong(&["age", "age"]).contains("twice"));
        let catalog = Catalog::read(&CATALOG.replace(", low = 0, high = 99", "")).unwrap();
        let error = Domain::of(&catalog.tables["t"], &[], &Shape::default()).unwrap_err();
        assert!(error.to_string().contains("`age`"), "{error}");
    }
}
