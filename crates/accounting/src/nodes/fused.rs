//! Loops compiled for the widest vectors of the machine they run on.

use pulp::{Arch, Simd, WithSimd};

/// a·b + c, rounded once where the machine can do that fast, else twice; every bound here allows for both.
#[inline(always)]
pub(super) fn fused<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// A loop to be run with, or without, fused products.
pub(super) trait Loop {
    type Output;
    /// Must be inlined, to be compiled for the machine.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

/// Runs a loop as fast as this machine can.
pub(super) fn run<L: Loop>(repeated: L) -> L::Output {
    Arch::new().dispatch(Chosen(repeated))
}

struct Chosen<L>(L);

impl<L: Loop> WithSimd for Chosen<L> {
    type Output = L::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> L::Output {
        if S::IS_SCALAR { self.0.run::<false>() } else { self.0.run::<true>() }
    }
}
