//! [`Sqlite`]: the embedded store, one file.
//!
//! **Durability.** Write-ahead log with `synchronous=FULL`: a commit returns after the log has been synced to disk. What is read
//! when the ledger is opened has been synced too: opening first writes the log over itself and syncs it, so pages
//! that a failed sync left only in memory reach the disk. The name of the log is synced by us, because SQLite
//! takes no notice when that fails.
//!
//! **Faults.** Every error of SQLite but "busy" is final for this handle; one of moving its log into the file too, of which SQLite by itself
//! takes no notice either.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};

use super::lock::{Lock, OnWait};
use super::{AnswerRow, Found, Row, Store, StoredAnswer, VisitAnswer, VisitEntry, Wanted};
use crate::entry::{Position, Sealed};
use crate::{Hash, LedgerError};

/// Marks the file as a ledger: `demu` in ASCII.
const APPLICATION: i64 = 0x6465_6d75;
/// The version of the tables below.
const TABLES: i64 = 1;
/// Pages in the log after which it is moved into the file.
const LONG: i32 = 1000;

const SCHEMA: &str = "
CREATE TABLE entry (sequence INTEGER PRIMARY KEY, hash BLOB NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE answer (charge INTEGER PRIMARY KEY, release INTEGER NOT NULL, requester TEXT NOT NULL,
                     request BLOB, body BLOB NOT NULL) STRICT;
CREATE INDEX answer_by_request ON answer (request, charge) WHERE request IS NOT NULL;
";

/// Entries in an SQLite file.
pub struct Sqlite {
    path: PathBuf,
    /// The file, its log and the index of the log: who has another one of them sees another ledger.
    files: [PathBuf; 3],
    identity: Option<[Identity; 3]>,
    connection: Connection,
    lock: Option<Lock>,
}

impl Sqlite {
    /// Makes the file with its tables, unless it is there.
    ///
    /// It is made under another name and gets its own when it is complete, so there is never half of one.
    pub fn create(path: &Path, patience: Duration, on_wait: OnWait) -> Result<(), LedgerError> {
        if path.try_exists().map_err(|error| creating(path, &error))? {
            return Ok(());
        }
        let mut lock = Lock::new(beside(path, "lock"), patience, on_wait)?;
        lock.take()?;
        let made = match path.try_exists() {
            Ok(true) => Ok(()),
            Ok(false) => make(path),
            Err(error) => Err(creating(path, &error)),
        };
        lock.give_back().and(made)
    }

    /// An existing file, for reading and writing.
    pub fn open(path: &Path, patience: Duration, on_wait: OnWait) -> Result<Self, LedgerError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Self::connect(path, flags)?;
        // SQLite is content with reading where it may not write.
        if store.connection.is_readonly("main").map_err(|error| store.failed("opening", &error))? {
            return Err(store.wrong("cannot be written"));
        }
        let lock = Lock::new(beside(path, "lock"), patience, on_wait)?;
        store.lock = Some(lock);
        let set = store.connection.pragma_update(None, "synchronous", "full").and_then(|()| {
            let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            let level: i64 = store.connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
            Ok(mode == "wal" && level == 2)
        });
        match set {
            Ok(true) => {}
            Ok(false) => return Err(store.wrong("is not set up for durable writes (WAL, synchronous=FULL)")),
            Err(error) => return Err(store.failed("opening", &error)),
        }
        store.connection.wal_hook(Some(move_log)).map_err(|error| store.failed("opening", &error))?;
        store.settle()?;
        Ok(store)
    }

    /// An existing file, for reading only: as it is when something is read first, whatever is written meanwhile.
    pub fn open_to_read(path: &Path) -> Result<Self, LedgerError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Self::connect(path, flags)?;
        store.connection.execute_batch("BEGIN").map_err(|error| store.failed("opening", &error))?;
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, LedgerError> {
        let connection = Connection::open_with_flags(plain(path), flags).map_err(|error| {
            LedgerError::broken(
                "ledger.store",
                format!("the ledger {} cannot be opened: {error}", path.display()),
            )
        })?;
        let files = [path.to_owned(), dashed(path, "-wal"), dashed(path, "-shm")];
        let store = Self { path: path.to_owned(), files, identity: None, connection, lock: None };
        let pragma = |name: &str| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let marks = store
            .connection
            .busy_timeout(Duration::from_secs(10))
            // Otherwise SQLite plans a query anew for every value it is asked with.
            .and_then(|()| store.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true))
            .and_then(|_| Ok((pragma("application_id")?, pragma("user_version")?)))
            .map_err(|error| store.failed("opening", &error))?;
        match marks {
            (APPLICATION, TABLES) => Ok(store),
            (APPLICATION, version) => {
                Err(store
                    .wrong(&format!("has tables of version {version}, and this software knows {TABLES}")))
            }
            _ => Err(store.wrong("is not a ledger of demur")),
        }
    }

    /// Makes sure that all that can be read is on disk, and remembers which files these are.
    ///
    /// It is not enough to move the log into the file: what is left of the log would hide the newer pages there.
    fn settle(&mut self) -> Result<(), LedgerError> {
        let known = crate::folder::sync_name(&self.path).and_then(|()| identities(&self.files));
        self.identity = Some(known.map_err(|error| creating(&self.path, &error))?);
        let [_, log, _] = self.files.clone();
        if std::fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
            return Ok(());
        }
        self.begin()?;
        let written = write_again(&log).map_err(|error| creating(&self.path, &error));
        self.abandon().and(written)
    }

    fn failed(&self, doing: &str, error: &rusqlite::Error) -> LedgerError {
        let path = self.path.display();
        match error.sqlite_error_code() {
            _ if is_busy(error) => LedgerError::busy(format!(
                "the ledger {path} is held by a program other than demur; nothing was charged"
            )),
            Some(ErrorCode::NotADatabase) => self.wrong("is not a ledger of demur"),
            _ => LedgerError::broken("ledger.store", format!("{doing} the ledger {path} failed: {error}")),
        }
    }

    fn wrong(&self, what: &str) -> LedgerError {
        LedgerError::broken("ledger.store", format!("the file {} {what}", self.path.display()))
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn head(&self) -> rusqlite::Result<Option<Position>> {
        let sql = "SELECT sequence, hash FROM entry ORDER BY sequence DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement
            .query_row([], |row| Ok(Position { sequence: number(row, 0)?, hash: hash(row, 1)? }))
            .optional()
    }

    fn look_up(&self, wanted: &[Wanted<'_>]) -> rusqlite::Result<Vec<Found>> {
        const CHARGE: &str = "SELECT sequence, hash, body FROM entry WHERE sequence = ?1";
        const PAID: &str = "SELECT e.sequence, e.hash, e.body, a.body FROM answer a
                            JOIN entry e ON e.sequence = a.release WHERE a.charge = ?1";
        const EQUAL: &str = "SELECT e.sequence, e.hash, e.body, a.body FROM answer a
                             JOIN entry e ON e.sequence = a.release
                             WHERE a.request = ?1 AND (a.requester = ?2 OR NOT ?3) ORDER BY a.charge LIMIT 1";
        let mut charges = self.connection.prepare_cached(CHARGE)?;
        let mut paid = self.connection.prepare_cached(PAID)?;
        let mut equal = self.connection.prepare_cached(EQUAL)?;
        let stored = |row: &rusqlite::Row<'_>| Ok(StoredAnswer { release: sealed(row)?, bytes: row.get(3)? });
        let look_up = |Wanted { requester, charge, request, only_own }: &Wanted<'_>| {
            if let Some(charge) = charge.map(|charge| charge as i64) {
                let answer = paid.query_row([charge], stored).optional()?;
                return Ok(Found { charge: charges.query_row([charge], sealed).optional()?, answer });
            }
            let Some(request) = request else { return Ok(Found::default()) };
            let answer = equal.query_row(params![request.bytes(), requester, only_own], stored).optional()?;
            Ok(Found { charge: None, answer })
        };
        wanted.iter().map(look_up).collect()
    }

    fn insert(&self, rows: &[Row]) -> rusqlite::Result<()> {
        let mut entry = self.connection.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3)")?;
        let mut answer = self.connection.prepare_cached("INSERT INTO answer VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for row in rows {
            let sequence = row.sealed.position.sequence as i64;
            entry.execute(params![sequence, row.sealed.position.hash.bytes(), row.sealed.body])?;
            if let Some(AnswerRow { charge, requester, request, bytes }) = &row.answer {
                let request = request.as_ref().map(Hash::bytes);
                answer.execute(params![*charge as i64, sequence, requester, request, bytes])?;
            }
        }
        Ok(())
    }

    /// A file that was deleted or replaced can still be written, but nobody will ever read it.
    fn still_there(&self) -> Result<(), LedgerError> {
        match identities(&self.files) {
            Ok(now) if Some(now) == self.identity => Ok(()),
            _ => Err(self.wrong("or its log was deleted, moved or replaced while it was in use")),
        }
    }

    fn give_back(&mut self) -> Result<(), LedgerError> {
        self.lock.as_mut().map_or(Ok(()), Lock::give_back)
    }
}

