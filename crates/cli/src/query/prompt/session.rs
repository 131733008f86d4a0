//! [`Session`]: what is said at a prompt, and what is answered; the line editor above it only reads lines.
//!
//! The catalog is read anew for each line, so what its owner changes holds at once.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use demur_engine::{Ask, Embedded, Project, Quote, Table};
use demur_plan::Catalog;

use super::super::target::{self, Target};
use super::super::waiting::{CHARGED, Interrupts, Waiting};
use super::super::{bytes, columns, explain, print, project, quote, statements};
use super::complete::COMMANDS;
use super::describe;
use crate::args::query::{Form, Plot, Query, Shape};
use crate::budget;
use crate::failure::Failure;
use crate::output::Facts;
use crate::picture::{self, Choice};
use crate::place::{self, Place};

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    End,
}

/// What a prompt remembers.
pub(super) struct Session<'a> {
    args: &'a Query,
    folder: PathBuf,
    catalog: Catalog,
    epsilon: Option<String>,
    error: Option<String>,
    delta: Option<String>,
    noise: Option<String>,
    form: Form,
    /// What was answered last, with its price.
    last: Option<(demur_engine::Answer, Quote)>,
    interrupts: Option<Interrupts>,
}

impl<'a> Session<'a> {
    /// A session of the project that the flags mean; they are what it begins with.
    pub(super) fn open(args: &'a Query, interrupts: Option<Interrupts>) -> Result<Self, Failure> {
        let Project { folder, catalog } = project(args.asked.project.as_deref())?;
        let form = args.format.unwrap_or_default();
        if form.is_binary() {
            return Err(no_form(&format!("{form:?}").to_lowercase()));
        }
        let asked = &args.asked;
        Ok(Self {
            folder,
            catalog,
            epsilon: asked.epsilon.clone(),
            error: asked.error.clone(),
            delta: asked.delta.clone(),
            noise: asked.noise.clone(),
            form,
            last: None,
            interrupts,
            args,
        })
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What is said first.
    pub(super) fn greeting(&self) -> String {
        let tables: Vec<_> = self.catalog.tables.keys().map(String::as_str).collect();
        format!(
            "tables: {}. Questions end with ; and are charged to the budget `{}`.\n\\? lists commands, \\q leaves.",
            tables.join(", "),
            self.catalog.budget.name
        )
    }

    /// What stands before the line: the price of the next question.
    pub(super) fn prompt(&self) -> String {
        match (&self.epsilon, &self.error) {
            (Some(epsilon), _) => format!("demur ε={epsilon}> "),
            (None, Some(error)) => format!("demur {error}> "),
            (None, None) => "demur> ".to_owned(),
        }
    }

    /// Answers everything in an input; answers go to `out`, talk to `talk`.
    pub(super) fn hear(&mut self, input: &str, out: &mut impl Write, talk: &mut impl Write) -> Next {
        for one in statements::all(input) {
            let done = match one.strip_prefix('\\') {
                Some("q" | "quit" | "exit") => return Next::End,
                Some(command) => self.command(command, out, talk),
                None if ["exit", "quit"].contains(&one.to_lowercase().as_str()) => return Next::End,
                None if one.eq_ignore_ascii_case("help") => self.command("?", out, talk),
                None => self.ask(one, out, talk),
            };
            let _ = out.flush();
            if let Err(failure) = done {
                failure.report(talk);
                return Next::Line;
            }
        }
        Next::Line
    }

    fn command(&mut self, command: &str, out: &mut impl Write, talk: &mut impl Write) -> Result<(), Failure> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim().trim_end_matches(';').trim_end();
        match name {
            "?" | "h" | "help" => help(out),
            "d" => describe::describe(&self.project()?.catalog, rest, out).map_err(Failure::without_note),
            "budget" => self.budget(out).map_err(Failure::without_note),
            "explain" => {
                let project = self.project()?;
                let quote = self.quote(&project, rest).map_err(Failure::without_note)?;
                explain::show(&quote, &project, &self.place()?, Shape::Table, out)
            }
            "epsilon" => {
                set(&mut self.epsilon, "epsilon", rest, number, out)?;
                if !rest.is_empty() {
                    self.error = None;
                }
                Ok(())
            }
            "error" => {
                set(&mut self.error, "error", rest, |_| true, out)?;
                if !rest.is_empty() {
                    self.epsilon = None;
                }
                Ok(())
            }
            "delta" => set(&mut self.delta, "delta", rest, number, out),
            "noise" => set(
                &mut self.noise,
                "noise",
                rest,
                |text| ["any", "laplace", "gaussian"].contains(&text),
                out,
            ),
            "format" => self.set_form(rest, out),
            "plot" => self.plot(rest, out, talk),
            "save" => self.save(rest, talk),
            _ => {
                let text = format!("there is no command \\{name}");
                Err(Failure::new("cli.command", text).hint("\\? lists those there are").without_note())
            }
        }
    }

