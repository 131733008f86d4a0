//! Whose the rows of all tables are: ways through other tables lead somewhere, and tables about the same people agree on how they are hidden.

use std::collections::BTreeMap;

use super::{Column, ColumnType, FILE, PrivacyUnit, Table};
use crate::PlanError;

/// Gives every table the people of the table that names them, and checks that all who share people can.
pub(super) fn settle(tables: &mut BTreeMap<String, Table>) -> Result<(), PlanError> {
    let mut found: BTreeMap<String, (String, ColumnType)> = BTreeMap::new();
    for table in tables.values().filter(|table| !table.public) {
        let named = names(table, tables)?;
        if let PrivacyUnit::Column(column) = &named.unit
            && let Some(column) = named.columns.get(column)
        {
            found.insert(table.name.clone(), (named.people.clone(), column.column_type));
        }
    }
    for (name, (people, _)) in &found {
        if let Some(table) = tables.get_mut(name) {
            table.people.clone_from(people);
        }
    }
    let private = || tables.values().filter(|table| !table.public);
    if let Some(two) = private().find(|table| table.second_unit.is_some())
        && let Some(one) = private().find(|table| table.second_unit.is_none())
    {
        let text = format!(
            "{FILE}: `{}` hides two kinds of units and `{}` one; both are paid by one budget, which can promise no more than all of them keep",
            two.name, one.name
        );
        return Err(PlanError::mistake("catalog.second_unit", text)
            .hint("give every private table a second_unit, or keep them in a project of their own"));
    }
    let mut first: BTreeMap<&str, (&Table, ColumnType)> = BTreeMap::new();
    for (name, (people, column_type)) in &found {
        let Some(table) = tables.get(name) else { continue };
        let (other, other_type) = *first.entry(people).or_insert((table, *column_type));
        if other_type != *column_type || other.adjacency != table.adjacency {
            let text = format!(
                "{FILE}: `{}` and `{name}` are about the same people, `{people}`, so their units must have one type and one adjacency",
                other.name
            );
            return Err(PlanError::mistake("catalog.people", text));
        }
    }
    Ok(())
}

/// The table in which a column names whose the rows are.
fn names<'a>(table: &'a Table, tables: &'a BTreeMap<String, Table>) -> Result<&'a Table, PlanError> {
    let (mut here, mut steps) = (table, 0);
    while let PrivacyUnit::Through(through) = &here.unit {
        let wrong = |text: String| {
            PlanError::mistake("catalog.table", format!("{FILE}, table `{}`: {text}", here.name))
        };
        let Some(next) = tables.get(&through.table).filter(|next| !next.public) else {
            return Err(wrong(format!("its unit leads to `{}`, which is no private table", through.table)));
        };
        let types = here.columns.get(&through.column).zip(next.columns.get(&through.key));
        let same = |(column, key): (&Column, &Column)| column.column_type == key.column_type;
        if !types.is_some_and(same) {
            return Err(wrong(format!(
                "its unit leads from `{}` to `{}` of `{}`, and these are not columns of one type",
                through.column, through.key, next.name
            )));
        }
        if next.unit == PrivacyUnit::Row {
            return Err(wrong(format!(
                "its unit leads to `{}`, where no column names the person",
                next.name
            )));
        }
        steps += 1;
        if steps > tables.len() {
            return Err(wrong("its unit leads round in a circle".to_owned()));
        }
        here = next;
    }
    Ok(here)
}
