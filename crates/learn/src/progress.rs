//! [`Progress`]: how far a run is; whoever is told may stop it.

use std::ops::ControlFlow;

use crate::LearnError;

/// What is said after each step of a run. All of it is public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What was done.
    pub stage: &'static str,
    /// How many steps of the run are done.
    pub step: usize,
    /// How many there will be, where that is known.
    pub steps: Option<usize>,
}

/// Hears of progress; [`ControlFlow::Break`] stops the run. The charge stands, and nothing is released.
pub type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Tells, and stops when told so.
pub(crate) fn tell(watch: &mut Watch<'_>, progress: Progress) -> Result<(), LearnError> {
    match watch(&progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let text = "the run was stopped; what was charged stays charged, and nothing was released";
            Err(LearnError::new("learn.stopped", text))
        }
    }
}
