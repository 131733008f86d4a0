//! [`Embedded`]: the tables' own files, read by DataFusion in this process.
//!
//! **What runs.** The plan that was checked, with each declared table replaced by its files. DataFusion scans, filters and projects ([`session`](super::session));
//! [`demur_tally`] counts ([`reading`](super::reading)).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScanBuilder};
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream_partitioned};
use datafusion::prelude::SessionContext;
use demur_plan::catalog::{Format, Table};
use demur_plan::{Bounded, Declared, Partners, declared_schema};
use demur_tally::{Limits, Tally};
use futures::StreamExt;
use tokio::runtime::Runtime;

use super::{Backend, Failed, Prepared, Take, files, reading::Reading, scan::FileTable, session::session};
use crate::EngineError;

/// Reads tables with all cores of this machine.
pub struct Embedded {
    source: Source,
    limits: Limits,
    runtime: Runtime,
    reading: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
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
        let limits = Limits::default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(limits.workers).build();
        let runtime = runtime.map_err(|error| {
            EngineError::new("engine.threads", format!("no threads could be started: {error}"))
        })?;
        Ok(Self { source, limits, runtime, reading: Arc::default(), stopped: Arc::default() })
    }

    /// Lets units and their rows take so many bytes of memory; more of them wait on disk.
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.limits.memory = bytes;
        self
    }

    /// Set once rows are read, which is after the charge.
    pub fn reading(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.reading)
    }

    /// Set it, and files are read no further: this is a failure like any other, and what was charged stays charged.
    pub fn stopped(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn session(&self) -> SessionContext {
        session(self.limits.workers)
    }

    /// The table's files as something that can be scanned; some of its strings as dictionaries.
    fn provider(&self, table: &Table, dictionaries: &[String]) -> Result<Arc<dyn TableProvider>> {
        let schema = declared_schema(table);
        let folder = match &self.source {
            Source::Files(folder) => folder,
            Source::Memory(tables) => {
                let batches = tables.get(&table.name).cloned().unwrap_or_default();
                return Ok(Arc::new(MemTable::try_new(schema, vec![batches])?));
            }
        };
        let files = files::of(table, folder).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let schema = match table.format {
            Format::Csv => schema,
            Format::Parquet => Arc::new(with_dictionaries(&schema, dictionaries)),
        };
        Ok(Arc::new(FileTable {
            schema,
            format: table.format,
            files,
            parts: self.limits.workers,
            stopped: self.stopped(),
        }))
    }

    /// The plan over files instead of declarations.
    fn over_files(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let dictionaries = keys_alone(&plan);
        let replaced = plan.transform_up(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let Some(declared) = scan.source.downcast_ref::<Declared>() else {
                    return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
                };
                let source = provider_as_source(self.provider(&declared.table, &dictionaries)?);
                let scan = TableScanBuilder::new(scan.table_name, source)
                    .with_projection(scan.projection)
                    .with_filters(scan.filters)
                    .with_fetch(scan.fetch)
                    .build()?;
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            other => Ok(Transformed::yes(other.recompute_schema()?)),
        });
        Ok(replaced?.data)
    }

    /// A plan as what DataFusion will do, and where it is done.
    async fn physical(&self, plan: &LogicalPlan) -> Result<(SessionContext, Arc<dyn ExecutionPlan>)> {
        let session = self.session();
        let logical = self.over_files(plan.clone())?;
        let physical = session.state().create_physical_plan(&logical).await?;
        Ok((session, physical))
    }

    /// Gets ready to run a plan whose tables have these versions.
    fn ready(&self, plan: &Bounded, version: String) -> Result<Box<Reading<'_>>> {
        let physical = self.runtime.block_on(self.physical(&plan.rows))?;
        Ok(Box::new(Reading::new(self, plan, version, physical)?))
    }

    /// Reads the rows of a plan, whether or not it was found out before that it can be run.
    pub fn tally(&self, plan: &Bounded, secret: [u64; 2]) -> std::result::Result<Tally, Failed> {
        self.ready(plan, String::new()).map_err(|_| Failed)?.tally(secret)
    }

    /// Counts public rows, and runs a plan over tables with a row of NULLs each, if it has parts that may fail: what is written in the question as a table, and windows.
    fn can_run(&self, plan: &Bounded) -> std::result::Result<(), EngineError> {
        let mut found = Vec::new();
        for partners in &plan.partners {
            found.push(self.partners(partners)?);
            Partners::check(&found)?;
        }
        let may_fail =
            |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Values(_) | LogicalPlan::Window(_)));
        if !plan.rows.exists(may_fail).unwrap_or(true) {
            return Ok(());
        }
        let row = |table: &Table| {
            let schema = declared_schema(table);
            let nulls = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
            RecordBatch::try_new(schema, nulls).map(|row| (table.name.clone(), vec![row]))
        };
        let tables = plan.tables.iter().map(row).collect::<std::result::Result<HashMap<_, _>, _>>();
        let ran = tables
            .map_err(|_| Failed)
            .and_then(|tables| Self::in_memory(tables).map_err(|_| Failed)?.tally(plan, [0; 2]));
        ran.map(|_| ()).map_err(|_| always_fails())
    }

    /// What a side of a join that everybody knows comes to.
    fn partners(&self, partners: &Partners) -> Result<(u64, u64), EngineError> {
        let count = async {
            let (session, physical) = self.physical(&partners.plan).await?;
            collect(physical, session.task_ctx()).await
        };
        let batches = self.runtime.block_on(count).map_err(|_| always_fails())?;
        let mut rows = batches.iter().filter(|batch| batch.num_rows() == 1);
        let row = rows.next().ok_or_else(always_fails)?;
        let number = |column: usize| {
            let number = row.column(column).as_primitive_opt::<Int64Type>().ok_or_else(always_fails)?;
            Ok::<_, EngineError>(if number.is_valid(0) { number.value(0).unsigned_abs() } else { 0 })
        };
        Ok((if partners.multiplies { number(0)? } else { 1 }, number(1)?))
    }
}

