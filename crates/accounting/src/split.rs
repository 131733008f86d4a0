//! Few losses with heavy atoms, such as Laplace noise: the atoms apart, the rest by inversion.
//!
//! **Why.** The moments of a law with atoms do not fall along a vertical line, so that the inversion integral
//! of a few such losses converges slowly. With Kᵢ = Aᵢ + Cᵢ (atoms and flat stretches) the composition is
//!
//! ```text
//! F = ∏(Aᵢ + Cᵢ)^nᵢ = F₀ + F₁ + R
//! ```
//!
//! by how many losses come from stretches: none, one, or more. F₀ is a [list](crate::sums) of sums of atoms,
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
//! **Near the largest loss** R is smaller than what rounding leaves of it, and has a bound of its own.
//!
//! **Rounding.** R is a difference of products of n factors, each off by a few units: by at most
//! (16n + 32)·2⁻⁵³·∏(aᵢ + |Cᵢ|)^nᵢ.

use demur_exact::Rational;
use num_complex::Complex64;

use crate::Bounds;
use crate::decay::variation;
use crate::inversion::{Line, Sum};
use crate::law::{Base, Flat, Law, Pieces, Sampling, Terms, of_flat, of_sampled_flat};
use crate::nodes::{Nodes, Reach, Share, UNIT};
use crate::sums::Sums;

/// The most sums of atoms.
const MOST_SUMS: usize = 200_000;
/// The most losses.
const MOST_USES: f64 = 20_000.0;
/// The most nodes of the line, and where each is a sum of waves itself.
const MOST_NODES: (f64, f64) = (400_000.0, 100_000.0);
/// What is left out of the line shall be below this, relatively, and where its nodes are sums of waves.
const GOALS: (f64, f64) = (1e-11, 3e-10);
/// What the nodes of a stretch on a sample may miss.
const TOLERANCE: f64 = 1e-14;

/// See the module text.
pub(crate) struct Split {
    none: Option<Sums>,
    /// Sums of atoms beside one stretch, and how often the stretch could have come.
    one: Vec<(Option<Sums>, Vec<Stretch>, f64)>,
    rest: Line,
    /// The largest loss, rounded up, and Σ nᵢvᵢ for bounds vᵢ on the densities of stretches.
    top: (f64, f64),
}

/// A flat stretch, as a part of finite losses.
#[derive(Clone)]
struct Stretch {
    flat: Flat,
    sampling: Option<Sampling>,
}

/// A law for the split: its atoms and stretches, as parts of finite losses.
struct Part {
    atoms: Vec<(f64, f64)>,
    stretches: Vec<Stretch>,
    count: f64,
    /// The stretches on a sample as waves, and up to which frequency.
    waves: (Vec<Share>, f64),
}

impl Split {
    /// Whether the losses are of the kind that can be split, and not too many.
    pub(crate) fn suits(sum: &Sum) -> bool {
        let mut laws = sum.terms.iter().map(|(law, _)| law);
        let pieces = |law: &Law| matches!(law.base, Base::Pieces(_)) && !law.is_mirrored();
        sum.mu_squared == 0.0 && sum.uses() <= MOST_USES && laws.all(pieces)
    }

