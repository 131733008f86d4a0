//! [`AboveThreshold`]: which questions have a high answer, paying for those alone (the sparse vector technique).
//!
//! **Definition.** Questions with whole-number answers arrive one by one, each chosen after what was said before; an answer moves by at most Δ between
//! neighbours. A threshold T gets discrete Laplace noise ρ of scale Δ/ε₁, once. Question i is answered "above" if
//! qᵢ + νᵢ ≥ T + ρ, with fresh noise νᵢ of scale 2cΔ/ε₂, and "below" otherwise. After the c-th "above" nothing more is answered.
//!
//! **Guarantee.** ε = ε₁ + ε₂, however many questions were below. If all answers move the same way between neighbours (counts under add/remove do), the
//! scale cΔ/ε₂ is enough.
//!
//! **Why.** Fix the answers given. On the neighbour let ρ be larger by Δ: that costs e^ε₁, and every "below" stays as likely or becomes more so, since
//! qᵢ′ ≤ qᵢ + Δ. Each of at most c "above" needs νᵢ larger by 2Δ, which costs e^(ε₂/c). When all answers move
//! the same way, either ρ may stay (answers fell: "below" gets likelier; νᵢ up by Δ) or the shift of ρ by Δ is what answers rose by at most, and again νᵢ moves by
//! Δ at most. ∎ Δ must be a whole number for this; it is rounded up.
//!
//! **What breaks it**, kept as tests: no noise on the answers; noise that does not grow with c; going on after the c-th "above"; showing the noisy
//! answer that was compared.
//!
//! **References.** \[Dwork2014\], \[Lyu2017\].

use demur_core::{Epsilon, PrivacyLoss, Release};
use demur_exact::Rational;
use demur_noise::{DiscreteLaplace, Entropy, Words};

use crate::LearnError;
use crate::error::require;

/// The most answers "above" that can be bought.
pub const MAX_HITS: u32 = 1 << 20;

/// What will be asked for and what it costs; see the module text.
///
/// ```
/// use demur_core::Epsilon;
/// use demur_learn::select::AboveThreshold;
/// use demur_noise::Entropy;
///
/// let plan = AboveThreshold::new(1000, "1".parse()?, 1, true, Epsilon::new(1.0)?)?;
/// assert_eq!(plan.loss().to_string(), "pure(1)");
/// // Charge it; then ask.
/// let counts = [12, 40, 31, 1900, 7];
/// let answers = plan.run(counts, &mut Entropy::from_os()?)?;
/// assert_eq!(answers.value(), &[false, false, false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AboveThreshold {
    threshold: i64,
    hits: u32,
    loss: PrivacyLoss,
    on_threshold: DiscreteLaplace,
    on_answers: DiscreteLaplace,
}

/// A threshold under noise, ready for questions. Charge the plan's loss before making one.
#[derive(Debug)]
pub struct Sentinel<'a, W> {
    plan: &'a AboveThreshold,
    threshold: i128,
    left: u32,
    words: &'a mut W,
}

impl AboveThreshold {
    /// At most `hits` answers "above"; `monotone` if all answers move the same way between neighbours.
    pub fn new(
        threshold: i64,
        sensitivity: Rational,
        hits: u32,
        monotone: bool,
        epsilon: Epsilon,
    ) -> Result<Self, LearnError> {
        require(sensitivity.is_positive(), "learn.select.sensitivity", || {
            format!("the sensitivity of an answer must be above 0, but it is {sensitivity}")
        })?;
        require((1..=MAX_HITS).contains(&hits), "learn.threshold.hits", || {
            format!("1 to {MAX_HITS} answers can be above the threshold, but {hits} were asked for")
        })?;
        require(epsilon > Epsilon::ZERO, "learn.epsilon", || {
            "ε = 0 would need infinite noise; ask for more".into()
        })?;
        let moved = Rational::from_parts(sensitivity.ceil(), 1u32.into());
        // Of ε the threshold gets 1/(1 + (2c)^(2/3)), which makes the noise of a comparison least; any split is private.
        let factor = if monotone { hits } else { 2 * hits };
        let share = (1024.0 / (1.0 + f64::from(factor).powf(2.0 / 3.0))).ceil();
        let share = Rational::new(share as i128, 1024);
        let whole = epsilon.exact();
        let first = &whole * &share;
        let second = &whole - &first;
        Ok(Self {
            threshold,
            hits,
            loss: PrivacyLoss::Pure { epsilon: whole },
            on_threshold: DiscreteLaplace::new(&moved / &first)?,
            on_answers: DiscreteLaplace::new(&(&Rational::from(factor) * &moved) / &second)?,
        })
    }

