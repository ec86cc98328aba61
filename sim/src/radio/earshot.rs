//! Who is in whose earshot, as positions have it: [`Earshot`].

use crate::mobility::Position;
use crate::radio::grid::Grid;
use crate::radio::shadowing::{Field, Front};
use crate::radio::{Radio, attowatts};

/// One node another may hear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ear {
    /// Index of the node.
    pub(crate) node: u32,
    /// Mean power there in attowatts, shadowing included.
    pub(crate) power: f32,
    /// Metres.
    pub(crate) distance_m: f32,
}

/// For each sender, those whose mean reception is above the floor of the radio.
///
/// Computed for all nodes at once: only pairs in neighbouring cells of a grid are looked at, each
/// once, so the work grows with nodes times neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Earshot {
    /// By sender; in the order of nodes.
    ears: Vec<Vec<Ear>>,
    grid: Grid,
    points: Vec<Option<Position>>,
    seed: u64,
    /// Of shadows, and what it is at each node.
    field: Option<Field>,
    fronts: Vec<Front>,
}

impl Earshot {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Looks again where everybody is.
    pub(crate) fn refresh(&mut self, radio: &Radio, places: &[Option<Position>]) {
        self.points.clear();
        self.points.extend_from_slice(places);
        self.ears.resize_with(places.len(), Vec::new);
        self.ears.iter_mut().for_each(Vec::clear);
        if let Some(shadowing) = &radio.shadowing {
            let field = self.field.get_or_insert_with(|| Field::new(shadowing, self.seed));
            self.fronts.resize_with(places.len(), Front::default);
            for (front, point) in self.fronts.iter_mut().zip(&self.points) {
                if let Some(point) = point {
                    field.move_front(front, *point);
                }
            }
        }
        let reach_m = radio.reach_m();
        self.grid.fill(&self.points, reach_m);
        let mut near = Vec::new();
        for (a, &here) in (0_u32..).zip(places) {
            let Some(here) = here else { continue };
            near.clear();
            self.grid.around(here, |b| {
                if b > a {
                    near.push(b);
                }
            });
            // In the order of nodes, so that every list comes out sorted.
            near.sort_unstable();
            for &b in &near {
                let Some(&Some(there)) = self.points.get(b as usize) else { continue };
                let distance_m = here.distance_m(there);
                if distance_m > reach_m {
                    continue;
                }
                let mean_dbm = radio.mean_dbm(distance_m);
                let shadows = self.shadows(radio, [a, b], distance_m);
                let [there_dbm, back_dbm] = shadows.map(|shadow| mean_dbm + shadow);
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
        }
    }

    /// What stands between two nodes adds to the mean, there and back, in dB.
    fn shadows(&self, radio: &Radio, [a, b]: [u32; 2], distance_m: f64) -> [f64; 2] {
        let fronts = (self.fronts.get(a as usize), self.fronts.get(b as usize));
        match (&radio.shadowing, &self.field, fronts) {
            (Some(shadowing), Some(field), (Some(a), Some(b))) => {
                shadowing.of(field, [a, b], distance_m)
            }
            _ => [0.0; 2],
        }
    }

    fn note(&mut self, sender: u32, ear: Ear) {
        if let Some(ears) = self.ears.get_mut(sender as usize) {
            ears.push(ear);
        }
    }

    /// Those who may hear this node, in the order of nodes.
    pub(crate) fn of(&self, sender: usize) -> &[Ear] {
        self.ears.get(sender).map_or(&[], Vec::as_slice)
    }

    /// How this receiver may hear this sender.
    pub(crate) fn between(&self, from: usize, to: usize) -> Option<&Ear> {
        let ears = self.of(from);
        let place = ears.binary_search_by_key(&to, |ear| ear.node as usize).ok()?;
        ears.get(place)
    }
}
