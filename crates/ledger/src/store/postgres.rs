//! [`Postgres`]: the store that several machines share.
//!
//! **Where.** In the schema `demur` of the database that the URL names: one ledger per database.
//!
//! **One writer.** [`begin`](Store::begin) locks the table `demur.mark` against everybody until the transaction ends; readers
//! are not held up. Nothing is ever written to that table, so no upkeep of the server's asks for the same lock.
//!
//! **Durability.** A commit returns after the server has synced its log to disk: that is checked when the connection is made
//! (`fsync`, `full_page_writes`) or set for it (`synchronous_commit`). A server that is replaced by a copy of itself
//! which had not received everything is noticed like any older copy, by the [anchor](crate::anchor) of each machine.
//!
//! **Faults.** A connection that is lost between transactions is made again, since nothing was under way. One that is lost in a
//! transaction is final for this handle: whether the commit happened is known only when the chain is read again. A
//! writer that is silent for a minute loses its transaction, so a dead machine does not hold up the others.
//!
//! **Speed.** A batch takes four exchanges with the server, however many charges share it: lock, look up, append, commit. Readers have
//! their sessions from a pool.
//!
//! **Not yet.** TLS. Until then the way to the server has to be safe by itself: a socket, a private network, a tunnel. A
//! connection pooler in between must keep one session per connection.

mod link;
mod pool;
mod session;
mod url;

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use tokio_postgres::types::ToSql;
use tokio_postgres::{SimpleQueryMessage, Statement};

use self::link::{Link, failed, milliseconds};
use self::session::{Fault, wait};
use super::lock::{NOTICEABLE, OnWait};
use super::{Found, Row, Store, StoredAnswer, VisitAnswer, VisitEntry, Wanted};
use crate::entry::{Position, Sealed};
use crate::{Hash, LedgerError};

pub use self::url::PostgresUrl;

/// Bytes in one statement, about; the server takes no more than a gigabyte.
const STATEMENT: usize = 16 << 20;

/// Entries in a PostgreSQL database.
pub struct Postgres {
    url: PostgresUrl,
    link: Link,
    /// Whether a transaction is under way.
    begun: bool,
    /// Whether the session must not be used any more.
    lost: bool,
    /// Whether rows may still be on their way that nobody wants any more.
    unread: Cell<bool>,
    /// How long to wait for other writers; a reader waits for nobody.
    patience: Option<(Duration, OnWait)>,
}

impl Postgres {
    /// Whether the database has the tables of a ledger.
    pub fn exists(url: &PostgresUrl) -> Result<bool, LedgerError> {
        link::exists(url)
    }

    /// Makes the tables, all or none, unless they are there.
    pub fn create(url: &PostgresUrl, patience: Duration) -> Result<(), LedgerError> {
        link::create(url, patience)
    }

    /// Existing tables, for reading and writing.
    pub fn open(url: &PostgresUrl, patience: Duration, on_wait: OnWait) -> Result<Self, LedgerError> {
        let link = Link::to_write(url)?;
        Ok(Self::new(url, link, Some((patience, on_wait))))
    }

    /// Existing tables, for reading only: as they are now, whatever is written meanwhile.
    pub fn open_to_read(url: &PostgresUrl) -> Result<Self, LedgerError> {
        let link = Link::to_read(url)?;
        Ok(Self::new(url, link, None))
    }

    fn new(url: &PostgresUrl, link: Link, patience: Option<(Duration, OnWait)>) -> Self {
        Self { url: url.clone(), link, begun: false, lost: false, unread: Cell::new(false), patience }
    }

    fn failed(&self, doing: &str, fault: &Fault) -> LedgerError {
        failed(&self.url, doing, fault)
    }

