//! [`Engine::synthesise`]: from a private table to a public model of it.

use std::ops::ControlFlow;

use demur_core::{Guarantee, PrivacyLoss};
use demur_ledger::Hash;
use demur_noise::Entropy;
use demur_plan::catalog::Table as CatalogTable;
use demur_synth::{
    ColumnSet, Columns, DEFAULT_CELLS, Neighbours, Plan, Progress, Table as CodedTable, Watch, Zeros,
};

use super::asked::combinations_where;
use super::coding::{CodedColumn, Coding};
use super::domain::{Domain, Part};
use super::made::{Header, Synthetic};
use super::rows::Coded;
use super::wanted::{Method, Wanted};
use crate::backend::Backend;
use crate::private::Private;
use crate::{Ask, Certificate, Engine, EngineError, Project, Question, Quote, Table, Term};

/// A column that was asked about, the entry that paid for it, and whether it was paid for before.
pub type AskedColumn = (String, u64, bool);

/// A model that was released, now or earlier.
pub struct Made {
    /// The model.
    pub model: Synthetic,
    /// What is promised about it.
    pub certificate: Certificate,
    /// Whether it was released before, and cost nothing now.
    pub replayed: bool,
    /// What was asked about columns before: which column, the entry of the ledger, and whether it was there already.
    pub asked: Vec<AskedColumn>,
}

/// The rows of a table on their way to a model.
pub(crate) struct Modelled<'a, 'w> {
    plan: &'a Plan,
    header: &'a Header,
    table: CodedTable,
    watch: &'a mut Watch<'w>,
}

impl Private for Modelled<'_, '_> {
    fn loss(&self) -> PrivacyLoss {
        self.plan.loss().clone()
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        let model = self.plan.fit(&self.table, entropy, self.watch)?;
        Synthetic { header: self.header.clone(), model: model.into_value() }.texts()
    }
}

impl Engine {
    /// Charges, asks about the columns what is not declared, reads the rows, and fits a model.
    ///
    /// `watch` hears of public progress. The same wish about unchanged data is answered from the ledger.
    pub fn synthesise(
        &self,
        project: &Project,
        wanted: &Wanted,
        backend: &dyn Backend,
        watch: &mut Watch<'_>,
    ) -> Result<Made, EngineError> {
        let table = project.catalog.table(&wanted.table)?;
        let domain = wanted.domain(project)?;
        let shares = wanted.shares_of(&domain)?;
        wanted.rehearse(table, &domain, shares.model)?;
        backend.check(table)?;
        let each = shares.asked.first().map(|asked| asked.1);
        let (columns, asked) = self.columns(project, wanted, &domain, each, backend, watch)?;
        let header = Header::new(wanted, table, columns, shares.model);
        let plan = plan(&header, table, wanted, shares.model)?;
        let version = self.fingerprint(&backend.version(table)?);
        let question = Question {
            budget: project.catalog.budget.name.clone(),
            requester: wanted.requester.clone(),
            id: None,
            data_version: Some(version),
            text: format!(
                "a model of `{}` by {}, as described by {}",
                header.table,
                header.method,
                Hash::of(header.text()?.as_bytes())
            ),
            adjacency: table.adjacency,
            terms: vec![term(&header, &plan)],
            columns: Vec::new(),
        };
        let answer = self.ask(&question, || {
            told(watch, "reading rows", 0, None)?;
            let coded = Coded::read(table, &header.columns, wanted.rows_per_unit, backend)
                .map_err(|_| EngineError::after_the_charge())?;
            let coded = CodedTable::new(domain_of(&header.columns)?, coded.codes)?;
            Ok::<_, EngineError>(Modelled { plan: &plan, header: &header, table: coded, watch })
        });
        let answer = answer.map_err(|error| match asked.is_empty() {
            true => error,
            false => error
                .hint("what was asked about the columns is in the ledger, and costs nothing the next time"),
        })?;
        let model = Synthetic::read(&answer.certificate.released)?;
        Ok(Made { model, certificate: answer.certificate, replayed: answer.replayed, asked })
    }

