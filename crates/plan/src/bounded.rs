//! [`Bounded`]: a question that is understood, with a limit on what one unit can do to its answer.
//!
//! **Definition.** Rows are read by [`rows`](Bounded::rows), counted by [`spec`](Bounded::spec), made noisy, turned into
//! [`statistics`](Bounded::statistics), and shown as [`after`](Bounded::after) says. Everything in it follows from the query and the
//! catalog.
//!
//! **Guarantee.** Between neighbouring data at most [`groups_moved`](Bounded::groups_moved) groups differ, each number of a measure in them by at
//! most what [`sensitivity`](Bounded::sensitivity) says.
//!
//! **Why.** One unit that comes or goes changes at most M groups, each by something between low and high, which the tally enforces
//! ([`Spec`]): by at most d = max(|low|, |high|). Replacing a unit is both at once: on groups that only one of the two has, a number moves by at
//! most d, on shared ones by at most r = high − low ≤ 2d. With j shared groups the squared distance is at most j·r² + 2(M − j)·d²; this
//! is linear in j, so it is at most 2M·s² with s = max(d, r/√2), and the sum of distances is at most 2M·d. So 2M groups that
//! move by ⌈s⌉ cover it.
//!
//! **Two kinds of units.** Where the catalog names a second unit, one of them that comes or goes changes all groups, each by at most what it may give
//! ([`Both`](demur_tally::Both)), and so does one of the first: M is the number of groups, and low and high are the widest of both kinds.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use demur_core::{Adjacency, Sensitivity};
use demur_exact::Rational;
use demur_tally::{Bounds, Measure, Spec, Step};

use crate::PlanError;
use crate::after::After;
use crate::catalog::{NoisePreference, SecondUnit, Table};
use crate::grouping::Groupings;
use crate::partners::Partners;
use crate::sql::Options;

/// A question with bounds.
#[derive(Clone)]
pub struct Bounded {
    /// The question in one spelling.
    pub text: String,
    /// Whether only the plan was asked for.
    pub explain: bool,
    /// The tables it reads, public ones too.
    pub tables: Vec<Table>,
    /// What the owner lets one unit do.
    pub rules: Rules,
    /// What the query says about its own privacy.
    pub options: Options,
    /// Which noise to use.
    pub noise: NoisePreference,
    /// How rows come about: the unit, the keys, the inputs.
    pub rows: LogicalPlan,
    /// With how many public rows one row is paired, join by join.
    pub partners: Vec<Partners>,
    /// What is counted.
    pub spec: Spec,
    /// Which groups are shown.
    pub keys: Keys,
    /// What is asked of each group.
    pub statistics: Vec<Statistic>,
    /// Which totals are shown, if any are asked for.
    pub totals: Option<Groupings>,
    /// What is done with the answers.
    pub after: After,
}

/// What the owner lets one unit do, over all private tables of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Which datasets must look alike.
    pub adjacency: Adjacency,
    /// In how many groups one unit may appear: the most that any of the tables allows.
    pub max_groups_per_unit: u32,
    /// For how many rows one unit may count in a group: the most that any of the tables allows.
    pub max_rows_per_group: u64,
    /// The noise that is used, unless the better one may be chosen.
    pub noise: NoisePreference,
    /// Who else is hidden.
    pub second: Option<SecondUnit>,
}