impl Store for Sqlite {
    fn begin(&mut self) -> Result<Option<Position>, LedgerError> {
        let lock = self.lock.as_mut().ok_or_else(|| LedgerError::ours("a reader tried to write"))?;
        lock.take()?;
        let begun = self.still_there().and_then(|()| {
            let head = self.run("BEGIN IMMEDIATE").and_then(|()| self.head());
            head.map_err(|error| self.failed("locking", &error))
        });
        begun.or_else(|error| self.abandon().and(Err(error)))
    }

    fn read(&mut self, sequence: u64, visit: &mut VisitEntry<'_>) -> Result<(), LedgerError> {
        let failed = |error: rusqlite::Error| self.failed("reading", &error);
        let sql = "SELECT sequence, hash, body FROM entry WHERE sequence >= ?1 ORDER BY sequence";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query([sequence as i64]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            visit(sealed(row).map_err(failed)?)?;
        }
        Ok(())
    }

    fn find(&mut self, wanted: &[Wanted<'_>]) -> Result<Vec<Found>, LedgerError> {
        self.look_up(wanted).map_err(|error| self.failed("reading", &error))
    }

    fn answers(&mut self, charges: Range<u64>, visit: &mut VisitAnswer<'_>) -> Result<(), LedgerError> {
        let failed = |error: rusqlite::Error| self.failed("reading", &error);
        let sql = "SELECT charge, body FROM answer WHERE charge >= ?1 AND charge < ?2 ORDER BY charge";
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let bound = |sequence: u64| i64::try_from(sequence).unwrap_or(i64::MAX);
        let mut rows = statement.query([bound(charges.start), bound(charges.end)]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let body: Vec<u8> = row.get(1).map_err(failed)?;
            visit(number(row, 0).map_err(failed)?, &body)?;
        }
        Ok(())
    }

    fn append(&mut self, rows: &[Row]) -> Result<(), LedgerError> {
        self.insert(rows).map_err(|error| self.failed("writing", &error))
    }

    fn commit(&mut self) -> Result<(), LedgerError> {
        let done = self.run("COMMIT").map_err(|error| self.failed("writing", &error));
        // A commit that did not happen may be taken back; a commit that did, stays.
        if done.is_err() && !self.connection.is_autocommit() {
            let _ = self.run("ROLLBACK");
        }
        self.give_back().and(done)
    }

    fn abandon(&mut self) -> Result<(), LedgerError> {
        let done = match self.connection.is_autocommit() {
            true => Ok(()),
            false => self.run("ROLLBACK").map_err(|error| self.failed("leaving", &error)),
        };
        self.give_back().and(done)
    }
}

fn make(path: &Path) -> Result<(), LedgerError> {
    let draft = beside(path, "new");
    let made = remove(&draft)
        .and_then(|()| remove(&dashed(&draft, "-wal")))
        .and_then(|()| remove(&dashed(&draft, "-shm")))
        .and_then(|()| remove(&dashed(&draft, "-journal")))
        .and_then(|()| tables(&draft).map_err(std::io::Error::other))
        .and_then(|()| File::open(&draft)?.sync_all())
        .and_then(|()| std::fs::rename(&draft, path))
        .and_then(|()| crate::folder::sync_name(path));
    made.map_err(|error| creating(path, &error))
}

fn tables(path: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(plain(path))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", TABLES)?;
    connection.execute_batch(SCHEMA)?;
    connection.execute_batch("COMMIT")?;
    // Last, so that nothing is in a log that closing would have to move: when that fails, nobody is told.
    let mut switch = connection.prepare("PRAGMA journal_mode = wal")?;
    let mut rows = switch.query([])?;
    let mode = rows.next()?.map(|row| row.get::<_, String>(0)).transpose()?;
    // It says what it is going to do; whether that was done is known at the end.
    if rows.next()?.is_some() || mode.as_deref() != Some("wal") {
        return Err(rusqlite::Error::ExecuteReturnedResults);
    }
    drop(rows);
    drop(switch);
    connection.close().map_err(|(_, error)| error)
}

/// Moves a long log into the file; called after each commit, which reports the error.
fn move_log(log: &mut Wal, pages: i32) -> rusqlite::Result<()> {
    if pages < LONG {
        return Ok(());
    }
    match log.checkpoint() {
        // Somebody else is at it.
        Err(error) if is_busy(&error) => Ok(()),
        done => done,
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Never an address with options: SQLite would read a name that begins with `file:` as one.
fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// Writes every byte of a file as it is, and syncs: pages that a failed sync left only in memory reach the disk.
fn write_again(path: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let (mut place, mut bytes) = (0, vec![0; 1 << 16]);
    loop {
        file.seek(SeekFrom::Start(place))?;
        let count = file.read(&mut bytes)?;
        if count == 0 {
            return file.sync_all();
        }
        file.seek(SeekFrom::Start(place))?;
        file.write_all(&bytes[..count])?;
        place += count as u64;
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn creating(path: &Path, error: &std::io::Error) -> LedgerError {
    LedgerError::broken("ledger.store", format!("creating the ledger {} failed: {error}", path.display()))
}

/// What tells a file from another one of the same name.
#[cfg(unix)]
type Identity = (u64, u64);

/// Its number and nothing else: once somebody has asked for the times of a file, Linux gives its next write a time of its own, and
/// the next sync has to write that too.
#[cfg(target_os = "linux")]
fn identity(path: &Path) -> std::io::Result<Identity> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let file = statx(CWD, path, AtFlags::empty(), StatxFlags::INO)?;
    Ok((u64::from(file.stx_dev_major) << 32 | u64::from(file.stx_dev_minor), file.stx_ino))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn identity(path: &Path) -> std::io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Elsewhere a file in use cannot be removed; that it exists is enough.
#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identity(path: &Path) -> std::io::Result<Identity> {
    std::fs::metadata(path).map(|_| ())
}

fn identities([file, log, index]: &[PathBuf; 3]) -> std::io::Result<[Identity; 3]> {
    Ok([identity(file)?, identity(log)?, identity(index)?])
}

fn dashed(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The file that stands beside the ledger with this ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    dashed(path, &format!(".{ending}"))
}

fn number(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn hash(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Hash::from_bytes(bytes)
        .ok_or_else(|| rusqlite::Error::InvalidColumnType(column, "hash".into(), rusqlite::types::Type::Blob))
}

fn sealed(row: &rusqlite::Row<'_>) -> rusqlite::Result<Sealed> {
    let position = Position { sequence: number(row, 0)?, hash: hash(row, 1)? };
    Ok(Sealed { position, body: row.get(2)? })
}
