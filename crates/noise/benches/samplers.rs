//! How long every sampler takes, and how long it takes to get it ready.
//!
//! `cargo bench -p demur-noise --bench samplers` prints the time of a call and, as
//! throughput, items per second. Vectors hold 10⁵ values, choices have 10⁶
//! candidates. With a part of a name at the end (`-- laplace/`) only what matches runs.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use demur_core::{Delta, Epsilon};
use demur_exact::Rational;
use demur_noise::{
    Bernoulli, Calibration, DiscreteGaussian, DiscreteLaplace, Entropy, Exponential, Gaussian, Laplace,
    Mechanism, Method, NoiseError, Probability, RandomizedResponse, Selection, TruncatedDiscreteLaplace,
    UnaryEncoding, Words,
};

type Failure = Box<dyn std::error::Error>;

const VALUES: usize = 100_000;
const CANDIDATES: usize = 1_000_000;
const CATEGORIES: u64 = 1024;

criterion_group! {
    name = samplers;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .without_plots();
    targets = all
}
criterion_main!(samplers);

#[expect(clippy::panic, reason = "a benchmark that cannot be set up has nothing to measure")]
fn all(criterion: &mut Criterion) {
    let benchmarks = [words, coins, laplace, gaussian, truncated, choices, answers, releases, constructors];
    for benchmark in benchmarks {
        if let Err(error) = benchmark(criterion) {
            panic!("{error}");
        }
    }
}

/// Scales as powers of two and of ten, with their names.
fn scales(largest_log2: i64) -> Vec<(String, Rational)> {
    let small = [1u32, 10, 1000].map(|scale| (scale.to_string(), Rational::from(scale)));
    let large = [20, 40, largest_log2].map(|log2| (format!("2^{log2}"), Rational::power_of_two(log2)));
    small.into_iter().chain(large).collect()
}

/// Times `fill` on vectors and one call of `sample`.
fn vectors(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut fill: impl FnMut(&mut [i128]),
    mut sample: impl FnMut() -> i128,
) {
    let mut out = vec![0; VALUES];
    group.throughput(Throughput::Elements(VALUES as u64));
    group.bench_function(format!("fill/{name}"), |b| b.iter(|| fill(black_box(&mut out))));
    group.throughput(Throughput::Elements(1));
    group.bench_function(format!("sample/{name}"), |b| b.iter(&mut sample));
}

fn words(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut entropy = Entropy::from_os()?;
    let mut out = vec![0; VALUES];
    let mut group = criterion.benchmark_group("entropy");
    group.throughput(Throughput::Elements(VALUES as u64));
    group.bench_function("word", |b| {
        b.iter(|| black_box(&mut out).iter_mut().for_each(|word| *word = entropy.word()));
    });
    Ok(())
}

fn coins(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut entropy = Entropy::from_os()?;
    let coin = Bernoulli::new(Probability::exp_neg("1/3".parse()?)?);
    let mut out = vec![0; VALUES / 64];
    let mut group = criterion.benchmark_group("bernoulli");
    group.throughput(Throughput::Elements(1));
    group.bench_function("sample", |b| b.iter(|| coin.sample(&mut entropy)));
    group.throughput(Throughput::Elements(64));
    group.bench_function("sample_64", |b| b.iter(|| coin.sample_64(&mut entropy)));
    group.throughput(Throughput::Elements(64 * out.len() as u64));
    group.bench_function("fill", |b| b.iter(|| coin.fill(&mut entropy, black_box(&mut out))));
    Ok(())
}

fn laplace(criterion: &mut Criterion) -> Result<(), Failure> {
    let (mut entropy, mut other) = (Entropy::from_os()?, Entropy::from_os()?);
    let mut group = criterion.benchmark_group("laplace");
    for (name, scale) in scales(60) {
        let noise = DiscreteLaplace::new(scale)?;
        vectors(&mut group, &name, |out| noise.fill(&mut entropy, out), || noise.sample(&mut other));
    }
    Ok(())
}

fn gaussian(criterion: &mut Criterion) -> Result<(), Failure> {
    let (mut entropy, mut other) = (Entropy::from_os()?, Entropy::from_os()?);
    let mut group = criterion.benchmark_group("gaussian");
    for (name, sigma) in scales(50) {
        let noise = DiscreteGaussian::new(sigma.square())?;
        vectors(&mut group, &name, |out| noise.fill(&mut entropy, out), || noise.sample(&mut other));
    }
    Ok(())
}

/// One case for each way of drawing: from a table, from Laplace noise, from uniform values.
fn truncated(criterion: &mut Criterion) -> Result<(), Failure> {
    let (mut entropy, mut other) = (Entropy::from_os()?, Entropy::from_os()?);
    let mut group = criterion.benchmark_group("truncated");
    let cases: [(&str, u64, u64); 3] =
        [("table", 10, 100), ("from laplace", 1 << 20, 10 << 20), ("from uniform", 1 << 40, 1 << 39)];
    for (name, scale, bound) in cases {
        let noise = TruncatedDiscreteLaplace::new(Rational::from(scale), bound)?;
        vectors(&mut group, name, |out| noise.fill(&mut entropy, out), || noise.sample(&mut other));
    }
    Ok(())
}

