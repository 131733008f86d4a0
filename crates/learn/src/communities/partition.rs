//! Partitions of users: how good one is, how it gets better, and Louvain's method without privacy to compare with.
//!
//! **Definition.** The modularity of a partition is the share of ties inside its parts, less what users with the same degrees would have there by chance:
//! Q = Σ_parts (ties inside/m − (degrees/2m)²).
//!
//! **References.** \[Newman2006\], \[Blondel2008\].

use std::collections::HashMap;

use demur_noise::Words;
use rayon::prelude::*;

use super::Network;
use super::noisy::NoisyNetwork;
use crate::kmeans::{Weighted, centers, nearest};

/// How often all users are asked whether they would rather be elsewhere.
const PASSES: usize = 10;
/// Attempts to cluster the places, for each number of parts.
const ATTEMPTS: usize = 5;

/// The partition with the highest estimated modularity among those tried.
pub(super) fn best<W: Words>(network: &NoisyNetwork, places: &[Vec<f64>], words: &mut W) -> Vec<usize> {
    let directions = places.first().map_or(1, Vec::len);
    let most = (4 * directions + 2).min(network.users());
    let points: Vec<Weighted> =
        places.iter().map(|place| Weighted { place: place.clone(), weight: 1.0 }).collect();
    let mut starts = vec![vec![0; network.users()]];
    let mut parts = 2;
    while parts <= most {
        let centers = centers(&points, parts, ATTEMPTS, words);
        starts.push(places.iter().map(|place| nearest(&centers, place).0).collect());
        parts = (parts * 3).div_ceil(2);
    }
    let tried = starts.into_par_iter().map(|start| {
        let labels = moved(network, start);
        (estimate(network, &labels), labels)
    });
    // Of equals the first: one part beats nothing.
    let tried: Vec<(f64, Vec<usize>)> = tried.collect();
    let best = tried.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best });
    renamed(best.map_or_else(Vec::new, |(_, labels)| labels))
}

/// Labels from 0 on, in the order of their first users.
fn renamed(mut labels: Vec<usize>) -> Vec<usize> {
    let mut names = HashMap::new();
    for label in &mut labels {
        let next = names.len();
        *label = *names.entry(*label).or_insert(next);
    }
    labels
}

/// Estimated ties of a user to every part, less what is expected; the user itself belongs to none.
fn pulls(network: &NoisyNetwork, labels: &[usize], sizes: &[f64], degrees: &[f64], user: usize) -> Vec<f64> {
    let mut set = vec![0.0; sizes.len()];
    for other in network.others(user) {
        set[labels[other]] += 1.0;
    }
    let own = network.degrees[user];
    let pull = |part: usize| {
        let itself = if labels[user] == part { 1.0 } else { 0.0 };
        let ties = network.unbiased(set[part], sizes[part] - itself);
        ties - own * (degrees[part] - itself * own) / network.total
    };
    (0..sizes.len()).map(pull).collect()
}

/// Users move to where they are pulled most, until nobody wants to or enough have been asked.
fn moved(network: &NoisyNetwork, mut labels: Vec<usize>) -> Vec<usize> {
    let parts = labels.iter().max().map_or(0, |most| most + 1);
    let (mut sizes, mut degrees) = (vec![0.0; parts], vec![0.0; parts]);
    for (user, &label) in labels.iter().enumerate() {
        sizes[label] += 1.0;
        degrees[label] += network.degrees[user];
    }
    for _ in 0..PASSES {
        let mut moves = 0;
        for user in 0..labels.len() {
            let pulls = pulls(network, &labels, &sizes, &degrees, user);
            let here = labels[user];
            let there =
                (0..parts).fold(here, |best, part| if pulls[part] > pulls[best] { part } else { best });
            if there != here {
                let degree = network.degrees[user];
                (sizes[here], sizes[there]) = (sizes[here] - 1.0, sizes[there] + 1.0);
                (degrees[here], degrees[there]) = (degrees[here] - degree, degrees[there] + degree);
                labels[user] = there;
                moves += 1;
            }
        }
        if moves == 0 {
            break;
        }
    }
    labels
}

