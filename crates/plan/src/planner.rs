//! From SQL and a catalog to a [`Bounded`] question.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, ScalarValue};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerContext};
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use datafusion::sql::sqlparser::ast::Statement;
use demur_tally::{Measure, Spec};

use crate::PlanError;
use crate::after;
use crate::allow;
use crate::bounded::{Bounded, Keys, Recipe, Rules, Statistic};
use crate::bounding::Measures;
use crate::catalog::{Catalog, PrivacyUnit, Table};
use crate::facts;
use crate::grouping;
use crate::names::{self, Names};
use crate::place::Place;
use crate::relation::{Lift, Relation};
use crate::sql::{self, GroupSelection, Options};
use crate::total;
use crate::unfolded;

/// The most public keys a question may have: each of them is answered, stored and signed, whether anybody has it or not.
const PUBLIC_KEYS: usize = 1 << 17;

/// Plans one query; reads no row.
///
/// The options are what flags say; the query's own clause goes before them.
pub fn plan(catalog: &Catalog, text: &str) -> Result<Bounded, PlanError> {
    planned(catalog, text).map_err(|error| {
        let place = sql::place_of_refused(&error.to_string(), text);
        error.at(place)
    })
}

fn planned(catalog: &Catalog, text: &str) -> Result<Bounded, PlanError> {
    let written = sql::read(text)?;
    let names = Names::of(catalog);
    let canonical = written.query.to_string();
    let logical = SqlToRel::new_with_options(&names, ParserOptions::new().with_collect_spans(true))
        .sql_statement_to_plan(Statement::Query(written.query))
        .map_err(error_of)?;
    check_values(&logical)?;
    let logical = in_joins(logical).map_err(error_of)?;
    unfolded::check(&logical)?;
    let aggregate = aggregate_of(&logical)?;
    let mut lift = Lift::new(&names);
    let relation = lift.private(&aggregate.input)?;
    let partners = lift.partners;
    let rules = Rules::of(relation.private_tables())?;
    check_unit(&relation, &written.options)?;
    let (group_by, sets) = grouping::read(&aggregate.group_expr)?;
    let keys = group_by.iter().map(|key| key_expression(key, &relation)).collect::<Result<Vec<_>, _>>()?;
    let shown = which_keys(&keys, &relation, &written.options)?;
    let mut limits = Limits::of(&relation, &rules, &written.options, &shown);
    if rules.second.is_some() {
        limits.groups_per_unit = all_groups(&shown)?;
    }
    let mut measures = Measures::new(&relation, limits.rows_per_group);
    let statistics = measures.statistics(&aggregate.aggr_expr)?;
    if rules.second.is_some() {
        check_two(&statistics, &measures.measures, sets.is_some())?;
    }
    // Totals have one more column, which says what they run over.
    let after = after::rebuild(&logical, &aggregate.schema, keys.len() + usize::from(sets.is_some()))?;
    let groups_per_unit = limits.groups_per_unit;
    let totals =
        |sets| grouping::groupings(&group_by, sets, &shown, &statistics, &measures.measures, groups_per_unit);
    let totals = sets.map(totals).transpose()?;
    let spec = Spec {
        has_unit: relation.unit().is_some(),
        keys: keys.len(),
        inputs: measures.inputs.len(),
        groups_per_unit: limits.groups_per_unit,
        measures: measures.measures.clone(),
    };
    let rows = rows(&relation, &keys, &measures.inputs, &shown)?;
    let noise = written.options.noise.unwrap_or(rules.noise);
    Ok(Bounded {
        text: canonical,
        explain: written.explain,
        noise,
        options: written.options,
        rows,
        partners,
        spec,
        keys: shown,
        statistics,
        totals,
        after,
        rules,
        tables: relation.tables,
    })
}

/// A subquery that stands for a value has one row at most, whatever its tables hold: as a join it would double rows for each row more.
///
/// Where it speaks of columns around it, the planner below us looks after that.
fn check_values(plan: &LogicalPlan) -> Result<(), PlanError> {
    let mut several = None;
    let found = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| match expr {
                Expr::ScalarSubquery(value)
                    if value.outer_ref_columns.is_empty()
                        && value.subquery.max_rows().is_none_or(|rows| rows > 1) =>
                {
                    several = Some(value.subquery.expressions().iter().find_map(Place::of_columns));
                    Ok(TreeNodeRecursion::Stop)
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    });
    found.map_err(error_of)?;
    several.map_or(Ok(()), |place| Err(several_values().at(place)))
}

fn several_values() -> PlanError {
    let text = "a subquery that stands for one value may find several";
    PlanError::refused("plan.value", text)
        .hint("write = (SELECT MAX(name) …), which is one value, or IN (SELECT name …)")
}

