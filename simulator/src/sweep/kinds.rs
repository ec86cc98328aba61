//! The scenes of one kind together ([`FigureRow`]), and those of two sweeps beside each other
//! ([`FigureChange`]).

use std::collections::{BTreeMap, BTreeSet};

use super::figures::Figure;
use super::goal::{Goal, in_scenes};
use super::results::{Results, SceneResult};
use super::scene::SceneKind;
use crate::measure::Spread;

/// One figure over all scenes of a kind in which it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureRow {
    /// The kind.
    pub kind: SceneKind,
    /// The figure.
    pub figure: Figure,
    /// Scenes.
    pub scenes: usize,
    /// The value half of them are not above.
    pub median: f64,
    /// The worst value.
    pub worst: f64,
    /// The scene that has it.
    pub worst_scene: String,
    /// What it is held against.
    pub limit: Option<f64>,
    /// Scenes that keep the limit.
    pub kept: usize,
}

impl FigureRow {
    /// Of these scenes of a kind; none if it was measured in none of them.
    fn of(kind: SceneKind, figure: Figure, scenes: &[&SceneResult]) -> Option<Self> {
        let values: Vec<(f64, &str)> = scenes
            .iter()
            .filter_map(|scene| Some((scene.figure(figure)?, scene.name.as_str())))
            .collect();
        let badness = |value: f64| if figure.is_good() { -value } else { value };
        let mut worst = values.first().copied()?;
        for &(value, name) in &values {
            if badness(value) > badness(worst.0) {
                worst = (value, name);
            }
        }
        let limit = Goal::of(kind).and_then(|goal| goal.limit(figure));
        let keeps =
            |value: f64| limit.is_some_and(|limit| badness(value) <= badness(limit) + 1e-12);
        Some(Self {
            kind,
            figure,
            scenes: values.len(),
            median: Spread::of(values.iter().map(|(value, _)| *value).collect())?.p50,
            worst: worst.0,
            worst_scene: worst.1.to_owned(),
            limit,
            kept: values.iter().filter(|(value, _)| keeps(*value)).count(),
        })
    }

    /// Is the limit kept in as many scenes as it should be? None without a limit.
    pub fn is_met(&self) -> Option<bool> {
        let enough = self.kept_share() + 1e-12 >= in_scenes(self.figure);
        self.limit.map(|_| enough)
    }

    /// Share of scenes that keep the limit.
    pub fn kept_share(&self) -> f64 {
        self.kept as f64 / self.scenes.max(1) as f64
    }
}

/// All figures of all kinds, in the order of [`SceneKind`].
pub fn rows(scenes: &[SceneResult]) -> Vec<FigureRow> {
    let mut by_kind: BTreeMap<SceneKind, Vec<&SceneResult>> = BTreeMap::new();
    for scene in scenes {
        by_kind.entry(scene.kind).or_default().push(scene);
    }
    let all = by_kind.iter().flat_map(|(&kind, scenes)| {
        Figure::ALL.into_iter().filter_map(move |figure| FigureRow::of(kind, figure, scenes))
    });
    all.collect()
}

/// A figure over the scenes of a kind that are in both of two results.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureChange {
    /// Before.
    pub before: FigureRow,
    /// After.
    pub after: FigureRow,
    /// Scenes in which it is better than it was.
    pub better: usize,
    /// Scenes in which it is worse.
    pub worse: usize,
}

