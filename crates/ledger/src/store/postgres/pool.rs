//! A pool of sessions for readers.
//!
//! Reaching a server takes longer than a look at a ledger. So the session of a reader is kept for a minute when it is done, and the
//! next one who reads the same database has it at once. A writer has a session of its own from beginning to end, and
//! leaves none behind: nothing that was set, locked or left open for a charge is ever met by somebody else.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::link::Link;
use super::url::PostgresUrl;

/// Sessions that are kept, over all databases.
const MOST: usize = 8;
/// How long one is kept.
const LONGEST: Duration = Duration::from_secs(60);

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// A session without a transaction.
struct Idle {
    url: PostgresUrl,
    link: Link,
    since: Instant,
    /// The process it belongs to: a copy of this one must not speak in its name.
    process: u32,
}

/// A session with this database, if one is left.
pub(super) fn take(url: &PostgresUrl) -> Option<Link> {
    let process = std::process::id();
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    idle.retain(|idle| idle.since.elapsed() < LONGEST && !idle.link.session.is_closed());
    let place = idle.iter().rposition(|idle| idle.url == *url && idle.process == process)?;
    Some(idle.swap_remove(place).link)
}

/// Keeps a session of a reader for the next one, if it can be told to forget the first.
pub(super) fn give_back(url: &PostgresUrl, link: Link) {
    if link.session.run("ROLLBACK").is_err() {
        return;
    }
    let (url, since, process) = (url.clone(), Instant::now(), std::process::id());
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if idle.len() == MOST {
        idle.remove(0);
    }
    idle.push(Idle { url, link, since, process });
}

#[cfg(test)]
mod tests {
    use super::super::Postgres;
    use super::*;
    use crate::LedgerError;
    use crate::entry::Sealed;
    use crate::store::Store;
    use demur_testkit::PostgresServer;
    use std::sync::Arc;

    fn process(store: &Postgres) -> i32 {
        store.link.session.ask(|client| client.query_one_scalar("SELECT pg_backend_pid()", &[])).unwrap()
    }

    fn count(store: &mut Postgres) -> usize {
        let mut count = 0;
        let counted = store.read(0, &mut |_| {
            count += 1;
            Ok(())
        });
        counted.map(|()| count).unwrap()
    }

    #[test]
    fn the_session_of_a_reader_serves_the_next_one_and_no_writer() {
        let server = PostgresServer::start().unwrap();
        let url: PostgresUrl = server.database().parse().unwrap();
        Postgres::create(&url, LONGEST).unwrap();
        let reader = || Postgres::open_to_read(&url).unwrap();
        let (first, second) = (reader(), reader());
        let known = [process(&first), process(&second)];
        assert_ne!(known[0], known[1]);
        drop((first, second));
        for entries in 0..4 {
            let mut again = reader();
            assert!(known.contains(&process(&again)));
            assert_eq!(count(&mut again), entries);
            let insert = format!("INSERT INTO demur.entry VALUES ({entries}, sha256('x'), 'x')");
            server.sql(&url.to_string(), &insert);
            // A reader sees the moment it began in.
            assert_eq!(count(&mut again), entries);
            let writer = Postgres::open(&url, LONGEST, Arc::new(|_| {})).unwrap();
            assert!(!known.contains(&process(&writer)));
        }
        // Who stops in the middle leaves a session with rows that nobody wants.
        let mut stopped = reader();
        let left = process(&stopped);
        let stop = |_: Sealed| Err(LedgerError::busy("enough"));
        assert!(stopped.read(0, &mut { stop }).is_err());
        drop(stopped);
        assert_ne!(process(&reader()), left);
        server.crash();
        server.recover();
        assert_eq!(count(&mut reader()), 4);
    }
}
