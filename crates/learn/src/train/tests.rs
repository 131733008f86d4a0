//! Whole steps and whole runs: on neighbours, on odd data, against definitions.

use std::ops::ControlFlow;

use demur_accounting::Account;
use demur_core::{Guarantee, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::{Entropy, Words};
use demur_testkit::Seeded;
use rayon::prelude::*;

use super::contribution::{CLIP_STEPS, CLIP_STEPS_SQUARED};
use super::curator::{Curator, Spring, StepNoise};
use super::matrix::{Matrix, add_product};
use super::passes::{Passes, chunk_rows, softmax};
use super::*;

impl Spring for Seeded {
    fn branch(&mut self) -> Result<Self, crate::LearnError> {
        Ok(Self::new(self.word()))
    }
}

fn uniform(words: &mut Seeded) -> f32 {
    (words.word() >> 40) as f32 / 8_388_608.0 - 1.0
}

fn networks() -> Vec<Network> {
    let texts = [
        "1x1x7: -> 3 classes",
        "1x1x5: -> number",
        "1x1x6: dense(9), tanh, dense(8), relu -> 4 classes",
        "9x8x1: convolution(4, 4, 2, 1), tanh, pool(2, 1), convolution(3, 2, 1, 0), relu, dense(5), tanh -> 3 classes",
        "6x6x2: convolution(3, 3, 1, 2), relu, pool(2, 2) -> number",
    ];
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The same, and one whose first layer has so many weights that its numbers are coarse.
fn networks_of_any_size() -> Vec<Network> {
    let large: Network = "1x1x160: dense(110), tanh, dense(9), relu -> 3 classes".parse().unwrap();
    networks().into_iter().chain([large]).collect()
}

/// Examples with targets, some with long and some with short gradients.
fn examples(network: &Network, count: usize, words: &mut Seeded) -> Examples {
    let size = network.input().size();
    let mut features = Vec::new();
    for index in 0..count {
        let scale = [1.0, 0.1, 30.0][index % 3];
        features.extend((0..size).map(|_| scale * uniform(words)));
    }
    let targets = match network.task() {
        Task::Classes(classes) => {
            Targets::Classes((0..count).map(|_| (words.word() % classes as u64) as u32).collect())
        }
        Task::Number => Targets::Numbers((0..count).map(|_| 3.0 * uniform(words)).collect()),
    };
    Examples::new(network.input(), features, targets).unwrap()
}

/// Weights that are nowhere 0, the last layer's among them.
fn weights(network: &Network, words: &mut Seeded) -> Vec<Vec<f32>> {
    let mut weights = network.beginning(words);
    weights
        .iter_mut()
        .flatten()
        .filter(|weight| **weight == 0.0)
        .for_each(|weight| *weight = 0.3 * uniform(words));
    weights
}

fn noise(network: &Network, rate: Rational) -> StepNoise {
    StepNoise::new(rate, Rational::from(CLIP_STEPS_SQUARED as u64), network.weights() as u64).unwrap()
}

/// The exact sum of a batch, in steps.
fn sum(network: &Network, examples: &Examples, weights: &[Vec<f32>], clip: f64, batch: &[u32]) -> Vec<f64> {
    let (step, words) = (noise(network, Rational::one()), &mut Seeded::new(0));
    let mut curator = Curator::new(network, examples, &step, clip, 0, words);
    curator.sum(batch, weights).concat().into_iter().map(|steps| steps as f64).collect()
}

fn length_squared(steps: &[f64]) -> i128 {
    steps.iter().map(|&step| (step as i128).pow(2)).sum()
}

fn loss(model: &Model, features: &[f32], examples: &Examples) -> f64 {
    let out = model.predict(features).unwrap();
    match model.network().task() {
        Task::Classes(_) => -f64::from(out[examples.class(0).unwrap() as usize]).ln(),
        Task::Number => 0.5 * (f64::from(out[0]) - f64::from(examples.number(0).unwrap())).powi(2),
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let words = &mut Seeded::new(11);
    for network in networks() {
        let examples = examples(&network, 1, words);
        let weights = weights(&network, words);
        let clip = 256.0;
        let gradient = sum(&network, &examples, &weights, clip, &[0]);
        let mut place = 0;
        for layer in 0..weights.len() {
            for entry in 0..weights[layer].len() {
                let at = |shift: f32| {
                    let mut moved = weights.clone();
                    moved[layer][entry] += shift;
                    loss(&Model::new(network.clone(), moved), examples.features(0), &examples)
                };
                let (h, found) = (1e-2, gradient[place] * clip / CLIP_STEPS);
                let expected = (at(h) - at(-h)) / (2.0 * f64::from(h));
                let allowed = 0.02 + 0.02 * expected.abs();
                assert!(
                    (found - expected).abs() < allowed,
                    "{network}, layer {layer}, {entry}: {found} for {expected}"
                );
                place += 1;
            }
        }
    }
}

/// The norm that clips is that of the whole gradient, over all layers: a gradient longer than C comes out with length C, and one direction.
#[test]
fn ghost_norms_are_norms_of_whole_gradients() {
    let words = &mut Seeded::new(12);
    for network in networks_of_any_size() {
        let (examples, weights) = (examples(&network, 30, words), weights(&network, words));
        let mut tried = 0;
        for index in 0..30 {
            let whole = sum(&network, &examples, &weights, 8.0, &[index]);
            let norm = (length_squared(&whole) as f64).sqrt() * 8.0 / CLIP_STEPS;
            if norm < 0.05 {
                continue; // too short to have a direction in whole steps
            }
            tried += 1;
            let clipped = sum(&network, &examples, &weights, norm / 3.0, &[index]);
            let length = (length_squared(&clipped) as f64).sqrt() / CLIP_STEPS;
            assert!(length <= 1.0 && length > 0.995, "{network}: {length}, from a gradient of {norm}");
            let cosine: f64 = whole.iter().zip(&clipped).map(|(a, b)| a * b).sum::<f64>()
                / (length_squared(&whole) as f64).sqrt()
                / (length_squared(&clipped) as f64).sqrt();
            assert!(cosine > 0.999, "{network}: {cosine}");
        }
        assert!(tried >= 10, "{network}");
    }
}

/// The promise itself. With and without an example, wherever it stands in the batch, the sum moves by what it contributes alone, to the last bit, and that is at most 2²⁶ steps long.
#[test]
fn neighbours_are_one_clipped_contribution_apart_in_exact_steps() {
    let words = &mut Seeded::new(13);
    for network in networks_of_any_size() {
        let (examples, weights) = (examples(&network, 70, words), weights(&network, words));
        let mut longest = 0;
        for clip in [0.01, 1.0, 100.0] {
            let all: Vec<u32> = (0..70).collect();
            let with = sum(&network, &examples, &weights, clip, &all);
            for index in 0..70 {
                let others: Vec<u32> = all.iter().copied().filter(|&other| other != index).collect();
                let without = sum(&network, &examples, &weights, clip, &others);
                let alone = sum(&network, &examples, &weights, clip, &[index]);
                let moved: Vec<f64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
                assert_eq!(moved, alone, "{network}: who else is there must not matter");
                let length = length_squared(&moved);
                assert!(length <= CLIP_STEPS_SQUARED as i128, "{network}, clip {clip}");
                longest = longest.max(length);
            }
        }
        assert!(longest as f64 > 0.99 * CLIP_STEPS_SQUARED, "{network}: the test must reach the bound");
    }
}

/// With equal words, the noisy sums of neighbours differ by nothing or by the contribution: noise and batches do not depend on the data.
#[test]
fn equal_randomness_gives_neighbours_equal_noise() {
    let words = &mut Seeded::new(14);
    let network: Network = "1x1x4: dense(3), tanh -> 2 classes".parse().unwrap();
    let all = examples(&network, 64, words);
    let fewer: Vec<f32> = (0..63).flat_map(|index| all.features(index).to_vec()).collect();
    let labels = (0..63).map(|index| all.class(index).unwrap()).collect();
    let fewer = Examples::new(network.input(), fewer, Targets::Classes(labels)).unwrap();
    let (weights, step) = (weights(&network, words), noise(&network, Rational::new(1, 2)));
    let alone = sum(&network, &all, &weights, 0.1, &[63]);
    let mut seen = [0; 2];
    for seed in 0..40 {
        let noisy = |examples: &Examples| {
            let words = &mut Seeded::new(seed);
            Curator::new(&network, examples, &step, 0.1, 1, words).noisy_sum(&weights).unwrap().concat()
        };
        let moved: Vec<f64> = noisy(&all).iter().zip(noisy(&fewer)).map(|(a, b)| (a - b) as f64).collect();
        let was_drawn = moved.iter().any(|&entry| entry != 0.0);
        seen[usize::from(was_drawn)] += 1;
        if was_drawn {
            assert_eq!(moved, alone);
        }
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}

/// A whole step, noise and all, to the last bit.
#[test]
fn the_number_of_threads_does_not_matter() {
    let words = &mut Seeded::new(22);
    for network in networks_of_any_size() {
        let (examples, weights) = (examples(&network, 300, words), weights(&network, words));
        let step = noise(&network, Rational::new(2, 3));
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let words = &mut Seeded::new(23);
                let mut curator = Curator::new(&network, &examples, &step, 1.0, 1, words);
                curator.noisy_sum(&weights).unwrap().to_vec()
            })
        };
        let alone = with(1);
        for threads in [2, 3, 8] {
            assert_eq!(with(threads), alone, "{network}, {threads} threads");
        }
    }
}

#[test]
fn what_is_no_number_or_not_declared_counts_nothing() {
    let words = &mut Seeded::new(15);
    for network in networks() {
        let good = examples(&network, 3, words);
        let weights = weights(&network, words);
        let expected = sum(&network, &good, &weights, 1.0, &[0, 1, 2]);
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            let mut features: Vec<f32> = (0..3).flat_map(|index| good.features(index).to_vec()).collect();
            let mut strange = good.features(0).to_vec();
            strange[1] = odd;
            features.extend(strange);
            let targets = match network.task() {
                Task::Classes(_) => {
                    Targets::Classes((0..3).map(|i| good.class(i).unwrap()).chain([0]).collect())
                }
                Task::Number => {
                    Targets::Numbers((0..3).map(|i| good.number(i).unwrap()).chain([0.0]).collect())
                }
            };
            let all = Examples::new(network.input(), features, targets).unwrap();
            let found = sum(&network, &all, &weights, 1.0, &[0, 1, 2, 3]);
            let moved: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
            assert!(length_squared(&moved) <= CLIP_STEPS_SQUARED as i128, "{network}, {odd}");
            if odd.is_nan() {
                assert_eq!(found, expected, "{network}");
            }
        }
    }
    let network = Network::softmax(2, 3).unwrap();
    let labels = Targets::Classes(vec![3, u32::MAX]);
    let strangers = Examples::new(network.input(), vec![1.0; 4], labels).unwrap();
    assert!(sum(&network, &strangers, &network.zeros(), 1.0, &[0, 1]).iter().all(|&entry| entry == 0.0));
}

