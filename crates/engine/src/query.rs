//! [`Engine::query`]: a quote is charged, its rows are read, its answer is released.
//!
//! [`Quote::prepare`] does before the charge whatever can be done without a row, so that what fails whatever the rows are costs nothing.

use demur_ledger::BudgetName;
use demur_noise::Entropy;

use crate::EngineError;
use crate::backend::{Backend, Prepared};
use crate::engine::{Answer, Engine};
use crate::opening::SCRATCH;
use crate::project::Project;
use crate::quote::{Ask, Quote};
use crate::table::Table;
use crate::tallied::Tallied;

impl Engine {
    /// Charges a quote, reads the rows, releases the answer.
    pub fn query(
        &self,
        project: &Project,
        ask: &Ask,
        quote: &Quote,
        backend: &dyn Backend,
    ) -> Result<Answer, EngineError> {
        self.query_ready(project, ask, quote.prepare(backend)?)
    }

    /// The same, for a quote that only waits for it.
    pub fn query_ready(&self, project: &Project, ask: &Ask, ready: Ready<'_>) -> Result<Answer, EngineError> {
        let question = ready.quote.question(project, ask, self.fingerprint(ready.version()));
        self.ask(&question, || ready.read())
    }

    /// Answers again and again from one reading, on a scratch budget alone: what it shows is not protected.
    pub fn rehearse(
        &self,
        project: &Project,
        quote: &Quote,
        backend: &dyn Backend,
        count: u64,
        mut each: impl FnMut(Table) -> std::io::Result<()>,
    ) -> Result<(), EngineError> {
        let name = BudgetName::whole(&project.catalog.budget.name);
        let is_scratch =
            self.ledger().book()?.budget(&name).is_some_and(|budget| budget.dataset.starts_with(SCRATCH));
        if !is_scratch {
            let text = format!(
                "answers are repeated on a scratch budget alone, and `{}` is none",
                project.catalog.budget.name
            );
            return Err(EngineError::refused("engine.scratch", text).hint(
                "make one for tests: demur budget create NAME --epsilon 1 --scratch --ledger scratch.db",
            ));
        }
        let tallied = quote.prepare(backend)?.read()?;
        let afterwards = quote.afterwards()?;
        let mut entropy = Entropy::from_os().map_err(|_| EngineError::after_the_charge())?;
        for _ in 0..count {
            let table = tallied.table(&afterwards, &mut entropy)?;
            each(table).map_err(|error| {
                EngineError::new("engine.write", format!("the answers could not be written: {error}"))
            })?;
        }
        Ok(())
    }
}

/// A quote that only waits for its charge: its own plan, ready to be run.
pub struct Ready<'a> {
    quote: &'a Quote,
    prepared: Box<dyn Prepared + 'a>,
}

impl Quote {
    /// Gets ready to read the rows; nothing has been charged for it.
    pub fn prepare<'a>(&'a self, backend: &'a dyn Backend) -> Result<Ready<'a>, EngineError> {
        let prepared = backend.prepare(&self.bounded).map_err(EngineError::before_the_charge)?;
        Ok(Ready { quote: self, prepared })
    }
}

impl<'a> Ready<'a> {
    /// The state of the data of its tables.
    pub(crate) fn version(&self) -> &str {
        self.prepared.version()
    }

    /// Reads the rows.
    pub(crate) fn read(self) -> Result<Tallied<'a>, EngineError> {
        let tally = self.prepared.tally(secret()?).map_err(|_| EngineError::after_the_charge())?;
        Ok(Tallied { quote: self.quote, tally })
    }
}

/// A fresh secret for one reading: it decides which groups of a unit count.
fn secret() -> Result<[u64; 2], EngineError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| EngineError::after_the_charge())?;
    let (low, high) = bytes.split_at(8);
    let word = |half: &[u8]| half.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    Ok([word(low), word(high)])
}