/// The query with its types settled and its subqueries, crossed tables and DISTINCTs as joins and groups.
///
/// These rewritings only bring a query into a form that is read here; whatever comes out is checked.
fn in_joins(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let mut options = ConfigOptions::default();
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    let plan = Analyzer::new().execute_and_check(plan, &options, |_, _| {})?;
    let context = OptimizerContext::new_with_config_options(Arc::new(options));
    Optimizer::with_rules(vec![
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
    ])
    .optimize(plan, &context, |_, _| {})
}

/// What the planner below us says, in a sentence of ours.
pub(crate) fn error_of(error: DataFusionError) -> PlanError {
    let place = Place::of_error(&error);
    names::no_column(&error).unwrap_or_else(|| said(&error)).at(place)
}

/// Whatever has one of these speaks of the planner, not of the question: its name, and values as programs write them.
const OWN: [&str; 26] = [
    "DataFusion",
    "ExprPlanner",
    "UserDefined",
    " { ",
    "Execution error",
    "Cast error",
    "Invalid argument error",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Float32",
    "Float64",
    "Timestamp(",
    "Utf8",
    "Decimal128",
    "Interval(",
    "NULLS LAST",
    "has no type information",
    "not supported yet",
    "not yet supported",
    "is not implemented",
    "Unsupported Value",
    "Unsupported SQL type",
    "must be root of the plan",
    "Correlated scalar subquery",
];

/// How it begins to speak of types.
const WRONG_TYPES: [&str; 5] = [
    "Cannot infer common argument type",
    "Cannot get result type",
    "Cannot coerce",
    "Cannot automatically convert",
    "There isn't a common type",
];

/// What it says of operators that it does not know.
const OPERATORS: [&str; 2] = ["Unsupported binary operator", "Unsupported SQL unary operator"];

fn said(error: &DataFusionError) -> PlanError {
    let text = error.find_root().strip_backtrace();
    let prefixes = [
        "Error during planning: ",
        "SQL error: ",
        "Schema error: ",
        "This feature is not implemented: ",
        "Arrow error: ",
        "Parser error: ",
    ];
    let text = prefixes.iter().fold(text.as_str(), |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
    match text.strip_prefix("Invalid function '") {
        Some(rest) => {
            let name = rest.split('\'').next().unwrap_or_default();
            let known = names::function_names();
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            let meant =
                names::near(name, &known).map(|near| format!("did you mean {}? ", near.to_uppercase()));
            let hint = format!(
                "{}aggregates: COUNT, SUM, AVG, MIN, MAX, MEDIAN, PERCENTILE_CONT, VAR_POP, STDDEV, CORR, HISTOGRAM and others; docs/sql.md has them and the functions",
                meant.unwrap_or_default()
            );
            PlanError::refused(
                "plan.function",
                format!("the function {name} is not on the list of what can be used"),
            )
            .hint(hint)
        }
        None if text.starts_with("Could not plan array literal") => {
            PlanError::refused("plan.expression", "a list in brackets cannot be used here").hint("use IN (…)")
        }
        None if text.starts_with("GetFieldAccess") || text.starts_with("Dot access") => {
            PlanError::refused("plan.expression", "a part of a value, as in x[1] or x.y, cannot be used here")
                .hint("columns hold single values; SUBSTR takes a part of a text")
        }
        None if text.starts_with("Cannot create filter with non-boolean predicate") => {
            PlanError::mistake("plan.type", "WHERE and HAVING need a condition, which is true or false")
                .hint("compare something, as in WHERE age >= 18")
        }
        None if text.starts_with("Projections require unique expression names") => {
            PlanError::mistake("plan.name", "two columns would have the same name")
                .hint("give one of them another with AS")
        }
        // Aggregates are told apart by their names alone, in which casts do not stand.
        None if text.starts_with("Schema contains duplicate") => {
            PlanError::mistake("plan.name", "two aggregates or keys would have the same name")
                .hint("an aggregate is no key, and a CAST changes no name: write SUM(CAST(x AS BIGINT) + 0)")
        }
        None if text.starts_with("Correlated scalar subquery must be aggregated") => several_values(),
        // The names that subqueries get as columns.
        None if text.contains("__scalar_sq") || text.contains("__correlated_sq") => {
            PlanError::refused("plan.expression", "a subquery beside answers cannot be used here")
                .hint("ask it as a question of its own")
        }
        // What it says about its own settings and types is not for those who ask.
        None if WRONG_TYPES.iter().any(|start| text.starts_with(start)) => PlanError::mistake(
            "plan.type",
            "two values are compared or computed with whose types do not go together",
        )
        .hint("CAST one of them, as in CAST(x AS BIGINT); texts stand in '…', names in \"…\""),
        None if text.contains("No function matches") => {
            PlanError::mistake("plan.argument", "a function was given arguments that it does not take")
                .hint("docs/sql.md has the functions and what they take")
        }
        None if OPERATORS.iter().any(|word| text.contains(word)) => {
            PlanError::refused("plan.expression", "an operator of this question cannot be used here")
                .hint("arithmetic, comparisons, AND, OR, NOT and || can be used")
        }
        None if text.contains("expanding wildcard") || text.contains("must be in GROUP BY") => {
            PlanError::mistake("plan.group", "a column beside aggregates is neither a key nor aggregated")
                .hint("name it in GROUP BY, or leave it out")
        }
        None if text.starts_with("Unsupported ast node") || OWN.iter().any(|word| text.contains(word)) => {
            PlanError::refused("plan.clause", "a part of this query cannot be used here")
                .hint("see docs/sql.md for what can be asked")
        }
        None => {
            let text = text.split(" You can use double quotes").next().unwrap_or(text);
            PlanError::mistake("plan.meaning", text.replace('\n', " "))
        }
    }
}

/// The aggregate that is made private: the first below what is done with answers.
fn aggregate_of(plan: &LogicalPlan) -> Result<&Aggregate, PlanError> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => Ok(aggregate),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_) => match plan.inputs().first() {
            Some(input) => aggregate_of(input),
            None => Err(allow::refused_node(plan)),
        },
        LogicalPlan::TableScan(_) => {
            Err(PlanError::refused("plan.rows", "this asks for rows, and rows are never shown")
                .hint("ask for COUNT, SUM, AVG, MEDIAN or PERCENTILE_CONT, with GROUP BY"))
        }
        other => Err(allow::refused_node(other)),
    }
}

