//! How often a query reads tables once the names of WITH stand for what they mean.
//!
//! Each mention of a name is planned by itself, so that a dozen names, each twice the one before, would be planned thousands of times.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Query, TableFactor, Visit, Visitor};

use crate::PlanError;

/// The most tables a query may read, each as often as it does.
const MOST: u64 = 64;

/// Refuses a query that reads more than so many tables.
pub(super) fn check(query: &Query) -> Result<(), PlanError> {
    let mut reads = Reads::default();
    let _ = query.visit(&mut reads);
    if reads.last <= MOST {
        return Ok(());
    }
    let text = format!("the query reads {} tables, and {MOST} are the most", reads.last);
    Err(PlanError::refused("plan.size", text).hint("a name of WITH is read as often as it is mentioned"))
}

#[derive(Default)]
struct Reads {
    /// Of the queries around this place, the innermost last: how many tables they read so far.
    open: Vec<u64>,
    /// Of the query that ended last.
    last: u64,
    /// By the queries they stand for, and then by how many tables these read: the names of WITH.
    names: HashMap<*const Query, String>,
    known: HashMap<String, u64>,
}

impl Visitor for Reads {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for name in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.insert(&raw const *name.query, name.alias.name.value.to_lowercase());
        }
        self.open.push(0);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.last = self.open.pop().unwrap_or(0);
        match self.names.get(&(&raw const *query)) {
            Some(name) => drop(self.known.insert(name.clone(), self.last)),
            None => self.add(self.last),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = table {
            self.add(self.known.get(&name.to_string().to_lowercase()).copied().unwrap_or(1));
        }
        ControlFlow::Continue(())
    }
}

impl Reads {
    fn add(&mut self, tables: u64) {
        if let Some(open) = self.open.last_mut() {
            *open = open.saturating_add(tables);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::read;

    /// Doubled ten times over.
    #[test]
    fn names_count_as_often_as_they_are_mentioned() {
        let doubled = |levels: usize| {
            let one = |level: usize| match level {
                0 => "c0 AS (SELECT a FROM t)".to_owned(),
                _ => format!("c{level} AS (SELECT a FROM c{0} UNION ALL SELECT a FROM C{0})", level - 1),
            };
            let all: Vec<_> = (0..=levels).map(one).collect();
            format!("WITH {} SELECT COUNT(*) FROM c{levels}", all.join(", "))
        };
        assert!(read(&doubled(6)).is_ok());
        let refusal = read(&doubled(10)).err().map(|error| (error.code(), error.to_string()));
        let text = "the query reads 1024 tables, and 64 are the most".to_owned();
        assert_eq!(refusal, Some(("plan.size", text)));
        let nested = format!("SELECT COUNT(*) FROM ({}) AS x, t AS y", doubled(6));
        assert_eq!(read(&nested).err().map(|error| error.code()), Some("plan.size"));
    }
}
