//! [`Atoms`]: the values of one loss, and the sums of several uses of it.

use super::Sums;
use crate::law::{Atom, Base, Direction, Law};
use crate::nodes::UNIT;

/// The most products in a convolution.
const MOST_PRODUCTS: f64 = 2e7;
/// The longest row of sums that is worth its convolution.
const LONGEST: f64 = 4000.0;
/// The most ways in which values can be combined.
const MOST_WAYS: usize = 200_000;
/// Atoms that are less likely than this do not count when their number is guessed.
const RARE: f64 = 1e-25;

/// The values of a loss, given that it is finite, in rising order.
pub(super) struct Atoms {
    /// (loss, probability).
    values: Vec<(f64, f64)>,
    /// By how much a loss may be off, and a probability as a share of itself.
    off: f64,
    share: f64,
    /// How far apart all values are, where that is one number.
    step: Option<f64>,
}

impl Law {
    /// Whether the loss has finitely many values.
    pub(crate) fn has_atoms_alone(&self) -> bool {
        match &self.base {
            Base::Pieces(pieces) => pieces.flats.is_empty() && !pieces.atoms.is_empty(),
            Base::Gaussian { .. } => false,
        }
    }

    /// The losses that have a probability of their own, given that the loss is finite.
    pub(crate) fn atoms(&self) -> Option<Vec<(f64, f64)>> {
        Atoms::of(self).map(|atoms| atoms.values)
    }
}

impl Atoms {
    /// The atoms of a law that may have more than these; `None` when it has none.
    pub(super) fn of(law: &Law) -> Option<Self> {
        let Base::Pieces(pieces) = &law.base else { return None };
        let finite = 1.0 - law.infinite();
        let (mut values, mut off, mut step) = (vec![], 0.0f64, None);
        match &law.sampling {
            None => {
                let mut atoms: Vec<_> = pieces.atoms.iter().collect();
                atoms.sort_by(|a, b| a.loss.cmp(&b.loss));
                values.extend(atoms.iter().map(|atom| (atom.loss.to_f64(), atom.probability / finite)));
                off = atoms.iter().map(|atom| atom.rest.abs() * (1.0 + 1e-9)).fold(0.0, f64::max);
                let gap = |pair: &[&Atom]| &pair[1].loss - &pair[0].loss;
                let first = atoms.windows(2).next().map(gap);
                if let Some(first) = first.filter(|first| atoms.windows(2).all(|pair| gap(pair) == *first)) {
                    step = Some(first.to_f64());
                }
            }
            Some(sampling) => {
                for atom in &pieces.atoms {
                    let (base, loss) = (atom.loss.to_f64(), sampling.loss(atom.loss.to_f64()));
                    let slope = 1.0 / (1.0 + (1.0 - sampling.rate) / sampling.rate * libm::exp(-base));
                    off = off.max(16.0 * UNIT * (2.0 * loss.abs() + slope * (1.0 + base.abs())));
                    values.push((loss, sampling.probability(atom.probability, atom.other) / finite));
                }
                if pieces.infinite > 0.0 {
                    let (loss, probability) = sampling.vanishing(pieces.infinite);
                    values.push((loss, probability / finite));
                }
                if sampling.direction == Direction::Replace {
                    values = mirrored(values);
                }
                values.sort_by(|a, b| a.0.total_cmp(&b.0));
                step = (values.len() == 2).then(|| values[1].0 - values[0].0);
            }
        }
        values.retain(|value| value.1 > 0.0);
        (!values.is_empty()).then_some(Self { values, off, share: 64.0 * UNIT, step })
    }

    /// Whether all values are equally far apart.
    pub(super) fn is_lattice(&self) -> bool {
        self.step.is_some()
    }

    /// About how many sums so many uses have.
    pub(super) fn expected(&self, count: u64) -> f64 {
        let (kinds, count) = (self.values.iter().filter(|value| value.1 > RARE).count() as f64, count as f64);
        if self.values.len() < 2 || count == 1.0 {
            return kinds;
        }
        match self.step {
            Some(step) => {
                let mean: f64 = self.values.iter().map(|(loss, p)| loss * p).sum();
                let variance: f64 = self.values.iter().map(|(loss, p)| (loss - mean).powi(2) * p).sum();
                let sums = (kinds * count).min(24.0 * (variance * count).sqrt() / step + kinds);
                if sums > LONGEST { f64::INFINITY } else { sums }
            }
            // C(n + m − 1, m − 1), of which one half is listed at a time
            None => {
                let choices = (1..kinds as u32).map(|i| (count + f64::from(i)) / f64::from(i));
                choices.product::<f64>().min(1e30)
            }
        }
    }

    /// The sums of so many uses, without those that together are less likely than `floor`.
    pub(super) fn uses(&self, count: u64, floor: f64) -> Option<Sums> {
        let n = count as f64;
        let largest = self.values.iter().map(|value| value.0.abs()).fold(0.0, f64::max);
        let mut sums = match self.step {
            _ if count == 1 => self.once(floor),
            Some(step) => self.convolved(count, step, floor)?,
            None => self.counted(count, floor)?,
        };
        sums.off = n * self.off + 8.0 * UNIT * n * largest;
        Some(sums)
    }

    /// A single use.
    fn once(&self, floor: f64) -> Sums {
        let negligible = floor / (8.0 * self.values.len() as f64);
        let values = self.values.iter().copied();
        let (points, rare): (Vec<_>, Vec<(f64, f64)>) = values.partition(|value| value.1 >= negligible);
        let left_out = rare.iter().map(|value| value.1).sum::<f64>() * (1.0 + 1e-9);
        Sums { points, share: self.share, off: self.off, left_out }
    }

