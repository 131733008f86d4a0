//! [`Secret`]: which groups a unit keeps, in a way nobody outside can foresee.
//!
//! **Definition.** fold(x, y) is the exclusive or of the two halves of the 128-bit product x · y. A string of bytes is hashed by folding it with
//! secret words. A word is hashed by two rounds, each a product with an odd number
//! and an exclusive or with its own higher half: both can be undone, so different words have different hashes. A unit that is a word has a hash of its
//! own, of which so much can be undone as well: the upper half mixes the lower half of the word with the upper; the lower half is the upper half of the word, struck
//! out by a function of the hash's upper half. So the hash of a *small* word, below 2³², follows from its own upper half, and 4 bytes name the unit. The *rank* of a
//! group for a unit mixes the upper halves of both hashes, in 32 bits, so that many ranks can be computed at once.
//!
//! **Guarantee.** None rests on how well this mixes: bounds hold for every function in its place, and whoever needs distinct things
//! to be told apart compares the things. A good mix only makes each of a unit's groups equally likely to be kept.

/// The key of one query's hashes.
#[derive(Clone, Copy)]
pub(crate) struct Secret {
    first: u64,
    second: u64,
    /// Lets a test make things collide.
    #[cfg(test)]
    pub(crate) thing_mask: u64,
}

/// An odd constant with no pattern (the fraction of √3).
const ODD: u64 = 0xBB67_AE85_84CA_A73B;

impl Secret {
    pub(crate) fn new(key: [u64; 2]) -> Self {
        // A key of few bits, as tests have it, mixes as well as any other.
        Self {
            first: key[0] ^ 0x243F_6A88_85A3_08D3,
            second: key[1] ^ 0x1319_8A2E_0370_7344,
            #[cfg(test)]
            thing_mask: u64::MAX,
        }
    }

    /// The hash of a word; no other word has it.
    #[inline]
    pub(crate) fn word(&self, word: u64) -> u64 {
        let half = (word ^ self.first).wrapping_mul(self.second | 1);
        let half = (half ^ half >> 32 ^ self.second).wrapping_mul(ODD);
        half ^ half >> 32
    }

    /// The hash of a unit that is a word; no other word has it.
    #[inline(always)]
    pub(crate) fn unit(&self, word: u64) -> u64 {
        let high = (word >> 32) as u32;
        let spread = high.wrapping_mul((self.second >> 32) as u32 | 1);
        let spread = (spread ^ spread >> 16).wrapping_mul(ODD as u32); // 0 if the word is small
        let upper = self.scramble(word as u32) ^ spread;
        u64::from(upper) << 32 | u64::from(high ^ echo(upper))
    }

    /// A number for each number of 32 bits; every step can be undone.
    #[inline(always)]
    fn scramble(&self, word: u32) -> u32 {
        let mixed = (word ^ self.first as u32).wrapping_mul(self.second as u32 | 1);
        let mixed = (mixed ^ mixed >> 16 ^ (self.first >> 32) as u32).wrapping_mul(ODD as u32);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul((ODD >> 32) as u32);
        mixed ^ mixed >> 16
    }

    /// The hash of a wide word.
    #[inline]
    pub(crate) fn wide(&self, word: u128) -> u64 {
        fold(fold(word as u64 ^ self.first, (word >> 64) as u64 ^ self.second) ^ self.second, ODD)
    }

    /// The hash of a string of bytes.
    #[inline]
    pub(crate) fn bytes(&self, bytes: &[u8]) -> u64 {
        let mut state = self.second ^ bytes.len() as u64;
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            state = fold(state ^ word_of(word), self.first | 1);
        }
        self.word(state ^ word_of(words.remainder()))
    }

    /// The hash of a group or a value, from its canonical bytes.
    pub(crate) fn thing(&self, bytes: &[u8]) -> u64 {
        let hash = self.bytes(bytes);
        #[cfg(test)]
        let hash = hash & self.thing_mask;
        hash
    }
}

/// Where a thing stands among the things of a unit: the smallest are kept.
#[inline(always)]
pub(crate) fn rank(unit: u64, thing: u64) -> u32 {
    rank_of_halves((unit >> 32) as u32, (thing >> 32) as u32)
}

/// The same, given the upper halves. Every step can be undone, so for one unit different things have different ranks.
#[inline(always)]
pub(crate) fn rank_of_halves(unit: u32, thing: u32) -> u32 {
    let mixed = (unit ^ thing).wrapping_mul(ODD as u32);
    (mixed ^ mixed >> 16).wrapping_mul((ODD >> 32) as u32)
}

/// The hash of the small unit whose hash has this upper half.
#[inline]
pub(crate) fn small_unit(upper: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(echo(upper))
}

/// The lower half of a small unit's hash, given the upper.
#[inline(always)]
fn echo(upper: u32) -> u32 {
    (u64::from(upper).wrapping_mul(ODD) >> 32) as u32
}

#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

