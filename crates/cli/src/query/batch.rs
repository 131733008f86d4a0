//! `--batch FILE`: questions that are declared together, paid for by one charge.

use std::io::Write;
use std::path::Path;

use demur_engine::{Answer, Batch, Embedded, Project, Table};
use serde_json::{Value, json};

use super::waiting::{self, Waiting};
use super::{Payer, explain as plan, print, read, statements};
use crate::args::query::{Asked, Explain, Form, Query, Shape};
use crate::failure::Failure;
use crate::place::{self, Place};
use crate::table::one_line;

/// How much of a question is shown above its answer.
const WIDEST: usize = 100;

/// Asks, charges once, answers all.
pub(super) fn query(args: &Query, path: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let form = form(args)?;
    let project = super::project(args.asked.project.as_deref())?;
    let text = read(path)?;
    let questions = statements::all(&text);
    let ask = super::shared(&args.asked, args.requester.as_deref(), args.request_id.clone())?;
    let payer = Payer::of(args, &project).map_err(Failure::uncharged)?;
    let batch = Batch::make(&project, &questions, &ask).map_err(|error| about(error, &questions))?;
    if args.dry_run {
        let shape = if form == Form::Table { Shape::Table } else { Shape::Json };
        return plans(&batch, &questions, (&project, &payer.place), shape, out);
    }
    let backend = Embedded::new(&project.folder)?.with_memory(super::bytes(args.memory));
    let engine = payer.engine(args, &project, &batch.loss()).map_err(Failure::uncharged)?;
    waiting::listen(backend.reading(), waiting::CHARGED)?;
    let waiting = Waiting::start(backend.reading());
    let answered = engine.query_batch(&project, &ask, &batch, &backend);
    waiting.end();
    let (answer, tables) = answered?;
    if let Some(path) = &args.certificate {
        place::write_certificate(path, &answer)?;
    }
    show(&batch, &questions, (&answer, &tables), form, out)?;
    out.flush()?;
    if form == Form::Table {
        let _ = writeln!(std::io::stderr(), "{}", print::told(&answer, batch.guarantee));
    }
    Ok(())
}

/// Shows what each question of a batch would get, for nothing.
pub(super) fn explain(args: &Explain, path: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let project = super::project(args.asked.project.as_deref())?;
    let text = read(path)?;
    let questions = statements::all(&text);
    let ask = super::shared(&args.asked, None, None)?;
    let batch = Batch::make(&project, &questions, &ask).map_err(|error| about(error, &questions))?;
    let place = Place::of_project(args.asked.ledger.as_deref(), &project.folder)?;
    plans(&batch, &questions, (&project, &place), args.format, out)
}

/// The file of a batch, if there is one.
pub(super) fn file(asked: &Asked) -> Option<&Path> {
    asked.batch.as_deref()
}

/// A batch has several tables, and some forms hold one.
fn form(args: &Query) -> Result<Form, Failure> {
    let single =
        [(args.output.is_some(), "-o"), (args.plot.is_some(), "--plot"), (args.repeat.is_some(), "--repeat")];
    if let Some((_, flag)) = single.iter().find(|(given, _)| *given) {
        let text = format!("{flag} is for one answer, and a batch has several");
        return Err(Failure::new("cli.batch", text).hint("ask that question by itself, or use --format json"));
    }
    match args.format.unwrap_or_default() {
        form @ (Form::Table | Form::Json | Form::Lines) => Ok(form),
        other => {
            let text =
                format!("{} holds one table, and a batch has several", format!("{other:?}").to_lowercase());
            Err(Failure::new("cli.batch", text).hint("use --format table, json or lines"))
        }
    }
}

fn about(error: demur_engine::EngineError, questions: &[&str]) -> Failure {
    let question = error.question().and_then(|number| questions.get(number.checked_sub(1)?));
    match question {
        Some(question) => Failure::of_question(error.clone(), question),
        None => error.into(),
    }
}

fn plans(
    batch: &Batch,
    questions: &[&str],
    (project, place): (&Project, &Place),
    shape: Shape,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if shape != Shape::Table {
        let one = |(quote, sql)| {
            let mut document = plan::document(quote, project);
            document["question"] = json!(sql);
            document
        };
        let plans: Vec<Value> = batch.quotes.iter().zip(questions).map(one).collect();
        let (epsilon, delta) = (batch.guarantee.epsilon.value(), batch.guarantee.delta.value());
        let document = json!({
            "questions": plans, "epsilon": epsilon, "delta": delta, "budget": project.catalog.budget.name,
        });
        return Ok(writeln!(out, "{document:#}")?);
    }
    for (index, (quote, sql)) in batch.quotes.iter().zip(questions).enumerate() {
        writeln!(out, "{}: {}", index + 1, one_line(sql, WIDEST))?;
        plan::plan(quote, project).print(out)?;
        writeln!(out)?;
    }
    let (budget, guarantee) = (&project.catalog.budget.name, batch.guarantee);
    let left = plan::Left::of(project, place, &batch.loss()).words();
    writeln!(out, "all together: {guarantee} of budget `{budget}`, in one charge")?;
    Ok(writeln!(out, "left: {left}")?)
}

fn show(
    batch: &Batch,
    questions: &[&str],
    (answer, tables): (&Answer, &[Table]),
    form: Form,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let certificate = &answer.certificate;
    let all = batch.quotes.iter().zip(questions).zip(tables);
    if form == Form::Json {
        let answers: Vec<Value> = all
            .map(|((quote, sql), table)| {
                json!({
                    "question": sql,
                    "columns": table.headings,
                    "rows": print::objects(table),
                    "epsilon": quote.guarantee.epsilon.value(),
                    "delta": quote.guarantee.delta.value(),
                })
            })
            .collect();
        let document = json!({
            "answers": answers,
            "confidence": 0.95,
            "epsilon": batch.guarantee.epsilon.value(),
            "delta": batch.guarantee.delta.value(),
            "budget": certificate.budget.name,
            "entry": certificate.charge.sequence,
            "head": certificate.charge.hash,
            "replayed": answer.replayed,
        });
        return Ok(writeln!(out, "{document:#}")?);
    }
    for (index, ((quote, sql), table)) in all.enumerate() {
        if form == Form::Lines {
            print::line(table, out)?;
            continue;
        }
        let epsilon = quote.guarantee.epsilon.value();
        writeln!(out, "{}: {} (ε = {epsilon} by itself)", index + 1, one_line(sql, WIDEST))?;
        print::people(table, out)?;
        writeln!(out)?;
    }
    Ok(())
}
