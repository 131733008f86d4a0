//! [`Progress`]: how far a run is; whoever is told may stop it.

use std::ops::ControlFlow;

use crate::SynthError;

/// What is said after each step of a run. All of it is public.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// How many steps of the stage are done.
    pub step: usize,
    /// How many there will be, where that is known.
    pub steps: Option<usize>,
    /// How much of the charged loss has been used, from 0 to 1.
    pub spent: f64,
    /// The set that was measured last, if any.
    pub set: Option<crate::ColumnSet>,
    /// About how far a measured marginal is from the truth by its noise, as a share of all rows, where that is known.
    pub expected_error: Option<f64>,
}

/// Hears of progress; [`ControlFlow::Break`] stops the run. The charge stands, and nothing is released.
pub type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Tells, and stops when told so.
pub(crate) fn tell(watch: &mut Watch<'_>, progress: Progress) -> Result<(), SynthError> {
    match watch(&progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let text = "the run was stopped; what was charged stays charged, and nothing was released";
            Err(SynthError::new("synth.stopped", text))
        }
    }
}
