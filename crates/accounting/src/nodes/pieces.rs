//! Nodes of atoms and flat stretches, sampled or not.
//!
//! An atom is its own node. A flat stretch is cut into panels of half-width at most 1, and each gets a
//! Gauss–Legendre rule that is large enough for the highest frequency; on the ellipse of ρ around
//! a panel [m − a, m + a] with half-axes a(ρ ± 1/ρ)/2 the integrand g·e^(ℓ/2)·(e^(zℓ) − 1) is at most
//! g·e^(x⁺/2)·(e^(c·x⁺ + y·τ) + 1), with x⁺ the largest real part, or 0 if that is larger, and τ the largest
//! imaginary part. On a sample r = 1 − q + q·e^ℓ turns and grows less than e^ℓ does: with s = q·e^x/r(x), which grows with x,
//!
//! ```text
//! r(x + iτ)/r(x) = 1 + s(e^(iτ) − 1),    |r(x + iτ)| ≤ r(x),    |arg r| ≤ min(τ, sτ/(1 − s(1 − cos τ)))
//! ```
//!
//! where the last denominator is positive. So e^(zL) is at most r(x)^c·e^(y·|arg r|) when the person is removed. When added it is
//! at most |r|^(−c)·e^(y·|arg r|), and |r|² = r(x)²·(1 − 4s(1 − s)·sin²(τ/2)). τ stays below ¾π, where r has no zero.

use std::f64::consts::PI;

use super::gauss_legendre::{SIZES, log_error, rule};
use super::{Nodes, Reach};
use crate::law::{Direction, Flat, Pieces, Sampling};

pub(super) fn nodes(pieces: &Pieces, sampling: Option<&Sampling>, reach: Reach) -> Nodes {
    let mut nodes = Nodes::default();
    let negligible = 1e-3 * reach.tolerance / (1.0 + pieces.atoms.len() as f64);
    let mut weigh = Weigh { nodes: &mut nodes, sampling, missing: 0.0 };
    for atom in &pieces.atoms {
        weigh.atom((atom.loss.to_f64(), atom.probability, atom.other), reach.tilt, negligible);
    }
    let panels = pieces.flats.iter().flat_map(|flat| panels(flat, sampling, reach)).collect::<Vec<_>>();
    let share = reach.tolerance / panels.len().max(1) as f64;
    let mut missing = weigh.missing;
    for panel in panels {
        let (index, error) = size(&panel, sampling, reach, share);
        missing += error;
        let (middle, half) = ((panel.low + panel.high) / 2.0, (panel.high - panel.low) / 2.0);
        for (x, weight) in &rule(index).nodes {
            let loss = middle + half * x;
            let height = half * weight * panel.density;
            weigh.push(loss, height * libm::exp(loss / 2.0), height * libm::exp(-loss / 2.0));
        }
    }
    let mut finite = 1.0 - pieces.infinite;
    if let Some(sampling) = sampling {
        finite = match sampling.direction {
            Direction::Remove | Direction::Replace => 1.0 - sampling.rate * pieces.infinite,
            Direction::Add => 1.0,
        };
        if pieces.infinite > 0.0 {
            let (loss, probability) = sampling.vanishing(pieces.infinite);
            nodes.push(loss, probability, 2.0 * loss.abs());
        }
    }
    for block in &mut nodes.blocks {
        block.weights = block.weights.map(|weight| weight / finite);
        block.logs = block.logs.map(|log| log - libm::log(finite));
    }
    nodes.missing = missing / finite;
    // What Q has on finite losses: all, but where the person is added the part that is P's alone.
    nodes.imbalance = match sampling {
        None => 0.0,
        Some(Sampling { rate, direction: Direction::Remove | Direction::Replace }) => {
            -rate * pieces.infinite / finite
        }
        Some(Sampling { rate, direction: Direction::Add }) => rate * pieces.infinite,
    };
    nodes
}

/// About how many nodes there would be.
pub(super) fn expected(pieces: &Pieces, sampling: Option<&Sampling>, reach: Reach) -> f64 {
    let nodes = |flat: &Flat| 16.0 + 8.0 * (flat.high - flat.low) + turns(flat, sampling, reach);
    pieces.atoms.len() as f64 + pieces.flats.iter().map(nodes).sum::<f64>()
}

