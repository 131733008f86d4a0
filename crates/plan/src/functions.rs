//! The scalar functions that may be used on rows, each made total.
//!
//! **Why a list.** A function that fails on some values tells by failing that such a value exists; one that keeps state, reads a clock or allocates
//! without limit does worse. So a function is allowed by name, and evaluated by [`Total`](crate::total::Total), which returns NULL where it
//! would fail.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::functions::{core, datetime, math, string, unicode};
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{Expr, ScalarUDF};

use crate::interval;

/// What may be called, by every name it goes by.
pub(crate) fn allowed() -> HashMap<String, Arc<ScalarUDF>> {
    let listed = [
        core::coalesce(),
        core::greatest(),
        core::least(),
        core::nullif(),
        core::nvl(),
        datetime::date_part(),
        datetime::date_trunc(),
        math::abs(),
        math::ceil(),
        math::exp(),
        math::floor(),
        math::ln(),
        math::log10(),
        math::log2(),
        math::power(),
        math::round(),
        math::signum(),
        math::sqrt(),
        math::trunc(),
        string::btrim(),
        string::concat(),
        string::contains(),
        string::ends_with(),
        string::lower(),
        string::ltrim(),
        string::octet_length(),
        string::rtrim(),
        string::starts_with(),
        string::upper(),
        unicode::character_length(),
        unicode::left(),
        unicode::right(),
        unicode::strpos(),
        unicode::substr(),
        interval::low(),
        interval::high(),
    ];
    let mut names = HashMap::new();
    for function in listed {
        for alias in function.aliases() {
            names.insert(alias.clone(), Arc::clone(&function));
        }
        names.insert(function.name().to_owned(), function);
    }
    names
}

/// Whether a function is on the list.
pub(crate) fn is_allowed(name: &str) -> bool {
    thread_local! {
        static NAMES: HashMap<String, Arc<ScalarUDF>> = allowed();
    }
    NAMES.with(|names| names.contains_key(name))
}

/// A part of a date that nobody knows, and which there are: it would be NULL in every row.
pub(crate) fn unknown_part(name: &str, args: &[Expr]) -> Option<(String, &'static str)> {
    const FIELDS: &str = "there are year, quarter, month, week, day, doy, dow, isodow, hour, minute, second, millisecond, microsecond, nanosecond, epoch";
    const UNITS: &str =
        "there are year, quarter, month, week, day, hour, minute, second, millisecond, microsecond";
    let known = match name {
        "date_part" => FIELDS,
        "date_trunc" => UNITS,
        _ => return None,
    };
    let part = match args.first()? {
        Expr::Literal(value, _) => value.try_as_str()??.to_ascii_lowercase(),
        _ => return None,
    };
    let mut words = known.trim_start_matches("there are ").split(", ");
    (!words.any(|word| word == part || part.strip_suffix('s') == Some(word))).then_some((part, known))
}

/// What reads EXTRACT, SUBSTRING and their kin.
pub(crate) fn planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![
        Arc::new(core::planner::CoreFunctionPlanner::default()),
        Arc::new(datetime::planner::DatetimeFunctionPlanner),
        Arc::new(unicode::planner::UnicodeFunctionPlanner),
    ]
}
