//! [`Waiting`]: the rows of a shelf that have not been settled.

use std::collections::VecDeque;

use crate::context::Context;
use crate::error::TallyError;
use crate::names::Names;
use crate::record::{Full, Head, Rows, SHORT_NAMES, Slim};
use crate::store::Kept;

/// Blocks of rows, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    blocks: VecDeque<Block>,
    rows: usize,
}

/// Some rows that are kept somewhere.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kept: Kept,
    pub(crate) rows: usize,
    pub(crate) is_slim: bool,
}

/// Rows that wait no longer: all of them slim, or all of them full.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) slim: Rows<Slim>,
    pub(crate) full: Rows<Full>,
    buffer: Vec<u8>,
}

impl Waiting {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn add(&mut self, block: Block) {
        self.rows += block.rows;
        self.blocks.push_back(block);
    }

    /// Takes the first blocks, until there are so many rows or none are left.
    pub(crate) fn take(
        &mut self,
        most: usize,
        names: Names,
        context: &Context,
        taken: &mut Taken,
    ) -> Result<(), TallyError> {
        let Taken { slim, full, buffer } = taken;
        slim.clear();
        full.clear();
        while slim.len() + full.len() < most
            && let Some(Block { kept, rows, is_slim }) = self.blocks.pop_front()
        {
            self.rows -= rows;
            context.store.take(kept, buffer, |bytes| match is_slim {
                true => slim.read(bytes, rows),
                false => full.read(bytes, rows),
            })?;
        }
        if full.len() > 0 {
            full.append(slim, |head| Full::of(head, names, context.layout.packing.shares));
            slim.clear();
        }
        Ok(())
    }
}

/// A head whose rows have a place among those that wait.
pub(crate) trait Waits: Head {
    const IS_SLIM: bool;

    /// No unit with a number this great has a name here.
    const NUMBERS: usize;
}

impl Waits for Slim {
    const IS_SLIM: bool = true;

    const NUMBERS: usize = SHORT_NAMES;
}

impl Waits for Full {
    const IS_SLIM: bool = false;

    const NUMBERS: usize = u32::MAX as usize;
}
