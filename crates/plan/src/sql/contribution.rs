//! [`Contribution`]: the named arguments of an aggregate.
//!
//! `SUM(spend, contribution_bounds_per_row => (0, 100))` cannot be planned as it stands, so the arguments are gathered into one
//! text, which becomes the aggregate's last argument: `SUM(spend, 'demur:per_row=0,100')`. Bounds keep the digits they were written with.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value,
};
use demur_exact::Rational;

use super::report;
use crate::PlanError;
use crate::place::Place;

/// What marks the gathered text.
const MARK: &str = "demur:";

/// What a query says about one aggregate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Contribution {
    /// Bounds of each row's value.
    pub(crate) per_row: Option<(Rational, Rational)>,
    /// Bounds of what a unit adds to a group.
    pub(crate) per_group: Option<(Rational, Rational)>,
}

impl Contribution {
    /// What a gathered text says; `None` if the text is something else.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut contribution = Self::default();
        for part in text.strip_prefix(MARK)?.split(';').filter(|part| !part.is_empty()) {
            let (name, bounds) = part.split_once('=')?;
            let (low, high) = bounds.split_once(',')?;
            let (low, high): (Rational, Rational) = (low.parse().ok()?, high.parse().ok()?);
            let bounds = (low < high).then_some((low, high));
            match name {
                "per_row" => contribution.per_row = Some(bounds?),
                "per_group" => contribution.per_group = Some(bounds?),
                _ => return None,
            }
        }
        Some(contribution)
    }
}

/// Gathers the named arguments of a function call.
pub(super) fn encode(expr: &mut Expr) -> ControlFlow<PlanError> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else {
        return ControlFlow::Continue(());
    };
    let mut gathered = String::new();
    let mut kept = Vec::new();
    let mut reported = false;
    for arg in std::mem::take(&mut list.args) {
        match arg {
            FunctionArg::Named { name: argument, arg, .. }
                if argument.value.eq_ignore_ascii_case(report::ARGUMENT) =>
            {
                if let Err(error) = report::check(&arg) {
                    return ControlFlow::Break(error.at(Place::of_parsed(argument.span)));
                }
                reported = true;
            }
            FunctionArg::Named { name: argument, arg, .. } => match named(&argument.value, &arg) {
                Ok(text) => gathered.push_str(&text),
                Err(error) => {
                    let error = error.hint(format!("it stands in {name}(…)"));
                    return ControlFlow::Break(error.at(Place::of_parsed(argument.span)));
                }
            },
            FunctionArg::ExprNamed { .. } => {
                return ControlFlow::Break(PlanError::mistake(
                    "plan.argument",
                    format!("a named argument of {name} has no plain name"),
                ));
            }
            plain => kept.push(plain),
        }
    }
    list.args = kept;
    if !gathered.is_empty() {
        let text = Expr::Value(Value::SingleQuotedString(format!("{MARK}{gathered}")).into());
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(text)));
    }
    if reported {
        *expr = report::of(expr);
    }
    ControlFlow::Continue(())
}

/// One named argument as text.
fn named(name: &str, arg: &FunctionArgExpr) -> Result<String, PlanError> {
    let short = match name.to_ascii_lowercase().as_str() {
        "contribution_bounds_per_row" => "per_row",
        "contribution_bounds_per_group" => "per_group",
        _ => {
            return Err(PlanError::mistake("plan.argument", format!("there is no argument `{name}`")).hint(
                "there are: contribution_bounds_per_row, contribution_bounds_per_group, report_format",
            ));
        }
    };
    let wrong = || {
        PlanError::mistake(
            "plan.argument",
            format!("{name} should be two numbers (low, high), the second one larger, but it is `{arg}`"),
        )
    };
    let FunctionArgExpr::Expr(Expr::Tuple(pair)) = arg else { return Err(wrong()) };
    let [low, high] = pair.as_slice() else { return Err(wrong()) };
    let (Some(low), Some(high)) = (number(low), number(high)) else { return Err(wrong()) };
    let in_order =
        matches!((low.parse::<Rational>(), high.parse::<Rational>()), (Ok(low), Ok(high)) if low < high);
    if !in_order {
        return Err(wrong());
    }
    Ok(format!("{short}={low},{high};"))
}

/// The digits of a plain number.
fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr).map(|digits| format!("-{digits}")),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } | Expr::Nested(expr) => number(expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gathered text can be typed too, and says no more than named arguments can.
    #[test]
    fn bounds_are_in_order_however_they_are_given() {
        let bounds = |text: &str| Contribution::decode(text).and_then(|read| read.per_row);
        assert_eq!(bounds("demur:per_row=0,1.5;"), Some((Rational::zero(), "1.5".parse().unwrap())));
        for wrong in ["demur:per_row=1,0", "demur:per_row=1,1", "demur:per_row=x,1", "demur:y=0,1", "0,1"] {
            assert_eq!(bounds(wrong), None, "{wrong}");
        }
    }
}
