//! [`Pricing`]: how much noise each answer gets, decided before a row is read.
//!
//! **Problem.** Given what one unit can move ([`Item`]s, and [`Keys`] if the keys are secret) and a [`Guarantee`] for all of it
//! together, choose noise so that the errors are least.
//!
//! **Error.** Designs are compared by Σ ln sdᵢ over the items, plus ln of the number of units at which a key is shown as often as
//! not. To halve the error of one answer is worth as much as to halve that of any other. Under this measure the best shares are
//! equal: with Σ cᵢ/tᵢ fixed (Laplace), or Σ cᵢ/σᵢ² (Gaussian), the product of the tᵢ, or σᵢ, is least when all terms are the same.
//!
//! **Designs.** Four, all accounted for exactly and not by adding up (ε, δ):
//!
//! | | items | keys | proof |
//! |---|---|---|---|
//! | pure | Laplace | truncated Laplace | Σ Δ₁/t ≤ ε as exact fractions, M·δ₁ ≤ δ |
//! | signs | Laplace, all with one e = Δ₁/t per group | truncated Laplace, the same e | the profile of signs |
//! | mixed | Gaussian | truncated Laplace | the profile of signs and Gaussian noise |
//! | Gaussian | Gaussian | Gaussian above a threshold | μ² = Σ Δ₂²/(σ² − 9/4), certified |
//!
//! The profile is derived in `pricing/profile.rs`, the rules for keys in `keys.rs`. A threshold with Laplace noise is not among them: at
//! the same ε and δ truncated noise is smaller and shows more keys.
//!
//! **Guarantee.** [`Pricing::loss`] is what the accountant is told: noise by noise. By it the whole is (ε, δ)-private. Where δ = 0 only
//! the first design is left, and keys must be public: whatever shows a key that one unit alone has, shows that unit.
//!
//! **References.** \[Kairouz2015\], \[Balle2018\], \[Canonne2020\], \[Desfontaines2022\].

mod draft;
mod profile;
#[cfg(test)]
mod tests;

use demur_core::{Guarantee, PrivacyLoss, Sensitivity};
use demur_exact::Rational;

use crate::EngineError;
use crate::keys::KeyRule;
use crate::noise::Noise;
use draft::Draft;

/// Numbers to be published: what one unit moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is, in words or SQL.
    pub what: String,
    /// In how many groups one unit moves it; with one record replaced, in twice as many.
    pub groups: u64,
    /// How far it moves in each of these groups, in whole steps.
    pub sensitivity: Sensitivity,
    /// How many such numbers there are, each with noise of its own: the levels of a histogram, or 1.
    pub copies: u64,
}

/// That keys are secret, and shown only when enough units have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Of how many groups one unit moves the number of units, by 1 each.
    pub moved: u64,
    /// The item that is the number of units, whose noise then serves for both.
    pub reuse: Option<usize>,
}

/// Which noise the items should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// Whichever errs least.
    #[default]
    Any,
    /// Laplace noise.
    Laplace,
    /// Gaussian noise.
    Gaussian,
}

/// What is to be priced; all of it public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// What is published.
    pub items: Vec<Item>,
    /// How keys are chosen, if they are secret.
    pub keys: Option<Keys>,
    /// What it may cost together.
    pub guarantee: Guarantee,
    /// Which noise.
    pub preference: Preference,
}

/// The noise of all items, the rule for keys, and what it costs.
#[derive(Clone, Debug)]
pub struct Pricing {
    noises: Vec<Noise>,
    rule: Option<KeyRule>,
    design: &'static str,
}

