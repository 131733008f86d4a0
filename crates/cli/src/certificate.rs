//! `demur certificate`: what is promised about a release, and whether it is true.

use std::io::{Read, Write};

use demur_core::Adjacency;
use demur_engine::{self as engine, Engine, Finding, Verdict};
use demur_exact::Rational;
use demur_ledger::Ledger;
use serde_json::json;

use crate::args::account::Form;
use crate::args::certificate::{Certificate, Key, Show, Verify};
use crate::failure::Failure;
use crate::noise::open;
use crate::output::Facts;
use crate::place::{self, Place};
use crate::words::up;

pub(crate) fn run(command: Certificate, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Certificate::Verify(args) => verify(&args, out),
        Certificate::Show(args) => show(&args, out),
        Certificate::Key(args) => key(&args, out),
    }
}

fn verify(args: &Verify, out: &mut impl Write) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    open(&args.file)?.read_to_end(&mut bytes)?;
    let ledger = args.ledger.as_deref().map(|url| Place::find(Some(url))).transpose()?;
    let verdict = engine::verify(&bytes, ledger.as_ref().map(|place| &place.location), args.key.as_ref())?;
    match args.format {
        Form::Table => table(&verdict).print(out)?,
        Form::Json => writeln!(out, "{:#}", machine(&verdict))?,
    }
    if verdict.is_good() {
        return Ok(());
    }
    let wrong = verdict.findings.iter().filter(|finding| finding.holds == Some(false));
    let wrong: Vec<&str> = wrong.map(|finding| finding.text.as_str()).collect();
    Err(Failure::new("certificate.false", format!("this certificate does not hold: {}", wrong.join("; ")))
        .without_note())
}

/// What is promised, to whom, under which assumptions, in plain words.
fn table(verdict: &Verdict) -> Facts {
    let certificate = &verdict.certificate;
    let (unit, dataset) = (&certificate.unit, &certificate.dataset);
    let mut facts = Facts::default();
    facts.add(
        "certificate",
        if verdict.is_good() { "holds, as far as it was checked" } else { "does not hold" },
    );
    facts.add("asked", format!("{}, by {}", certificate.question, certificate.requester));
    let neighbours = match certificate.adjacency {
        Adjacency::AddRemove => "is there or not",
        Adjacency::Replace => "has these data or others",
    };
    facts.add(
        "promise",
        format!(
            "what was released looks almost the same whether any one {unit} of `{dataset}` {neighbours}:"
        ),
    );
    facts.add("", pair(&certificate.guarantee.epsilon, &certificate.guarantee.delta));
    let rule = &certificate.budget.rule;
    facts.add(
        "",
        format!(
            "all releases of the budget `{}` together: {}",
            certificate.budget.name,
            pair(rule.epsilon(), &rule.delta())
        ),
    );
    for term in &certificate.terms {
        let times = if term.count == 1 { String::new() } else { format!(", {} times", term.count) };
        let bounds = term.bounds.as_ref().map_or(String::new(), |bounds| format!(", bounds {bounds}"));
        facts.add(
            "noise",
            format!("{}: {}{times}, sensitivity {}{bounds}", term.what, term.mechanism, term.sensitivity),
        );
    }
    facts.add(
        "assumes",
        format!(
            "that one {unit} changes the true answer by no more than the sensitivity, that noise was drawn as"
        ),
    );
    facts.add("", format!("stated by {}, and that the secret key was kept", certificate.software));
    facts.add("ledger", format!("entry {}, head {}", certificate.charge.sequence, certificate.charge.hash));
    for (index, Finding { holds, text }) in verdict.findings.iter().enumerate() {
        let mark = match holds {
            Some(true) => "yes",
            Some(false) => "NO ",
            None => "?  ",
        };
        facts.add(if index == 0 { "checked" } else { "" }, format!("{mark}  {text}"));
    }
    facts
}

fn machine(verdict: &Verdict) -> serde_json::Value {
    let certificate = &verdict.certificate;
    let checks: Vec<_> = verdict
        .findings
        .iter()
        .map(|finding| json!({"holds": finding.holds, "text": finding.text}))
        .collect();
    json!({
        "valid": verdict.is_good(),
        "epsilon": certificate.guarantee.epsilon.to_f64_up(),
        "delta": certificate.guarantee.delta.to_f64_up(),
        "budget": certificate.budget.name,
        "entry": certificate.charge.sequence,
        "head": certificate.charge.hash,
        "checks": checks,
    })
}

/// What is promised, never less than it costs.
fn pair(epsilon: &Rational, delta: &Rational) -> String {
    let shown = |value: &Rational| up(value.to_f64_up(), 7);
    format!("ε = {}, δ = {}", shown(epsilon), shown(delta))
}

fn show(args: &Show, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let answer = Ledger::answer(&place.location, args.entry).map_err(|error| place.failure(error))?;
    let Some(answer) = answer else {
        let message = format!("no release was paid for by entry {} of {place}", args.entry);
        return Err(Failure::new("certificate.none", message)
            .hint("`demur ledger log` lists the entries")
            .without_note());
    };
    out.write_all(&answer)?;
    Ok(writeln!(out)?)
}

fn key(args: &Key, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    if let Some(reason) = &args.reason {
        let key = Engine::rotate(&place.location, reason, place::options())?;
        return Ok(writeln!(out, "{key}")?);
    }
    let book = Ledger::look(&place.location).map_err(|error| place.failure(error))?;
    match book.keys().last() {
        Some(key) => Ok(writeln!(out, "{key}")?),
        None => Err(Failure::new(
            "certificate.key",
            format!("nothing was certified from {place} yet, so it has no key"),
        )
        .without_note()),
    }
}
