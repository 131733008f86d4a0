//! CPU time of several contestants, measured turn by turn.

use rustix::time::{ClockId, clock_gettime};

/// A contestant runs at least this often …
const MIN_ROUNDS: u32 = 3;
/// … and again while it has used less CPU time than this, in nanoseconds.
const ENOUGH: f64 = 0.4e9;

/// Something to time: `run` does the work for `items` items.
pub struct Contestant<'a> {
    items: usize,
    run: Box<dyn FnMut() + 'a>,
    rounds: u32,
    spent: f64,
    best: f64,
}

impl<'a> Contestant<'a> {
    pub fn new(items: usize, run: impl FnMut() + 'a) -> Self {
        Self { items, run: Box::new(run), rounds: 0, spent: 0.0, best: f64::INFINITY }
    }

    fn is_done(&self) -> bool {
        self.rounds >= MIN_ROUNDS && self.spent >= ENOUGH
    }

    fn take_turn(&mut self) {
        let start = thread_nanoseconds();
        (self.run)();
        let time = thread_nanoseconds() - start;
        self.rounds += 1;
        self.spent += time;
        self.best = self.best.min(time);
    }
}

/// Nanoseconds of this thread's CPU time per item: each contestant's best round.
///
/// Contestants take turns, so that a slow or fast minute of the machine falls on
/// all of them. The best round is the one least disturbed by others.
pub fn race<const N: usize>(mut contestants: [Contestant<'_>; N]) -> [f64; N] {
    while contestants.iter().any(|c| !c.is_done()) {
        contestants.iter_mut().filter(|c| !c.is_done()).for_each(Contestant::take_turn);
    }
    contestants.map(|c| c.best / c.items as f64)
}

fn thread_nanoseconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
