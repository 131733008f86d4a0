//! [`Engine::query`]: a quote is charged, its rows are read, its answer is released.

use demur_ledger::BudgetName;
use demur_noise::Entropy;

use crate::EngineError;
use crate::backend::Backend;
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
        let version = self.ready(std::slice::from_ref(quote), backend)?;
        let question = quote.question(project, ask, version);
        self.ask(&question, || {
            let tally =
                backend.tally(&quote.bounded, secret()?).map_err(|_| EngineError::after_the_charge())?;
            Ok::<_, EngineError>(Tallied { quote, tally })
        })
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
        quote.bounded.tables.iter().try_for_each(|table| backend.check(table))?;
        backend.can_run(&quote.bounded)?;
        let tally = backend.tally(&quote.bounded, secret()?).map_err(|_| EngineError::after_the_charge())?;
        let tallied = Tallied { quote, tally };
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

    /// A name for the state of the tables of some quotes, all of which can be answered; nothing has been charged for them.
    pub(crate) fn ready(&self, quotes: &[Quote], backend: &dyn Backend) -> Result<String, EngineError> {
        let tables: Vec<_> = quotes.iter().flat_map(|quote| &quote.bounded.tables).collect();
        let can_run = || quotes.iter().try_for_each(|quote| backend.can_run(&quote.bounded));
        let version = self.data_version(&tables, backend).and_then(|version| can_run().map(|()| version));
        version.map_err(EngineError::before_the_charge)
    }

    /// A name for the state of some tables, which can all be read.
    pub(crate) fn data_version(
        &self,
        tables: &[&demur_plan::catalog::Table],
        backend: &dyn Backend,
    ) -> Result<String, EngineError> {
        tables.iter().try_for_each(|table| backend.check(table))?;
        let versions = tables.iter().map(|table| backend.version(table));
        Ok(self.fingerprint(&versions.collect::<Result<Vec<_>, _>>()?.join("\n")))
    }
}

/// A fresh secret for one reading: it decides which groups of a unit count.
pub(crate) fn secret() -> Result<[u64; 2], EngineError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| EngineError::after_the_charge())?;
    let (low, high) = bytes.split_at(8);
    let word = |half: &[u8]| half.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    Ok([word(low), word(high)])
}
