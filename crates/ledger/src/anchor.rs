//! [`Anchor`]: a second memory of the last entry, so that an older copy of the ledger is noticed.
//!
//! **Definition.** A small file with two lines, written in turn: the ledger's name, the last entry's number and hash, and a check sum. The
//! line with the larger number counts; a torn line fails its check sum, and the other one is still there.
//!
//! **Guarantee.** The anchor is written after the entry is durable, so an honest ledger always contains the entry it
//! remembers. A ledger without that entry is an older copy, or another one.
//!
//! **What it does not see.** It is not synced at every entry: after a crash of the machine it may remember an earlier
//! one. A copy that is put back together with its anchor is seen only by the heads in certificates.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::entry::Position;
use crate::{Hash, LedgerError};

/// Bytes in a line, with its end.
const LINE: usize = 256;

/// The file, and which of its lines is written next.
#[derive(Debug)]
pub struct Anchor {
    path: PathBuf,
    file: File,
    turn: u64,
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
    /// Reads what the file remembers, without changing it; nothing if there is no file.
    pub fn recall(path: &Path) -> Result<Option<Memory>, LedgerError> {
        let mut bytes = Vec::new();
        match File::open(path).and_then(|file| file.take(4 * LINE as u64).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, "read", &error)),
        }
        let lines = bytes.chunks(LINE).filter_map(parse);
        let memory = lines.max_by_key(|memory| memory.position.sequence);
        memory.map(Some).ok_or_else(|| {
            let text = format!("the anchor {} is damaged: none of its lines can be read", path.display());
            LedgerError::broken("ledger.anchor.damaged", text)
        })
    }

    /// A new file that remembers this, durably.
    pub fn create(path: &Path, memory: Memory) -> Result<Self, LedgerError> {
        let mut anchor = Self::open(path, true)?;
        // Both lines, one after the other, so that one of them can be read at any time.
        for _ in 0..2 {
            anchor.remember(memory)?;
            anchor.file.sync_all().map_err(|error| failed(path, "synced", &error))?;
        }
        Ok(anchor)
    }

    /// The file as it is, for writing.
    pub fn hold(path: &Path) -> Result<Self, LedgerError> {
        Self::open(path, false)
    }

    fn open(path: &Path, new: bool) -> Result<Self, LedgerError> {
        let file = OpenOptions::new().read(true).write(true).create(new).truncate(false).open(path);
        let file = file.map_err(|error| failed(path, "opened", &error))?;
        Ok(Self { path: path.to_owned(), file, turn: 0 })
    }

    /// Remembers an entry that is durable. Survives the end of the program; the machine's, a little later.
    pub fn remember(&mut self, memory: Memory) -> Result<(), LedgerError> {
        let place = SeekFrom::Start(self.turn % 2 * LINE as u64);
        let line = write(memory);
        let written = self.file.seek(place).and_then(|_| self.file.write_all(line.as_bytes()));
        written.map_err(|error| failed(&self.path, "written", &error))?;
        self.turn += 1;
        Ok(())
    }
}

fn write(memory: Memory) -> String {
    let Memory { ledger, position } = memory;
    let text = format!("demur anchor 1 {ledger} {} {}", position.sequence, position.hash);
    let sum = Hash::of(text.as_bytes()).to_string();
    format!("{:<width$}\n", format!("{text} {}", &sum[..16]), width = LINE - 1)
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
        std::fs::write(&path, b"nothing\nof use\n").unwrap();
        assert_eq!(Anchor::recall(&path).unwrap_err().code(), "ledger.anchor.damaged");
    }
}
