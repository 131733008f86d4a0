//! demur's samplers beside published ones: one run, one thread, one table.
//!
//! Every figure is nanoseconds of CPU time per item: the best of five turns that the
//! contestants of a row take one after the other (`clock.rs`). Tables and measurements are built
//! before the clock starts, on both sides. What comes out goes into `black_box`.
//!
//! * *noise*: 10⁵ draws into a vector that is there already. Ours: `fill`. opendp: its
//!   sampler in a loop. rand_distr: floats of the same law and scale.
//! * *integers*, *reals*: a whole release of 10⁵ numbers. Ours: `release_all`,
//!   `release_reals` and the conversion to doubles. opendp: `invoke` on vectors of
//!   `i64`, `f64`. rand_distr: the sum of input and noise. Both exact sides round
//!   reals to a grid, add whole-number noise and convert back.
//! * *scalar*: one draw at a time (`sample`), and one number at a time (`release`).
//! * *choice*: one of 10⁶ candidates, from scores as doubles to the index.

mod clock;
mod float_peer;
mod opendp_peer;
mod report;

use std::error::Error;
use std::hint::black_box;

use clock::{Contestant, race};
use dashu::rational::RBig;
use demur_core::{Delta, Epsilon};
use demur_exact::Rational;
use demur_noise::{
    Calibration, DiscreteGaussian, DiscreteLaplace, Entropy, Exponential, Gaussian, Laplace, Mechanism,
    Method, Words,
};
use rand::Rng;
use report::{Report, Row};

/// Numbers in a vector.
const DIMENSIONS: usize = 100_000;
/// Items in a round of a slow contestant that is called once per number.
const FEW: usize = 10_000;
const CANDIDATES: usize = 1_000_000;

/// A peer's measurement, ready to be called.
pub type Function<X, Y> = Box<dyn Fn(&X) -> Y>;

/// Which noise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Law {
    Laplace,
    Gaussian,
}

impl Law {
    const BOTH: [Self; 2] = [Self::Laplace, Self::Gaussian];

    fn name(self) -> &'static str {
        match self {
            Self::Laplace => "Laplace",
            Self::Gaussian => "Gaussian",
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut report = Report::default();
    report.add(words()?);
    for law in Law::BOTH {
        for (scale, name) in [(1, "1"), (10, "10"), (1000, "1000"), (1 << 20, "2^20"), (1 << 40, "2^40")] {
            report.add(noise(law, scale, name)?);
        }
    }
    for law in Law::BOTH {
        report.add(integers(law)?);
        for row in reals(law)? {
            report.add(row);
        }
    }
    for law in Law::BOTH {
        report.add(scalar_draw(law)?);
        report.add(scalar_release(law)?);
    }
    report.add(choice(Method::Exponential, "exponential")?);
    report.add(choice(Method::PermuteAndFlip, "permute-and-flip")?);
    report.print();
    Ok(())
}

/// Random words, without any law.
fn words() -> Result<Row, Box<dyn Error>> {
    let (mut entropy, mut generator) = (Entropy::from_os()?, float_peer::generator());
    let mut out = vec![0; DIMENSIONS];
    let mut peer_out = vec![0; DIMENSIONS];
    let [ours, floats] = race([
        Contestant::new(DIMENSIONS, || {
            black_box(&mut out).iter_mut().for_each(|word| *word = entropy.word());
        }),
        Contestant::new(DIMENSIONS, || {
            black_box(&mut peer_out).iter_mut().for_each(|word| *word = generator.next_u64());
        }),
    ]);
    Ok(Row::new("random 64-bit word", ours).floats(floats))
}

/// Our sampler for either law.
enum Noise {
    Laplace(DiscreteLaplace),
    Gaussian(DiscreteGaussian),
}

impl Noise {
    fn new(law: Law, scale: u64) -> Result<Self, Box<dyn Error>> {
        let scale = Rational::from(scale);
        Ok(match law {
            Law::Laplace => Self::Laplace(DiscreteLaplace::new(scale)?),
            Law::Gaussian => Self::Gaussian(DiscreteGaussian::new(scale.square())?),
        })
    }

