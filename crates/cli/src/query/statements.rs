//! What is typed, cut into questions: each ends with `;`, and one that begins with `\` ends with its line.

/// Whether nothing more has to be typed.
pub(super) fn is_whole(input: &str) -> bool {
    let rest = cut(input).1;
    rest.trim().is_empty() || rest.trim_start().starts_with('\\')
}

/// Questions and commands, in order; what is not ended by `;` is taken as it is.
pub(super) fn all(input: &str) -> Vec<&str> {
    let (mut found, rest) = cut(input);
    found.push(rest.trim());
    found.retain(|one| one.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with("--")));
    found
}

/// The questions that are ended, and what is left.
fn cut(input: &str) -> (Vec<&str>, &str) {
    let (mut found, mut rest) = (Vec::new(), input);
    loop {
        let command = rest.trim_start().starts_with('\\');
        let end = if command {
            rest.trim_start().find('\n').map(|at| at + rest.len() - rest.trim_start().len())
        } else {
            end(rest)
        };
        let Some(end) = end else { return (found, rest) };
        let one = rest[..end].trim();
        if !one.is_empty() {
            found.push(one);
        }
        rest = &rest[end + 1..];
    }
}

/// Where the first `;` stands that is not in quotes and in no comment.
fn end(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, letter)| *letter);
        match (letter, next) {
            (';', _) => return Some(at),
            ('\'' | '"', _) => {
                letters.find(|(_, found)| *found == letter)?;
            }
            ('-', Some('-')) => {
                letters.find(|(_, found)| *found == '\n')?;
            }
            ('/', Some('*')) => {
                letters.next();
                let mut before = ' ';
                letters.find(|(_, found)| {
                    let ends = before == '*' && *found == '/';
                    before = *found;
                    ends
                })?;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_with_a_semicolon() {
        for whole in
            ["", "  \n", "SELECT 1;", "SELECT\n1\n;\n", "\\q", "  \\budget", "SELECT ';' ;", "SELECT 1; \\q"]
        {
            assert!(is_whole(whole), "{whole}");
        }
        for open in
            ["SELECT 1", "SELECT ';", "SELECT 1 -- ;", "SELECT 1 /* ; ", "SELECT \"a;b\"", "SELECT 1; SELECT"]
        {
            assert!(!is_whole(open), "{open}");
        }
    }

    #[test]
    fn several_questions_are_told_apart() {
        let input = "SELECT ';' AS a; -- a ; in a comment\nSELECT \"x;y\" /* ; */;;\n\\epsilon 1\nSELECT 3";
        assert_eq!(
            all(input),
            ["SELECT ';' AS a", "-- a ; in a comment\nSELECT \"x;y\" /* ; */", "\\epsilon 1", "SELECT 3"]
        );
        assert!(all(" ;; \n").is_empty());
    }

    #[test]
    fn quotes_in_quotes_are_doubled() {
        assert_eq!(all("SELECT 'it''s; fine'; SELECT 2;"), ["SELECT 'it''s; fine'", "SELECT 2"]);
    }
}
