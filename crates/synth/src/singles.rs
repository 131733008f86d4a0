//! The first look of every method: each column alone.

use demur_exact::Rational;
use demur_noise::Words;

use crate::compression::Compression;
use crate::curator::{Curator, Noise};
use crate::evidence::{Evidence, Observation};
use crate::progress::{Progress, Watch, tell};
use crate::{ColumnSet, Columns, SynthError, Zeros};

/// Measures every column alone and groups rare values.
pub(crate) fn singles<W: Words>(
    columns: &Columns,
    zeros: &Zeros,
    curator: &mut Curator<'_, W>,
    noise: &Noise,
    watch: &mut Watch<'_>,
) -> Result<(Compression, Evidence), SynthError> {
    let mut seen = vec![];
    for place in 0..columns.len() {
        let set = ColumnSet::new([place]);
        let counts = curator.measure(&set, noise)?;
        let precisions = vec![1.0 / noise.variance(); counts.len()];
        seen.push(Observation { set: set.clone(), counts, precisions });
        let progress = Progress {
            stage: "measuring columns",
            step: place + 1,
            steps: Some(columns.len()),
            spent: 0.0,
            set: Some(set),
            expected_error: None,
        };
        tell(watch, progress)?;
    }
    let compression = Compression::new(columns, &seen, &zeros.columns());
    curator.rename(columns.resized(&compression.sizes), &compression.maps);
    let mut evidence = Evidence::default();
    for one in &seen {
        evidence.add_observation(compression.observation(one));
    }
    Ok((compression, evidence))
}

/// The shortest decimal of a double, exactly.
pub(crate) fn decimal(value: f64) -> Rational {
    format!("{value:?}").parse().unwrap_or_else(|_| Rational::one())
}
