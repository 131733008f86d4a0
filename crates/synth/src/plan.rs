//! [`Plan`]: how synthetic data will be made and what it costs, before a row is read.
//!
//! A plan is made of public things: columns, sizes, a guarantee, which marginals matter. Its [`loss`](Plan::loss) is final: whoever runs it charges
//! that loss first and then calls [`fit`](Plan::fit), which cannot spend more (see `allowance.rs`).
//!
//! | method | guarantee | what is charged |
//! |---|---|---|
//! | [`mst`](Plan::mst) | (ε, δ) | the exact composition of its 3d − 2 looks |
//! | [`aim`](Plan::aim) | (ε, δ) | one Gaussian answer that bounds all its looks, and a tenth of δ for discrete noise |
//! | [`mwem`](Plan::mwem) | ε | ε |

use std::fmt;

use demur_accounting::Account;
use demur_core::{Domain, Epsilon, Guarantee, PrivacyLoss, Release, Workload};
use demur_noise::{Entropy, Words};

use crate::Blr;
use crate::aim::{self, Aim};
use crate::allowance::Allowance;
use crate::curator::Curator;
use crate::error::require;
use crate::junction_tree::total_cells;
use crate::model::Model;
use crate::mst::Mst;
use crate::mwem::Mwem;
use crate::progress::Watch;
use crate::{ColumnSet, Columns, Marginals, Neighbours, SynthError, Table, Zeros};

/// Cells of a model unless another limit is given: tables of 8 MiB.
pub const DEFAULT_CELLS: u64 = 1 << 20;
/// The largest limit that may be given.
pub const MOST_MODEL_CELLS: u64 = 1 << 27;

/// What will be done; see the module text.
///
/// ```
/// use std::ops::ControlFlow;
/// use demur_core::{Adjacency, Guarantee};
/// use demur_noise::Entropy;
/// use demur_synth::{Columns, ColumnSet, Plan, Rounding, Table};
///
/// let columns = Columns::new([("smoker", 2), ("ill", 2), ("region", 4)])?;
/// let guarantee = Guarantee::new("1".parse()?, "1e-6".parse()?);
/// let plan = Plan::mst(&columns, Adjacency::AddRemove, guarantee)?;
/// println!("charge {} first", plan.loss());
///
/// let codes = vec![vec![0; 500], vec![1; 500], (0..500).map(|i| i % 4).collect()];
/// let table = Table::new(columns, codes)?;
/// let entropy = &mut Entropy::from_os()?;
/// let model = plan.fit(&table, entropy, &mut |_| ControlFlow::Continue(()))?;
/// let shares = model.value().marginal(&ColumnSet::new([0, 2]))?;
/// assert_eq!(shares.len(), 8);
/// let rows = model.value().sample(1000, Rounding::Systematic, entropy)?;
/// assert_eq!(rows[2].len(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    columns: Columns,
    neighbours: Neighbours,
    zeros: Zeros,
    loss: PrivacyLoss,
    method: Method,
    max_cells: u64,
}

#[derive(Clone, Debug)]
enum Method {
    Mst(Mst),
    Aim(Aim),
    Mwem(Mwem),
    Blr(Box<Blr>),
}

/// A part of a plan and what it may use of the loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What happens.
    pub name: &'static str,
    /// Its part of the whole, from 0 to 1.
    pub part: f64,
}

impl Plan {
    /// A spanning tree of strong pairs: quick, small, good for a first look.
    pub fn mst(
        columns: &Columns,
        neighbours: impl Into<Neighbours>,
        guarantee: Guarantee,
    ) -> Result<Self, SynthError> {
        check_delta(guarantee)?;
        let neighbours = neighbours.into();
        let (mst, loss) = Mst::plan(columns, neighbours, guarantee)?;
        Self::new(columns, neighbours, loss, Method::Mst(mst), MOST_MODEL_CELLS)
    }