    /// The codings of all columns, after asking for those that are not declared.
    fn columns(
        &self,
        project: &Project,
        wanted: &Wanted,
        domain: &Domain,
        each: Option<Guarantee>,
        backend: &dyn Backend,
        watch: &mut Watch<'_>,
    ) -> Result<(Vec<CodedColumn>, Vec<AskedColumn>), EngineError> {
        let (mut columns, mut asked) = (Vec::new(), Vec::new());
        let questions = domain.columns.iter().filter(|part| part.sql().is_some()).count();
        for part in &domain.columns {
            let (Some(sql), Some(cost)) = (part.sql(), each) else {
                if let Part::Known(column) = part {
                    columns.push(column.clone());
                }
                continue;
            };
            told(watch, "asking about columns", asked.len() + 1, Some(questions))?;
            let ask = Ask {
                sql: sql.to_owned(),
                epsilon: Some(cost.epsilon.value().to_string()),
                delta: Some(cost.delta.value().to_string()),
                requester: wanted.requester.clone(),
                ..Ask::default()
            };
            let quote = Quote::make(project, &ask)?;
            let answer = self.query(project, &ask, &quote, backend)?;
            let released = Table::read(&answer.certificate.columns, &answer.certificate.released)?;
            columns.push(coded(part, &released));
            asked.push((part.name().to_owned(), answer.certificate.charge.sequence, answer.replayed));
        }
        Ok((columns, asked))
    }
}

impl Wanted {
    /// Whatever can be wrong shall be found before the first question is charged.
    pub(crate) fn rehearse(
        &self,
        table: &CatalogTable,
        domain: &Domain,
        guarantee: Guarantee,
    ) -> Result<Plan, EngineError> {
        let guessed = domain.columns.iter().map(Part::guess).collect();
        plan(&Header::new(self, table, guessed, guarantee), table, self, guarantee)
    }
}

/// Says what happens before the model is fitted; nothing of the model's part is spent yet.
fn told(
    watch: &mut Watch<'_>,
    stage: &'static str,
    step: usize,
    steps: Option<usize>,
) -> Result<(), EngineError> {
    match watch(&Progress { stage, step, steps, spent: 0.0, set: None, expected_error: None }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(EngineError::new("engine.synth.stopped", "the work was stopped, and nothing more is charged"))
        }
    }
}

/// A column whose question was answered.
fn coded(part: &Part, released: &Table) -> CodedColumn {
    let firsts = released.rows.iter().filter_map(|row| row.first()).map(|cell| &cell.value);
    match part {
        Part::Known(column) => column.clone(),
        Part::Values { name, .. } => {
            let values = firsts.filter_map(|value| value.as_str().map(str::to_owned)).collect();
            let coding = Coding::Values { values, others: true };
            CodedColumn { name: name.clone(), kind: "string".to_owned(), coding }
        }
        Part::Cuts { column, .. } => {
            let cuts: Vec<f64> = firsts
                .flat_map(|list| list.as_array().cloned().unwrap_or_default())
                .filter_map(|cut| cut.as_f64())
                .collect();
            column.cut_at(&cuts)
        }
    }
}

/// The columns as the model knows them.
pub(crate) fn domain_of(columns: &[CodedColumn]) -> Result<Columns, EngineError> {
    Ok(Columns::new(columns.iter().map(|column| (column.name.clone(), column.codes())))?)
}

/// How the model is fitted, decided before a row is read.
fn plan(
    header: &Header,
    table: &CatalogTable,
    wanted: &Wanted,
    guarantee: Guarantee,
) -> Result<Plan, EngineError> {
    let neighbours = Neighbours::new(table.adjacency, wanted.rows_per_unit)?;
    let columns = domain_of(&header.columns)?;
    let mut zeros = Zeros::none();
    for condition in &wanted.impossible {
        let (places, combinations) = combinations_where(&header.columns, condition)?;
        zeros.add(&columns, ColumnSet::new(places), &combinations)?;
    }
    let workload = wanted.workload_of(columns.len());
    let marginals = || workload.marginals(&columns);
    let plan = match wanted.method {
        Method::Mst => Plan::mst(&columns, neighbours, guarantee)?,
        Method::Aim => Plan::aim(&columns, neighbours, guarantee, &marginals()?, DEFAULT_CELLS)?,
        Method::Mwem => Plan::mwem(&columns, neighbours, guarantee.epsilon, &marginals()?, DEFAULT_CELLS)?,
        Method::Blr => Plan::blr(&columns, neighbours, guarantee.epsilon, workload.ways(), wanted.records)?,
    };
    Ok(plan.with_zeros(zeros)?)
}

fn term(header: &Header, plan: &Plan) -> Term {
    Term {
        what: format!("a model of the table `{}`, fitted by {}", header.table, header.method),
        bounds: Some(format!("a unit counts for at most {} rows", header.rows_per_unit)),
        sensitivity: sensitivity(plan.neighbours()),
        mechanism: plan.loss().clone(),
        count: 1,
    }
}

/// How far one unit moves every marginal, in words.
fn sensitivity(neighbours: Neighbours) -> String {
    let (l1, l2) = (neighbours.l1(), neighbours.l2_squared());
    format!("a unit moves each marginal by at most {l1} in all, and by at most √{l2} in ℓ2")
}
