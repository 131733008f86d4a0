//! Communities: which users of a network belong together, without saying who knows whom.
//!
//! **Method.** Every pair of users gets a bit: tied or not. Each bit is published by randomized response, flipped with probability 1/(1 + e^ε₀), once. All the rest
//! is post-processing of that noisy network (`communities/`):
//!
//! 1. unbiased estimates of ties and degrees, and with them of the modularity matrix;
//! 2. its leading eigenvectors, as many as rise above the spectrum of the noise, 2σ√n;
//! 3. k-means of users by these, for several k, each improved by moving users to where they have most ties beyond expectation;
//! 4. of these partitions the one with the highest estimated modularity.
//!
//! **Who is hidden.** The users are public. [`Hidden::Tie`] (edge adjacency): neighbours differ in one tie, so in one bit: ε₀ = ε. [`Hidden::User`] (node level, with
//! bounded degree): each user hands in a list of ties, of which at most D count, chosen by a keyed hash; a pair is tied if either list says so. Neighbours
//! differ in all of one user's list: with it or without it, so in at most D bits: ε₀ = ε/D. It hides what a user tells, not what others
//! tell about that user.
//!
//! **Why lists.** A bound on degrees that depends on the whole network is not stable: one user with many ties can push a tie off the list of each of many
//! others, and so change far more than D of them.
//!
//! **What to expect.** With edge adjacency communities stand out when their ties per user exceed about σ√n, σ = e^(ε/2)/(e^ε − 1). At the level of users
//! ε₀ is so small that only networks with very many ties per user show anything: a user's own community is a fact about that user, and hiding users hides it.
//!
//! **Guarantee.** ε, pure: pairs are flipped independently, and the loss is that of the bits that differ.
//!
//! **Exactness.** Coins are exact. Ties of a user with itself, ties with users that were not declared and repeated ties change nothing.
//!
//! **References.** \[Warner1965\], \[Newman2006\], \[Baik2005\], \[Blondel2008\].

mod noisy;
mod partition;
mod spectral;
#[cfg(test)]
mod tests;

use demur_core::{Epsilon, PrivacyLoss, Release};
use demur_exact::Rational;
use demur_noise::{Entropy, Words};

pub use partition::{louvain, modularity};

use crate::LearnError;
use crate::error::require;
use crate::progress::{Progress, Watch, tell};
use noisy::NoisyNetwork;

/// The most users: every pair has a bit.
pub const MAX_USERS: usize = 1 << 15;

/// A network of users 0 … n − 1 and who says to be tied to whom.
///
/// ```
/// use demur_learn::communities::Network;
/// let network = Network::new(4, [(0, 1), (1, 0), (2, 2), (1, 7)])?;
/// assert_eq!(network.users(), 4);
/// assert_eq!(network.ties().collect::<Vec<_>>(), [(0, 1)]);
/// # Ok::<(), demur_learn::LearnError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Whom each user lists: sorted, without itself, without repetitions.
    lists: Vec<Vec<u32>>,
}

impl Network {
    /// So many users, and ties as (who says so, with whom). Those that make no sense count for nothing.
    pub fn new(users: usize, ties: impl IntoIterator<Item = (u32, u32)>) -> Result<Self, LearnError> {
        require((1..=MAX_USERS).contains(&users), "learn.communities.users", || {
            format!("a network has 1 to {MAX_USERS} users, but {users} were declared")
        })?;
        let mut lists = vec![Vec::new(); users];
        for (from, to) in ties {
            if from != to
                && (to as usize) < users
                && let Some(list) = lists.get_mut(from as usize)
            {
                list.push(to);
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Self { lists })
    }

    /// How many users there are; public.
    pub fn users(&self) -> usize {
        self.lists.len()
    }

    /// The pairs that are tied, each once with the smaller user first.
    pub fn ties(&self) -> impl Iterator<Item = (u32, u32)> {
        let listed = |from: u32, to: u32| self.lists[from as usize].binary_search(&to).is_ok();
        self.lists.iter().enumerate().flat_map(move |(from, list)| {
            let from = from as u32;
            list.iter()
                .filter(move |&&to| from < to || !listed(to, from))
                .map(move |&to| (from.min(to), from.max(to)))
        })
    }
}

/// What one person's change may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// One tie between two users: edge adjacency.
    Tie,
    /// All that one user lists: node level, with at most `max_ties` entries per list.
    User {
        /// D.
        max_ties: u32,
    },
}

