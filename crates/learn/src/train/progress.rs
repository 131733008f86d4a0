//! [`Progress`]: how far a training is; whoever is told may stop it.

use std::ops::ControlFlow;

use super::checkpoint::Checkpoint;
use crate::LearnError;

/// What is said after each step.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// How many steps are done.
    pub step: u64,
    /// How many there will be.
    pub steps: u64,
    /// Where the training stands. All of it is paid for. Who wants to be able to go on after a crash stores it *before* showing anything that was computed
    /// from it: steps that are made again must not have been seen.
    pub checkpoint: &'a Checkpoint,
}

/// Hears of progress; [`ControlFlow::Break`] stops the training. The charge stands, and nothing is released.
pub type Watch<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'a;

/// Tells, and stops when told so.
pub(crate) fn tell(watch: &mut Watch<'_>, progress: &Progress<'_>) -> Result<(), LearnError> {
    match watch(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let text = "the training was stopped; what was charged stays charged, and it can go on from its last checkpoint";
            Err(LearnError::new("learn.stopped", text))
        }
    }
}
