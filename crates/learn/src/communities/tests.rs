use std::ops::ControlFlow;

use demur_testkit::{Rigged, Seeded};

use super::*;

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn labels(plan: &Plan, network: &Network, seed: u64) -> Vec<usize> {
    let words = &mut Seeded::new(seed);
    let noisy = plan.publish(network, words).unwrap();
    let places = spectral::places(&noisy, words);
    partition::best(&noisy, &places, words)
}

/// Groups of equal size; ties inside with one probability, outside with another.
fn planted(groups: usize, size: usize, inside: f64, outside: f64, seed: u64) -> (Network, Vec<usize>) {
    let words = &mut Seeded::new(seed);
    let users = groups * size;
    let mut ties = Vec::new();
    for a in 0..users {
        for b in 0..a {
            let rate = if a / size == b / size { inside } else { outside };
            if (words.word() as f64 / 2f64.powi(64)) < rate {
                ties.push((a as u32, b as u32));
            }
        }
    }
    (Network::new(users, ties).unwrap(), (0..users).map(|user| user / size).collect())
}

#[test]
fn planted_groups_are_found() {
    let (network, truth) = planted(4, 100, 0.4, 0.02, 1);
    let best = modularity(&network, &truth);
    for (value, part) in [(1.0, 0.9), (4.0, 0.98)] {
        let found = labels(&Plan::new(400, Hidden::Tie, epsilon(value)).unwrap(), &network, 2);
        assert!(modularity(&network, &found) > part * best, "{value}");
    }
    assert!(modularity(&network, &louvain(&network)) > 0.98 * best);
}

/// With the same coins, two networks that differ in one tie differ in one published bit; with coins that never flip, that bit is the tie.
#[test]
fn one_tie_is_one_bit_and_coins_do_not_depend_on_ties() {
    let (network, _) = planted(2, 50, 0.3, 0.1, 3);
    let mut ties: Vec<(u32, u32)> = network.ties().collect();
    let removed = ties.remove(17);
    let fewer = Network::new(100, ties).unwrap();
    let plan = Plan::new(100, Hidden::Tie, epsilon(0.5)).unwrap();
    let (mut one, mut other) = (Seeded::new(4), Seeded::new(4));
    let (a, b) = (plan.publish(&network, &mut one).unwrap(), plan.publish(&fewer, &mut other).unwrap());
    let differ: Vec<(usize, usize)> = (0..100)
        .flat_map(|user| (user + 1..100).map(move |other| (user, other)))
        .filter(|&(user, other)| a.others(user).any(|x| x == other) != b.others(user).any(|x| x == other))
        .collect();
    assert_eq!(differ, [(removed.0 as usize, removed.1 as usize)]);
    assert_eq!(one.word(), other.word(), "as many words were drawn");
}

/// False alarm 1e-8 (six standard deviations). Finds a flip probability that is off by 5 %.
#[test]
fn bits_are_flipped_as_often_as_they_should_be() {
    let empty = Network::new(300, []).unwrap();
    let plan = Plan::new(300, Hidden::Tie, epsilon(1.0)).unwrap();
    let noisy = plan.publish(&empty, &mut Seeded::new(demur_testkit::seed(74))).unwrap();
    let pairs = 300.0 * 299.0 / 2.0;
    let set = (0..300).map(|user| noisy.others(user).count()).sum::<usize>() as f64 / 2.0;
    let p = 1.0 / (1.0 + 1f64.exp());
    assert!((set - p * pairs).abs() < 6.0 * (p * (1.0 - p) * pairs).sqrt(), "{set}");
    for user in 0..300 {
        assert!(noisy.others(user).all(|other| other != user && noisy.others(other).any(|x| x == user)));
    }
    // Estimated degrees are unbiased: their mean is 0 here.
    let mean = noisy.degrees.iter().sum::<f64>() / 300.0;
    assert!(mean.abs() < 6.0 * noisy.deviation() * (2.0 * 299.0 / 300.0f64).sqrt(), "{mean}");
}

/// Words of zeros make every coin say flip: no pair may be left out, and no user is tied to itself.
#[test]
fn every_pair_has_a_coin() {
    for users in [1usize, 2, 63, 64, 65, 130] {
        let plan = Plan::new(users, Hidden::Tie, epsilon(1.0)).unwrap();
        let coins = &mut Rigged::new(vec![0; 100_000]);
        let noisy = plan.publish(&Network::new(users, []).unwrap(), coins).unwrap();
        for user in 0..users {
            let others: Vec<usize> = (0..users).filter(|&other| other != user).collect();
            assert_eq!(noisy.others(user).collect::<Vec<_>>(), others, "{users}");
        }
    }
}

