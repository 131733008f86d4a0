//! [`Store`]: rows that wait for their units, as bytes in memory or in a file.
//!
//! **Definition.** Blocks stay in memory while they have room there, and go to a file otherwise: one without a name, which is gone when it is closed or its process ends. A place in it is
//! used again once its block has been taken. Where the disk takes nothing, blocks stay in memory after all.
//!
//! **Why.** Most rows wait once and are read once, in order, and a system is good at that: it keeps such a file in memory as long as nobody else needs it, and writes it to disk
//! only then. So the memory of the process does not grow with its rows, and a block takes no longer than in fresh memory of its own.
//!
//! **Privacy.** What is written is as private as the table itself and is written where the system keeps its temporary files; nobody can open a file that has no name.

use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use crate::error::TallyError;
use crate::groups::lock;

/// See the module text.
pub(crate) struct Store {
    /// How many bytes may stay in memory, and how many do.
    room: usize,
    held: AtomicUsize,
    /// None if there can be no file.
    file: OnceLock<Option<File>>,
    places: Mutex<Places>,
}

/// Bytes that were kept.
#[derive(Debug)]
pub(crate) enum Kept {
    Here(Box<[u8]>),
    InFile { start: u64, length: usize },
}

/// What is free in the file: all behind its end, and what was taken, by length.
#[derive(Default)]
struct Places {
    end: u64,
    free: HashMap<usize, Vec<u64>>,
}

impl Store {
    pub(crate) fn new(room: usize) -> Self {
        Self { room, held: AtomicUsize::new(0), file: OnceLock::new(), places: Mutex::default() }
    }

    /// Keeps bytes until they are taken.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Result<Kept, TallyError> {
        let held = self.held.fetch_add(bytes.len(), Relaxed);
        if bytes.len() > self.room.saturating_sub(held)
            && let Some(kept) = self.write(bytes)?
        {
            self.held.fetch_sub(bytes.len(), Relaxed);
            return Ok(kept);
        }
        Ok(Kept::Here(bytes.into()))
    }

    /// Shows bytes that were kept, and forgets them; those of a file are read into a buffer.
    pub(crate) fn take<T>(
        &self,
        kept: Kept,
        buffer: &mut Vec<u8>,
        show: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, TallyError> {
        let (start, length) = match kept {
            Kept::Here(bytes) => {
                self.held.fetch_sub(bytes.len(), Relaxed);
                return Ok(show(&bytes));
            }
            Kept::InFile { start, length } => (start, length),
        };
        let file = self.file.get().and_then(Option::as_ref);
        let file = file.ok_or_else(|| TallyError::ours("rows are in a file that was never made"))?;
        buffer.resize(length, 0);
        read_at(file, buffer, start).map_err(|error| TallyError::disk(&error))?;
        lock(&self.places)?.give_back(start, length);
        Ok(show(buffer))
    }

    /// Writes bytes to the file, if it takes them.
    fn write(&self, bytes: &[u8]) -> Result<Option<Kept>, TallyError> {
        let Some(file) = self.file.get_or_init(|| tempfile::tempfile().ok()) else { return Ok(None) };
        let length = bytes.len();
        let start = lock(&self.places)?.find(length);
        if write_at(file, bytes, start).is_ok() {
            return Ok(Some(Kept::InFile { start, length }));
        }
        lock(&self.places)?.give_back(start, length);
        Ok(None)
    }
}

impl Places {
    fn find(&mut self, length: usize) -> u64 {
        if let Some(start) = self.free.get_mut(&length).and_then(Vec::pop) {
            return start;
        }
        self.end += length as u64;
        self.end - length as u64
    }

    fn give_back(&mut self, start: u64, length: usize) {
        self.free.entry(length).or_default().push(start);
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], place: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, place)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], place: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, place)
}

/// Where a file has one place at a time, one thread at a time goes there.
#[cfg(not(unix))]
static ALONE: Mutex<()> = Mutex::new(());

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], place: u64) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    let _alone = ALONE.lock();
    file.seek(SeekFrom::Start(place))?;
    file.write_all(bytes)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], place: u64) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    let _alone = ALONE.lock();
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kept and taken in turn, so that places are used again.
    fn assert_kept(store: &Store, is_here: impl Fn(usize) -> bool) {
        let bytes = |number: usize| vec![number as u8; [5, 8, 0, 8][number % 4]];
        let mut buffer = Vec::new();
        let mut open = Vec::new();
        for number in 0..50 {
            let kept = store.keep(&bytes(number)).unwrap();
            assert_eq!(matches!(kept, Kept::Here(_)), is_here(number), "{number}: {kept:?}");
            open.push((number, kept));
            if number % 3 == 2 {
                for _ in 0..2 {
                    let (number, kept) = open.remove(open.len() / 2);
                    store.take(kept, &mut buffer, |found| assert_eq!(found, bytes(number))).unwrap();
                }
            }
        }
        for (number, kept) in open {
            store.take(kept, &mut buffer, |found| assert_eq!(found, bytes(number))).unwrap();
        }
        assert_eq!(store.held.load(Relaxed), 0);
    }

    #[test]
    fn bytes_come_back_from_memory_and_from_the_file() {
        assert_kept(&Store::new(usize::MAX), |_| true);
        let store = Store::new(0);
        // Of no bytes there is always room for.
        assert_kept(&store, |number| number % 4 == 2);
        // 50 blocks have 263 bytes; a third of them was waiting at a time.
        assert!(store.places.lock().unwrap().end < 130);
    }

    #[test]
    fn what_has_no_room_goes_to_the_file_until_there_is_room_again() {
        let store = Store::new(10);
        let here = |kept: &Kept| matches!(kept, Kept::Here(_));
        let [one, two, three] = [6, 5, 4].map(|length| store.keep(&vec![1; length]).unwrap());
        assert!(here(&one) && !here(&two) && here(&three));
        store.take(one, &mut Vec::new(), |_| ()).unwrap();
        assert!(here(&store.keep(&[1; 6]).unwrap()));
        assert!(!here(&store.keep(&[1]).unwrap()));
    }

    /// A full disk, and one without temporary files.
    #[test]
    fn where_the_disk_takes_nothing_bytes_stay_in_memory() {
        let path = tempfile::NamedTempFile::new().unwrap();
        for file in [File::open(path.path()).ok(), None] {
            let store = Store { file: OnceLock::from(file), ..Store::new(0) };
            assert_kept(&store, |_| true);
        }
    }
}
