//! How long a filter takes to admit one loss.
//!
//! ```text
//! $ cargo run --release -p demur-accounting --example admit
//! renyi      subsampled(0.01, gaussian(sigma=1))          …us first  …us
//! ```
//!
//! Each row has the median of one admission where the loss was seen before, and of the first one by a new filter, which prices it.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::time::Instant;

use demur_accounting::Filter;
use demur_core::PrivacyLoss;
use demur_exact::Rational;

type Fault = Box<dyn std::error::Error>;
type Maker<'a> = &'a dyn Fn() -> Result<Filter, Fault>;

const LOSSES: [&str; 6] = [
    "laplace(scale=100)",
    "gaussian(sigma=50)",
    "discrete_gaussian(sigma=50)",
    "pure(0.01)",
    "randomized_response(epsilon=0.01)",
    "subsampled(0.01, gaussian(sigma=5))",
];

fn main() -> Result<(), Fault> {
    let (epsilon, delta): (Rational, Rational) = ("1000".parse()?, "1e-6".parse()?);
    let makers: [(&str, Maker<'_>); 4] = [
        ("pure", &|| Ok(Filter::pure(epsilon.clone())?)),
        ("zcdp", &|| Ok(Filter::zcdp(epsilon.clone(), delta.clone())?)),
        ("gaussian", &|| Ok(Filter::gaussian(epsilon.clone(), delta.clone())?)),
        ("renyi", &|| Ok(Filter::renyi(epsilon.clone(), delta.clone())?)),
    ];
    for (name, make) in makers {
        for text in LOSSES {
            let loss: PrivacyLoss = text.parse()?;
            let filter = make()?;
            if filter.admit(&filter.start(), &loss).is_err() {
                println!("{name:10} {text:38} refused");
                continue;
            }
            let again = median(|| filter.admit(&filter.start(), &loss).is_ok());
            let mut fresh = vec![];
            for _ in 0..101 {
                let filter = make()?;
                let start = Instant::now();
                std::hint::black_box(filter.admit(&filter.start(), &loss).is_ok());
                fresh.push(start.elapsed().as_secs_f64() * 1e6);
            }
            fresh.sort_by(f64::total_cmp);
            println!("{name:10} {text:38} {again:6.2}us  first {:6.2}us", fresh[50]);
        }
    }
    Ok(())
}

/// In microseconds.
fn median(mut work: impl FnMut() -> bool) -> f64 {
    let mut times: Vec<f64> = (0..1001)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[500]
}
