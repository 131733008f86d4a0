//! The clause `WITH DIFFERENTIAL_PRIVACY OPTIONS(…)` after a SELECT.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::PlanError;
use crate::catalog::NoisePreference;
use crate::place::Place;

/// What a query may say about its own privacy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// ε, as written.
    pub epsilon: Option<String>,
    /// δ, as written.
    pub delta: Option<String>,
    /// How far off answers may be, as written, instead of ε.
    pub max_error: Option<String>,
    /// In how many groups one unit may appear.
    pub max_groups: Option<u64>,
    /// For how many rows one unit may count in a group.
    pub max_rows: Option<u64>,
    /// The column that names the unit; it must be the catalog's.
    pub unit_column: Option<String>,
    /// Which noise to use.
    pub noise: Option<NoisePreference>,
    /// How the keys are found.
    pub group_selection: Option<GroupSelection>,
}

/// How the keys of a GROUP BY are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSelection {
    /// By a threshold on noisy counts of units.
    Private,
    /// They are public.
    Public,
}

/// Cuts the clause out of the tokens.
pub(super) fn cut(tokens: &mut Vec<TokenWithSpan>) -> Result<Options, PlanError> {
    let starts: Vec<usize> = (0..tokens.len()).filter(|&at| starts_here(&tokens[at..])).collect();
    let Some(&start) = starts.first() else { return Ok(Options::default()) };
    let misplaced = |start: usize, text: &str| {
        let place = Place::of_parsed(tokens[start + 2].span);
        Err(PlanError::refused("plan.clause", text).hint("write it at the outermost SELECT").at(place))
    };
    if let Some(&other) = starts.get(1) {
        return misplaced(
            other,
            "WITH DIFFERENTIAL_PRIVACY stands at several SELECTs, and one is made private",
        );
    }
    let brackets = tokens[..start].iter().map(|token| match token.token {
        Token::LParen => 1,
        Token::RParen => -1,
        _ => 0,
    });
    if brackets.sum::<i32>() != 0 {
        let text =
            "WITH DIFFERENTIAL_PRIVACY stands at a SELECT in brackets, and the outermost one is made private";
        return misplaced(start, text);
    }
    let mut end = start + 3;
    let mut options = Options::default();
    if is_word(tokens.get(end), "OPTIONS") {
        end = read(&tokens[end + 1..], &mut options)? + end + 1;
    }
    tokens.drain(start + 1..end);
    Ok(options)
}

fn starts_here(tokens: &[TokenWithSpan]) -> bool {
    is_word(tokens.first(), "SELECT")
        && is_word(tokens.get(1), "WITH")
        && is_word(tokens.get(2), "DIFFERENTIAL_PRIVACY")
}

pub(super) fn is_word(token: Option<&TokenWithSpan>, name: &str) -> bool {
    matches!(token, Some(TokenWithSpan { token: Token::Word(word), .. })
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
}

/// Reads `( name = value, … )` and says how many tokens it was.
fn read(tokens: &[TokenWithSpan], options: &mut Options) -> Result<usize, PlanError> {
    let wrong = |found: Option<&TokenWithSpan>| {
        let place = place(found);
        let found = found.map_or("the end".to_owned(), |token| format!("`{}`", token.token));
        PlanError::mistake(
            "plan.options",
            format!("OPTIONS should read (name = value, …), but there is {found}"),
        )
        .at(place)
    };
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|found| found.token == *token);
    if !is(0, &Token::LParen) {
        return Err(wrong(tokens.first()));
    }
    if is(1, &Token::RParen) {
        return Ok(2);
    }
    let (mut at, mut seen) = (1, Vec::new());
    loop {
        let Some(TokenWithSpan { token: Token::Word(name), .. }) = tokens.get(at) else {
            return Err(wrong(tokens.get(at)));
        };
        if !is(at + 1, &Token::Eq) {
            return Err(wrong(tokens.get(at + 1)));
        }
        let (value, next) = value(tokens, at + 2).ok_or_else(|| wrong(tokens.get(at + 2)))?;
        let name = name.value.to_ascii_lowercase();
        if seen.contains(&name) {
            return Err(PlanError::mistake("plan.options", format!("OPTIONS says {name} twice"))
                .at(place(tokens.get(at))));
        }
        options.set(&name, &value).map_err(|error| error.at(place(tokens.get(at))))?;
        seen.push(name);
        at = next;
        match tokens.get(at).map(|token| &token.token) {
            Some(Token::Comma) => at += 1,
            Some(Token::RParen) => return Ok(at + 1),
            _ => return Err(wrong(tokens.get(at))),
        }
    }
}

fn place(token: Option<&TokenWithSpan>) -> Option<Place> {
    token.and_then(|token| Place::of_parsed(token.span))
}

/// A value as text, and where the next token is.
fn value(tokens: &[TokenWithSpan], at: usize) -> Option<(String, usize)> {
    match &tokens.get(at)?.token {
        Token::Minus => value(tokens, at + 1).map(|(text, next)| (format!("-{text}"), next)),
        Token::Number(text, _) | Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
            Some((text.clone(), at + 1))
        }
        Token::Word(word) => Some((word.value.clone(), at + 1)),
        _ => None,
    }
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> Result<(), PlanError> {
        let count = || {
            value.parse::<u64>().ok().filter(|&n| n > 0).ok_or_else(|| {
                PlanError::mistake(
                    "plan.options",
                    format!("{name} must be a whole number above 0, but it is `{value}`"),
                )
            })
        };
        match name {
            "epsilon" => self.epsilon = Some(value.to_owned()),
            "delta" => self.delta = Some(value.to_owned()),
            "max_error" => self.max_error = Some(value.to_owned()),
            "max_groups_contributed" | "kappa" => self.max_groups = Some(count()?),
            "max_rows_contributed" | "max_rows_per_group" => self.max_rows = Some(count()?),
            "privacy_unit_column" => self.unit_column = Some(value.to_owned()),
            "noise" | "noise_kind" => self.noise = Some(value.parse()?),
            "group_selection_strategy" => self.group_selection = Some(selection(value)?),
            _ => {
                let known = "epsilon, delta, max_error, max_groups_contributed, max_rows_contributed, privacy_unit_column, noise, \
                             group_selection_strategy";
                return Err(PlanError::mistake(
                    "plan.options",
                    format!("there is no privacy option `{name}`"),
                )
                .hint(format!("there are: {known}")));
            }
        }
        Ok(())
    }
}

fn selection(value: &str) -> Result<GroupSelection, PlanError> {
    match value.to_ascii_lowercase().as_str() {
        "private" | "laplace_threshold" | "pre_threshold" => Ok(GroupSelection::Private),
        "public" | "public_groups" => Ok(GroupSelection::Public),
        _ => Err(PlanError::mistake("plan.options", format!("`{value}` is no way to select groups"))
            .hint("there are: private (laplace_threshold) and public (public_groups)")),
    }
}