/// False alarm 1e-9: 6 000 draws of variance 1 have a mean square with deviation 0.018, and 0.12 is allowed. Noise with a
/// scale wrong by 10 % (0.19 or more in the square) is found with probability > 0.999.
#[test]
fn an_empty_batch_still_adds_noise() {
    let network = Network::softmax(299, 20).unwrap();
    let nobody = Examples::new(network.input(), Vec::new(), Targets::Classes(Vec::new())).unwrap();
    let (step, words) = (noise(&network, Rational::new(1, 100)), &mut Seeded::new(demur_testkit::seed(31)));
    let mut curator = Curator::new(&network, &nobody, &step, 1.0, 1, words);
    let sums = curator.noisy_sum(&network.zeros()).unwrap().concat();
    let square = sums.iter().map(|&x| (x as f64 / CLIP_STEPS).powi(2)).sum::<f64>() / sums.len() as f64;
    assert!((square - 1.0).abs() < 0.12, "{square}");
    assert_eq!(
        curator.noisy_sum(&network.zeros()).unwrap_err().code(),
        "learn.broken",
        "one step was paid for"
    );
}

fn guarantee(epsilon: &str) -> Guarantee {
    Guarantee::new(epsilon.parse().unwrap(), "1e-5".parse().unwrap())
}

