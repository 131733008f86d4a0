//! The aggregates that may be asked for, as the SQL planner meets them.
//!
//! They have names, arguments and types; what they compute is decided by [`bounding`](crate::bounding). None of them can be run.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use crate::bounded::Moment;

/// What is asked of the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Count,
    /// How many rows satisfy a condition.
    CountIf,
    /// How many values there are, by matching them with units.
    ApproxDistinct,
    /// How many values lie outside their bounds.
    Clipped,
    Sum,
    Average,
    /// A variance, covariance or correlation.
    Moment(Moment),
    Median,
    Percentile,
    Quantiles,
    Least,
    Largest,
    /// How many values lie in each of several cells.
    Histogram,
    /// Which share of all values lies up to the end of each cell.
    Cumulative,
    /// Which keys a total runs over; resolved before aggregates are looked at.
    Grouping,
}

/// An aggregate by one of its names.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    name: &'static str,
    kind: Kind,
    signature: Signature,
}

const NAMES: [(&str, Kind); 29] = [
    ("count", Kind::Count),
    ("count_if", Kind::CountIf),
    ("countif", Kind::CountIf),
    ("approx_count_distinct", Kind::ApproxDistinct),
    ("clipped", Kind::Clipped),
    ("sum", Kind::Sum),
    ("avg", Kind::Average),
    ("mean", Kind::Average),
    ("median", Kind::Median),
    ("percentile_cont", Kind::Percentile),
    ("quantile_cont", Kind::Percentile),
    ("approx_percentile_cont", Kind::Percentile),
    ("approx_quantiles", Kind::Quantiles),
    ("var_pop", Kind::Moment(Moment::VarPop)),
    ("var_samp", Kind::Moment(Moment::VarSamp)),
    ("var", Kind::Moment(Moment::VarSamp)),
    ("variance", Kind::Moment(Moment::VarSamp)),
    ("stddev_pop", Kind::Moment(Moment::StddevPop)),
    ("stddev_samp", Kind::Moment(Moment::StddevSamp)),
    ("stddev", Kind::Moment(Moment::StddevSamp)),
    ("covar_pop", Kind::Moment(Moment::CovarPop)),
    ("covar_samp", Kind::Moment(Moment::CovarSamp)),
    ("covar", Kind::Moment(Moment::CovarSamp)),
    ("corr", Kind::Moment(Moment::Corr)),
    ("min", Kind::Least),
    ("max", Kind::Largest),
    ("histogram", Kind::Histogram),
    ("cdf", Kind::Cumulative),
    ("grouping", Kind::Grouping),
];

/// Every aggregate by its name.
pub(crate) fn functions() -> HashMap<String, Arc<AggregateUDF>> {
    let function = |(name, kind): (&'static str, Kind)| {
        let signature = match kind {
            Kind::Count => Signature::one_of(
                vec![
                    datafusion::logical_expr::TypeSignature::VariadicAny,
                    datafusion::logical_expr::TypeSignature::Nullary,
                ],
                Volatility::Immutable,
            ),
            _ => Signature::variadic_any(Volatility::Immutable),
        };
        (name.to_owned(), Arc::new(AggregateUDF::from(Asked { name, kind, signature })))
    };
    NAMES.into_iter().map(function).collect()
}

/// What a planned aggregate asks for.
pub(crate) fn kind(function: &AggregateUDF) -> Option<Kind> {
    function.inner().downcast_ref::<Asked>().map(|asked| asked.kind)
}

/// What is wrong, and what to do, if an aggregate is given more than it takes.
pub(crate) fn too_many(
    kind: Kind,
    name: &str,
    given: usize,
    distinct: bool,
) -> Option<(String, &'static str)> {
    let most = match kind {
        Kind::Percentile | Kind::Quantiles | Kind::Histogram | Kind::Cumulative => 2,
        // They look for themselves.
        Kind::Moment(_) | Kind::Grouping => usize::MAX,
        _ => 1,
    };
    let hint = match (kind, distinct) {
        (Kind::Count | Kind::ApproxDistinct, true) => {
            "to count combinations, join them: COUNT(DISTINCT a || ' ' || b)"
        }
        _ => "bounds are given by name: contribution_bounds_per_row => (low, high)",
    };
    let text = format!("{name}: {given} arguments were given, and it takes {most}");
    (given > most).then_some((text, hint))
}

impl AggregateUDFImpl for Asked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match (self.kind, types.first()) {
            (Kind::Count, _) => DataType::Int64,
            (Kind::Clipped | Kind::CountIf | Kind::ApproxDistinct, Some(_)) => DataType::Int64,
            (Kind::Grouping, Some(_)) => DataType::Int32,
            (Kind::Sum, Some(DataType::Decimal128(_, scale))) => DataType::Decimal128(38, *scale),
            (Kind::Sum, Some(kind)) if kind.is_integer() || kind.is_null() => DataType::Int64,
            (Kind::Least | Kind::Largest, Some(kind)) if !kind.is_numeric() => kind.clone(),
            (Kind::Quantiles | Kind::Cumulative, Some(_)) => DataType::new_list(DataType::Float64, true),
            (Kind::Histogram, Some(_)) => DataType::new_list(DataType::Int64, true),
            (_, Some(_)) => DataType::Float64,
            (_, None) => return plan_err!("{} needs something to work on: {}(column)", self.name, self.name),
        })
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        plan_err!("{} is not run by the planner", self.name)
    }
}