/// The unit is the owner's to choose.
fn check_unit(relation: &Relation, options: &Options) -> Result<(), PlanError> {
    let Some(asked) = &options.unit_column else { return Ok(()) };
    let is_unit = |table: &Table| table.unit == PrivacyUnit::Column(asked.clone());
    if relation.private_tables().any(is_unit) {
        return Ok(());
    }
    let says = |table: &Table| match &table.unit {
        PrivacyUnit::Row => "each row".to_owned(),
        _ => format!("`{}`", table.unit_name()),
    };
    let units: Vec<_> = relation.private_tables().map(says).collect();
    let text = format!(
        "the query takes `{asked}` for the privacy unit, but the catalog says {}",
        units.join(" and ")
    );
    Err(PlanError::refused("plan.unit", text).hint("leave out privacy_unit_column"))
}

fn key_expression(expr: &Expr, relation: &Relation) -> Result<Expr, PlanError> {
    allow::on_rows(expr)?;
    total::rewrite(expr.clone(), relation.plan.schema()).map(Expr::unalias).map_err(error_of)
}

/// Public keys where the catalog has them for every key, else private ones.
fn which_keys(keys: &[Expr], relation: &Relation, options: &Options) -> Result<Keys, PlanError> {
    if keys.is_empty() {
        return Ok(Keys::None);
    }
    let values: Option<Vec<_>> = keys.iter().map(|key| facts::of(key, relation).values).collect();
    match (values, options.group_selection) {
        (_, Some(GroupSelection::Private)) | (None, None) => Ok(Keys::Private),
        (Some(values), _) => product(&values).map(Keys::Public),
        (None, Some(GroupSelection::Public)) => Err(PlanError::refused(
            "plan.keys",
            "public groups were asked for, but the catalog has no public values for every key",
        )
        .hint("write values = [...] for the columns in demur.toml, or let keys be selected privately")),
    }
}

