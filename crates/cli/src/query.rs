//! `demur query` and `demur explain`: SQL in, private answers with error bars out.

mod batch;
pub(crate) mod explain;
pub(crate) mod print;
mod prompt;
mod statements;
pub(crate) mod target;
pub(crate) mod waiting;

use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use demur_core::PrivacyLoss;
use demur_engine::{Answer, Ask, Embedded, Engine, Heading, Opening, Project, Quote, Table, would_pay};

use crate::args::query::{Asked, Explain, Form, Plot, Query, Shape};
use crate::failure::Failure;
use crate::picture::{self, Choice};
use crate::place::{self, Place};
use target::Target;
use waiting::Waiting;

/// Asks, charges, answers; without a question, a prompt opens.
pub(crate) fn query(args: &Query, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(path) = batch::file(&args.asked) {
        return batch::query(args, path, out);
    }
    if args.asked.sql.is_none() && args.asked.sql_file.is_none() {
        return prompt::open(args, out);
    }
    let project = project(args.asked.project.as_deref())?;
    let ask = ask(&args.asked, args.requester.as_deref(), args.request_id.clone());
    let ask = ask.map_err(Failure::uncharged)?;
    let payer = Payer::of(args, &project).map_err(Failure::uncharged)?;
    let quote = quote(&project, &ask)?;
    if args.dry_run || quote.bounded.explain {
        return explain::show(&quote, &project, &payer.place, shape(args.format), out);
    }
    let backend = Embedded::new(&project.folder)?.with_memory(bytes(args.memory));
    if let Some(count) = args.repeat {
        let engine = Engine::open(&payer.place.location, place::options())?;
        return rehearse(&engine, (&project, &quote), &backend, count, out);
    }
    let wanted = Wanted::of(args, &quote.headings()).map_err(Failure::uncharged)?;
    let ready = quote.prepare(&backend)?;
    let engine = payer.engine(args, &project, &quote.pricing.loss()).map_err(Failure::uncharged)?;
    waiting::listen(backend.reading(), waiting::CHARGED)?;
    let waiting = Waiting::start(backend.reading());
    let answer = engine.query_ready(&project, &ask, ready);
    waiting.end();
    let answer = answer?;
    wanted.keep(&answer, &quote, args.certificate.as_deref(), out).map_err(Failure::after_release)
}

/// The ledger that pays. It is opened while the question is planned and priced.
struct Payer {
    place: Place,
    /// Nothing, if nobody is going to pay.
    opening: Option<Opening>,
}

impl Payer {
    fn of(args: &Query, project: &Project) -> Result<Self, Failure> {
        let place = Place::of_project(args.asked.ledger.as_deref(), &project.folder)?;
        let pays = !args.dry_run && args.repeat.is_none();
        Ok(Self { opening: pays.then(|| place.opening()), place })
    }

    /// The engine over it, for something that costs so much, and a place for the certificate.
    fn engine(self, args: &Query, project: &Project, loss: &PrivacyLoss) -> Result<Engine, Failure> {
        args.certificate.as_deref().map(Target::prepare).transpose()?;
        if !self.place.location.exists()? {
            would_pay(&project.catalog, loss)?;
        }
        let opening = self.opening.unwrap_or_else(|| self.place.opening());
        self.place.opened(opening, project)
    }
}

/// Shows what a question would cost, for nothing.
pub(crate) fn explain(args: &Explain, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(path) = batch::file(&args.asked) {
        return batch::explain(args, path, out);
    }
    let project = project(args.asked.project.as_deref())?;
    let ask = ask(&args.asked, None, None)?;
    let place = Place::of_project(args.asked.ledger.as_deref(), &project.folder)?;
    explain::show(&quote(&project, &ask)?, &project, &place, args.format, out)
}

/// The price of a question, or why there is none, with its place in the question.
fn quote(project: &Project, ask: &Ask) -> Result<Quote, Failure> {
    Quote::make(project, ask).map_err(|error| Failure::of_question(error, &ask.sql))
}

/// Plans are shown for people, or as JSON.
fn shape(form: Option<Form>) -> Shape {
    if form.unwrap_or_default() == Form::Table { Shape::Table } else { Shape::Json }
}

fn bytes(mebibytes: u64) -> usize {
    usize::try_from(mebibytes << 20).unwrap_or(usize::MAX)
}

/// What becomes of an answer; whatever can be wrong with that is found before the charge.
struct Wanted<'a> {
    form: Form,
    output: Option<(&'a Path, Target)>,
    picture: Option<Choice>,
}

