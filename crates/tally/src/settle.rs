//! [`Settlers`]: the rows of some units become entries of the few groups that each of them keeps.
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
use crate::entries::{Chosen, Entries, Unit};
use crate::error::TallyError;
use crate::layout::Layout;
use crate::names::Names;
use crate::record::{Full, Head, Rows, Slim};
use crate::waiting::Waiting;
use crate::wide::{Number, fits};

/// A bucket has about this many rows.
const FEW: usize = 4;

/// So many entries are added up at a time.
const MANY: usize = 1 << 10;

/// Whoever takes settled units, in their order, some at a time.
pub(crate) trait Take {
    /// Takes units with their entries.
    fn take<N: Number>(
        &mut self,
        units: &[Unit],
        entries: &Entries<N>,
        context: &Context,
    ) -> Result<(), TallyError>;
}

/// Settles one shelf after the other: a settler for each kind of head and of sum.
pub(crate) struct Settlers {
    slim: (Settler<Slim, i64>, Settler<Slim, i128>),
    full: (Settler<Full, i64>, Settler<Full, i128>),
}

impl Settlers {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            slim: (Settler::new(layout), Settler::new(layout)),
            full: (Settler::new(layout), Settler::new(layout)),
        }
    }

    /// Hands out all units of a shelf that has got so many rows in all.
    pub(crate) fn settle(
        &mut self,
        (waiting, rows): (&mut Waiting, u64),
        archive: &Archive,
        names: Names,
        context: &Context,
        take: &mut impl Take,
    ) -> Result<(), TallyError> {
        let narrow = fits(rows, context.layout.reach);
        if waiting.full.is_empty() {
            let Self { slim: (one, other), .. } = self;
            match narrow {
                true => one.settle(&waiting.slim, archive, names, context, take),
                false => other.settle(&waiting.slim, archive, names, context, take),
            }
        } else {
            waiting.widen(names, &context.layout.packing);
            let Self { full: (one, other), .. } = self;
            match narrow {
                true => one.settle(&waiting.full, archive, names, context, take),
                false => other.settle(&waiting.full, archive, names, context, take),
            }
        }
    }
}

/// Settles rows with heads of one kind; its sums are numbers of one kind.
struct Settler<H, N> {
    /// Where each bucket ends.
    ends: Vec<u32>,
    rows: Rows<H>,
    bucket: Bucket,
    chosen: Chosen,
    earlier: Entries<N>,
    entries: Entries<N>,
}

impl<H: Head, N: Number> Settler<H, N> {
    fn new(layout: &Layout) -> Self {
        Self {
            ends: Vec::new(),
            rows: Rows::with_capacity(0, &layout.packing),
            bucket: Bucket::new(),
            chosen: Chosen { by_parts: layout.by_parts || !N::NARROW, ..Chosen::default() },
            earlier: Entries::new(layout),
            entries: Entries::new(layout),
        }
    }

    fn settle(
        &mut self,
        blocks: &[Rows<H>],
        archive: &Archive,
        names: Names,
        context: &Context,
        take: &mut impl Take,
    ) -> Result<(), TallyError> {
        let rows: usize = blocks.iter().map(Rows::len).sum();
        let bits = (rows / FEW).max(2).ilog2();
        let common = names.common();
        let bucket_of = |unit: u64| (unit << common >> (64 - bits)) as usize;
        self.deal(blocks, 1 << bits, |head| bucket_of(head.unit(names)), context.layout);
        let packing = &context.layout.packing;
        let mut archive = archive.read();
        let [mut first, mut start] = [0; 2];
        for bucket in 0..1 << bits {
            let end = self.ends[bucket] as usize;
            let heads = &self.rows.heads[start..end];
            let row = |place: usize| Item {
                unit: heads[place].unit(names),
                group: heads[place].group(packing),
                sums: packing.sums(heads[place].value(packing)),
            };
            let place = (names, common + bits);
            if archive.unit().is_some_and(|unit| bucket_of(unit) == bucket) {
                self.bucket.items.clear();
                self.bucket.items.extend((0..heads.len()).map(row));
                while let Some(unit) = archive.unit().filter(|&unit| bucket_of(unit) == bucket) {
                    let known = self.earlier.groups.len();
                    archive.take(&mut self.earlier);
                    let earlier = &self.earlier;
                    self.bucket.items.extend((known..earlier.groups.len()).map(|entry| Item {
                        unit,
                        group: earlier.groups[entry],
                        sums: earlier.sums(entry, context.layout),
                    }));
                }
                self.bucket.choose(heads.len(), place, context, &mut self.chosen)?;
            } else if !heads.is_empty() {
                self.bucket.choose_of_rows(heads.len(), row, place, context, &mut self.chosen)?;
            }
            start = end;
            if self.chosen.entries.len() >= MANY {
                self.hand_out(first, names, context, take)?;
                first = end;
            }
        }
        self.hand_out(first, names, context, take)
    }

    /// Puts the rows of each bucket together.
    fn deal(&mut self, blocks: &[Rows<H>], buckets: usize, bucket_of: impl Fn(H) -> usize, layout: &Layout) {
        let ends = &mut self.ends;
        ends.clear();
        ends.resize(buckets, 0);
        for &head in blocks.iter().flat_map(|block| &block.heads) {
            ends[bucket_of(head)] += 1;
        }
        let mut start = 0;
        for end in &mut *ends {
            start += std::mem::replace(end, start);
        }
        // Each starts where the one before ends, and moves on to its own end.
        self.rows.rearrange(blocks, &layout.packing, |head| {
            let end = &mut ends[bucket_of(head)];
            *end += 1;
            *end - 1
        });
    }

    /// Hands out what was chosen of the rows from the first on.
    fn hand_out(
        &mut self,
        first: usize,
        names: Names,
        context: &Context,
        take: &mut impl Take,
    ) -> Result<(), TallyError> {
        self.entries.add_up(&self.chosen, (&self.rows, first), &self.earlier, names, context)?;
        take.take(&self.chosen.units, &self.entries, context)?;
        self.chosen.clear();
        self.earlier.clear();
        Ok(())
    }
}