const RECIPE: Recipe = Recipe { batch: 20, steps: 30, clip: 1.0, rate: 0.5, momentum: 0.5 };

fn go_on(_: &Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn a_plan_costs_what_the_accountant_says_for_its_rate_noise_and_steps() {
    let network = Network::softmax(3, 2).unwrap();
    for (epsilon, batch, rows) in [("0.5", 20, 100), ("3", 1, 7), ("1", 50, 50)] {
        let plan = Plan::new(network.clone(), rows, guarantee(epsilon), Recipe { batch, ..RECIPE }).unwrap();
        let sigma = plan.noise_multiplier();
        let text = match batch == rows {
            true => format!("gaussian(sigma={sigma})*30"),
            false => format!("subsampled({batch}/{rows}, gaussian(sigma={sigma}))*30"),
        };
        let continuous: PrivacyLoss = text.parse().unwrap();
        let delta: Rational = "1e-5".parse().unwrap();
        let expected = Account::of(&continuous).unwrap().epsilon(&delta).unwrap().bounds;
        let found = plan.epsilon(&delta).unwrap();
        assert!((found / expected.upper - 1.0).abs() < 1e-7, "{found} for {expected:?}");
        let asked: f64 = epsilon.parse().unwrap();
        assert!(found <= asked * (1.0 + 1e-9) && found > asked * (1.0 - 1e-6), "{found}");
        // As many noisy sums are drawn as were paid for.
        let words = &mut Seeded::new(3);
        let examples = examples(&network, 50, words);
        let mut steps = 0;
        let mut count = |progress: &Progress<'_>| {
            steps += 1;
            assert_eq!(progress.step, steps);
            ControlFlow::Continue(())
        };
        let begun = plan.begin(words);
        plan.run(begun, &examples, words, &mut count).unwrap();
        assert_eq!(steps, 30);
    }
}

