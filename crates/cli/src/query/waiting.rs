//! [`Waiting`]: what people see while rows are read, and what Ctrl-C says.
//!
//! How many rows there are is secret, so nothing is counted here: only time passes.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Nothing is shown before this.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is said when the charge is made and the answer is not.
pub(crate) const CHARGED: &str =
    "the question was charged and the charge stands; nothing was released. Ask again: it costs again";
/// What is said when nobody knows whether the charge is made.
const PERHAPS: &str =
    "nothing was released; `demur budget show` says whether the question was charged already";

/// A line on a terminal that says that something happens.
pub(super) struct Waiting {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Starts the line; `charged` is set once rows are read.
    pub(super) fn start(charged: Arc<AtomicBool>) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&done);
        let thread =
            std::io::stderr().is_terminal().then(|| std::thread::spawn(move || show(&charged, &watched)));
        Self { done, thread }
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
    on_interrupt(move || said(&charged, afterwards))
}

/// Ends everything at Ctrl-C, with a sentence about what was charged.
pub(crate) fn on_interrupt(words: impl Fn() -> &'static str + Send + 'static) -> Result<(), Failure> {
    hear(move || interrupted(words()))
}

/// What was charged, in words.
fn said(charged: &AtomicBool, afterwards: &'static str) -> &'static str {
    if charged.load(Ordering::Relaxed) { afterwards } else { PERHAPS }
}

/// What is done when somebody has waited long enough.
fn interrupted(words: &str) {
    let _ = writeln!(std::io::stderr(), "\nerror[cli.interrupted]: {words}");
    std::process::exit(2);
}

fn hear(handler: impl FnMut() + Send + 'static) -> Result<(), Failure> {
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

/// What Ctrl-C does at a prompt: it stops the question that is being answered, and leaves the prompt alone.
pub(super) struct Interrupts {
    running: Arc<Mutex<Option<Running>>>,
}

/// A question that is being answered.
struct Running {
    charged: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
}

impl Interrupts {
    /// Listens from now on.
    pub(super) fn listen() -> Result<Self, Failure> {
        let running: Arc<Mutex<Option<Running>>> = Arc::default();
        let watched = Arc::clone(&running);
        hear(move || {
            let Ok(running) = watched.lock() else { return };
            let Some(running) = running.as_ref() else { return };
            // Who asks twice does not want to wait for the rows that are being read.
            if running.stopped.swap(true, Ordering::Relaxed) {
                interrupted(said(&running.charged, CHARGED));
            }
        })?;
        Ok(Self { running })
    }

    /// Says which question Ctrl-C means, if any.
    pub(super) fn mean(&self, question: Option<(Arc<AtomicBool>, Arc<AtomicBool>)>) {
        if let Ok(mut running) = self.running.lock() {
            *running = question.map(|(charged, stopped)| Running { charged, stopped });
        }
    }
}
