//! `demur query` and `demur explain`: SQL in, private answers with error bars out.

mod explain;
pub(crate) mod print;
pub(crate) mod waiting;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use demur_engine::{Ask, Embedded, Engine, Project, Quote, Table};

use crate::args::query::{Asked, Explain, Query};
use crate::failure::Failure;
use crate::place::{self, Place};
use waiting::Waiting;

/// Asks, charges, answers.
pub(crate) fn query(args: &Query, out: &mut impl Write) -> Result<(), Failure> {
    let project = project(args.asked.project.as_deref())?;
    let ask = ask(&args.asked, args.requester.as_deref(), args.request_id.clone())?;
    let quote = Quote::make(&project, &ask)?;
    if args.dry_run || quote.bounded.explain {
        return explain::show(&quote, &project, args.format, out);
    }
    let place = Place::of_project(args.asked.ledger.as_deref(), &project.folder)?;
    let memory = usize::try_from(args.memory << 20).unwrap_or(usize::MAX);
    let backend = Embedded::new(&project.folder)?.with_memory(memory);
    if let Some(count) = args.repeat {
        let engine = Engine::open(&place.location, place::options())?;
        return rehearse(&engine, (&project, &quote), &backend, count, out);
    }
    let engine = Engine::for_project(&project, &place.location, place::options())?;
    let waiting = Waiting::start(backend.reading())?;
    let answer = engine.query(&project, &ask, &quote, &backend);
    waiting.end();
    let answer = answer?;
    if let Some(path) = &args.certificate {
        place::write_certificate(path, &answer)?;
    }
    let table = Table::read(&answer.certificate.columns, &answer.certificate.released)?;
    print::answer(&table, &answer, &quote, args.format, out)
}

/// Shows what a question would cost, for nothing.
pub(crate) fn explain(args: &Explain, out: &mut impl Write) -> Result<(), Failure> {
    let project = project(args.asked.project.as_deref())?;
    let ask = ask(&args.asked, None, None)?;
    let quote = Quote::make(&project, &ask)?;
    explain::show(&quote, &project, args.format, out)
}

/// Answers many times, for auditors; says loudly what that means.
fn rehearse(
    engine: &Engine,
    (project, quote): (&Project, &Quote),
    backend: &Embedded,
    count: u64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let warning =
        "NOT PROTECTED: this is a scratch ledger, and the same data is answered about again and again";
    let _ = writeln!(std::io::stderr(), "{warning}");
    let mut failed = None;
    let shown = engine.rehearse(project, quote, backend, count, |table| {
        print::line(&table, out).map_err(|failure| {
            failed = Some(failure);
            std::io::Error::other("written no further")
        })
    });
    match failed {
        Some(failure) => Err(failure),
        None => Ok(shown?),
    }
}

pub(crate) fn project(folder: Option<&Path>) -> Result<Project, Failure> {
    Ok(match folder {
        Some(folder) => Project::open(folder)?,
        None => Project::find(Path::new("."))?,
    })
}

fn ask(asked: &Asked, requester: Option<&str>, id: Option<String>) -> Result<Ask, Failure> {
    let sql = match (&asked.sql, &asked.sql_file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(path)) => read(path)?,
        (None, None) => {
            return Err(Failure::new(
                "cli.sql",
                "there is no question; write it in quotes, or use --sql-file",
            ));
        }
    };
    let noise = asked.noise.as_deref().map(str::parse).transpose()?;
    let requester = requester.map_or_else(place::user, str::to_owned);
    let (epsilon, error, delta) = (asked.epsilon.clone(), asked.error.clone(), asked.delta.clone());
    Ok(Ask { sql, epsilon, error, delta, noise, requester, id })
}

fn read(path: &PathBuf) -> Result<String, Failure> {
    let wrong = |error: std::io::Error| {
        Failure::new("cli.read", format!("`{}` cannot be read: {error}", path.display()))
    };
    if path.as_os_str() != "-" {
        return std::fs::read_to_string(path).map_err(wrong);
    }
    let mut text = String::new();
    std::io::stdin().take(1 << 20).read_to_string(&mut text).map_err(wrong)?;
    Ok(text)
}
