//! Any sequence of commands gives the same book again, and never more than a budget.

use std::collections::BTreeMap;

use demur_accounting::{Account, Filter};
use demur_core::PrivacyLoss;
use demur_ledger::{Book, BudgetName, Charged, Ledger, Receipt, Request};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::place::Place;

#[derive(Clone, Debug)]
enum Command {
    Create(BudgetName, &'static str, &'static str),
    Raise(BudgetName, &'static str, &'static str),
    Close(BudgetName),
    Charge {
        requester: &'static str,
        budget: &'static str,
        loss: &'static str,
        id: Option<u8>,
        version: Option<u8>,
    },
    /// Answers the oldest charge that waits for an answer.
    Record,
    Reopen,
}

fn filter(kind: &str, epsilon: &str) -> Filter {
    let (epsilon, delta) = (epsilon.parse().unwrap(), "1e-5".parse().unwrap());
    match kind {
        "pure" => Filter::pure(epsilon).unwrap(),
        "zcdp" => Filter::zcdp(epsilon, delta).unwrap(),
        _ => Filter::gaussian(epsilon, delta).unwrap(),
    }
}

const BUDGETS: [&str; 2] = ["visits", "sales"];
const REQUESTERS: [&str; 2] = ["alice", "bob"];
const EPSILONS: [&str; 4] = ["0.5", "1", "1.5", "2.5"];
const LOSSES: [&str; 6] = [
    "pure(0.2)",
    "laplace(epsilon=0.1)",
    "gaussian(sigma=6)",
    "discrete_gaussian(sigma=20)",
    "randomized_response(epsilon=0.3, categories=2)",
    "gaussian(sigma=15)*3",
];

fn command() -> impl Strategy<Value = Command> {
    let budget = || prop::sample::select(&BUDGETS[..]);
    let requester = || prop::sample::select(&REQUESTERS[..]);
    let name = || {
        (budget(), prop::option::weighted(0.4, requester())).prop_map(|(budget, requester)| match requester {
            None => BudgetName::whole(budget),
            Some(requester) => BudgetName::part(budget, requester),
        })
    };
    let kind = || prop::sample::select(&["pure", "zcdp", "gaussian"][..]);
    let epsilon = || prop::sample::select(&EPSILONS[..]);
    let charge = (
        requester(),
        budget(),
        prop::sample::select(&LOSSES[..]),
        prop::option::weighted(0.3, 0..4u8),
        prop::option::weighted(0.3, 0..2u8),
    );
    prop_oneof![
        2 => (name(), kind(), epsilon()).prop_map(|(name, kind, epsilon)| Command::Create(name, kind, epsilon)),
        2 => (name(), kind(), epsilon()).prop_map(|(name, kind, epsilon)| Command::Raise(name, kind, epsilon)),
        1 => name().prop_map(Command::Close),
        16 => charge.prop_map(|(requester, budget, loss, id, version)| {
            Command::Charge { requester, budget, loss, id, version }
        }),
        6 => Just(Command::Record),
        1 => Just(Command::Reopen),
    ]
}

/// What has been admitted by each budget, kept outside of the ledger.
#[derive(Default)]
struct Witness {
    paid: BTreeMap<BudgetName, Vec<PrivacyLoss>>,
    waiting: Vec<Receipt>,
}

impl Witness {
    fn run(&mut self, ledger: &mut Option<Ledger>, place: &Place, command: Command) {
        if matches!(command, Command::Reopen) {
            let before = ledger.take().unwrap().book().unwrap();
            let opened = place.open();
            assert_eq!(opened.book().unwrap(), before);
            *ledger = Some(opened);
            return;
        }
        let ledger = ledger.as_ref().unwrap();
        match command {
            Command::Create(name, kind, epsilon) => {
                let _ = ledger.create_budget(name, "table", "user_id", filter(kind, epsilon), "");
            }
            Command::Raise(name, kind, epsilon) => {
                let _ = ledger.raise_budget(name, filter(kind, epsilon), "more");
            }
            Command::Close(name) => {
                let _ = ledger.close_budget(name, "enough");
            }
            Command::Record => {
                if !self.waiting.is_empty() {
                    ledger.record(self.waiting.remove(0), b"an answer").unwrap();
                }
            }
            Command::Charge { requester, budget, loss, id, version } => {
                let mut request = Request::new(budget, requester, "how many?", loss.parse().unwrap());
                request.id = id.map(|id| id.to_string());
                request.data_version = version.map(|version| version.to_string());
                self.charge(ledger, request);
            }
            Command::Reopen => {}
        }
    }

    fn charge(&mut self, ledger: &Ledger, request: Request) {
        let before = ledger.book().unwrap();
        match ledger.charge(request.clone()) {
            Ok(Charged::Now(receipt)) => {
                let part = BudgetName::part(&request.budget, &request.requester);
                let names = [Some(BudgetName::whole(&request.budget)), before.budget(&part).map(|_| part)];
                for name in names.into_iter().flatten() {
                    assert!(!before.budget(&name).unwrap().closed);
                    self.paid.entry(name).or_default().push(request.loss.clone());
                }
                self.waiting.push(receipt);
            }
            Ok(Charged::Before(_)) => assert_eq!(ledger.book().unwrap(), before),
            Err(error) => {
                assert!(!error.is_broken() && !error.is_busy(), "{error}");
                assert_eq!(ledger.book().unwrap(), before);
            }
        }
    }

    /// All that was admitted, composed exactly, is within each budget.
    fn check(&self, book: &Book) {
        for (name, paid) in &self.paid {
            let budget = book.budget(name).unwrap();
            assert_eq!(budget.charges, paid.len() as u64);
            let (epsilon, delta) = budget.filter.guarantee();
            let all = paid.iter().cloned().reduce(PrivacyLoss::compose).unwrap();
            let answer = Account::of(&all).unwrap().epsilon(&delta).unwrap();
            let promised = epsilon.to_f64();
            assert!(answer.bounds.lower <= promised, "{all} costs {:?}, more than {promised}", answer.bounds);
        }
    }
}

fn any_sequence_of_commands_replays_and_never_overspends(place: fn() -> Place, cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let commands = prop::collection::vec(command(), 1..80);
    let test = |commands: Vec<Command>| {
        let place = place();
        let mut witness = Witness::default();
        let mut ledger = Some(place.create());
        let create = Command::Create(BudgetName::whole("visits"), "zcdp", "1.5");
        for command in std::iter::once(create).chain(commands) {
            witness.run(&mut ledger, &place, command);
        }
        let book = ledger.unwrap().book().unwrap();
        assert_eq!(Ledger::look(&place.location).unwrap(), book);
        witness.check(&book);
        Ok(())
    };
    TestRunner::new(config).run(&commands, test).unwrap_or_else(|failure| panic!("{failure}"));
}

mod sqlite {
    #[test]
    fn any_sequence_of_commands_replays_and_never_overspends() {
        super::any_sequence_of_commands_replays_and_never_overspends(crate::place::Place::sqlite, 48);
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    #[test]
    fn any_sequence_of_commands_replays_and_never_overspends() {
        super::any_sequence_of_commands_replays_and_never_overspends(crate::place::Place::postgres, 16);
    }
}
