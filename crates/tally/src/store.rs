//! [`Store`]: rows that wait for their units, as bytes in memory or in a file.
//!
//! **Definition.** Blocks come several at a time. They stay in memory while they have room there, and go to a file otherwise: one without a name, which is gone when it is closed or its process
//! ends. A place in it is used again once all blocks that came there together have been taken. Where the disk takes nothing, blocks stay in memory after all.
//!
//! **Why.** Rows wait once and are read once, and a system is good at that: it keeps such a file in memory as long as nobody else needs it, and writes it to disk only then. So the memory of the
//! process does not grow with its rows, and a block takes no longer than in fresh memory of its own.
//!
//! **Privacy.** What is written is as private as the table itself and is written where the system keeps its temporary files; nobody can open a file that has no name.

use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

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

/// A block that was kept.
#[derive(Debug)]
pub(crate) enum Kept {
    Here(Box<[u8]>),
    InFile { start: u64, length: usize, place: Arc<Place> },
}

/// Some bytes of the file.
#[derive(Debug)]
pub(crate) struct Place {
    start: u64,
    length: usize,
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

    /// Keeps blocks until they are taken: these bytes, up to one end and the next.
    pub(crate) fn keep(&self, bytes: &[u8], ends: &[usize]) -> Result<Vec<Kept>, TallyError> {
        let held = self.held.fetch_add(bytes.len(), Relaxed);
        let place = match bytes.len() > self.room.saturating_sub(held) {
            true => self.write(bytes)?,
            false => None,
        };
        if place.is_some() {
            self.held.fetch_sub(bytes.len(), Relaxed);
        }
        let mut start = 0;
        let blocks = ends.iter().map(|&end| std::mem::replace(&mut start, end)..end);
        Ok(blocks
            .map(|block| match &place {
                Some(place) => Kept::InFile {
                    start: place.start + block.start as u64,
                    length: block.len(),
                    place: Arc::clone(place),
                },
                None => Kept::Here(bytes[block].into()),
            })
            .collect())
    }

    /// Shows a block that was kept, and forgets it; one in the file is read into a buffer.
    pub(crate) fn take<T>(
        &self,
        kept: Kept,
        buffer: &mut Vec<u8>,
        show: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, TallyError> {
        let (start, length, place) = match kept {
            Kept::Here(bytes) => {
                self.held.fetch_sub(bytes.len(), Relaxed);
                return Ok(show(&bytes));
            }
            Kept::InFile { start, length, place } => (start, length, place),
        };
        let file = self.file.get().and_then(Option::as_ref);
        let file = file.ok_or_else(|| TallyError::ours("rows are in a file that was never made"))?;
        buffer.resize(length, 0);
        read_at(file, buffer, start).map_err(|error| TallyError::disk(&error))?;
        if let Some(place) = Arc::into_inner(place) {
            lock(&self.places)?.give_back(place);
        }
        Ok(show(buffer))
    }

    /// Writes bytes to the file, if it takes them.
    fn write(&self, bytes: &[u8]) -> Result<Option<Arc<Place>>, TallyError> {
        let Some(file) = self.file.get_or_init(|| tempfile::tempfile().ok()) else { return Ok(None) };
        let place = lock(&self.places)?.find(bytes.len());
        if write_at(file, bytes, place.start).is_ok() {
            return Ok(Some(Arc::new(place)));
        }
        lock(&self.places)?.give_back(place);
        Ok(None)
    }
}

impl Drop for Store {
    /// To give back the memory of a file takes the system a while, and nobody needs to wait for it.
    fn drop(&mut self) {
        if let Some(file) = self.file.take().flatten() {
            let _ = std::thread::Builder::new().spawn(move || drop(file));
        }
    }
}

impl Places {
    fn find(&mut self, length: usize) -> Place {
        let start = self.free.get_mut(&length).and_then(Vec::pop).unwrap_or_else(|| {
            self.end += length as u64;
            self.end - length as u64
        });
        Place { start, length }
    }

    fn give_back(&mut self, place: Place) {
        self.free.entry(place.length).or_default().push(place.start);
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

    /// Blocks that are kept two at a time, and taken while others are kept.
    fn assert_kept(store: &Store, is_here: bool) {
        let bytes = |number: usize| vec![number as u8; [5, 8, 0, 8][number % 4]];
        let mut buffer = vec![9; 3];
        let mut open = Vec::new();
        let mut take = |(number, kept)| {
            store.take(kept, &mut buffer, |found| assert_eq!(found, bytes(number))).unwrap();
        };
        for number in (0..100).step_by(2) {
            let (both, end) = ([bytes(number), bytes(number + 1)].concat(), bytes(number).len());
            let kept = store.keep(&both, &[end, both.len()]).unwrap();
            assert!(kept.iter().all(|kept| matches!(kept, Kept::Here(_)) == is_here), "{number}: {kept:?}");
            open.extend((number..).zip(kept));
            if number % 3 == 2 {
                (0..4).for_each(|_| take(open.remove(0)));
            }
        }
        open.into_iter().for_each(take);
        assert_eq!(store.held.load(Relaxed), 0);
    }

    #[test]
    fn blocks_come_back_from_memory_and_from_the_file() {
        assert_kept(&Store::new(usize::MAX), true);
        let store = Store::new(0);
        assert_kept(&store, false);
        // They had 525 bytes in all, but not at the same time.
        let places = store.places.lock().unwrap();
        assert!(places.end < 300, "{}", places.end);
        let free: u64 = places.free.iter().map(|(length, starts)| (length * starts.len()) as u64).sum();
        assert_eq!(free, places.end);
    }

    #[test]
    fn what_has_no_room_goes_to_the_file_until_there_is_room_again() {
        let store = Store::new(10);
        let keep = |length| store.keep(&vec![1; length], &[length]).unwrap().remove(0);
        let here = |kept: &Kept| matches!(kept, Kept::Here(_));
        let [one, two, three] = [6, 5, 4].map(keep);
        assert!(here(&one) && !here(&two) && here(&three));
        store.take(one, &mut Vec::new(), |_| ()).unwrap();
        assert!(here(&keep(6)));
        assert!(!here(&keep(1)));
    }

    /// A file that cannot be written, as on a full disk, and none at all.
    #[test]
    fn where_the_disk_takes_nothing_blocks_stay_in_memory() {
        let path = tempfile::NamedTempFile::new().unwrap();
        for file in [File::open(path.path()).ok(), None] {
            let mut store = Store::new(0);
            store.file = OnceLock::from(file);
            assert_kept(&store, true);
        }
    }
}
