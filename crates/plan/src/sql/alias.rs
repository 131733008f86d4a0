//! `DP_INTERVAL_LOW(n)`, where `n` is another column of the same SELECT: the name is replaced by what it stands for.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr, visit_expressions_mut,
};

use crate::interval;

/// Replaces the names in the outermost SELECT and its ORDER BY.
pub(super) fn resolve(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let mut named = HashMap::new();
    for item in &select.projection {
        if let SelectItem::ExprWithAlias { expr, alias } = item {
            named.insert(alias.value.to_lowercase(), expr.clone());
        }
    }
    let _ = visit_expressions_mut(query, |expr| {
        replace(expr, &named);
        ControlFlow::<()>::Continue(())
    });
}

fn replace(expr: &mut Expr, named: &HashMap<String, Expr>) {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return };
    let name = name.to_string().to_lowercase();
    if name != interval::LOW && name != interval::HIGH {
        return;
    }
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(inner)) = arg
            && let Expr::Identifier(word) = inner
            && let Some(meant) = named.get(&word.value.to_lowercase())
        {
            *inner = meant.clone();
        }
    }
}
