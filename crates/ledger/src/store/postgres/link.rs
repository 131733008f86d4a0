//! [`Link`]: a session with a server that keeps what it promises, and the tables of a ledger there.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Statement;

use super::pool;
use super::session::{Fault, Session};
use super::url::PostgresUrl;
use crate::LedgerError;

/// The version of the tables below.
const TABLES: i32 = 1;

/// Names are compared byte by byte, so that no index depends on the server's idea of a language.
const SCHEMA: &str = r#"
CREATE TABLE demur.mark (version integer NOT NULL);
CREATE TABLE demur.entry (sequence bigint PRIMARY KEY, hash bytea NOT NULL, body bytea NOT NULL);
CREATE TABLE demur.answer (charge bigint PRIMARY KEY, release bigint NOT NULL, requester text COLLATE "C" NOT NULL,
                           request bytea, body bytea NOT NULL);
CREATE INDEX answer_by_request ON demur.answer (request, charge) WHERE request IS NOT NULL;
"#;

/// Every access is by a key, whatever the server's statistics say about tables that grow fast.
const SESSION: &str = "
SET client_min_messages = warning; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = '60s';
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
";

/// A reader sees one moment for as long as it likes: it holds nobody up.
const READER: &str = "
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL idle_in_transaction_session_timeout = 0;
";

const READ: &str = "SELECT sequence, hash, body FROM demur.entry WHERE sequence >= $1 ORDER BY sequence";

const ANSWERS: &str =
    "SELECT charge, body FROM demur.answer WHERE charge >= $1 AND charge < $2 ORDER BY charge";

const FIND: &str = "
SELECT w.place, c.sequence, c.hash, c.body, r.sequence, r.hash, r.body, a.body
FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::boolean[])
     WITH ORDINALITY AS w(requester, charge, request, only_own, place)
LEFT JOIN demur.entry c ON c.sequence = w.charge
LEFT JOIN LATERAL (
    SELECT release, body FROM demur.answer WHERE charge = w.charge
    UNION ALL
    (SELECT release, body FROM demur.answer
     WHERE w.charge IS NULL AND request = w.request AND (requester = w.requester OR NOT w.only_own)
     ORDER BY charge LIMIT 1)
) a ON true
LEFT JOIN demur.entry r ON r.sequence = a.release";

const APPEND: &str = "
WITH entries AS (INSERT INTO demur.entry SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]))
INSERT INTO demur.answer SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[])";

/// A session with what is asked again and again.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) session: Arc<Session>,
    pub(super) read: Statement,
    pub(super) find: Statement,
    pub(super) answers: Statement,
    pub(super) append: Statement,
}

impl Link {
    /// A new session for a writer.
    pub(super) fn to_write(url: &PostgresUrl) -> Result<Self, LedgerError> {
        let link = Self::connect(url)?;
        check_durability(url, &link.session)?;
        Ok(link)
    }

    /// A session of the [pool], or a new one, that sees one moment.
    pub(super) fn to_read(url: &PostgresUrl) -> Result<Self, LedgerError> {
        // One that was kept may have ended meanwhile, and the tables may be others by now.
        let kept = pool::take(url);
        let kept =
            kept.filter(|link| link.session.run(READER).is_ok() && check_version(url, &link.session).is_ok());
        if let Some(link) = kept {
            return Ok(link);
        }
        let link = Self::connect(url)?;
        link.session.run(READER).map_err(|fault| failed(url, "reaching", &fault))?;
        Ok(link)
    }

    fn connect(url: &PostgresUrl) -> Result<Self, LedgerError> {
        let failed = |fault: Fault| failed(url, "reaching", &fault);
        let session = Arc::new(Session::connect(url.config()).map_err(failed)?);
        session.run(SESSION).map_err(failed)?;
        check_version(url, &session)?;
        let prepare = |sql| session.ask(|client| client.prepare(sql)).map_err(failed);
        let (read, find) = (prepare(READ)?, prepare(FIND)?);
        let (answers, append) = (prepare(ANSWERS)?, prepare(APPEND)?);
        Ok(Self { session, read, find, answers, append })
    }
}

