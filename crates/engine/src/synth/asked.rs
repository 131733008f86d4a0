//! SQL over a model: what its rows would say if there were infinitely many of them.
//!
//! **Definition.** The marginal of the columns that a query uses is a table of weights, one row for each combination of codes. `COUNT(*)` is the sum of weights, `COUNT(x)` of those where x is
//! not NULL, `SUM(x)` of x times the weight, `AVG(x)` their quotient. Everything else is ordinary SQL.
//!
//! **What a number is.** The middle of its range.
//!
//! **Privacy.** A model is public, so what is asked of it costs nothing.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::MemTable;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, SetExpr, Statement,
    visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::coding::CodedColumn;
use crate::EngineError;

/// The column of weights; no column of a table is called so.
const WEIGHT: &str = "weight of the model";
/// The most combinations that a condition is tried on.
const MOST_COMBINATIONS: usize = 1 << 20;
/// The most text that is read.
const LONGEST: usize = 1 << 16;

/// The weights of all combinations of codes of these columns, the last one changing fastest.
pub(crate) type Marginal<'a> = dyn Fn(&[usize]) -> Result<Vec<f64>, EngineError> + 'a;

/// Answers a query about a model of these columns, under any name for the table.
pub(crate) fn answer(
    columns: &[CodedColumn],
    marginal: &Marginal<'_>,
    sql: &str,
) -> Result<Vec<RecordBatch>, EngineError> {
    let (sql, table) = weighted(sql)?;
    run(columns, marginal, &sql, &table).map(|(_, batches)| batches)
}

/// The combinations of codes for which a condition holds, each with a code for every column that it reads.
pub(crate) fn combinations_where(
    columns: &[CodedColumn],
    condition: &str,
) -> Result<(Vec<usize>, Vec<Vec<usize>>), EngineError> {
    let condition = Parser::new(&GenericDialect {}).try_with_sql(condition).and_then(|mut parser| {
        let condition = parser.parse_expr()?;
        parser.expect_token(&Token::EOF)?;
        Ok(condition)
    });
    let condition = condition.map_err(|error| wrong(&error.to_string()))?;
    let sql = format!("SELECT \"{WEIGHT}\" FROM model WHERE {condition}");
    // Instead of weights, the numbers of the combinations.
    let number = |places: &[usize]| {
        let cells = places.iter().try_fold(1usize, |cells, place| cells.checked_mul(columns[*place].codes()));
        match cells.filter(|cells| *cells <= MOST_COMBINATIONS) {
            Some(cells) => Ok((0..cells).map(|cell| cell as f64).collect()),
            None => Err(wrong(&format!("it reads columns with more than {MOST_COMBINATIONS} combinations"))),
        }
    };
    let (places, batches) = run(columns, &number, &sql, "model")?;
    let codes = |mut cell: usize| {
        let mut codes: Vec<usize> = places.iter().map(|place| columns[*place].codes()).collect();
        for code in codes.iter_mut().rev() {
            let size = *code;
            (*code, cell) = (cell % size, cell / size);
        }
        codes
    };
    let cells =
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Float64Type>().values().iter());
    let found = cells.map(|cell| codes(*cell as usize)).collect();
    Ok((places, found))
}

/// Runs a query over the weights of the columns it reads.
fn run(
    columns: &[CodedColumn],
    marginal: &Marginal<'_>,
    sql: &str,
    table: &str,
) -> Result<(Vec<usize>, Vec<RecordBatch>), EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| wrong(&error.to_string()))?;
    let fields = columns.iter().map(|column| {
        let kind = column.column_type()?;
        Ok(Field::new(&column.name, kind.arrow(), true))
    });
    let mut fields = fields.collect::<Result<Vec<_>, EngineError>>()?;
    fields.push(Field::new(WEIGHT, DataType::Float64, false));
    let schema = Arc::new(Schema::new(fields));
    let used = runtime.block_on(used(sql, table, &schema))?;
    let places: Vec<usize> = used.iter().copied().filter(|place| *place < columns.len()).collect();
    let weights = marginal(&places)?;
    let batch = combinations(columns, &places, weights)?;
    let run = async {
        let context = SessionContext::new();
        context.register_table(table, Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))?;
        context.sql_with_options(sql, harmless()).await?.collect().await
    };
    let batches = runtime.block_on(run).map_err(|error| wrong(&error.strip_backtrace()))?;
    Ok((places, batches))
}

fn wrong(text: &str) -> EngineError {
    EngineError::new("engine.synth.query", format!("the model cannot be asked this: {text}"))
}

/// Nothing but questions.
fn harmless() -> SQLOptions {
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false)
}