/// How far the fastest wave turns along a stretch.
fn turns(flat: &Flat, sampling: Option<&Sampling>, reach: Reach) -> f64 {
    let loss = |loss: f64| sampling.map_or(loss, |sampling| sampling.loss(loss));
    (reach.frequency + reach.tilt) * (loss(flat.high) - loss(flat.low)).abs()
}

struct Weigh<'a> {
    nodes: &'a mut Nodes,
    sampling: Option<&'a Sampling>,
    /// What atoms that do not count add up to.
    missing: f64,
}

impl Weigh<'_> {
    /// An atom, unless it counts neither here nor at z = −1, nor in the variance.
    fn atom(&mut self, (loss, probability, other): (f64, f64, f64), tilt: f64, negligible: f64) {
        let (sampled, weight) = match self.sampling {
            None => (loss, probability),
            Some(sampling) => (sampling.loss(loss), sampling.probability(probability, other)),
        };
        let heavy = weight.ln() + (tilt * sampled).max(-sampled).max(0.0) + libm::log1p(sampled * sampled);
        if heavy < negligible.ln() {
            self.missing += 4.0 * negligible;
        } else {
            self.push(loss, probability, other);
        }
    }

    fn push(&mut self, loss: f64, probability: f64, other: f64) {
        match self.sampling {
            None => self.nodes.push(loss, probability, 2.0 * loss.abs()),
            Some(sampling) => {
                let (sampled, probability) = (sampling.loss(loss), sampling.probability(probability, other));
                // q·e^ℓ/(1 + q(e^ℓ − 1))
                let slope = 1.0 / (1.0 + (1.0 - sampling.rate) / sampling.rate * libm::exp(-loss));
                let scale = 2.0 * sampled.abs() + slope * (1.0 + loss.abs());
                self.nodes.push(sampled, probability, scale);
            }
        }
    }
}

/// The stretch cut so that one rule can follow the highest frequency on each part.
fn panels(flat: &Flat, sampling: Option<&Sampling>, reach: Reach) -> Vec<Flat> {
    const MOST_TURNS: f64 = 100.0;
    let width = flat.high - flat.low;
    let fast = if sampling.is_none() { turns(flat, None, reach) / MOST_TURNS } else { 0.0 };
    let count = (width / 2.0).max(fast).ceil().max(1.0) as usize;
    let end = |i: usize| if i == count { flat.high } else { flat.low + width * (i as f64 / count as f64) };
    let even = (0..count).map(|i| Flat { low: end(i), high: end(i + 1), ..flat.clone() });
    // on a sample waves turn faster the larger the loss is
    let (mut waiting, mut panels): (Vec<Flat>, Vec<Flat>) = (even.collect(), vec![]);
    while let Some(panel) = waiting.pop() {
        let middle = (panel.low + panel.high) / 2.0;
        if sampling.is_none() || turns(&panel, sampling, reach) <= MOST_TURNS || middle <= panel.low {
            panels.push(panel);
            continue;
        }
        waiting.push(Flat { high: middle, ..panel.clone() });
        waiting.push(Flat { low: middle, ..panel });
    }
    panels
}

/// ln of a bound on |e^(zL)|, and on 1, where Re ℓ is in a range and |Im ℓ| ≤ τ; `None` where r may vanish.
fn log_wave(sampling: Option<&Sampling>, reach: Reach, (left, right): (f64, f64), turn: f64) -> Option<f64> {
    let Some(sampling) = sampling else {
        return Some(reach.tilt * right.max(0.0) + reach.frequency * turn);
    };
    if turn > 0.75 * PI {
        return None;
    }
    let slope = |loss: f64| 1.0 / (1.0 + (1.0 - sampling.rate) / sampling.rate * libm::exp(-loss));
    let (least, most) = (slope(left), slope(right));
    let square = libm::sin(turn / 2.0).powi(2);
    let kept = 1.0 - 2.0 * most * square;
    let angle = if kept > 0.0 { turn.min(most * turn / kept) } else { turn };
    let log = match sampling.direction {
        Direction::Remove | Direction::Replace => sampling.loss(right),
        Direction::Add => {
            let both = |slope: f64| slope * (1.0 - slope);
            let bend = if least <= 0.5 && most >= 0.5 { 0.25 } else { both(least).max(both(most)) };
            sampling.loss(left) - 0.5 * libm::log1p(-4.0 * bend * square)
        }
    };
    Some((reach.tilt * log.max(0.0) + reach.frequency * angle) * (1.0 + 1e-12))
}

