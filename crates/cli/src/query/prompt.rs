//! The prompt of `demur query`: a line editor over a [`Session`].
//!
//! What is typed is kept in the user's own folder for such things, never in the project; a line that begins with a space is not kept.

mod complete;
mod describe;
mod session;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::config::{BellStyle, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

use super::statements;
use super::waiting::Interrupts;
use crate::args::query::Query;
use crate::failure::Failure;
use session::{Next, Session};

/// How many lines are kept.
const KEPT: usize = 2000;

/// Reads and answers until somebody has enough.
pub(super) fn open(args: &Query, out: &mut impl Write) -> Result<(), Failure> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::new("cli.sql", "there is no question, and a prompt needs a terminal").hint(
            "write the question in quotes, or use --sql-file FILE, or --sql-file - for standard input",
        ));
    }
    for (given, flag) in [
        (args.output.is_some(), "--output"),
        (args.plot.is_some(), "--plot"),
        (args.dry_run, "--dry-run"),
        (args.request_id.is_some(), "--request-id"),
        (args.certificate.is_some(), "--certificate"),
        (args.repeat.is_some(), "--repeat"),
    ] {
        if given {
            let text = format!("{flag} goes with one question, and none is given");
            return Err(Failure::new("cli.sql", text).hint("write the question in quotes, or use --sql-file"));
        }
    }
    let interrupts = Interrupts::listen()?;
    let mut session = Session::open(args, Some(interrupts))?;
    let mut editor = editor(&session)?;
    let history = history();
    if let Some(path) = &history {
        // There is none yet, the first time.
        let _ = editor.load_history(path);
    }
    writeln!(out, "{}", session.greeting())?;
    out.flush()?;
    loop {
        let input = match editor.readline(session.prompt().as_str()) {
            Ok(input) => input,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(wrong(&error)),
        };
        if !input.trim().is_empty() {
            let _ = editor.add_history_entry(input.trim_end());
        }
        let next = session.hear(&input, out, &mut io::stderr());
        out.flush()?;
        if next == Next::End {
            break;
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

fn wrong(error: &ReadlineError) -> Failure {
    Failure::new("cli.prompt", format!("the prompt cannot go on: {error}"))
}

fn editor(session: &Session<'_>) -> Result<Editor<Words, FileHistory>, Failure> {
    let config = Config::builder()
        .max_history_size(KEPT)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(|error| wrong(&error))?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .bell_style(BellStyle::None)
        .bracketed_paste(true)
        .build();
    let mut editor = Editor::with_config(config).map_err(|error| wrong(&error))?;
    editor.set_helper(Some(Words(complete::Words::of(session.catalog()))));
    Ok(editor)
}

/// Where lines are kept, in a folder that is made if it is not there.
fn history() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| named("HOME").map(|home| home.join(".local").join("state")))
        .or_else(|| named("LOCALAPPDATA"))?
        .join("demur");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// What the line editor asks about what is typed.
struct Words(complete::Words);

impl Helper for Words {}
impl Highlighter for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.0.complete(line, at);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match statements::is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}
