//! Reading a ledger entry by entry, however long it is.

use crate::LedgerError;
use crate::chain::{Links, rollback};
use crate::ledger::{Ledger, present};
use crate::location::Location;
use crate::store::VisitEntry;

impl Ledger {
    /// Shows every entry from number `from` on, in order, without holding more than one.
    ///
    /// Each is checked to follow the one before it when it is shown. At the end the chain must have contained what the
    /// anchor remembers: an older copy is shown to its end, and is an error then.
    ///
    /// ```
    /// use demur_accounting::Filter;
    /// use demur_ledger::{BudgetName, Ledger, Location, Options};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("ledger.db");
    /// let place = Location::Sqlite(path);
    /// let ledger = Ledger::create(&place, Options::default())?;
    /// ledger.create_budget(BudgetName::whole("visits"), "visits", "row", Filter::pure("1".parse()?)?, "")?;
    ///
    /// let mut times = Vec::new();
    /// Ledger::entries(&place, 1, &mut |sealed| Ok(times.push(sealed.read()?.time)))?;
    /// assert_eq!(times.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn entries(location: &Location, from: u64, visit: &mut VisitEntry<'_>) -> Result<(), LedgerError> {
        let memory = present(location)?;
        let (mut links, mut held) = (Links::default(), false);
        location.open_to_read()?.read(0, &mut |sealed| {
            links.add(&sealed)?;
            held |= sealed.position == memory.position;
            if sealed.position.sequence >= from { visit(sealed) } else { Ok(()) }
        })?;
        if held { Ok(()) } else { Err(rollback(memory.position.sequence, links.count())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BudgetName, Options};
    use demur_accounting::Filter;

    fn ledger(folder: &std::path::Path) -> Location {
        let place = Location::Sqlite(folder.join("ledger.db"));
        let ledger = Ledger::create(&place, Options::default()).unwrap();
        for name in ["a", "b", "c"] {
            let filter = Filter::pure("1".parse().unwrap()).unwrap();
            ledger.create_budget(BudgetName::whole(name), name, "row", filter, "").unwrap();
        }
        place
    }

    fn numbers(place: &Location, from: u64) -> (Vec<u64>, Result<(), LedgerError>) {
        let mut numbers = Vec::new();
        let read = Ledger::entries(place, from, &mut |sealed| {
            numbers.push(sealed.position.sequence);
            Ok(())
        });
        (numbers, read)
    }

    #[test]
    fn entries_are_shown_in_order_from_where_one_likes() {
        let folder = tempfile::tempdir().unwrap();
        let place = ledger(folder.path());
        assert_eq!(numbers(&place, 0), (vec![0, 1, 2, 3], Ok(())));
        assert_eq!(numbers(&place, 3), (vec![3], Ok(())));
        assert_eq!(numbers(&place, 9), (vec![], Ok(())));
    }

    /// An older copy is shown, and then called by its name.
    #[test]
    fn an_older_copy_is_an_error_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let place = ledger(folder.path());
        let path = folder.path().join("ledger.db");
        let database = rusqlite::Connection::open(&path).unwrap();
        database.execute("DELETE FROM entry WHERE sequence = 3", []).unwrap();
        drop(database);
        let (seen, read) = numbers(&place, 0);
        assert_eq!((seen, read.unwrap_err().code()), (vec![0, 1, 2], "ledger.rollback"));
        let database = rusqlite::Connection::open(&path).unwrap();
        database.execute("UPDATE entry SET body = x'7b7d' WHERE sequence = 1", []).unwrap();
        drop(database);
        let (seen, read) = numbers(&place, 0);
        assert_eq!((seen, read.unwrap_err().code()), (vec![0], "ledger.chain"));
    }

    /// A reason that is refused must leave the anchor as it was: it is what remembers the lost entries.
    #[test]
    fn a_ledger_is_not_adopted_without_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let place = ledger(folder.path());
        let database = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
        database.execute("DELETE FROM entry WHERE sequence = 3", []).unwrap();
        drop(database);
        let refused = Ledger::adopt(&place, " ", Options::default()).err().unwrap();
        assert_eq!(refused.code(), "ledger.reason");
        assert_eq!(Ledger::look(&place).unwrap_err().code(), "ledger.rollback");
        drop(Ledger::adopt(&place, "the disk failed", Options::default()).unwrap());
        let book = Ledger::look(&place).unwrap();
        assert_eq!(book.head().sequence, 3);
        assert!(book.budgets().all(|budget| budget.closed));
    }
}