impl Rules {
    /// The rules of all these tables together.
    pub(crate) fn of<'a>(tables: impl Iterator<Item = &'a Table>) -> Result<Self, PlanError> {
        let mut rules: Option<Self> = None;
        for table in tables {
            let own = Self {
                adjacency: table.adjacency,
                max_groups_per_unit: table.max_groups_per_unit,
                max_rows_per_group: table.max_rows_per_group,
                noise: table.noise,
                second: table.second_unit.clone(),
            };
            rules = Some(match rules {
                Some(rules) => rules.and(own)?,
                None => own,
            });
        }
        rules.ok_or_else(|| PlanError::refused("plan.public", "there is no private table to ask about"))
    }

    fn and(self, other: Self) -> Result<Self, PlanError> {
        if self.adjacency != other.adjacency {
            let text = "the tables of this question do not say the same about which data are neighbours";
            return Err(
                PlanError::refused("plan.adjacency", text).hint("write one adjacency for both in demur.toml")
            );
        }
        let noise = match (self.noise, other.noise) {
            (NoisePreference::Any, noise) | (noise, NoisePreference::Any) => noise,
            (one, other) if one == other => one,
            _ => {
                let text = "the tables of this question want different noise";
                return Err(
                    PlanError::refused("plan.noise", text).hint("write one noise for both in demur.toml")
                );
            }
        };
        Ok(Self {
            adjacency: self.adjacency,
            max_groups_per_unit: self.max_groups_per_unit.max(other.max_groups_per_unit),
            max_rows_per_group: self.max_rows_per_group.max(other.max_rows_per_group),
            noise,
            second: self.second.or(other.second),
        })
    }
}

/// Which groups are shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Keys {
    /// There is one group, of everything.
    None,
    /// These, whether they have rows or not.
    Public(Vec<Vec<ScalarValue>>),
    /// Those that enough units have.
    Private,
}

/// One number, or list of numbers, about a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// What was asked, as written.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// How it is made from measures.
    pub recipe: Recipe,
}

/// How a statistic is made from measures.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// How many units there are.
    Units,
    /// A measure as it is, in steps.
    Plain {
        /// Which measure.
        measure: usize,
        /// How large a step is.
        step: Step,
    },
    /// A sum: deviations from a centre, and the centre times their number.
    Sum {
        /// The measure of deviations.
        deviation: usize,
        /// The measure that counts.
        count: usize,
        /// The centre, in steps.
        centre: i64,
        /// How large a step is.
        step: Step,
    },
    /// A mean: the centre, and deviations divided by their number.
    Mean {
        /// The measure of deviations.
        deviation: usize,
        /// The measure that counts.
        count: usize,
        /// The centre, in steps.
        centre: i64,
        /// Where values lie, in steps.
        row: Bounds,
        /// How large a step is.
        step: Step,
    },
    /// Values below which given shares of all values lie.
    Quantiles {
        /// The measure that is a histogram.
        histogram: usize,
        /// The shares, from 0 to 1.
        at: Vec<f64>,
        /// How large a step is.
        step: Step,
    },
    /// The least or the largest value that is surely reached.
    Extreme {
        /// The measure that is a histogram.
        histogram: usize,
        /// Whether it is the largest.
        largest: bool,
        /// How large a step is.
        step: Step,
    },
    /// How many values lie in each cell, or which share lies up to its end.
    Buckets {
        /// The measure that is a histogram, with as many cells as were asked for.
        histogram: usize,
        /// Whether shares are asked for.
        cumulative: bool,
    },
    /// A variance, covariance or correlation.
    Moments {
        /// Which of them.
        which: Moment,
        /// The measure that counts.
        count: usize,
        /// One column, or two.
        axes: Vec<Axis>,
        /// Squares of one column, products of two, or for a correlation both: first squares, then products.
        products: Vec<Product>,
    },
}

/// What is made of second moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The mean of squared deviations.
    VarPop,
    /// The same, divided by one less than the count.
    VarSamp,
    /// The root of [`VarPop`](Self::VarPop).
    StddevPop,
    /// The root of [`VarSamp`](Self::VarSamp).
    StddevSamp,
    /// The mean of products of deviations.
    CovarPop,
    /// The same, divided by one less than the count.
    CovarSamp,
    /// A covariance, divided by both standard deviations.
    Corr,
}

/// A column whose deviations from the middle of its bounds are added up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The measure of deviations.
    pub deviation: usize,
    /// How large a step is.
    pub step: Step,
    /// How far a value lies from the middle at most, in steps.
    pub reach: i64,
}

