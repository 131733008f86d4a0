//! [`widest!`](macro@crate::widest): simple loops, compiled for each kind of registers, and run with the widest there are.

/// What a closure takes with it that is to be called once only.
#[doc(hidden)]
pub struct Once;

/// Runs simple loops with the widest registers there are. What they compute is the same in every bit.
///
/// ```
/// let (a, mut b) = ([1u64, 2, 3], [0; 3]);
/// demur_exact::widest!(for (a, b) in a.iter().zip(&mut b) {
///     *b = a * a;
/// });
/// assert_eq!(b, [1, 4, 9]);
/// ```
///
/// A macro, because a closure that is not inlined is compiled by itself, for the narrowest ones. And because it might be called through a function that calls it, which
/// need not be inlined, it is one that can be called only once: then there is none.
#[macro_export]
macro_rules! widest {
    ($work:expr) => {{
        let once = $crate::Once;
        $crate::pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let _consumed = once;
                $work
            },
        )
    }};
}
