//! Files that were deleted, replaced, put back or damaged: refused, or harmless; never a book with less spent.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may fail anywhere")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use demur_accounting::Filter;
use demur_ledger::anchor::Anchor;
use demur_ledger::entry::Sealed;
use demur_ledger::{
    Book, BudgetName, Charged, Hash, Ledger, LedgerError, Location, Options, Receipt, Request,
};

struct Bench {
    folder: tempfile::TempDir,
}

fn options() -> Options {
    Options { patience: Duration::from_secs(5), ..Options::default() }
}

fn request(id: &str) -> Request {
    Request::new("budget", "analyst", id, "pure(0.001)".parse().unwrap()).id(id)
}

fn receipt(charged: Charged) -> Receipt {
    match charged {
        Charged::Now(receipt) => receipt,
        Charged::Before(replay) => panic!("was paid for before: {replay:?}"),
    }
}

fn pay(ledger: &Ledger, id: &str) -> Result<(), LedgerError> {
    let paid = receipt(ledger.charge(request(id))?);
    ledger.record(paid, id.as_bytes()).map(|_| ())
}

impl Bench {
    /// An empty folder; the fastest one will do.
    fn empty() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { folder: folder.unwrap() }
    }

    /// A ledger with a budget and two answers.
    fn new() -> (Self, Ledger) {
        let bench = Self::empty();
        let ledger = Ledger::create(&bench.location(), options()).unwrap();
        let filter = Filter::pure("1".parse().unwrap()).unwrap();
        ledger.create_budget(BudgetName::whole("budget"), "data", "row", filter, "").unwrap();
        ["first", "second"].iter().for_each(|id| pay(&ledger, id).unwrap());
        (bench, ledger)
    }

    fn location(&self) -> Location {
        Location::Sqlite(self.path(""))
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("ledger.db{ending}"))
    }

    fn code(&self) -> &'static str {
        Ledger::open(&self.location(), options()).err().map_or("opened", |error| error.code())
    }

    /// The files as they are now, without the index of the log, which a crash would leave unused.
    fn copy(&self) -> Vec<(&'static str, Vec<u8>)> {
        let endings = ["", "-wal", ".anchor"].into_iter();
        endings.filter_map(|ending| Some((ending, fs::read(self.path(ending)).ok()?))).collect()
    }

    fn put_back(&self, files: &[(&'static str, Vec<u8>)]) {
        for ending in ["", "-wal", "-shm", ".anchor"] {
            let _ = fs::remove_file(self.path(ending));
        }
        files.iter().for_each(|(ending, bytes)| fs::write(self.path(ending), bytes).unwrap());
    }
}

/// A handle on a file that nobody else will ever read must not acknowledge anything.
#[test]
fn what_is_deleted_or_replaced_while_in_use_is_noticed() {
    for ending in ["", "-wal", "-shm"] {
        for replace in [false, true] {
            let (bench, ledger) = Bench::new();
            let bytes = fs::read(bench.path(ending)).unwrap();
            fs::remove_file(bench.path(ending)).unwrap();
            if replace {
                // Under another name first, so that it is another file.
                fs::write(bench.path(".copy"), &bytes).unwrap();
                fs::rename(bench.path(".copy"), bench.path(ending)).unwrap();
            }
            let error = pay(&ledger, "third").unwrap_err();
            assert_eq!(error.code(), "ledger.store", "{ending} {error}");
            assert_eq!(pay(&ledger, "third").unwrap_err().code(), "ledger.poisoned");
        }
    }
}

#[test]
fn a_ledger_that_is_gone_is_not_made_again() {
    let (bench, ledger) = Bench::new();
    drop(ledger);
    fs::remove_file(bench.path("")).unwrap();
    assert_eq!(bench.code(), "ledger.missing");
    let created = Ledger::create(&bench.location(), options());
    assert_eq!(created.err().map(|error| error.code()), Some("ledger.missing"));
}

#[test]
fn an_anchor_that_is_gone_or_damaged_is_missed() {
    let (bench, ledger) = Bench::new();
    drop(ledger);
    fs::write(bench.path(".anchor"), "not an anchor ".repeat(40)).unwrap();
    assert_eq!(bench.code(), "ledger.anchor.damaged");
    for remove in [true, false] {
        fs::write(bench.path(".anchor"), "").unwrap();
        if remove {
            fs::remove_file(bench.path(".anchor")).unwrap();
        }
        assert_eq!(bench.code(), "ledger.anchor.missing");
        let created = Ledger::create(&bench.location(), options());
        assert_eq!(created.err().map(|error| error.code()), Some("ledger.exists"));
    }
    let adopted = Ledger::adopt(&bench.location(), "the anchor was lost", options()).unwrap();
    pay(&adopted, "third").unwrap();
    drop(adopted);
    assert_eq!(bench.code(), "opened");
}

/// An older copy, even by one entry, with the newer anchor: refused when opened, and by who had it open.
#[test]
fn an_older_copy_is_refused() {
    let (bench, ledger) = Bench::new();
    drop(ledger);
    let old = bench.copy();
    let ledger = Ledger::open(&bench.location(), options()).unwrap();
    let _paid = receipt(ledger.charge(request("third")).unwrap());
    drop(ledger);
    let anchor = fs::read(bench.path(".anchor")).unwrap();
    bench.put_back(&old);
    fs::write(bench.path(".anchor"), anchor).unwrap();
    assert_eq!(bench.code(), "ledger.rollback");
    assert_eq!(Ledger::look(&bench.location()).unwrap_err().code(), "ledger.rollback");
    // The owner may take it over; what was lost is unknown, so nothing can be spent any more.
    let adopted = Ledger::adopt(&bench.location(), "the disk was lost", options()).unwrap();
    assert_eq!(pay(&adopted, "fourth").unwrap_err().code(), "ledger.budget.closed");
}

/// The contents of an older copy, written into the very file that is in use: who has it open still knows what was
/// spent, and afterwards the ledger is whole again or refused.
#[test]
fn an_older_copy_under_a_running_handle_forgets_nothing() {
    let (bench, ledger) = Bench::new();
    drop(ledger);
    let old = fs::read(bench.path("")).unwrap();
    let ledger = Ledger::open(&bench.location(), options()).unwrap();
    pay(&ledger, "third").unwrap();
    drop(ledger);
    let ledger = Ledger::open(&bench.location(), options()).unwrap();
    fs::write(bench.path(""), &old).unwrap();
    let book = pay(&ledger, "fourth").and_then(|()| ledger.book());
    drop(ledger);
    match Ledger::open(&bench.location(), options()).and_then(|ledger| ledger.book()) {
        Ok(now) => assert_eq!(Ok(now), book),
        Err(error) => assert!(error.is_broken(), "{error}"),
    }
}

/// The lock file only says who waits for whom; SQLite's own lock holds without it.
#[test]
fn a_lock_file_that_is_gone_costs_nothing() {
    let (bench, first) = Bench::new();
    fs::remove_file(bench.path(".lock")).unwrap();
    let second = Ledger::open(&bench.location(), options()).unwrap();
    std::thread::scope(|scope| {
        for (name, ledger) in [("a", &first), ("b", &second)] {
            scope.spawn(move || (0..30).for_each(|i| pay(ledger, &format!("{name}{i}")).unwrap()));
        }
    });
    let book = second.book().unwrap();
    assert_eq!(book.budget(&BudgetName::whole("budget")).unwrap().charges, 62);
}

/// Somebody who reads an old state for long keeps nobody from opening and charging.
#[test]
fn a_slow_reader_stops_nobody() {
    let (bench, ledger) = Bench::new();
    let reader = rusqlite::Connection::open(bench.path("")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entry").unwrap();
    let _: i64 = reader.query_row("SELECT count(*) FROM entry", [], |row| row.get(0)).unwrap();
    for id in ["third", "fourth"] {
        pay(&ledger, id).unwrap();
        let other = Ledger::open(&bench.location(), options()).unwrap();
        pay(&other, &format!("{id} of another")).unwrap();
    }
    reader.execute_batch("COMMIT").unwrap();
    drop(ledger);
    assert_eq!(bench.code(), "opened");
}

/// A file that cannot be written is refused before anything is charged; reading goes on.
#[cfg(unix)]
#[test]
fn what_cannot_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (bench, ledger) = Bench::new();
    drop(ledger);
    allow(&bench.path(""), 0o444);
    if fs::OpenOptions::new().write(true).open(bench.path("")).is_ok() {
        return; // Nothing is forbidden to this user.
    }
    assert_eq!(bench.code(), "ledger.store");
    // SQLite gave its log and index the permissions of the file.
    let files = ["", "-wal", "-shm"].map(|ending| bench.path(ending));
    files.iter().filter(|path| path.exists()).for_each(|path| allow(path, 0o644));
    allow(&bench.path(".anchor"), 0o444);
    assert_eq!(bench.code(), "ledger.anchor");
    allow(&bench.path(".anchor"), 0o644);
    assert_eq!(bench.code(), "opened");
    allow(bench.folder.path(), 0o555);
    assert_eq!(bench.code(), "ledger.store");
    allow(bench.folder.path(), 0o755);
    assert_eq!(bench.code(), "opened");
}

/// What a damaged ledger leads to: an error that is no refusal, or the very same book.
fn same_or_refused(bench: &Bench, book: &Book, what: &str) -> bool {
    let looked = Ledger::look(&bench.location());
    let opened = Ledger::open(&bench.location(), options());
    let same = match &opened {
        Ok(ledger) => match ledger.book() {
            Ok(now) => {
                assert_eq!(now, *book, "{what}");
                true
            }
            Err(error) => {
                assert!(error.is_broken(), "{what}: {error}");
                false
            }
        },
        Err(error) => {
            assert!(error.is_broken(), "{what}: {error}");
            false
        }
    };
    assert!(looked.is_err() || looked.is_ok_and(|now| now == *book), "{what}");
    // An answer comes out as it went in, or not at all; the index may lose it, and then it is paid for again.
    match opened.and_then(|ledger| ledger.charge(request("second"))) {
        Ok(Charged::Before(replay)) => assert_eq!(replay.answer, b"second", "{what}"),
        Ok(Charged::Now(receipt)) => {
            assert_eq!(receipt.position().sequence, book.head().sequence + 1, "{what}")
        }
        Err(error) => assert!(error.is_broken() || error.is_refusal(), "{what}: {error}"),
    }
    same
}

/// A bit or a byte is changed at one place after the other of the file and of the log.
#[test]
fn a_damaged_byte_never_makes_a_book_with_less_spent() {
    let (bench, ledger) = Bench::new();
    let book = ledger.book().unwrap();
    // In use: most of it is in the log. Closed: all of it is in the file.
    let in_use = bench.copy();
    drop(ledger);
    let closed = bench.copy();
    assert_eq!((in_use.len(), closed.len()), (3, 2));
    for (files, damaged, step) in [(&closed, "", 11), (&in_use, "-wal", 17), (&in_use, "", 97)] {
        let (mut same, mut refused) = (0, 0);
        let length = files.iter().find(|(ending, _)| *ending == damaged).unwrap().1.len();
        for place in (0..length).step_by(step) {
            let mut files = files.clone();
            let (_, bytes) = files.iter_mut().find(|(ending, _)| *ending == damaged).unwrap();
            bytes[place] ^= if place % 2 == 0 { 1 << (place % 8) } else { 0xff };
            bench.put_back(&files);
            match same_or_refused(&bench, &book, &format!("byte {place} of ledger.db{damaged}")) {
                true => same += 1,
                false => refused += 1,
            }
        }
        println!("ledger.db{damaged}: {} places, {same} harmless, {refused} refused", same + refused);
        // In the log every byte counts; in the file there is room to spare.
        assert_eq!(same == 0, damaged == "-wal", "{damaged}: {same} harmless, {refused} refused");
    }
}

/// Cut off anywhere, as by a disk that lost its last blocks.
#[test]
fn a_truncated_file_never_makes_a_book_with_less_spent() {
    let (bench, ledger) = Bench::new();
    let book = ledger.book().unwrap();
    let in_use = bench.copy();
    drop(ledger);
    let closed = bench.copy();
    for (files, damaged) in [(&closed, ""), (&in_use, "-wal")] {
        let length = files.iter().find(|(ending, _)| *ending == damaged).unwrap().1.len();
        for length in (0..length).step_by(128) {
            let mut files = files.clone();
            files.iter_mut().find(|(ending, _)| *ending == damaged).unwrap().1.truncate(length);
            bench.put_back(&files);
            let same = same_or_refused(&bench, &book, &format!("{length} bytes of ledger.db{damaged}"));
            assert!(!same || damaged.is_empty(), "{length} bytes of ledger.db{damaged} are as good as all");
        }
    }
}

/// Books start from the last checkpoint, but the chain is verified from its first entry on.
#[test]
fn what_lies_before_a_checkpoint_is_verified_too() {
    let (bench, ledger) = Bench::new();
    std::thread::scope(|scope| {
        for thread in 0..64_u64 {
            let ledger = &ledger;
            scope.spawn(move || {
                for key in 0..160_u64 {
                    ledger
                        .introduce_key(Hash::of(&(thread * 1000 + key).to_be_bytes()), "one of many")
                        .unwrap();
                }
            });
        }
    });
    drop(ledger);
    assert_eq!(bench.code(), "opened");
    let mut checkpoints = 0;
    let count = |sealed: Sealed| {
        checkpoints += u64::from(sealed.is_checkpoint());
        Ok(())
    };
    Ledger::entries(&bench.location(), 0, &mut { count }).unwrap();
    assert!(checkpoints > 0);
    let file = rusqlite::Connection::open(bench.path("")).unwrap();
    let spoilt = file.execute(
        "UPDATE entry SET body = CAST(replace(body, 'first', 'First') AS BLOB) WHERE sequence = 2",
        [],
    );
    assert_eq!(spoilt, Ok(1));
    drop(file);
    assert_eq!(bench.code(), "ledger.chain");
}

/// After every acknowledged entry the anchor remembers it, whichever of two processes wrote it.
#[test]
fn the_anchor_remembers_what_was_acknowledged() {
    let (bench, first) = Bench::new();
    let second = Ledger::open(&bench.location(), options()).unwrap();
    for i in 0..20 {
        let ledger = if i % 3 == 0 { &second } else { &first };
        let paid = receipt(ledger.charge(request(&format!("id{i}"))).unwrap());
        let memory = Anchor::recall(&bench.path(".anchor")).unwrap().unwrap();
        assert_eq!(memory.position, paid.position());
    }
}