/// The least rule whose error is below the tolerance, and that error.
fn size(panel: &Flat, sampling: Option<&Sampling>, reach: Reach, tolerance: f64) -> (usize, f64) {
    let (middle, half) = ((panel.low + panel.high) / 2.0, (panel.high - panel.low) / 2.0);
    let last = SIZES.len() - 1;
    // (ρ, ln of a bound on its ellipse)
    let ellipses: Vec<(f64, f64)> = (1..=40)
        .filter_map(|i| {
            let rho = 1.0 + f64::from(i * i) / 20.0;
            let (reaching, tall) = (half * (rho + 1.0 / rho) / 2.0, half * (rho - 1.0 / rho) / 2.0);
            let bound = log_wave(sampling, reach, (middle - reaching, middle + reaching), tall)?;
            // the densities of both P and Q stay below g·e^(|ℓ|/2)·max(1, …)
            let spread = (middle.abs() + reaching) * if sampling.is_some() { 1.5 } else { 0.5 };
            Some((rho, bound + 2f64.ln() + panel.density.ln() + spread + half.ln()))
        })
        .collect();
    let error = |n: usize| {
        let logs = ellipses.iter().map(|(rho, bound)| log_error(n, *rho, *bound));
        logs.fold(f64::INFINITY, f64::min).exp()
    };
    let found = SIZES.iter().position(|&n| error(n) <= tolerance).unwrap_or(last);
    (found, error(SIZES[found]))
}

#[cfg(test)]
mod tests {
    use num_complex::Complex64;

    use super::*;

    /// |e^(zL)| all over the rectangle, for all z of the reach, is below its bound; and not by much when the person is removed.
    #[test]
    fn no_wave_is_above_its_bound() {
        for (rate, left, right) in [(0.3, -1.0, 1.2), (0.004, -0.5, 0.5), (0.9, -2.0, 0.0), (1e-6, 0.0, 3.0)]
        {
            for direction in [Direction::Remove, Direction::Add] {
                let sampling = Sampling { rate, direction };
                for (tilt, frequency, turn) in
                    [(2.0, 5.0, 0.3), (30.0, 1e4, 1.5), (0.5, 0.0, 2.3), (400.0, 3.0, 2.0)]
                {
                    let reach = Reach { tilt, frequency, tolerance: 1e-15 };
                    let bound = log_wave(Some(&sampling), reach, (left, right), turn).unwrap();
                    let mut highest = 0.0f64;
                    for index in 0..1681 {
                        let share = |index: i32| f64::from(index) / 40.0;
                        let loss = Complex64::new(
                            left + (right - left) * share(index % 41),
                            turn * (2.0 * share(index / 41) - 1.0),
                        );
                        let log = (1.0 + rate * (loss.exp() - 1.0)).ln();
                        let log = if direction == Direction::Add { -log } else { log };
                        for z in [Complex64::new(tilt, frequency), Complex64::new(tilt, -frequency)] {
                            highest = highest.max((z * log).re);
                        }
                    }
                    let name = format!("{rate} {direction:?} {tilt} {frequency} {turn}: {highest} {bound}");
                    assert!(highest <= bound, "{name}");
                    let simple = direction == Direction::Remove && turn < 0.5;
                    assert!(!simple || bound < 1.3 * highest + 0.1, "{name}");
                }
            }
        }
    }

    /// A rare sample turns its waves slowly, and needs no more nodes for that.
    #[test]
    fn rare_samples_need_few_nodes() {
        let flat = Flat { low: -1.0, high: 1.0, density: 0.2 };
        let pieces = Pieces { flats: vec![flat], ..Pieces::default() };
        let sampling = Sampling { rate: 1e-3, direction: Direction::Remove };
        let reach = Reach { tilt: 100.0, frequency: 1e5, tolerance: 1e-14 };
        let nodes = nodes(&pieces, Some(&sampling), reach);
        assert!(
            nodes.missing <= 1e-13 && nodes.blocks.len() < 200,
            "{} {}",
            nodes.missing,
            nodes.blocks.len()
        );
        let more = super::nodes(&pieces, Some(&sampling), Reach { frequency: 4e5, tilt: 200.0, ..reach });
        for y in [0.0, 10.0, 3e3, 1e5] {
            let [(few, first), (many, second)] = [&nodes, &more].map(|nodes| nodes.share(100.0).at(y));
            assert!((few - many).norm() <= first + second && first < 1e-9, "{y}: {few} {many} {first:e}");
        }
    }
}
