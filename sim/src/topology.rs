//! Who can hear whom: [`Graph`], ways to draw one, and all small ones.

use std::collections::{BTreeSet, VecDeque};

use crate::dice::Dice;

/// An undirected graph: node `n` of the graph is the `n`-th node of a world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Graph {
    nodes: usize,
    edges: BTreeSet<(usize, usize)>,
}

impl Graph {
    /// `nodes` nodes, none linked.
    pub fn empty(nodes: usize) -> Self {
        Self { nodes, edges: BTreeSet::new() }
    }

    /// A graph with these edges. Loops and edges to nodes that do not exist are left out.
    pub fn new(nodes: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut graph = Self::empty(nodes);
        for (a, b) in edges {
            graph.link(a, b);
        }
        graph
    }

    /// 0 – 1 – 2 – …
    pub fn chain(nodes: usize) -> Self {
        Self::new(nodes, (1..nodes).map(|n| (n - 1, n)))
    }

    /// 0 – 1 – 2 – … – 0
    pub fn ring(nodes: usize) -> Self {
        let mut graph = Self::chain(nodes);
        graph.link(0, nodes.saturating_sub(1));
        graph
    }

    /// Node 0 in the middle, all others around it.
    pub fn star(nodes: usize) -> Self {
        Self::new(nodes, (1..nodes).map(|n| (0, n)))
    }

    /// Everyone hears everyone: one radio cell.
    pub fn complete(nodes: usize) -> Self {
        Self::new(nodes, (0..nodes).flat_map(|b| (0..b).map(move |a| (a, b))))
    }

    /// `columns` × `rows`, each node linked to those beside, above and below it.
    pub fn grid(columns: usize, rows: usize) -> Self {
        let mut graph = Self::empty(columns * rows);
        for row in 0..rows {
            for column in 0..columns {
                let node = row * columns + column;
                if column + 1 < columns {
                    graph.link(node, node + 1);
                }
                if row + 1 < rows {
                    graph.link(node, node + columns);
                }
            }
        }
        graph
    }

    /// Each pair linked with this probability; may fall into parts.
    pub fn random(nodes: usize, density: f64, dice: &mut Dice) -> Self {
        let pairs = (0..nodes).flat_map(|b| (0..b).map(move |a| (a, b)));
        Self::new(nodes, pairs.filter(|_| dice.chance(density)).collect::<Vec<_>>())
    }

    /// A random tree over all nodes, and each further pair linked with this probability.
    pub fn random_connected(nodes: usize, density: f64, dice: &mut Dice) -> Self {
        let mut graph = Self::random(nodes, density, dice);
        let mut order: Vec<usize> = (0..nodes).collect();
        dice.shuffle(&mut order);
        for (position, &node) in order.iter().enumerate().skip(1) {
            if let Some(&earlier) = order.get(dice.index(position)) {
                graph.link(node, earlier);
            }
        }
        graph
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The edges, each once, lower node first, in order.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.edges.iter().copied()
    }

    /// Links two nodes.
    pub fn link(&mut self, a: usize, b: usize) {
        if a != b && a < self.nodes && b < self.nodes {
            self.edges.insert((a.min(b), a.max(b)));
        }
    }

    /// Takes a link away.
    pub fn unlink(&mut self, a: usize, b: usize) {
        self.edges.remove(&(a.min(b), a.max(b)));
    }

    /// Are these two linked?
    pub fn is_linked(&self, a: usize, b: usize) -> bool {
        self.edges.contains(&(a.min(b), a.max(b)))
    }

    /// Hops from each node to the nearest of `roots`; `None` where there is no way.
    pub fn hops_to(&self, roots: impl IntoIterator<Item = usize>) -> Vec<Option<usize>> {
        let mut near = vec![Vec::new(); self.nodes];
        for &(a, b) in &self.edges {
            for (from, to) in [(a, b), (b, a)] {
                if let Some(near) = near.get_mut(from) {
                    near.push(to);
                }
            }
        }
        let mut hops = vec![None; self.nodes];
        let mut queue = VecDeque::new();
        for root in roots {
            if let Some(slot) = hops.get_mut(root) {
                *slot = Some(0);
                queue.push_back((root, 0));
            }
        }
        while let Some((node, distance)) = queue.pop_front() {
            for &next in near.get(node).into_iter().flatten() {
                if let Some(slot @ None) = hops.get_mut(next) {
                    *slot = Some(distance + 1);
                    queue.push_back((next, distance + 1));
                }
            }
        }
        hops
    }

    /// Is there a way from every node to every other?
    pub fn is_connected(&self) -> bool {
        self.hops_to([0]).iter().all(Option::is_some)
    }
}

/// A small graph as bits: edge (a, b) with a < b is bit b·(b−1)/2 + a.
type Mask = u32;

const fn bit(a: usize, b: usize) -> usize {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    high * (high - 1) / 2 + low
}

/// Largest `nodes` for [`all_connected`]: 21 edges, 5,040 permutations.
pub const ALL_MAX: usize = 7;

/// One connected graph per isomorphism class, in a fixed order. Empty above [`ALL_MAX`] nodes.
pub fn all_connected(nodes: usize) -> Vec<Graph> {
    classes(nodes).into_iter().map(|mask| graph_of(nodes, mask)).collect()
}

