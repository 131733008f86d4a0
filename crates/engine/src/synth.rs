//! Synthetic data: a table like the private one, about nobody.
//!
//! ```text
//! catalog ─► codes ─► charge ─► rows ─► model ─► certificate        (Engine::synthesise)
//!                                        └─► rows, answers, a report   (free)
//! ```
//!
//! **Guarantee.** What the columns can hold comes from the catalog or from charged questions, and the model is fitted under a charge that is on disk before a row is read. A
//! model is public: all that is made of it is free.
//!
//! The mathematics are in [`demur_synth`]; here a table becomes codes and codes become a table.

mod asked;
mod coding;
mod compare;
mod domain;
mod fit;
mod made;
mod rows;
mod wanted;
mod workload;
mod write;

pub use coding::{CodedColumn, Coding};
pub use compare::{Compared, TRIPLES};
pub use demur_synth::{Growth, Model, Progress, Watch};
pub use domain::Shape;
pub use fit::{AskedColumn, Made};
pub use made::{Header, Synthetic};
pub use wanted::{Method, Shares, Wanted};
pub use workload::Workload;
pub use write::{CsvRows, RowsFile, write_csv, write_rows};

pub(crate) use coding::Coder;
pub(crate) use compare::Distances;
pub(crate) use fit::Modelled;
pub(crate) use made::{bytes, hexadecimal};
pub(crate) use rows::unit_hashes;
