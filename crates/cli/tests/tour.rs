//! Every command of docs/tour.md works, and prints what the page shows, but for the numbers.

use std::path::Path;
use std::process::Command;

#[test]
fn the_tour_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tour = std::fs::read_to_string(root.join("docs/tour.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["demur.toml", "visits.csv"] {
        std::fs::copy(root.join("examples/visits").join(name), folder.path().join(name)).unwrap();
    }
    let mut typed = 0;
    for block in tour.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        let (command, expected) = block.split_once('\n').unwrap();
        let words = words(command.strip_prefix("$ demur ").unwrap());
        let done = Command::new(env!("CARGO_BIN_EXE_demur"))
            .args(&words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
        assert_eq!(without_numbers(&told), without_numbers(expected), "{command}\n{told}");
        typed += 1;
    }
    assert!(typed >= 8, "the tour has only {typed} commands");
}

/// The words of a command, with those in quotes kept together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        match index % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

/// The text with every number, name of a key and picture of a bar replaced; how an interval is written depends on the numbers.
fn without_numbers(text: &str) -> String {
    let plain = |word: &str| {
        let is_number = word.chars().any(|letter| letter.is_ascii_digit()) || word.contains(['█', '░']);
        let is_hash = word.len() >= 16 && word.chars().all(|letter| letter.is_ascii_hexdigit());
        if is_number || is_hash { "#".to_owned() } else { word.to_owned() }
    };
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().map(plain).collect();
        words.join(" ").replace("# … #", "± #")
    };
    // Rows in the order of their noisy numbers may come in another order.
    let mut lines: Vec<_> = text.lines().map(line).filter(|line| !line.is_empty()).collect();
    let is_row = |line: &String| {
        ["north", "south", "east", "west", "coast", "islands"].iter().any(|region| line.starts_with(region))
    };
    lines.iter_mut().filter(|line| is_row(line)).for_each(|line| *line = "a region # ± # # ± #".to_owned());
    lines.join("\n")
}
