//! From the text of a query to its syntax tree and its privacy options.
//!
//! **Limits.** Length, tokens, operators and depth are limited before anything is parsed or planned: what a query may make the planner do is
//! bounded whatever it says, and no deep tree exists that could exhaust a stack.
//!
//! **The privacy clause.** `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, …)` is cut out of the tokens, because the parser does not know it;
//! named arguments such as `contribution_bounds_per_row => (0, 100)` become a last argument that the planner reads
//! ([`Contribution`]).

mod alias;
mod clause;
mod contribution;
mod reads;
mod report;
mod shape;

use datafusion::sql::sqlparser::ast::{Query, Statement, visit_expressions_mut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

pub use clause::{GroupSelection, Options};
pub(crate) use contribution::Contribution;

use crate::PlanError;
use crate::place::Place;

/// The longest query, in bytes.
const BYTES: usize = 1 << 16;
/// The most tokens, spaces left out.
const TOKENS: usize = 4096;
/// The most operators: each makes an expression one deeper.
const OPERATORS: usize = 500;
/// The deepest nesting of brackets.
const DEPTH: usize = 40;
/// The deepest nesting of what the parser reads: brackets, and some words around them.
const NESTING: usize = DEPTH + 8;

/// What was written.
pub(crate) struct Written {
    /// The query without its privacy clause.
    pub(crate) query: Box<Query>,
    /// What the privacy clause says.
    pub(crate) options: Options,
    /// Whether the plan was asked for, not the answer.
    pub(crate) explain: bool,
}

/// Reads one query.
pub(crate) fn read(text: &str) -> Result<Written, PlanError> {
    let mut tokens = tokens(text)?;
    let options = clause::cut(&mut tokens)?;
    let mut statements = Parser::new(&GenericDialect {})
        .with_recursion_limit(NESTING)
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(|error| unreadable(&error.to_string(), text))?;
    let statement = match (statements.pop(), statements.pop()) {
        (Some(statement), None) => statement,
        (None, _) => return Err(PlanError::mistake("plan.syntax", "the query is empty")),
        _ => {
            let text = "there are several statements; a question is one";
            return Err(PlanError::refused("plan.statement", text).hint("ask them one after the other"));
        }
    };
    let (mut query, explain) = query_of(statement)?;
    shape::check(&query)?;
    reads::check(&query)?;
    alias::name(&mut query);
    let seen = visit_expressions_mut(&mut *query, contribution::encode);
    if let std::ops::ControlFlow::Break(error) = seen {
        return Err(error);
    }
    alias::resolve(&mut query);
    Ok(Written { query, options, explain })
}

/// The query of a statement that only asks.
fn query_of(statement: Statement) -> Result<(Box<Query>, bool), PlanError> {
    match statement {
        Statement::Query(query) => Ok((query, false)),
        Statement::Explain { analyze: false, statement, .. } => match *statement {
            Statement::Query(query) => Ok((query, true)),
            other => Err(no_question(&other)),
        },
        Statement::Explain { .. } => Err(PlanError::refused(
            "plan.statement",
            "EXPLAIN ANALYZE is refused: it would run the query and say how many rows there are",
        )
        .hint("EXPLAIN alone shows the privacy plan and costs nothing")),
        other => Err(no_question(&other)),
    }
}

fn no_question(statement: &Statement) -> PlanError {
    let text = statement.to_string();
    let name = text.split_whitespace().next().unwrap_or("this").to_ascii_uppercase();
    PlanError::refused("plan.statement", format!("{name} is refused: only SELECT asks a question"))
        .hint("nothing here writes, sets or copies; the owner's settings are in demur.toml")
}

/// The tokens of a text that keeps the limits.
fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, PlanError> {
    let too_much = |what: &str, found: usize, most: usize| {
        PlanError::refused(
            "plan.size",
            format!("the query has {found} {what}, and {most} are the most that is read"),
        )
        .hint("ask a shorter question; long lists belong into a public table")
    };
    if text.len() > BYTES {
        return Err(too_much("bytes", text.len(), BYTES));
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize_with_location()
        .map_err(|error| unreadable(&error.to_string(), text))?;
    let tokens: Vec<_> =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    if tokens.len() > TOKENS {
        return Err(too_much("words and signs", tokens.len(), TOKENS));
    }
    let operators = tokens.iter().filter(|token| is_operator(&token.token)).count();
    if operators > OPERATORS {
        return Err(too_much("operators", operators, OPERATORS));
    }
    let depth = depth(&tokens);
    if depth > DEPTH {
        return Err(too_much("levels of brackets", depth, DEPTH));
    }
    Ok(tokens)
}

/// Whether the token makes an expression deeper.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            let deepening = [
                "AND",
                "OR",
                "NOT",
                "IS",
                "LIKE",
                "ILIKE",
                "BETWEEN",
                "CASE",
                "UNION",
                "EXCEPT",
                "INTERSECT",
                "JOIN",
            ];
            word.quote_style.is_none() && deepening.iter().any(|name| word.value.eq_ignore_ascii_case(name))
        }
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::Comma
        | Token::Period
        | Token::LParen
        | Token::RParen
        | Token::SemiColon
        | Token::RArrow
        | Token::EOF => false,
        _ => true,
    }
}

