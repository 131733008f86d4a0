//! [`Wanted`]: which synthetic data somebody wants, and what each stage of making it may cost.
//!
//! **Stages.** First whatever the catalog leaves open about the columns is asked for ([`Domain`]), then a model is fitted. Each stage is charged
//! before it reads a row. By basic composition the stages together cost what was asked for: their ε add up to ε, their δ to δ.
//!
//! **Shares.** A question about a column costs a twentieth of ε, but all of them together at most a quarter; the model has the rest. Which values enough units have is
//! decided with a δ, and the fewer must be enough the larger it is; noise hardly notices it. So questions share half of δ.

use demur_core::{Delta, Epsilon, Guarantee};
use demur_plan::catalog::Table;
use demur_synth::Stage;

use super::domain::{Domain, Shape};
use super::workload::Workload;
use crate::backend::stored_order;
use crate::{EngineError, Project};

/// How the model is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Rounds that measure what the model knows least.
    #[default]
    Aim,
    /// A tree of pairs, measured once.
    Mst,
    /// Rounds with Laplace noise, for ε alone.
    Mwem,
    /// One of all small tables, by the exponential mechanism.
    Blr,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aim => "aim",
            Self::Mst => "mst",
            Self::Mwem => "mwem",
            Self::Blr => "blr",
        }
    }
}

/// See the module text.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The table that is imitated.
    pub table: String,
    /// What all of it may cost.
    pub guarantee: Guarantee,
    /// How the model is fitted.
    pub method: Method,
    /// How columns are coded.
    pub shape: Shape,
    /// For how many rows one unit may count.
    pub rows_per_unit: u32,
    /// Which columns the model shall know together; triples of few columns, pairs of many unless given.
    pub workload: Option<Workload>,
    /// How many records the table has that BLR draws.
    pub records: u64,
    /// Conditions in SQL that no row fulfils, which everybody may know.
    pub impossible: Vec<String>,
    /// Who asks.
    pub requester: String,
}

/// What each stage costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// The columns that are asked about, and what each question costs.
    pub asked: Vec<(String, Guarantee)>,
    /// What the model costs.
    pub model: Guarantee,
    /// What it is spent on; each part is a share of the whole.
    pub within: Vec<Stage>,
}

/// The share of ε that one question about a column has, and that of all of them.
const SHARE: (f64, f64) = (0.05, 0.25);
/// The share of δ that all questions have.
const DELTA_SHARE: f64 = 0.5;
/// A little less than the rest, so that rounded doubles add up to no more than the whole.
const BELOW: f64 = 1.0 - 1e-12;

/// Up to so many columns a model shall know triples unless told otherwise: 1140 of them.
const MOST_FOR_TRIPLES: usize = 20;

impl Wanted {
    /// Which of so many columns the model shall know together.
    pub(crate) fn workload_of(&self, columns: usize) -> Workload {
        let usual = || Workload::Ways(if columns <= MOST_FOR_TRIPLES { 3 } else { 2 });
        self.workload.clone().unwrap_or_else(usual)
    }

    /// What the catalog says about the columns.
    pub(crate) fn domain(&self, project: &Project) -> Result<Domain, EngineError> {
        let table = project.private_table(&self.table, self.guarantee)?;
        check_rows_per_unit(table, self.rows_per_unit)?;
        let order = stored_order(table, &project.folder)?;
        Domain::of(table, &order, &self.shape)
    }

    /// What each stage costs, and whether anything is wrong with the wish, before anything is charged.
    pub fn shares(&self, project: &Project) -> Result<Shares, EngineError> {
        let domain = self.domain(project)?;
        let shares = self.shares_of(&domain)?;
        let plan = self.rehearse(project.catalog.table(&self.table)?, &domain, shares.model)?;
        Ok(Shares { within: plan.stages(), ..shares })
    }

    pub(crate) fn shares_of(&self, domain: &Domain) -> Result<Shares, EngineError> {
        let asked: Vec<_> = domain.columns.iter().filter(|part| part.sql().is_some()).collect();
        if asked.is_empty() {
            return Ok(Shares { asked: Vec::new(), model: self.guarantee, within: Vec::new() });
        }
        let all = (SHARE.0 * asked.len() as f64).min(SHARE.1);
        let each = self.part(all / asked.len() as f64, DELTA_SHARE / asked.len() as f64)?;
        let asked = asked.iter().map(|part| (part.name().to_owned(), each)).collect();
        let model = self.part((1.0 - all) * BELOW, (1.0 - DELTA_SHARE) * BELOW)?;
        Ok(Shares { asked, model, within: Vec::new() })
    }

    fn part(&self, epsilon: f64, delta: f64) -> Result<Guarantee, EngineError> {
        let epsilon = Epsilon::new(self.guarantee.epsilon.value() * epsilon)?;
        let delta = match self.guarantee.delta.value() * delta {
            0.0 => Delta::ZERO,
            delta => Delta::new(delta)?,
        };
        Ok(Guarantee::new(epsilon, delta))
    }
}

/// A unit has at least one row; where each row is a unit, exactly one.
pub(crate) fn check_rows_per_unit(table: &Table, rows: u32) -> Result<(), EngineError> {
    let why = match (table.unit_column()?, rows) {
        (None, 1) | (Some(_), 1..) => return Ok(()),
        (None, _) => "each row is a unit of its own",
        (Some(_), _) => "a unit has at least one row",
    };
    Err(EngineError::new("engine.synth.rows", format!("{why}, so it cannot have {rows} rows")))
}
