//! From the aggregates of a query to measures whose reach is bounded.
//!
//! **Bounds.** A value's bounds come from the query (`contribution_bounds_per_row`), else from the catalog through the expression
//! ([`facts`]); where both speak, the tighter ones count. They are in whole steps and enforced by the tally on the argument itself.
//!
//! **Rows of a unit.** A unit counts for at most `max_rows_per_group` rows in a group; one that has more counts as that many average rows.
//! With `contribution_bounds_per_group` its whole sum is clamped instead.
//!
//! **Sharing.** Equal inputs and equal measures are counted once. Where AVG(x) or a variance is asked, SUM(x) is made from the same
//! numbers.

mod moments;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast, lit, not, when};
use demur_exact::Rational;
use demur_tally::{Bounds, Measure, Step};

use crate::PlanError;
use crate::aggregate::{self, Kind};
use crate::allow;
use crate::bounded::{Recipe, Statistic};
use crate::error_of;
use crate::facts;
use crate::names;
use crate::place::Place;
use crate::relation::Relation;
use crate::sql::Contribution;
use crate::total;

/// The finest cells a quantile is looked for in.
const CELLS: u32 = 4096;
/// The most cells that are shown.
const BUCKETS: u32 = 1000;
/// Of how many times more values than a unit may bring it is looked which are brought.
const SEEN: u64 = 8;
/// A double within its bounds has at most 2^30 steps.
const STEP_BITS: i32 = 30;
/// The furthest a whole number of steps may be from 0.
const FURTHEST: i64 = 1 << 62;

/// What is counted, as it is gathered.
pub(crate) struct Measures<'a> {
    relation: &'a Relation,
    rows_per_group: u64,
    averaged: Vec<Expr>,
    pub(crate) inputs: Vec<Expr>,
    pub(crate) measures: Vec<Measure>,
}

/// An aggregate taken apart.
struct Call {
    name: String,
    kind: Kind,
    distinct: bool,
    /// What is aggregated; `None` for all rows.
    argument: Option<Expr>,
    others: Vec<Expr>,
    descending: bool,
    contribution: Contribution,
}

impl<'a> Measures<'a> {
    pub(crate) fn new(relation: &'a Relation, rows_per_group: u64) -> Self {
        Self { relation, rows_per_group, averaged: Vec::new(), inputs: Vec::new(), measures: Vec::new() }
    }

    /// What all aggregates of a query need.
    pub(crate) fn statistics(&mut self, aggregates: &[Expr]) -> Result<Vec<Statistic>, PlanError> {
        // What is wrong with a share of a quantile does not stand where its columns do.
        let at = |expr: &Expr| {
            let place = Place::of_columns(expr);
            move |error: PlanError| if error.code() == "plan.quantile" { error } else { error.at(place) }
        };
        let calls = aggregates.iter().map(|expr| self.call(expr).map_err(at(expr)));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        let deviates = |call: &&Call| match call.kind {
            Kind::Average => !call.distinct,
            Kind::Moment(moment) => moment.columns() == 1,
            _ => false,
        };
        self.averaged.extend(calls.iter().filter(deviates).filter_map(|call| call.argument.clone()));
        calls.into_iter().zip(aggregates).map(|(call, expr)| self.statistic(call).map_err(at(expr))).collect()
    }

