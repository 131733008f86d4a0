//! [`Blr`]: the exponential mechanism over all synthetic datasets of a given size, exactly.
//!
//! **Definition** (Blum, Ligett, Roth). Let D have n records from X with N = |X|, and let q₁ … q_k be counting queries. Of all D̂ ∈ X^m one is published, with probability
//!
//! ```text
//! Pr[D̂] ∝ exp(ε·n·u(D̂)/2),     u(D̂) = −maxᵢ |qᵢ(D) − qᵢ(D̂)|.
//! ```
//!
//! **Guarantee.** ε, for neighbours that replace one record: n is public then, every qᵢ(D) moves by at most 1/n, so u moves by at most Δu = 1/n,
//! and the exponential mechanism with weights exp(u/σ), σ = 2/(nε), costs 2Δu/σ = ε.
//!
//! **Accuracy** (Theorem 12.7 with its constants). If m > 2·ln(2k)/α² and α·n·ε ≥ 4·(m·ln N + ln(1/β)), then maxᵢ |qᵢ(D) − qᵢ(D̂)| ≤ α but for a
//! probability β. *Proof.* Draw D̂ from D with replacement. By Hoeffding |qᵢ(D̂) − qᵢ(D)| > α/2 has probability at most
//! 2e^(−mα²/2), so all k together 2k·e^(−mα²/2) < 1: some D̂ has u ≥ −α/2. (With m = 2·ln(2k)/α² the bound is 1 and
//! proves nothing.) Every D̂ with u < −α is at most e^(−εnα/4) times as likely as that one, and there are at most N^m of them. ∎ With the least m this is
//! α ≈ (8·ln(2k)·ln N/(nε))^(1/3).
//!
//! **Sampling.** u does not depend on the order of D̂'s records, so a multiset with counts c stands for m!/Πc! datasets. All C(m+N−1, m) multisets are walked
//! in an order in which one record changes at a time, and the queries' answers with it. Those of equal u are one group of a
//! [`WeightedSelection`]; a second walk finds the chosen member. Too many multisets are refused: a Markov chain would be quicker, but
//! where it stops is not this law, and so not ε.
//!
//! **Exactness.** Answers are whole multiples of 1/(n·m·w), with w the common denominator of the queries' weights; nothing is rounded.
//!
//! **References.** \[Blum2013\].

use std::collections::BTreeMap;

use dashu_int::UBig;
use demur_core::{Domain, Epsilon, Histogram, PrivacyLoss, Release, Workload};
use demur_exact::Rational;
use demur_noise::{Entropy, WeightedSelection, Words};

use crate::SynthError;
use crate::error::require;

/// More multisets than this are refused.
pub const MAX_STATES: u64 = 1 << 26;
/// Fractions of the queries must have a common denominator of at most this.
const MAX_DENOMINATOR: u64 = 1 << 16;

/// Exact draws of a synthetic dataset; see the module text.
///
/// ```
/// use demur_core::{Domain, Epsilon, Histogram, Workload};
/// use demur_noise::Entropy;
/// use demur_synth::Blr;
///
/// let domain = Domain::new([("smoker", 2), ("ill", 2)])?;
/// let blr = Blr::new(Workload::marginals(&domain, 2)?, 10, Epsilon::new(1.0)?)?;
/// let people = Histogram::new(&domain, vec![400, 100, 200, 300])?;
/// let synthetic = blr.release(&people, &mut Entropy::from_os()?)?;
/// assert_eq!(synthetic.value().size(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Blr {
    domain: Domain,
    /// For each record of the domain, its weight in each query, times the common denominator.
    weights: Vec<Vec<i64>>,
    denominator: i64,
    size: u64,
    epsilon: Rational,
}