    /// `None` when the losses are of another kind, or too many. `top` is at least the largest loss.
    pub(crate) fn new(terms: &Terms, sum: &Sum, saddle: (f64, f64, f64), top: f64) -> Option<Self> {
        if !Self::suits(sum) {
            return None;
        }
        let mut parts: Vec<_> = terms.laws.iter().map(Part::of).collect::<Option<_>>()?;
        if parts.iter().all(|part| part.stretches.is_empty()) {
            return None;
        }
        let floor = libm::exp(saddle.2 - 36.0).max(1e-300);
        let none = sums(terms, floor)?;
        let mut one = vec![];
        for (index, (_, count)) in terms.laws.iter().enumerate() {
            if !parts[index].stretches.is_empty() {
                let others = without_one(terms, index);
                one.push((sums(&others, floor)?, parts[index].stretches.clone(), *count as f64));
            }
        }
        let steep = parts.iter().map(|part| part.count * part.variation(0.0)).sum();
        let (tilt, uses) = (saddle.0, sum.uses());
        let log_scale = sum.log_scale(tilt);
        let variations: Vec<_> =
            parts.iter().map(|part| (part.atoms_at(tilt), part.variation(tilt), part.count)).collect();
        let sampled = parts.iter().flat_map(|part| &part.stretches).any(|stretch| stretch.sampling.is_some());
        let (goal, most) = if sampled { (GOALS.1, MOST_NODES.1) } else { (GOALS.0, MOST_NODES.0) };
        let rest = Line::of_part(
            sum,
            saddle,
            |z| remainder(&mut parts, z, log_scale, uses),
            |y| bound(&variations, y, log_scale),
            (goal, most),
        )?;
        Some(Self { none, one, rest, top: (top, steep) })
    }

    /// δ(ε), given that the loss is finite.
    pub(crate) fn delta(&self, epsilon: &Rational) -> Bounds {
        let (exact, epsilon) = (epsilon, epsilon.to_f64());
        let beyond = Rational::try_from(epsilon).map_or(0.0, |rounded| (exact - &rounded).to_f64());
        let rest = self.rest.delta(epsilon);
        let mut upper = rest.upper.min(self.rest_near_top(epsilon));
        let mut lower = rest.lower.min(upper);
        let mut add = |sums: &Sums, count: f64, payoff: &dyn Fn(f64, f64) -> Bounds| {
            let (mut least, mut most) = (0.0, 0.0);
            for (loss, probability) in &sums.points {
                // the difference of two doubles is off by a unit of itself, and ε is what it is above its double further away
                let gap = (epsilon - loss) + beyond;
                let part = payoff(gap, sums.off + 4.0 * UNIT * (gap.abs() + beyond.abs()));
                least += probability * part.lower;
                most += probability * part.upper;
            }
            let slack = sums.share + 1e-14 + sums.points.len() as f64 * UNIT;
            lower += count * least * (1.0 - slack).max(0.0);
            upper += count * (most * (1.0 + slack) + sums.left_out);
        };
        if let Some(none) = &self.none {
            let payoff = |t: f64| -libm::expm1(t.min(0.0));
            add(none, 1.0, &|t, spread| Bounds::new(payoff(t + spread), payoff(t - spread)));
        }
        for (sums, stretches, count) in &self.one {
            let Some(sums) = sums else { continue };
            for stretch in stretches {
                add(sums, *count, &|t, spread| stretch.delta(t, spread));
            }
        }
        let slack = 8.0 * UNIT;
        let upper = (upper * (1.0 + slack)).min(1.0);
        Bounds::new((lower * (1.0 - slack)).min(upper), upper)
    }
}

impl Split {
    /// A bound on δ_R(ε), where ε is τ below the largest loss: τ·(Σ nᵢvᵢτ)²/2.
    ///
    /// Larger losses than ε need every single one to be within τ of its own largest. That a given one is, and comes from a stretch, has
    /// the probability vᵢτ at most, and R has two of these or more. The payoff is 1 − e^(ε − L) ≤ τ.
    fn rest_near_top(&self, epsilon: f64) -> f64 {
        let (top, steep) = self.top;
        let gap = (top - epsilon).max(0.0) * (1.0 + 4.0 * UNIT);
        gap * (steep * gap).powi(2) / 2.0 * (1.0 + 1e-9)
    }
}

impl Stretch {
    /// E_P[(1 − e^(ε − L))⁺] over the stretch.
    fn delta(&self, epsilon: f64, spread: f64) -> Bounds {
        match &self.sampling {
            None => of_flat(&self.flat, epsilon, spread),
            Some(sampling) => of_sampled_flat(&self.flat, sampling, epsilon, spread),
        }
    }

