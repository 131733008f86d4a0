//! [`Lock`]: one writer at a time, and a word about who it is.

use std::fs::{File, OpenOptions, TryLockError};
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
    /// Our line in it.
    name: String,
    patience: Duration,
    on_wait: OnWait,
}

impl Lock {
    pub(super) fn new(path: PathBuf, patience: Duration, on_wait: OnWait) -> Result<Self, LedgerError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| broken(&path, &error))?;
        let program = std::env::args().next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
        let name = format!("process {} ({program})\n", std::process::id());
        Ok(Self { path, file, name, patience, on_wait })
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

    /// Says who we are, for those who wait, unless that stands there. That it is not on disk yet does no harm.
    fn sign(&self) -> Result<(), LedgerError> {
        let signed = match self.line() {
            Ok(line) if line == self.name => Ok(()),
            _ => crate::file::write(&self.file, 0, self.name.as_bytes()),
        };
        signed.map_err(|error| broken(&self.path, &error))
    }

    fn holder(&self) -> String {
        match self.line() {
            Ok(line) if line.len() > 1 => line.trim_end().to_owned(),
            _ => "another process".to_owned(),
        }
    }

    /// The first line.
    fn line(&self) -> std::io::Result<String> {
        let mut bytes = [0; 512];
        let count = crate::file::read(&self.file, &mut bytes)?;
        let line = bytes[..count].split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(String::from_utf8_lossy(line).into_owned())
    }
}

fn broken(path: &Path, error: &std::io::Error) -> LedgerError {
    LedgerError::broken("ledger.lock", format!("the lock file {} could not be used: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever wrote there before, with a longer name or a shorter one.
    #[test]
    fn the_first_line_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let mut lock = Lock::new(path.clone(), Duration::ZERO, Arc::new(|_| {})).unwrap();
        let other = format!("process 1 ({})\n", "x".repeat(200));
        for before in [String::new(), "process 1 (p)\n".to_owned(), other, lock.name.clone()] {
            std::fs::write(&path, &before).unwrap();
            lock.take().unwrap();
            assert_eq!(lock.line().unwrap(), lock.name);
            assert_eq!(format!("{}\n", lock.holder()), lock.name);
            lock.give_back().unwrap();
        }
    }
}
