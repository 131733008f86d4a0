//! [`Context`]: what must be known where units meet their rows.

use crate::error::TallyError;
use crate::groups::Things;
use crate::hash::{Secret, rank};
use crate::keep::{Ranked, keep_smallest};
use crate::layout::{Layout, Pick};
use crate::store::Store;

/// The query, and the hashes of all groups and values met so far.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) secret: &'a Secret,
    pub(crate) layout: &'a Layout,
    pub(crate) groups_per_unit: usize,
    pub(crate) groups: &'a Things,
    pub(crate) group_hashes: &'a [u64],
    /// Whether no unit gives two groups the same rank, as far as that is known.
    pub(crate) ranks_differ: bool,
    pub(crate) domains: &'a [Things],
    pub(crate) value_hashes: &'a [Vec<u64>],
    /// Where rows wait.
    pub(crate) store: &'a Store,
}

impl Context<'_> {
    /// Where a group stands among those of a unit with this hash.
    #[inline]
    pub(crate) fn rank(&self, unit: u64, group: u32) -> u32 {
        rank(unit, self.group_hashes[group as usize])
    }

    /// Leaves the values that a unit with this hash brings, each once.
    pub(crate) fn pick(&self, values: &mut Vec<u32>, unit: u64, pick: &Pick) -> Result<(), TallyError> {
        values.sort_unstable();
        values.dedup();
        let most = usize::try_from(pick.most).unwrap_or(usize::MAX);
        if values.len() > most {
            let hashes = &self.value_hashes[pick.domain];
            let ranked = |&value: &u32| (rank(unit, hashes[value as usize]), value, 0);
            let mut things: Vec<Ranked> = values.iter().map(ranked).collect();
            keep_smallest(&mut things, most, &self.domains[pick.domain])?;
            values.clear();
            values.extend(things.iter().map(|thing| thing.1));
        }
        Ok(())
    }
}
