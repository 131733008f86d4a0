//! [`Book`]: where every budget stands, folded from the entries; no file, no clock.
//!
//! **Definition.** A book is the state after a chain of entries. [`apply`](Book::apply) adds one that stands in the chain; the other
//! methods draft the next one or refuse, and change nothing.
//!
//! **Guarantee.** For every budget, what was charged since it was created is within its filter's capacity, so all answers together have the
//! filter's guarantee (`docs/accounting-filters.md`), and those of one requester have that of the requester's part.
//!
//! **Why.** A charge enters only by [`charge`](Book::charge), which asks both filters; `apply` checks again that what is
//! spent never falls and never exceeds the capacity. A raise keeps what was spent. Nothing else touches it.

use demur_accounting::Filter;
use jiff::Timestamp;

use crate::charge_text::ChargeText;
use crate::entry::{
    Adopt, Budget, BudgetName, Charge, Checkpoint, Close, Create, Entry, Event, FORMAT, Key, Open, Position,
    Raise, Release, Sealed,
};
use crate::quotes::Quotes;
use crate::request::{Asked, Request, check_name, check_text};
use crate::{Hash, LedgerError};

/// The state after a chain of entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Book {
    ledger: Hash,
    head: Position,
    time: Timestamp,
    /// In the order of their names.
    budgets: Vec<Budget>,
    keys: Vec<Hash>,
    since_checkpoint: u64,
}

impl Book {
    /// The event that opens a ledger.
    pub(crate) fn opening(ledger: Hash) -> Event {
        Event::Open(Open { format: FORMAT, ledger })
    }

    /// The book that begins with this entry: the first of all, or a checkpoint.
    pub(crate) fn start(sealed: &Sealed) -> Result<Self, LedgerError> {
        let entry = sealed.read()?;
        let (head, time) = (sealed.position, entry.time);
        let empty = Self {
            ledger: Hash::START,
            head,
            time,
            budgets: Vec::new(),
            keys: Vec::new(),
            since_checkpoint: 0,
        };
        match entry.event {
            Event::Open(Open { format: FORMAT, ledger }) if head.sequence == 0 => {
                Ok(Self { ledger, ..empty })
            }
            Event::Open(Open { format, .. }) if head.sequence == 0 => {
                let text = format!("this ledger has format {format}, and this version reads format {FORMAT}");
                Err(LedgerError::broken("ledger.format", text))
            }
            Event::Checkpoint(Checkpoint { budgets, keys, ledger })
                if budgets.is_sorted_by(|one, next| one.name < next.name) =>
            {
                Ok(Self { ledger, budgets, keys, ..empty })
            }
            _ => Err(wrong(head.sequence, "does not begin a ledger")),
        }
    }

    /// The name of the ledger.
    pub fn ledger(&self) -> Hash {
        self.ledger
    }

    /// The last entry.
    pub fn head(&self) -> Position {
        self.head
    }

    /// When the last entry was written.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// All budgets, by name.
    pub fn budgets(&self) -> impl Iterator<Item = &Budget> {
        self.budgets.iter()
    }

    /// One budget.
    pub fn budget(&self, name: &BudgetName) -> Option<&Budget> {
        self.named(&name.budget, name.requester.as_deref())
    }

    /// The budget of everybody together, or the part of one requester.
    pub(crate) fn named(&self, budget: &str, requester: Option<&str>) -> Option<&Budget> {
        self.place(budget, requester).ok().and_then(|place| self.budgets.get(place))
    }

    fn named_mut(&mut self, budget: &str, requester: Option<&str>) -> Option<&mut Budget> {
        self.place(budget, requester).ok().and_then(|place| self.budgets.get_mut(place))
    }

    /// Where a budget stands, or where it would.
    fn place(&self, budget: &str, requester: Option<&str>) -> Result<usize, usize> {
        let key = (budget, requester);
        self.budgets
            .binary_search_by(|known| (known.name.budget.as_str(), known.name.requester.as_deref()).cmp(&key))
    }

    /// One budget that must be there.
    pub fn find(&self, name: &BudgetName) -> Result<&Budget, LedgerError> {
        self.budget(name).ok_or_else(|| self.unknown(&name.budget, name.requester.as_deref()))
    }

    /// The keys that sign certificates, the one in use last.
    pub fn keys(&self) -> &[Hash] {
        &self.keys
    }

    /// Whether it is time for a checkpoint, after so many entries. It names every budget and every key, so where there are more of them it takes longer.
    pub(crate) fn is_due(&self, every: u64) -> bool {
        let named = self.budgets.len() + self.keys.len();
        self.since_checkpoint >= every.max(named as u64)
    }

