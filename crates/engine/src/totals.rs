//! [`Levels`]: noisy numbers of parts and of totals, made to fit together.
//!
//! **Definition.** The finest groups are cells 0, 1, …; each cell of a *level* is a sum of some of them. Some levels were measured, each with noise of one
//! variance. What is shown are whole numbers of the finest cells, and of every level their exact sums.
//!
//! **Estimate.** Least squares: the finest cells x that minimise Σ ‖A_ℓ·x − y_ℓ‖²/σ_ℓ² over the measured levels, A_ℓ being the sums of level ℓ. No linear unbiased
//! estimate of any cell of any level has less variance (Gauss and Markov), the noisy number of the cell itself included: so
//! totals and parts err no more than when each level is published by itself with the same noise.
//!
//! **Not negative.** Counts are the nearest point, in the norm above, among those without a negative number and with the sum that least squares found: a convex set, so it is no further
//! than least squares from any point of it. Were the sum left open, everything below 0 would be lifted and nothing lowered, and totals over many empty groups would be far
//! too large. Found by accelerated projected gradients \[Beck2009\], as far as is worth it.
//!
//! **Rounding.** From the first key down: a whole is rounded, its parts are moved as little as it takes to add up to it, and their running sums are
//! rounded. So parts are whole, not negative where that is asked, add up exactly, and each whole that begins with the first keys is off by less than 2 by rounding.
//!
//! **Which levels are measured.** Each one costs a share of the budget, and one that is not measured is a sum of others. With public keys all cells of a level
//! have one variance, known before any row is read. Let n_k be the number of values of key k, F_S the product of those in S, and σ_S² the variance of level S. A table by U without its own totals
//! is known with variance τ_U² = 1/Σ_{S⊇U} 1/(F_{S∖U}·σ_S²) per cell, all measured S together, and a cell of level T with
//!
//! ```text
//! V_T = Σ_{U⊆T} τ_U² · F_{T∖U}⁻² · ∏_{k∈U} (1 − 1/n_k).
//! ```
//!
//! *Why.* Noise of one level is independent, so its parts that vary with exactly the keys of U are uncorrelated for different U, and sums
//! of the measured levels see each of them through noise of F_{S∖U}·σ_S². Levels are added and taken away while Σ_T ln V_T over the shown T falls (the measure by which
//! noise is priced) and no V_T exceeds what level T would have if all shown levels were measured in equal shares and published by themselves. With secret keys nothing is known of their number, and every shown level is measured.
//!
//! **Intervals.** The estimate is a weighted sum of independent noises, whose weights follow from the levels alone. Their law is taken as in
//! [`Spread`], without its allowance for the lattice: many terms are nearly continuous. (Tested, not proved.) For secret keys it is that of the cell's own noise, which is no better.
//!
//! **References.** \[Hay2010\], \[Beck2009\].

pub(crate) mod plan;
mod release;
#[cfg(test)]
mod tests;

use demur_plan::KeySet;

use crate::interval::Spread;
use crate::noise::Noise;
use crate::quantile::not_negative;

/// Sums of finest cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Level {
    /// The cell of this level that each finest cell is part of.
    pub(crate) part_of: Vec<u32>,
    /// How many cells it has.
    pub(crate) cells: usize,
}

/// Levels that were measured, over common finest cells.
pub(crate) struct Levels<'a> {
    measured: Vec<(&'a Level, f64)>,
    cells: usize,
}

impl Level {
    /// The level of some keys, where every combination of values is a finest cell: those of the last key next to each other.
    pub(crate) fn over(sizes: &[usize], set: KeySet) -> Self {
        let mut part_of = vec![0u32];
        let mut cells = 1;
        for (key, &size) in sizes.iter().enumerate() {
            let kept = set.contains(key);
            let width = if kept { size } else { 1 };
            let longer = |part: u32| {
                (0..size as u32).map(move |value| part * width as u32 + if kept { value } else { 0 })
            };
            part_of = part_of.into_iter().flat_map(longer).collect();
            cells *= width;
        }
        Self { part_of, cells }
    }

