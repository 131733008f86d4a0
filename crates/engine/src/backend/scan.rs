//! [`FileTable`]: the files of a table as something that can be scanned.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, exec_err};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use demur_plan::catalog::Format;
use futures::StreamExt;

use super::csv::CsvFile;
use super::parquet::ParquetPart;

/// Files that have the same columns; only those that are asked for are read.
#[derive(Debug)]
pub(super) struct FileTable {
    pub(super) schema: SchemaRef,
    pub(super) format: Format,
    pub(super) files: Vec<PathBuf>,
    /// Into how many parts a file is divided at most.
    pub(super) parts: usize,
    /// Set when nobody waits for the rows any more.
    pub(super) stopped: Arc<AtomicBool>,
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => self.schema.clone(),
        };
        let mut parts: Vec<Arc<dyn PartitionStream>> = Vec::new();
        for path in &self.files {
            match self.format {
                Format::Csv => parts.push(Arc::new(CsvFile { path: path.clone(), schema: schema.clone() })),
                Format::Parquet => {
                    for part in ParquetPart::of(path, &schema, self.parts)? {
                        parts.push(Arc::new(part));
                    }
                }
            }
        }
        let stoppable = |rows| -> Arc<dyn PartitionStream> {
            Arc::new(Stoppable { rows, stopped: Arc::clone(&self.stopped) })
        };
        let parts = parts.into_iter().map(stoppable).collect();
        Ok(Arc::new(StreamingTableExec::try_new(schema, parts, None, [], false, None)?))
    }
}

/// Rows that fail to come once nobody waits for them: a filter above may keep none of them, so it is here that reading ends.
#[derive(Debug)]
struct Stoppable {
    rows: Arc<dyn PartitionStream>,
    stopped: Arc<AtomicBool>,
}

impl PartitionStream for Stoppable {
    fn schema(&self) -> &SchemaRef {
        self.rows.schema()
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let stopped = Arc::clone(&self.stopped);
        let rows = self.rows.execute(context).map(move |batch| match stopped.load(Ordering::Relaxed) {
            true => exec_err!("nobody waits any more"),
            false => batch,
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.schema()), rows))
    }
}