    /// What must be charged before questions are asked.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// With probability at least 1 − β, each of so many questions is answered as if its answer were off by at most this.
    pub fn error(&self, beta: f64, questions: u64) -> f64 {
        let tail = |scale: &Rational, beta: f64| scale.to_f64() * (1.0 / beta).ln();
        tail(self.on_threshold.scale(), beta / 2.0)
            + tail(self.on_answers.scale(), beta / 2.0 / questions.max(1) as f64)
    }

    /// Ready for questions that come one by one.
    pub fn start<'a>(&'a self, entropy: &'a mut Entropy) -> Sentinel<'a, Entropy> {
        self.start_with(entropy)
    }

    fn start_with<'a, W: Words>(&'a self, words: &'a mut W) -> Sentinel<'a, W> {
        let threshold = i128::from(self.threshold) + self.on_threshold.sample(words);
        Sentinel { plan: self, threshold, left: self.hits, words }
    }

    /// Asks one question after the other until there are no more, or enough were above.
    pub fn run(
        &self,
        answers: impl IntoIterator<Item = i64>,
        entropy: &mut Entropy,
    ) -> Result<Release<Vec<bool>>, LearnError> {
        let mut sentinel = self.start(entropy);
        let mut said = Vec::new();
        for answer in answers {
            match sentinel.ask(answer) {
                Some(above) => said.push(above),
                None => break,
            }
            if sentinel.left() == 0 {
                break;
            }
        }
        Ok(Release::new(said, self.loss.clone()))
    }
}