#[test]
fn who_goes_on_from_a_checkpoint_arrives_where_the_whole_run_arrives() {
    let network: Network = "1x1x4: dense(3), tanh -> 2 classes".parse().unwrap();
    let plan = Plan::new(network.clone(), 100, guarantee("1"), RECIPE).unwrap();
    let examples = examples(&network, 100, &mut Seeded::new(5));
    let words = &mut Seeded::new(6);
    let begun = plan.begin(words);
    let whole = plan.run(begun, &examples, words, &mut go_on).unwrap();
    // The same words, stopped after step 12; what was drawn since then is drawn again.
    let words = &mut Seeded::new(6);
    let mut kept = Vec::new();
    let mut stop = |progress: &Progress<'_>| {
        kept = progress.checkpoint.to_bytes().unwrap();
        if progress.step == 12 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let begun = plan.begin(words);
    assert_eq!(plan.run(begun, &examples, words, &mut stop).unwrap_err().code(), "learn.stopped");
    let mut rest = 0;
    let mut count = |_: &Progress<'_>| {
        rest += 1;
        ControlFlow::Continue(())
    };
    let checkpoint = Checkpoint::from_bytes(&kept).unwrap();
    assert_eq!(checkpoint.step(), 12);
    let resumed = plan.run(checkpoint, &examples, words, &mut count).unwrap();
    assert_eq!((rest, resumed), (18, whole));
    let other = Plan::new(network, 100, guarantee("2"), RECIPE).unwrap();
    let refused = other.run(Checkpoint::from_bytes(&kept).unwrap(), &examples, words, &mut go_on);
    assert_eq!(refused.unwrap_err().code(), "learn.checkpoint");
}

#[test]
fn models_are_read_as_they_were_written_and_damage_is_refused() {
    let words = &mut Seeded::new(16);
    for network in networks() {
        let model = Model::new(network.clone(), weights(&network, words));
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes), Ok(model));
        for length in 0..bytes.len() {
            assert!(Model::from_bytes(&bytes[..length]).is_err());
        }
        for _ in 0..2000 {
            let mut damaged = bytes.clone();
            let place = words.word() as usize % damaged.len();
            damaged[place] ^= 1 << (words.word() % 8);
            let _ =
                Model::from_bytes(&damaged).map(|model| model.predict(&vec![0.5; network.input().size()]));
        }
    }
}

