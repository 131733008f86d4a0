//! [`Fill`]: the nodes of a line that matter, and proof that the others do not.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::line::Line;
use super::saddle::RealMoments;
use super::{Care, MOST_WIDTH, Sum};
use crate::decay::Decay;
use crate::law::Law;
use crate::nodes::{Nodes, Reach, Tilted, UNIT};

/// Evaluates F along a line, as far as needed.
pub(super) struct Fill<'a> {
    pub(super) sum: &'a Sum,
    pub(super) line: &'a mut Line,
    /// The number of the last node.
    pub(super) last: usize,
    /// What may be left out.
    pub(super) goal: f64,
    pub(super) care: Care,
    /// By what factor the kernel may exceed 1/y².
    pub(super) kernel: f64,
    /// How many waves were added up so far.
    pub(super) waves: f64,
    /// How many there are in one node.
    pub(super) width: f64,
}

impl Fill<'_> {
    /// Tilted laws for frequencies up to some y, for so many nodes; `None` where that would take too long.
    fn laws(&mut self, frequency: f64, tolerance: f64, nodes: f64) -> Option<Vec<(Tilted, f64)>> {
        let reach = Reach { tilt: self.line.tilt, frequency, tolerance };
        let expected: f64 = self.sum.terms.iter().map(|(law, _)| Nodes::expected(law, reach)).sum();
        if expected > MOST_WIDTH {
            return None;
        }
        let tilted = |(law, count): &(Law, f64)| (Nodes::of(law, reach).tilted(self.line.tilt), *count);
        let laws: Vec<_> = self.sum.terms.iter().map(tilted).collect();
        self.width = laws.iter().map(|(law, _)| law.width()).sum();
        self.spend(nodes + 1.0)?;
        Some(laws)
    }

    /// Counts the work for so many nodes with the laws made last.
    fn spend(&mut self, nodes: f64) -> Option<()> {
        self.waves += nodes * (self.width + 1.0);
        (self.waves <= self.care.most_waves).then_some(())
    }

    /// 1 + |z| at a frequency: as many times what nodes miss their moments may be off.
    fn size(&self, frequency: f64) -> f64 {
        1.0 + self.line.tilt + frequency
    }

    /// The nodes that matter, in blocks of doubling frequency and falling precision; true when all
    /// further ones seem negligible.
    pub(super) fn near(&mut self, first: f64) -> Option<bool> {
        let uses = self.sum.uses().max(1.0) * self.sum.terms.len().max(1) as f64;
        let (mut frequency, mut log_fallen) = (first, 0.0f64);
        loop {
            let coarsest = 1e-3 / (uses * self.size(frequency));
            let tolerance = (1e-15 / uses * (-log_fallen).exp()).min(coarsest).max(1e-19);
            let begin = self.line.nodes.len();
            let last = ((frequency / self.line.step) as usize + 1).min(self.last);
            let laws = self.laws(frequency, tolerance, last.saturating_sub(begin) as f64)?;
            if begin == 0 {
                let c = self.line.tilt;
                self.line.log_scale = self.sum.mu_squared * c * (c + 1.0) / 2.0
                    + laws.iter().map(|(law, n)| n * law.log_moment()).sum::<f64>();
            }
            for index in begin..=last {
                let y = index as f64 * self.line.step;
                let node = self.line.node(self.sum, &laws, y);
                let z = Complex64::new(self.line.tilt, y);
                log_fallen = ((node.value.norm() + node.error) * (z * (z + 1.0)).norm()).ln();
                self.line.nodes.push(node);
                if index == self.last || log_fallen < (self.goal * y).ln() {
                    return Some(true);
                }
            }
            if self.line.nodes.len() as f64 > self.care.most_nodes {
                return None;
            }
            frequency *= 2.0;
        }
    }

    /// Shows that nothing up to the end of the line is above the goal, or evaluates what is.
    ///
    /// arccos |φ(y)| of one law moves by at most its standard deviation per unit of y, so a value well
    /// below what is needed speaks for its neighbours too. Losses on coarse lattices let F rise again and again.
    pub(super) fn far(&mut self) -> Option<bool> {
        let (step, uses) = (self.line.step, self.sum.uses().max(1.0));
        let (mut index, last) = (self.line.nodes.len(), self.last);
        let slack = 1e-9 + 16.0 * UNIT * uses;
        self.line.tail += self.goal * self.kernel * (1.0 + 1e-9);
        let mut frequency = index as f64 * step;
        let blocks = 1.0 + (last as f64 / index.max(1) as f64).log2().max(0.0).ceil();
        while index <= last {
            frequency = (2.0 * frequency.max(index as f64 * step)).min(last as f64 * step);
            let block = ((frequency / step) as usize).clamp(index, last);
            let tolerance = (1e-2 / (uses * self.size(frequency))).max(1e-19);
            let laws = self.laws(frequency, tolerance, 0.0)?;
            // Σ h/π·B/y² over all nodes from y on is at most B/(π(y − h)), and each block may use up an equal share of the goal.
            let from = (index.max(2) - 1) as f64 * step;
            let enough = (self.goal * PI * from / blocks).ln();
            let mut risen = vec![];
            while index <= block {
                self.spend(1.0)?;
                let y = index as f64 * step;
                let angles: Vec<_> =
                    laws.iter().map(|(law, count)| (law.angle(y), law.deviation(), *count)).collect();
                let bound = |nodes: usize| {
                    let moved = |(angle, deviation, count): &(f64, f64, f64)| {
                        count * (angle - deviation * nodes as f64 * step).max(0.0).cos().ln()
                    };
                    angles.iter().map(moved).sum::<f64>() - self.sum.mu_squared * y * y / 2.0 + slack
                };
                if bound(0) > enough {
                    risen.push((y, bound(0)));
                }
                let mut skipped = 0;
                while bound(2 * skipped + 1) <= enough {
                    skipped = 2 * skipped + 1;
                    if index + skipped > last {
                        break;
                    }
                }
                index += skipped + 1;
            }
            self.add(&risen, frequency);
        }
        Some(true)
    }

    /// Further nodes, given by y and a bound on ln |F(z)/F(c)|, which takes their place where they would take too long.
    fn add(&mut self, risen: &[(f64, f64)], frequency: f64) {
        let Some(highest) = risen.iter().map(|(_, bound)| *bound).reduce(f64::max) else { return };
        let uses = self.sum.uses().max(1.0) * self.sum.terms.len().max(1) as f64;
        let coarsest = 1e-3 / (uses * self.size(frequency));
        let tolerance = (1e-15 / uses * (-highest).exp()).min(coarsest).max(1e-19);
        match self.laws(frequency, tolerance, risen.len() as f64) {
            Some(laws) => {
                let nodes: Vec<_> = risen.iter().map(|(y, _)| self.line.node(self.sum, &laws, *y)).collect();
                self.line.nodes.extend(nodes);
            }
            None => {
                let term = |(y, bound): &(f64, f64)| bound.exp() / (y * y);
                self.line.tail += self.kernel * self.line.step / PI * risen.iter().map(term).sum::<f64>();
            }
        }
    }
}