/// The query over weights, and the name it has for the table.
fn weighted(sql: &str) -> Result<(String, String), EngineError> {
    if sql.len() > LONGEST {
        return Err(wrong(&format!("it has {} bytes, and {LONGEST} are the most that is read", sql.len())));
    }
    let parsed = Parser::parse_sql(&GenericDialect {}, sql).map_err(|error| wrong(&error.to_string()))?;
    let shape = || {
        wrong("it is not a SELECT from one table")
            .hint("as in SELECT sex, COUNT(*) FROM model WHERE age > 30 GROUP BY sex")
    };
    let [Statement::Query(query)] = parsed.as_slice() else { return Err(shape()) };
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_ref() else { return Err(shape()) };
    let ([from], None) = (select.from.as_slice(), &query.with) else { return Err(shape()) };
    let datafusion::sql::sqlparser::ast::TableFactor::Table { name, args: None, .. } = &from.relation else {
        return Err(shape());
    };
    let table = match (name.0.as_slice(), from.joins.is_empty()) {
        ([part], true) => part.as_ident().map(|name| name.value.clone()).ok_or_else(shape)?,
        _ => return Err(shape()),
    };
    let mut aggregates = 0;
    let seen = visit_expressions_mut(&mut query, |expr| {
        if matches!(expr, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. }) {
            return ControlFlow::Break(shape());
        }
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        match aggregate(function) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(replaced)) => {
                aggregates += 1;
                *expr = replaced;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    });
    match seen {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) if aggregates == 0 => {
            Err(wrong("it counts nothing; ask for COUNT, SUM or AVG")
                .hint("rows are drawn by `demur synth sample`"))
        }
        ControlFlow::Continue(()) => Ok((query.to_string(), table)),
    }
}