    /// The sums of finest cells.
    pub(crate) fn sums<T: Copy + Default + std::ops::AddAssign>(&self, finest: &[T]) -> Vec<T> {
        let mut sums = vec![T::default(); self.cells];
        for (&cell, &number) in self.part_of.iter().zip(finest) {
            sums[cell as usize] += number;
        }
        sums
    }

    /// Adds Aᵀ·numbers·factor.
    fn spread(&self, numbers: &[f64], factor: f64, out: &mut [f64]) {
        for (out, &cell) in out.iter_mut().zip(&self.part_of) {
            *out += numbers[cell as usize] * factor;
        }
    }
}

impl<'a> Levels<'a> {
    /// Measured levels with their variances.
    pub(crate) fn new(measured: Vec<(&'a Level, f64)>) -> Self {
        let cells = measured.first().map_or(0, |(level, _)| level.part_of.len());
        Self { measured, cells }
    }

    /// Σ A_ℓᵀ·A_ℓ·x/σ_ℓ².
    fn normal(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.cells];
        for (level, variance) in &self.measured {
            level.spread(&level.sums(x), 1.0 / variance, &mut out);
        }
        out
    }

    /// The right side of the normal equations for noisy numbers level by level.
    fn seen(&self, noisy: &[Vec<f64>]) -> Vec<f64> {
        let mut out = vec![0.0; self.cells];
        for ((level, variance), numbers) in self.measured.iter().zip(noisy) {
            level.spread(numbers, 1.0 / variance, &mut out);
        }
        out
    }

    /// Solves the normal equations by conjugate gradients; as many steps as there are different eigenvalues, which are few.
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; self.cells];
        let mut rest = right.to_vec();
        let mut direction = rest.clone();
        let mut left = dot(&rest, &rest);
        let enough = left * 1e-26;
        for _ in 0..MOST_STEPS {
            if left <= enough || left == 0.0 {
                break;
            }
            let image = self.normal(&direction);
            let step = left / dot(&direction, &image);
            add(&mut x, step, &direction);
            add(&mut rest, -step, &image);
            let next = dot(&rest, &rest);
            let share = next / left;
            direction.iter_mut().zip(&rest).for_each(|(way, rest)| *way = rest + share * *way);
            left = next;
        }
        x
    }

    /// The finest cells that fit all noisy numbers best.
    pub(crate) fn fit(&self, noisy: &[Vec<i128>]) -> Vec<f64> {
        self.solve(&self.seen(&doubles(noisy)))
    }

    /// The same, but none negative, with the same sum.
    pub(crate) fn fit_counts(&self, noisy: &[Vec<i128>]) -> Vec<f64> {
        let right = self.seen(&doubles(noisy));
        let free = self.solve(&right);
        let sum = free.iter().sum::<f64>().max(0.0);
        let start = not_negative(&free, sum);
        // No eigenvalue is larger: a level's is the size of its largest cell.
        let largest: f64 = self.measured.iter().map(|(level, variance)| largest(level) / variance).sum();
        let (mut x, mut ahead, mut pace) = (start.clone(), start, 1.0_f64);
        let steps = (WORK / self.cells.max(1) / self.measured.len().max(1)).clamp(10, MOST_STEPS);
        for _ in 0..steps {
            let slope = self.normal(&ahead);
            let mut next = ahead.clone();
            add(&mut next, -1.0 / largest, &slope);
            add(&mut next, 1.0 / largest, &right);
            let next = not_negative(&next, sum);
            let moved: Vec<f64> = next.iter().zip(&x).map(|(next, x)| next - x).collect();
            // Momentum that points uphill is given up.
            let uphill: f64 =
                ahead.iter().zip(&next).zip(&moved).map(|((a, n), moved)| (a - n) * moved).sum();
            let faster = if uphill > 0.0 { 1.0 } else { (1.0 + (1.0 + 4.0 * pace * pace).sqrt()) / 2.0 };
            let push = if uphill > 0.0 { 0.0 } else { (pace - 1.0) / faster };
            ahead.clone_from(&next);
            add(&mut ahead, push, &moved);
            (x, pace) = (next, faster);
            if dot(&moved, &moved) <= SMALL * SMALL * self.cells as f64 {
                break;
            }
        }
        x
    }

    /// The law of the estimate of one cell of a level, and its variance; `noises` are those of the measured levels.
    pub(crate) fn law(&self, level: &Level, cell: u32, noises: &[&Noise]) -> (Spread, f64) {
        let one: Vec<f64> = level.part_of.iter().map(|&part| f64::from(u8::from(part == cell))).collect();
        let solved = self.solve(&one);
        let variance = dot(&one, &solved);
        let mut terms = Vec::new();
        for ((measured, own), noise) in self.measured.iter().zip(noises) {
            terms.extend(measured.sums(&solved).into_iter().map(|weight| (weight / own, *noise)));
        }
        (Spread::blend(&terms), variance)
    }
}

