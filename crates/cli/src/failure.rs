//! [`Failure`]: what a person reads when nothing was released.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use demur_accounting::{AccountingError, Refusal};
use demur_engine::EngineError;
use demur_ledger::LedgerError;
use demur_noise::{EntropyError, NoiseError};
use demur_plan::PlanError;

/// A mistake, what was found, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: &'static str,
    message: String,
    /// The line of the question it is about, with signs under the place.
    shown: Option<String>,
    hint: Option<String>,
    note: Option<&'static str>,
    refused: bool,
}

/// Said wherever it is certain.
const UNCHARGED: &str = "nothing was charged";

/// The reader of our output went away: not worth a word.
const BROKEN_PIPE: &str = "cli.broken-pipe";

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            shown: None,
            hint: None,
            note: Some("nothing was released"),
            refused: false,
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// For what goes wrong before anything could be charged.
    pub(crate) fn uncharged(self) -> Self {
        let told = self.message.contains(UNCHARGED) || self.message.contains("nothing new was charged");
        Self { note: (!told).then_some(UNCHARGED), ..self }
    }

    /// Why a question has no price, with its place in the question if that is known.
    pub(crate) fn of_question(error: EngineError, sql: &str) -> Self {
        let shown = error.place().and_then(|place| place.show(sql));
        Self { shown, ..Self::from(error).uncharged() }
    }

    /// Somebody had enough; what was charged is said in the sentence itself.
    pub(crate) fn interrupted(text: &str) -> Self {
        Self { note: None, ..Self::new("cli.interrupted", text) }
    }

    /// For what goes wrong with an answer that was released: it is the ledger's already.
    pub(crate) fn after_release(self) -> Self {
        let note = "what was charged is kept in the ledger: the same question again costs nothing";
        Self { note: Some(note), ..self }
    }

    /// For commands that never release anything; that a refusal charged nothing is still said.
    pub(crate) fn without_note(self) -> Self {
        Self { note: self.note.filter(|_| self.refused), ..self }
    }

    /// What was charged is the ledger's word; the command adds only what goes without saying.
    fn of_ledger(code: &'static str, text: String, refused: bool) -> Self {
        let failure = Self { note: None, refused, ..Self::new(code, text) };
        if refused { failure.uncharged() } else { failure }
    }

    /// The name of this failure, for programs.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// What went wrong, for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Tells what went wrong; a refusal by budget or policy exits with 1, misuse and failure with 2.
    pub(crate) fn report(&self, to: &mut impl Write) -> ExitCode {
        if self.code == BROKEN_PIPE {
            return ExitCode::SUCCESS;
        }
        let mut text = format!("error[{}]: {}\n", self.code, shortened(&self.message));
        for line in self.shown.iter().flat_map(|shown| shown.lines()) {
            text.push_str(&format!("  {line}\n"));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("  hint: {hint}\n"));
        }
        if let Some(note) = self.note {
            text.push_str(&format!("  {note}\n"));
        }
        // Names and texts of a question are shown, but move no cursor.
        let text: String =
            text.chars().map(|letter| if moves(letter) && letter != '\n' { ' ' } else { letter }).collect();
        // If even standard error is gone, the exit code has to do.
        let _ = to.write_all(text.as_bytes());
        ExitCode::from(if self.refused { 1 } else { 2 })
    }
}

/// The longest sentence that is shown.
const LONGEST: usize = 1000;

/// A name of many letters need not be read to its end.
fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &text[..end]).into(),
        None => text.into(),
    }
}

/// Whether a letter moves the cursor, or turns what is around it.
pub(crate) fn moves(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

impl From<NoiseError> for Failure {
    fn from(error: NoiseError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<AccountingError> for Failure {
    fn from(error: AccountingError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// The word of a budget, or a ledger that cannot be used.
impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Self::of_ledger(error.code(), error.to_string(), error.is_refusal())
    }
}

/// The same, or a release that failed.
impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let hint = error.advice().map(str::to_owned);
        let failure = Self::of_ledger(error.code(), error.to_string(), error.is_refusal());
        let failure = if error.is_uncharged() { failure.uncharged() } else { failure };
        Self { hint, ..failure }
    }
}

/// A question that was not understood, or is not allowed.
impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        EngineError::from(error).into()
    }
}

/// The word of a filter.
impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { refused: true, ..Self::new(refusal.code(), refusal.to_string()) }.uncharged()
    }
}

impl From<EntropyError> for Failure {
    fn from(error: EntropyError) -> Self {
        Self::new("noise.entropy", error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::new(BROKEN_PIPE, "the reader of this output went away"),
            // Some of it may have been.
            _ => Self {
                note: None,
                ..Self::new("cli.write", format!("the answer could not be written: {error}"))
            },
        }
    }
}