/// The proven decay of |F| along the line.
pub(super) struct Modulus {
    mu_squared: f64,
    decays: Vec<(Decay, f64)>,
}

impl Modulus {
    pub(super) fn new(sum: &Sum, real: &mut RealMoments<'_>, tilt: f64) -> Self {
        let moments = real.moments(tilt);
        let decays = sum
            .terms
            .iter()
            .zip(moments)
            .map(|((law, count), moments)| (Decay::of(law, tilt, moments.moment()), *count));
        Self { mu_squared: sum.mu_squared, decays: decays.collect() }
    }

    /// ln |F(c + iy)/F(c)| is at most this at y and above.
    pub(super) fn log(&self, y: f64) -> f64 {
        let laws: f64 = self.decays.iter().map(|(decay, count)| count * decay.log_modulus(y)).sum();
        // K(c) is known to a share of 10⁻⁴ in all.
        laws + 1e-3 - self.mu_squared * y * y / 2.0 * (1.0 - 1e-14)
    }

    /// The least y (roughly) beyond which less than `goal` is left.
    pub(super) fn end(&self, step: f64, goal: f64, most_nodes: f64) -> Option<f64> {
        let done = |y: f64| self.log(y) - (PI * (y - step).max(step / 2.0)).ln() <= goal.ln();
        let (mut low, mut high) = (step, step * 2.0);
        while !done(high) {
            (low, high) = (high, high * 2.0);
            if high > step * most_nodes {
                return None;
            }
        }
        for _ in 0..6 {
            let middle = (low * high).sqrt();
            if done(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{Atom, Base, Pieces};
    use demur_exact::Rational;

    /// A line through nodes h apart, of which the first `begin` are known, and losses that are all whole numbers.
    fn tail(
        losses: &[(i32, f64)],
        count: f64,
        step: f64,
        begin: usize,
        last: usize,
        goal: f64,
    ) -> (f64, f64) {
        let atom = |&(loss, probability): &(i32, f64)| {
            Atom::new(Rational::new(loss.into(), 1), probability, probability * f64::from(-loss).exp())
        };
        let pieces = Pieces { atoms: losses.iter().map(atom).collect(), ..Pieces::default() };
        let sum =
            Sum { mu_squared: 0.0, terms: vec![(Law { base: Base::Pieces(pieces), sampling: None }, count)] };
        let tilt = 1.0;
        let saddle = RealMoments::new(&sum).at(tilt);
        let mut line = Line::empty(tilt, step, saddle, (0.0, 2.0));
        line.log_scale = saddle.log_moment;
        line.nodes = (0..begin).map(|index| line.node(&sum, &[], index as f64 * step)).collect();
        let (care, kernel) = (Care::USUAL, 1.0);
        let mut fill = Fill { sum: &sum, line: &mut line, last, goal, care, kernel, waves: 0.0, width: 0.0 };
        assert_eq!(fill.far(), Some(true));
        // What is left out, by adding it up.
        let heavy = |loss: i32, probability: f64| probability * f64::from(loss).exp();
        let whole: f64 = losses.iter().map(|&(loss, p)| heavy(loss, p)).sum();
        let modulus = |y: f64| {
            let wave = |&(loss, p): &(i32, f64)| Complex64::cis(y * f64::from(loss)) * heavy(loss, p);
            (losses.iter().map(wave).sum::<Complex64>().norm() / whole).powf(count)
        };
        let kernel = |y: f64| (Complex64::new(tilt, y) * Complex64::new(tilt + 1.0, y)).norm().recip();
        let nodes = (begin..=last).map(|index| index as f64 * step);
        let added = line.nodes[begin..].iter().map(|node| step / PI * (node.value.norm() + node.error));
        (line.tail + added.sum::<f64>(), nodes.map(|y| step / PI * modulus(y) * kernel(y)).sum())
    }

    /// A loss that is always 0 does not fade at all, not even at the last node.
    #[test]
    fn what_the_last_node_carries_is_counted() {
        for last in [10, 100, 101] {
            let (tail, truth) = tail(&[(0, 1.0)], 1.0, 0.1, last, last, 1e-13);
            assert!(tail >= truth && tail < 1.001 * truth, "{last}: {tail} for {truth}");
        }
    }

    /// Terms that are all one twentieth too large to be left out are not.
    #[test]
    fn what_is_just_above_the_goal_is_counted() {
        let (begin, last, step) = (200, 40_000, 0.1);
        let goal = 1.0 / (1.05 * PI * (begin - 1) as f64 * step);
        let (tail, truth) = tail(&[(0, 1.0)], 1.0, step, begin, last, goal);
        assert!(tail >= truth, "{tail} for {truth}");
    }

    /// What is skipped is negligible, though it comes back in every period.
    #[test]
    fn what_comes_back_is_counted() {
        let high = 1.0 / (1.0 + (-1.0f64).exp());
        for (count, step) in [(3.0, 0.01), (50.0, 0.01), (1e4, 0.001)] {
            for goal in [1e-3, 1e-6, 1e-13] {
                let (tail, truth) = tail(&[(-1, 1.0 - high), (1, high)], count, step, 60, 9000, goal);
                assert!(tail >= truth, "{count} losses, {goal}: {tail} for {truth}");
            }
        }
    }
}
