//! [`Lock`]: one writer at a time, and a word about who it is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::LedgerError;

/// Told once per wait who holds the ledger, when the wait becomes noticeable.
pub type OnWait = Arc<dyn Fn(&str) + Send + Sync>;

/// How long a wait may last before somebody is told.
pub(super) const NOTICEABLE: Duration = Duration::from_millis(500);

/// A lock file beside the ledger; the system releases it when its holder dies.
pub(super) struct Lock {
    path: PathBuf,
    file: File,
    patience: Duration,
    on_wait: OnWait,
}

impl Lock {
    pub(super) fn new(path: PathBuf, patience: Duration, on_wait: OnWait) -> Result<Self, LedgerError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| broken(&path, &error))?;
        Ok(Self { path, file, patience, on_wait })
    }

    /// Waits for the lock.
    pub(super) fn take(&mut self) -> Result<(), LedgerError> {
        let start = Instant::now();
        let (mut pause, mut told) = (Duration::from_micros(100), false);
        loop {
            match self.file.try_lock() {
                Ok(()) => return self.sign(),
                Err(TryLockError::Error(error)) => return Err(broken(&self.path, &error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let waited = start.elapsed();
            if waited > self.patience {
                let text = format!(
                    "the ledger is in use by {} and was not free for {} s; nothing was charged",
                    self.holder(),
                    self.patience.as_secs()
                );
                return Err(LedgerError::busy(text));
            }
            if waited > NOTICEABLE && !told {
                let holder = self.holder();
                (self.on_wait)(&holder);
                told = true;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    pub(super) fn give_back(&mut self) -> Result<(), LedgerError> {
        self.file.unlock().map_err(|error| broken(&self.path, &error))
    }

    /// Says who we are, for those who wait. That it is not on disk yet does no harm.
    fn sign(&mut self) -> Result<(), LedgerError> {
        let program = std::env::args().next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let line = format!("process {} ({program})\n", std::process::id());
        let signed = self.file.rewind().and_then(|()| self.file.write_all(line.as_bytes()));
        signed.map_err(|error| broken(&self.path, &error))
    }

    fn holder(&mut self) -> String {
        let mut text = String::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_string(&mut text));
        match (read, text.lines().next()) {
            (Ok(_), Some(line)) if !line.is_empty() => line.to_owned(),
            _ => "another process".to_owned(),
        }
    }
}

fn broken(path: &Path, error: &std::io::Error) -> LedgerError {
    LedgerError::broken("ledger.lock", format!("the lock file {} could not be used: {error}", path.display()))
}