#[test]
fn odd_data_is_learned_without_a_word_and_odd_plans_are_refused() {
    let network = Network::softmax(3, 2).unwrap();
    let plan = Plan::new(network.clone(), 100, guarantee("1"), RECIPE).unwrap();
    let fit = |features: Vec<f32>, labels: Vec<u32>| {
        let examples = Examples::new(network.input(), features, Targets::Classes(labels)).unwrap();
        let words = &mut Seeded::new(17);
        let begun = plan.begin(words);
        let model = plan.run(begun, &examples, words, &mut go_on).unwrap();
        assert!(model.weights().flatten().all(|weight| weight.is_finite()));
    };
    fit(vec![1.0; 300], vec![1; 100]); // one class, constant features
    fit(Vec::new(), Vec::new());
    fit(vec![f32::NAN; 300], vec![0; 100]);
    fit(vec![0.5; 3], vec![7]); // fewer rows than a batch, and no declared label
    let code =
        |rows, guarantee, recipe| Plan::new(network.clone(), rows, guarantee, recipe).unwrap_err().code();
    let pure = Guarantee::new("1".parse().unwrap(), demur_core::Delta::ZERO);
    assert_eq!(code(100, pure, RECIPE), "learn.plan.pure");
    assert_eq!(code(19, guarantee("1"), RECIPE), "learn.plan.batch");
    assert_eq!(code(0, guarantee("1"), RECIPE), "learn.plan.rows");
    for clip in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(code(100, guarantee("1"), Recipe { clip, ..RECIPE }), "learn.plan.clip");
        assert_eq!(code(100, guarantee("1"), Recipe { rate: clip, ..RECIPE }), "learn.plan.rate");
    }
    assert_eq!(code(100, guarantee("1"), Recipe { steps: 0, ..RECIPE }), "learn.plan.steps");
    assert_eq!(code(100, guarantee("1"), Recipe { momentum: 1.0, ..RECIPE }), "learn.plan.momentum");
    let wrong = Examples::new(Shape::row(3), vec![0.0; 5], Targets::Classes(vec![0, 0]));
    assert_eq!(wrong.unwrap_err().code(), "learn.examples.shape");
    let numbers = Examples::new(Shape::row(3), vec![0.0; 6], Targets::Numbers(vec![0.0, 0.0])).unwrap();
    let words = &mut Seeded::new(1);
    let begun = plan.begin(words);
    assert_eq!(plan.run(begun, &numbers, words, &mut go_on).unwrap_err().code(), "learn.examples.targets");
}

#[test]
fn networks_that_cannot_be_are_refused() {
    let code = |text: &str| text.parse::<Network>().unwrap_err().code();
    assert_eq!(code("2 classes"), "learn.network.text");
    assert_eq!(code("1x1x3: sigmoid -> 2 classes"), "learn.network.text");
    assert_eq!(code("1x1x3: dense(4 -> 2 classes"), "learn.network.text");
    assert_eq!(code("1x1x3: dense(4) tanh -> 2 classes"), "learn.network.text");
    assert_eq!(code("1x1x3: -> 1 classes"), "learn.network.classes");
    assert_eq!(code("1x1x0: -> 2 classes"), "learn.network.shape");
    assert_eq!(code("1x1x3: dense(0) -> 2 classes"), "learn.network.shape");
    assert_eq!(code("8x8x1: convolution(3, 9, 1, 0) -> 2 classes"), "learn.network.patch");
    assert_eq!(code("8x8x1: convolution(3, 2, 0, 0) -> 2 classes"), "learn.network.patch");
    assert_eq!(code("8x8x1: convolution(3, 2, 1, 2) -> 2 classes"), "learn.network.padding");
    assert_eq!(code("8x8x1: pool(0, 1) -> 2 classes"), "learn.network.patch");
    assert_eq!(code("1x1x1000000: dense(1000000) -> 2 classes"), "learn.network.weights");
    for network in networks() {
        assert_eq!(network.to_string().parse(), Ok(network));
    }
}

/// 20 layers deep, signals are neither lost nor blown up; a start with variance 1/inputs everywhere would leave 2⁻²⁰ of the square.
#[test]
fn signals_keep_their_size_through_many_layers() {
    let words = &mut Seeded::new(24);
    for activation in ["relu", "tanh"] {
        let hidden = vec![format!("dense(200), {activation}"); 20].join(", ");
        let network: Network = format!("1x1x200: {hidden} -> 2 classes").parse().unwrap();
        let weights = network.beginning(words);
        let mut passes = Passes::new(&network);
        let row: Vec<f32> = (0..200).map(|_| 0.1 * uniform(words)).collect();
        passes.forward(std::iter::once(row.as_slice()), &weights);
        let square = |layer: usize| passes.inputs(layer)[..200].iter().map(|x| x * x).sum::<f32>();
        let kept = square(40) / square(0);
        assert!((0.05..20.0).contains(&kept), "{activation}: {kept}");
    }
    let flat = Network::softmax(5, 3).unwrap().beginning(words);
    assert!(flat.iter().flatten().all(|&weight| weight == 0.0));
}

