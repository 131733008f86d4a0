//! What the environment says about a run of the tests.

use std::io::Write;

/// Set to anything: the long statistical tests run.
const LONG: &str = "DEMUR_LONG_TESTS";
/// Set to a whole number: other seeds are used, for fresh draws every night.
const SEED: &str = "DEMUR_SEED";

/// The seed for one use: always the same, unless `DEMUR_SEED` asks for others.
pub fn seed(of: u64) -> u64 {
    let chosen = std::env::var(SEED).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    mix(chosen, of)
}

/// 0 changes nothing; any other number gives unrelated seeds.
fn mix(chosen: u64, of: u64) -> u64 {
    chosen.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ of
}

/// Whether the long tests shall run; if not, says so on standard output, always visibly.
pub fn long_tests(name: &str) -> bool {
    let wanted = std::env::var_os(LONG).is_some();
    if !wanted {
        // The test harness swallows what `println!` prints, but not this.
        let line = format!("{name}: NOT RUN, because it takes minutes; set {LONG}=1 to run it\n");
        let _ = std::io::stdout().write_all(line.as_bytes());
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_their_own_unless_others_are_asked_for() {
        assert_eq!(mix(0, 5), 5);
        assert_ne!(mix(1, 5), 5);
        assert_ne!(mix(1, 5), mix(2, 5));
        assert_ne!(mix(1, 5), mix(1, 6));
    }
}