    fn statistic(&mut self, call: Call) -> Result<Statistic, PlanError> {
        let name = call.name.clone();
        let refuse_distinct = |call: &Call| match call.distinct {
            true => {
                Err(PlanError::refused("plan.distinct", format!("{name}: DISTINCT works with COUNT alone"))
                    .hint("leave out DISTINCT, or count"))
            }
            false => Ok(()),
        };
        let (recipe, data_type) = match call.kind {
            Kind::Count => (self.count(&call)?, DataType::Int64),
            kind => {
                refuse_distinct(&call)?;
                match kind {
                    Kind::CountIf => (self.count_if(&call)?, DataType::Int64),
                    Kind::ApproxDistinct => (self.distinct(&call, argument(&call)?, true), DataType::Int64),
                    Kind::Moment(moment) => (self.moments(&call, moment)?, DataType::Float64),
                    Kind::Least | Kind::Largest => (self.extreme(&call)?, DataType::Float64),
                    Kind::Histogram | Kind::Cumulative => self.buckets(&call)?,
                    Kind::Grouping => {
                        return Err(PlanError::mistake(
                            "plan.grouping",
                            "GROUPING works on keys, with GROUP BY",
                        ));
                    }
                    Kind::Clipped => (self.clipped(&call)?, DataType::Int64),
                    Kind::Sum => self.sum(&call)?,
                    Kind::Average => (self.average(&call)?, DataType::Float64),
                    _ => self.quantiles(&call)?,
                }
            }
        };
        Ok(Statistic { name, data_type, recipe })
    }

    fn count(&mut self, call: &Call) -> Result<Recipe, PlanError> {
        let Some(argument) = &call.argument else {
            if call.distinct {
                return Err(PlanError::mistake("plan.distinct", "COUNT(DISTINCT *) counts no column"));
            }
            return Ok(self.counted(call, None));
        };
        if !call.distinct {
            let input = self.input(argument.clone());
            return Ok(self.counted(call, Some(input)));
        }
        Ok(self.distinct(call, argument, false))
    }

    /// Different values: by picking some of each unit, or by matching values with units.
    fn distinct(&mut self, call: &Call, argument: &Expr, matched: bool) -> Recipe {
        if facts::of(argument, self.relation).is_unit && self.relation.unit().is_some() {
            return Recipe::Units;
        }
        let (input, most) = (self.input(argument.clone()), self.most(call));
        // A row has one value, so that there is nothing to match.
        let measure = match matched && self.relation.unit().is_some() {
            true => Measure::Matched { input, most, seen: most.saturating_mul(SEEN) },
            false => Measure::Distinct { input, most },
        };
        Recipe::Plain { measure: self.measure(measure), step: Step::One }
    }

    /// The rows that satisfy a condition.
    fn count_if(&mut self, call: &Call) -> Result<Recipe, PlanError> {
        let argument = argument(call)?;
        let data_type = argument.get_type(self.relation.plan.schema()).map_err(error_of)?;
        if data_type != DataType::Boolean {
            let text =
                format!("{} needs a condition, but this is {}", call.name, names::in_words(&data_type));
            return Err(PlanError::mistake("plan.type", text).hint("write COUNT_IF(age >= 18)"));
        }
        let input = self.input(only_where(argument, lit(1i64))?);
        Ok(self.counted(call, Some(input)))
    }

    fn counted(&mut self, call: &Call, input: Option<usize>) -> Recipe {
        let measure = Measure::Count { input, most: self.most(call) };
        Recipe::Plain { measure: self.measure(measure), step: Step::One }
    }

    /// How many values count as a bound, because they lie outside.
    fn clipped(&mut self, call: &Call) -> Result<Recipe, PlanError> {
        let argument = argument(call)?;
        let (low, high) = self.range(call, argument)?;
        let value = cast(argument.clone(), DataType::Float64);
        let outside = value.clone().lt(lit(low.to_f64())).or(value.clone().gt(lit(high.to_f64())));
        let input = self.input(only_where(&outside.and(not(isnan(value))), lit(1i64))?);
        Ok(self.counted(call, Some(input)))
    }

    /// For how many rows a unit counts.
    fn most(&self, call: &Call) -> u64 {
        let asked =
            call.contribution.per_group.as_ref().and_then(|(_, high)| u64::try_from(high.floor()).ok());
        asked.map_or(self.rows_per_group, |asked| asked.clamp(1, self.rows_per_group))
    }