#[test]
fn softmax_is_a_distribution_even_far_out() {
    let mut out = [0.0; 3];
    softmax(&[1e30, -1e30, 1e30], &mut out);
    assert_eq!(out, [0.5, 0.0, 0.5]);
}

fn table() -> (Columns, Examples) {
    let columns = vec![
        Column::Number { low: 0.0, high: 10.0 },
        Column::Category { values: 3 },
        Column::Amount { high: 1e4, knots: 4 },
    ];
    let columns = Columns::new(columns).unwrap();
    let (words, mut features, mut labels) = (&mut Seeded::new(18), Vec::new(), Vec::new());
    for _ in 0..4000 {
        let (number, kind) = (5.0 + 5.0 * uniform(words), (words.word() % 3) as u32);
        let amount = f64::from(10.0 * uniform(words)).exp();
        columns.encode(
            &[Cell::Number(f64::from(number)), Cell::Category(kind), Cell::Number(amount)],
            &mut features,
        );
        labels.push(u32::from(number + 3.0 * kind as f32 + 2.0 * uniform(words) > 8.0));
    }
    let examples = Examples::new(Shape::row(columns.width()), features, Targets::Classes(labels)).unwrap();
    (columns, examples)
}

#[test]
fn regression_learns_what_is_there_and_costs_what_was_asked() {
    let (columns, examples) = table();
    let plan = Regression::new(&columns, Task::Classes(2), 4000, guarantee("1")).unwrap();
    let found = plan.epsilon(&"1e-5".parse().unwrap()).unwrap();
    assert!(found <= 1.0 + 1e-9 && found > 0.999, "{found}");
    let model = plan.run(&examples, &mut Seeded::new(19), &mut go_on).unwrap();
    let features: Vec<f32> = (0..4000).flat_map(|index| examples.features(index).to_vec()).collect();
    let right = model
        .classify(&features)
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(i, class)| examples.class(*i) == Some(**class))
        .count();
    assert!(right > 3500, "{right} of 4000");
    assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()), Ok(model));
}

#[test]
fn regression_takes_odd_rows_without_a_word() {
    let (columns, _) = table();
    let shape = Shape::row(columns.width());
    let plan = Regression::new(&columns, Task::Classes(2), 50, guarantee("0.1")).unwrap();
    for rows in [0, 1, 50] {
        for odd in [0.0, 1.0, f32::NAN, f32::INFINITY, f32::MAX] {
            for label in [0, 1, 9] {
                let examples =
                    Examples::new(shape, vec![odd; rows * shape.size()], Targets::Classes(vec![label; rows]))
                        .unwrap();
                let model = plan.run(&examples, &mut Seeded::new(20), &mut go_on).unwrap();
                assert!(model.weights().flatten().all(|weight| weight.is_finite()), "{rows} {odd} {label}");
            }
        }
    }
    let numbers = Regression::new(&columns, Task::Number, 50, guarantee("1")).unwrap();
    let examples =
        Examples::new(shape, vec![0.5; 50 * shape.size()], Targets::Numbers(vec![1.0; 50])).unwrap();
    assert_eq!(
        numbers
            .run(&examples, &mut Seeded::new(20), &mut go_on)
            .unwrap()
            .predict(&vec![0.5; shape.size()])
            .unwrap()
            .len(),
        1
    );
}