/// The most steps of any search.
const MOST_STEPS: usize = 2000;
/// Moves that are no longer worth it, in steps.
const SMALL: f64 = 1e-6;
/// So many cells times levels times steps are looked at.
const WORK: usize = 1 << 26;

/// The variance of noise as a weight: noise that is nearly always 0 counts like noise of a thousandth of a step.
pub(crate) fn variance(noise: &Noise) -> f64 {
    noise.standard_deviation().powi(2).max(1e-6)
}

fn largest(level: &Level) -> f64 {
    level.sums(&vec![1.0; level.part_of.len()]).into_iter().fold(0.0, f64::max)
}

fn doubles(noisy: &[Vec<i128>]) -> Vec<Vec<f64>> {
    noisy.iter().map(|numbers| numbers.iter().map(|&number| number as f64).collect()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds factor·b to a.
fn add(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}

/// Whole numbers near these, so that parts add up: `nested` are levels from the whole down to the finest, each made of cells of the one before.
pub(crate) fn round(finest: &[f64], nested: &[&Level], counts: bool) -> Vec<i128> {
    let Some((top, below)) = nested.split_first() else {
        return finest.iter().map(|number| whole(*number)).collect();
    };
    let mut wholes: Vec<i128> = apportion(&top.sums(finest), None, counts);
    let mut above = *top;
    for level in below {
        // The cells of this level in each cell of the level above.
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); above.cells];
        let mut known = vec![false; level.cells];
        for (&upper, &lower) in above.part_of.iter().zip(&level.part_of) {
            if !std::mem::replace(&mut known[lower as usize], true) {
                members[upper as usize].push(lower);
            }
        }
        let sums = level.sums(finest);
        let mut next = vec![0; level.cells];
        for (upper, members) in members.iter().enumerate() {
            let parts: Vec<f64> = members.iter().map(|&lower| sums[lower as usize]).collect();
            let parts = apportion(&parts, Some(wholes[upper]), counts);
            members.iter().zip(parts).for_each(|(&lower, part)| next[lower as usize] = part);
        }
        (wholes, above) = (next, level);
    }
    wholes
}

/// Whole numbers near these that add up to a whole, if there is one.
fn apportion(parts: &[f64], sum: Option<i128>, counts: bool) -> Vec<i128> {
    let given: f64 = parts.iter().sum();
    let target = sum.map_or(given, |sum| sum as f64);
    let parts = match counts {
        true => not_negative(parts, target.max(0.0)),
        false => {
            let more = (target - given) / parts.len().max(1) as f64;
            parts.iter().map(|part| part + more).collect()
        }
    };
    let mut running = 0.0;
    let mut before = 0;
    let mut rounded: Vec<i128> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        running += part;
        // What doubles lost is made good at the end.
        let after = if place + 1 == parts.len() { sum.unwrap_or(whole(running)) } else { whole(running) };
        rounded.push(after - before);
        before = after;
    }
    if counts && let Some(last) = rounded.last().copied().filter(|last| *last < 0) {
        lower(&mut rounded, last);
    }
    rounded
}

/// Takes what the last lacks from those before it.
fn lower(numbers: &mut [i128], mut lacks: i128) {
    for number in numbers.iter_mut().rev() {
        if *number < 0 {
            *number = 0;
            continue;
        }
        let taken = (*number).min(-lacks);
        *number -= taken;
        lacks += taken;
    }
}

fn whole(number: f64) -> i128 {
    number.round() as i128
}
