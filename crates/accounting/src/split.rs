//! Few losses with heavy atoms, such as Laplace noise: the atoms apart, the rest by inversion.
//!
//! **Why.** The moments of a law with atoms do not fall along a vertical line, so that the inversion integral
//! of a few such losses converges slowly. With Kᵢ = Aᵢ + Cᵢ (atoms and flat stretches) the composition is
//!
//! ```text
//! F = ∏(Aᵢ + Cᵢ)^nᵢ = F₀ + F₁ + R
//! ```
//!
//! by how many losses come from stretches: none, one, or more. F₀ is a [table](crate::lattice) of sums of atoms,
//! F₁ the same with one stretch added, whose δ has a formula for each sum. R is the moment
//! function of a positive measure too, and falls like 1/y²: |Aᵢ| ≤ aᵢ = Aᵢ(c) and |Cᵢ| ≤ vᵢ/y give
//!
//! ```text
//! |R| ≤ ∏(aᵢ + vᵢ/y)^nᵢ − ∏aᵢ^nᵢ − Σ nᵢ·(vᵢ/y)·aᵢ^(nᵢ − 1)·∏…
//! ```
//!
//! since the right-hand side has positive coefficients in 1/y, of order 2 and more. With 1/(z(z + 1)) the sum
//! converges like 1/y⁴, and everything said in [`inversion`](crate::inversion) about what it is above δ holds.
//!
//! **Rounding.** R is a difference of products of n factors, each off by a few units: by at most
//! (16n + 32)·2⁻⁵³·∏(aᵢ + |Cᵢ|)^nᵢ.

use demur_exact::Rational;
use num_complex::Complex64;

use crate::Bounds;
use crate::inversion::{Line, Sum};
use crate::lattice::{Points, Table};
use crate::law::{Flat, Law, Pieces, Terms, of_flat};
use crate::nodes::UNIT;

/// The most sums of atoms.
const MOST_SUMS: f64 = 20_000.0;
/// The most losses.
const MOST_USES: f64 = 20_000.0;

/// See the module text.
pub(crate) struct Split {
    none: Option<Table>,
    /// Sums of atoms beside one stretch, and how often the stretch could have come.
    one: Vec<(Option<Table>, Vec<Flat>, f64)>,
    rest: Line,
}

/// A law for the split: its atoms and stretches, as parts of finite losses.
struct Part {
    atoms: Vec<(f64, f64)>,
    flats: Vec<Flat>,
    count: f64,
}

impl Split {
    /// Whether the losses are of the kind that can be split, and not too many.
    pub(crate) fn suits(sum: &Sum) -> bool {
        let mut laws = sum.terms.iter().map(|(law, _)| law);
        sum.mu_squared == 0.0 && sum.uses() <= MOST_USES && laws.all(|law| law.pieces().is_some())
    }

    /// `None` when the losses are of another kind, or too many.
    pub(crate) fn new(terms: &Terms, sum: &Sum, saddle: (f64, f64, f64)) -> Option<Self> {
        let parts: Vec<_> = terms.laws.iter().map(part).collect::<Option<_>>()?;
        if !Self::suits(sum) || parts.iter().all(|part| part.flats.is_empty()) {
            return None;
        }
        let (tilt, uses) = (saddle.0, sum.uses());
        let log_scale = sum.log_scale(tilt);
        let rest = Line::of_part(
            sum,
            saddle,
            |z| remainder(&parts, z, log_scale, uses),
            |y| bound(&parts, tilt, y, log_scale),
        )?;
        let mut one = vec![];
        for (index, (law, count)) in terms.laws.iter().enumerate() {
            if parts[index].flats.is_empty() {
                continue;
            }
            let others = without_one(terms, index);
            one.push((sums(&others)?, flats(law), *count as f64));
        }
        Some(Self { none: sums(terms)?, one, rest })
    }

    /// δ(ε), given that the loss is finite.
    pub(crate) fn delta(&self, epsilon: &Rational) -> Bounds {
        let rest = self.rest.delta(epsilon.to_f64());
        let mut sum = self.none.as_ref().map_or(Bounds::new(0.0, 0.0), |table| table.delta(epsilon));
        sum = Bounds::new(sum.lower + rest.lower, sum.upper + rest.upper);
        for (table, flats, count) in &self.one {
            let Some(table) = table else { continue };
            let (mut lower, mut upper) = (0.0, 0.0);
            for (loss, probability) in table.losses().filter(|(_, p)| *p > 0.0) {
                for flat in flats {
                    let spread = 16.0 * UNIT * (1.0 + epsilon.to_f64() + loss.abs());
                    let part = of_flat(flat, epsilon.to_f64() - loss, spread);
                    lower += probability * part.lower;
                    upper += probability * part.upper;
                }
            }
            let slack = table.error() + 1e-14;
            sum = Bounds::new(
                sum.lower + count * lower * (1.0 - slack),
                sum.upper + count * upper * (1.0 + slack),
            );
        }
        let slack = 8.0 * UNIT;
        Bounds::new((sum.lower * (1.0 - slack)).min(1.0), (sum.upper * (1.0 + slack)).min(1.0))
    }
}

