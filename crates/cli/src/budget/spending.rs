//! The picture of a budget: ε spent against the number of charges, under the line of what there is to spend.
//!
//! A long history is thinned as it is read: at most [`MOST`] points are kept, evenly spread.

use demur_accounting::{Filter, State};
use demur_ledger::entry::{Charge, Create, Event, Raise};
use demur_ledger::{Book, BudgetName, Ledger, LedgerError};

use super::name;
use super::view::about;
use crate::args::budget::Show;
use crate::failure::Failure;
use crate::place::Place;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};

/// Points of a curve.
const MOST: usize = 512;

/// Which budget is drawn: the one that is named, or the only one.
pub(crate) fn subject(args: &Show, book: &Book) -> Result<BudgetName, Failure> {
    let mut whole = book.budgets().filter(|budget| budget.name.requester.is_none());
    match (&args.name, whole.next(), whole.next()) {
        (Some(budget), ..) => Ok(name(budget, args.requester.as_deref())),
        (None, Some(only), None) => Ok(only.name.clone()),
        (None, first, _) => {
            let example = first.map_or("visits", |budget| &budget.name.budget);
            Err(Failure::new("cli.plot", "a picture is of one budget, and none was named")
                .hint(format!("name it, as in `demur budget show {example} --plot`")))
        }
    }
}

/// The spending of a budget from its first charge to its last.
pub(crate) fn chart(place: &Place, name: &BudgetName) -> Result<Chart<'static>, Failure> {
    let mut history = History::new(name);
    Ledger::entries(&place.location, 0, &mut |sealed| {
        let entry = sealed.read()?;
        history.add(entry.event, &entry.time.strftime("%Y-%m-%d").to_string());
        Ok::<_, LedgerError>(())
    })
    .map_err(|error| place.failure(error))?;
    history.chart()
}

struct History<'a> {
    name: &'a BudgetName,
    filter: Option<Filter>,
    charges: u64,
    /// What was spent after so many charges; every `stride`-th is kept, and the last.
    spent: Vec<(u64, Filter, State)>,
    last: Option<(u64, Filter, State)>,
    stride: u64,
    /// The budget from so many charges on.
    budgets: Vec<(u64, f64)>,
    days: Option<(String, String)>,
}

impl<'a> History<'a> {
    fn new(name: &'a BudgetName) -> Self {
        Self {
            name,
            filter: None,
            charges: 0,
            spent: Vec::new(),
            last: None,
            stride: 1,
            budgets: Vec::new(),
            days: None,
        }
    }

    fn add(&mut self, event: Event, day: &str) {
        match event {
            Event::Create(Create { name, filter, .. }) if name == *self.name => self.budget(filter),
            Event::Raise(Raise { name, filter, after, .. }) if name == *self.name => {
                // With another δ what was spent has another ε.
                self.spent.push((self.charges, filter.clone(), after));
                self.budget(filter);
            }
            Event::Charge(Charge { budget, requester, after, part_after, .. })
                if budget == self.name.budget =>
            {
                let after = match &self.name.requester {
                    None => Some(after),
                    Some(own) => part_after.filter(|_| requester == *own),
                };
                self.charge(after);
            }
            _ => return,
        }
        let first = self.days.take().map_or_else(|| day.to_owned(), |(first, _)| first);
        self.days = Some((first, day.to_owned()));
    }

    fn budget(&mut self, filter: Filter) {
        self.budgets.push((self.charges, filter.guarantee().0.to_f64()));
        self.filter = Some(filter);
    }

    fn charge(&mut self, after: Option<State>) {
        let (Some(after), Some(filter)) = (after, self.filter.clone()) else { return };
        self.charges += 1;
        let point = (self.charges, filter, after);
        if self.charges.is_multiple_of(self.stride) {
            self.spent.push(point.clone());
        }
        self.last = Some(point);
        if self.spent.len() > MOST {
            self.stride *= 2;
            let stride = self.stride;
            self.spent.retain(|(charges, ..)| charges.is_multiple_of(stride));
        }
    }

    fn chart(mut self) -> Result<Chart<'static>, Failure> {
        let end = self.charges as f64 + 1.0;
        self.spent
            .extend(self.last.take().filter(|last| self.spent.last().is_none_or(|kept| kept.0 < last.0)));
        let mut spent = vec![(0.0, 0.0)];
        for (charges, filter, state) in &self.spent {
            step(&mut spent, *charges as f64, filter.spent_epsilon(state)?.to_f64_up());
        }
        let mut budget = Vec::new();
        for (charges, epsilon) in &self.budgets {
            step(&mut budget, *charges as f64, *epsilon);
        }
        spent.extend(spent.last().map(|(_, epsilon)| (end, *epsilon)));
        budget.extend(budget.last().map(|(_, epsilon)| (end, *epsilon)));
        let delta = self.filter.as_ref().map(|filter| filter.guarantee().1.to_f64());
        let at =
            delta.filter(|delta| *delta > 0.0).map_or(String::new(), |delta| format!(" at δ = {delta:e}"));
        Ok(Chart {
            title: format!("Spending of {}", about(self.name)),
            subject: self.days.map_or(String::new(), |(first, last)| match first == last {
                true => format!("on {first}{at}"),
                false => format!("from {first} to {last}{at}"),
            }),
            x: Axis::linear("charges"),
            y: Axis::linear("ε"),
            curves: vec![
                Curve { name: "budget", color: INKS[1], stroke: Stroke::Dashed, points: budget },
                Curve { name: "spent", color: INKS[0], stroke: Stroke::Solid, points: spent },
            ],
        })
    }
}

/// Goes on at the old height, then straight up or down to the new one.
fn step(points: &mut Vec<(f64, f64)>, x: f64, y: f64) {
    points.extend(points.last().map(|(_, before)| (x, *before)));
    points.push((x, y));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_histories_are_thinned_and_keep_their_end() {
        let name = BudgetName::whole("a");
        let mut history = History::new(&name);
        let filter = Filter::pure("1000000".parse().unwrap()).unwrap();
        history.budgets.push((0, 1e6));
        history.filter = Some(filter.clone());
        let mut state = filter.start();
        for _ in 0..5001 {
            state = filter.admit(&state, &"pure(1)".parse().unwrap()).unwrap();
            history.charge(Some(state.clone()));
        }
        assert!(history.spent.len() <= MOST);
        let chart = history.chart().unwrap();
        let spent = &chart.curves[1].points;
        assert!(spent.len() < 2 * MOST + 4);
        assert_eq!(spent[spent.len() - 1], (5002.0, 5001.0));
        assert!(spent.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
    }
}