impl<'a> Wanted<'a> {
    fn of(args: &'a Query, headings: &[Heading]) -> Result<Self, Failure> {
        let output = args.output.as_deref();
        let choose = |plot: Plot| Choice::of(headings, plot, args.plot_column.as_deref());
        let picture = args.plot.map(choose).transpose()?;
        let form = match (args.format, output, &picture) {
            (Some(form), _, _) => form,
            (None, Some(path), None) => target::form_of(path)?,
            (None, _, _) => Form::default(),
        };
        if let (Some(path), Some(_)) = (output, &picture) {
            picture::check(path)?;
        }
        let on_screen = output.is_none() || picture.is_some();
        if form.is_binary() && on_screen && std::io::stdout().is_terminal() {
            let name = format!("{form:?}").to_lowercase();
            let text = format!("a {name} file is not made for a terminal");
            return Err(Failure::new("cli.binary", text)
                .hint(format!("write it with -o answer.{name}, or into a pipe")));
        }
        let output = output.map(|path| Ok::<_, Failure>((path, Target::prepare(path)?))).transpose()?;
        Ok(Self { form, output, picture })
    }

    /// Writes what was released where it was wanted.
    fn keep(
        self,
        answer: &Answer,
        quote: &Quote,
        certificate: Option<&Path>,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        certificate.map_or(Ok(()), |path| place::write_certificate(path, answer))?;
        let table = Table::read(&answer.certificate.columns, &answer.certificate.released)?;
        self.show(&table, answer, quote, out)
    }

    fn show(
        self,
        table: &Table,
        answer: &Answer,
        quote: &Quote,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let mut told = print::told(answer, quote.guarantee);
        if self.output.is_none() || self.picture.is_some() {
            print::answer(table, answer, quote, self.form, out)?;
        }
        match (self.picture.map(|choice| choice.picture(table)), self.output) {
            (None, None) => {}
            (Some(picture), None) => {
                writeln!(out)?;
                picture.print(columns(), out)?;
            }
            (picture, Some((path, target))) => {
                let mut bytes = Vec::new();
                match picture {
                    Some(picture) => bytes = picture.bytes(path)?,
                    None => print::answer(table, answer, quote, self.form, &mut bytes)?,
                }
                target.write(&bytes)?;
                told = format!("wrote {}; {told}", path.display());
            }
        }
        out.flush()?;
        if self.form == Form::Table || told.starts_with("wrote") {
            let _ = writeln!(std::io::stderr(), "{told}");
        }
        Ok(())
    }
}

/// How many columns the terminal has.
fn columns() -> usize {
    let stated = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).or_else(stated).unwrap_or(80)
}

/// Answers many times, for auditors; says loudly what that means.
fn rehearse(
    engine: &Engine,
    (project, quote): (&Project, &Quote),
    backend: &Embedded,
    count: u64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut warning =
        Some("NOT PROTECTED: this is a scratch ledger, and the same data is answered about again and again");
    let mut failed = None;
    let shown = engine.rehearse(project, quote, backend, count, |table| {
        // Now that the engine has seen that it is one.
        if let Some(warning) = warning.take() {
            let _ = writeln!(std::io::stderr(), "{warning}");
        }
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
    let project = match folder {
        Some(folder) => Project::open(folder),
        None => Project::find(Path::new(".")),
    };
    project.map_err(|error| Failure::from(error).uncharged())
}

fn ask(asked: &Asked, requester: Option<&str>, id: Option<String>) -> Result<Ask, Failure> {
    let sql = match (&asked.sql, &asked.sql_file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(path)) => read(path)?,
        (None, None) => {
            return Err(
                Failure::new("cli.sql", "there is no question").hint("write it in quotes, or use --sql-file")
            );
        }
    };
    Ok(Ask { sql, ..shared(asked, requester, id)? })
}

/// What is asked beside the question.
fn shared(asked: &Asked, requester: Option<&str>, id: Option<String>) -> Result<Ask, Failure> {
    let noise = asked.noise.as_deref().map(str::parse).transpose()?;
    let requester = requester.map_or_else(place::user, str::to_owned);
    let (epsilon, error, delta) = (asked.epsilon.clone(), asked.error.clone(), asked.delta.clone());
    Ok(Ask { sql: String::new(), epsilon, error, delta, noise, requester, id })
}

/// The most bytes of a file with questions.
const LONGEST: u64 = 1 << 20;

fn read(path: &Path) -> Result<String, Failure> {
    let wrong = |error: std::io::Error| {
        Failure::new("cli.read", format!("`{}` cannot be read: {error}", path.display())).uncharged()
    };
    let mut text = String::new();
    match path.as_os_str() == "-" {
        true => std::io::stdin().take(LONGEST + 1).read_to_string(&mut text),
        false => std::fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text)),
    }
    .map_err(wrong)?;
    if text.len() as u64 > LONGEST {
        let message = format!(
            "`{}` has more than {LONGEST} bytes, and a file of questions has no more",
            path.display()
        );
        return Err(Failure::new("cli.read", message).uncharged());
    }
    Ok(text)
}
