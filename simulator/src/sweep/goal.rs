//! What figures should be: [`GOALS`].

use super::figures::Figure;
use super::scene::{Class, Load, SceneKind};

/// What the scenes of some kinds should be like.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// What it is called.
    pub name: &'static str,
    /// Radios it is for.
    pub class: Class,
    /// Load it is for.
    pub load: Load,
    /// Vehicles it is for, from and up to.
    pub vehicles: (u32, u32),
    /// At least so much of a figure that is good, and at most so much of one that is not.
    pub limits: &'static [(Figure, f64)],
}

/// Share of scenes in which a figure has to keep its limit. Rules may be broken in none.
pub const IN_SCENES: f64 = 0.9;

/// The goals. No kind of scene has two.
pub const GOALS: [Goal; 5] = [
    Goal {
        name: "steady radio, idle",
        class: Class::Steady,
        load: Load::Idle,
        vehicles: (0, u32::MAX),
        limits: &[
            (Figure::Routed, 0.99),
            (Figure::Working, 0.96),
            (Figure::ControlMean, 0.03),
            (Figure::ControlWorst, 0.08),
            (Figure::Broken, 0.0),
        ],
    },
    Goal {
        name: "steady radio, busy",
        class: Class::Steady,
        load: Load::Busy,
        vehicles: (0, 300),
        limits: &[
            (Figure::Routed, 0.99),
            (Figure::ControlMean, 0.04),
            (Figure::ControlWorst, 0.12),
            (Figure::Lost, 0.02),
            (Figure::DelayP99, 100.0),
            (Figure::Broken, 0.0),
        ],
    },
    Goal {
        name: "steady radio, channel full",
        class: Class::Steady,
        load: Load::Busy,
        vehicles: (301, u32::MAX),
        limits: &[
            (Figure::Routed, 0.98),
            (Figure::ControlMean, 0.05),
            (Figure::Lost, 0.1),
            (Figure::Broken, 0.0),
        ],
    },
    Goal {
        name: "fading radio, idle",
        class: Class::Fading,
        load: Load::Idle,
        vehicles: (0, u32::MAX),
        limits: &[
            (Figure::Routed, 0.98),
            (Figure::ControlMean, 0.04),
            (Figure::ControlWorst, 0.1),
            (Figure::Broken, 0.0),
        ],
    },
    Goal {
        name: "fading radio, busy",
        class: Class::Fading,
        load: Load::Busy,
        vehicles: (0, 300),
        limits: &[
            (Figure::Routed, 0.97),
            (Figure::ControlMean, 0.05),
            (Figure::ControlWorst, 0.15),
            (Figure::Lost, 0.05),
            (Figure::DelayP99, 150.0),
            (Figure::Broken, 0.0),
        ],
    },
];

impl Goal {
    /// That of a kind of scene, if it has one.
    pub fn of(kind: SceneKind) -> Option<&'static Self> {
        let fits = |goal: &&Self| {
            let (least, most) = goal.vehicles;
            (goal.class, goal.load) == (kind.class, kind.load)
                && (least..=most).contains(&kind.vehicles)
        };
        GOALS.iter().find(fits)
    }

    /// The limit of a figure, if it has one.
    pub fn limit(&self, figure: Figure) -> Option<f64> {
        self.limits.iter().find(|(of, _)| *of == figure).map(|(_, limit)| *limit)
    }
}

/// Share of scenes in which this figure has to keep its limit.
pub fn in_scenes(figure: Figure) -> f64 {
    if figure == Figure::Broken { 1.0 } else { IN_SCENES }
}

#[cfg(test)]
mod tests {
    use super::super::scene::KINDS;
    use super::*;

    #[test]
    fn every_kind_has_one_goal() {
        for kind in KINDS {
            let fits = |goal: &&Goal| {
                (goal.class, goal.load) == (kind.class, kind.load)
                    && (goal.vehicles.0..=goal.vehicles.1).contains(&kind.vehicles)
            };
            assert_eq!(GOALS.iter().filter(fits).count(), 1, "{kind}");
        }
        let full = SceneKind { class: Class::Steady, load: Load::Busy, vehicles: 500 };
        let goal = Goal::of(full).unwrap();
        assert_eq!(
            (goal.name, goal.limit(Figure::Lost)),
            ("steady radio, channel full", Some(0.1))
        );
        assert_eq!(goal.limit(Figure::DelayP99), None);
        let none = SceneKind { class: Class::Fading, load: Load::Busy, vehicles: 500 };
        assert!(Goal::of(none).is_none());
    }
}
