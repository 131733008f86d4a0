//! [`Anchor`]: a second memory of the last entry, so that an older copy of the ledger is noticed.
//!
//! **Definition.** A small file with two lines: the ledger's name, the last entry's number and hash, and a check sum. The line with the larger
//! number counts, and the other one is written next; a torn line fails its check sum, and the other one is still there.
//!
//! **Guarantee.** The anchor is written after the entry is durable, so an honest ledger always contains the entry it
//! remembers. A ledger without that entry is an older copy, or another one. It never forgets a later entry for an
//! earlier one, whoever writes it when. Two entries of one number are two ledgers under one name, and are refused.
//!
//! **What it does not see.** It is not synced at every entry: after a crash of the machine it may remember an earlier
//! one. A copy that is put back together with its anchor is seen only by the heads in certificates.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::entry::Position;
use crate::{Hash, LedgerError};

/// Bytes in a line, with its end.
const LINE: usize = 256;

/// How long to wait for another who writes the anchor: it takes no time, unless they were stopped in the middle.
const PATIENCE: Duration = Duration::from_secs(10);

/// The file.
#[derive(Debug)]
pub struct Anchor {
    path: PathBuf,
    file: File,
    /// What stood in the file when we last looked, and what it says.
    seen: (Vec<u8>, Option<(usize, Memory)>),
}

/// What an anchor remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The name of the ledger.
    pub ledger: Hash,
    /// An entry it contains.
    pub position: Position,
}

impl Anchor {
    /// Reads what the file remembers, without changing it; nothing if there is no file, or only the beginning of one.
    pub fn recall(path: &Path) -> Result<Option<Memory>, LedgerError> {
        let bytes = match File::open(path).and_then(|file| read(&file)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, "read", &error)),
        };
        if bytes.len() < LINE {
            return Ok(None);
        }
        newest(&bytes).map(|(_, memory)| Some(memory)).ok_or_else(|| {
            let text = format!("the anchor {} is damaged: none of its lines can be read", path.display());
            LedgerError::broken("ledger.anchor.damaged", text)
        })
    }

    /// A new file that remembers this; or the one that somebody else has just made for this ledger.
    pub fn create(path: &Path, memory: Memory) -> Result<Self, LedgerError> {
        Self::open(path, true)?.set(memory, false)
    }

    /// The same, but whatever was remembered before is forgotten.
    pub fn replace(path: &Path, memory: Memory) -> Result<Self, LedgerError> {
        Self::open(path, true)?.set(memory, true)
    }

    /// The file that is there. It remembers this, or what it remembered if that came later.
    pub fn hold(path: &Path, memory: Memory) -> Result<Self, LedgerError> {
        Self::open(path, false)?.set(memory, false)
    }

    fn open(path: &Path, new: bool) -> Result<Self, LedgerError> {
        let file = OpenOptions::new().read(true).write(true).create(new).truncate(false).open(path);
        let file = file.map_err(|error| failed(path, "opened", &error))?;
        Ok(Self { path: path.to_owned(), file, seen: Default::default() })
    }

    /// Remembers durably. What is there is written anew, since a sync that failed before may have left it in memory only.
    fn set(mut self, memory: Memory, always: bool) -> Result<Self, LedgerError> {
        self.alone(|anchor| {
            let known = newest(&read(&anchor.file)?);
            let line = known.map_or(0, |(line, _)| 1 - line.min(1));
            let ours = known.map(|(_, known)| known).filter(|known| known.ledger == memory.ledger && !always);
            let later = ours.filter(|known| known.position.sequence > memory.position.sequence);
            // One line after the other, so that one of them can be read at any time.
            anchor.write(line, later.unwrap_or(memory))?;
            anchor.file.sync_all()?;
            if ours.is_some() {
                return Ok(());
            }
            anchor.write(1 - line, memory)?;
            anchor.file.set_len(2 * LINE as u64)?;
            anchor.file.sync_all()?;
            crate::folder::sync_name(&anchor.path)
        })?;
        Ok(self)
    }

    /// Remembers an entry that is durable. Survives the end of the program; the machine's, a little later.
    pub fn remember(&mut self, memory: Memory) -> Result<(), LedgerError> {
        let known = self.alone(|anchor| {
            let known = anchor.look()?;
            match known {
                Some((_, known)) if known.ledger != memory.ledger => {}
                Some((_, known)) if known.position.sequence >= memory.position.sequence => {}
                known => {
                    let line = known.map_or(0, |(line, _)| 1 - line.min(1));
                    anchor.write(line, memory)?;
                    anchor.seen.1 = Some((line, memory));
                }
            }
            Ok(known.map(|(_, known)| known))
        })?;
        match known {
            Some(known) if known.ledger != memory.ledger => {
                let text = format!("the anchor {} is that of another ledger now", self.path.display());
                Err(LedgerError::broken("ledger.anchor", text))
            }
            Some(known) if known.position.sequence == memory.position.sequence && known != memory => {
                let text = format!(
                    "entry {} was written twice: the files of the ledger were deleted or replaced while it was in use",
                    memory.position.sequence
                );
                Err(LedgerError::broken("ledger.rollback", text))
            }
            _ => Ok(()),
        }
    }

    /// Does something while nobody else writes the anchor.
    fn alone<T>(&mut self, work: impl FnOnce(&mut Self) -> std::io::Result<T>) -> Result<T, LedgerError> {
        let start = Instant::now();
        let locked = loop {
            match self.file.try_lock() {
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(TryLockError::WouldBlock) => break Err(std::io::ErrorKind::TimedOut.into()),
                Err(TryLockError::Error(error)) => break Err(error),
                Ok(()) => break Ok(()),
            }
        };
        let done = locked.and_then(|()| {
            let done = work(self);
            self.file.unlock().and(done)
        });
        done.map_err(|error| failed(&self.path, "written", &error))
    }

    /// What the file remembers. It is not parsed again while it is as we left it.
    fn look(&mut self) -> std::io::Result<Option<(usize, Memory)>> {
        let bytes = read(&self.file)?;
        if bytes != self.seen.0 {
            self.seen = (bytes, None);
            self.seen.1 = newest(&self.seen.0);
        }
        Ok(self.seen.1)
    }

    fn write(&mut self, line: usize, memory: Memory) -> std::io::Result<()> {
        let text = write(memory);
        crate::file::write(&self.file, (line * LINE) as u64, text.as_bytes())?;
        if let Some(seen) = self.seen.0.chunks_exact_mut(LINE).nth(line) {
            seen.copy_from_slice(text.as_bytes());
        }
        Ok(())
    }
}