/// Whether the database has the tables of a ledger.
pub(super) fn exists(url: &PostgresUrl) -> Result<bool, LedgerError> {
    if let Some(link) = pool::take(url)
        && marked(&link.session).is_ok_and(|marked| marked)
    {
        pool::give_back(url, link);
        return Ok(true);
    }
    let session = Session::connect(url.config()).map_err(|fault| failed(url, "reaching", &fault))?;
    marked(&session).map_err(|fault| failed(url, "reaching", &fault))
}

/// Makes the tables, all or none, unless they are there.
pub(super) fn create(url: &PostgresUrl, patience: Duration) -> Result<(), LedgerError> {
    let make = || {
        let session = Session::connect(url.config())?;
        // Two who create at the same time do so one after the other.
        let wait = milliseconds(patience);
        session.run(&format!(
            "BEGIN; SET LOCAL lock_timeout = {wait}; SELECT pg_advisory_xact_lock(1684368757)"
        ))?;
        if marked(&session)? {
            return Ok(());
        }
        let schema = "SELECT to_regnamespace('demur') IS NULL";
        if session.ask(|client| client.query_one_scalar(schema, &[]))? {
            session.run("CREATE SCHEMA demur")?;
        }
        session.run(SCHEMA)?;
        session.run(&format!("INSERT INTO demur.mark VALUES ({TABLES}); COMMIT"))
    };
    make().map_err(|fault| failed(url, "creating", &fault))
}

/// Whether this is a ledger, with tables that we know.
fn check_version(url: &PostgresUrl, session: &Session) -> Result<(), LedgerError> {
    let sql = "SELECT version FROM demur.mark";
    let version = match session.ask(|client| client.query_opt_scalar::<i32, _>(sql, &[])) {
        Ok(version) => version,
        Err(fault) if fault.is_absence() => None,
        Err(fault) => return Err(failed(url, "reaching", &fault)),
    };
    match version {
        Some(TABLES) => Ok(()),
        Some(version) => {
            Err(wrong(url, &format!("has tables of version {version}, and this software knows {TABLES}")))
        }
        None => Err(wrong(url, "is not a ledger of demur")),
    }
}

/// Whether the server keeps what it promises; what a session may choose is set.
fn check_durability(url: &PostgresUrl, session: &Session) -> Result<(), LedgerError> {
    let failed = |fault: Fault| failed(url, "reaching", &fault);
    session.run("SET synchronous_commit = on").map_err(failed)?;
    for (setting, needed) in [("fsync", "on"), ("full_page_writes", "on"), ("server_encoding", "UTF8")] {
        let sql = format!("SELECT current_setting('{setting}')");
        let found: String = session.ask(|client| client.query_one_scalar(&sql, &[])).map_err(failed)?;
        if found != needed {
            let what =
                format!("cannot be relied on: its server has {setting} = {found}, which has to be {needed}");
            return Err(wrong(url, &what));
        }
    }
    Ok(())
}

fn marked(session: &Session) -> Result<bool, Fault> {
    let sql = "SELECT to_regclass('demur.mark') IS NOT NULL";
    session.ask(|client| client.query_one_scalar(sql, &[]))
}

pub(super) fn failed(url: &PostgresUrl, doing: &str, fault: &Fault) -> LedgerError {
    let text = format!("{doing} the ledger {url} failed: {}", fault.text);
    match fault.is_passing() || fault.is_timeout() {
        true => LedgerError::unreachable(format!("{text}; nothing was charged")),
        false => LedgerError::broken("ledger.store", text),
    }
}

fn wrong(url: &PostgresUrl, what: &str) -> LedgerError {
    LedgerError::broken("ledger.store", format!("the ledger {url} {what}"))
}

/// A waiting time as the server counts it; 0 would be for ever.
pub(super) fn milliseconds(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1)
}
