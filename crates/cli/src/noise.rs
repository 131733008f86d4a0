//! `demur noise`: exact noise for numbers, choices and answers.

mod additive;
mod compare;
mod exponential;
mod numbers;
mod published;
mod response;

use std::io::Write;

pub(crate) use numbers::open;

use crate::args::Noise;
use crate::failure::Failure;

pub(crate) fn run(command: Noise, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Noise::Laplace(args) => additive::laplace(&args, out),
        Noise::Gaussian(args) => additive::gaussian(&args, out),
        Noise::TruncatedLaplace(args) => additive::truncated_laplace(&args, out),
        Noise::RandomizedResponse(args) => response::perturb(&args, out),
        Noise::Estimate(args) => response::estimate(&args, out),
        Noise::Exponential(args) => exponential::choose(&args, out),
        Noise::Compare(args) => compare::compare(&args, out),
    }
}