    /// Waits in the server's queue for as long as is said, and tells the last entry.
    fn lock(&mut self, patience: Duration) -> Result<Option<Position>, Fault> {
        let sql = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = {};
             LOCK TABLE demur.mark IN EXCLUSIVE MODE;
             SELECT sequence, encode(hash, 'hex') FROM demur.entry ORDER BY sequence DESC LIMIT 1",
            milliseconds(patience)
        );
        self.begun = true;
        let said = self.link.session.ask(|client| client.simple_query(&sql))?;
        let row = said.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let Some(row) = row else { return Ok(None) };
        let sequence = row.get(0).and_then(|text| text.parse().ok());
        let hash = row.get(1).and_then(|text| text.parse().ok());
        match sequence.zip(hash) {
            Some((sequence, hash)) => Ok(Some(Position { sequence, hash })),
            None => Err(Fault::damage("the last entry has no number or no hash")),
        }
    }

    /// Who has the lock, as far as the server tells.
    fn holder(&self) -> String {
        let sql = "SELECT format('%s from %s (session %s of the server)',
                                 coalesce(nullif(a.application_name, ''), 'a program without a name'),
                                 coalesce(host(a.client_addr), 'the machine of the server'), a.pid)
                   FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                   JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
                   WHERE l.relation = 'demur.mark'::regclass AND l.mode = 'ExclusiveLock' AND l.granted";
        let said = self.link.session.ask(|client| client.query_opt_scalar(sql, &[]));
        said.ok().flatten().unwrap_or_else(|| "another session".to_owned())
    }

    fn too_long(&self, patience: Duration) -> LedgerError {
        let text = format!(
            "the ledger {} is in use by {} and was not free for {} s; nothing was charged",
            self.url,
            self.holder(),
            patience.as_secs()
        );
        LedgerError::busy(text)
    }

    /// Shows rows as they come: the server waits when we are slow, and nothing piles up here.
    fn stream(
        &self,
        statement: &Statement,
        values: &[i64],
        visit: &mut dyn FnMut(&tokio_postgres::Row) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let failed = |fault: Fault| self.failed("reading", &fault);
        self.unread.set(true);
        let rows = self.link.session.ask(|client| client.query_raw(statement, values)).map_err(failed)?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) = wait(rows.try_next()).map_err(|error| failed(error.into()))? {
            visit(&row)?;
        }
        self.unread.set(false);
        Ok(())
    }

    fn look_up(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Found>, Fault> {
        let requesters: Vec<&str> = wanted.iter().map(|wanted| wanted.requester).collect();
        let charges: Vec<Option<i64>> = wanted.iter().map(|wanted| wanted.charge.map(bound)).collect();
        let requests =
            wanted.iter().map(|wanted| wanted.request.as_ref().map(|hash| hash.bytes().as_slice()));
        let requests: Vec<Option<&[u8]>> = requests.collect();
        let only_own: Vec<bool> = wanted.iter().map(|wanted| wanted.only_own).collect();
        let values: [&(dyn ToSql + Sync); 4] = [&requesters, &charges, &requests, &only_own];
        let mut found = vec![Found::default(); wanted.len()];
        for row in self.link.session.ask(|client| client.query(&self.link.find, &values))? {
            let place: i64 = row.try_get(0)?;
            let place = usize::try_from(place - 1).ok().and_then(|place| found.get_mut(place));
            let place = place.ok_or_else(|| Fault::damage("an answer to another question"))?;
            let release = sealed(&row, 4)?;
            let bytes = row.try_get::<_, Option<Vec<u8>>>(7)?;
            let answer = release.zip(bytes).map(|(release, bytes)| StoredAnswer { release, bytes });
            *place = Found { charge: sealed(&row, 1)?, answer };
        }
        Ok(found)
    }

    fn insert(&self, rows: &[Row]) -> Result<(), Fault> {
        let number = |row: &Row| row.sealed.position.sequence as i64;
        let sequences: Vec<i64> = rows.iter().map(number).collect();
        let hashes: Vec<&[u8]> = rows.iter().map(|row| row.sealed.position.hash.bytes().as_slice()).collect();
        let bodies: Vec<&[u8]> = rows.iter().map(|row| row.sealed.body.as_slice()).collect();
        let answered = rows.iter().filter_map(|row| row.answer.as_ref().map(|answer| (answer, number(row))));
        let (answers, releases): (Vec<_>, Vec<i64>) = answered.unzip();
        let paid: Vec<i64> = answers.iter().map(|answer| answer.charge as i64).collect();
        let requesters: Vec<&str> = answers.iter().map(|answer| answer.requester.as_str()).collect();
        let requests =
            answers.iter().map(|answer| answer.request.as_ref().map(|hash| hash.bytes().as_slice()));
        let requests: Vec<Option<&[u8]>> = requests.collect();
        let contents: Vec<&[u8]> = answers.iter().map(|answer| answer.bytes.as_slice()).collect();
        let values: [&(dyn ToSql + Sync); 8] =
            [&sequences, &hashes, &bodies, &paid, &releases, &requesters, &requests, &contents];
        self.link.session.ask(|client| client.execute(&self.link.append, &values)).map(drop)
    }
}