fn always_fails() -> EngineError {
    let text = "this question fails whatever the rows are, because of a value that is written in it, or of public rows that cannot be read";
    EngineError::new("engine.question", text)
        .hint("look at VALUES, whose values must be of one type in each column, at the third argument of LAG and LEAD, and at the files of public tables")
}

/// Something that should have been refused with a reason. What the library below says might quote a file.
fn cannot_be_run() -> EngineError {
    let text = "this question cannot be run, whatever the rows are";
    EngineError::new("engine.question", text)
        .hint("write it in another way; please report it, since it should have been refused with a reason")
}

/// The columns of strings that are keys as they are and nothing else, where rows come straight from a table.
fn keys_alone(plan: &LogicalPlan) -> Vec<String> {
    let LogicalPlan::Projection(projection) = plan else { return Vec::new() };
    let mut below = projection.input.as_ref();
    let mut used: Vec<String> = Vec::new();
    while let LogicalPlan::Filter(filter) = below {
        used.extend(filter.predicate.column_refs().into_iter().map(|column| column.name.clone()));
        below = filter.input.as_ref();
    }
    if !matches!(below, LogicalPlan::TableScan(_)) {
        return Vec::new();
    }
    let mut keys = Vec::new();
    for expr in &projection.expr {
        match expr {
            Expr::Alias(alias) if alias.name.starts_with("key ") => match alias.expr.as_ref() {
                Expr::Column(column) => keys.push(column.name.clone()),
                other => used.extend(other.column_refs().into_iter().map(|column| column.name.clone())),
            },
            other => used.extend(other.column_refs().into_iter().map(|column| column.name.clone())),
        }
    }
    keys.retain(|key| !used.contains(key));
    keys
}

/// The schema with these columns of strings as dictionaries.
fn with_dictionaries(schema: &Schema, columns: &[String]) -> Schema {
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8View if columns.contains(field.name()) => {
            let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            Arc::new(field.as_ref().clone().with_data_type(kind))
        }
        _ => Arc::clone(field),
    };
    Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
}

impl Backend for Embedded {
    fn version(&self, table: &Table) -> Result<String, EngineError> {
        if let Some(version) = &table.version {
            return Ok(version.clone());
        }
        let Source::Files(folder) = &self.source else {
            return Err(EngineError::new("engine.version", "a table in memory needs a version")
                .hint("give it one in the catalog"));
        };
        let mut version = String::new();
        for file in files::of(table, folder)? {
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

    fn check(&self, table: &Table) -> Result<(), EngineError> {
        match &self.source {
            Source::Files(folder) => files::check_files(table, folder),
            Source::Memory(_) => Ok(()),
        }
    }

    fn prepare(&self, plan: &Bounded) -> Result<Box<dyn Prepared + '_>, EngineError> {
        plan.tables.iter().try_for_each(|table| self.check(table))?;
        let versions = plan.tables.iter().map(|table| self.version(table)).collect::<Result<Vec<_>, _>>()?;
        self.can_run(plan)?;
        match self.ready(plan, versions.join("\n")) {
            Ok(reading) => Ok(reading),
            Err(_) => Err(cannot_be_run()),
        }
    }

    fn rows(&self, table: &Table, columns: &[&str], each: &Take<'_>) -> Result<(), Failed> {
        self.reading.store(true, Ordering::Relaxed);
        let session = self.session();
        let scan = async {
            let provider = self.provider(table, &[])?;
            let schema = provider.schema();
            let places = columns.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
            let physical = provider.scan(&session.state(), Some(&places), &[], None).await?;
            execute_stream_partitioned(physical, session.task_ctx())
        };
        let streams = self.runtime.block_on(scan).map_err(|_| Failed)?;
        let next = Mutex::new(streams.into_iter());
        let work = || -> Result<(), Failed> {
            loop {
                let stream = next.lock().map_err(|_| Failed)?.next();
                let Some(mut stream) = stream else { return Ok(()) };
                while let Some(batch) = self.runtime.block_on(stream.next()) {
                    each(&batch.map_err(|_| Failed)?)?;
                }
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.limits.workers).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| Failed)?)
        })
    }
}
