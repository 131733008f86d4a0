//! [`Words`]: what a word that is being typed may become.

use demur_plan::Catalog;

/// What begins with `\` at the prompt, and what it says of itself.
pub(super) const COMMANDS: [(&str, &str); 12] = [
    ("\\?", "this list"),
    ("\\d [TABLE]", "the tables, or the columns of one"),
    ("\\budget", "how much was spent, and how much is left"),
    ("\\explain SQL", "what a question would cost and how far off its answer would be, for free"),
    ("\\epsilon [E]", "spend so much on each question from here on; without E, say how much"),
    ("\\error [ERROR@CONFIDENCE]", "spend the least that keeps answers this close, as in 50@95%"),
    ("\\delta [D]", "the probability with which a promise may fail"),
    ("\\noise [KIND]", "any, laplace or gaussian"),
    ("\\format [FORM]", "table, json, csv or lines"),
    ("\\plot KIND [FILE]", "draw the last answer as bar, line or heat, here or to an .svg or .png file"),
    ("\\save FILE", "write the last answer to a .parquet, .arrow, .csv, .json, .jsonl or .txt file"),
    ("\\q", "leave"),
];

/// Words of SQL that questions are made of.
const KEYWORDS: [&str; 46] = [
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "DATE",
    "DESC",
    "DIFFERENTIAL_PRIVACY",
    "DISTINCT",
    "ELSE",
    "END",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERVAL",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "OVER",
    "SELECT",
    "THEN",
    "TRUE",
    "UNION",
    "USING",
    "WHEN",
    "WHERE",
    "WITH",
    "WITHIN",
];

/// Everything that can be named.
pub(super) struct Words {
    tables: Vec<(String, Vec<String>)>,
    functions: Vec<String>,
}

impl Words {
    pub(super) fn of(catalog: &Catalog) -> Self {
        let columns =
            |table: &demur_plan::catalog::Table| table.columns.keys().map(|name| quoted(name)).collect();
        let tables = catalog.tables.values().map(|table| (quoted(&table.name), columns(table)));
        Self { tables: tables.collect(), functions: demur_plan::function_names() }
    }

    /// Where the word before the cursor begins, and what it may become.
    pub(super) fn complete(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = line.get(..at).unwrap_or(line);
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '"';
        let start = before
            .rfind(|letter| !is_part(letter))
            .map_or(0, |place| place + before[place..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        let statement = before.rsplit(';').next().unwrap_or(before).trim_start();
        if let Some(command) = statement.strip_prefix('\\') {
            return match command.split_once(' ') {
                None => (before.len() - statement.len(), commands(statement)),
                Some(("d", _)) => (start, self.starting(self.tables.iter().map(|(name, _)| name), word)),
                Some(("explain", _)) => (start, self.in_sql(before, start, word)),
                Some(("plot", _)) => (start, these(&["bar", "line", "heat"], word)),
                Some(("format", _)) => (start, these(&["table", "json", "csv", "lines"], word)),
                Some(("noise", _)) => (start, these(&["any", "laplace", "gaussian"], word)),
                Some(_) => (start, Vec::new()),
            };
        }
        (start, self.in_sql(before, start, word))
    }

    fn in_sql(&self, before: &str, start: usize, word: &str) -> Vec<String> {
        let owner = before[..start].strip_suffix('.').map(|rest| {
            let from =
                rest.rfind(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '"'));
            &rest[from.map_or(0, |at| at + 1)..]
        });
        if let Some(owner) = owner {
            let columns = self.tables.iter().filter(|(name, _)| name.eq_ignore_ascii_case(owner));
            return self.starting(columns.flat_map(|(_, columns)| columns), word);
        }
        if word.is_empty() {
            return self
                .starting(self.tables.iter().flat_map(|(name, columns)| columns.iter().chain([name])), word);
        }
        let mut found =
            self.starting(self.tables.iter().flat_map(|(name, columns)| columns.iter().chain([name])), word);
        let shout = word.chars().any(char::is_uppercase);
        let cased = |text: &str| if shout { text.to_uppercase() } else { text.to_lowercase() };
        let starts = |text: &&str| {
            text.len() >= word.len()
                && text.is_char_boundary(word.len())
                && text[..word.len()].eq_ignore_ascii_case(word)
        };
        found.extend(self.functions.iter().map(String::as_str).filter(starts).map(|name| cased(name) + "("));
        found.extend(KEYWORDS.into_iter().filter(starts).map(cased));
        found
    }

    fn starting<'a>(&self, names: impl Iterator<Item = &'a String>, word: &str) -> Vec<String> {
        let word = word.trim_start_matches('"').to_lowercase();
        let starts = |name: &&String| name.trim_start_matches('"').to_lowercase().starts_with(&word);
        let mut found: Vec<String> = names.filter(starts).cloned().collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn commands(typed: &str) -> Vec<String> {
    let name = |(name, _): (&str, &str)| name.split(' ').next().unwrap_or(name).to_owned();
    COMMANDS.into_iter().map(name).filter(|name| name.starts_with(typed)).collect()
}

fn these(words: &[&str], typed: &str) -> Vec<String> {
    words.iter().filter(|word| word.starts_with(typed)).map(|word| (*word).to_owned()).collect()
}

/// A name as it must be written: in quotes unless it is plain and small.
fn quoted(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let starts = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    if starts && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        Words {
            tables: vec![
                (
                    "visits".to_owned(),
                    vec!["age".to_owned(), "region".to_owned(), "\"Total Cost\"".to_owned()],
                ),
                ("readings".to_owned(), vec!["x".to_owned()]),
            ],
            functions: vec!["avg".to_owned(), "abs".to_owned(), "count".to_owned()],
        }
    }

    fn becomes(line: &str) -> Vec<String> {
        words().complete(line, line.len()).1
    }

    #[test]
    fn columns_tables_functions_and_keywords_are_completed() {
        assert_eq!(becomes("SELECT reg"), ["region"]);
        assert_eq!(becomes("SELECT re"), ["readings", "region"]);
        assert_eq!(becomes("SELECT A"), ["age", "AVG(", "ABS(", "AND", "AS", "ASC"]);
        assert_eq!(becomes("SELECT cou"), ["count("]);
        assert_eq!(becomes("SELECT visits."), ["\"Total Cost\"", "age", "region"]);
        assert_eq!(becomes("SELECT readings.a"), Vec::<String>::new());
        assert_eq!(becomes("SELECT \"tot"), ["\"Total Cost\""]);
        assert_eq!(becomes("sel"), ["select"]);
    }

    #[test]
    fn commands_and_what_they_take_are_completed() {
        assert_eq!(becomes("\\e"), ["\\explain", "\\epsilon", "\\error"]);
        assert_eq!(becomes("\\d vi"), ["visits"]);
        assert_eq!(becomes("\\plot h"), ["heat"]);
        assert_eq!(becomes("\\explain SELECT ag"), ["age"]);
        assert_eq!(becomes("SELECT 1; \\bu"), ["\\budget"]);
        assert_eq!(words().complete("\\d vi", 5).0, 3);
    }

    #[test]
    fn a_place_inside_a_letter_is_no_panic() {
        assert_eq!(words().complete("SELECT é", 8).0, 7);
    }
}