/// The modularity that the noisy network says a partition has.
fn estimate(network: &NoisyNetwork, labels: &[usize]) -> f64 {
    let parts = labels.iter().max().map_or(0, |most| most + 1);
    let (mut sizes, mut degrees) = (vec![0.0; parts], vec![0.0; parts]);
    for (user, &label) in labels.iter().enumerate() {
        sizes[label] += 1.0;
        degrees[label] += network.degrees[user];
    }
    let inside = |user: usize| {
        let set = network.others(user).filter(|&other| labels[other] == labels[user]).count() as f64;
        network.unbiased(set, sizes[labels[user]] - 1.0)
    };
    let ties: f64 = (0..labels.len()).map(inside).sum();
    let expected: f64 = degrees.iter().map(|degree| degree * degree).sum::<f64>() / network.total;
    (ties - expected) / network.total
}

/// The modularity of a partition, from the true ties: **not private**, for tests and comparisons.
pub fn modularity(network: &Network, labels: &[usize]) -> f64 {
    let mut degrees: HashMap<usize, f64> = HashMap::new();
    let (mut inside, mut ties) = (0.0, 0.0);
    let label = |user: u32| labels.get(user as usize).copied().unwrap_or(usize::MAX);
    for (a, b) in network.ties() {
        ties += 1.0;
        inside += f64::from(u8::from(label(a) == label(b)));
        *degrees.entry(label(a)).or_default() += 1.0;
        *degrees.entry(label(b)).or_default() += 1.0;
    }
    if ties == 0.0 {
        return 0.0;
    }
    let expected: f64 = degrees.values().map(|degree| (degree / (2.0 * ties)).powi(2)).sum();
    inside / ties - expected
}

/// Louvain's method on the true ties: **not private**, for comparisons.
///
/// ```
/// use demur_learn::communities::{Network, louvain, modularity};
/// let two = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)];
/// let network = Network::new(6, two)?;
/// let labels = louvain(&network);
/// assert_eq!(labels, [0, 0, 0, 1, 1, 1]);
/// assert!((modularity(&network, &labels) - 5.0 / 14.0).abs() < 1e-12);
/// # Ok::<(), demur_learn::LearnError>(())
/// ```
pub fn louvain(network: &Network) -> Vec<usize> {
    let mut labels: Vec<usize> = (0..network.users()).collect();
    // Weighted ties between parts; those of a part with itself stand for both their ends.
    let mut ties: Vec<HashMap<usize, f64>> = vec![HashMap::new(); network.users()];
    for (a, b) in network.ties() {
        *ties[a as usize].entry(b as usize).or_default() += 1.0;
        *ties[b as usize].entry(a as usize).or_default() += 1.0;
    }
    loop {
        let (parts, joined) = join(&ties);
        for label in &mut labels {
            *label = joined[*label];
        }
        if parts == ties.len() {
            return renamed(labels);
        }
        let mut merged: Vec<HashMap<usize, f64>> = vec![HashMap::new(); parts];
        for (from, list) in ties.iter().enumerate() {
            for (&to, weight) in list {
                *merged[joined[from]].entry(joined[to]).or_default() += weight;
            }
        }
        ties = merged;
    }
}

/// One level: nodes join their best neighbour's part while that raises the modularity. How many parts there are, and each node's.
fn join(ties: &[HashMap<usize, f64>]) -> (usize, Vec<usize>) {
    let degrees: Vec<f64> = ties.iter().map(|list| list.values().sum()).collect();
    let total: f64 = degrees.iter().sum::<f64>().max(1.0);
    let mut labels: Vec<usize> = (0..ties.len()).collect();
    let mut of_part = degrees.clone();
    loop {
        let mut moves = 0;
        for node in 0..ties.len() {
            let here = labels[node];
            of_part[here] -= degrees[node];
            let mut to_part: HashMap<usize, f64> = HashMap::from([(here, 0.0)]);
            for (&other, weight) in ties[node].iter().filter(|&(&other, _)| other != node) {
                *to_part.entry(labels[other]).or_default() += weight;
            }
            let gain = |part: usize, weight: f64| weight - degrees[node] * of_part[part] / total;
            let stay = gain(here, to_part[&here]);
            let better = to_part.iter().map(|(&part, &weight)| (gain(part, weight), part));
            let (best, there) = better.fold((stay + 1e-9, here), |best, next| {
                if next.0 > best.0 || (next.0 == best.0 && next.1 < best.1) { next } else { best }
            });
            if there != here && best > stay {
                labels[node] = there;
                moves += 1;
            }
            of_part[labels[node]] += degrees[node];
        }
        if moves == 0 {
            break;
        }
    }
    let labels = renamed(labels);
    (labels.iter().max().map_or(0, |most| most + 1), labels)
}