/// What will be published, and what it costs; see the module text.
///
/// ```
/// use std::ops::ControlFlow;
/// use demur_core::Epsilon;
/// use demur_learn::communities::{Hidden, Network, Plan};
/// use demur_noise::Entropy;
///
/// let plan = Plan::new(80, Hidden::Tie, Epsilon::new(4.0)?)?;
/// assert_eq!(plan.loss().pure_epsilon(), Some("4".parse()?));
///
/// // Charge `plan.loss()`; then, and only then, ties are read. Two groups of 40, each with all ties inside.
/// let ties = (0..80u32).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|(a, b)| a / 40 == b / 40);
/// let network = Network::new(80, ties)?;
/// let labels = plan.run(&network, &mut Entropy::from_os()?, &mut |_| ControlFlow::Continue(()))?.into_value();
/// assert_eq!(labels.len(), 80);
/// assert_ne!(labels[0], labels[79]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    users: usize,
    hidden: Hidden,
    /// Of one bit.
    epsilon: Rational,
}

impl Plan {
    /// For a network of so many users.
    pub fn new(users: usize, hidden: Hidden, epsilon: Epsilon) -> Result<Self, LearnError> {
        require((1..=MAX_USERS).contains(&users), "learn.communities.users", || {
            format!("a network has 1 to {MAX_USERS} users, but {users} were declared")
        })?;
        require(epsilon > Epsilon::ZERO, "learn.epsilon", || {
            "ε = 0 would need infinite noise; ask for more".into()
        })?;
        let bits = match hidden {
            Hidden::Tie => 1,
            Hidden::User { max_ties } => max_ties,
        };
        require(bits > 0, "learn.communities.ties", || {
            "a user may list at least 1 tie, but 0 were declared".into()
        })?;
        let plan = Self { users, hidden, epsilon: &epsilon.exact() / &Rational::from(bits) };
        plan.loss().check()?;
        Ok(plan)
    }

    /// What must be charged before [`run`](Self::run) is called.
    pub fn loss(&self) -> PrivacyLoss {
        let bit = PrivacyLoss::RandomizedResponse { epsilon: self.epsilon.clone(), categories: 2 };
        match self.hidden {
            Hidden::Tie => bit,
            Hidden::User { max_ties } => bit.repeat(u64::from(max_ties)),
        }
    }

    /// Finds the communities: a label for each user, from 0 on. Charge [`loss`](Self::loss) first: it stands whatever happens here.
    pub fn run(
        &self,
        network: &Network,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<Vec<usize>>, LearnError> {
        let noisy = self.publish(network, entropy)?;
        tell(watch, Progress { stage: "publishing noisy ties", step: 1, steps: Some(3) })?;
        let places = spectral::places(&noisy, entropy);
        tell(watch, Progress { stage: "finding directions", step: 2, steps: Some(3) })?;
        let labels = partition::best(&noisy, &places, entropy);
        tell(watch, Progress { stage: "moving users", step: 3, steps: Some(3) })?;
        Ok(Release::new(labels, self.loss()))
    }

    /// The only function that sees ties.
    fn publish<W: Words>(&self, network: &Network, words: &mut W) -> Result<NoisyNetwork, LearnError> {
        require(network.users() == self.users, "learn.communities.network", || {
            format!("the plan is for {} users, but the network has {}", self.users, network.users())
        })?;
        let key = words.word();
        let ties = match self.hidden {
            Hidden::Tie => noisy::bits(self.users, &network.lists),
            Hidden::User { max_ties } => noisy::bits(self.users, &shortened(&network.lists, max_ties, key)),
        };
        noisy::respond(self.users, ties, &self.epsilon, words)
    }
}

/// Of each list at most so many entries, chosen by a hash of who and with whom: no other list has a say.
fn shortened(lists: &[Vec<u32>], most: u32, key: u64) -> Vec<Vec<u32>> {
    let shorten = |(user, list): (usize, &Vec<u32>)| {
        let key = crate::people::mix(key, user as u64);
        let mut list = list.clone();
        if list.len() > most as usize {
            list.sort_by_key(|&to| crate::people::mix(key, u64::from(to)));
            list.truncate(most as usize);
        }
        list
    };
    lists.iter().enumerate().map(shorten).collect()
}