/// Every connected graph of `nodes` nodes in which `roots` nodes are marked, one per class of what
/// cannot be told apart by renaming nodes. The marked nodes come with the graph.
pub fn all_rooted(nodes: usize, roots: usize) -> Vec<(Graph, Vec<usize>)> {
    let renamings = permutations(nodes);
    let mut found = Vec::new();
    for mask in classes(nodes) {
        let symmetries: Vec<&Vec<usize>> =
            renamings.iter().filter(|renaming| renamed(mask, renaming) == mask).collect();
        let mut seen = BTreeSet::new();
        for chosen in subsets(nodes, roots) {
            // Of the choices a symmetry turns into one another the first is taken.
            let alike = symmetries.iter().map(|symmetry| {
                let mut image: Vec<usize> =
                    chosen.iter().filter_map(|&node| symmetry.get(node).copied()).collect();
                image.sort_unstable();
                image
            });
            if seen.insert(alike.min().unwrap_or_default()) {
                found.push((graph_of(nodes, mask), chosen));
            }
        }
    }
    found
}

/// The smallest mask of each class of connected graphs.
fn classes(nodes: usize) -> Vec<Mask> {
    if nodes == 0 || nodes > ALL_MAX {
        return Vec::new();
    }
    let renamings = permutations(nodes);
    let masks: Mask = 1 << (nodes * (nodes - 1) / 2);
    let mut seen = vec![false; masks as usize];
    let mut found = Vec::new();
    for mask in 0..masks {
        if seen.get(mask as usize) != Some(&false) {
            continue;
        }
        for renaming in &renamings {
            if let Some(slot) = seen.get_mut(renamed(mask, renaming) as usize) {
                *slot = true;
            }
        }
        if graph_of(nodes, mask).is_connected() {
            found.push(mask);
        }
    }
    found
}

fn graph_of(nodes: usize, mask: Mask) -> Graph {
    let pairs = (0..nodes).flat_map(|b| (0..b).map(move |a| (a, b)));
    Graph::new(nodes, pairs.filter(|&(a, b)| mask >> bit(a, b) & 1 == 1))
}

fn renamed(mask: Mask, renaming: &[usize]) -> Mask {
    let mut image = 0;
    for (b, &to_b) in renaming.iter().enumerate() {
        for (a, &to_a) in renaming.iter().enumerate().take(b) {
            image |= (mask >> bit(a, b) & 1) << bit(to_a, to_b);
        }
    }
    image
}

fn permutations(of: usize) -> Vec<Vec<usize>> {
    let mut done = vec![Vec::new()];
    for item in 0..of {
        let mut longer = Vec::new();
        for shorter in &done {
            for position in 0..=shorter.len() {
                let mut with = shorter.clone();
                with.insert(position, item);
                longer.push(with);
            }
        }
        done = longer;
    }
    done
}

fn subsets(of: usize, size: usize) -> Vec<Vec<usize>> {
    (0..1_u32 << of)
        .map(|bits| (0..of).filter(|item| bits >> item & 1 == 1).collect::<Vec<_>>())
        .filter(|subset| subset.len() == size)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_connected_graphs_are_as_many_as_oeis_a001349_says() {
        let counts: Vec<usize> = (1..=6).map(|nodes| all_connected(nodes).len()).collect();
        assert_eq!(counts, [1, 1, 2, 6, 21, 112]);
    }

    #[test]
    fn rooted_connected_graphs_are_as_many_as_known() {
        let counts: Vec<usize> = (1..=6).map(|nodes| all_rooted(nodes, 1).len()).collect();
        assert_eq!(counts, [1, 1, 3, 11, 58, 407]);
    }

    /// Counted another way: Burnside's lemma over labelled pairs of graph and marked nodes.
    #[test]
    fn graphs_with_two_roots_are_as_many_as_burnside_says() {
        for nodes in 2..=5 {
            let renamings = permutations(nodes);
            let masks: Mask = 1 << (nodes * (nodes - 1) / 2);
            let mut fixed = 0;
            for mask in (0..masks).filter(|&mask| graph_of(nodes, mask).is_connected()) {
                for renaming in renamings.iter().filter(|r| renamed(mask, r) == mask) {
                    for subset in subsets(nodes, 2) {
                        let mut image: Vec<usize> = subset.iter().map(|&n| renaming[n]).collect();
                        image.sort_unstable();
                        fixed += usize::from(image == subset);
                    }
                }
            }
            assert_eq!(all_rooted(nodes, 2).len(), fixed / renamings.len());
        }
    }

    #[test]
    fn shapes_have_the_edges_they_should() {
        let edges = |graph: Graph| graph.edges().collect::<Vec<_>>();
        assert_eq!(edges(Graph::chain(3)), [(0, 1), (1, 2)]);
        assert_eq!(edges(Graph::ring(3)), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(edges(Graph::star(3)), [(0, 1), (0, 2)]);
        assert_eq!(edges(Graph::grid(2, 2)), [(0, 1), (0, 2), (1, 3), (2, 3)]);
        assert_eq!(Graph::complete(5).edges().count(), 10);
        assert_eq!(Graph::new(2, [(0, 0), (0, 7)]).edges().count(), 0);
    }

    #[test]
    fn hops_are_counted_to_the_nearest_root() {
        let mut graph = Graph::chain(5);
        assert_eq!(graph.hops_to([0, 4]), [Some(0), Some(1), Some(2), Some(1), Some(0)]);
        graph.unlink(1, 2);
        assert_eq!(graph.hops_to([0]), [Some(0), Some(1), None, None, None]);
        assert!(!graph.is_connected());
    }

    #[test]
    fn random_connected_graphs_are_connected_and_repeat() {
        for seed in 0..50 {
            let draw = || Graph::random_connected(12, 0.1, &mut Dice::new(seed, 1));
            assert!(draw().is_connected());
            assert_eq!(draw(), draw());
        }
    }
}
