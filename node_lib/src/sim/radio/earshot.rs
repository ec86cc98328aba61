//! Who is in whose earshot, as positions have it: [`Earshot`].

use crate::sim::dice::Luck;
use crate::sim::mobility::{Body, Position};
use crate::sim::radio::grid::Grid;
use crate::sim::radio::shadowing::Shadow;
use crate::sim::radio::{Radio, attowatts};

/// One node another may hear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::sim) struct Ear {
    /// Index of the node.
    pub(in crate::sim) node: u32,
    /// Mean power there in attowatts, shadowing included.
    pub(in crate::sim) power: f32,
    /// Metres.
    pub(in crate::sim) distance_m: f32,
}

/// A pair in reach of each other, kept with the lower node.
#[derive(Clone, Copy, Debug)]
struct Pair {
    other: u32,
    shadow: Shadow,
}

/// For each sender, those whose mean reception is above the floor of the radio.
///
/// Computed for all nodes at once: only pairs in neighbouring cells of a grid are looked at, each
/// once, so the work grows with nodes times neighbours.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Earshot {
    /// By sender; in the order of nodes.
    ears: Vec<Vec<Ear>>,
    /// By the lower node, in the order of the other; only with shadowing.
    pairs: Vec<Vec<Pair>>,
    grid: Grid,
    points: Vec<Option<Position>>,
    seed: u64,
    /// Looks so far.
    looks: u64,
}

impl Earshot {
    pub(in crate::sim) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Looks again where everybody is.
    pub(in crate::sim) fn refresh(&mut self, radio: &Radio, bodies: &[Body]) {
        self.looks += 1;
        self.points.clear();
        self.points.extend(bodies.iter().map(|body| body.position));
        self.ears.resize_with(bodies.len(), Vec::new);
        self.ears.iter_mut().for_each(Vec::clear);
        self.pairs.resize_with(bodies.len(), Vec::new);
        let reach_m = radio.reach_m();
        self.grid.fill(&self.points, reach_m);
        let (mut near, mut pairs) = (Vec::new(), Vec::new());
        for (a, here) in (0_u32..).zip(bodies.iter().map(|body| body.position)) {
            near.clear();
            if let Some(here) = here {
                self.grid.around(here, |b| {
                    if b > a {
                        near.push(b);
                    }
                });
            }
            // In the order of nodes, so that every list comes out sorted.
            near.sort_unstable();
            let known = self.pairs.get_mut(a as usize).map(std::mem::take).unwrap_or_default();
            let mut known = known.into_iter().peekable();
            pairs.clear();
            for &b in &near {
                let Some(&Some(there)) = self.points.get(b as usize) else { continue };
                let Some(here) = here else { continue };
                let distance_m = here.distance_m(there);
                if distance_m > reach_m {
                    continue;
                }
                let mean_dbm = radio.mean_dbm(distance_m);
                let mut levels = [mean_dbm; 2];
                if let Some(shadowing) = &radio.shadowing {
                    let ends = [here, there];
                    let mut luck = Luck::new(self.seed, a as usize, b as usize, self.looks);
                    while known.next_if(|pair| pair.other < b).is_some() {}
                    let shadow = match known.next_if(|pair| pair.other == b) {
                        Some(Pair { mut shadow, .. }) => {
                            if let Some(moved) = shadow.moved(ends) {
                                shadow.advance(&mut luck, shadowing, moved, ends);
                            }
                            shadow
                        }
                        None => Shadow::new(&mut luck, ends),
                    };
                    pairs.push(Pair { other: b, shadow });
                    levels = shadowing.of(&shadow, distance_m).map(|shadow| mean_dbm + shadow);
                }
                let [there_dbm, back_dbm] = levels;
                let floor_dbm = radio.budget.floor_dbm;
                let there = attowatts(there_dbm) as f32;
                let back = if back_dbm == there_dbm { there } else { attowatts(back_dbm) as f32 };
                let distance_m = distance_m as f32;
                if there_dbm >= floor_dbm {
                    self.note(a, Ear { node: b, power: there, distance_m });
                }
                if back_dbm >= floor_dbm {
                    self.note(b, Ear { node: a, power: back, distance_m });
                }
            }
            if let Some(kept) = self.pairs.get_mut(a as usize) {
                std::mem::swap(kept, &mut pairs);
            }
        }
    }

    fn note(&mut self, sender: u32, ear: Ear) {
        if let Some(ears) = self.ears.get_mut(sender as usize) {
            ears.push(ear);
        }
    }

    /// Those who may hear this node, in the order of nodes.
    pub(in crate::sim) fn of(&self, sender: usize) -> &[Ear] {
        self.ears.get(sender).map_or(&[], Vec::as_slice)
    }

    /// How this receiver may hear this sender.
    pub(in crate::sim) fn between(&self, from: usize, to: usize) -> Option<&Ear> {
        let ears = self.of(from);
        let place = ears.binary_search_by_key(&to, |ear| ear.node as usize).ok()?;
        ears.get(place)
    }
}
