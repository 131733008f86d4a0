//! [`Embedded`]: the tables' own files, read by DataFusion in this process.
//!
//! **What runs.** The plan that was checked, with each declared table replaced by its files. DataFusion scans, filters and projects;
//! [`demur_tally`] counts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::prelude::{SessionConfig, SessionContext};
use demur_plan::catalog::{Format, Table};
use demur_plan::{Bounded, Declared, declared_schema};
use demur_tally::{Tallier, Tally};
use futures::StreamExt;
use tokio::runtime::Runtime;

use super::{Backend, Failed, csv::CsvFile, files};
use crate::EngineError;

/// Reads tables with all cores of this machine.
pub struct Embedded {
    source: Source,
    cores: usize,
    runtime: Runtime,
    reading: Arc<AtomicBool>,
}

/// Where tables are.
enum Source {
    /// In files named from this folder.
    Files(PathBuf),
    /// In memory, by name.
    Memory(HashMap<String, Vec<RecordBatch>>),
}

impl Embedded {
    /// For a project in this folder.
    pub fn new(folder: &Path) -> Result<Self, EngineError> {
        Self::over(Source::Files(folder.to_owned()))
    }

    /// For tables in memory, by name.
    pub fn in_memory(tables: HashMap<String, Vec<RecordBatch>>) -> Result<Self, EngineError> {
        Self::over(Source::Memory(tables))
    }

    fn over(source: Source) -> Result<Self, EngineError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores).build();
        let runtime = runtime.map_err(|error| {
            EngineError::new("engine.threads", format!("no threads could be started: {error}"))
        })?;
        Ok(Self { source, cores, runtime, reading: Arc::default() })
    }

    /// Set once rows are read, which is after the charge.
    pub fn reading(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.reading)
    }

    fn context(&self) -> SessionContext {
        let config = SessionConfig::new().with_target_partitions(self.cores);
        SessionContext::new_with_config(config)
    }

    /// The table's files as something that can be scanned.
    fn provider(&self, table: &Table) -> Result<Arc<dyn TableProvider>> {
        let schema = declared_schema(table);
        let folder = match &self.source {
            Source::Files(folder) => folder,
            Source::Memory(tables) => {
                let batches = tables.get(&table.name).cloned().unwrap_or_default();
                return Ok(Arc::new(MemTable::try_new(schema, vec![batches])?));
            }
        };
        let files = files::of(table, folder).map_err(|error| DataFusionError::External(Box::new(error)))?;
        match table.format {
            Format::Csv => {
                let file =
                    |path| Arc::new(CsvFile { path, schema: schema.clone() }) as Arc<dyn PartitionStream>;
                Ok(Arc::new(StreamingTable::try_new(schema.clone(), files.into_iter().map(file).collect())?))
            }
            Format::Parquet => {
                let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
                let url =
                    |path: &PathBuf| ListingTableUrl::parse(std::path::absolute(path)?.to_string_lossy());
                let urls = files.iter().map(url).collect::<Result<Vec<_>>>()?;
                let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
                Ok(Arc::new(ListingTable::try_new(config.with_schema(schema))?))
            }
        }
    }

    /// The plan over files instead of declarations.
    fn over_files(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let replaced = plan.transform_up(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let Some(declared) = scan.source.downcast_ref::<Declared>() else {
                    return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
                };
                let source = provider_as_source(self.provider(&declared.table)?);
                Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
            }
            other => Ok(Transformed::no(other)),
        });
        Ok(replaced?.data)
    }

    async fn physical(&self, plan: &Bounded, context: &SessionContext) -> Result<Arc<dyn ExecutionPlan>> {
        let logical = self.over_files(plan.rows.clone())?;
        context.state().create_physical_plan(&logical).await
    }

    async fn run(&self, plan: &Bounded, secret: [u64; 2]) -> Result<Tally> {
        let context = self.context();
        let physical = self.physical(plan, &context).await?;
        let external = |error| DataFusionError::External(Box::new(error));
        let tallier = Tallier::new(plan.spec.clone(), physical.schema().as_ref(), secret, self.cores)
            .map_err(external)?;
        let streams = execute_stream_partitioned(physical, context.task_ctx())?;
        let mut tasks = tokio::task::JoinSet::new();
        for mut stream in streams {
            let mut feed = tallier.feed().map_err(external)?;
            tasks.spawn(async move {
                while let Some(batch) = stream.next().await {
                    feed.push(&batch?).map_err(|error| DataFusionError::External(Box::new(error)))?;
                }
                feed.finish().map_err(|error| DataFusionError::External(Box::new(error)))
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| DataFusionError::External(Box::new(error)))??;
        }
        tallier.finish().map_err(external)
    }
}

impl Backend for Embedded {
    fn version(&self, plan: &Bounded) -> Result<String, EngineError> {
        if let Some(version) = &plan.table.version {
            return Ok(version.clone());
        }
        let Source::Files(folder) = &self.source else {
            return Err(EngineError::new("engine.version", "a table in memory needs a version")
                .hint("give it one in the catalog"));
        };
        let mut version = String::new();
        for file in files::of(&plan.table, folder)? {
            let read = || {
                let metadata = std::fs::metadata(&file)?;
                Ok::<_, std::io::Error>((metadata.len(), metadata.modified()?))
            };
            let (length, modified) = read().map_err(|error| {
                EngineError::new("engine.files", format!("`{}` cannot be read: {error}", file.display()))
            })?;
            let modified = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
            version.push_str(&format!("{} {length} {modified}\n", file.display()));
        }
        Ok(version)
    }

    fn check(&self, plan: &Bounded) -> Result<(), EngineError> {
        match &self.source {
            Source::Files(folder) => files::check_files(&plan.table, folder),
            Source::Memory(_) => Ok(()),
        }
    }

    fn tally(&self, plan: &Bounded, secret: [u64; 2]) -> Result<Tally, Failed> {
        self.reading.store(true, Ordering::Relaxed);
        self.runtime.block_on(self.run(plan, secret)).map_err(|_| Failed)
    }
}