#[test]
fn a_users_list_changes_no_more_bits_than_declared() {
    let (network, _) = planted(2, 40, 0.5, 0.2, 5);
    let both: Vec<(u32, u32)> = network.ties().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let full = Network::new(80, both.iter().copied()).unwrap();
    for max_ties in [1, 3, 10] {
        let plan = Plan::new(80, Hidden::User { max_ties }, epsilon(1.0)).unwrap();
        assert_eq!(plan.loss().pure_epsilon(), Some(epsilon(1.0).exact()));
        for user in 0..80u32 {
            let without = Network::new(80, both.iter().copied().filter(|tie| tie.0 != user)).unwrap();
            let bits = |network: &Network| noisy::bits(80, &shortened(&network.lists, max_ties, 9));
            let [here, there] = [bits(&full), bits(&without)];
            let count = here.differing(&there);
            assert!(count <= max_ties, "{user}: {count}");
        }
    }
}

/// A planted bug: short lists that both sides must agree on let one user change other lists' entries.
#[test]
fn a_bound_that_depends_on_others_is_noticed() {
    // Everybody is tied to the last user, and in a ring.
    let users = 30u32;
    let ring = (0..users - 1).flat_map(|a| [(a, (a + 1) % (users - 1)), (a, (a + 2) % (users - 1))]);
    let hub = (0..users - 1).map(|a| (a, users - 1));
    let lists = |with_hub: bool| {
        let ties: Vec<(u32, u32)> = ring.clone().chain(hub.clone().filter(|_| with_hub)).collect();
        let both: Vec<(u32, u32)> = ties.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        Network::new(users as usize, both).unwrap().lists
    };
    // Each node keeps two of all its ties; with the hub gone from the network others take its place.
    let short = |with_hub| noisy::bits(users as usize, &shortened(&lists(with_hub), 2, 1));
    assert!(short(true).differing(&short(false)) > 2);
}

#[test]
fn odd_networks_get_labels() {
    for (users, ties) in [
        (1, vec![]),
        (2, vec![(0, 1)]),
        (5, vec![]),
        (5, vec![(1, 1), (0, 9), (9, 0), (0, 1), (0, 1), (1, 0)]),
    ] {
        let network = Network::new(users, ties).unwrap();
        let found = labels(&Plan::new(users, Hidden::Tie, epsilon(1.0)).unwrap(), &network, 1);
        assert_eq!(found.len(), users);
        assert_eq!(louvain(&network).len(), users);
        assert!(modularity(&network, &found).is_finite());
    }
}

#[test]
fn nonsense_is_refused_and_who_watches_can_stop_it() {
    assert_eq!(Network::new(0, []).unwrap_err().code(), "learn.communities.users");
    assert_eq!(
        Plan::new(MAX_USERS + 1, Hidden::Tie, epsilon(1.0)).unwrap_err().code(),
        "learn.communities.users"
    );
    assert_eq!(Plan::new(5, Hidden::Tie, Epsilon::ZERO).unwrap_err().code(), "learn.epsilon");
    let none = Hidden::User { max_ties: 0 };
    assert_eq!(Plan::new(5, none, epsilon(1.0)).unwrap_err().code(), "learn.communities.ties");
    let plan = Plan::new(5, Hidden::Tie, epsilon(1.0)).unwrap();
    let entropy = &mut Entropy::from_os().unwrap();
    let other = Network::new(6, []).unwrap();
    assert_eq!(
        plan.run(&other, entropy, &mut |_| ControlFlow::Continue(())).unwrap_err().code(),
        "learn.communities.network"
    );
    let network = Network::new(5, []).unwrap();
    assert_eq!(
        plan.run(&network, entropy, &mut |_| ControlFlow::Break(())).unwrap_err().code(),
        "learn.stopped"
    );
}

#[test]
fn masks_take_the_users_after_one() {
    let network = Network::new(130, [(0, 129), (63, 64), (64, 65), (127, 128)]).unwrap();
    // The largest ε: with words of ones no coin says flip.
    let plan = Plan::new(130, Hidden::Tie, epsilon(20.0)).unwrap();
    let noisy = plan.publish(&network, &mut Rigged::new(vec![u64::MAX; 100_000])).unwrap();
    assert_eq!(noisy.others(64).collect::<Vec<_>>(), [63, 65]);
    assert_eq!(noisy.others(129).collect::<Vec<_>>(), [0]);
    assert_eq!((0..130).map(|user| noisy.others(user).count()).sum::<usize>(), 8);
}