    fn sum(&mut self, call: &Call) -> Result<(Recipe, DataType), PlanError> {
        let argument = argument(call)?;
        let (step, data_type) = self.step(call, argument)?;
        let result = match (step, data_type) {
            (Step::One, _) => DataType::Int64,
            (_, DataType::Decimal128(_, scale)) => DataType::Decimal128(38, scale),
            _ => DataType::Float64,
        };
        if call.contribution.per_group.is_some() {
            return Ok((self.clamped_sum(call, argument)?, result));
        }
        let (step, row) = self.bounds(call, argument)?;
        // Bounds that were asked for hold, also where a value that is not there would lie outside.
        let zero = Rational::zero();
        let apart = call.contribution.per_row.as_ref().is_some_and(|(low, high)| *low > zero || *high < zero);
        if apart || self.averaged.contains(argument) {
            let (deviation, centre) = self.deviation(argument, step, row);
            let count = self.number_of(argument);
            return Ok((Recipe::Sum { deviation, count, centre, step }, result));
        }
        let (input, most) = (self.input(argument.clone()), self.rows_per_group);
        let measure = self.measure(Measure::Deviation { input, step, row: with_zero(row), centre: 0, most });
        Ok((Recipe::Plain { measure, step }, result))
    }

    /// A sum whose whole is clamped for each unit and group.
    fn clamped_sum(&mut self, call: &Call, argument: &Expr) -> Result<Recipe, PlanError> {
        let Some((low, high)) = &call.contribution.per_group else {
            return Err(PlanError::mistake("plan.bounds", format!("{} has no bounds per group", call.name)));
        };
        let (_, data_type) = self.step(call, argument)?;
        let step = step_of(&data_type, low, high).ok_or_else(|| no_number(call, &data_type))?;
        let unit = with_zero(in_steps(step, low, high).ok_or_else(|| too_far(call))?);
        let row = match (&call.contribution.per_row, facts::of(argument, self.relation).range) {
            (Some((low, high)), _) => in_steps(step, low, high),
            (None, Some((low, high))) => in_steps(step, &low, &high),
            (None, None) => None,
        };
        let row = row.unwrap_or(Bounds { low: -FURTHEST, high: FURTHEST });
        let input = self.input(argument.clone());
        Ok(Recipe::Plain { measure: self.measure(Measure::Sum { input, step, row, unit }), step })
    }

    fn average(&mut self, call: &Call) -> Result<Recipe, PlanError> {
        if call.contribution.per_group.is_some() {
            return Err(PlanError::refused(
                "plan.argument",
                format!("{}: a mean has bounds per row, not per group", call.name),
            )
            .hint("write contribution_bounds_per_row => (low, high)"));
        }
        let argument = argument(call)?;
        let (step, row) = self.bounds(call, argument)?;
        let (deviation, centre) = self.deviation(argument, step, row);
        let count = self.number_of(argument);
        Ok(Recipe::Mean { deviation, count, centre, row, step })
    }

    /// The sum of deviations of a value from the middle of its bounds, and where that is.
    fn deviation(&mut self, argument: &Expr, step: Step, row: Bounds) -> (usize, i64) {
        let centre = row.low.midpoint(row.high);
        let (input, most) = (self.input(argument.clone()), self.rows_per_group);
        (self.measure(Measure::Deviation { input, step, row, centre, most }), centre)
    }

    /// How many values there are.
    fn number_of(&mut self, argument: &Expr) -> usize {
        let (input, most) = (self.input(argument.clone()), self.rows_per_group);
        self.measure(Measure::Count { input: Some(input), most })
    }

    fn quantiles(&mut self, call: &Call) -> Result<(Recipe, DataType), PlanError> {
        let (at, list) = shares(call)?;
        let (histogram, step) = self.histogram(call, CELLS)?;
        let data_type = if list { DataType::new_list(DataType::Float64, true) } else { DataType::Float64 };
        Ok((Recipe::Quantiles { histogram, at, step }, data_type))
    }

