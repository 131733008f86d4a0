//! [`Backend`]: whatever reads the rows.
//!
//! **Definition.** A backend is given a bounded plan and returns exact bounded whole numbers for each group, with the number of rows it
//! read. Noise, prices and the ledger stay outside.
//!
//! **Guarantee it must give.** That of [`Spec`](demur_tally::Spec): one unit changes at most so many groups by at most so much, whatever the
//! rows hold; and an answer that is complete, or an error.

mod csv;
mod embedded;
mod files;
mod parquet;
mod reading;
mod scan;
mod session;

use datafusion::arrow::array::RecordBatch;
use demur_plan::Bounded;
use demur_plan::catalog::Table;
use demur_tally::Tally;

pub use embedded::Embedded;
pub(crate) use files::stored_order;
pub use files::{check_files, stored_columns};

/// Something that failed while rows were read. It has no words: they would be about the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// Takes some rows.
pub type Take<'a> = dyn Fn(&RecordBatch) -> Result<(), Failed> + Sync + 'a;

/// Whatever reads the rows.
pub trait Backend {
    /// The state of a table's data: the same name, the same data.
    fn version(&self, table: &Table) -> Result<String, crate::EngineError>;

    /// Whether a table can be read, before anything is charged; looks at names and types of files, not at rows.
    fn check(&self, table: &Table) -> Result<(), crate::EngineError>;

    /// Finds out whether a plan can be run, before anything is charged, and gets ready to run it. What fails whatever the rows are fails here, and what would
    /// [multiply](demur_plan::Partners) a row too often. Looks at names and types of files, and reads public rows alone.
    fn prepare(&self, plan: &Bounded) -> Result<Box<dyn Prepared + '_>, crate::EngineError>;

    /// Hands out these columns of all rows of a table, in their declared types, some rows at a time and from several threads.
    fn rows(&self, table: &Table, columns: &[&str], each: &Take<'_>) -> Result<(), Failed>;
}

/// A plan that only waits for its charge.
pub trait Prepared {
    /// The state of the data of all its tables, as [`Backend::version`] names it, one after the other.
    fn version(&self) -> &str;

    /// Reads the rows. The secret decides which groups of a unit count.
    fn tally(self: Box<Self>, secret: [u64; 2]) -> Result<Tally, Failed>;
}