impl Blr {
    /// For these queries, publishing `size` records at a cost of ε.
    pub fn new(workload: Workload, size: u64, epsilon: Epsilon) -> Result<Self, SynthError> {
        let domain = workload.domain().clone();
        require(size > 0, "synth.blr.size", || {
            "a synthetic dataset must have at least 1 record, but 0 were asked for".into()
        })?;
        let states = states(size, domain.size());
        require(
            states.as_ref().is_some_and(|states| *states <= UBig::from(MAX_STATES)),
            "synth.blr.states",
            || {
                let count =
                    states.map_or_else(|| "more than 10^1000".to_owned(), |states| states.to_string());
                format!(
                    "there are {count} multisets of {size} records over {} different ones, but at most {MAX_STATES} can be walked; \
                 ask for fewer records, or use MWEM or AIM",
                    domain.size()
                )
            },
        )?;
        require(!workload.queries().is_empty(), "synth.blr.queries", || {
            "there must be at least 1 query, but there is none".into()
        })?;
        let denominator = common_denominator(&workload)?;
        let times = Rational::from(denominator);
        let whole = |weight: &Rational| i64::try_from((weight * &times).floor()).unwrap_or(0);
        let record = |x: usize| workload.queries().iter().map(|query| whole(&query.weights()[x])).collect();
        let weights = (0..domain.size() as usize).map(record).collect();
        Ok(Self { domain, weights, denominator: denominator as i64, size, epsilon: epsilon.exact() })
    }

    /// The records there can be.
    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// What one release costs; neighbours replace a record.
    pub fn loss(&self) -> PrivacyLoss {
        PrivacyLoss::Exponential { epsilon: self.epsilon.clone() }
    }

    /// Draws a synthetic dataset.
    pub fn release(&self, data: &Histogram, entropy: &mut Entropy) -> Result<Release<Histogram>, SynthError> {
        Ok(Release::new(self.draw(data, entropy)?, self.loss()))
    }

    pub(crate) fn draw<W: Words>(&self, data: &Histogram, words: &mut W) -> Result<Histogram, SynthError> {
        let truth = self.truth(data)?;
        let groups: Vec<(i64, UBig)> = self.groups(&truth, data.size()).into_iter().collect();
        // e^(ε·n·u/2) with u = score/(n·m·w).
        let unit = &Rational::from(2 * self.size) * &Rational::from(self.denominator as u64);
        let selection = WeightedSelection::new(&groups, &self.epsilon / &unit)?;
        let group = selection.choose(words);
        let member = selection.member(group, words);
        let counts = self.find(&truth, data.size(), groups[group].0, member)?;
        Ok(Histogram::new(&self.domain, counts)?)
    }

    /// n·w·qᵢ(D) for each query.
    fn truth(&self, data: &Histogram) -> Result<Vec<i64>, SynthError> {
        require(data.domain() == &self.domain, "synth.blr.domain", || {
            "the dataset must be over the domain of the queries, but it is over another".into()
        })?;
        require((1..1 << 30).contains(&data.size()), "synth.blr.rows", || {
            "the dataset must have between 1 and 2^30 − 1 records, but it has not".into()
        })?;
        let mut sums = vec![0i64; self.weights[0].len()];
        for (weights, &count) in self.weights.iter().zip(data.counts()) {
            add(&mut sums, weights, count as i64);
        }
        Ok(sums)
    }

    /// The score n·m·w·u of each multiset, and for how many datasets it stands.
    fn groups(&self, truth: &[i64], rows: u64) -> BTreeMap<i64, UBig> {
        let mut groups: BTreeMap<i64, UBig> = BTreeMap::new();
        self.walk(truth, rows, &mut |score, number, _| {
            *groups.entry(score).or_insert(UBig::ZERO) += number;
            true
        });
        groups
    }

    /// The multiset of this score that holds the member.
    fn find(&self, truth: &[i64], rows: u64, wanted: i64, member: UBig) -> Result<Vec<u64>, SynthError> {
        let (mut left, mut found) = (member, None);
        self.walk(truth, rows, &mut |score, number, counts| {
            if score != wanted {
                return true;
            }
            if left < *number {
                found = Some(counts.to_vec());
                return false;
            }
            left -= number;
            true
        });
        found.ok_or_else(|| SynthError::ours("a chosen dataset was not found again"))
    }

    /// Visits every multiset with its score and number, until the visitor has seen enough.
    fn walk(&self, truth: &[i64], rows: u64, visit: &mut dyn FnMut(i64, &UBig, &[u64]) -> bool) {
        let mut walk = Walk {
            blr: self,
            targets: truth.iter().map(|sum| sum * self.size as i64).collect(),
            rows: rows as i64,
            sums: vec![0; truth.len()],
            counts: vec![0; self.weights.len()],
            visit,
        };
        walk.place(0, self.size, &UBig::ONE);
    }

