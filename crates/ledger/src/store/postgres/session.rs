//! [`Session`]: one connection that a synchronous caller can use, and what its faults mean.
//!
//! The connection lives on a thread of its own with its own runtime, so a caller may be anywhere, a task of another
//! runtime included. It ends when the session is dropped.

use std::fmt::Display;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

/// A connection to the server.
pub(super) struct Session {
    client: Client,
}

impl Session {
    pub(super) fn connect(config: &Config) -> Result<Self, Fault> {
        let (answer, connected) = sync_channel(1);
        let config = config.clone();
        let connect = async move {
            match config.connect(NoTls).await {
                Err(error) => drop(answer.send(Err(Fault::from(error)))),
                Ok((client, connection)) => {
                    if answer.send(Ok(Self { client })).is_ok() {
                        // Whoever waits for an answer is told of a fault; nobody else needs to be.
                        let _ = connection.await;
                    }
                }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Fault::local(&error))?;
        let thread = std::thread::Builder::new().name("demur-postgres".into());
        thread.spawn(move || runtime.block_on(connect)).map_err(|error| Fault::local(&error))?;
        connected.recv().unwrap_or_else(|error| Err(Fault::local(&error)))
    }

    /// Asks the server something and waits for what it says.
    pub(super) fn ask<'a, T, F>(&'a self, question: impl FnOnce(&'a Client) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        wait(question(&self.client)).map_err(Fault::from)
    }

    /// Runs statements that have no answer.
    pub(super) fn run(&self, sql: &str) -> Result<(), Fault> {
        self.ask(|client| client.batch_execute(sql))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

/// What went wrong between us and the server.
#[derive(Debug)]
pub(super) struct Fault {
    /// The server's words, or the system's.
    pub(super) text: String,
    code: Option<SqlState>,
    passing: bool,
}

impl Fault {
    /// This machine has no thread or no socket to spare.
    fn local(error: &dyn Display) -> Self {
        Self { text: error.to_string(), code: None, passing: true }
    }

    /// The server says what cannot be.
    pub(super) fn damage(text: &str) -> Self {
        Self { text: text.to_owned(), code: None, passing: false }
    }

    /// The server waited for a lock for as long as it was told to.
    pub(super) fn is_timeout(&self) -> bool {
        self.code == Some(SqlState::LOCK_NOT_AVAILABLE)
    }

    /// A table that should be there is not.
    pub(super) fn is_absence(&self) -> bool {
        self.code == Some(SqlState::UNDEFINED_TABLE)
    }

    /// The server cannot be spoken to now, but perhaps later.
    pub(super) fn is_passing(&self) -> bool {
        self.passing
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(said) = error.as_db_error() {
            // A lost connection is of class 08, no more room of class 53, a server that starts or stops of class 57.
            let passing = ["08", "53", "57"].iter().any(|class| said.code().code().starts_with(class));
            // Not the detail: it quotes what is stored.
            return Self { text: said.message().to_owned(), code: Some(said.code().clone()), passing };
        }
        let cause = std::error::Error::source(&error);
        let passing = error.is_closed() || cause.is_none_or(|cause| cause.is::<std::io::Error>());
        Self { text: with_cause(&error), code: None, passing }
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Waits for a future that another thread drives.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
