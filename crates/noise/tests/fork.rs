//! After a fork, parent and child draw different words.
//!
//! Both start with the same memory, so the same key and the same pool: without the check in
//! `entropy.rs` they would publish the same noise, and one answer would give away the other's.
//!
//! Runs without the test harness: a fork copies only the thread that asks for it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails and talks where it likes")]

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use demur_noise::{Entropy, Words};
use fork::{Fork, fork, waitpid_nohang};

const WORDS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        println!("parent_and_children_draw_different_words: test");
        return;
    }
    // Once with the pool still unfilled, once in the middle of it.
    for used in [0, 1, 100] {
        parent_and_children_draw_different_words(used);
    }
    println!("test parent_and_children_draw_different_words ... ok");
}

/// Two random words are equal with probability 2⁻⁶⁴: false alarm below 1e-15.
fn parent_and_children_draw_different_words(used: usize) {
    let mut entropy = Entropy::from_os().unwrap();
    draw(&mut entropy, used);
    let first = words_of_child(&mut entropy);
    let second = words_of_child(&mut entropy);
    let parent = draw(&mut entropy, WORDS);
    assert_eq!(parent.len(), WORDS);
    for (a, b) in [(&parent, &first), (&parent, &second), (&first, &second)] {
        let shared = a.iter().filter(|word| b.contains(word)).count();
        assert_eq!(shared, 0, "{shared} of {WORDS} words are the same on both sides of a fork ({used} used)");
    }
    // The child goes on being random: no word twice.
    let mut sorted = first.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), WORDS);
}

fn draw(entropy: &mut Entropy, count: usize) -> Vec<u64> {
    (0..count).map(|_| entropy.word()).collect()
}

/// What a child draws that starts with a copy of `entropy`.
///
/// The child's words fit into the pipe, so it always comes to its end, and is waited for.
fn words_of_child(entropy: &mut Entropy) -> Vec<u64> {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let child = match fork().unwrap() {
        Fork::Parent(child) => child,
        Fork::Child => {
            let bytes: Vec<u8> = draw(entropy, WORDS).into_iter().flat_map(u64::to_le_bytes).collect();
            let written = writer.write_all(&bytes);
            std::process::exit(i32::from(written.is_err()));
        }
    };
    drop(writer);
    let start = Instant::now();
    let status = loop {
        if let Some(status) = waitpid_nohang(child).unwrap() {
            break status;
        }
        assert!(start.elapsed() < PATIENCE, "the child has not come to its end");
        std::thread::sleep(Duration::from_millis(2));
    };
    assert_eq!(status, 0, "the child failed");
    let mut bytes = vec![];
    reader.read_to_end(&mut bytes).unwrap();
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect();
    assert_eq!(words.len(), WORDS);
    words
}