    /// The project as it is now.
    fn project(&self) -> Result<Project, Failure> {
        Ok(Project::open(&self.folder)?)
    }

    fn quote(&self, project: &Project, sql: &str) -> Result<Quote, Failure> {
        if sql.is_empty() {
            return Err(Failure::new("cli.sql", "there is no question").hint("write \\explain SELECT …"));
        }
        quote(project, &self.asked(sql)?).map_err(|failure| match failure.code() {
            "engine.guarantee" if self.epsilon.is_none() && self.error.is_none() => {
                failure.hint("say \\epsilon 0.5, or \\error 50@95%, and ask again")
            }
            _ => failure,
        })
    }

    fn asked(&self, sql: &str) -> Result<Ask, Failure> {
        Ok(Ask {
            sql: sql.to_owned(),
            epsilon: self.epsilon.clone(),
            error: self.error.clone(),
            delta: self.delta.clone(),
            noise: self.noise.as_deref().map(str::parse).transpose()?,
            requester: self.args.requester.clone().unwrap_or_else(place::user),
            id: None,
        })
    }

    fn ask(&mut self, sql: &str, out: &mut impl Write, talk: &mut impl Write) -> Result<(), Failure> {
        let project = self.project()?;
        let quote = self.quote(&project, sql)?;
        if quote.bounded.explain {
            return explain::show(&quote, &project, &self.place()?, Shape::Table, out);
        }
        let place = self.place()?;
        let backend = Embedded::new(&project.folder)?.with_memory(bytes(self.args.memory));
        let engine = place.engine(&project)?;
        let (charged, stopped) = (backend.reading(), backend.stopped());
        if let Some(interrupts) = &self.interrupts {
            interrupts.mean(Some((charged.clone(), stopped.clone())));
        }
        let waiting = Waiting::start(charged);
        let answer = engine.query(&project, &self.asked(sql)?, &quote, &backend);
        waiting.end();
        if let Some(interrupts) = &self.interrupts {
            interrupts.mean(None);
        }
        let answer = answer.map_err(|error| match stopped.load(std::sync::atomic::Ordering::Relaxed) {
            true if error.code() == "engine.failed" => Failure::interrupted(CHARGED),
            _ => error.into(),
        })?;
        let table = Table::read(&answer.certificate.columns, &answer.certificate.released)?;
        print::answer(&table, &answer, &quote, self.form, out)?;
        out.flush()?;
        let _ = writeln!(talk, "{}", print::told(&answer, quote.guarantee));
        self.last = Some((answer, quote));
        Ok(())
    }

    fn place(&self) -> Result<Place, Failure> {
        Place::of_project(self.args.asked.ledger.as_deref(), &self.folder)
    }

    fn budget(&self, out: &mut impl Write) -> Result<(), Failure> {
        let catalog = self.project()?.catalog;
        let shown = budget::show_one(&self.place()?, &catalog.budget.name, out);
        match (shown, &catalog.budget.opens_with) {
            (Err(failure), Some((epsilon, delta, _)))
                if matches!(failure.code(), "ledger.none" | "ledger.budget.unknown") =>
            {
                let (name, epsilon, delta) = (&catalog.budget.name, epsilon.value(), delta.value());
                Ok(writeln!(out, "nothing was asked yet: `{name}` opens with ε = {epsilon}, δ = {delta}")?)
            }
            (shown, _) => shown,
        }
    }

    fn set_form(&mut self, name: &str, out: &mut impl Write) -> Result<(), Failure> {
        if name.is_empty() {
            return Ok(writeln!(out, "format {}", format!("{:?}", self.form).to_lowercase())?);
        }
        match Form::from_str(name, true).ok().filter(|form| !form.is_binary()) {
            Some(form) => {
                self.form = form;
                Ok(())
            }
            None => Err(no_form(name)),
        }
    }

    /// The last answer as a table.
    fn last(&self) -> Result<(Table, &(demur_engine::Answer, Quote)), Failure> {
        let Some(last) = &self.last else {
            let failure = Failure::new("cli.command", "nothing was answered yet");
            return Err(failure.hint("ask something, with ; at its end").without_note());
        };
        let certificate = &last.0.certificate;
        Ok((Table::read(&certificate.columns, &certificate.released)?, last))
    }