    /// The least or the largest value, from a histogram as fine as that of quantiles.
    fn extreme(&mut self, call: &Call) -> Result<Recipe, PlanError> {
        let (histogram, step) = self.histogram(call, CELLS)?;
        Ok(Recipe::Extreme { histogram, largest: call.kind == Kind::Largest, step })
    }

    /// Cells that are shown.
    fn buckets(&mut self, call: &Call) -> Result<(Recipe, DataType), PlanError> {
        let asked = call.others.first().and_then(literal).map(|number| number.to_f64());
        let buckets = match asked {
            Some(asked) if asked.fract() == 0.0 && (1.0..=f64::from(BUCKETS)).contains(&asked) => {
                asked as u32
            }
            _ => {
                let text =
                    format!("{}: the number of cells must be a whole number from 1 to {BUCKETS}", call.name);
                return Err(PlanError::mistake("plan.histogram", text)
                    .hint("as in HISTOGRAM(age, 10): ten cells of equal width between the bounds"));
            }
        };
        let cumulative = call.kind == Kind::Cumulative;
        let (histogram, _) = self.histogram(call, buckets)?;
        let item = if cumulative { DataType::Float64 } else { DataType::Int64 };
        Ok((Recipe::Buckets { histogram, cumulative }, DataType::new_list(item, true)))
    }

    /// A histogram with at most so many cells.
    fn histogram(&mut self, call: &Call, most_cells: u32) -> Result<(usize, Step), PlanError> {
        let argument = argument(call)?;
        let (step, row) = self.bounds(call, argument)?;
        let width = i128::from(row.high) - i128::from(row.low) + 1;
        let cells = u32::try_from(width).map_or(most_cells, |width| width.min(most_cells));
        let (input, most) = (self.input(argument.clone()), self.rows_per_group);
        Ok((self.measure(Measure::Histogram { input, step, row, cells, most }), step))
    }

    /// The bounds of a value.
    fn range(&self, call: &Call, argument: &Expr) -> Result<(Rational, Rational), PlanError> {
        self.step(call, argument)?;
        let known = facts::of(argument, self.relation).range;
        let (low, high) = match (call.contribution.per_row.clone(), known) {
            (Some((low, high)), Some((least, most))) => (low.max(least), high.min(most)),
            (Some(asked), None) => asked,
            (None, Some(known)) => known,
            (None, None) => return Err(unbounded(call, argument, self.relation)),
        };
        if low > high {
            return Err(PlanError::refused(
                "plan.bounds",
                format!("{}: the bounds lie outside those of the catalog", call.name),
            )
            .hint("a query may narrow the owner's bounds, not leave them"));
        }
        Ok((low, high))
    }

    /// The bounds of a value, in steps.
    fn bounds(&self, call: &Call, argument: &Expr) -> Result<(Step, Bounds), PlanError> {
        let (low, high) = self.range(call, argument)?;
        let (_, data_type) = self.step(call, argument)?;
        let step = step_of(&data_type, &low, &high).ok_or_else(|| no_number(call, &data_type))?;
        let row = in_steps(step, &low, &high).ok_or_else(|| too_far(call))?;
        Ok((step, row))
    }

    /// The type of what is aggregated, which must be a number.
    fn step(&self, call: &Call, argument: &Expr) -> Result<(Step, DataType), PlanError> {
        let data_type = argument.get_type(self.relation.plan.schema()).map_err(error_of)?;
        let zero = Rational::zero();
        match step_of(&data_type, &zero, &zero) {
            Some(step) => Ok((step, data_type)),
            None => Err(no_number(call, &data_type)),
        }
    }

    fn input(&mut self, expr: Expr) -> usize {
        position(&mut self.inputs, expr)
    }

    fn measure(&mut self, measure: Measure) -> usize {
        position(&mut self.measures, measure)
    }

