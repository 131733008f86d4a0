//! [`widest`]: simple loops, compiled for each kind of registers, and run with the widest there are. What they compute is the same in every bit.

/// What a closure takes with it that is to be called once only.
pub(crate) struct Once;

/// Runs simple loops with the widest registers there are.
///
/// A macro, because a closure that is not inlined is compiled by itself, for the narrowest ones. And because it might be called through a function that calls it, which
/// need not be inlined, it is one that can be called only once: then there is none.
macro_rules! widest {
    ($work:expr) => {{
        let once = $crate::widest::Once;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let _consumed = once;
                $work
            },
        )
    }};
}
pub(crate) use widest;