/// Training without privacy, to measure against; it exists only here. The mean gradient of a batch, in single precision and at once.
fn plain_step(
    network: &Network,
    examples: &Examples,
    batch: &[u32],
    weights: &mut [Vec<f32>],
    workers: &mut [(Passes<'_>, Vec<Vec<f32>>)],
) {
    let rows = chunk_rows(network);
    let part = (batch.len().div_ceil(rows).div_ceil(workers.len()) * rows).max(1);
    let shared = &*weights;
    workers.par_iter_mut().zip(batch.par_chunks(part)).for_each(|((passes, sums), part)| {
        sums.iter_mut().for_each(|sum| sum.fill(0.0));
        for indices in part.chunks(rows) {
            passes.forward(indices.iter().map(|&index| examples.features(index as usize)), shared);
            passes.backward(examples, indices, shared);
            for (layer, sum) in sums.iter_mut().enumerate() {
                let ((inputs, units), after) = (network.matrix(layer), network.after(layer));
                let (from, places) = match network.layers()[layer] {
                    Layer::Dense { .. } => (passes.inputs(layer), rows),
                    Layer::Convolution { .. } => {
                        (passes.all_patches(layer), rows * after.height * after.width)
                    }
                    _ => continue,
                };
                let errors = passes.errors(layer);
                let a = Matrix::new(from, places, inputs - 1).transposed();
                add_product(a, Matrix::new(errors, places, units), sum);
                let bias = &mut sum[(inputs - 1) * units..];
                errors
                    .chunks_exact(units)
                    .for_each(|row| bias.iter_mut().zip(row).for_each(|(bias, error)| *bias += error));
            }
        }
    });
    for (_, sums) in workers {
        let entries = weights.iter_mut().flatten().zip(sums.iter().flatten());
        entries.for_each(|(weight, sum)| *weight -= 0.1 * sum / batch.len() as f32);
    }
}

/// Seconds that the processor has worked for this program, all threads together; 0 where nobody says so.
fn worked() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// How often a turn of the measurement below goes through all examples: a training that is over in a blink measures its beginning.
const EPOCHS: u64 = 4;

/// Prints how much longer private training takes than plain training, by the clock (the median of all turns) and by the processor's time (all turns together); it asserts nothing. Run with `--ignored --nocapture` and `--release`.
#[test]
#[ignore = "a measurement"]
fn private_training_beside_plain_training() {
    let texts = [
        "28x28x1: convolution(16, 8, 2, 3), relu, pool(2, 1), convolution(32, 4, 2, 0), relu, pool(2, 1), dense(32), relu -> 10 classes",
        "28x28x1: dense(128), relu -> 10 classes",
        "28x28x1: dense(512), relu, dense(256), relu -> 10 classes",
        "7x7x81: -> 10 classes",
    ];
    let words = &mut Seeded::new(40);
    for (text, batch) in texts.iter().zip([512, 512, 2048, 8192]) {
        let network: Network = text.parse().unwrap();
        let count = 16384;
        let features = (0..count * network.input().size()).map(|_| uniform(words)).collect();
        let labels = (0..count).map(|_| (words.word() % 10) as u32).collect();
        let examples = Examples::new(network.input(), features, Targets::Classes(labels)).unwrap();
        let recipe =
            Recipe { batch, steps: EPOCHS * count as u64 / batch, clip: 1.0, rate: 0.1, momentum: 0.0 };
        let plan = Plan::new(network.clone(), count as u64, guarantee("3"), recipe).unwrap();
        let mut weights = weights(&network, words);
        let threads = rayon::current_num_threads();
        let mut workers: Vec<_> = (0..threads).map(|_| (Passes::new(&network), network.zeros())).collect();
        let (mut ratios, mut work) = (Vec::new(), [0.0; 2]);
        for _ in 0..9 {
            let (started, before) = (std::time::Instant::now(), worked());
            for step in 0..recipe.steps as u32 {
                let indices: Vec<u32> =
                    (step * batch as u32..).take(batch as usize).map(|index| index % count as u32).collect();
                plain_step(&network, &examples, &indices, &mut weights, &mut workers);
            }
            let plain = started.elapsed().as_secs_f64();
            let (started, between) = (std::time::Instant::now(), worked());
            // The words of tests are slower than those of everybody.
            let words = &mut Entropy::from_os().unwrap();
            let begun = plan.begin(words);
            plan.run(begun, &examples, words, &mut go_on).unwrap();
            ratios.push((started.elapsed().as_secs_f64() / plain, (EPOCHS * count as u64) as f64 / plain));
            work = [work[0] + between - before, work[1] + worked() - between];
        }
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (clock, processor) = (ratios[4].0, work[1] / work[0]);
        println!(
            "{text}: {clock:.2} times, {processor:.2} by processor, plain {:.0} examples a second",
            ratios[4].1
        );
    }
}
