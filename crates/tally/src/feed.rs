//! [`Feed`]: one stream of batches on its way into a tally.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow::array::RecordBatch;

use crate::error::TallyError;
use crate::groups::lock;
use crate::rows::RowSums;
use crate::scatter::Scatter;
use crate::shared::Shared;
use crate::sources::Reader;

/// Takes the batches of one partition.
///
/// Feeds of one [`Tallier`](crate::Tallier) work on different threads at the same time. A feed that is dropped without [`finish`](Self::finish), or whose `push` has failed, makes
/// the whole tally fail: half of the rows is not an answer.
#[must_use = "a feed that is not finished makes the tally fail"]
pub struct Feed {
    shared: Arc<Shared>,
    reader: Reader,
    rows: u64,
    failed: bool,
    sums: Sums,
}

enum Sums {
    Rows(RowSums),
    Units(Box<Scatter>),
}

impl Feed {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self, TallyError> {
        shared.opened.fetch_add(1, Relaxed);
        let sums = if shared.spec.has_unit {
            Sums::Units(Box::new(Scatter::new(&shared)))
        } else {
            Sums::Rows(RowSums::new(&shared.layout))
        };
        Ok(Self { reader: Reader::new(&shared)?, shared, rows: 0, failed: false, sums })
    }

    /// Adds the rows of a batch, whose columns have the types the tally was made for.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), TallyError> {
        if self.failed {
            return Err(TallyError::unfinished("an earlier batch of this feed has failed"));
        }
        self.failed = true;
        self.check(batch)?;
        self.reader.read(batch, &self.shared)?;
        self.rows += batch.num_rows() as u64;
        match &mut self.sums {
            Sums::Rows(sums) => {
                sums.add(
                    &self.shared.layout,
                    &self.reader.groups,
                    &self.reader.sources,
                    &self.shared.secret,
                )?;
            }
            Sums::Units(scatter) => scatter.add(batch.column(0), &self.reader, &self.shared)?,
        }
        self.failed = false;
        Ok(())
    }

    fn check(&self, batch: &RecordBatch) -> Result<(), TallyError> {
        let types = &self.shared.types;
        if batch.num_columns() != types.len() {
            return Err(TallyError::batch(format!(
                "a batch has {} columns, not {}",
                batch.num_columns(),
                types.len()
            )));
        }
        if u32::try_from(batch.num_rows()).is_err() {
            return Err(TallyError::too_large("rows in a batch"));
        }
        for (index, (column, wanted)) in batch.columns().iter().zip(types).enumerate() {
            if column.data_type() != wanted {
                let found = column.data_type();
                return Err(TallyError::batch(format!(
                    "column {index} of a batch has type {found}, not {wanted}"
                )));
            }
        }
        Ok(())
    }

    /// Hands over what has been gathered.
    pub fn finish(self) -> Result<(), TallyError> {
        if self.failed {
            return Err(TallyError::unfinished("a batch of this feed has failed"));
        }
        match self.sums {
            Sums::Rows(sums) => {
                let found = sums.finish(&self.shared.layout);
                lock(&self.shared.totals)?.merge(found, &self.shared.secret)?;
            }
            Sums::Units(mut scatter) => scatter.finish(&self.shared)?,
        }
        self.shared.rows.fetch_add(self.rows, Relaxed);
        self.shared.finished.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl fmt::Debug for Feed {
    /// Neither rows nor the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}
