//! [`FileTable`]: the files of a table as something that can be scanned.
//!
//! About how many rows there are is told to the planner, so that a join makes its table of the smaller side. The number is never exact there: an exact one would be taken for an answer.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, exec_err};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
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
        let mut rows = 0;
        for path in &self.files {
            match self.format {
                Format::Csv => {
                    rows += (std::fs::metadata(path)?.len() / BYTES_PER_ROW) as usize;
                    parts.push(Arc::new(CsvFile { path: path.clone(), schema: schema.clone() }));
                }
                Format::Parquet => {
                    for part in ParquetPart::of(path, &schema, self.parts)? {
                        rows += part.rows();
                        parts.push(Arc::new(part));
                    }
                }
            }
        }
        let stoppable = |rows| -> Arc<dyn PartitionStream> {
            Arc::new(Stoppable { rows, stopped: Arc::clone(&self.stopped) })
        };
        let parts = parts.into_iter().map(stoppable).collect();
        let streams = StreamingTableExec::try_new(schema, parts, None, [], false, None)?;
        Ok(Arc::new(Counted { streams, rows }))
    }
}

/// Of text, about.
const BYTES_PER_ROW: u64 = 64;

/// Streams, and about how many rows they have.
#[derive(Debug)]
struct Counted {
    streams: StreamingTableExec,
    rows: usize,
}

impl ExecutionPlan for Counted {
    fn name(&self) -> &str {
        "Counted"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.streams.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.streams.execute(partition, context)
    }

    fn partition_statistics(&self, _: Option<usize>) -> Result<Arc<Statistics>> {
        let unknown = Statistics::new_unknown(&self.streams.schema());
        Ok(Arc::new(Statistics { num_rows: Precision::Inexact(self.rows), ..unknown }))
    }
}

impl DisplayAs for Counted {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
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
