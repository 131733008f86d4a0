//! [`Reader`]: what a feed reads of each row.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::DataType;

use crate::column::{kind, plain};
use crate::error::TallyError;
use crate::groups::{Finder, Things};
use crate::layout::{Layout, Source};
use crate::shared::Shared;
use crate::spec::Spec;
use crate::steps::{ABSENT, Cells, steps_into, strike_absent, there_into};

/// Groups and sources of the rows of one batch after the other.
pub(crate) struct Reader {
    keys: Option<Finder>,
    domains: Vec<Finder>,
    /// The shared number of each row's group.
    pub(crate) groups: Vec<u32>,
    /// For each source one word per row.
    pub(crate) sources: Vec<Vec<i64>>,
    found: Vec<u32>,
}

impl Reader {
    pub(crate) fn new(shared: &Shared) -> Result<Self, TallyError> {
        let finder = |types: &[DataType]| {
            let kinds: Option<Vec<_>> = types.iter().map(kind).collect();
            Finder::new(
                types,
                &kinds.ok_or_else(|| TallyError::ours("a type was not checked"))?,
                shared.secret,
            )
        };
        let keys = &shared.types[shared.spec.key_columns()];
        let domains = shared.layout.domains.iter();
        Ok(Self {
            keys: if keys.is_empty() { None } else { Some(finder(keys)?) },
            domains: domains
                .map(|&input| finder(&shared.types[shared.spec.input_column(input)..][..1]))
                .collect::<Result<_, _>>()?,
            groups: Vec::new(),
            sources: vec![Vec::new(); shared.layout.sources.len()],
            found: Vec::new(),
        })
    }

    /// Reads a batch whose types have been checked.
    pub(crate) fn read(&mut self, batch: &RecordBatch, shared: &Shared) -> Result<(), TallyError> {
        match &mut self.keys {
            Some(keys) => {
                keys.find(&batch.columns()[shared.spec.key_columns()], &shared.groups, &mut self.groups)?
            }
            None => {
                self.groups.clear();
                self.groups.resize(batch.num_rows(), 0);
            }
        }
        let Layout { sources, .. } = &shared.layout;
        for (at, source) in sources.iter().enumerate() {
            let column = batch.column(column_of(&shared.spec, source));
            self.read_source(at, source, column, &shared.domains)?;
        }
        Ok(())
    }

    fn read_source(
        &mut self,
        at: usize,
        source: &Source,
        column: &ArrayRef,
        domains: &[Things],
    ) -> Result<(), TallyError> {
        let words = &mut self.sources[at];
        match *source {
            Source::Steps { step, row, .. } => steps_into(column, step, row, words),
            Source::There { .. } => there_into(column, words),
            Source::Cell { step, row, cells, .. } => {
                steps_into(column, step, row, words)?;
                let cells = Cells::new(row, cells);
                for word in words.iter_mut() {
                    *word = if *word == ABSENT { ABSENT } else { cells.cell(*word) };
                }
                Ok(())
            }
            Source::Value { domain, .. } => {
                let column = plain(column)?;
                self.domains[domain].find(
                    std::slice::from_ref(&column),
                    &domains[domain],
                    &mut self.found,
                )?;
                words.clear();
                words.extend(self.found.iter().map(|&number| i64::from(number)));
                strike_absent(&column, words);
                Ok(())
            }
        }
    }
}

fn column_of(spec: &Spec, source: &Source) -> usize {
    let (Source::Steps { input, .. }
    | Source::There { input }
    | Source::Cell { input, .. }
    | Source::Value { input, .. }) = *source;
    spec.input_column(input)
}
