//! [`greatest`]: how much can be taken from units of two kinds at once, when none may give more than it may.
//!
//! **Definition.** Each pair of a first and a second unit has an amount. From each pair something between 0 and its amount is taken, from all pairs of one first unit at most
//! a, from all pairs of one second unit at most b. The number is the most that can be taken in all: a maximum flow.
//!
//! **Guarantee.** With all pairs of a first unit taken away it falls by 0 to a; of a second unit, by 0 to b.
//!
//! **Why.** Take what was taken before, and leave out what came from the unit: that is allowed without it, and lacks at most a (or b). Whatever can be taken without the unit
//! can be taken with it.
//!
//! **Why not by choosing pairs.** If everybody keeps some pairs by a rule of their own, the pairs of a second unit that goes away make room for others, in as many
//! second units as it had people: its reach has no limit. The size of the maximum has one.
//!
//! **Exactness.** Whole numbers; shortest augmenting paths \[Dinic1970\]. Where no limit is reached, it is the sum, without a search.

use std::collections::VecDeque;

/// What a first and a second unit have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    pub(crate) amount: i128,
}

/// The most that can be taken from all pairs; units are numbered from 0, amounts and limits are not negative.
pub(crate) fn greatest(pairs: &[Pair], of_first: i128, of_second: i128) -> i128 {
    let sums = |unit: fn(&Pair) -> u32| {
        let mut sums = vec![0i128; pairs.iter().map(|pair| unit(pair) as usize + 1).max().unwrap_or(0)];
        pairs.iter().for_each(|pair| sums[unit(pair) as usize] += pair.amount);
        sums
    };
    let (firsts, seconds) = (sums(|pair| pair.first), sums(|pair| pair.second));
    let free = |sums: &[i128], most: i128| sums.iter().all(|sum| *sum <= most);
    match (free(&firsts, of_first), free(&seconds, of_second)) {
        (true, true) => firsts.iter().sum(),
        // One side alone gives what it may.
        (false, true) => firsts.iter().map(|sum| (*sum).min(of_first)).sum(),
        (true, false) => seconds.iter().map(|sum| (*sum).min(of_second)).sum(),
        (false, false) => {
            let (start, end) = (0, 1);
            let first = |unit: u32| 2 + unit as usize;
            let second = |unit: u32| 2 + firsts.len() + unit as usize;
            let mut network = Network::new(2 + firsts.len() + seconds.len());
            (0..firsts.len()).for_each(|unit| network.connect(start, first(unit as u32), of_first));
            (0..seconds.len()).for_each(|unit| network.connect(second(unit as u32), end, of_second));
            pairs
                .iter()
                .for_each(|pair| network.connect(first(pair.first), second(pair.second), pair.amount));
            network.flow(start, end)
        }
    }
}

/// Nodes with ways between them; way 2i + 1 is way 2i backwards.
struct Network {
    to: Vec<usize>,
    room: Vec<i128>,
    ways: Vec<Vec<usize>>,
}

impl Network {
    fn new(nodes: usize) -> Self {
        Self { to: Vec::new(), room: Vec::new(), ways: vec![Vec::new(); nodes] }
    }

    fn connect(&mut self, from: usize, to: usize, room: i128) {
        for (from, to, room) in [(from, to, room), (to, from, 0)] {
            self.ways[from].push(self.to.len());
            self.to.push(to);
            self.room.push(room);
        }
    }

    /// The most that fits through from `start` to `end`.
    fn flow(&mut self, start: usize, end: usize) -> i128 {
        let mut total = 0;
        loop {
            let depth = self.depths(start);
            if depth[end] == usize::MAX {
                return total;
            }
            let mut next = vec![0; self.ways.len()];
            while let Some(path) = self.path(start, end, &depth, &mut next) {
                let most = path.iter().map(|&way| self.room[way]).min().unwrap_or(0);
                for way in path {
                    self.room[way] -= most;
                    self.room[way ^ 1] += most;
                }
                total += most;
            }
        }
    }

    /// How many ways with room lead from the start to each node.
    fn depths(&self, start: usize) -> Vec<usize> {
        let mut depth = vec![usize::MAX; self.ways.len()];
        depth[start] = 0;
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &way in &self.ways[node] {
                if self.room[way] > 0 && depth[self.to[way]] == usize::MAX {
                    depth[self.to[way]] = depth[node] + 1;
                    queue.push_back(self.to[way]);
                }
            }
        }
        depth
    }

    /// A path of growing depth; `next` remembers which ways of each node lead nowhere.
    fn path(&self, start: usize, end: usize, depth: &[usize], next: &mut [usize]) -> Option<Vec<usize>> {
        let (mut path, mut node) = (Vec::new(), start);
        while node != end {
            match self.ways[node].get(next[node]) {
                Some(&way) if self.room[way] > 0 && depth[self.to[way]] == depth[node] + 1 => {
                    path.push(way);
                    node = self.to[way];
                }
                Some(_) => next[node] += 1,
                None => {
                    node = self.to[path.pop()? ^ 1];
                    next[node] += 1;
                }
            }
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs() -> impl Strategy<Value = Vec<Pair>> {
        let pair = (0u32..5, 0u32..4, 0i128..9);
        let pair = pair.prop_map(|(first, second, amount)| Pair { first, second, amount });
        proptest::collection::vec(pair, 0..14)
    }

    /// The least cut: every way to put units on one side or the other (Ford and Fulkerson).
    fn least_cut(pairs: &[Pair], of_first: i128, of_second: i128) -> i128 {
        let present = |unit: fn(&Pair) -> u32| pairs.iter().fold(0u32, |set, pair| set | 1 << unit(pair));
        let (firsts, seconds) = (present(|pair| pair.first), present(|pair| pair.second));
        let cut = |near: u32| {
            let near_first = near & 31;
            let near_second = near >> 5;
            let through = pairs
                .iter()
                .filter(|pair| near_first >> pair.first & 1 == 1 && near_second >> pair.second & 1 == 0);
            let through: i128 = through.map(|pair| pair.amount).sum();
            i128::from((firsts & !near_first).count_ones()) * of_first
                + i128::from((seconds & near_second).count_ones()) * of_second
                + through
        };
        (0..1 << 9).map(cut).min().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_greatest_flow_is_the_least_cut(pairs in pairs(), of_first in 0i128..12, of_second in 0i128..16) {
            prop_assert_eq!(greatest(&pairs, of_first, of_second), least_cut(&pairs, of_first, of_second));
        }

        #[test]
        fn one_unit_moves_it_by_no_more_than_it_may(pairs in pairs(), of_first in 0i128..12, of_second in 0i128..16) {
            let all = greatest(&pairs, of_first, of_second);
            let without = |keep: &dyn Fn(&Pair) -> bool| {
                let rest: Vec<Pair> = pairs.iter().copied().filter(keep).collect();
                all - greatest(&rest, of_first, of_second)
            };
            for unit in 0..5 {
                prop_assert!((0..=of_first).contains(&without(&|pair| pair.first != unit)));
                prop_assert!((0..=of_second).contains(&without(&|pair| pair.second != unit)));
            }
        }
    }
}