impl Wish {
    /// The noise with the least error.
    ///
    /// ```
    /// use demur_core::{Delta, Epsilon, Guarantee, Sensitivity};
    /// use demur_engine::{Item, Keys, Preference, Wish};
    /// let users = Item::new("COUNT(DISTINCT user)", 3, Sensitivity::scalar("1".parse()?)?);
    /// let sum = Item::new("SUM(price)", 3, Sensitivity::scalar("500".parse()?)?);
    /// let wish = Wish {
    ///     items: vec![users, sum],
    ///     keys: Some(Keys { moved: 3, reuse: Some(0) }),
    ///     guarantee: Guarantee::new(Epsilon::new(1.0)?, Delta::new(1e-6)?),
    ///     preference: Preference::Any,
    /// };
    /// let priced = wish.price()?;
    /// assert!(priced.noises()[1].standard_deviation() < 6400.0);
    /// assert!(priced.rule().is_some_and(|rule| rule.half_point() < 60));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn price(&self) -> Result<Pricing, EngineError> {
        self.check()?;
        self.best_draft()?.build(self)
    }

    /// The best design, before any table is made for it.
    fn best_draft(&self) -> Result<Draft, EngineError> {
        let drafts = Draft::all(self)?;
        let best = drafts.into_iter().min_by(|a, b| a.cost(self).total_cmp(&b.cost(self)));
        best.ok_or_else(|| {
            let guarantee = self.guarantee;
            EngineError::new("engine.price.none", format!("no noise can be certified for {guarantee}"))
        })
    }

    fn check(&self) -> Result<(), EngineError> {
        let refuse = |code, text: String| Err(EngineError::new(code, text));
        for item in &self.items {
            item.check()?;
        }
        let (epsilon, delta) = (self.guarantee.epsilon.value(), self.guarantee.delta.value());
        if delta > 0.5 {
            return refuse("engine.price.delta", format!("δ must be at most 1/2, but it is {delta}"));
        }
        if epsilon == 0.0 && delta == 0.0 {
            return refuse(
                "engine.price.epsilon",
                "ε and δ are both 0, which allows no answer at all".to_owned(),
            );
        }
        if self.guarantee.is_pure() && self.preference == Preference::Gaussian {
            let text = "Gaussian noise needs a δ above 0; ask for one, or for Laplace noise";
            return refuse("engine.price.delta", text.to_owned());
        }
        match self.keys {
            Some(keys) => self.check_keys(keys),
            None if self.items.is_empty() => {
                refuse("engine.price.nothing", "there is nothing to publish".to_owned())
            }
            None => Ok(()),
        }
    }

    fn check_keys(&self, keys: Keys) -> Result<(), EngineError> {
        if self.guarantee.is_pure() {
            let text = "keys that are secret can only be shown with a δ above 0, because one unit alone may have \
                        a key; ask with --delta 1e-8, write delta_per_question into demur.toml, or list the keys as public";
            return Err(EngineError::new("engine.price.keys", text));
        }
        if keys.moved == 0 || keys.moved > MOST {
            let text = format!("a unit moves from 1 to {MOST} groups, but {} were given", keys.moved);
            return Err(EngineError::new("engine.price.groups", text));
        }
        let Some(index) = keys.reuse else { return Ok(()) };
        let counts_units = |item: &Item| {
            let by_one = Sensitivity::scalar(Rational::one()).is_ok_and(|one| item.sensitivity == one);
            by_one && item.groups == keys.moved && item.copies == 1
        };
        if self.items.get(index).is_some_and(counts_units) {
            return Ok(());
        }
        let text = "keys can be chosen by an item only if it counts units: one number, moved by 1, in the same groups";
        Err(EngineError::new("engine.price.reuse", text))
    }

    /// The item whose noise also chooses keys.
    fn reused(&self) -> Option<usize> {
        self.keys.and_then(|keys| keys.reuse)
    }
}

/// The most groups, cells and copies that are reckoned with.
const MOST: u64 = 1 << 32;

impl Item {
    /// One number per group.
    pub fn new(what: impl Into<String>, groups: u64, sensitivity: Sensitivity) -> Self {
        Self { what: what.into(), groups, sensitivity, copies: 1 }
    }

    fn check(&self) -> Result<(), EngineError> {
        if self.groups == 0 || self.copies == 0 || self.groups > MOST || self.copies > MOST {
            let text = format!("`{}` must move in 1 to {MOST} groups and have as many copies", self.what);
            return Err(EngineError::new("engine.price.groups", text));
        }
        if *self.sensitivity.linf() < Rational::one() {
            let text = format!(
                "`{}` must be counted in whole steps, of which one unit moves at least 1, but it moves {}",
                self.what,
                self.sensitivity.linf()
            );
            return Err(EngineError::new("engine.price.sensitivity", text));
        }
        self.blocks()?;
        self.dimensions()?;
        Ok(())
    }

    /// Groups times copies: how often Laplace noise is paid for.
    pub(crate) fn blocks(&self) -> Result<u64, EngineError> {
        self.groups.checked_mul(self.copies).filter(|&blocks| blocks <= MOST).ok_or_else(|| self.too_many())
    }

    /// How many numbers of one copy can move, or 2 if it is one.
    pub(crate) fn dimensions(&self) -> Result<u64, EngineError> {
        let all = self.groups.checked_mul(self.sensitivity.l0().max(1));
        Ok(all.filter(|&all| all <= MOST).ok_or_else(|| self.too_many())?.max(2))
    }

    /// Δ₂² over all groups, of one copy.
    pub(crate) fn l2_squared(&self) -> Rational {
        &Rational::from(self.groups) * self.sensitivity.l2_squared()
    }

    fn too_many(&self) -> EngineError {
        let text = format!("`{}` moves in more than {MOST} numbers", self.what);
        EngineError::new("engine.price.groups", text)
    }
}

impl Pricing {
    /// The noise of each item, in their order.
    pub fn noises(&self) -> &[Noise] {
        &self.noises
    }

    /// Which keys are shown, if they are secret.
    pub fn rule(&self) -> Option<&KeyRule> {
        self.rule.as_ref()
    }

    /// What is charged for all of it.
    pub fn loss(&self) -> PrivacyLoss {
        loss_of(&self.noises, self.rule.as_ref())
    }

    /// Which of the designs in the module text it is.
    pub fn design(&self) -> &'static str {
        self.design
    }

    /// The noises and the rule themselves.
    pub fn into_parts(self) -> (Vec<Noise>, Option<KeyRule>) {
        (self.noises, self.rule)
    }
}

/// What all noises cost together; that of an item which chooses keys is part of the rule.
pub(crate) fn loss_of(noises: &[Noise], rule: Option<&KeyRule>) -> PrivacyLoss {
    let reused = rule.and_then(KeyRule::reuse);
    let own = noises.iter().enumerate().filter(|(index, _)| Some(*index) != reused);
    let losses = own.map(|(_, noise)| noise.loss()).chain(rule.map(KeyRule::loss));
    losses.reduce(PrivacyLoss::compose).unwrap_or(PrivacyLoss::Composed { parts: Vec::new() })
}
