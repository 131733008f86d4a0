//! opendp 0.16 by its public constructors; what can be built beforehand is.

use dashu::rational::RBig;
use opendp::domains::{AtomDomain, VectorDomain};
use opendp::measurements::{make_gaussian, make_laplace, make_noisy_max};
use opendp::measures::{MaxDivergence, ZeroConcentratedDivergence};
use opendp::metrics::{AbsoluteDistance, L1Distance, L2Distance, LInfDistance};
use opendp::traits::samplers::{sample_discrete_gaussian, sample_discrete_laplace};

use crate::{Function, Law};

/// One draw of whole-number noise: the sampler below every measurement.
pub fn draw(law: Law, scale: &RBig) -> dashu::integer::IBig {
    match law {
        Law::Laplace => sample_discrete_laplace(scale.clone()),
        Law::Gaussian => sample_discrete_gaussian(scale.clone()),
    }
    .expect("the operating system gives random bytes")
}

/// A measurement on vectors of whole numbers.
pub fn integers(law: Law, scale: f64) -> Function<Vec<i64>, Vec<i64>> {
    let domain = VectorDomain::new(AtomDomain::<i64>::default());
    match law {
        Law::Laplace => {
            let noise =
                make_laplace::<_, _, MaxDivergence>(domain, L1Distance::<i64>::default(), scale, None)
                    .expect("a legal scale");
            Box::new(move |answers| noise.invoke(answers).expect("finite input"))
        }
        Law::Gaussian => {
            let metric = L2Distance::<f64>::default();
            let noise = make_gaussian::<_, _, ZeroConcentratedDivergence>(domain, metric, scale, None)
                .expect("a legal scale");
            Box::new(move |answers| noise.invoke(answers).expect("finite input"))
        }
    }
}

/// A measurement on one whole number.
pub fn integer(law: Law, scale: f64) -> Function<i64, i64> {
    let domain = AtomDomain::<i64>::default();
    match law {
        Law::Laplace => {
            let metric = AbsoluteDistance::<i64>::default();
            let noise =
                make_laplace::<_, _, MaxDivergence>(domain, metric, scale, None).expect("a legal scale");
            Box::new(move |answer| noise.invoke(answer).expect("finite input"))
        }
        Law::Gaussian => {
            let metric = AbsoluteDistance::<f64>::default();
            let noise = make_gaussian::<_, _, ZeroConcentratedDivergence>(domain, metric, scale, None)
                .expect("a legal scale");
            Box::new(move |answer| noise.invoke(answer).expect("finite input"))
        }
    }
}

/// A measurement on vectors of doubles, on the grid 2^`grid` (its own choice: 2^−1074).
pub fn reals(law: Law, dimensions: usize, scale: f64, grid: Option<i32>) -> Function<Vec<f64>, Vec<f64>> {
    let domain = VectorDomain::new(AtomDomain::<f64>::new_non_nan()).with_size(dimensions);
    match law {
        Law::Laplace => {
            let noise =
                make_laplace::<_, _, MaxDivergence>(domain, L1Distance::<f64>::default(), scale, grid)
                    .expect("a legal scale");
            Box::new(move |answers| noise.invoke(answers).expect("finite input"))
        }
        Law::Gaussian => {
            let metric = L2Distance::<f64>::default();
            let noise = make_gaussian::<_, _, ZeroConcentratedDivergence>(domain, metric, scale, grid)
                .expect("a legal scale");
            Box::new(move |answers| noise.invoke(answers).expect("finite input"))
        }
    }
}

/// A choice by permute-and-flip.
pub fn permute_and_flip(scale: f64) -> impl Fn(&Vec<f64>) -> usize {
    let domain = VectorDomain::new(AtomDomain::<f64>::new_non_nan());
    let choice =
        make_noisy_max(domain, LInfDistance::default(), MaxDivergence, scale, false).expect("a legal scale");
    move |scores| choice.invoke(scores).expect("finite scores")
}

/// A choice by the exponential mechanism, which opendp draws by trying candidates
/// until one is accepted.
pub fn exponential(scale: f64) -> impl Fn(&Vec<f64>) -> usize {
    let domain = VectorDomain::new(AtomDomain::<f64>::new_non_nan());
    let choice = make_noisy_max(domain, LInfDistance::default(), ZeroConcentratedDivergence, scale, false)
        .expect("a legal scale");
    move |scores| choice.invoke(scores).expect("finite scores")
}
