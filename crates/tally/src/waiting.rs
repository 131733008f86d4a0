//! [`Waiting`]: the rows of a shelf that have not been settled.

use crate::names::Names;
use crate::record::{Full, Head, Packing, Rows, Slim};

/// Blocks of rows.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) slim: Vec<Rows<Slim>>,
    pub(crate) full: Vec<Rows<Full>>,
}

impl Waiting {
    /// How much memory they take.
    pub(crate) fn size(&self) -> usize {
        self.slim.iter().map(Rows::size).sum::<usize>() + self.full.iter().map(Rows::size).sum::<usize>()
    }

    /// Gives all rows full heads.
    pub(crate) fn widen(&mut self, names: Names, packing: &Packing) {
        let slim = std::mem::take(&mut self.slim).into_iter();
        self.full.extend(slim.map(|block| block.widen(names, packing)));
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A head whose rows have a place among those that wait.
pub(crate) trait Waits: Head {
    /// Puts a block where others of its kind are.
    fn wait(block: Rows<Self>, waiting: &mut Waiting);

    /// No unit with a number this great has a name here.
    const NUMBERS: usize;
}

impl Waits for Slim {
    fn wait(block: Rows<Self>, waiting: &mut Waiting) {
        waiting.slim.push(block);
    }

    const NUMBERS: usize = crate::record::SHORT_NAMES;
}

impl Waits for Full {
    fn wait(block: Rows<Self>, waiting: &mut Waiting) {
        waiting.full.push(block);
    }

    const NUMBERS: usize = u32::MAX as usize;
}
