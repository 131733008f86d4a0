//! What the catalog says of tables and columns, for `\d`: nothing of it was read from a row.

use std::io::Write;

use demur_plan::Catalog;
use demur_plan::catalog::{Column, ColumnType, PrivacyUnit, Table};

use crate::amount::{Round, shown};
use crate::failure::Failure;
use crate::table::{Side, Table as Columns, one_line};

/// The most of a list of values that is shown.
const VALUES: usize = 60;

/// All tables, or the columns of one.
pub(super) fn describe(catalog: &Catalog, name: &str, out: &mut impl Write) -> Result<(), Failure> {
    match name.trim_matches('"') {
        "" => tables(catalog, out),
        name => columns(catalog.table(name)?, out),
    }
}

fn tables(catalog: &Catalog, out: &mut impl Write) -> Result<(), Failure> {
    let row = |table: &Table| {
        let whose = match (&table.unit, table.public) {
            (_, true) => "nobody's: it is public".to_owned(),
            (PrivacyUnit::Row, _) => "a row's".to_owned(),
            (PrivacyUnit::Column(column), _) => format!("of each {column}"),
            (PrivacyUnit::Through(through), _) => {
                format!("of whom {} of {} names", through.column, through.table)
            }
        };
        vec![table.name.clone(), table.columns.len().to_string(), whose]
    };
    let rows: Vec<_> = catalog.tables.values().map(row).collect();
    let head = [("table", Side::Left), ("columns", Side::Right), ("what is hidden", Side::Left)];
    Ok(Columns::new(&head).print(out, &rows)?)
}

fn columns(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    let row = |(name, column): (&String, &Column)| {
        let known = match &table.unit {
            PrivacyUnit::Column(unit) if unit == name => "names the person".to_owned(),
            PrivacyUnit::Through(through) if through.column == *name => {
                format!("names the row of {} that names the person", through.table)
            }
            _ if table.second_unit.as_ref().is_some_and(|second| second.column == *name) => {
                "names somebody else who is hidden".to_owned()
            }
            _ => known(column),
        };
        vec![name.clone(), column.column_type.to_string(), known]
    };
    let rows: Vec<_> = table.columns.iter().map(row).collect();
    let head = [("column", Side::Left), ("type", Side::Left), ("known", Side::Left)];
    Columns::new(&head).print_all(out, &rows)?;
    if let (PrivacyUnit::Column(_), false) = (&table.unit, table.public) {
        let (groups, rows) = (table.max_groups_per_unit, table.max_rows_per_group);
        writeln!(
            out,
            "a person counts in at most {groups} groups of an answer, and for at most {rows} rows in each"
        )?;
    }
    Ok(())
}

/// Bounds and public values.
fn known(column: &Column) -> String {
    let values = column.values.as_ref().map(|values| {
        let values: Vec<_> = values.iter().map(ToString::to_string).collect();
        one_line(&values.join(", "), VALUES)
    });
    let is_number = !matches!(column.column_type, ColumnType::Date | ColumnType::Timestamp);
    let bounds = column.low.as_ref().zip(column.high.as_ref()).map(|(low, high)| match is_number {
        true => format!("{} to {}", shown(low, Round::Down), shown(high, Round::Up)),
        false => "has low and high".to_owned(),
    });
    [bounds, values].into_iter().flatten().collect::<Vec<_>>().join("; ")
}
