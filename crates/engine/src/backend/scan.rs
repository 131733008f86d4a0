//! [`FileTable`]: the files of a table as something that can be scanned.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use demur_plan::catalog::Format;

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
        Ok(Arc::new(StreamingTableExec::try_new(schema, parts, None, [], false, None)?))
    }
}