    /// Draws what was released already: this costs nothing.
    fn plot(&self, rest: &str, out: &mut impl Write, talk: &mut impl Write) -> Result<(), Failure> {
        let (table, _) = self.last()?;
        let (kind, file) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let Ok(kind) = Plot::from_str(kind, true) else {
            let text = format!("a picture is bar, line or heat, not `{kind}`");
            return Err(Failure::new("cli.plot", text)
                .hint("as in \\plot bar, or \\plot bar regions.svg")
                .without_note());
        };
        let drawn = Choice::of(&table.headings, kind, None).map_err(Failure::without_note)?.picture(&table);
        match file.trim() {
            "" => drawn.print(columns(), out),
            file => {
                let path = Path::new(file);
                picture::check(path).map_err(Failure::without_note)?;
                Target::prepare(path)
                    .and_then(|target| target.write(&drawn.bytes(path)?))
                    .map_err(Failure::without_note)?;
                let _ = writeln!(talk, "wrote {file}");
                Ok(())
            }
        }
    }

    /// Writes what was released already: this costs nothing.
    fn save(&self, file: &str, talk: &mut impl Write) -> Result<(), Failure> {
        let (table, (answer, quote)) = self.last()?;
        if file.is_empty() {
            let text = "it is not said where to write to";
            return Err(Failure::new("cli.file", text).hint("as in \\save regions.parquet").without_note());
        }
        let write = || {
            let path = Path::new(file);
            let mut bytes = Vec::new();
            print::answer(&table, answer, quote, target::form_of(path)?, &mut bytes)?;
            Target::prepare(path)?.write(&bytes)
        };
        write().map_err(Failure::without_note)?;
        let _ = writeln!(talk, "wrote {file}");
        Ok(())
    }
}

fn no_form(name: &str) -> Failure {
    let text = format!("answers are shown here as table, json, csv or lines, not as `{name}`");
    Failure::new("cli.format", text)
        .hint("\\save FILE writes the last answer to a file of any form")
        .without_note()
}

fn number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| number >= 0.0 && number.is_finite())
}

/// Says what something is set to, or sets it.
fn set(
    to: &mut Option<String>,
    name: &str,
    text: &str,
    is_right: impl Fn(&str) -> bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match text {
        "" => match to {
            Some(text) => Ok(writeln!(out, "{name} {text}")?),
            None => Ok(writeln!(out, "{name} is not set")?),
        },
        text if is_right(text) => {
            *to = Some(text.to_owned());
            Ok(())
        }
        text => {
            let message = format!("{name} cannot be `{text}`");
            Err(Failure::new("cli.command", message).hint("\\? says what it takes").without_note())
        }
    }
}