fn part((law, count): &(Law, u64)) -> Option<Part> {
    let pieces = law.pieces()?;
    let finite = 1.0 - pieces.infinite;
    let atoms = pieces.atoms.iter().map(|atom| (atom.loss.to_f64(), atom.probability / finite)).collect();
    Some(Part { atoms, flats: flats(law), count: *count as f64 })
}

/// The stretches of a law, as parts of finite losses.
fn flats(law: &Law) -> Vec<Flat> {
    let of = |pieces: &Pieces| {
        let share = |flat: &Flat| Flat { density: flat.density / (1.0 - pieces.infinite), ..flat.clone() };
        pieces.flats.iter().map(share).collect()
    };
    law.pieces().map(of).unwrap_or_default()
}

fn without_one(terms: &Terms, index: usize) -> Terms {
    let mut others = terms.clone();
    others.laws[index].1 -= 1;
    others.laws.retain(|(_, count)| *count > 0);
    others
}

/// All sums of atoms: `Some(None)` when some law has none, and `None` when there are too many.
fn sums(terms: &Terms) -> Option<Option<Table>> {
    if terms.laws.is_empty() {
        return Some(Some(Table::nothing()));
    }
    if terms.laws.iter().any(|(law, _)| law.pieces().is_none_or(|pieces| pieces.atoms.is_empty())) {
        return Some(None);
    }
    let points = Points::of_atoms(terms).filter(|points| points.count <= MOST_SUMS)?;
    Some(Some(points.table(terms)?))
}

impl Part {
    /// A(z) and C(z).
    fn moments(&self, z: Complex64) -> (Complex64, Complex64) {
        let atoms = self.atoms.iter().map(|(loss, p)| (z * loss).exp() * p).sum();
        let half = z + 0.5;
        let flat = |flat: &Flat| ((half * flat.high).exp() - (half * flat.low).exp()) / half * flat.density;
        (atoms, self.flats.iter().map(flat).sum())
    }

    /// v with |C(c + iy)| ≤ v/y: both ends of an exponential, and its variation between them.
    fn variation(&self, tilt: f64) -> f64 {
        let ends = |flat: &Flat| flat.density * ((tilt + 0.5) * flat.high).exp();
        2.0 * self.flats.iter().map(ends).sum::<f64>()
    }
}

/// R(z)/F(c) and a bound on its error.
fn remainder(parts: &[Part], z: Complex64, log_scale: f64, uses: f64) -> (Complex64, f64) {
    let (mut whole, mut none, mut one) = (Complex64::ONE, Complex64::ONE, Complex64::ZERO);
    let mut size = 1.0;
    let per_use = (-log_scale / uses).exp();
    for part in parts {
        let (atoms, flats) = part.moments(z);
        let (atoms, flats) = (atoms * per_use, flats * per_use);
        let power = |base: Complex64, n: f64| if n == 0.0 { Complex64::ONE } else { base.powu(n as u32) };
        let kept = power(atoms, part.count);
        one = one * kept + none * power(atoms, part.count - 1.0) * flats * part.count;
        none *= kept;
        whole *= power(atoms + flats, part.count);
        size *= (atoms.norm() + flats.norm()).powf(part.count);
    }
    // A stretch much narrower than 1/|z| cancels in its closed form.
    let narrow =
        parts.iter().flat_map(|part| &part.flats).map(|flat| 1.0 / ((flat.high - flat.low) * z.norm()));
    let loss = 1.0 + narrow.fold(0.0, f64::max);
    let ends = parts.iter().flat_map(|part| part.flats.iter().map(|flat| flat.high));
    let reach =
        parts.iter().flat_map(|part| &part.atoms).map(|atom| atom.0.abs()).chain(ends).fold(0.0, f64::max);
    let error = (16.0 * uses * (1.0 + reach * z.norm()) * loss + 32.0) * UNIT * size;
    (whole - none - one, error)
}

/// At least |R(c + iy)|/F(c).
fn bound(parts: &[Part], tilt: f64, y: f64, log_scale: f64) -> f64 {
    // (1 + x)^n − 1 − nx over all laws, with x = v/(ay): in logarithms, for many uses
    let z = Complex64::new(tilt, 0.0);
    let (mut log_none, mut log_growth, mut first) = (0.0, 0.0, 0.0);
    let mut atomless = vec![];
    for part in parts {
        let (atoms, variation) = (part.moments(z).0.re, part.variation(tilt) / y);
        if atoms == 0.0 {
            atomless.push((variation, part.count));
            continue;
        }
        let x = variation / atoms;
        log_none += part.count * atoms.ln();
        log_growth += part.count * x.ln_1p();
        first += part.count * x;
    }
    let none = (log_none - log_scale).exp();
    let grown = log_growth.exp_m1();
    let slack = 1.0 + 1e-6;
    let uses: f64 = atomless.iter().map(|(_, count)| count).sum();
    let product: f64 = atomless.iter().map(|(variation, count)| variation.powf(*count)).product();
    if uses == 0.0 {
        // e^g − 1 − Σnx ≤ (e^g − 1) − first, of second order; at least first²/2·… never below 0
        let exact = grown - first;
        return none * exact.max(first * first / 2.0 * (1.0 + grown)) * slack;
    }
    if uses == 1.0 {
        return none * product * grown * slack;
    }
    none * product * (1.0 + grown) * slack
}
