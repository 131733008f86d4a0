//! `demur account batch`: one answer for every line of JSON.
//!
//! Answers are written as soon as no further question waits, so that a program may ask, wait
//! and ask again, and a file is still answered in large pieces.

mod case;

use std::io::{BufRead, Read, Write};

use case::{Reply, answer};

use crate::failure::Failure;

/// The longest line.
const MAX_LINE: usize = 1 << 20;

pub(crate) fn batch(input: impl Read, out: &mut impl Write) -> Result<(), Failure> {
    let mut reader = std::io::BufReader::with_capacity(1 << 16, input);
    let mut line = Vec::new();
    while let Some(read) = next_line(&mut reader, &mut line)? {
        let reply = match read {
            Line::Whole if line.trim_ascii().is_empty() => continue,
            Line::Whole => answer(&line),
            Line::TooLong => Reply::failed(&too_long()),
        };
        reply.write(out)?;
        if !reader.buffer().contains(&b'\n') {
            out.flush()?;
        }
    }
    Ok(())
}

enum Line {
    Whole,
    TooLong,
}

/// Reads a line of bounded length into `line`; what is too long is skipped.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> Result<Option<Line>, Failure> {
    line.clear();
    let unreadable = |error| Failure::new("cli.read", format!("the questions cannot be read: {error}"));
    let read = reader.take(MAX_LINE as u64 + 1).read_until(b'\n', line).map_err(unreadable)?;
    let ended = line.last() == Some(&b'\n');
    match read {
        0 => Ok(None),
        _ if ended || read <= MAX_LINE => Ok(Some(Line::Whole)),
        _ => {
            reader.skip_until(b'\n').map_err(unreadable)?;
            Ok(Some(Line::TooLong))
        }
    }
}

fn too_long() -> Failure {
    Failure::new("cli.line", format!("a line may have at most {MAX_LINE} bytes, and this one has more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(questions: &str) -> Vec<String> {
        let mut out = Vec::new();
        batch(questions.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn bad_lines_do_not_end_the_run() {
        let long = " ".repeat(MAX_LINE + 5);
        let text = format!("no\n\n{long}\n{{\"losses\":\"pure(\",\"delta\":0,\"id\":[1]}}\n{{}}");
        let lines = answers(&text);
        let codes = ["cli.json", "cli.line", "core.loss.language", "cli.question"];
        assert_eq!(lines.len(), codes.len());
        for (line, code) in lines.iter().zip(codes) {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(object["code"], code, "{line}");
            assert!(object["error"].as_str().is_some_and(|text| !text.is_empty()));
        }
        assert!(lines[2].starts_with("{\"id\":[1],"));
    }

    #[test]
    fn the_longest_line_is_read() {
        let question = "{\"losses\":\"pure(\"}";
        let spaces = " ".repeat(MAX_LINE - question.len());
        assert!(answers(&format!("{question}{spaces}"))[0].contains("cli.question"));
        assert!(answers(&format!("{question}{spaces}\n"))[0].contains("cli.question"));
        assert!(answers(&format!("{question}{spaces} \n"))[0].contains("cli.line"));
    }
}
