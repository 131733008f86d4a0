//! Names of the outermost SELECT: an expression without one is called as it is written, and `DP_INTERVAL_LOW(n)`, where `n` is another
//! column, is replaced by what `n` stands for.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, SelectItem, SetExpr,
    visit_expressions_mut,
};

use crate::interval;

/// Names what has no name, as people wrote it.
pub(super) fn name(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = Ident::with_quote('"', expr.to_string());
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

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
