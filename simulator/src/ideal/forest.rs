//! The least ways from everybody to the nearest of some roots: [`Forest`].

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A tree for each root. Hops cost the same both ways, so the way back is the way there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Forest {
    /// By node; none for a root, and for who has no way.
    next: Vec<Option<usize>>,
    /// By node; infinite for who has no way.
    cost: Vec<f64>,
}

/// No hop costs less: one transmission.
pub(super) const HOP_MIN: f64 = 1.0;

/// Who is reached at this cost, the least first.
struct Reached {
    cost: f64,
    node: usize,
}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then(self.node.cmp(&other.node))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Reached {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Reached {}

impl Forest {
    /// By Dijkstra's algorithm. `near` says who may hear a node, `hop` what a hop costs: at least
    /// [`HOP_MIN`], infinite where there is none. It is asked only for hops that could be of use,
    /// and of each pair once.
    pub(super) fn grow(
        nodes: usize,
        roots: impl IntoIterator<Item = usize>,
        near: impl Fn(usize) -> Vec<usize>,
        hop: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let mut forest = Self { next: vec![None; nodes], cost: vec![f64::INFINITY; nodes] };
        let mut queue = BinaryHeap::new();
        for root in roots {
            if let Some(cost) = forest.cost.get_mut(root) {
                *cost = 0.0;
                queue.push(Reverse(Reached { cost: 0.0, node: root }));
            }
        }
        while let Some(Reverse(Reached { cost, node: at })) = queue.pop() {
            if cost > forest.cost_of(at) {
                continue;
            }
            for node in near(at) {
                if cost + HOP_MIN >= forest.cost_of(node) {
                    continue;
                }
                let cost = cost + hop(at, node);
                if cost < forest.cost_of(node)
                    && let Some((next, least)) =
                        forest.next.get_mut(node).zip(forest.cost.get_mut(node))
                {
                    (*next, *least) = (Some(at), cost);
                    queue.push(Reverse(Reached { cost, node }));
                }
            }
        }
        forest
    }

    /// What the way from here costs; infinite without one.
    pub(super) fn cost_of(&self, node: usize) -> f64 {
        self.cost.get(node).copied().unwrap_or(f64::INFINITY)
    }

    /// Who is next on the way from here to its root; none for a root, and without a way.
    pub(super) fn next(&self, node: usize) -> Option<usize> {
        self.next.get(node).copied().flatten()
    }

    /// The nodes from here to its root, both included; just this one without a way.
    pub(super) fn way(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |&at| self.next(at))
    }

    /// The root this node has a way to.
    pub(super) fn root(&self, node: usize) -> Option<usize> {
        self.cost_of(node).is_finite().then(|| self.way(node).last()).flatten()
    }

    /// Who is next on the way from `at` down to `node`, if that leads over `at`.
    pub(super) fn down(&self, at: usize, node: usize) -> Option<usize> {
        self.way(node).find(|&before| self.next(before) == Some(at))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};

    use sim::Dice;

    use super::*;

    fn grow(nodes: usize, roots: &[usize], hops: &BTreeMap<(usize, usize), f64>) -> Forest {
        let asked = RefCell::new(BTreeSet::new());
        Forest::grow(
            nodes,
            roots.iter().copied(),
            |at| (0..nodes).filter(|&to| hops.contains_key(&(at.min(to), at.max(to)))).collect(),
            |a, b| {
                let pair = (a.min(b), a.max(b));
                assert!(asked.borrow_mut().insert(pair), "{pair:?} again");
                hops[&pair]
            },
        )
    }

    /// Against all ways of up to so many hops, tried one after the other.
    #[test]
    fn ways_are_the_least_there_are() {
        for seed in 0..200 {
            let mut dice = Dice::new(seed, 1);
            let nodes = 2 + dice.index(9);
            let mut hops = BTreeMap::new();
            for b in 0..nodes {
                for a in (0..b).filter(|_| dice.chance(0.4)).collect::<Vec<_>>() {
                    hops.insert((a, b), 1.0 + dice.index(40) as f64 / 10.0);
                }
            }
            let roots: Vec<usize> = (0..=dice.index(2)).collect();
            let forest = grow(nodes, &roots, &hops);
            let mut least = vec![f64::INFINITY; nodes];
            roots.iter().for_each(|&root| least[root] = 0.0);
            for _ in 0..nodes {
                for (&(a, b), hop) in &hops {
                    (least[a], least[b]) =
                        (least[a].min(least[b] + hop), least[b].min(least[a] + hop));
                }
            }
            for (node, &asked) in least.iter().enumerate() {
                let found = forest.cost_of(node);
                let is_same = found == asked || (found - asked).abs() < 1e-9;
                assert!(is_same, "seed {seed}, node {node}: {found} for {asked}");
                assert_eq!(forest.root(node).is_some(), asked.is_finite(), "{seed}, {node}");
                let way: Vec<usize> = forest.way(node).collect();
                let of_way: f64 =
                    way.windows(2).map(|w| hops[&(w[0].min(w[1]), w[0].max(w[1]))]).sum();
                assert!(asked.is_infinite() || (of_way - asked).abs() < 1e-9, "{seed}, {node}");
                for pair in way.windows(2) {
                    assert_eq!(forest.down(pair[1], node), Some(pair[0]), "{seed}, {node}");
                }
                assert_eq!(forest.down(node, node), None);
            }
        }
    }
}