/// All of a file that an anchor can have.
fn read(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4 * LINE];
    let count = crate::file::read(file, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// The line with the larger number, and which it is.
fn newest(bytes: &[u8]) -> Option<(usize, Memory)> {
    let lines = bytes.chunks_exact(LINE).enumerate().filter_map(|(line, text)| Some((line, parse(text)?)));
    lines.max_by_key(|(_, memory)| memory.position.sequence)
}

fn write(memory: Memory) -> String {
    let Memory { ledger, position } = memory;
    let mut line = format!("demur anchor 1 {ledger} {} {}", position.sequence, position.hash);
    let sum = Hash::of(line.as_bytes()).to_string();
    line.push(' ');
    line.push_str(&sum[..16]);
    line.extend(std::iter::repeat_n(' ', (LINE - 1).saturating_sub(line.len())));
    line.push('\n');
    line
}

fn parse(line: &[u8]) -> Option<Memory> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (text, sum) = line.rsplit_once(' ')?;
    let words: Vec<&str> = text.strip_prefix("demur anchor 1 ")?.split(' ').collect();
    let [ledger, sequence, hash] = words.as_slice() else { return None };
    if !Hash::of(text.as_bytes()).to_string().starts_with(sum) || sum.len() != 16 {
        return None;
    }
    let position = Position { sequence: sequence.parse().ok()?, hash: hash.parse().ok()? };
    Some(Memory { ledger: ledger.parse().ok()?, position })
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> LedgerError {
    LedgerError::broken(
        "ledger.anchor",
        format!("the anchor {} could not be {what}: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(sequence: u64) -> Memory {
        let hash = Hash::of(&sequence.to_be_bytes());
        Memory { ledger: Hash::of(b"ledger"), position: Position { sequence, hash } }
    }

    #[test]
    fn the_latest_memory_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        assert_eq!(Anchor::recall(&path).unwrap(), None);
        let mut anchor = Anchor::create(&path, memory(0)).unwrap();
        for sequence in 1..20 {
            anchor.remember(memory(sequence)).unwrap();
            assert_eq!(Anchor::recall(&path).unwrap(), Some(memory(sequence)));
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 2 * LINE as u64);
    }

    /// Whatever is cut off or changed in one line, the memory of the other one is left; never a third.
    #[test]
    fn a_torn_line_leaves_the_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        Anchor::create(&path, memory(7)).unwrap().remember(memory(8)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let found = Anchor::recall(&path).unwrap().unwrap();
            assert!(found == memory(7) || found == memory(8), "byte {place}");
        }
        std::fs::write(&path, "nothing of use ".repeat(20)).unwrap();
        assert_eq!(Anchor::recall(&path).unwrap_err().code(), "ledger.anchor.damaged");
    }

    /// Whoever is late must not make the anchor forget what came later.
    #[test]
    fn a_later_entry_is_never_forgotten_for_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        let mut late = Anchor::create(&path, memory(0)).unwrap();
        let mut other = Anchor::hold(&path, memory(0)).unwrap();
        for sequence in 2..9 {
            other.remember(memory(sequence)).unwrap();
            late.remember(memory(sequence - 1)).unwrap();
            Anchor::create(&path, memory(0)).unwrap();
            assert_eq!(Anchor::recall(&path).unwrap(), Some(memory(sequence)));
        }
        Anchor::replace(&path, memory(3)).unwrap();
        assert_eq!(Anchor::recall(&path).unwrap(), Some(memory(3)));
    }

    #[test]
    fn two_entries_of_one_number_are_two_ledgers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        let mut anchor = Anchor::create(&path, memory(0)).unwrap();
        anchor.remember(memory(1)).unwrap();
        let position = Position { hash: Hash::of(b"another"), ..memory(1).position };
        let twice = anchor.remember(Memory { position, ..memory(1) });
        assert_eq!(twice.unwrap_err().code(), "ledger.rollback");
        let other = anchor.remember(Memory { ledger: Hash::of(b"another"), ..memory(2) });
        assert_eq!(other.unwrap_err().code(), "ledger.anchor");
        assert_eq!(Anchor::recall(&path).unwrap(), Some(memory(1)));
    }

    /// Its maker was killed before it was written: a ledger cannot have used it.
    #[test]
    fn the_beginning_of_an_anchor_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        let whole = write(memory(0));
        for length in [0, 1, LINE / 2, LINE - 1] {
            std::fs::write(&path, &whole.as_bytes()[..length]).unwrap();
            assert_eq!(Anchor::recall(&path).unwrap(), None);
        }
        Anchor::create(&path, memory(0)).unwrap();
        assert_eq!(Anchor::recall(&path).unwrap(), Some(memory(0)));
    }
}
