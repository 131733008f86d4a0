//! [`Engine::query`]: a quote is charged, its rows are read, its answer is released.

use demur_accounting::Filter;
use demur_core::Delta;
use demur_ledger::{BudgetName, Ledger, Location, Options};
use demur_noise::Entropy;

use crate::EngineError;
use crate::backend::Backend;
use crate::engine::{Answer, Engine};
use crate::project::Project;
use crate::quote::{Ask, Quote};
use crate::table::Table;
use crate::tallied::Tallied;

/// What the dataset of a scratch budget begins with.
pub const SCRATCH: &str = "scratch: ";

impl Engine {
    /// The engine for a project: its budget is opened on first use, if the catalog says with how much.
    ///
    /// A ledger that was there before and is missing now is refused, never made again.
    pub fn for_project(
        project: &Project,
        location: &Location,
        options: Options,
    ) -> Result<Self, EngineError> {
        let budget = &project.catalog.budget;
        let Some((epsilon, delta, filter)) = &budget.opens_with else { return Self::open(location, options) };
        let ledger = match Ledger::create(location, options.clone()) {
            Ok(ledger) => ledger,
            Err(error) if error.code() == "ledger.exists" => Ledger::open(location, options.clone())?,
            Err(error) => return Err(error.into()),
        };
        let name = BudgetName::whole(&budget.name);
        if ledger.book()?.budget(&name).is_none() {
            let filter = filter_of(epsilon.exact(), *delta, filter.as_deref())?;
            let tables: Vec<_> = project.catalog.tables.values().filter(|table| !table.public).collect();
            let dataset: Vec<_> = tables.iter().map(|table| table.name.as_str()).collect();
            ledger.create_budget(
                name,
                &dataset.join(", "),
                &units(project),
                filter,
                "opened as demur.toml says",
            )?;
        } else if let Some(budget) = ledger.book()?.budget(&name) {
            promises(project, &budget.unit)?;
        }
        Self::of(ledger, location, options.software)
    }

    /// Charges a quote, reads the rows, releases the answer.
    pub fn query(
        &self,
        project: &Project,
        ask: &Ask,
        quote: &Quote,
        backend: &dyn Backend,
    ) -> Result<Answer, EngineError> {
        let version = self.data_version(&quote.bounded.tables.iter().collect::<Vec<_>>(), backend)?;
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

/// Whose privacy the budget of a project is about.
fn units(project: &Project) -> String {
    let first = project.catalog.tables.values().find(|table| !table.public);
    first.map_or_else(|| "row".to_owned(), |table| table.units())
}

/// A budget that was opened for one kind of units cannot promise anything to a second.
fn promises(project: &Project, opened_for: &str) -> Result<(), EngineError> {
    let two = project.catalog.tables.values().any(|table| table.second_unit.is_some());
    if !two || opened_for == units(project) || opened_for.is_empty() {
        return Ok(());
    }
    let text = format!("the budget was opened for `{opened_for}`, but demur.toml hides `{}`", units(project));
    Err(EngineError::refused("engine.unit", text)
        .hint("what was released before did not hide the second: open a budget under another name"))
}

/// A fresh secret for one reading: it decides which groups of a unit count.
pub(crate) fn secret() -> Result<[u64; 2], EngineError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| EngineError::after_the_charge())?;
    let (low, high) = bytes.split_at(8);
    let word = |half: &[u8]| half.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    Ok([word(low), word(high)])
}

fn filter_of(
    epsilon: demur_exact::Rational,
    delta: Delta,
    kind: Option<&str>,
) -> Result<Filter, EngineError> {
    Ok(match (kind, delta == Delta::ZERO) {
        (None | Some("pure"), true) => Filter::pure(epsilon)?,
        (None | Some("zcdp"), false) => Filter::zcdp(epsilon, delta.exact())?,
        (Some("gaussian"), false) => Filter::gaussian(epsilon, delta.exact())?,
        (Some("renyi"), false) => Filter::renyi(epsilon, delta.exact())?,
        (Some(kind), _) => {
            let text = format!("the filter `{kind}` does not go with δ = {}", delta.value());
            return Err(EngineError::new("engine.budget", text)
                .hint("filters: pure (δ = 0), zcdp, gaussian, renyi (δ > 0)"));
        }
    })
}