    /// Rounds of selecting and measuring what matters most: the most accurate.
    ///
    /// The model has at most `max_cells` numbers ([`DEFAULT_CELLS`] is a good start); more take longer and can say more.
    pub fn aim(
        columns: &Columns,
        neighbours: impl Into<Neighbours>,
        guarantee: Guarantee,
        marginals: &Marginals,
        max_cells: u64,
    ) -> Result<Self, SynthError> {
        check_delta(guarantee)?;
        marginals.check(columns)?;
        let (aim, loss) = Aim::plan(guarantee, marginals, max_cells)?;
        Self::new(columns, neighbours.into(), loss, Method::Aim(aim), max_cells)
    }

    /// Rounds with Laplace noise: for those who have no δ.
    pub fn mwem(
        columns: &Columns,
        neighbours: impl Into<Neighbours>,
        epsilon: Epsilon,
        marginals: &Marginals,
        max_cells: u64,
    ) -> Result<Self, SynthError> {
        marginals.check(columns)?;
        let (mwem, loss) = Mwem::plan(epsilon, marginals, max_cells)?;
        Self::new(columns, neighbours.into(), loss, Method::Mwem(mwem), max_cells)
    }

    /// A table of so many records, drawn from all there are: for tiny universes, where it can be done exactly.
    pub fn blr(
        columns: &Columns,
        neighbours: impl Into<Neighbours>,
        epsilon: Epsilon,
        ways: usize,
        records: u64,
    ) -> Result<Self, SynthError> {
        let neighbours = neighbours.into();
        require(neighbours.keep_the_number_of_rows(), "synth.plan.blr", || {
            "BLR needs a public number of rows: units of one row that are replaced, but here they come and go or have several; \
             use MWEM, or declare that neighbours replace a row"
                .into()
        })?;
        let domain = Domain::new(columns.iter().map(|column| (column.name.clone(), column.size as u64)))?;
        let blr = Blr::new(Workload::marginals(&domain, ways.min(columns.len()))?, records, epsilon)?;
        let loss = blr.loss();
        Self::new(columns, neighbours, loss, Method::Blr(Box::new(blr)), MOST_MODEL_CELLS)
    }

    fn new(
        columns: &Columns,
        neighbours: Neighbours,
        loss: PrivacyLoss,
        method: Method,
        max_cells: u64,
    ) -> Result<Self, SynthError> {
        let plan =
            Self { columns: columns.clone(), neighbours, zeros: Zeros::none(), loss, method, max_cells };
        plan.check_size()?;
        Ok(plan)
    }

    /// The same with combinations that cannot occur.
    pub fn with_zeros(mut self, zeros: Zeros) -> Result<Self, SynthError> {
        zeros.sets().try_for_each(|set| self.columns.check(set))?;
        let heard = zeros.sets().next().is_none() || !matches!(self.method, Method::Blr(_));
        require(heard, "synth.plan.zeros", || {
            "BLR draws from all tables and cannot be told what is impossible; use another method".into()
        })?;
        self.zeros = zeros;
        self.check_size()?;
        Ok(self)
    }

    /// Columns alone, and what is known to be impossible, must fit into the model.
    fn check_size(&self) -> Result<(), SynthError> {
        let limit = self.max_cells;
        require((1..=MOST_MODEL_CELLS).contains(&limit), "synth.plan.cells", || {
            format!("the limit of a model must be between 1 and {MOST_MODEL_CELLS} cells, but it is {limit}")
        })?;
        let sets: Vec<ColumnSet> = self.zeros.sets().cloned().collect();
        let cells = total_cells(&sets, &self.columns.sizes());
        require(cells <= limit, "synth.plan.cells", || {
            format!(
                "the columns and what is declared impossible need a model of {cells} cells, but its limit is {limit}; \
                 raise the limit, bin large columns, or declare less"
            )
        })
    }