    /// ∫ e^(zL) dP over the stretch, where that has a formula.
    fn moment(&self, z: Complex64) -> Complex64 {
        let (half, flat) = (z + 0.5, &self.flat);
        ((half * flat.high).exp() - (half * flat.low).exp()) / half * flat.density
    }

    /// The stretch as a law of its own.
    fn law(&self) -> Law {
        let pieces = Pieces { flats: vec![self.flat.clone()], ..Pieces::default() };
        Law { base: Base::Pieces(pieces), sampling: self.sampling.clone() }
    }
}

fn without_one(terms: &Terms, index: usize) -> Terms {
    let mut others = terms.clone();
    others.laws[index].1 -= 1;
    others.laws.retain(|(_, count)| *count > 0);
    others
}

/// All sums of atoms: `Some(None)` when some law has none, and `None` when there are too many.
fn sums(terms: &Terms, floor: f64) -> Option<Option<Sums>> {
    if terms.laws.iter().any(|(law, _)| law.atoms().is_none()) {
        return Some(None);
    }
    Sums::of_atoms(&terms.laws, floor, MOST_SUMS).map(Some)
}

impl Part {
    fn of((law, count): &(Law, u64)) -> Option<Self> {
        let Base::Pieces(pieces) = &law.base else { return None };
        let finite = 1.0 - law.infinite();
        let stretch = |flat: &Flat| Stretch {
            flat: Flat { density: flat.density / finite, ..flat.clone() },
            sampling: law.sampling.clone(),
        };
        let stretches = pieces.flats.iter().map(stretch).collect();
        let atoms = law.atoms().unwrap_or_default();
        Some(Self { atoms, stretches, count: *count as f64, waves: (vec![], 0.0) })
    }

    /// A(c).
    fn atoms_at(&self, tilt: f64) -> f64 {
        self.atoms.iter().map(|(loss, p)| libm::exp(tilt * loss) * p).sum()
    }

    /// A(z) and C(z), and by how much that may be off besides what rounding the formula costs.
    fn moments(&mut self, z: Complex64) -> (Complex64, Complex64, f64) {
        let atoms = self.atoms.iter().map(|(loss, p)| (z * loss).exp() * p).sum();
        if self.stretches.iter().all(|stretch| stretch.sampling.is_none()) {
            let stretches = self.stretches.iter().map(|stretch| stretch.moment(z)).sum();
            return (atoms, stretches, 0.0);
        }
        if self.waves.0.is_empty() || z.im > self.waves.1 {
            let frequency = (2.0 * z.im).max(4.0 * z.re);
            let reach = Reach { tilt: z.re, frequency, tolerance: TOLERANCE / self.count };
            let wave = |stretch: &Stretch| Nodes::of(&stretch.law(), reach).share(z.re);
            self.waves = (self.stretches.iter().map(wave).collect(), frequency);
        }
        let (mut sum, mut error) = (Complex64::ZERO, 0.0);
        for wave in &self.waves.0 {
            let (value, off) = wave.at(z.im);
            sum += value;
            error += off;
        }
        (atoms, sum, error)
    }

    /// v with |C(c + iy)| ≤ v/y: the total variation of the tilted density.
    fn variation(&self, tilt: f64) -> f64 {
        let of = |stretch: &Stretch| variation(&stretch.flat, stretch.sampling.as_ref(), tilt).1;
        self.stretches.iter().map(of).sum::<f64>() * (1.0 + 1e-9)
    }
}