/// Choices by both methods: drawn from prepared candidates, and from scores to index.
fn choices(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut entropy = Entropy::from_os()?;
    let mut group = criterion.benchmark_group("choice");
    group.throughput(Throughput::Elements(CANDIDATES as u64));

    let scores: Vec<i64> = (0..CANDIDATES as i64).map(|i| i * 7_919 % 1_000_003).collect();
    let selection = Selection::new(&scores, "1/2000".parse()?)?;
    group.bench_function("prepare", |b| {
        b.iter(|| Selection::new(black_box(&scores), Rational::new(1, 2000)));
    });
    group.bench_function("exponential", |b| b.iter(|| selection.exponential(&mut entropy)));
    group.bench_function("permute and flip", |b| b.iter(|| selection.permute_and_flip(&mut entropy)));

    let scores: Vec<f64> = scores.iter().map(|&score| score as f64 / 1009.0).collect();
    let mechanism = Exponential::new(Rational::one(), Epsilon::new(1.0)?)?;
    for (name, method) in [
        ("mechanism: exponential", Method::Exponential),
        ("mechanism: permute and flip", Method::PermuteAndFlip),
    ] {
        let mechanism = mechanism.clone().by(method);
        group.bench_function(name, |b| b.iter(|| mechanism.choose(black_box(&scores), &mut entropy)));
    }
    Ok(())
}

/// What each person does to their own answer.
fn answers(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut entropy = Entropy::from_os()?;
    let mut group = criterion.benchmark_group("answer");
    let response = RandomizedResponse::new(CATEGORIES, Epsilon::new(1.0)?)?;
    group.throughput(Throughput::Elements(1));
    group.bench_function("randomized response", |b| {
        b.iter(|| response.respond(black_box(7), &mut entropy));
    });
    let encoding = UnaryEncoding::new(CATEGORIES, Epsilon::new(1.0)?)?;
    group.throughput(Throughput::Elements(CATEGORIES));
    group.bench_function("unary encoding", |b| b.iter(|| encoding.encode(black_box(7), &mut entropy)));
    Ok(())
}

/// Whole mechanisms: rounding to the lattice, noise and price.
fn releases(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut entropy = Entropy::from_os()?;
    let mut group = criterion.benchmark_group("release");
    let whole: Vec<i64> = (0..VALUES as i64).collect();
    let real: Vec<f64> = whole.iter().map(|&x| x as f64 / 7.0).collect();
    let (one, epsilon, delta) = (Rational::one(), Epsilon::new(0.1)?, Delta::new(1e-6)?);
    let size = VALUES as u64;
    let analytic = Calibration::Analytic;

    let integers: [(&str, Box<dyn Mechanism>); 2] = [
        ("laplace", Box::new(Laplace::integers(size, one.clone(), epsilon)?)),
        ("gaussian", Box::new(Gaussian::integers(size, one.clone(), epsilon, delta, analytic)?)),
    ];
    let reals: [(&str, Box<dyn Mechanism>); 2] = [
        ("laplace", Box::new(Laplace::reals(size, one.clone(), epsilon)?)),
        ("gaussian", Box::new(Gaussian::reals(size, one.clone(), epsilon, delta, analytic)?)),
    ];
    let single = Laplace::integer(one, epsilon)?;

    group.throughput(Throughput::Elements(size));
    for (name, mechanism) in &integers {
        group.bench_function(format!("integers/{name}"), |b| {
            b.iter(|| mechanism.release_all(black_box(&whole), &mut entropy));
        });
    }
    for (name, mechanism) in &reals {
        group.bench_function(format!("reals/{name}"), |b| {
            b.iter(|| mechanism.release_reals(black_box(&real), &mut entropy));
        });
    }
    group.throughput(Throughput::Elements(1));
    group.bench_function("integer/laplace", |b| b.iter(|| single.release(black_box(42), &mut entropy)));
    Ok(())
}

/// Building the tables.
fn constructors(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut group = criterion.benchmark_group("new");
    group.throughput(Throughput::Elements(1));
    for (name, scale) in scales(60) {
        build(&mut group, &format!("laplace/{name}"), &scale, DiscreteLaplace::new);
    }
    for (name, sigma) in scales(50) {
        build(&mut group, &format!("gaussian/{name}"), &sigma.square(), DiscreteGaussian::new);
    }
    let ten = Rational::from(10u32);
    build(&mut group, "truncated/10", &ten, |scale| TruncatedDiscreteLaplace::new(scale, 100));
    let third = Probability::exp_neg("1/3".parse()?)?;
    build(&mut group, "bernoulli", &third, |p| Ok(Bernoulli::new(p)));
    build(&mut group, "selection", &ten.recip(), |rate| Selection::new(&[1, 2, 3], rate));
    let epsilon = Epsilon::new(1.0)?;
    build(&mut group, "randomized response", &epsilon, |e| RandomizedResponse::new(CATEGORIES, e));
    build(&mut group, "unary encoding", &epsilon, |e| UnaryEncoding::new(CATEGORIES, e));
    Ok(())
}

fn build<P: Clone, T>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    parameter: &P,
    new: impl Fn(P) -> Result<T, NoiseError>,
) {
    group.bench_function(name, |b| {
        b.iter_batched(|| parameter.clone(), &new, BatchSize::SmallInput);
    });
}