impl<W: Words> Sentinel<'_, W> {
    /// Whether this answer is about as high as the threshold; nothing once enough were.
    pub fn ask(&mut self, answer: i64) -> Option<bool> {
        if self.left == 0 {
            return None;
        }
        let above = i128::from(answer) + self.plan.on_answers.sample(self.words) >= self.threshold;
        self.left -= u32::from(above);
        Some(above)
    }

    /// How many more can be above.
    pub fn left(&self) -> u32 {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_testkit::Seeded;

    /// A way to compare answers with a threshold, as scales of its two noises and when it stops.
    #[derive(Clone, Copy)]
    struct Variant {
        threshold: f64,
        answers: f64,
        hits: usize,
    }

    fn below(scale: f64, margin: i64) -> f64 {
        // Pr[Z < margin] for discrete Laplace noise; without noise, whether 0 < margin.
        if scale == 0.0 {
            return f64::from(u8::from(0 < margin));
        }
        let ratio = (-1.0 / scale).exp();
        match margin > 0 {
            true => 1.0 - ratio.powi(margin as i32) / (1.0 + ratio),
            false => ratio.powi(1 - margin as i32) / (1.0 + ratio),
        }
    }

    /// The probability that these answers are said; those after the last hit are not.
    fn probability(variant: Variant, answers: &[i64], said: &[bool]) -> f64 {
        let ratio = (-1.0 / variant.threshold).exp();
        let noise = |k: i64| (1.0 - ratio) / (1.0 + ratio) * ratio.powi(k.unsigned_abs() as i32);
        let given = |shift: i64| {
            let mut hits = 0;
            let mut product = 1.0;
            for (&answer, &above) in answers.iter().zip(said) {
                if hits == variant.hits {
                    break;
                }
                let miss = below(variant.answers, shift - answer);
                product *= if above { 1.0 - miss } else { miss };
                hits += usize::from(above);
            }
            product
        };
        (-400..=400).map(|shift| noise(shift) * given(shift)).sum()
    }

    /// The largest |ln| of a ratio over all neighbouring answers in {0, 1} and everything that can be said.
    fn cost(variant: Variant, questions: usize, monotone: bool) -> f64 {
        let all = 0..1u32 << questions;
        let bit = |bits: u32, place: usize| bits >> place & 1;
        let law = |answers: u32| -> Vec<f64> {
            let answers: Vec<i64> = (0..questions).map(|i| i64::from(bit(answers, i))).collect();
            let said = |said: u32| (0..questions).map(|i| bit(said, i) == 1).collect::<Vec<bool>>();
            all.clone().map(|what| probability(variant, &answers, &said(what))).collect()
        };
        let laws: Vec<Vec<f64>> = all.clone().map(law).collect();
        let mut most: f64 = 0.0;
        for here in all.clone() {
            for there in all.clone().filter(|&there| !monotone || [here, there].contains(&(here & there))) {
                let both = laws[here as usize].iter().zip(&laws[there as usize]);
                let ratios = both.filter(|(a, b)| **a > 0.0 || **b > 0.0).map(|(a, b)| (a / b).ln().abs());
                most = ratios.fold(most, f64::max);
            }
        }
        most
    }

    fn variant(plan: &AboveThreshold) -> Variant {
        Variant {
            threshold: plan.on_threshold.scale().to_f64(),
            answers: plan.on_answers.scale().to_f64(),
            hits: plan.hits as usize,
        }
    }

    fn plan(hits: u32, monotone: bool, epsilon: f64) -> AboveThreshold {
        AboveThreshold::new(0, Rational::one(), hits, monotone, Epsilon::new(epsilon).unwrap()).unwrap()
    }

    /// By brute force over all neighbours with five answers of 0 or 1.
    #[test]
    fn it_costs_no_more_than_it_says() {
        for (hits, monotone) in [(1, false), (2, false), (1, true), (2, true)] {
            let cost = cost(variant(&plan(hits, monotone, 1.0)), 5, monotone);
            assert!(cost <= 1.0 + 1e-9 && cost > 0.4, "{hits} {monotone}: {cost}");
        }
    }

    #[test]
    fn the_well_known_mistakes_cost_more_than_they_say() {
        let right = variant(&plan(1, false, 1.0));
        let bare = Variant { answers: 0.0, ..right };
        assert!(cost(bare, 3, false).is_infinite(), "no noise on the answers");
        let endless = Variant { hits: usize::MAX, ..right };
        assert!(cost(endless, 6, false) > 1.0, "going on after the first hit");
        let many = Variant { hits: 4, ..right };
        assert!(cost(many, 6, false) > 1.0, "noise that does not grow with the hits");
        let unsigned = variant(&plan(1, true, 1.0));
        let loose = Variant { answers: unsigned.answers / 2.0, ..unsigned };
        assert!(cost(loose, 5, false) > 1.0, "half the noise");
    }

    /// Showing the noisy answer 0 that was above says that the noisy threshold is at most 0: many answers of 1 that were below make it impossible to doubt.
    #[test]
    fn showing_the_compared_answer_costs_more_than_it_says() {
        let right = variant(&plan(1, false, 1.0));
        let shown = |others: i64, questions: usize| -> f64 {
            let ratio = (-1.0 / right.threshold).exp();
            let noise = |k: i64| (1.0 - ratio) / (1.0 + ratio) * ratio.powi(k.unsigned_abs() as i32);
            // The noisy threshold is at most the shown −3, and all others fell below it.
            (-400..=-3)
                .map(|shift| noise(shift) * below(right.answers, shift - others).powi(questions as i32))
                .sum()
        };
        let ratio = (shown(0, 12) / shown(1, 12)).ln();
        assert!(ratio > 1.0, "{ratio}");
    }

    #[test]
    fn the_sentinel_stops_and_agrees_with_its_law() {
        let plan = plan(2, false, 2.0);
        let said = [false, true, false, true];
        let answers = [0, 1, 1, 0, 9];
        let expected = probability(variant(&plan), &answers, &said);
        let words = &mut Seeded::new(demur_testkit::seed(71));
        let mut same = 0;
        let draws = 40_000;
        for _ in 0..draws {
            let mut sentinel = plan.start_with(words);
            let heard: Vec<bool> = answers.iter().map_while(|&answer| sentinel.ask(answer)).collect();
            assert!(heard.iter().filter(|&&above| above).count() <= 2);
            same += u32::from(heard == said);
        }
        // Six standard deviations: false alarm 2e-9. Finds a scale wrong by 20 %.
        let deviation = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
        assert!((f64::from(same) / f64::from(draws) - expected).abs() < 6.0 * deviation, "{same} {expected}");
    }

    #[test]
    fn nonsense_is_refused() {
        let code = |sensitivity: &str, hits, epsilon| {
            AboveThreshold::new(0, sensitivity.parse().unwrap(), hits, false, epsilon).unwrap_err().code()
        };
        let one = Epsilon::new(1.0).unwrap();
        assert_eq!(code("0", 1, one), "learn.select.sensitivity");
        assert_eq!(code("1", 0, one), "learn.threshold.hits");
        assert_eq!(code("1", 1, Epsilon::ZERO), "learn.epsilon");
    }
}