    /// What must be charged before [`fit`](Self::fit) is called.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// Which tables must look alike.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// The columns it was made for.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The least ε with which the loss is (ε, δ)-private, rounded up.
    pub fn epsilon(&self, delta: &demur_exact::Rational) -> Result<f64, SynthError> {
        Ok(Account::of(&self.loss)?.epsilon(delta)?.bounds.upper)
    }

    /// How the loss is shared out; in ρ, μ² or ε, whichever the method counts in.
    pub fn stages(&self) -> Vec<Stage> {
        let stage = |name, part| Stage { name, part };
        match &self.method {
            Method::Mst(_) if self.columns.len() == 1 => vec![stage("measuring columns", 1.0)],
            Method::Mst(_) => {
                let third = 1.0 / 3.0;
                vec![
                    stage("measuring columns", third),
                    stage("selecting pairs", third),
                    stage("measuring pairs", third),
                ]
            }
            Method::Aim(_) => {
                let rest = 1.0 - aim::SINGLES;
                vec![
                    stage("measuring columns", aim::SINGLES),
                    stage("selecting marginals", rest * aim::SELECTION),
                    stage("measuring marginals", rest * (1.0 - aim::SELECTION)),
                ]
            }
            Method::Mwem(_) => {
                let third = 1.0 / 3.0;
                vec![
                    stage("measuring columns", third),
                    stage("selecting marginals", third),
                    stage("measuring marginals", third),
                ]
            }
            Method::Blr(_) => vec![stage("choosing a table", 1.0)],
        }
    }

    /// Makes the model. Charge [`loss`](Self::loss) first: it stands whatever happens here.
    pub fn fit(
        &self,
        table: &Table,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<Model>, SynthError> {
        let model = self.run(&mut self.curator(table, entropy)?, watch)?;
        Ok(Release::new(model, self.loss.clone()))
    }

    pub(crate) fn curator<'a, W: Words>(
        &self,
        table: &'a Table,
        words: &'a mut W,
    ) -> Result<Curator<'a, W>, SynthError> {
        require(table.columns() == &self.columns, "synth.fit.columns", || {
            "the table must have the columns the plan was made for, but it has others".into()
        })?;
        let allowance = match &self.method {
            Method::Mst(_) | Method::Blr(_) => Allowance::list(&self.loss),
            Method::Aim(aim) => Allowance::filter(aim.filter.clone()),
            Method::Mwem(mwem) => Allowance::filter(mwem.filter.clone()),
        };
        Ok(Curator::new(table, self.neighbours, allowance, words))
    }

    pub(crate) fn run<W: Words>(
        &self,
        curator: &mut Curator<'_, W>,
        watch: &mut Watch<'_>,
    ) -> Result<Model, SynthError> {
        match &self.method {
            Method::Mst(mst) => mst.run(&self.columns, &self.zeros, curator, watch),
            Method::Aim(aim) => aim.run(&self.columns, &self.zeros, curator, watch),
            Method::Mwem(mwem) => mwem.run(&self.columns, &self.zeros, curator, watch),
            Method::Blr(blr) => {
                let (records, rows) = curator.draw(blr)?;
                Ok(Model::of_records(&self.columns, &records, rows))
            }
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match &self.method {
            Method::Mst(_) => "MST",
            Method::Aim(_) => "AIM",
            Method::Mwem(_) => "MWEM",
            Method::Blr(_) => "BLR",
        };
        let (columns, adjacency) = (self.columns.len(), self.neighbours.adjacency());
        write!(f, "{method} on {columns} columns, {adjacency} neighbours: {}", self.loss)
    }
}

/// Gaussian noise needs a δ.
fn check_delta(guarantee: Guarantee) -> Result<(), SynthError> {
    require(!guarantee.is_pure(), "synth.plan.pure", || {
        format!(
            "MST and AIM use Gaussian noise and need a δ above 0, but {guarantee} was asked for; give a δ, or use MWEM"
        )
    })
}