/// What is different: of the scenes both have.
pub fn changes(before: &Results, after: &Results) -> Vec<FigureChange> {
    let names = |results: &Results| -> BTreeSet<String> {
        results.scenes.iter().map(|scene| scene.name.clone()).collect()
    };
    let both = &names(before) & &names(after);
    let of_both = |results: &Results| -> Vec<SceneResult> {
        results.scenes.iter().filter(|scene| both.contains(&scene.name)).cloned().collect()
    };
    let (before, after) = (of_both(before), of_both(after));
    let rows_after = rows(&after);
    let changes = rows(&before).into_iter().filter_map(|row| {
        let is_same = |other: &&FigureRow| (other.kind, other.figure) == (row.kind, row.figure);
        let then = rows_after.iter().find(is_same)?.clone();
        let (mut better, mut worse) = (0, 0);
        // Both are in the order of names, and have the same.
        for (was, is) in before.iter().zip(&after).filter(|(was, _)| was.kind == row.kind) {
            if let (Some(was), Some(is)) = (was.figure(row.figure), is.figure(row.figure)) {
                let gained = if row.figure.is_good() { is - was } else { was - is };
                better += usize::from(gained > 0.0);
                worse += usize::from(gained < 0.0);
            }
        }
        Some(FigureChange { before: row, after: then, better, worse })
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figures;
    use super::super::results::Breach;
    use super::super::scene::{Class, Load};
    use super::*;

    const KIND: SceneKind = SceneKind { class: Class::Steady, load: Load::Idle, vehicles: 100 };

    fn scene(name: &str, routed: f64, breaches: u64) -> SceneResult {
        let broken = Breach {
            rule: "Doubled".to_owned(),
            time_s: 1.0,
            node: "n".to_owned(),
            detail: String::new(),
            breaches,
        };
        SceneResult {
            name: name.to_owned(),
            kind: KIND,
            town: "t".to_owned(),
            places: "p".to_owned(),
            radio: "disk".to_owned(),
            seed: 1,
            figures: Some(Figures { routed: Some(routed), ..Figures::default() }),
            broken: (breaches > 0).then_some(broken),
            wall_s: 0.0,
        }
    }

    fn results(scenes: Vec<SceneResult>) -> Results {
        let mut results = Results { planned: scenes.len(), ..Results::default() };
        scenes.into_iter().for_each(|scene| results.add(scene));
        results
    }

    #[test]
    fn a_goal_is_met_in_nine_of_ten_scenes_and_rules_hold_in_all() {
        let mut scenes: Vec<SceneResult> =
            (0..9).map(|n| scene(&format!("s{n}"), 0.99 + f64::from(n) / 1000.0, 0)).collect();
        scenes.push(scene("bad", 0.5, 0));
        let row = |scenes: &[SceneResult], figure| {
            rows(scenes).into_iter().find(|row| row.figure == figure).unwrap()
        };
        let routed = row(&scenes, Figure::Routed);
        assert_eq!((routed.scenes, routed.kept, routed.is_met()), (10, 9, Some(true)));
        assert_eq!((routed.median, routed.worst), (0.993, 0.5));
        assert_eq!(routed.worst_scene, "bad");
        assert_eq!(row(&scenes, Figure::Broken).is_met(), Some(true));
        scenes.push(scene("worse", 0.98, 3));
        assert_eq!(row(&scenes, Figure::Routed).is_met(), Some(false));
        let broken = row(&scenes, Figure::Broken);
        assert_eq!((broken.kept, broken.is_met(), broken.worst), (10, Some(false), 3.0));
        assert_eq!(broken.worst_scene, "worse");
        // What was not measured in any scene has no row.
        assert!(rows(&scenes).iter().all(|row| row.figure != Figure::DelayP99));
    }

    #[test]
    fn two_sweeps_are_compared_over_the_scenes_both_have() {
        let before =
            results(vec![scene("a", 0.9, 1), scene("b", 0.95, 0), scene("only before", 0.1, 0)]);
        let after =
            results(vec![scene("only after", 1.0, 0), scene("b", 0.94, 0), scene("a", 0.995, 0)]);
        let changes = changes(&before, &after);
        let routed = changes.iter().find(|change| change.before.figure == Figure::Routed).unwrap();
        assert_eq!((routed.before.scenes, routed.after.scenes), (2, 2));
        assert_eq!((routed.before.worst, routed.after.worst), (0.9, 0.94));
        assert_eq!((routed.before.kept, routed.after.kept), (0, 1));
        assert_eq!((routed.better, routed.worse), (1, 1));
        let broken = changes.iter().find(|change| change.before.figure == Figure::Broken).unwrap();
        assert_eq!((broken.better, broken.worse), (1, 0));
    }

    #[test]
    fn results_come_back_from_their_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.json");
        let mut written = results(vec![scene("b", 0.5, 2), scene("a", 0.25, 0)]);
        written.command = "v2xsim sweep".to_owned();
        written.write(&path).unwrap();
        assert_eq!(Results::read(&path).unwrap(), written);
        assert_eq!(written.scenes[0].name, "a");
        std::fs::write(&path, "{}").unwrap();
        let error = Results::read(&path).unwrap_err().to_string();
        assert!(error.starts_with("no results of a sweep"), "{error}");
    }
}