impl Store for Postgres {
    fn begin(&mut self) -> Result<Option<Position>, LedgerError> {
        let Some((patience, on_wait)) = self.patience.clone() else {
            return Err(LedgerError::ours("a reader tried to write"));
        };
        let start = Instant::now();
        let (mut told, mut again) = (false, false);
        loop {
            if self.lost || self.link.session.is_closed() {
                self.link = Link::to_write(&self.url)?;
                self.lost = false;
            }
            let left = patience.saturating_sub(start.elapsed());
            let fault = match self.lock(if told { left } else { left.min(NOTICEABLE) }) {
                Ok(head) => return Ok(head),
                Err(fault) => fault,
            };
            self.abandon()?;
            if fault.is_passing() && !again {
                // The server may have been restarted since the last transaction.
                (again, self.lost) = (true, true);
            } else if !fault.is_timeout() {
                return Err(self.failed("locking", &fault));
            } else if start.elapsed() >= patience {
                return Err(self.too_long(patience));
            } else if !told {
                on_wait(&self.holder());
                told = true;
            }
        }
    }

    fn read(&mut self, sequence: u64, visit: &mut VisitEntry<'_>) -> Result<(), LedgerError> {
        self.stream(&self.link.read, &[bound(sequence)], &mut |row| {
            let entry =
                sealed(row, 0).and_then(|entry| entry.ok_or_else(|| Fault::damage("an entry is empty")));
            visit(entry.map_err(|fault| self.failed("reading", &fault))?)
        })
    }

    fn find(&mut self, wanted: &[Wanted<'_>]) -> Result<Vec<Found>, LedgerError> {
        self.look_up(wanted).map_err(|fault| self.failed("reading", &fault))
    }

    fn answers(&mut self, charges: Range<u64>, visit: &mut VisitAnswer<'_>) -> Result<(), LedgerError> {
        let bounds = [bound(charges.start), bound(charges.end)];
        self.stream(&self.link.answers, &bounds, &mut |row| {
            let answer = || Ok((row.try_get::<_, i64>(0)?, row.try_get::<_, &[u8]>(1)?));
            let (charge, bytes) = answer().map_err(|fault: Fault| self.failed("reading", &fault))?;
            visit(charge.unsigned_abs(), bytes)
        })
    }

    fn append(&mut self, rows: &[Row]) -> Result<(), LedgerError> {
        let mut rest = rows;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest));
            self.insert(now).map_err(|fault| self.failed("writing", &fault))?;
            rest = later;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), LedgerError> {
        self.begun = false;
        self.link.session.run("COMMIT").map_err(|fault| {
            let text =
                format!("the ledger {} did not confirm what was written last: {}", self.url, fault.text);
            LedgerError::broken("ledger.store", text)
        })
    }

    fn abandon(&mut self) -> Result<(), LedgerError> {
        if !std::mem::take(&mut self.begun) {
            return Ok(());
        }
        match self.link.session.run("ROLLBACK") {
            // The server forgets by itself what a lost session has left.
            Err(fault) if fault.is_passing() => {
                self.lost = true;
                Ok(())
            }
            done => done.map_err(|fault| self.failed("leaving", &fault)),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.patience.is_none() && !self.unread.get() {
            pool::give_back(&self.url, self.link.clone());
        }
    }
}

fn bound(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// How many of these rows go into one statement: at least one.
fn fitting(rows: &[Row]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&Row| {
        bytes += row.sealed.body.len() + row.answer.as_ref().map_or(0, |answer| answer.bytes.len());
        bytes <= STATEMENT
    };
    rows.iter().take_while(fits).count().max(1)
}

/// The entry in three columns from `first` on, if there is one.
fn sealed(row: &tokio_postgres::Row, first: usize) -> Result<Option<Sealed>, Fault> {
    let Some(sequence) = row.try_get::<_, Option<i64>>(first)? else { return Ok(None) };
    let sequence = u64::try_from(sequence).ok();
    let hash = Hash::from_bytes(row.try_get(first + 1)?);
    let (sequence, hash) =
        sequence.zip(hash).ok_or_else(|| Fault::damage("an entry has no number or no hash"))?;
    Ok(Some(Sealed { position: Position { sequence, hash }, body: row.try_get(first + 2)? }))
}