    fn fill(&self, entropy: &mut Entropy, out: &mut [i128]) {
        match self {
            Self::Laplace(noise) => noise.fill(entropy, out),
            Self::Gaussian(noise) => noise.fill(entropy, out),
        }
    }
}

/// Vectors of noise alone.
fn noise(law: Law, scale: u64, name: &str) -> Result<Row, Box<dyn Error>> {
    let ours = Noise::new(law, scale)?;
    let exact = RBig::from(scale);
    let (mut entropy, mut generator) = (Entropy::from_os()?, float_peer::generator());
    let mut out = vec![0; DIMENSIONS];
    let mut peer_out = vec![dashu::integer::IBig::ZERO; DIMENSIONS];
    let mut float_out = vec![0.0; DIMENSIONS];
    let [ours, opendp, floats] = race([
        Contestant::new(DIMENSIONS, || ours.fill(&mut entropy, black_box(&mut out))),
        Contestant::new(DIMENSIONS, || {
            black_box(&mut peer_out).iter_mut().for_each(|z| *z = opendp_peer::draw(law, &exact));
        }),
        Contestant::new(DIMENSIONS, || {
            let scale = black_box(scale as f64);
            let out = black_box(&mut float_out).iter_mut();
            out.for_each(|z| *z = float_peer::draw(law, scale, &mut generator));
        }),
    ]);
    Ok(Row::new(format!("noise: {}, scale {name}", law.name()), ours).opendp(opendp).floats(floats))
}

/// Our mechanism for a law, at a scale near 10, and that scale.
fn mechanism(law: Law, on_reals: bool) -> Result<(Box<dyn Mechanism>, f64), Box<dyn Error>> {
    let dimensions = DIMENSIONS as u64;
    Ok(match law {
        Law::Laplace => {
            let (l1, epsilon) = ("1".parse()?, Epsilon::new(0.1)?);
            let build = if on_reals { Laplace::reals } else { Laplace::integers };
            let mechanism = build(dimensions, l1, epsilon)?;
            let scale = mechanism.scale().to_f64();
            (Box::new(mechanism), scale)
        }
        Law::Gaussian => {
            // σ comes out near 10.
            let (l2_squared, epsilon, delta) = ("1".parse()?, Epsilon::new(0.41)?, Delta::new(1e-6)?);
            let build = if on_reals { Gaussian::reals } else { Gaussian::integers };
            let mechanism = build(dimensions, l2_squared, epsilon, delta, Calibration::Analytic)?;
            let scale = mechanism.sigma();
            (Box::new(mechanism), scale)
        }
    })
}

/// A release of whole numbers.
fn integers(law: Law) -> Result<Row, Box<dyn Error>> {
    let (ours, scale) = mechanism(law, false)?;
    let peer = opendp_peer::integers(law, scale);
    let answers: Vec<i64> = (0..DIMENSIONS as i64).collect();
    let mut entropy = Entropy::from_os()?;
    let [ours, opendp] = race([
        Contestant::new(DIMENSIONS, || {
            let _ = black_box(ours.release_all(black_box(&answers), &mut entropy));
        }),
        Contestant::new(DIMENSIONS, || {
            black_box(peer(black_box(&answers)));
        }),
    ]);
    Ok(Row::new(format!("integers: {}, scale {scale:.1}", law.name()), ours).opendp(opendp))
}

/// A release of reals: once beside opendp's own grid, once with opendp on our grid.
fn reals(law: Law) -> Result<[Row; 2], Box<dyn Error>> {
    let (ours, scale) = mechanism(law, true)?;
    let grid = ours.lattice().exponent();
    let peer = opendp_peer::reals(law, DIMENSIONS, scale, None);
    let peer_on_our_grid = opendp_peer::reals(law, DIMENSIONS, scale, Some(grid));
    let answers: Vec<f64> = (0..DIMENSIONS).map(|i| i as f64 / 7.0).collect();
    let (mut entropy, mut generator) = (Entropy::from_os()?, float_peer::generator());
    let [ours, opendp, on_our_grid, floats] = race([
        Contestant::new(DIMENSIONS, || {
            let release = ours.release_reals(black_box(&answers), &mut entropy).expect("finite input");
            let numbers: Vec<f64> = release.value().iter().map(|number| number.to_f64()).collect();
            black_box(numbers);
        }),
        Contestant::new(DIMENSIONS, || {
            black_box(peer(black_box(&answers)));
        }),
        Contestant::new(DIMENSIONS, || {
            black_box(peer_on_our_grid(black_box(&answers)));
        }),
        Contestant::new(DIMENSIONS, || {
            let scale = black_box(scale);
            let noisy = black_box(&answers).iter().map(|x| x + float_peer::draw(law, scale, &mut generator));
            black_box(noisy.collect::<Vec<f64>>());
        }),
    ]);
    let name = format!("reals: {}, scale {scale:.1}", law.name());
    Ok([
        Row::new(name.clone(), ours).opendp(opendp).floats(floats),
        Row::new(format!("{name}, both on grid 2^{grid}"), ours).opendp(on_our_grid).floats(floats),
    ])
}

/// One draw at a time, each result looked at before the next.
fn scalar_draw(law: Law) -> Result<Row, Box<dyn Error>> {
    let exact = RBig::from(10u8);
    let (mut entropy, mut generator) = (Entropy::from_os()?, float_peer::generator());
    let noise = Noise::new(law, 10)?;
    let [ours, opendp, floats] = race([
        Contestant::new(DIMENSIONS, || match &noise {
            Noise::Laplace(noise) => {
                (0..DIMENSIONS).for_each(|_| _ = black_box(black_box(noise).sample(&mut entropy)));
            }
            Noise::Gaussian(noise) => {
                (0..DIMENSIONS).for_each(|_| _ = black_box(black_box(noise).sample(&mut entropy)));
            }
        }),
        Contestant::new(FEW, || {
            (0..FEW).for_each(|_| _ = black_box(opendp_peer::draw(law, black_box(&exact))));
        }),
        Contestant::new(DIMENSIONS, || {
            let draw = |_| _ = black_box(float_peer::draw(law, black_box(10.0), &mut generator));
            (0..DIMENSIONS).for_each(draw);
        }),
    ]);
    Ok(Row::new(format!("scalar: draw {}", law.name()), ours).opendp(opendp).floats(floats))
}

/// One number at a time through the whole mechanism.
fn scalar_release(law: Law) -> Result<Row, Box<dyn Error>> {
    let (ours, scale): (Box<dyn Mechanism>, f64) = match law {
        Law::Laplace => (Box::new(Laplace::integer("1".parse()?, Epsilon::new(0.1)?)?), 10.0),
        Law::Gaussian => {
            let (epsilon, delta) = (Epsilon::new(0.41)?, Delta::new(1e-6)?);
            let mechanism = Gaussian::integer("1".parse()?, epsilon, delta, Calibration::Analytic)?;
            let sigma = mechanism.sigma();
            (Box::new(mechanism), sigma)
        }
    };
    let peer = opendp_peer::integer(law, scale);
    let mut entropy = Entropy::from_os()?;
    let [ours, opendp] = race([
        Contestant::new(DIMENSIONS, || {
            (0..DIMENSIONS as i64).for_each(|x| _ = black_box(ours.release(black_box(x), &mut entropy)));
        }),
        Contestant::new(FEW, || {
            (0..FEW as i64).for_each(|x| _ = black_box(peer(black_box(&x))));
        }),
    ]);
    Ok(Row::new(format!("scalar: release {}", law.name()), ours).opendp(opendp))
}

/// A private choice. Δ = 1 and ε = 1, so weights are e^(score/2).
fn choice(method: Method, name: &str) -> Result<Row, Box<dyn Error>> {
    let scores = scores();
    let ours = Exponential::new("1".parse()?, Epsilon::new(1.0)?)?.by(method);
    let peer: Function<Vec<f64>, usize> = match method {
        Method::Exponential => Box::new(opendp_peer::exponential(2.0)),
        Method::PermuteAndFlip => Box::new(opendp_peer::permute_and_flip(2.0)),
    };
    let (mut entropy, mut generator) = (Entropy::from_os()?, float_peer::generator());
    let [ours, opendp, floats] = race([
        Contestant::new(CANDIDATES, || {
            let _ = black_box(ours.choose(black_box(&scores), &mut entropy));
        }),
        Contestant::new(CANDIDATES, || {
            black_box(peer(black_box(&scores)));
        }),
        Contestant::new(CANDIDATES, || {
            black_box(float_peer::gumbel_max(black_box(&scores), 2.0, &mut generator));
        }),
    ]);
    Ok(Row::new(format!("choice: {name}"), ours).opendp(opendp).floats(floats))
}

/// Scores between 0 and 1000, in no order, with all the digits a double has.
fn scores() -> Vec<f64> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..CANDIDATES).map(|_| 1000.0 * next()).collect()
}
