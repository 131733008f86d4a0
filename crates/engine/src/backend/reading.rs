//! [`Reading`]: a plan over files that waits for its charge.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::prelude::SessionContext;
use demur_plan::Bounded;
use demur_tally::{Both, Spec, Tallier, Tally};
use futures::StreamExt;

use super::embedded::Embedded;
use super::{Failed, Prepared};

/// How rows come about, and how they are counted.
pub(super) struct Reading<'a> {
    backend: &'a Embedded,
    version: String,
    session: SessionContext,
    rows: Arc<dyn ExecutionPlan>,
    spec: Spec,
    /// How pairs of two kinds of units are counted, if there are two.
    both: Option<Both>,
}

impl<'a> Reading<'a> {
    /// For rows of a plan, whose tables have these versions. Their types are those that are counted.
    pub(super) fn new(
        backend: &'a Embedded,
        plan: &Bounded,
        version: String,
        (session, rows): (SessionContext, Arc<dyn ExecutionPlan>),
    ) -> Result<Self> {
        let second = plan.rules.second.as_ref();
        let both = second.map(|second| Both::new(&plan.spec, second.max_rows_per_group)).transpose();
        let both = both.map_err(external)?;
        let spec = both.as_ref().map_or(&plan.spec, |both| &both.spec).clone();
        let reading = Self { backend, version, session, rows, spec, both };
        reading.tallier([0; 2]).map(|_| reading)
    }

    fn tallier(&self, secret: [u64; 2]) -> Result<Tallier> {
        let schema = self.rows.schema();
        Tallier::new(self.spec.clone(), &schema, secret, self.backend.limits()).map_err(external)
    }

    /// As many threads as there are workers read one part after the other; this one is the first of them. Threads that are begun go to idle processors; those that are only
    /// woken may wait for milliseconds behind whoever woke them.
    fn run(self, secret: [u64; 2]) -> Result<Tally> {
        let runtime = self.backend.runtime();
        let tallier = self.tallier(secret)?;
        let streams = {
            let _inside = runtime.enter();
            execute_stream_partitioned(Arc::clone(&self.rows), self.session.task_ctx())?
        };
        let workers = self.backend.limits().workers.min(streams.len());
        let left = Mutex::new(streams.into_iter());
        let next = || left.lock().map_err(|_| fell()).map(|mut left| left.next());
        let work = || {
            let mut feed = tallier.feed().map_err(external)?;
            runtime.block_on(async {
                while let Some(mut stream) = next()? {
                    while let Some(batch) = stream.next().await {
                        feed.push(&batch?).map_err(external)?;
                    }
                }
                Ok::<_, DataFusionError>(())
            })?;
            feed.finish().map_err(external)
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
            let done = work();
            let ended = others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(fell())));
            ended.fold(done, |done, other| done.and(other))
        })?;
        let tally = tallier.finish();
        match &self.both {
            Some(both) => tally.and_then(|pairs| both.settle(pairs)).map_err(external),
            None => tally.map_err(external),
        }
    }
}

impl Prepared for Reading<'_> {
    fn version(&self) -> &str {
        &self.version
    }

    fn tally(self: Box<Self>, secret: [u64; 2]) -> std::result::Result<Tally, Failed> {
        self.backend.reading().store(true, Ordering::Relaxed);
        self.run(secret).map_err(|_| Failed)
    }
}

fn fell() -> DataFusionError {
    internal_datafusion_err!("a thread fell")
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
