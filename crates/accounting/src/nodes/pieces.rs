//! Nodes of atoms and flat stretches, sampled or not.
//!
//! An atom is its own node. A flat stretch is cut into panels of half-width at most 1, and each gets a
//! Gauss–Legendre rule that is large enough for the highest frequency; on the ellipse of ρ around
//! a panel [m − a, m + a] with half-axes a(ρ ± 1/ρ)/2 the integrand g·e^(ℓ/2)·(e^(zℓ) − 1) is at most
//! g·e^(x⁺/2)·(e^(c·x⁺ + y·τ) + 1), with x⁺ the largest real part, or 0 if that is larger, and τ the largest
//! imaginary part. On a sample |Im ln r| ≤ |Im ℓ| and ln |r| ≤ max(0, Re ℓ) keep the bound true for
//! Re z ≥ 0 when the person is removed; when added, |r| ≥ r(Re ℓ)·cos(τ/2) costs a factor cos(τ/2)^(−c) beside
//! (1 − q)^(−c). τ stays below ¾π, where r has no zero.

use std::f64::consts::PI;

use super::gauss_legendre::{SIZES, log_error, rule};
use super::{Nodes, Reach};
use crate::law::{Direction, Flat, Pieces, Sampling};

pub(super) fn nodes(pieces: &Pieces, sampling: Option<&Sampling>, reach: Reach) -> Nodes {
    let mut nodes = Nodes::default();
    let mut weigh = Weigh { nodes: &mut nodes, sampling };
    for atom in &pieces.atoms {
        weigh.push(atom.loss.to_f64(), atom.probability, atom.other);
    }
    let panels = pieces.flats.iter().flat_map(|flat| panels(flat, reach)).collect::<Vec<_>>();
    let share = reach.tolerance / panels.len().max(1) as f64;
    let mut missing = 0.0;
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
pub(super) fn expected(pieces: &Pieces, reach: Reach) -> f64 {
    let turns = |flat: &Flat| (reach.frequency + reach.tilt) * (flat.high - flat.low);
    pieces.atoms.len() as f64 + pieces.flats.iter().map(|flat| 16.0 + turns(flat)).sum::<f64>()
}

struct Weigh<'a> {
    nodes: &'a mut Nodes,
    sampling: Option<&'a Sampling>,
}

impl Weigh<'_> {
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
fn panels(flat: &Flat, reach: Reach) -> Vec<Flat> {
    let width = flat.high - flat.low;
    let turns = (reach.frequency + reach.tilt) * width / 100.0;
    let count = (width / 2.0).max(turns).ceil().max(1.0) as usize;
    let end = |i: usize| flat.low + width * (i as f64 / count as f64);
    (0..count)
        .map(|i| Flat {
            low: end(i),
            high: if i + 1 == count { flat.high } else { end(i + 1) },
            density: flat.density,
        })
        .collect()
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
            let right = (middle + reaching).max(0.0);
            let mut bound = reach.tilt * right + reach.frequency * tall;
            if let Some(sampling) = sampling {
                if tall > 0.75 * PI {
                    return None;
                }
                if sampling.direction == Direction::Add {
                    let lowest = libm::log1p(-sampling.rate) + (tall / 2.0).cos().ln();
                    bound = reach.frequency * tall - reach.tilt * lowest;
                }
            }
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
