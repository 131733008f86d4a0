//! What only a server can do to a ledger.

use std::time::Duration;

use demur_ledger::store::{Postgres, PostgresUrl};
use demur_ledger::{BudgetName, Ledger, Location, Options};
use demur_testkit::PostgresServer;

use crate::place::{Place, answer, code, replayed, request, spend, spent, with_budget};

fn url(place: &Place) -> String {
    place.location.to_string()
}

fn own() -> PostgresServer {
    PostgresServer::start().unwrap()
}

#[test]
fn a_server_that_does_not_sync_is_refused() {
    let server = own();
    let place = Place::on(&server);
    drop(with_budget(&place, "1"));
    for setting in ["fsync", "full_page_writes"] {
        server.sql(&url(&place), &format!("ALTER SYSTEM SET {setting} = off"));
        server.crash();
        server.recover();
        let error = place.try_open().err().unwrap();
        assert!(error.is_broken() && error.to_string().contains(&format!("{setting} = off")), "{error}");
        server.sql(&url(&place), &format!("ALTER SYSTEM RESET {setting}"));
    }
    server.crash();
    server.recover();
    spend(&place.open(), request("1"));
}

#[test]
fn a_session_that_would_not_wait_for_the_disk_is_told_to() {
    let place = Place::postgres();
    drop(with_budget(&place, "1"));
    let server = PostgresServer::shared();
    let name = server.sql(&url(&place), "SELECT current_database()");
    server.sql(&url(&place), &format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    server.sql(
        &url(&place),
        "CREATE TABLE public.seen (setting text);
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN INSERT INTO public.seen VALUES (current_setting(''synchronous_commit'')); RETURN NEW; END';
         CREATE TRIGGER see BEFORE INSERT ON demur.entry FOR EACH ROW EXECUTE FUNCTION see()",
    );
    spend(&place.open(), request("1"));
    assert_eq!(server.sql(&url(&place), "SELECT * FROM public.seen"), "on");
}

#[test]
fn a_server_that_comes_back_is_used_again() {
    let server = own();
    let place = Place::on(&server);
    let ledger = with_budget(&place, "1");
    answer(&ledger, request("0.5").id("monday"), b"before");
    server.crash();
    let error = ledger.charge(request("0.1")).unwrap_err();
    assert!(error.is_busy() && error.code() == "ledger.unreachable", "{error}");
    server.recover();
    assert_eq!(replayed(&ledger, request("0.5").id("monday")).1, b"before");
    spend(&ledger, request("0.5"));
    assert_eq!(spent(&place.open(), BudgetName::whole("visits")), "ε = 1");
}

/// The session ends while entries are being written: whether they were is not known, so nothing more is charged.
#[test]
fn a_connection_lost_in_a_transaction_poisons_the_handle() {
    for (when, event) in [("before", "BEFORE INSERT"), ("in the commit", "AFTER INSERT")] {
        let place = Place::postgres();
        let ledger = with_budget(&place, "1");
        let head = ledger.book().unwrap().head();
        let deferred = if event.starts_with("AFTER") {
            ("CONSTRAINT", "DEFERRABLE INITIALLY DEFERRED")
        } else {
            ("", "")
        };
        let trigger = format!(
            "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END';
             CREATE {} TRIGGER stop {event} ON demur.entry {} FOR EACH ROW EXECUTE FUNCTION stop()",
            deferred.0, deferred.1
        );
        PostgresServer::shared().sql(&url(&place), &trigger);
        let error = ledger.charge(request("0.5")).unwrap_err();
        assert!(error.is_broken() && error.code() == "ledger.store", "{when}: {error}");
        assert_eq!(code(&ledger, request("0.5")), "ledger.poisoned", "{when}");
        PostgresServer::shared().sql(&url(&place), "DROP TRIGGER stop ON demur.entry");
        let ledger = place.open();
        assert_eq!(ledger.book().unwrap().head(), head, "{when}");
        spend(&ledger, request("1"));
    }
}

#[test]
fn a_commit_that_turns_into_a_rollback_is_not_believed() {
    let place = Place::postgres();
    let ledger = with_budget(&place, "1");
    let head = ledger.book().unwrap().head();
    let trigger = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
                   CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON demur.entry DEFERRABLE INITIALLY DEFERRED
                   FOR EACH ROW EXECUTE FUNCTION fail()";
    PostgresServer::shared().sql(&url(&place), trigger);
    assert!(ledger.charge(request("0.5")).unwrap_err().is_broken());
    assert_eq!(code(&ledger, request("0.5")), "ledger.poisoned");
    PostgresServer::shared().sql(&url(&place), "DROP TRIGGER fail ON demur.entry");
    assert_eq!(place.open().book().unwrap().head(), head);
}

#[test]
fn two_machines_share_a_ledger_each_with_its_own_anchor() {
    let place = Place::postgres();
    let first = with_budget(&place, "1");
    let folder = tempfile::tempdir().unwrap();
    let there: PostgresUrl = url(&place).parse().unwrap();
    let there = Location::Postgres(there.keep_in(&folder.path().join("not/yet/there")));
    let error = Ledger::open(&there, Options::default()).err().unwrap();
    assert_eq!(error.code(), "ledger.anchor.missing");
    let second = Ledger::adopt(&there, "a second server", Options::default()).unwrap();
    spend(&second, request("0.5"));
    spend(&first, request("0.5"));
    assert_eq!(code(&second, request("0.1")), crate::place::EXHAUSTED);
    drop((first, second));
    // Each remembers what it wrote itself.
    place.cut(3);
    assert_eq!(Ledger::open(&there, Options::default()).err().unwrap().code(), "ledger.rollback");
    assert_eq!(place.refusal(), "ledger.rollback");
}

#[test]
fn two_who_create_at_once_create_one_ledger() {
    let place = Place::postgres();
    let names: Vec<_> = std::thread::scope(|scope| {
        let create = |_| {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                let there: PostgresUrl = url(&place).parse().unwrap();
                let there = Location::Postgres(there.keep_in(folder.path()));
                Ledger::create(&there, Options::default()).unwrap().book().unwrap().ledger()
            })
        };
        let threads: Vec<_> = (0..8).map(create).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
}

#[test]
fn what_is_not_a_ledger_is_not_opened() {
    let place = Place::postgres();
    let open =
        || Postgres::open(&url(&place).parse().unwrap(), Duration::from_secs(1), std::sync::Arc::new(|_| {}));
    let no_ledger = open().err().unwrap();
    assert!(
        no_ledger.is_broken() && no_ledger.to_string().ends_with("is not a ledger of demur"),
        "{no_ledger}"
    );
    drop(place.create());
    for (change, said) in [
        ("UPDATE {mark} SET version = 2", "has tables of version 2, and this software knows 1"),
        ("DELETE FROM {mark}", "is not a ledger of demur"),
        (
            "ALTER TABLE {mark} ALTER version TYPE text",
            "cannot convert between the Rust type `i32` and the Postgres type `text`",
        ),
    ] {
        place.sql(change);
        if change.starts_with("ALTER") {
            place.sql("INSERT INTO {mark} VALUES ('one')");
        }
        let error = open().err().unwrap();
        assert!(error.is_broken() && error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let missing = "postgres://demur:secret@127.0.0.1:1/ledger".to_owned();
    let unknown = PostgresServer::shared().url("no_such_database").replace("demur@", "demur:secret@");
    for (text, code) in [(missing, "ledger.unreachable"), (unknown, "ledger.store")] {
        let url: PostgresUrl = text.parse().unwrap();
        let location = Location::Postgres(url.keep_in(folder.path()));
        let error = Ledger::create(&location, Options::default()).err().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(&location.to_string()), "{error}");
        assert!(!format!("{error} {error:?} {location:?}").contains("secret"), "{error:?}");
    }
}

#[test]
fn a_task_of_another_runtime_may_use_a_ledger() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let place = Place::postgres();
        let ledger = with_budget(&place, "1");
        spend(&ledger, request("1"));
        drop(ledger);
        assert_eq!(spent(&place.open(), BudgetName::whole("visits")), "ε = 1");
    });
}

/// A reader holds nobody up and is held up by nobody.
#[test]
fn readers_and_the_writer_do_not_wait_for_each_other() {
    let place = Place::postgres();
    let ledger = with_budget(&place, "1");
    let before = ledger.book().unwrap();
    let mut holder = place.store(std::sync::Arc::new(|_| {}));
    holder.begin().unwrap();
    assert_eq!(Ledger::look(&place.location).unwrap(), before);
    holder.abandon().unwrap();
    let mut charged = false;
    let mut visit = |_| {
        if !std::mem::replace(&mut charged, true) {
            spend(&ledger, request("0.5"));
        }
        Ok(())
    };
    Ledger::entries(&place.location, 0, &mut visit).unwrap();
    assert!(charged);
}
