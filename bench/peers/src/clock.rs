//! CPU time of several contestants, measured turn by turn.

use rustix::time::{ClockId, clock_gettime};

/// Every contestant of a row gets as many turns as the others …
const TURNS: u32 = 5;
/// … and repeats its work until a turn has lasted this long, in nanoseconds.
const TURN: f64 = 0.1e9;

/// Something to time: `run` does the work for `items` items.
pub struct Contestant<'a> {
    items: usize,
    run: Box<dyn FnMut() + 'a>,
    best: f64,
}

impl<'a> Contestant<'a> {
    pub fn new(items: usize, run: impl FnMut() + 'a) -> Self {
        Self { items, run: Box::new(run), best: f64::INFINITY }
    }

    fn take_turn(&mut self) {
        let start = thread_nanoseconds();
        let (mut rounds, mut spent) = (0, 0.0);
        while spent < TURN {
            (self.run)();
            rounds += 1;
            spent = thread_nanoseconds() - start;
        }
        self.best = self.best.min(spent / (rounds * self.items) as f64);
    }
}

/// Nanoseconds of this thread's CPU time per item: the mean of each contestant's best turn.
///
/// Contestants take turns, so that a slow minute of the machine falls on all of them. A
/// turn is a mean over at least [`TURN`], also for those who could do the work in a
/// thousandth of that: the best of many short rounds would flatter the fast ones,
/// who would find a quiet moment where a slow one cannot.
pub fn race<const N: usize>(mut contestants: [Contestant<'_>; N]) -> [f64; N] {
    for _ in 0..TURNS {
        contestants.iter_mut().for_each(Contestant::take_turn);
    }
    contestants.map(|c| c.best)
}

fn thread_nanoseconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
