//! Who is in whose earshot, as positions have it: [`Earshot`].

use std::cell::OnceCell;

use crate::mobility::Location;
use crate::radio::grid::Grid;
use crate::radio::shadowing::{Field, Front};
use crate::radio::{RadioModel, attowatts};

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
/// Where everybody is is looked at ten times a second, and most nodes say nothing in between. So
/// who may hear a node is worked out when that is first asked: among those in the cells of a grid
/// around it, so that the work grows with senders times neighbours.
#[derive(Clone, Debug)]
pub(crate) struct Earshot {
    radio: RadioModel,
    /// By sender; in the order of nodes.
    ears: Vec<OnceCell<Vec<Ear>>>,
    grid: Grid,
    points: Vec<Option<Location>>,
    seed: u64,
    /// Of shadows, and what it is at each node.
    field: Option<Field>,
    fronts: Vec<Front>,
}

impl Earshot {
    pub(crate) fn new(radio: RadioModel, seed: u64) -> Self {
        Self {
            radio,
            seed,
            ears: Vec::new(),
            grid: Grid::default(),
            points: Vec::new(),
            field: None,
            fronts: Vec::new(),
        }
    }

    /// Looks again where everybody is.
    pub(crate) fn refresh(&mut self, places: &[Option<Location>]) {
        self.points.clear();
        self.points.extend_from_slice(places);
        self.ears.resize_with(places.len(), OnceCell::new);
        self.ears.iter_mut().for_each(|ears| drop(ears.take()));
        if let Some(shadowing) = &self.radio.shadowing {
            let field = self.field.get_or_insert_with(|| Field::new(shadowing, self.seed));
            self.fronts.resize_with(places.len(), Front::default);
            for (front, point) in self.fronts.iter_mut().zip(&self.points) {
                if let Some(point) = point {
                    field.move_front(front, *point);
                }
            }
        }
        self.grid.fill(&self.points, self.radio.reach_m());
    }

    /// Who may hear this node, in the order of nodes.
    fn look(&self, sender: usize) -> Vec<Ear> {
        let Some(&Some(here)) = self.points.get(sender) else { return Vec::new() };
        let (a, reach_m) = (u32::try_from(sender).unwrap_or(u32::MAX), self.radio.reach_m());
        let is_symmetric = self.radio.shadowing.is_none_or(|s| s.asymmetric_db == 0.0);
        let mut ears = Vec::new();
        self.grid.around(here, |b| {
            let Some(&Some(there)) = self.points.get(b as usize) else { return };
            let distance_m = here.distance_m(there);
            if b == a || distance_m > reach_m {
                return;
            }
            let theirs = self.ears.get(b as usize).and_then(OnceCell::get);
            if let Some(theirs) = theirs.filter(|_| is_symmetric) {
                // Worked out the other way round already.
                ears.extend(find(theirs, a).map(|ear| Ear { node: b, ..*ear }));
                return;
            }
            let dbm = self.radio.mean_dbm(distance_m) + self.shadow(a, b, distance_m);
            if dbm >= self.radio.budget.floor_dbm {
                let (power, distance_m) = (attowatts(dbm) as f32, distance_m as f32);
                ears.push(Ear { node: b, power, distance_m });
            }
        });
        ears.sort_unstable_by_key(|ear| ear.node);
        ears
    }

    /// What stands between a sender and a receiver adds to the mean, in dB.
    fn shadow(&self, from: u32, to: u32, distance_m: f64) -> f64 {
        let (a, b) = (from.min(to), from.max(to));
        let fronts = (self.fronts.get(a as usize), self.fronts.get(b as usize));
        match (&self.radio.shadowing, &self.field, fronts) {
            (Some(shadowing), Some(field), (Some(front), Some(other))) => {
                let [there, back] = shadowing.of(field, [front, other], distance_m);
                if from == a { there } else { back }
            }
            _ => 0.0,
        }
    }

    /// Those who may hear this node, in the order of nodes.
    pub(crate) fn of(&self, sender: usize) -> &[Ear] {
        self.ears.get(sender).map_or(&[], |ears| ears.get_or_init(|| self.look(sender)))
    }

    /// How this receiver may hear this sender.
    pub(crate) fn between(&self, from: usize, to: usize) -> Option<&Ear> {
        find(self.of(from), u32::try_from(to).ok()?)
    }
}

/// That of this node; `ears` are in the order of nodes.
fn find(ears: &[Ear], node: u32) -> Option<&Ear> {
    let place = ears.binary_search_by_key(&node, |ear| ear.node).ok()?;
    ears.get(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;
    use crate::radio::{PathLoss, Shadowing};

    /// Looks at everybody, each pair once.
    fn everybody(radio: &RadioModel, seed: u64, places: &[Option<Location>]) -> Vec<Vec<Ear>> {
        let field = radio.shadowing.as_ref().map(|shadowing| Field::new(shadowing, seed));
        let fronts: Vec<Front> = places
            .iter()
            .map(|place| {
                let mut front = Front::default();
                if let Some((field, place)) = field.as_ref().zip(*place) {
                    field.move_front(&mut front, place);
                }
                front
            })
            .collect();
        let mut ears = vec![Vec::new(); places.len()];
        for b in 0..places.len() {
            for a in 0..b {
                let (Some(here), Some(there)) = (places[a], places[b]) else { continue };
                let distance_m = here.distance_m(there);
                let shadows = match (&radio.shadowing, &field) {
                    (Some(s), Some(field)) => s.of(field, [&fronts[a], &fronts[b]], distance_m),
                    _ => [0.0; 2],
                };
                for ((from, to), shadow) in [(a, b), (b, a)].into_iter().zip(shadows) {
                    let dbm = radio.mean_dbm(distance_m) + shadow;
                    if distance_m <= radio.reach_m() && dbm >= radio.budget.floor_dbm {
                        let (power, distance_m) = (attowatts(dbm) as f32, distance_m as f32);
                        ears[from].push(Ear { node: to as u32, power, distance_m });
                    }
                }
            }
        }
        ears.iter_mut().for_each(|ears| ears.sort_by_key(|ear| ear.node));
        ears
    }

    #[test]
    fn hears_whom_looking_at_everybody_finds_also_after_they_moved() {
        let shadowed = |asymmetric_db| RadioModel {
            shadowing: Some(Shadowing { asymmetric_db, ..Shadowing::SUBURB }),
            ..RadioModel::with_path_loss(PathLoss::DUAL_SLOPE)
        };
        for radio in [RadioModel::disk(200.0, 0.0), shadowed(0.0), shadowed(3.0)] {
            let mut dice = Dice::new(7, 1);
            let mut earshot = Earshot::new(radio.clone(), 9);
            for _ in 0..3 {
                let mut draw = || dice.below(120_000) as f64 / 100.0;
                let mut place = |n| (n % 7 > 0).then(|| Location::new(draw(), draw()));
                let places: Vec<_> = (0..60).map(&mut place).collect();
                let found = everybody(&radio, 9, &places);
                assert!(found.iter().flatten().count() > 40);
                earshot.refresh(&places);
                // Those at the end first: what was worked out the other way round comes first then.
                for (sender, expected) in found.iter().enumerate().rev() {
                    assert_eq!(earshot.of(sender), expected, "{sender}");
                }
                for (from, ears) in found.iter().enumerate() {
                    for to in 0..places.len() {
                        let expected = ears.iter().find(|ear| ear.node as usize == to);
                        assert_eq!(earshot.between(from, to), expected);
                    }
                }
            }
        }
    }
}
