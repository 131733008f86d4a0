//! The privacy loss as a random variable: how likely each value is.

use demur_accounting::Account;
use demur_core::PrivacyLoss;

use super::subject;
use crate::failure::Failure;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};
use crate::words::up;

const CELLS: usize = 80;

pub(crate) fn chart(loss: &PrivacyLoss) -> Result<Chart<'static>, Failure> {
    let account = Account::of(loss)?;
    let cells = account.loss_histogram(CELLS)?;
    let infinite = account.infinite_loss();
    let words = match infinite > 0.0 {
        true => format!("Privacy loss (infinite with probability {})", up(infinite, 3)),
        false => "Privacy loss".to_owned(),
    };
    Ok(Chart {
        title: words,
        subject: subject(loss),
        x: Axis::linear("privacy loss, a person removed"),
        y: Axis::linear("probability of a cell"),
        curves: vec![Curve {
            name: "P[loss]",
            color: INKS[0],
            stroke: Stroke::Cells,
            points: outline(&cells),
        }],
    })
}

/// The left edge of every cell with its probability, and the end of the last.
fn outline(cells: &[(f64, f64, f64)]) -> Vec<(f64, f64)> {
    let starts = cells.first().map(|(left, ..)| (*left, 0.0)).into_iter();
    let cells_and_end = cells.iter().map(|(left, _, probability)| (*left, *probability));
    let end = cells.last().map(|(_, right, _)| (*right, 0.0)).into_iter();
    starts.chain(cells_and_end).chain(end).collect()
}
