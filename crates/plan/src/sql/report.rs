//! `report_format => 'JSON'`: an answer together with its interval, as one text.
//!
//! `COUNT(*, report_format => 'JSON')` stands for `concat('{"value": ', COUNT(*), ', "low": ', DP_INTERVAL_LOW(COUNT(*)), …)`, and is replaced by
//! it.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    Value,
};

use crate::PlanError;
use crate::interval;

/// The name of the argument.
pub(super) const ARGUMENT: &str = "report_format";

/// Whether the format is one there is.
pub(super) fn check(format: &FunctionArgExpr) -> Result<(), PlanError> {
    let text = format.to_string();
    if text.trim_matches('\'').eq_ignore_ascii_case("json") {
        return Ok(());
    }
    Err(PlanError::refused("plan.argument", format!("{ARGUMENT} is JSON, but it is `{text}` here"))
        .hint("or use DP_INTERVAL_LOW(alias) and DP_INTERVAL_HIGH(alias)"))
}

/// The report of an aggregate.
pub(super) fn of(aggregate: &Expr) -> Expr {
    let end = |name: &str| call(name, vec![aggregate.clone()]);
    call(
        "concat",
        vec![
            text("{\"value\": "),
            aggregate.clone(),
            text(", \"low\": "),
            end(interval::LOW),
            text(", \"high\": "),
            end(interval::HIGH),
            text(", \"confidence\": 0.95}"),
        ],
    )
}

fn text(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).into())
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
