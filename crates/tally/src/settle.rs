//! [`Settler`]: the rows of some units become entries of the few groups that each of them keeps.
//!
//! **Definition.** Rows are dealt into buckets by the first bits of their unit, so that a bucket holds all rows of a few units. Each bucket is sorted by unit, rank and
//! group (see [`bucket`](crate::bucket)): now the rows of a unit lie together, its groups in the order in which they are kept, and the rows of each group
//! together. What earlier rows came to is sorted among them.
//!
//! **Guarantee.** A unit *keeps* the k = `groups_per_unit` smallest of its groups by (rank, bytes), see [`keep`](crate::keep). A group that is not among the k smallest so far will not be
//! among them later, so what is dropped is dropped for good, and a group that is kept in the end was never dropped.
//!
//! **Why.** Nothing is sought in memory: rows are written once to their bucket, which is then in the nearest cache. However units and groups are distributed,
//! n rows take at most n · log n comparisons.

use crate::archive::Archive;
use crate::bucket::{Bucket, Item};
use crate::context::Context;
use crate::entries::{EARLIER, Entries, Parts, Unit};
use crate::error::TallyError;
use crate::layout::Layout;
use crate::record::{Head, Rows};

/// A bucket has about this many rows.
const FEW: usize = 4;

/// So many entries are added up at a time.
const MANY: usize = 1 << 10;

/// Settles one shelf after the other.
pub(crate) struct Settler {
    /// Where each bucket ends.
    ends: Vec<u32>,
    rows: Rows,
    bucket: Bucket,
    parts: Parts,
    earlier: Entries,
    entries: Entries,
}

/// How units are named on a shelf.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The hashes of units that are numbered; others are named by their hash.
    pub(crate) hashes: Option<&'a [u64]>,
    /// How many of the first bits are the same in all names.
    pub(crate) common: u32,
}

impl Names<'_> {
    #[inline]
    pub(crate) fn hash(&self, unit: u64) -> u64 {
        self.hashes.map_or(unit, |hashes| hashes[unit as usize])
    }
}

impl Settler {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            ends: Vec::new(),
            rows: Rows::default(),
            bucket: Bucket::new(),
            parts: Parts::default(),
            earlier: Entries::new(layout),
            entries: Entries::new(layout),
        }
    }

    /// Hands out all units of a shelf in their order, some at a time, with their entries.
    pub(crate) fn settle(
        &mut self,
        blocks: &[Rows],
        archive: &Archive,
        names: Names,
        context: &Context,
        mut take: impl FnMut(&[Unit], &Entries) -> Result<(), TallyError>,
    ) -> Result<(), TallyError> {
        let rows: usize = blocks.iter().map(Rows::len).sum();
        let bits = (rows / FEW).max(2).ilog2();
        let bucket_of = |unit: u64| (unit << names.common >> (64 - bits)) as usize;
        self.deal(blocks, 1 << bits, bucket_of, context.layout);
        let mut archive = archive.read();
        for bucket in 0..1 << bits {
            let start = if bucket == 0 { 0 } else { self.ends[bucket - 1] };
            self.bucket.items.clear();
            self.bucket.items.extend((start..self.ends[bucket]).map(|place| {
                let Head { unit, group, .. } = self.rows.heads[place as usize];
                Item { unit, rank: context.rank(names.hash(unit), group), group, place }
            }));
            while let Some(unit) = archive.unit().filter(|&unit| bucket_of(unit) == bucket) {
                let first = self.earlier.groups.len();
                archive.take(&mut self.earlier);
                for (place, &group) in self.earlier.groups.iter().enumerate().skip(first) {
                    let rank = context.rank(names.hash(unit), group);
                    self.bucket.items.push(Item { unit, rank, group, place: place as u32 | EARLIER });
                }
            }
            if self.bucket.items.is_empty() {
                continue;
            }
            self.bucket.choose(names.common + bits, context, &mut self.parts)?;
            if self.parts.groups.len() >= MANY {
                self.hand_out(names, context, &mut take)?;
            }
        }
        self.hand_out(names, context, &mut take)
    }

    /// Puts the rows of each bucket together.
    fn deal(&mut self, blocks: &[Rows], buckets: usize, bucket_of: impl Fn(u64) -> usize, layout: &Layout) {
        let ends = &mut self.ends;
        ends.clear();
        ends.resize(buckets, 0);
        for head in blocks.iter().flat_map(|block| &block.heads) {
            ends[bucket_of(head.unit)] += 1;
        }
        let mut start = 0;
        for end in &mut *ends {
            start += std::mem::replace(end, start);
        }
        // Each starts where the one before ends, and moves on to its own end.
        self.rows.rearrange(blocks, &layout.packing, |unit| {
            let end = &mut ends[bucket_of(unit)];
            *end += 1;
            *end - 1
        });
    }

    fn hand_out(
        &mut self,
        names: Names,
        context: &Context,
        take: &mut impl FnMut(&[Unit], &Entries) -> Result<(), TallyError>,
    ) -> Result<(), TallyError> {
        self.entries.add_up(&self.parts, &self.rows, &self.earlier, names, context)?;
        take(&self.parts.units, &self.entries)?;
        self.parts.clear();
        self.earlier.clear();
        Ok(())
    }
}