    /// Seals an event behind the head and applies it; time does not go back.
    pub(crate) fn write(
        &mut self,
        event: Event,
        now: Timestamp,
        software: &str,
    ) -> Result<Sealed, LedgerError> {
        let entry = Entry { event, software: software.to_owned(), time: now.max(self.time) };
        let sealed = entry.seal(Some(self.head))?;
        self.enter(&entry, sealed.position)?;
        Ok(sealed)
    }

    /// The same for a charge, whose text was begun by whoever asked.
    pub(crate) fn write_charge(
        &mut self,
        charge: &Charge,
        text: ChargeText,
        now: Timestamp,
        software: &str,
    ) -> Result<Sealed, LedgerError> {
        let time = now.max(self.time);
        let sealed = Sealed::after(Some(self.head), text.finish(charge, software, time)?);
        debug_assert!(sealed.read().is_ok_and(|entry| entry.event == Event::Charge(charge.clone())));
        self.pay(charge, sealed.position)?;
        self.advance(sealed.position, time);
        Ok(sealed)
    }

    /// Adds an entry of the chain.
    pub fn apply(&mut self, sealed: &Sealed) -> Result<(), LedgerError> {
        if !sealed.follows(Some(self.head)) {
            return Err(wrong(sealed.position.sequence, "does not follow the one before it"));
        }
        self.enter(&sealed.read()?, sealed.position)
    }

    fn enter(&mut self, entry: &Entry, position: Position) -> Result<(), LedgerError> {
        let wrong = |what: &str| wrong(position.sequence, what);
        match &entry.event {
            Event::Open(_) => return Err(wrong("opens the ledger again")),
            Event::Create(Create { name, dataset, unit, filter, .. }) => {
                let Err(place) = self.place(&name.budget, name.requester.as_deref()) else {
                    return Err(wrong("creates a budget that exists"));
                };
                let (name, dataset, unit) = (name.clone(), dataset.clone(), unit.clone());
                let (filter, spent) = (filter.clone(), filter.start());
                let (charges, releases, closed) = (0, 0, false);
                self.budgets
                    .insert(place, Budget { name, dataset, unit, filter, spent, charges, releases, closed });
            }
            Event::Raise(Raise { name, filter, after, .. }) => {
                let budget = self.open_mut(name).ok_or_else(|| wrong("raises a budget that is not open"))?;
                if filter.take_over(&budget.filter, &budget.spent).as_ref() != Ok(after) {
                    return Err(wrong("raises a budget and changes what was spent"));
                }
                (budget.filter, budget.spent) = (filter.clone(), after.clone());
            }
            Event::Close(Close { name, .. }) => {
                let budget = self.open_mut(name).ok_or_else(|| wrong("closes a budget that is not open"))?;
                budget.closed = true;
            }
            Event::Charge(charge) => self.pay(charge, position)?,
            Event::Release(Release { budget, requester, .. }) => {
                let whole = self.named_mut(budget, None);
                let whole = whole.filter(|budget| budget.releases < budget.charges);
                whole.ok_or_else(|| wrong("releases what was not paid for"))?.releases += 1;
                if let Some(part) = self.named_mut(budget, Some(requester)) {
                    // Paid for before the part was created, perhaps.
                    part.releases = part.charges.min(part.releases + 1);
                }
            }
            Event::Key(Key { public, .. }) => self.keys.push(*public),
            Event::Adopt(Adopt { lost, .. }) => {
                if lost.is_some() {
                    self.budgets.iter_mut().for_each(|budget| budget.closed = true);
                }
            }
            Event::Checkpoint(checkpoint) => {
                if *checkpoint != self.checkpoint() {
                    return Err(wrong("is a checkpoint that does not agree with the entries before it"));
                }
            }
        }
        self.advance(position, entry.time);
        if matches!(entry.event, Event::Checkpoint(_)) {
            self.since_checkpoint = 0;
        }
        Ok(())
    }

    /// What a charge changes, in the budget and in the requester's part of it.
    fn pay(&mut self, charge: &Charge, position: Position) -> Result<(), LedgerError> {
        let Charge { budget, requester, after, part_after, .. } = charge;
        for (whose, after) in [(None, Some(after)), (Some(requester.as_str()), part_after.as_ref())] {
            match (self.named_mut(budget, whose), after) {
                (None, None) => {}
                (Some(budget), Some(after))
                    if !budget.closed && budget.filter.follows(&budget.spent, after) =>
                {
                    budget.spent.clone_from(after);
                    budget.charges += 1;
                }
                _ => return Err(wrong(position.sequence, "charges what the budget does not allow")),
            }
        }
        Ok(())
    }

    fn advance(&mut self, head: Position, time: Timestamp) {
        (self.head, self.time) = (head, time);
        self.since_checkpoint += 1;
    }

