//! Seeded draws, pinned: a changed law, or another order of words, is noticed.
//!
//! A change here is a change of every sampler's output for the same randomness. It is no
//! privacy matter by itself, but it must be meant.

use demur_core::Epsilon;
use demur_noise::{
    Bernoulli, DiscreteGaussian, DiscreteLaplace, Probability, RandomizedResponse, Selection,
    TruncatedDiscreteLaplace, UnaryEncoding, Words,
};
use demur_testkit::Seeded;

fn draws(sample: impl Fn(&mut Seeded) -> i128) -> Vec<i128> {
    let mut words = Seeded::new(1854);
    (0..12).map(|_| sample(&mut words)).collect()
}

#[test]
fn pinned_draws() {
    let laplace = |scale: &str| DiscreteLaplace::new(scale.parse().unwrap()).unwrap();
    let gaussian = |variance: &str| DiscreteGaussian::new(variance.parse().unwrap()).unwrap();
    let truncated =
        |scale: &str, bound| TruncatedDiscreteLaplace::new(scale.parse().unwrap(), bound).unwrap();
    let epsilon = Epsilon::new(1.0).unwrap();
    let coin = Bernoulli::new(Probability::exp_neg("1/3".parse().unwrap()).unwrap());
    let choice = Selection::new(&[5, 3, 9, 9, 0], "1/2".parse().unwrap()).unwrap();
    let response = RandomizedResponse::new(7, epsilon).unwrap();
    let unary = UnaryEncoding::new(40, epsilon).unwrap();
    let bits = |report: Vec<bool>| report.iter().fold(0i128, |sum, &bit| sum << 1 | i128::from(bit));

    let pinned: Vec<(&str, Vec<i128>)> = vec![
        ("words", draws(|w| w.word().into())),
        ("laplace 1/100", draws(|w| laplace("1/100").sample(w))),
        ("laplace 10", draws(|w| laplace("10").sample(w))),
        ("laplace 2^20", draws(|w| laplace("1048576").sample(w))),
        ("laplace 2^60", draws(|w| laplace("1152921504606846976").sample(w))),
        ("gaussian 1/4", draws(|w| gaussian("1/4").sample(w))),
        ("gaussian 100", draws(|w| gaussian("100").sample(w))),
        ("gaussian 10^12", draws(|w| gaussian("1000000000000").sample(w))),
        ("truncated 5, 20", draws(|w| truncated("5", 20).sample(w))),
        ("truncated 1000, 9000", draws(|w| truncated("1000", 9000).sample(w))),
        ("truncated 10^6, 9000", draws(|w| truncated("1000000", 9000).sample(w))),
        ("coin", draws(|w| coin.sample(w).into())),
        ("64 coins", draws(|w| coin.sample_64(w).into())),
        ("exponential", draws(|w| choice.exponential(w) as i128)),
        ("permute and flip", draws(|w| choice.permute_and_flip(w) as i128)),
        ("response", draws(|w| response.sample(3, w).unwrap().into())),
        ("unary", draws(|w| bits(unary.sample(3, w).unwrap()))),
    ];
    let text: String = pinned.iter().map(|(name, values)| format!("{name}: {values:?}\n")).collect();
    let expected = include_str!("data/stability.txt");
    assert_eq!(text, expected, "seeded draws changed");
}
