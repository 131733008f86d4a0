//! What a ledger does, wherever it is kept: every behaviour is tested on each store.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how a test fails")]

mod budgets;
mod chain;
mod charging;
mod place;
mod properties;
mod replays;
#[cfg(feature = "postgres")]
mod server;
mod together;

/// Runs each function as a test on each store.
macro_rules! on_every_store {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(&crate::place::Place::sqlite()); })*
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[test] fn $name() { super::$name(&crate::place::Place::postgres()); })*
        }
    };
}
use on_every_store;