/// R(z)/F(c) and a bound on its error.
fn remainder(parts: &mut [Part], z: Complex64, log_scale: f64, uses: f64) -> (Complex64, f64) {
    let (mut whole, mut none, mut one) = (Complex64::ONE, Complex64::ONE, Complex64::ZERO);
    let (mut size, mut missing) = (1.0, 0.0);
    let per_use = (-log_scale / uses).exp();
    for part in parts.iter_mut() {
        let (atoms, flats, off) = part.moments(z);
        let (atoms, flats) = (atoms * per_use, flats * per_use);
        let power = |base: Complex64, n: f64| if n == 0.0 { Complex64::ONE } else { base.powu(n as u32) };
        let kept = power(atoms, part.count);
        one = one * kept + none * power(atoms, part.count - 1.0) * flats * part.count;
        none *= kept;
        whole *= power(atoms + flats, part.count);
        let largest = atoms.norm() + flats.norm();
        size *= largest.powf(part.count);
        missing += 2.1 * part.count * off * per_use / largest;
    }
    // A stretch much narrower than 1/|z| cancels in its closed form.
    let stretches = || parts.iter().flat_map(|part| &part.stretches);
    let plain = stretches().filter(|stretch| stretch.sampling.is_none()).map(|stretch| &stretch.flat);
    let narrow = plain.map(|flat| 1.0 / ((flat.high - flat.low) * z.norm()));
    let loss = 1.0 + narrow.fold(0.0, f64::max);
    // on a sample the waves know what they are off by
    let plain = stretches().filter(|stretch| stretch.sampling.is_none()).map(|stretch| &stretch.flat);
    let ends = plain.map(|flat| flat.high.abs().max(flat.low.abs()));
    let reach =
        parts.iter().flat_map(|part| &part.atoms).map(|atom| atom.0.abs()).chain(ends).fold(0.0, f64::max);
    let error = (16.0 * uses * (1.0 + reach * z.norm()) * loss + 32.0) * UNIT + missing;
    (whole - none - one, error * size)
}

/// At least |R(c + iy)|/F(c), from A(c), v and the count of each law.
fn bound(parts: &[(f64, f64, f64)], y: f64, log_scale: f64) -> f64 {
    // (1 + x)^n − 1 − nx over all laws, with x = v/(ay): in logarithms, for many uses
    let (mut log_none, mut log_growth, mut first) = (0.0, 0.0, 0.0);
    let mut atomless = vec![];
    for (atoms, variation, count) in parts.iter().copied() {
        let variation = variation / y;
        if atoms == 0.0 {
            atomless.push((variation, count));
            continue;
        }
        let x = variation / atoms;
        log_none += count * atoms.ln();
        log_growth += count * x.ln_1p();
        first += count * x;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stretches of Laplace noise: ∫ g²(2 − ℓ)·(e^(ℓ/2) − e^(ε − ℓ/2)) dℓ from ε on.
    #[test]
    fn what_is_near_the_largest_loss_is_bounded() {
        let terms = Terms::of(&"laplace(epsilon=1)*2".parse().unwrap()).unwrap();
        let sum = Sum {
            mu_squared: 0.0,
            terms: terms.laws.iter().map(|(law, n)| (law.clone(), *n as f64)).collect(),
        };
        let split = Split::new(&terms, &sum, (10.0, 2.0, -20.0), 2.0).unwrap();
        for gap in [1e-7, 1e-3, 0.1, 0.5] {
            let (epsilon, cells) = (2.0 - gap, 1000);
            let height = |index: i32| {
                let below = gap * (f64::from(index) + 0.5) / f64::from(cells);
                let loss = 2.0 - below;
                below * (libm::exp(loss / 2.0) - libm::exp(epsilon - loss / 2.0)) * gap / f64::from(cells)
            };
            let density = 0.25 * libm::exp(-0.5);
            let truth = density * density * (0..cells).map(height).sum::<f64>();
            let bound = split.rest_near_top(epsilon);
            assert!(truth <= bound && bound < 100.0 * truth, "{gap}: {truth} {bound}");
            let exact = Rational::try_from(epsilon).unwrap();
            let found = split.delta(&exact);
            let one = of_flat(&split.one[0].1[0].flat, epsilon - 1.0, 0.0).lower;
            let known = 0.25 * -libm::expm1(-gap) + one + truth;
            assert!(
                found.lower <= known * (1.0 + 1e-6) && known <= found.upper * (1.0 + 1e-6),
                "{gap}: {known} {found:?}"
            );
        }
    }
}
