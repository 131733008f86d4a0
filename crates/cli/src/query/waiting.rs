//! [`Waiting`]: what people see while rows are read, and what Ctrl-C says.
//!
//! How many rows there are is secret, so nothing is counted here: only time passes.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Nothing is shown before this.
const PATIENCE: Duration = Duration::from_secs(1);

/// What Ctrl-C says after the charge.
pub(crate) const COSTS_AGAIN: &str =
    "the question was charged and the charge stands; nothing was released. Ask again: it costs again";

/// A line on a terminal that says that something happens.
pub(super) struct Waiting {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Starts the line, and listens for Ctrl-C; `charged` is set once rows are read.
    pub(super) fn start(charged: Arc<AtomicBool>) -> Result<Self, Failure> {
        listen(Arc::clone(&charged), COSTS_AGAIN)?;
        let done = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&done);
        let thread =
            std::io::stderr().is_terminal().then(|| std::thread::spawn(move || show(&charged, &watched)));
        Ok(Self { done, thread })
    }

    /// Takes the line away.
    pub(super) fn end(mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Listens for Ctrl-C; `charged` is set once rows are read, and `afterwards` is said then.
pub(crate) fn listen(charged: Arc<AtomicBool>, afterwards: &'static str) -> Result<(), Failure> {
    on_interrupt(move || match charged.load(Ordering::Relaxed) {
        true => afterwards,
        false => "nothing was released; `demur budget show` says whether the question was charged already",
    })
}

/// Ends everything at Ctrl-C, with a sentence about what was charged.
pub(crate) fn on_interrupt(words: impl Fn() -> &'static str + Send + 'static) -> Result<(), Failure> {
    let handler = move || {
        let _ = writeln!(std::io::stderr(), "\nerror[cli.interrupted]: {}", words());
        std::process::exit(2);
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::new("cli.signal", format!("Ctrl-C cannot be heard: {error}")))
}

fn show(charged: &AtomicBool, done: &AtomicBool) {
    let start = Instant::now();
    let mut shown = false;
    for sign in ['|', '/', '-', '\\'].into_iter().cycle() {
        if done.load(Ordering::Relaxed) {
            break;
        }
        if start.elapsed() >= PATIENCE {
            let what = if charged.load(Ordering::Relaxed) {
                "charged; reading rows"
            } else {
                "waiting for the ledger"
            };
            let _ = write!(std::io::stderr(), "\r{sign} {what}, {} s ", start.elapsed().as_secs());
            shown = true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if shown {
        let _ = write!(std::io::stderr(), "\r{:50}\r", "");
    }
}