    /// The least α for which Theorem 12.7 promises (α, β)-accuracy; `None` when it promises nothing below 1.
    ///
    /// ```
    /// use demur_synth::Blr;
    /// let small = Blr::alpha(10_000, 1.0, 64, 8, 0.05).unwrap();
    /// let large = Blr::alpha(80_000, 1.0, 64, 8, 0.05).unwrap();
    /// assert!((small / large - 2.0).abs() < 0.1); // eight times the data, half the error
    /// ```
    pub fn alpha(rows: u64, epsilon: f64, queries: u64, universe: u64, beta: f64) -> Option<f64> {
        let enough = |alpha: f64| {
            let m = Self::records_for(alpha, queries) as f64;
            alpha * rows as f64 * epsilon >= 4.0 * (m * (universe as f64).ln() - beta.ln())
        };
        let (mut low, mut high) = (0.0, 1.0);
        if !enough(high) {
            return None;
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// The least m for which some dataset of m records is within α/2 of every answer: above 2·ln(2k)/α².
    pub fn records_for(alpha: f64, queries: u64) -> u64 {
        (2.0 * (2.0 * queries as f64).ln() / (alpha * alpha)).floor() as u64 + 1
    }
}

/// A walk over all multisets.
struct Walk<'a> {
    blr: &'a Blr,
    /// n·m·w·qᵢ(D).
    targets: Vec<i64>,
    rows: i64,
    /// m·w·qᵢ of the records placed so far.
    sums: Vec<i64>,
    counts: Vec<u64>,
    visit: &'a mut dyn FnMut(i64, &UBig, &[u64]) -> bool,
}

impl Walk<'_> {
    /// Places `left` records among the values from `value` on; `number` orders of those before. False when enough was seen.
    fn place(&mut self, value: usize, left: u64, number: &UBig) -> bool {
        if value + 1 == self.counts.len() {
            return self.last(value, left, number);
        }
        // C(left, count), one factor at a time.
        let mut ways = number.clone();
        let mut going = true;
        let mut placed = 0;
        for count in 0..=left {
            if count > 0 {
                add(&mut self.sums, &self.blr.weights[value], 1);
                placed = count;
                ways = ways * UBig::from(left - count + 1) / UBig::from(count);
            }
            self.counts[value] = count;
            going = self.place(value + 1, left - count, &ways);
            if !going {
                break;
            }
        }
        add(&mut self.sums, &self.blr.weights[value], -(placed as i64));
        if going {
            self.counts[value] = 0;
        }
        going
    }

    /// The last value takes all that is left.
    fn last(&mut self, value: usize, left: u64, number: &UBig) -> bool {
        self.counts[value] = left;
        let last = &self.blr.weights[value];
        let error = |((sum, weight), target): ((&i64, &i64), &i64)| {
            (self.rows * (sum + left as i64 * weight) - target).abs()
        };
        let worst = self.sums.iter().zip(last).zip(&self.targets).map(error).max().unwrap_or(0);
        (self.visit)(-worst, number, &self.counts)
    }
}

fn add(sums: &mut [i64], weights: &[i64], times: i64) {
    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += times * weight);
}

/// C(m + N − 1, m), the number of multisets; `None` when it is absurdly large.
fn states(size: u64, universe: u64) -> Option<UBig> {
    let (small, large) = (size.min(universe - 1), u128::from(size) + u128::from(universe) - 1);
    if small > 10_000 {
        return None;
    }
    let factor = |states: UBig, i: u64| states * UBig::from(large - u128::from(i)) / UBig::from(i + 1);
    Some((0..small).fold(UBig::ONE, factor))
}

fn common_denominator(workload: &Workload) -> Result<u64, SynthError> {
    let mut common = 1u64;
    for weight in workload.queries().iter().flat_map(|query| query.weights()) {
        let own = u64::try_from(weight.denominator()).unwrap_or(u64::MAX);
        let grown = own / gcd(common, own);
        common = common.checked_mul(grown).filter(|&common| common <= MAX_DENOMINATOR).ok_or_else(|| {
            let text = format!(
                "the weights of all queries must have a common denominator of at most {MAX_DENOMINATOR}, but they have not; round them"
            );
            SynthError::new("synth.blr.weights", text)
        })?;
    }
    Ok(common)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
