//! [`Opening`]: the engine over a project's ledger, and what demur.toml and the ledger say of the same budget.
//!
//! **The ledger decides.** demur.toml says what a budget is opened with, once; from then on the ledger knows what may be spent, and on whom. Two things in demur.toml
//! can be changed afterwards so that the promise would no longer be the one that was made:
//!
//! * *Whose privacy counts.* Answers about rows say nothing of what they tell about a person with many of them, so a budget that was opened for one unit
//!   never pays for another: that is refused.
//! * *How much may be spent.* More takes `demur budget raise`, and less is not what the ledger enforces: [`Engine::remark`] says so.

use std::thread::JoinHandle;

use demur_accounting::Filter;
use demur_core::{Delta, PrivacyLoss};
use demur_exact::Rational;
use demur_ledger::{Book, Budget, BudgetName, Ledger, Location, Options};
use demur_plan::catalog::Catalog;

use crate::EngineError;
use crate::engine::Engine;
use crate::project::Project;

/// What the dataset of a scratch budget begins with.
pub const SCRATCH: &str = "scratch: ";

/// The unit of a budget that nobody named one for; it goes with every project.
pub const ANY_UNIT: &str = "unit";

/// A ledger that is being opened, while somebody prepares a question for it: both take about as long.
///
/// Who drops it does not wait; a ledger that is opened and not used is as it was.
pub struct Opening {
    location: Location,
    options: Options,
    /// Nothing, if there is no whole ledger yet: one is made for a question that can be asked, and for no other.
    engine: JoinHandle<Result<Option<Engine>, EngineError>>,
}

impl Opening {
    /// Begins to open the ledger at this place.
    pub fn start(location: &Location, options: Options) -> Self {
        let of_thread = (location.clone(), options.clone());
        let open = move || {
            let (location, options) = of_thread;
            // Whatever is missing, whoever makes a ledger knows what to do.
            match location.exists()? && location.anchor().exists() {
                true => Engine::open(&location, options).map(Some),
                false => Ok(None),
            }
        };
        Self { location: location.clone(), options, engine: std::thread::spawn(open) }
    }

    /// The engine for a project: its budget is opened on first use, if the catalog says with how much.
    ///
    /// A ledger that was there before and is missing now is refused, never made again.
    pub fn engine(self, project: &Project) -> Result<Engine, EngineError> {
        let fell = |_| EngineError::new("engine.threads", "the ledger could not be opened");
        let engine = match self.engine.join().map_err(fell)?? {
            Some(engine) => engine,
            None => Engine::make(project, &self.location, self.options)?,
        };
        engine.prepare_budget(project)?;
        Ok(engine)
    }
}

impl Engine {
    /// The engine for a project, as [`Opening`] gives it.
    pub fn for_project(
        project: &Project,
        location: &Location,
        options: Options,
    ) -> Result<Self, EngineError> {
        Opening::start(location, options).engine(project)
    }

    /// The engine over a new ledger, if the catalog says how much may be spent.
    fn make(project: &Project, location: &Location, options: Options) -> Result<Self, EngineError> {
        if project.catalog.budget.opens_with.is_none() {
            return Self::open(location, options);
        }
        let software = options.software.clone();
        let ledger = match Ledger::create(location, options.clone()) {
            // Somebody was quicker.
            Err(error) if error.code() == "ledger.exists" => Ledger::open(location, options)?,
            ledger => ledger?,
        };
        Self::of(ledger, location, software)
    }

    /// Makes sure that the budget of a project is there, and is for its unit.
    fn prepare_budget(&self, project: &Project) -> Result<(), EngineError> {
        let catalog = &project.catalog;
        if let Some(budget) = budget_of(&self.ledger().book()?, catalog) {
            return same_unit(catalog, budget);
        }
        if let Some(filter) = first_filter(catalog)? {
            let name = BudgetName::whole(&catalog.budget.name);
            let (dataset, unit) = protected(catalog);
            self.ledger().create_budget(name, &dataset, &unit, filter, "opened as demur.toml says")?;
        }
        Ok(())
    }