    /// Takes an aggregate apart.
    fn call(&self, expr: &Expr) -> Result<Call, PlanError> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = without_alias(expr) else {
            return Err(PlanError::refused("plan.aggregate", format!("`{expr}` cannot be asked for")));
        };
        let kind = aggregate::kind(func).ok_or_else(|| {
            PlanError::refused("plan.aggregate", format!("the aggregate {} is not on the list", func.name()))
        })?;
        let mut args = params.args.clone();
        let contribution = args.last().and_then(as_contribution);
        if contribution.is_some() {
            args.pop();
        }
        let name = shown(expr);
        if let Some(text) = aggregate::too_many(kind, &name, args.len(), params.distinct) {
            return Err(PlanError::mistake("plan.argument", text.0).hint(text.1));
        }
        let mut args = args.into_iter();
        let first = args.next().filter(|arg| kind != Kind::Count || !is_everything(arg));
        let filter = params.filter.as_deref();
        let argument = match (first, filter) {
            (first, None) => first,
            (Some(first), Some(filter)) => Some(only_where(filter, first)?),
            (None, Some(filter)) => Some(only_where(filter, lit(1i64))?),
        };
        for part in argument.iter().chain(filter) {
            allow::on_rows(part)?;
        }
        let total = |expr| total::rewrite(expr, self.relation.plan.schema()).map_err(error_of);
        Ok(Call {
            name,
            kind,
            distinct: params.distinct,
            argument: argument.map(total).transpose()?.map(Expr::unalias),
            others: args.collect(),
            descending: params.order_by.first().is_some_and(|sort| !sort.asc),
            contribution: contribution.unwrap_or_default(),
        })
    }
}

/// What is aggregated, which must be there.
fn argument(call: &Call) -> Result<&Expr, PlanError> {
    call.argument
        .as_ref()
        .ok_or_else(|| PlanError::mistake("plan.argument", format!("{} needs a column", call.name)))
}

fn without_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_alias(&alias.expr),
        other => other,
    }
}

/// The aggregate as people write it, without our mark.
fn shown(expr: &Expr) -> String {
    let as_written = |expr: Expr| {
        Ok(match expr {
            Expr::Literal(value, _) => {
                Transformed::yes(Expr::Column(Column::new_unqualified(written(&value))))
            }
            other => Transformed::no(other),
        })
    };
    let text = match expr.clone().transform(as_written) {
        Ok(written) => written.data.human_display().to_string(),
        Err(_) => expr.human_display().to_string(),
    };
    let marks = [", 'demur:", "'demur:", ",Utf8(\"demur:"];
    match marks.iter().find_map(|mark| text.find(mark)) {
        Some(at) => format!("{})", &text[..at]),
        None => text,
    }
}

/// A value as it stands in a query.
fn written(value: &ScalarValue) -> String {
    match value.try_as_str() {
        Some(Some(text)) => format!("'{text}'"),
        _ => value.to_string(),
    }
}

pub(crate) fn as_contribution(expr: &Expr) -> Option<Contribution> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            Contribution::decode(text)
        }
        _ => None,
    }
}

/// `*`, or a literal that is there in every row.
#[expect(deprecated, reason = "the planner still makes wildcards")]
pub(crate) fn is_everything(expr: &Expr) -> bool {
    matches!(expr, Expr::Wildcard { .. }) || matches!(expr, Expr::Literal(value, _) if !value.is_null())
}

fn only_where(filter: &Expr, value: Expr) -> Result<Expr, PlanError> {
    when(filter.clone(), value).end().map_err(error_of)
}

/// A number that is written in the query.
fn literal(expr: &Expr) -> Option<Rational> {
    match expr {
        Expr::Literal(value, _) => facts::number(value),
        _ => None,
    }
}