/// Squares or products of deviations, less a middle of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// The measure that adds them up.
    pub measure: usize,
    /// How large a step is.
    pub step: Step,
    /// What was taken off each, in steps.
    pub middle: i64,
}

impl Moment {
    /// How many columns it is about.
    pub fn columns(self) -> usize {
        match self {
            Self::VarPop | Self::VarSamp | Self::StddevPop | Self::StddevSamp => 1,
            Self::CovarPop | Self::CovarSamp | Self::Corr => 2,
        }
    }

    /// Whether one less than the count divides.
    pub fn of_sample(self) -> bool {
        matches!(self, Self::VarSamp | Self::StddevSamp | Self::CovarSamp)
    }
}

impl Recipe {
    /// The measures it is made from, in the order of its estimate.
    pub fn measures(&self) -> Vec<usize> {
        match self {
            Self::Units => Vec::new(),
            Self::Plain { measure, .. } => vec![*measure],
            Self::Sum { deviation, count, .. } | Self::Mean { deviation, count, .. } => {
                vec![*deviation, *count]
            }
            Self::Quantiles { histogram, .. }
            | Self::Extreme { histogram, .. }
            | Self::Buckets { histogram, .. } => vec![*histogram],
            Self::Moments { count, axes, products, .. } => {
                let axes = axes.iter().map(|axis| axis.deviation);
                let products = products.iter().map(|product| product.measure);
                std::iter::once(*count).chain(axes).chain(products).collect()
            }
        }
    }
}

impl Bounded {
    /// Which datasets must look alike.
    pub fn adjacency(&self) -> Adjacency {
        self.rules.adjacency
    }

    /// The private tables it reads.
    pub fn private_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| !table.public)
    }

    /// In how many groups one unit appears at most.
    pub fn groups_per_unit(&self) -> u64 {
        u64::from(self.spec.groups_per_unit)
    }

    /// How many groups change at most between neighbours.
    pub fn groups_moved(&self) -> u64 {
        match self.adjacency() {
            Adjacency::AddRemove => self.groups_per_unit(),
            Adjacency::Replace => 2 * self.groups_per_unit(),
        }
    }

    /// What one unit of any kind adds to a measure of one group: from where to where.
    fn reach(&self, measure: &Measure) -> (i128, i128) {
        let (low, high) = measure.reach();
        match (&self.rules.second, measure.one_row()) {
            (Some(second), Some((row_low, row_high))) => {
                let rows = i128::from(second.max_rows_per_group);
                (low.min(row_low * rows), high.max(row_high * rows))
            }
            _ => (low, high),
        }
    }

    /// How far a measure of one group can move, in steps.
    ///
    /// Of a histogram, the cells of a group together move by its `most` in ℓ1.
    pub fn sensitivity(&self, measure: &Measure) -> Result<Sensitivity, PlanError> {
        let (low, high) = self.reach(measure);
        let far = low.unsigned_abs().max(high.unsigned_abs());
        let most = match self.adjacency() {
            Adjacency::AddRemove => far,
            Adjacency::Replace => far.max(over_root_two(high.abs_diff(low))),
        };
        let wrong = |error: String| PlanError::mistake("plan.sensitivity", error);
        let most: Rational =
            most.to_string().parse().map_err(|_| wrong("a sensitivity is too large".to_owned()))?;
        Sensitivity::scalar(most).map_err(|error| wrong(error.to_string()))
    }
}

/// ⌈r/√2⌉, from above: the least whole s with 2s² ≥ r², or r itself where that cannot be squared.
fn over_root_two(range: u128) -> u128 {
    let enough = |s: u128| match (s.checked_mul(s).and_then(|s| s.checked_mul(2)), range.checked_mul(range)) {
        (Some(left), Some(right)) => left >= right,
        (None, Some(_)) => true,
        _ => false,
    };
    let (mut low, mut high) = (0, range);
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    high
}