fn depth(tokens: &[TokenWithSpan]) -> usize {
    let (mut open, mut deepest) = (0usize, 0);
    for token in tokens {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => open += 1,
            Token::RParen | Token::RBracket | Token::RBrace => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// What the parser says, in a sentence of ours, and where it stopped.
fn unreadable(said: &str, text: &str) -> PlanError {
    let said = said.trim_start_matches("sql parser error: ");
    let (said, place) = match said.rsplit_once(" at Line: ") {
        Some((said, place)) => (said, location(place)),
        None if said.ends_with("found: EOF") => (said, Some(Place::after(text))),
        None => (said, None),
    };
    let expected = said.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: "));
    let sentence = match expected {
        Some((expected, "EOF")) => format!("the query ends where it should go on with {expected}"),
        Some((expected, found)) => format!("the query cannot be read: expected {expected}, found {found}"),
        None if said.starts_with("No infix parser") => {
            "the query cannot be read: what stands here is no operator".to_owned()
        }
        None => format!("the query cannot be read: {said}"),
    };
    let place = place.map(|place| expected.map_or(place, |(_, found)| place.over(found, text)));
    PlanError::mistake("plan.syntax", sentence).at(place)
}

/// The place in `1, Column: 35`.
fn location(text: &str) -> Option<Place> {
    let (line, column) = text.split_once(", Column: ")?;
    Place::of_location(Location::new(line.parse().ok()?, column.parse().ok()?))
}

/// Where a refusal's own keyword stands, if it stands in the text exactly once.
///
/// What is refused is named by its words in the query, in capitals: "JOIN cannot be used here".
pub(crate) fn place_of_refused(sentence: &str, text: &str) -> Option<Place> {
    let what = sentence.strip_suffix(" cannot be used here")?;
    let is_name = |word: &&str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
    let mut names = what.split(|letter: char| !letter.is_alphanumeric()).filter(is_name);
    let tokens = tokens(text).ok()?;
    names.find_map(|name| {
        let mut found = tokens.iter().filter(|token| clause::is_word(Some(*token), name));
        match (found.next(), found.next()) {
            (Some(only), None) => Place::of_parsed(only.span),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        match read(text) {
            Err(error) => format!("{}: {error}", error.code()),
            Ok(_) => "read".to_owned(),
        }
    }

    #[test]
    fn a_query_and_its_options_are_read() {
        let text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, delta=1e-6, max_groups_contributed=3) COUNT(*) AS n FROM t";
        let written = read(text).map_err(|error| error.to_string());
        let written = written.unwrap_or_else(|error| unreachable!("{error}"));
        assert_eq!(written.query.to_string(), "SELECT COUNT(*) AS n FROM t");
        assert_eq!(written.options.epsilon.as_deref(), Some("0.5"));
        assert_eq!(written.options.delta.as_deref(), Some("1e-6"));
        assert_eq!(written.options.max_groups, Some(3));
        assert!(!written.explain);
    }

    #[test]
    fn options_stand_at_the_outermost_select() {
        let clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2)";
        for text in [
            format!("SELECT COUNT(*) FROM ({clause} a FROM t)"),
            format!("WITH s AS ({clause} a FROM t) SELECT COUNT(*) FROM s"),
            format!("{clause} COUNT(*) FROM ({clause} a FROM t)"),
        ] {
            assert!(refusal(&text).starts_with("plan.clause"), "{text}");
        }
        assert_eq!(refusal(&format!("WITH s AS (SELECT (a) FROM t) {clause} COUNT(*) FROM s")), "read");
    }

    #[test]
    fn what_is_no_question_is_refused_by_name() {
        for (text, name) in [
            ("COPY t TO 'x.csv'", "COPY"),
            ("SET a = 1", "SET"),
            ("DROP TABLE t", "DROP"),
            ("INSERT INTO t VALUES (1)", "INSERT"),
            ("CREATE TABLE t AS SELECT 1", "CREATE"),
            ("DELETE FROM t", "DELETE"),
        ] {
            assert_eq!(
                refusal(text),
                format!("plan.statement: {name} is refused: only SELECT asks a question")
            );
        }
        assert!(refusal("EXPLAIN ANALYZE SELECT 1").starts_with("plan.statement: EXPLAIN ANALYZE"));
        assert!(refusal("SELECT 1; SELECT 2").starts_with("plan.statement"));
        assert!(refusal("").starts_with("plan.syntax"));
    }

    #[test]
    fn a_20_000_term_expression_is_refused_before_it_is_parsed() {
        let long = format!("SELECT {}1 FROM t", "1+".repeat(20_000));
        assert!(refusal(&long).starts_with("plan.size"));
    }

    #[test]
    fn more_than_64_kib_of_text_is_refused() {
        assert!(refusal(&format!("SELECT '{}'", "x".repeat(1 << 16))).starts_with("plan.size"));
        assert!(
            refusal(&format!("SELECT {}1{}", "(".repeat(3000), ")".repeat(3000))).starts_with("plan.size")
        );
    }
}