/// An aggregate over weights; `None` for other functions.
fn aggregate(function: &Function) -> Result<Option<Expr>, EngineError> {
    let name = function.name.to_string().to_ascii_lowercase();
    let weight = format!("\"{WEIGHT}\"");
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let plain = list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
        && function.filter.is_none()
        && function.over.is_none();
    let text = match (name.as_str(), list.args.as_slice()) {
        ("count", []) | ("count", [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) if plain => {
            format!("SUM({weight})")
        }
        ("count" | "sum" | "avg" | "mean", [FunctionArg::Unnamed(FunctionArgExpr::Expr(x))]) if plain => {
            let there = format!("SUM(CASE WHEN ({x}) IS NOT NULL THEN {weight} ELSE 0 END)");
            let sum = format!("SUM(CAST(({x}) AS DOUBLE) * {weight})");
            match name.as_str() {
                "count" => there,
                "sum" => sum,
                _ => format!("{sum} / {there}"),
            }
        }
        ("count" | "sum" | "avg" | "mean", _) => {
            return Err(wrong(&format!("{function} is more than COUNT, SUM or AVG of one value")));
        }
        ("min" | "max" | "median" | "stddev" | "var" | "approx_distinct" | "array_agg", _) => {
            return Err(wrong(&format!("{name} cannot be asked of a model; COUNT, SUM and AVG can")));
        }
        _ => return Ok(None),
    };
    let parsed =
        Parser::new(&GenericDialect {}).try_with_sql(&text).and_then(|mut parser| parser.parse_expr());
    let parsed = parsed.map_err(|error| wrong(&error.to_string()))?;
    Ok(Some(Expr::Nested(Box::new(parsed))))
}

/// Which columns the query reads.
async fn used(sql: &str, table: &str, schema: &Arc<Schema>) -> Result<Vec<usize>, EngineError> {
    let plan = async {
        let context = SessionContext::new();
        let empty = MemTable::try_new(Arc::clone(schema), vec![vec![]])?;
        context.register_table(table, Arc::new(empty))?;
        context.sql_with_options(sql, harmless()).await?.into_optimized_plan()
    };
    let plan = plan.await.map_err(|error| wrong(&error.strip_backtrace()))?;
    let mut places = Vec::new();
    let walked = plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let all = || (0..schema.fields().len()).collect();
            places.extend(scan.projection.clone().unwrap_or_else(all));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| wrong(&error.to_string()))?;
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// The table of weights.
fn combinations(
    columns: &[CodedColumn],
    places: &[usize],
    weights: Vec<f64>,
) -> Result<RecordBatch, EngineError> {
    let mut arrays: Vec<(String, ArrayRef)> = Vec::new();
    let mut repeat = weights.len();
    for &place in places {
        let column = &columns[place];
        let codes = column.codes().max(1);
        repeat /= codes;
        let every: Vec<u32> = (0..weights.len()).map(|row| (row / repeat.max(1) % codes) as u32).collect();
        arrays.push((column.name.clone(), column.decode(&every, || 0.5)?));
    }
    arrays.push((WEIGHT.to_owned(), Arc::new(Float64Array::from(weights))));
    RecordBatch::try_from_iter(arrays).map_err(|error| wrong(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::coding::Coding;
    use datafusion::arrow::util::pretty::pretty_format_batches;

    fn columns() -> Vec<CodedColumn> {
        let column =
            |name: &str, kind: &str, coding| CodedColumn { name: name.into(), kind: kind.into(), coding };
        vec![
            column("sex", "string", Coding::Values { values: vec!["f".into(), "m".into()], others: false }),
            column("age", "int64", Coding::Whole { cuts: vec![0, 1, 2] }),
            column("pay", "float64", Coding::Real { cuts: vec![0.0, 10.0] }),
        ]
    }

    /// Weights 1, 2, 3, … over all combinations, summed over the columns that are not asked for.
    fn marginal(places: &[usize]) -> Result<Vec<f64>, EngineError> {
        let sizes = [3, 3, 2];
        let cells: usize = places.iter().map(|place| sizes[*place]).product();
        let mut sums = vec![0.0; cells];
        for whole in 0..18 {
            let digits = [whole / 6, whole / 2 % 3, whole % 2];
            let cell = places.iter().fold(0, |cell, place| cell * sizes[*place] + digits[*place]);
            sums[cell] += whole as f64 + 1.0;
        }
        Ok(sums)
    }

    fn shown(sql: &str) -> String {
        match answer(&columns(), &marginal, sql) {
            Ok(batches) => pretty_format_batches(&batches).unwrap().to_string(),
            Err(error) => error.to_string(),
        }
    }

    fn number(sql: &str) -> f64 {
        let batches = answer(&columns(), &marginal, sql).unwrap();
        let text = pretty_format_batches(&batches).unwrap().to_string();
        let cell = text.lines().nth(3).unwrap().trim_matches(|c| c == '|' || c == ' ').to_owned();
        cell.parse().unwrap()
    }

    #[test]
    fn aggregates_are_sums_of_weights() {
        assert_eq!(number("SELECT COUNT(*) FROM m"), 171.0);
        assert_eq!(number("SELECT COUNT(sex) FROM m"), 78.0);
        assert_eq!(number("SELECT COUNT(*) FROM anything WHERE sex = 'm' AND age = 1"), 9.0 + 10.0);
        // age is 0 with weights 1, 2, 7, 8, 13, 14, and 1 with 3, 4, 9, 10, 15, 16.
        assert_eq!(number("SELECT SUM(age) FROM m"), 57.0);
        assert!((number("SELECT AVG(age) FROM m") - 57.0 / 102.0).abs() < 1e-12);
        assert_eq!(number("SELECT SUM(pay) / COUNT(pay) FROM m"), 5.0);
    }

    #[test]
    fn groups_filters_and_orders_are_those_of_sql() {
        let text = shown(
            "SELECT sex, COUNT(*) AS n FROM m WHERE age IS NOT NULL GROUP BY sex HAVING COUNT(*) > 20 ORDER BY n DESC",
        );
        let rows: Vec<_> = text.lines().skip(3).take(2).collect();
        assert!(rows[0].contains("58.0") && rows[1].contains("m") && rows[1].contains("34.0"), "{text}");
    }

    #[test]
    fn conditions_name_combinations() {
        let (places, found) = combinations_where(&columns(), "age = 1 AND sex IN ('m')").unwrap();
        assert_eq!((places, found), (vec![0, 1], vec![vec![1, 1]]));
        let (places, found) = combinations_where(&columns(), "pay IS NULL").unwrap();
        assert_eq!((places, found), (vec![2], vec![vec![1]]));
        assert!(combinations_where(&columns(), "age = 1; SELECT 1").is_err());
        assert!(combinations_where(&columns(), "nobody = 1").is_err());
    }

    #[test]
    fn what_is_no_question_for_a_model_is_refused() {
        for (sql, words) in [
            ("SELECT sex FROM m", "counts nothing"),
            ("SELECT MEDIAN(age) FROM m", "cannot be asked of a model"),
            ("SELECT COUNT(DISTINCT age) FROM m", "more than"),
            ("SELECT COUNT(*) FROM m, m AS n", "not a SELECT"),
            ("SELECT COUNT(*) FROM (SELECT 1)", "not a SELECT"),
            ("COPY m TO 'x'", "not a SELECT"),
            ("SELECT COUNT(*) FROM m WHERE age IN (SELECT 1)", "not a SELECT"),
            ("SELECT COUNT(*) FROM m WHERE nope = 1", "nope"),
            ("SELECT COUNT(", "cannot be asked"),
        ] {
            let text = shown(sql);
            assert!(text.contains(words), "{sql}: {text}");
        }
    }
}
