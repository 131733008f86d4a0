//! The least noise with which a list of fixed uses has a guarantee.

use demur_accounting::Account;
use demur_accounting::calibrate::{Target, calibrate_mixture};
use demur_core::{Guarantee, PrivacyLoss};

use crate::SynthError;

/// The least factor by which all noise must grow, and the loss of exactly that noise.
///
/// Noise is drawn in steps whose size depends on how much noise there is, and the accountant wants to know the steps. So the factor is found for
/// continuous noise first; then `exact` says what is drawn with a factor, and the factor grows by millionths until that has the guarantee.
pub(crate) fn least_noise<T>(
    continuous: &PrivacyLoss,
    guarantee: Guarantee,
    exact: impl Fn(f64) -> (T, PrivacyLoss),
) -> Result<(T, PrivacyLoss), SynthError> {
    let target = Target { epsilon: guarantee.epsilon.exact(), delta: guarantee.delta.exact() };
    let factor = calibrate_mixture(continuous, &target)?.value;
    let mut extra = 0.0;
    for _ in 0..40 {
        let (drawn, loss) = exact(factor * (1.0 + extra));
        let delta = Account::of(&loss)?.delta(&target.epsilon)?.bounds.upper;
        if delta <= target.delta.to_f64_down() {
            return Ok((drawn, loss));
        }
        extra = 2.0 * extra + 1e-6;
    }
    Err(SynthError::new(
        "synth.plan.guarantee",
        format!("no noise was found that gives {guarantee}; allow a larger ε or δ"),
    ))
}
