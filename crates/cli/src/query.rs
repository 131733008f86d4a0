//! `demur query` and `demur explain`: SQL in, private answers with error bars out.

mod explain;
mod print;

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use demur_engine::{Ask, Embedded, Engine, Project, Quote, Table};

use crate::args::query::{Asked, Explain, Query, Shape};
use crate::failure::Failure;
use crate::place::{self, Place};

/// Asks, charges, answers.
pub(crate) fn query(args: &Query, out: &mut impl Write) -> Result<(), Failure> {
    let project = project(args.asked.project.as_deref())?;
    let ask = ask(&args.asked, args.requester.as_deref(), args.request_id.clone())?;
    let quote = Quote::make(&project, &ask)?;
    if args.dry_run || quote.bounded.explain {
        return explain::show(&quote, &project, args.format, out);
    }
    let place = place(&args.asked, &project)?;
    let engine = open(&place, &project)?;
    let backend = Embedded::new(&project.folder)?;
    if let Some(count) = args.repeat {
        return repeat(&engine, &project, &quote, &backend, count, args.format, out);
    }
    let _bar = std::io::stderr().is_terminal().then(|| crate::progress::rows(backend.progress()));
    let answer = engine.query(&project, &ask, &quote, &backend)?;
    drop(_bar);
    if let Some(path) = &args.certificate {
        write_certificate(path, &answer.certificate.text()?)?;
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

fn project(folder: Option<&Path>) -> Result<Project, Failure> {
    Ok(match folder {
        Some(folder) => Project::open(folder)?,
        None => Project::find(Path::new("."))?,
    })
}

fn ask(asked: &Asked, requester: Option<&str>, id: Option<String>) -> Result<Ask, Failure> {
    let sql = match (&asked.sql, &asked.sql_file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(path)) => read(path)?,
        (None, None) => return Err(Failure::new("cli.sql", "there is no question; write it in quotes, or use --sql-file")),
    };
    let noise = asked.noise.as_deref().map(str::parse).transpose()?;
    let requester = requester.map_or_else(place::user, str::to_owned);
    Ok(Ask { sql, epsilon: asked.epsilon.clone(), delta: asked.delta.clone(), noise, requester, id })
}

fn read(path: &PathBuf) -> Result<String, Failure> {
    let wrong = |error: std::io::Error| Failure::new("cli.read", format!("`{}` cannot be read: {error}", path.display()));
    if path.as_os_str() != "-" {
        return std::fs::read_to_string(path).map_err(wrong);
    }
    let mut text = String::new();
    std::io::stdin().take(1 << 20).read_to_string(&mut text).map_err(wrong)?;
    Ok(text)
}
