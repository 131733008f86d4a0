//! [`Private`]: a result nobody may see before it was paid for and made noisy.

use demur_core::PrivacyLoss;
use demur_noise::{Entropy, Exponential, Mechanism, NoiseError, RandomizedResponse};

use crate::EngineError;
use crate::keys::KeyRule;
use crate::noise::Noise;
use crate::pricing::{Pricing, loss_of};

/// A raw result together with the mechanism that makes it public.
///
/// Cost and noise belong to one value, so they cannot disagree; the engine checks that the cost
/// is what was charged. Types of other rooms cannot be private: this one alone decides what becomes public.
pub trait Private: sealed::Sealed {
    /// What publishing it costs.
    fn loss(&self) -> PrivacyLoss;

    /// Adds the noise; the texts that result are public.
    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, NoiseError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Numbers<'_> {}
    impl Sealed for super::Cells {}
    impl Sealed for super::Choices<'_> {}
    impl Sealed for super::Responses<'_> {}
}

/// Numbers in lattice steps, to be published a number of times.
pub struct Numbers<'a> {
    /// The noise.
    pub mechanism: &'a dyn Mechanism,
    /// The true numbers.
    pub steps: Vec<i64>,
    /// How often.
    pub count: u64,
}

impl Private for Numbers<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.mechanism.loss().repeat(self.count)
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, NoiseError> {
        let release = self.mechanism.release_repeatedly(&self.steps, self.count, entropy)?;
        Ok(release.into_value().iter().map(ToString::to_string).collect())
    }
}

/// A table: for each group its key, how many units it has, and whole numbers for each item.
///
/// What is published is one line of JSON per group that is shown, `["key", ["1", "2"], ["3"]]`, with the numbers of each item,
/// sorted by key. Of a group that is not shown nothing is said, not even that there is a gap where it was.
pub struct Cells {
    keys: Vec<String>,
    units: Vec<u64>,
    /// For each item, the cells of the first group, then of the second, ….
    values: Vec<Vec<i128>>,
    noises: Vec<Noise>,
    rule: Option<KeyRule>,
}

impl Cells {
    /// The groups with their keys and units, and each item's numbers, group after group.
    pub fn new(
        keys: Vec<String>,
        units: Vec<u64>,
        values: Vec<Vec<i128>>,
        pricing: Pricing,
    ) -> Result<Self, EngineError> {
        let (noises, rule) = pricing.into_parts();
        let whole = |numbers: &Vec<i128>| match keys.len() {
            0 => numbers.is_empty(),
            groups => numbers.len().is_multiple_of(groups),
        };
        let one_each = rule.as_ref().and_then(KeyRule::reuse).and_then(|index| values.get(index));
        let fits = units.len() == keys.len()
            && values.len() == noises.len()
            && values.iter().all(whole)
            && one_each.is_none_or(|numbers| numbers.len() == keys.len());
        match fits {
            true => Ok(Self { keys, units, values, noises, rule }),
            false => Err(EngineError::after_the_charge()),
        }
    }

    /// Which groups are shown. Numbers that choose keys get their noise here, all others later.
    fn keep(&mut self, entropy: &mut Entropy) -> Vec<bool> {
        let Some(rule) = &self.rule else { return vec![true; self.keys.len()] };
        match rule.reuse().and_then(|index| Some((self.noises.get(index)?, self.values.get_mut(index)?))) {
            Some((noise, values)) => {
                add_noise(noise, values, entropy);
                rule.keep_noisy(&self.units, values)
            }
            None => rule.keep(&self.units, entropy),
        }
    }
}

fn add_noise(noise: &Noise, values: &mut [i128], entropy: &mut Entropy) {
    let mut drawn = vec![0; values.len()];
    noise.fill(entropy, &mut drawn);
    values.iter_mut().zip(drawn).for_each(|(value, z)| *value = value.saturating_add(z));
}

impl Private for Cells {
    fn loss(&self) -> PrivacyLoss {
        loss_of(&self.noises, self.rule.as_ref())
    }

    fn publish(mut self, entropy: &mut Entropy) -> Result<Vec<String>, NoiseError> {
        let kept = self.keep(entropy);
        let reused = self.rule.as_ref().and_then(KeyRule::reuse);
        for (index, (noise, values)) in self.noises.iter().zip(&mut self.values).enumerate() {
            if Some(index) != reused {
                add_noise(noise, values, entropy);
            }
        }
        let groups = self.keys.len().max(1);
        let mut shown: Vec<_> = (0..self.keys.len()).filter(|&group| kept[group]).collect();
        shown.sort_by(|&a, &b| self.keys[a].cmp(&self.keys[b]));
        let line = |group: usize| {
            let cells = |values: &Vec<i128>| {
                let each = values.len() / groups;
                let texts = values[group * each..(group + 1) * each].iter().map(ToString::to_string);
                serde_json::Value::from(texts.collect::<Vec<_>>())
            };
            let key = serde_json::Value::from(self.keys[group].as_str());
            serde_json::Value::Array(std::iter::once(key).chain(self.values.iter().map(cells)).collect())
                .to_string()
        };
        Ok(shown.into_iter().map(line).collect())
    }
}

