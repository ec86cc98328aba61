//! Who is in whose earshot, as positions have it: [`Earshot`].

use crate::sim::mobility::{Body, Position};
use crate::sim::radio::Radio;
use crate::sim::radio::grid::Grid;

/// One node another may hear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::sim) struct Ear {
    /// Index of the node.
    pub(in crate::sim) node: u32,
    /// Mean strength there in dBm.
    pub(in crate::sim) dbm: f32,
    /// Metres.
    pub(in crate::sim) distance_m: f32,
}

/// For each sender, those whose mean reception is above the floor of the radio.
///
/// Computed for all nodes at once: only pairs in neighbouring cells of a grid are looked at, each
/// once, so the work grows with nodes times neighbours.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Earshot {
    /// By sender; in the order of nodes.
    ears: Vec<Vec<Ear>>,
    grid: Grid,
    points: Vec<Option<Position>>,
}

impl Earshot {
    /// Looks again where everybody is.
    pub(in crate::sim) fn refresh(&mut self, radio: &Radio, bodies: &[Body]) {
        let Self { ears, grid, points } = self;
        points.clear();
        points.extend(bodies.iter().map(|body| body.position));
        ears.resize_with(points.len(), Vec::new);
        ears.iter_mut().for_each(Vec::clear);
        let reach_m = radio.reach_m();
        grid.fill(points, reach_m);
        let mut near = Vec::new();
        for (a, here) in (0_u32..).zip(points.iter()) {
            let Some(here) = *here else { continue };
            near.clear();
            grid.around(here, |b| {
                if b > a {
                    near.push(b);
                }
            });
            // In the order of nodes, so that every list comes out sorted.
            near.sort_unstable();
            for &b in &near {
                let Some(Some(there)) = points.get(b as usize) else { continue };
                let distance_m = here.distance_m(*there);
                if distance_m > reach_m {
                    continue;
                }
                let dbm = radio.mean_dbm(distance_m);
                if dbm >= radio.budget.floor_dbm {
                    let ear = |node| Ear { node, dbm: dbm as f32, distance_m: distance_m as f32 };
                    if let Some(ears) = ears.get_mut(a as usize) {
                        ears.push(ear(b));
                    }
                    if let Some(ears) = ears.get_mut(b as usize) {
                        ears.push(ear(a));
                    }
                }
            }
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