fn help(out: &mut impl Write) -> Result<(), Failure> {
    let mut facts = Facts::default();
    facts.add("SELECT …;", "ask: charged to the budget, and answered with 95 % intervals");
    for (name, what) in COMMANDS {
        facts.add(name, what);
    }
    facts.add("Tab", "completes tables, columns, functions and words of SQL");
    facts.add(
        "Ctrl-C",
        "clears what is typed; stops a question that is being answered, and its charge stands",
    );
    Ok(facts.print(out)?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    /// The example project in a folder of its own.
    fn example() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/visits");
        for name in ["demur.toml", "visits.csv"] {
            std::fs::copy(example.join(name), folder.path().join(name)).unwrap();
        }
        folder
    }

    fn flags(folder: &Path, more: &[&str]) -> Query {
        let folder = folder.to_str().unwrap();
        let words = ["demur", "query", "--project", folder].into_iter().chain(more.iter().copied());
        match Arguments::parse_from(words).command {
            Command::Query(query) => query,
            other => unreachable!("{other:?}"),
        }
    }

    /// What is answered and what is said.
    fn heard(session: &mut Session<'_>, input: &str) -> (String, String) {
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        session.hear(input, &mut out, &mut talk);
        (String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap())
    }

    #[test]
    fn the_price_of_the_prompt_is_remembered() {
        let folder = example();
        let args = flags(folder.path(), &[]);
        let mut session = Session::open(&args, None).unwrap();
        let (_, talk) = heard(&mut session, "SELECT COUNT(*) FROM visits;");
        assert!(talk.contains("error[engine.guarantee]") && talk.contains("\\epsilon 0.5"), "{talk}");
        assert_eq!(heard(&mut session, "\\epsilon").0, "epsilon is not set\n");
        heard(&mut session, "\\epsilon 0.25");
        assert_eq!(session.prompt(), "demur ε=0.25> ");
        let (out, talk) = heard(&mut session, "SELECT region,\n COUNT(*) AS n\nFROM visits GROUP BY region;");
        assert!(out.starts_with("region") && out.lines().count() == 7, "{out}");
        assert!(talk.contains("charged ε = 0.25"), "{talk}");
        let (_, talk) = heard(&mut session, "SELECT region, COUNT(*) AS n FROM visits GROUP BY region;");
        assert!(talk.contains("answered from the ledger"), "{talk}");
        heard(&mut session, "\\error 50@95%");
        assert_eq!(session.prompt(), "demur 50@95%> ");
        let (_, talk) = heard(&mut session, "\\epsilon many");
        assert!(talk.contains("error[cli.command]: epsilon cannot be `many`"), "{talk}");
    }

    #[test]
    fn the_price_is_shown_only_when_asked_for_and_costs_nothing() {
        let folder = example();
        let args = flags(folder.path(), &["--epsilon", "0.5"]);
        let mut session = Session::open(&args, None).unwrap();
        let (out, talk) = heard(&mut session, "\\explain SELECT COUNT(*) FROM visits;");
        assert!(out.contains("cost") && out.contains("error") && talk.is_empty(), "{out}{talk}");
        let (out, _) = heard(&mut session, "\\budget");
        assert_eq!(out, "nothing was asked yet: `visits` opens with ε = 10, δ = 0.000001\n");
        assert!(!folder.path().join(".demur").exists());
        let (out, _) = heard(&mut session, "SELECT COUNT(*) AS n FROM visits; \\budget");
        assert!(!out.contains("cost") && out.contains("1, 1 answered"), "{out}");
    }

    #[test]
    fn tables_and_columns_are_described() {
        let folder = example();
        let args = flags(folder.path(), &[]);
        let mut session = Session::open(&args, None).unwrap();
        assert!(heard(&mut session, "\\d").0.contains("visits        7  of each patient_id"));
        let (out, _) = heard(&mut session, "\\d visits");
        assert!(out.contains("age         int64          0 to 105"), "{out}");
        assert!(out.contains("north, south") && out.contains("names the person"), "{out}");
        assert!(heard(&mut session, "\\d nothing").1.contains("error[plan.table]"));
    }

    #[test]
    fn mistakes_point_at_the_line_and_the_next_question_is_not_asked() {
        let folder = example();
        let args = flags(folder.path(), &["--epsilon", "0.1"]);
        let mut session = Session::open(&args, None).unwrap();
        let (out, talk) = heard(&mut session, "SELECT COUNT(*)\nFROM visists; SELECT COUNT(*) FROM visits;");
        assert!(out.is_empty() && talk.contains("  2 | FROM visists\n    |      ^^^^^^^\n"), "{out}{talk}");
        assert!(heard(&mut session, "\\nonsense").1.contains("there is no command \\nonsense"));
        assert!(heard(&mut session, "\\?").0.contains("\\explain SQL"));
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        assert_eq!(session.hear("\\q", &mut out, &mut talk), Next::End);
        assert_eq!(session.hear("exit;", &mut out, &mut talk), Next::End);
    }

    #[test]
    fn the_last_answer_is_drawn_and_saved_for_free() {
        let folder = example();
        let args = flags(folder.path(), &["--epsilon", "0.5"]);
        let mut session = Session::open(&args, None).unwrap();
        assert!(heard(&mut session, "\\plot bar").1.contains("nothing was answered yet"));
        heard(&mut session, "SELECT region, COUNT(*) AS n FROM visits GROUP BY region;");
        assert!(heard(&mut session, "\\plot bar").0.contains("├─┤: 95 % intervals"));
        assert!(heard(&mut session, "\\plot pie").1.contains("bar, line or heat"));
        for name in ["a.parquet", "a.arrow", "a.csv", "a.json", "a.jsonl", "a.txt"] {
            let path = folder.path().join(name);
            assert!(
                heard(&mut session, &format!("\\save {}", path.display())).1.starts_with("wrote"),
                "{name}"
            );
            assert!(std::fs::metadata(path).unwrap().len() > 20);
        }
        let picture = folder.path().join("a.svg");
        assert!(heard(&mut session, &format!("\\plot bar {}", picture.display())).1.starts_with("wrote"));
        let (out, _) = heard(&mut session, "\\budget");
        assert!(out.contains("1, 1 answered"), "{out}");
    }

    #[test]
    fn what_the_owner_changes_holds_at_once() {
        let folder = example();
        let args = flags(folder.path(), &["--epsilon", "1.5"]);
        let mut session = Session::open(&args, None).unwrap();
        let catalog = folder.path().join("demur.toml");
        let text = std::fs::read_to_string(&catalog).unwrap();
        std::fs::write(
            &catalog,
            text.replace("max_epsilon_per_question = 2", "max_epsilon_per_question = 1"),
        )
        .unwrap();
        assert!(heard(&mut session, "SELECT COUNT(*) FROM visits;").1.contains("error[engine.policy]"));
    }
}