/// Up to eight bytes as a word.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_key_is_another_order() {
        let [one, two] = [Secret::new([1, 2]), Secret::new([3, 4])];
        let order = |secret: &Secret| {
            let mut things: Vec<u64> = (0..20).collect();
            things.sort_by_key(|thing| rank(secret.unit(7), secret.thing(&thing.to_le_bytes())));
            things
        };
        assert_ne!(order(&one), order(&two));
    }

    /// The number with which `odd` makes 1.
    fn inverse(odd: u32) -> u32 {
        (0..5).fold(odd, |x, _| x.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(x))))
    }

    /// Undoes x ^ x >> by, for half the bits or nearly so.
    fn unshifted(x: u32, by: u32) -> u32 {
        x ^ x >> by ^ x.unbounded_shr(2 * by)
    }

    /// Units that are words go by their hash alone, so it must be possible to undo it.
    #[test]
    fn a_unit_can_be_told_from_its_hash() {
        let mut word = 1u64;
        for secret in [Secret::new([0, 0]), Secret::new([u64::MAX, 17]), Secret::new([5, u64::MAX << 40])] {
            for round in 0..1000 {
                word = word.wrapping_mul(ODD).wrapping_add(12345);
                let word = if round % 2 == 0 { word } else { word >> 32 };
                let hash = secret.unit(word);
                let upper = (hash >> 32) as u32;
                let high = hash as u32 ^ echo(upper);
                let spread = high.wrapping_mul((secret.second >> 32) as u32 | 1);
                let mixed = upper ^ (spread ^ spread >> 16).wrapping_mul(ODD as u32);
                let mixed = unshifted(mixed, 16).wrapping_mul(inverse((ODD >> 32) as u32));
                let mixed = unshifted(mixed, 15).wrapping_mul(inverse(ODD as u32));
                let mixed = unshifted(mixed ^ (secret.first >> 32) as u32, 16);
                let low = mixed.wrapping_mul(inverse(secret.second as u32 | 1)) ^ secret.first as u32;
                assert_eq!(u64::from(high) << 32 | u64::from(low), word);
                assert_eq!(hash == small_unit(upper), word >> 32 == 0);
            }
        }
    }

    #[test]
    fn a_thing_can_be_told_from_its_rank() {
        for (unit, thing) in [(0, 0), (7, u32::MAX), (u32::MAX, 1), (0x9E37_79B9, 0x1234_5678)] {
            let mixed = rank_of_halves(unit, thing).wrapping_mul(inverse((ODD >> 32) as u32));
            assert_eq!(unshifted(mixed, 16).wrapping_mul(inverse(ODD as u32)) ^ unit, thing);
        }
    }

    /// A fair hash gives each of 16 buckets 6250 ± 77 of 10⁵ consecutive numbers; six deviations are allowed.
    #[test]
    fn consecutive_numbers_spread_evenly_over_the_highest_and_the_lowest_bits() {
        let secret = Secret::new([0x1234_5678_9ABC_DEF0, 0x0FED_CBA9_8765_4321]);
        let mut counts = [[0i64; 16]; 8];
        for word in 0..100_000u64 {
            for (hash, counts) in
                [secret.word(word), secret.unit(word)].iter().zip(counts.chunks_exact_mut(3))
            {
                counts[0][(hash >> 60) as usize] += 1;
                counts[1][(hash & 15) as usize] += 1;
                counts[2][(rank(*hash, 99 << 32) >> 28) as usize] += 1;
            }
            // The upper halves of words, and the bits that tell the units of a shelf apart.
            counts[6][(secret.unit(word << 32) >> 60) as usize] += 1;
            counts[7][(secret.unit(word) >> 52) as usize & 15] += 1;
        }
        assert!(counts.iter().flatten().all(|count| (count - 6250).abs() < 462), "{counts:?}");
    }

    /// Tables look at the lowest bits: 5000 short names must not crowd there, whichever byte they differ in.
    #[test]
    fn short_strings_spread_evenly_over_the_lowest_bits() {
        for (secret, place) in
            [Secret::new([7, 11]), Secret::new([0, 0])].iter().flat_map(|s| (4..12).map(move |p| (s, p)))
        {
            let mut used = std::collections::BTreeSet::new();
            for name in 0..5000u32 {
                let mut view = [b'x'; 16];
                view[place..place + 4].copy_from_slice(format!("{name:04}").as_bytes());
                used.insert(secret.wide(u128::from_le_bytes(view)) & 0x1FFF);
            }
            // 8192 · (1 − e^(−5000/8192)) = 3743 ± 32 are expected.
            assert!((3500..4000).contains(&used.len()), "{} at {place}", used.len());
        }
    }

    #[test]
    fn bytes_of_different_lengths_differ() {
        let secret = Secret::new([5, 6]);
        assert_ne!(secret.bytes(b""), secret.bytes(b"\0"));
        assert_ne!(secret.bytes(b"\0\0\0\0\0\0\0\0"), secret.bytes(b"\0\0\0\0\0\0\0"));
    }
}
