//! δ(ε) of one use, in closed form.
use super::Law;
pub(crate) fn profile(_law: &Law, _epsilon: f64) -> f64 { 0.0 }
pub(crate) fn normal_tail(_x: f64) -> f64 { 0.0 }