    /// What somebody should know who believes demur.toml alone about how much may be spent.
    pub fn remark(&self, project: &Project) -> Result<Option<String>, EngineError> {
        Ok(remark(&self.ledger().book()?, &project.catalog))
    }
}

/// Where demur.toml promises another budget than the ledger keeps, if there is one for it yet.
pub fn remark(book: &Book, catalog: &Catalog) -> Option<String> {
    let (budget, (epsilon, delta, _)) = (budget_of(book, catalog)?, catalog.budget.opens_with.as_ref()?);
    let kept = budget.filter.guarantee();
    if kept == (epsilon.exact(), delta.exact()) || budget.dataset.starts_with(SCRATCH) {
        return None;
    }
    let said = |epsilon: &Rational, delta: &Rational| match delta.is_zero() {
        true => format!("ε = {}", epsilon.to_f64()),
        false => format!("ε = {}, δ = {}", epsilon.to_f64(), delta.to_f64()),
    };
    let (wanted, kept) = (said(&epsilon.exact(), &delta.exact()), said(&kept.0, &kept.1));
    Some(format!(
        "demur.toml gives the budget `{}` {wanted}, but in the ledger it has {kept}, and that is what holds; \
         `demur budget raise` makes it larger, and one that is too large can only be closed",
        budget.name.budget
    ))
}

/// What the budget of a project is about: its private tables, and whose privacy counts in them.
pub fn protected(catalog: &Catalog) -> (String, String) {
    let private = || catalog.tables.values().filter(|table| !table.public);
    let names: Vec<_> = private().map(|table| table.name.as_str()).collect();
    (names.join(", "), private().next().map_or_else(|| "row".to_owned(), |table| table.units()))
}

fn budget_of<'a>(book: &'a Book, catalog: &Catalog) -> Option<&'a Budget> {
    book.budget(&BudgetName::whole(&catalog.budget.name))
}

/// A budget that was opened for one unit promises nothing to another.
fn same_unit(catalog: &Catalog, budget: &Budget) -> Result<(), EngineError> {
    let ((_, unit), opened_for) = (protected(catalog), &budget.unit);
    if *opened_for == unit || opened_for == ANY_UNIT || budget.dataset.starts_with(SCRATCH) {
        return Ok(());
    }
    let name = &budget.name.budget;
    let text = format!(
        "the budget `{name}` was opened for `{opened_for}`, but demur.toml hides `{unit}`; nothing was charged"
    );
    Err(EngineError::refused("engine.unit", text).hint(format!(
        "what was released before did not hide `{unit}`: give the budget in demur.toml another name, and a new one is opened"
    )))
}

/// Whether a budget can be opened as demur.toml says.
pub fn check_budget(catalog: &Catalog) -> Result<(), EngineError> {
    BudgetName::whole(&catalog.budget.name).check()?;
    first_filter(catalog).map(|_| ())
}

/// Whether the budget of a project, which is not there yet, would pay for this: for what it refuses no ledger is made.
pub fn would_pay(catalog: &Catalog, loss: &PrivacyLoss) -> Result<(), EngineError> {
    let Some(filter) = first_filter(catalog)? else { return Ok(()) };
    filter.admit(&filter.start(), loss).map(|_| ()).map_err(|refusal| {
        let name = BudgetName::whole(&catalog.budget.name);
        EngineError::refused(refusal.code(), format!("the budget {name} does not allow it: {refusal}"))
    })
}

/// The filter that the budget of a project is opened with, if the catalog says so.
pub fn first_filter(catalog: &Catalog) -> Result<Option<Filter>, EngineError> {
    let opens_with = catalog.budget.opens_with.as_ref();
    let filter = opens_with.map(|(epsilon, delta, kind)| filter_of(epsilon.exact(), *delta, kind.as_deref()));
    filter.transpose()
}

fn filter_of(epsilon: Rational, delta: Delta, kind: Option<&str>) -> Result<Filter, EngineError> {
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