/// All combinations of public values.
fn product(values: &[Vec<ScalarValue>]) -> Result<Vec<Vec<ScalarValue>>, PlanError> {
    let many =
        values.iter().try_fold(1usize, |n, values| n.checked_mul(values.len()).filter(|&n| n <= PUBLIC_KEYS));
    if many.is_none() {
        let text = format!("the public values make more than {PUBLIC_KEYS} groups");
        return Err(PlanError::refused("plan.keys", text).hint("group by fewer columns, or write group_selection_strategy = private in OPTIONS: then only groups that enough units have are shown"));
    }
    let mut all = vec![Vec::new()];
    for values in values {
        let longer = |key: &Vec<ScalarValue>| {
            let key = key.clone();
            values
                .iter()
                .map(move |value| key.iter().chain([value]).cloned().collect())
                .collect::<Vec<Vec<_>>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

/// Units of two kinds count in all groups, so it must be known how many there are.
fn all_groups(keys: &Keys) -> Result<u32, PlanError> {
    match keys {
        Keys::None => Ok(1),
        Keys::Public(keys) => Ok(u32::try_from(keys.len()).unwrap_or(u32::MAX).max(1)),
        Keys::Private => Err(PlanError::refused(
            "plan.second_unit",
            "where two kinds of units are hidden, the keys must be public: one of the second kind may be in every group",
        )
        .hint("write values = [...] for the keys in demur.toml, or group by a CASE")),
    }
}

/// What two kinds of units can share out.
fn check_two(statistics: &[Statistic], measures: &[Measure], totals: bool) -> Result<(), PlanError> {
    let adds_up = |statistic: &&Statistic| {
        statistic.recipe != Recipe::Units
            && statistic.recipe.measures().into_iter().all(|measure| measures[measure].one_row().is_some())
    };
    let refuse = |what: &str| {
        let text = format!("{what} cannot be asked where two kinds of units are hidden");
        Err(PlanError::refused("plan.second_unit", text)
            .hint("COUNT, COUNT_IF, SUM, AVG, VAR_POP and STDDEV can"))
    };
    match statistics.iter().find(|statistic| !adds_up(statistic)) {
        Some(statistic) => refuse(&statistic.name),
        None if totals => refuse("totals by ROLLUP, CUBE or GROUPING SETS"),
        None => Ok(()),
    }
}

struct Limits {
    groups_per_unit: u32,
    rows_per_group: u64,
}

impl Limits {
    /// The owner's limits, narrowed by the query.
    fn of(relation: &Relation, rules: &Rules, options: &Options, keys: &Keys) -> Self {
        if relation.unit().is_none() {
            return Self { groups_per_unit: 1, rows_per_group: 1 };
        }
        // Somebody who has one row is in one group with it.
        let rows = relation.rows_per_unit.unwrap_or(u64::MAX).max(1);
        let groups = options.max_groups.unwrap_or(u64::MAX).min(rows);
        let groups = u32::try_from(groups).unwrap_or(u32::MAX).min(rules.max_groups_per_unit);
        let groups_per_unit = match keys {
            Keys::None => 1,
            Keys::Public(keys) => groups.min(u32::try_from(keys.len()).unwrap_or(u32::MAX)).max(1),
            Keys::Private => groups,
        };
        let rows_per_group = options.max_rows.unwrap_or(u64::MAX).min(rows).min(rules.max_rows_per_group);
        Self { groups_per_unit, rows_per_group }
    }
}

/// The rows that are counted: unit, keys, inputs.
fn rows(relation: &Relation, keys: &[Expr], inputs: &[Expr], shown: &Keys) -> Result<LogicalPlan, PlanError> {
    let mut builder = LogicalPlanBuilder::from(relation.plan.clone());
    if let Keys::Public(_) = shown {
        // A unit's groups are not to be spent on keys that nobody will see.
        for key in keys {
            let values = facts::of(key, relation).values.unwrap_or_default();
            let list = values.into_iter().map(|value| Expr::Literal(value, None)).collect();
            builder = builder.filter(key.clone().in_list(list, false)).map_err(error_of)?;
        }
    }
    let named = |name: &str, exprs: &[Expr]| -> Vec<Expr> {
        exprs.iter().enumerate().map(|(index, expr)| expr.clone().alias(format!("{name} {index}"))).collect()
    };
    let column = |column: &Column, name: &str| Expr::Column(column.clone()).alias(name);
    let unit = relation.unit().map(|unit| column(unit, "unit"));
    let second = relation.second.as_ref().map(|second| column(second, "second unit"));
    // Two kinds of units are like further keys until they are settled.
    let (before, after) = if second.is_some() { (None, unit) } else { (unit, None) };
    let keys = before.into_iter().chain(named("key", keys)).chain(after).chain(second);
    let columns = keys.chain(named("input", inputs));
    let rows = builder.project(columns.collect::<Vec<_>>()).and_then(|builder| builder.build());
    let rows = rows.map_err(error_of)?;
    let is_strange = |kind: &DataType| kind.is_nested() || matches!(kind, DataType::Interval(_));
    match rows.schema().fields().iter().find(|field| is_strange(field.data_type())) {
        None => Ok(rows),
        Some(field) => {
            let text =
                format!("what is counted or grouped by here is {}", names::in_words(field.data_type()));
            Err(PlanError::refused("plan.type", text)
                .hint("numbers, strings, dates, timestamps and conditions can be counted and grouped by"))
        }
    }
}