    /// Values that are equally far apart.
    fn convolved(&self, count: u64, step: f64, floor: f64) -> Option<Sums> {
        let one = Row { first: 0, values: self.values.iter().map(|value| value.1).collect(), left_out: 0.0 };
        let (mut base, mut product, mut rest) = (one, None::<Row>, count);
        let negligible = floor / (4.0 * (count as f64).log2().ceil().max(1.0));
        let mut longest = 1.0f64;
        loop {
            if rest % 2 == 1 {
                product = Some(match product {
                    Some(product) => product.plus(&base, negligible)?,
                    None => base.clone(),
                });
            }
            rest /= 2;
            if rest == 0 {
                break;
            }
            base = base.plus(&base, negligible / rest as f64)?;
            longest = longest.max(base.values.len() as f64);
        }
        let Row { first, values, left_out } = product?;
        let lowest = self.values[0].0 * count as f64;
        let loss = |index: usize| lowest + (first + index) as f64 * step;
        let points = values.into_iter().enumerate().map(|(index, p)| (loss(index), p)).collect();
        let rounds = 2.0 + (count as f64).log2();
        let share = self.share * count as f64 + 2.0 * (longest + 2.0) * rounds * UNIT;
        Some(Sums { points, share, off: 0.0, left_out })
    }

    /// Any values: by how often each came.
    fn counted(&self, count: u64, floor: f64) -> Option<Sums> {
        // the likeliest first, so that branches of rare values are cut at once
        let mut values = self.values.clone();
        values.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut later = vec![0.0];
        for (_, probability) in values.iter().rev() {
            later.push(later[later.len() - 1] + probability);
        }
        later.reverse();
        let log_whole = libm::lgamma(count as f64 + 1.0);
        let mut tree = Tree {
            values: &values,
            later: &later,
            negligible: floor.ln() - (MOST_WAYS as f64).ln(),
            points: vec![],
            left_out: 0.0,
        };
        tree.branch(0, count, log_whole, 0.0)?;
        let Tree { mut points, left_out, .. } = tree;
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        // logarithms of factorials and powers, each off by 4 units of the largest of them
        let smallest = self.values.iter().map(|value| -f64::ln(value.1)).fold(1.0, f64::max);
        let logs = 2.0 * log_whole + count as f64 * smallest + self.values.len() as f64;
        let share = self.share * count as f64 + 16.0 * UNIT * logs;
        Some(Sums { points, share, off: 0.0, left_out })
    }
}

/// The law for E ≥ 1 on both sides of 0: a loss of −ℓ is e^(−ℓ) times as likely as ℓ, and the rest is at 0.
fn mirrored(values: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let above: Vec<_> = values.into_iter().filter(|(loss, _)| *loss > 0.0).collect();
    let below: Vec<_> = above.iter().map(|(loss, p)| (-loss, p * libm::exp(-loss))).collect();
    let both = above.into_iter().chain(below);
    let mut all: Vec<_> = both.collect();
    let rest = 1.0 - all.iter().map(|value| value.1).sum::<f64>();
    all.push((0.0, rest.max(0.0)));
    all
}

/// Probabilities of whole multiples of a step.
#[derive(Clone)]
struct Row {
    first: usize,
    values: Vec<f64>,
    left_out: f64,
}

impl Row {
    /// The convolution, without ends that are less likely than `negligible`.
    fn plus(&self, other: &Self, negligible: f64) -> Option<Self> {
        let (a, b) = (&self.values, &other.values);
        if a.len() as f64 * b.len() as f64 > MOST_PRODUCTS {
            return None;
        }
        let mut values = vec![0.0; a.len() + b.len() - 1];
        for (i, x) in a.iter().enumerate() {
            for (sum, y) in values[i..].iter_mut().zip(b) {
                *sum += x * y;
            }
        }
        let (mut low, mut high, mut cut) = (0, values.len(), 0.0);
        while high - low > 1 && cut + values[low] < negligible / 2.0 {
            cut += values[low];
            low += 1;
        }
        while high - low > 1 && cut + values[high - 1] < negligible {
            cut += values[high - 1];
            high -= 1;
        }
        let left_out = self.left_out + other.left_out + cut * (1.0 + 1e-9);
        Some(Self { first: self.first + other.first + low, values: values[low..high].to_vec(), left_out })
    }
}

/// All ways to choose values.
struct Tree<'a> {
    values: &'a [(f64, f64)],
    /// The probability of each value and those after it.
    later: &'a [f64],
    negligible: f64,
    points: Vec<(f64, f64)>,
    left_out: f64,
}

impl Tree<'_> {
    /// The ways in which the values from some index on share what uses are left. `log` is ln of n!/∏k!·∏p^k so far.
    fn branch(&mut self, index: usize, left: u64, log: f64, sum: f64) -> Option<()> {
        let (loss, probability) = self.values[index];
        if left == 0 || index + 1 == self.values.len() {
            let log = log + left as f64 * probability.ln() - libm::lgamma(left as f64 + 1.0);
            self.points.push((sum + left as f64 * loss, libm::exp(log)));
            return (self.points.len() <= MOST_WAYS).then_some(());
        }
        for taken in 0..=left {
            let (times, rest) = (taken as f64, (left - taken) as f64);
            let power = if taken == 0 { 0.0 } else { times * probability.ln() };
            let log = log + power - libm::lgamma(times + 1.0);
            let after = if rest == 0.0 { 0.0 } else { rest * self.later[index + 1].ln() };
            let branch = log + after - libm::lgamma(rest + 1.0);
            if branch < self.negligible {
                self.left_out += libm::exp(branch) * (1.0 + 1e-9);
            } else {
                self.branch(index + 1, left - taken, log, sum + times * loss)?;
            }
        }
        Some(())
    }
}