/// The shares of quantiles, and whether a list was asked for.
fn shares(call: &Call) -> Result<(Vec<f64>, bool), PlanError> {
    let wrong = |text: &str| PlanError::mistake("plan.quantile", format!("{}: {text}", call.name));
    let given = call.others.first().and_then(literal).map(|number| number.to_f64());
    let turned = |share: f64| if call.descending { 1.0 - share } else { share };
    match (call.kind, given) {
        (Kind::Median, _) => Ok((vec![0.5], false)),
        (Kind::Percentile, Some(share)) if (0.0..=1.0).contains(&share) => Ok((vec![turned(share)], false)),
        (Kind::Percentile, _) => {
            Err(wrong("the share must be a number from 0 to 1, as in PERCENTILE_CONT(x, 0.9)"))
        }
        (_, Some(parts)) if (1.0..=100.0).contains(&parts) && parts.fract() == 0.0 => {
            Ok(((0..=parts as u32).map(|part| f64::from(part) / parts).collect(), true))
        }
        _ => Err(wrong(
            "the number of parts must be a whole number from 1 to 100, as in APPROX_QUANTILES(x, 4)",
        )),
    }
}

/// How values of a type within bounds become steps; `None` for types that are no numbers.
fn step_of(data_type: &DataType, low: &Rational, high: &Rational) -> Option<Step> {
    match data_type {
        DataType::Float32 | DataType::Float64 => {
            let far = low.to_f64().abs().max(high.to_f64().abs());
            let exponent = if far > 0.0 { far.log2().ceil() as i32 } else { 0 };
            Some(Step::Binary((exponent - STEP_BITS).clamp(-1000, 900)))
        }
        DataType::Decimal128(_, scale) => Some(Step::Decimal(*scale)),
        other if other.is_integer() => Some(Step::One),
        _ => None,
    }
}

/// Bounds in whole steps, a step wider where they fall between, and never of no width at all.
fn in_steps(step: Step, low: &Rational, high: &Rational) -> Option<Bounds> {
    let size = size(step);
    let (low, high) = ((low / &size).floor(), (high / &size).ceil());
    let (low, high) = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
    let high = if low == high { high + 1 } else { high };
    (low >= -FURTHEST && high <= FURTHEST).then_some(Bounds { low, high })
}

/// The value of one step.
pub fn size(step: Step) -> Rational {
    let power = |base: u32, exponent: i32| {
        (0..exponent.unsigned_abs()).fold(Rational::one(), |x, _| &x * &Rational::from(base))
    };
    match step {
        Step::One => Rational::one(),
        Step::Binary(exponent) if exponent >= 0 => power(2, exponent),
        Step::Binary(exponent) => &Rational::one() / &power(2, exponent),
        Step::Decimal(scale) => &Rational::one() / &power(10, scale.into()),
    }
}

fn with_zero(bounds: Bounds) -> Bounds {
    Bounds { low: bounds.low.min(0), high: bounds.high.max(0) }
}

fn position<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    all.iter().position(|other| *other == one).unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    })
}

fn unbounded(call: &Call, argument: &Expr, relation: &Relation) -> PlanError {
    let text = format!("{}: how far one value can reach is not known, so no noise would hide it", call.name);
    let has_none = |column: &&Column| relation.facts(column).range.is_none();
    let columns = argument.column_refs().into_iter().filter(has_none);
    let mut columns: Vec<_> = columns.map(|column| format!("`{}`", column.name)).collect();
    columns.sort_unstable();
    const GIVE: &str = "give contribution_bounds_per_row => (low, high) as a last argument";
    PlanError::refused("plan.unbounded", text).hint(match columns.is_empty() {
        true => GIVE.to_owned(),
        false => format!("write low and high for {} in demur.toml, or {GIVE}", columns.join(" and ")),
    })
}

fn no_number(call: &Call, data_type: &DataType) -> PlanError {
    PlanError::mistake(
        "plan.type",
        format!("{} works on numbers, but this is {}", call.name, names::in_words(data_type)),
    )
    .hint("COUNT works on anything; CAST(… AS DOUBLE) makes numbers of texts")
}

fn too_far(call: &Call) -> PlanError {
    PlanError::mistake("plan.bounds", format!("{}: its bounds are further from 0 than 2^62 steps", call.name))
        .hint("narrow them with contribution_bounds_per_row => (low, high)")
}
