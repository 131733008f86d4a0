//! [`Names`]: what the units of one shelf go by.
//!
//! **Definition.** Units that are words are named by their hash, which no other word has. Units that are strings are numbered on their shelf, and so is the
//! NULL unit, which is alone on its own.

use crate::hash::small_unit;

/// How many bits of a hash name the shelf.
pub(crate) const BITS: u32 = 8;

/// How many shelves there are beside that of the NULL unit.
pub(crate) const SHELVES: usize = 1 << BITS;

/// The hash of the NULL unit, of which nothing else is known.
pub(crate) const NULL: u64 = 0;

/// The shelf of a unit with this hash.
#[inline]
pub(crate) fn shelf_of(hash: u64) -> usize {
    (hash >> (64 - BITS)) as usize
}

/// The names of a shelf's units.
#[derive(Clone, Copy)]
pub(crate) enum Names<'a> {
    /// They are named by their hashes, which begin with the number of the shelf.
    Hashes { shelf: usize },
    /// They are numbered, and have these hashes.
    Numbers(&'a [u64]),
}

impl Names<'_> {
    /// The hash of a unit.
    #[inline]
    pub(crate) fn hash(&self, unit: u64) -> u64 {
        match self {
            Self::Hashes { .. } => unit,
            Self::Numbers(hashes) => hashes[unit as usize],
        }
    }

    /// The unit that has this short name: its number, or what its shelf leaves open of the upper half of a small unit's hash.
    #[inline]
    pub(crate) fn of_short(&self, name: u32) -> u64 {
        match self {
            Self::Hashes { shelf } => small_unit((*shelf as u32) << (32 - BITS) | name),
            Self::Numbers(_) => u64::from(name),
        }
    }

    /// How far a name must be moved to the left to begin with the bits in which names differ, given how many bits of a hash it has.
    pub(crate) fn shift(&self, bits: u32) -> u32 {
        match self {
            Self::Hashes { .. } => 64 - bits,
            Self::Numbers(hashes) => (hashes.len() as u64).leading_zeros().min(63),
        }
    }
}