    /// A new budget.
    pub(crate) fn create(
        &self,
        name: BudgetName,
        dataset: &str,
        unit: &str,
        filter: Filter,
        reason: &str,
    ) -> Result<Event, LedgerError> {
        name.check()?;
        check_name("dataset", dataset)?;
        check_name("unit", unit)?;
        check_text("reason", reason)?;
        if let Some(budget) = self.budget(&name) {
            let text = match budget.closed {
                true => format!("the budget {name} was closed, and a name is used once; choose another one"),
                false => {
                    format!("the budget {name} exists; a budget is created once, and may then be raised")
                }
            };
            return Err(LedgerError::misuse("ledger.budget.exists", text));
        }
        if name.requester.is_some() {
            self.open_budget(&name.budget, None)?;
        }
        let (dataset, unit, reason) = (dataset.to_owned(), unit.to_owned(), reason.to_owned());
        Ok(Event::Create(Create { name, dataset, unit, filter, reason }))
    }

    /// A larger budget of the same kind.
    pub(crate) fn raise(&self, name: BudgetName, filter: Filter, reason: &str) -> Result<Event, LedgerError> {
        let budget = self.open_budget(&name.budget, name.requester.as_deref())?;
        check_reason(reason)?;
        let after = filter.take_over(&budget.filter, &budget.spent).map_err(|refusal| {
            LedgerError::refusal(
                "ledger.budget.lowered",
                format!("the budget {name} stays as it is: {refusal}"),
            )
        })?;
        Ok(Event::Raise(Raise { name, filter, after, reason: reason.to_owned() }))
    }

    /// The end of a budget.
    pub(crate) fn close(&self, name: BudgetName, reason: &str) -> Result<Event, LedgerError> {
        self.open_budget(&name.budget, name.requester.as_deref())?;
        check_reason(reason)?;
        Ok(Event::Close(Close { name, reason: reason.to_owned() }))
    }

    /// A charge, if the budget and the requester's part of it both admit the loss.
    pub(crate) fn charge(
        &self,
        asked: Asked,
        quotes: &mut Quotes,
    ) -> Result<(Charge, ChargeText), LedgerError> {
        let Asked { request, hash, text } = asked;
        let Request { budget, requester, id, question, data_version, loss } = request;
        let mut pay = |whose| {
            let budget = self.open_budget(&budget, whose)?;
            quotes.admit(&budget.filter, &budget.spent, &loss).map_err(|refusal| {
                let text = format!("the budget {} does not allow it: {refusal}", budget.name);
                LedgerError::refusal(refusal.code(), text)
            })
        };
        let after = pay(None)?;
        let part = Some(requester.as_str()).filter(|_| self.named(&budget, Some(&requester)).is_some());
        let part_after = part.map(|part| pay(Some(part))).transpose()?;
        let charge =
            Charge { budget, requester, id, question, data_version, loss, request: hash, after, part_after };
        Ok((charge, text))
    }

    /// Where all budgets stand.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { budgets: self.budgets.clone(), keys: self.keys.clone(), ledger: self.ledger }
    }

    fn open_mut(&mut self, name: &BudgetName) -> Option<&mut Budget> {
        self.named_mut(&name.budget, name.requester.as_deref()).filter(|budget| !budget.closed)
    }

    fn open_budget(&self, budget: &str, requester: Option<&str>) -> Result<&Budget, LedgerError> {
        let budget = self.named(budget, requester).ok_or_else(|| self.unknown(budget, requester))?;
        if budget.closed {
            let text = format!("the budget {} is closed; nothing can be charged to it any more", budget.name);
            return Err(LedgerError::refusal("ledger.budget.closed", text));
        }
        Ok(budget)
    }

    fn unknown(&self, budget: &str, requester: Option<&str>) -> LedgerError {
        let name = BudgetName { budget: budget.to_owned(), requester: requester.map(str::to_owned) };
        let known: Vec<String> = self.budgets.iter().map(|budget| budget.name.to_string()).collect();
        let known = if known.is_empty() { "there is none yet".to_owned() } else { known.join(", ") };
        let text = format!("there is no budget {name} in this ledger (known: {known})");
        LedgerError::misuse("ledger.budget.unknown", text)
    }
}

pub(crate) fn check_reason(reason: &str) -> Result<(), LedgerError> {
    if reason.trim().is_empty() {
        let text = "a budget is changed for a reason that stands in the ledger, but none was given";
        return Err(LedgerError::misuse("ledger.reason", text));
    }
    check_text("reason", reason)
}

fn wrong(sequence: u64, what: &str) -> LedgerError {
    LedgerError::broken("ledger.chain", format!("entry {sequence} {what}; the ledger cannot be trusted"))
}