/// A choice among named candidates by their scores, to be made a number of times.
pub struct Choices<'a> {
    /// The rule.
    pub mechanism: &'a Exponential,
    /// The candidates, which are public.
    pub names: &'a [String],
    /// Their true scores.
    pub scores: Vec<f64>,
    /// How often.
    pub count: u64,
}

impl Private for Choices<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.mechanism.loss().repeat(self.count)
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, NoiseError> {
        let release = self.mechanism.choose_many(&self.scores, self.count as usize, entropy)?;
        let name = |index: usize| self.names.get(index).cloned().unwrap_or_else(|| index.to_string());
        Ok(release.into_value().into_iter().map(name).collect())
    }
}

/// An answer of one person, to be given a number of times.
pub struct Responses<'a> {
    /// The rule.
    pub mechanism: &'a RandomizedResponse,
    /// What the answers are called, which is public.
    pub name: &'a dyn Fn(u64) -> String,
    /// The true answer.
    pub truth: u64,
    /// How often.
    pub count: u64,
}

impl Private for Responses<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.mechanism.loss().repeat(self.count)
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, NoiseError> {
        let one = |_| Ok((self.name)(self.mechanism.respond(self.truth, entropy)?.into_value()));
        (0..self.count).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, Keys, Preference, Wish};
    use demur_core::{Delta, Epsilon, Guarantee, Sensitivity};

    fn priced(keys: Option<Keys>) -> Pricing {
        let item = |step: u32| Item::new("x", 2, Sensitivity::scalar(step.into()).unwrap());
        let guarantee = Guarantee::new(Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap());
        let items = vec![item(1), item(9)];
        Wish { items, keys, guarantee, preference: Preference::Any }.price().unwrap()
    }

    fn table(pricing: Pricing) -> Cells {
        let keys = ["b", "a", "c"].map(str::to_owned).to_vec();
        let values = vec![vec![9000, 1, 8000], vec![-1_000_000, -2_000_000, 5, 6, 3_000_000, 4_000_000]];
        Cells::new(keys, vec![9000, 1, 8000], values, pricing).unwrap()
    }

    fn read(line: &str) -> (String, Vec<Vec<i128>>) {
        let (key, rest): (String, Vec<Vec<String>>) = {
            let all: Vec<serde_json::Value> = serde_json::from_str(line).unwrap();
            let numbers = all[1..].iter().map(|value| serde_json::from_value(value.clone()).unwrap());
            (all[0].as_str().unwrap().to_owned(), numbers.collect())
        };
        (
            key,
            rest.into_iter().map(|cells| cells.iter().map(|text| text.parse().unwrap()).collect()).collect(),
        )
    }

    /// A key of one unit is shown with probability below 1e-6; noise of 500 000 has a chance below e^(−5000).
    #[test]
    fn groups_of_many_are_shown_in_order_and_groups_of_one_are_not() {
        for reuse in [None, Some(0)] {
            let cells = table(priced(Some(Keys { moved: 2, reuse })));
            let lines = cells.publish(&mut Entropy::from_os().unwrap()).unwrap();
            let read: Vec<_> = lines.iter().map(|line| read(line)).collect();
            assert_eq!(read.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["b", "c"]);
            let near = |found: &[i128], truth: &[i128]| {
                found.len() == truth.len() && found.iter().zip(truth).all(|(a, b)| (a - b).abs() < 500_000)
            };
            assert!(near(&read[0].1[0], &[9000]) && near(&read[0].1[1], &[-1_000_000, -2_000_000]));
            assert!(near(&read[1].1[0], &[8000]) && near(&read[1].1[1], &[3_000_000, 4_000_000]));
        }
    }

    #[test]
    fn public_keys_are_all_shown() {
        let lines = table(priced(None)).publish(&mut Entropy::from_os().unwrap()).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(read(&lines[0]).0, "a");
    }

    #[test]
    fn a_table_costs_what_was_priced() {
        for keys in [None, Some(Keys { moved: 2, reuse: None }), Some(Keys { moved: 2, reuse: Some(0) })] {
            let pricing = priced(keys);
            let loss = pricing.loss();
            assert_eq!(table(pricing).loss(), loss);
            assert!(loss.check().is_ok());
        }
    }

    #[test]
    fn a_table_that_does_not_fit_is_refused_without_a_word() {
        let refused = |units: Vec<u64>, values: Vec<Vec<i128>>| {
            Cells::new(vec!["a".to_owned(); 2], units, values, priced(None)).err().map(|error| error.code())
        };
        let failed = Some("engine.failed");
        assert_eq!(refused(vec![1], vec![vec![1, 2], vec![1, 2]]), failed);
        assert_eq!(refused(vec![1, 1], vec![vec![1, 2]]), failed);
        assert_eq!(refused(vec![1, 1], vec![vec![1, 2], vec![1, 2, 3]]), failed);
        assert_eq!(refused(vec![1, 1], vec![vec![1, 2], vec![1, 2, 3, 4]]), None);
    }
}
