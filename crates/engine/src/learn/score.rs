//! [`Score`]: how good a model is on rows that are public.
//!
//! A score on private rows would be a release of its own; nothing here computes one.

use demur_learn::train::Targets;

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Rows that have a declared label.
    pub rows: usize,
    /// For classes the mean of −ln(probability of the right one), for numbers the root of the mean squared error.
    pub loss: f64,
    /// The part of classes that were told rightly.
    pub right: Option<f64>,
    /// For two classes: the probability that a row of the second gets a higher probability of it than a row of the first.
    pub auc: Option<f64>,
}

impl Score {
    /// Of what a model says, row by row; `unit` is what 1 stands for in a number.
    pub(crate) fn of(said: &[f32], outputs: usize, targets: &Targets, unit: f64) -> Self {
        match targets {
            Targets::Classes(labels) => Self::of_classes(said, outputs, labels),
            Targets::Numbers(numbers) => {
                let known = said.iter().zip(numbers).filter(|(_, number)| !number.is_nan());
                let errors: Vec<f64> = known.map(|(said, number)| f64::from(said - number) * unit).collect();
                let mean = errors.iter().map(|error| error * error).sum::<f64>() / errors.len().max(1) as f64;
                Self { rows: errors.len(), loss: mean.sqrt(), right: None, auc: None }
            }
        }
    }

    fn of_classes(said: &[f32], outputs: usize, labels: &[u32]) -> Self {
        let known = said.chunks(outputs).zip(labels.iter().map(|&label| label as usize));
        let known: Vec<(&[f32], usize)> = known.filter(|(_, label)| *label < outputs).collect();
        let rows = known.len().max(1) as f64;
        // A probability of 0 in single precision is below 10⁻³⁸.
        let loss = |(said, label): &(&[f32], usize)| -f64::from(said[*label].max(f32::MIN_POSITIVE)).ln();
        let right = |(said, label): &&(&[f32], usize)| said.iter().all(|other| *other <= said[*label]);
        Self {
            rows: known.len(),
            loss: known.iter().map(loss).sum::<f64>() / rows,
            right: Some(known.iter().filter(right).count() as f64 / rows),
            auc: (outputs == 2).then(|| auc(&known)),
        }
    }
}

/// By ranks; ties count half.
fn auc(known: &[(&[f32], usize)]) -> f64 {
    let mut ranked: Vec<(f32, usize)> = known.iter().map(|(said, label)| (said[1], *label)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut wins) = (0.0, 0.0);
    for ties in ranked.chunk_by(|a, b| a.0 == b.0) {
        let ones = ties.iter().filter(|(_, label)| *label == 1).count() as f64;
        let zeros = ties.len() as f64 - ones;
        wins += ones * (below + zeros / 2.0);
        below += zeros;
    }
    let pairs = below * (ranked.len() as f64 - below);
    if pairs > 0.0 { wins / pairs } else { 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_definitions() {
        let said = [0.9, 0.1, 0.4, 0.6, 0.4, 0.6, 0.2, 0.8, 0.0, 1.0];
        let score = Score::of(&said, 2, &Targets::Classes(vec![0, 0, 1, 1, 7]), 1.0);
        assert_eq!((score.rows, score.right, score.auc), (4, Some(0.75), Some(3.5 / 4.0)));
        let expected = -(0.9f64.ln() + 0.4f64.ln() + 0.6f64.ln() + 0.8f64.ln()) / 4.0;
        assert!((score.loss - expected).abs() < 1e-6);
        let score = Score::of(&[0.5, -0.5, 0.0], 1, &Targets::Numbers(vec![0.0, 0.0, f32::NAN]), 10.0);
        assert_eq!((score.rows, score.loss, score.right, score.auc), (2, 5.0, None, None));
        let nobody = Score::of(&[], 2, &Targets::Classes(vec![]), 1.0);
        assert_eq!((nobody.rows, nobody.loss, nobody.auc), (0, 0.0, Some(0.5)));
    }
}
