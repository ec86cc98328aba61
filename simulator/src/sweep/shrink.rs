//! From a scene in which a rule is broken to a small one that breaks it too: [`shrink`].

use std::sync::atomic::AtomicBool;

use super::scene::{Load, Scene, WARM_UP_S};
use super::staged;
use crate::measure::{self, Run, Suite, Unfinished};
use crate::scenario::Override;

/// Runs that are tried, at most: each may take as long as the scene itself.
pub const TRIES: u32 = 40;
/// Fewer vehicles meet in other ways: so many seeds are tried for each number of them.
const SEEDS: u64 = 3;

/// A scene that breaks this rule, as `scene` does at `time_s`, with less. It ends with the breach,
/// and has fewer vehicles, fewer road-side units and no traffic, as far as that is found in
/// [`TRIES`] runs. It does not matter who breaks it.
pub fn shrink(
    scene: &Scene,
    rule: &str,
    time_s: f64,
    set: &[Override],
    stop: &AtomicBool,
) -> Scene {
    let (mut small, mut time_s, mut tries) = (scene.clone(), time_s, 0);
    loop {
        let less = smaller(&small, time_s).into_iter().find_map(|candidate| {
            if tries == TRIES {
                return None;
            }
            tries += 1;
            let time_s = breaks(&candidate, rule, set, stop)?;
            Some((candidate, time_s))
        });
        match less {
            Some(less) => (small, time_s) = less,
            None => return small,
        }
    }
}

/// With less of one thing. What makes all further runs shorter comes first.
fn smaller(scene: &Scene, time_s: f64) -> Vec<Scene> {
    let mut candidates = Vec::new();
    let mut add = |change: &dyn Fn(&mut Scene)| {
        let mut candidate = scene.clone();
        change(&mut candidate);
        candidates.push(candidate);
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an hour at most")]
    let last_s = time_s.ceil() as u32;
    let measured_s = last_s.saturating_sub(WARM_UP_S).max(1);
    if measured_s < scene.measured_s {
        add(&|scene| scene.measured_s = measured_s);
    }
    for part in [2, 4] {
        let vehicles = scene.kind.vehicles - scene.kind.vehicles / part;
        for later in (0..SEEDS).filter(|_| vehicles < scene.kind.vehicles) {
            add(&|scene| {
                scene.kind.vehicles = vehicles;
                scene.seed += later;
            });
        }
    }
    for index in (0..scene.places.at_m.len()).filter(|_| scene.places.at_m.len() > 1) {
        add(&|scene| {
            scene.places.at_m.remove(index);
        });
    }
    if scene.kind.load == Load::Busy {
        add(&|scene| scene.kind.load = Load::Idle);
    }
    candidates
}

/// When this scene breaks this rule, if that is the first one it breaks.
fn breaks(scene: &Scene, rule: &str, set: &[Override], stop: &AtomicBool) -> Option<f64> {
    // What was changed may name what was left out; then it stays.
    let (scenario, casting) = staged(scene, set).ok()?;
    let (scenario, cast) = (&scenario, &casting.draw(&scenario, scene.seed));
    let (seed, suite) = (scene.seed, Suite::Daemons);
    let run = Run { scenario, cast, seed, suite, trace: None, stop, goes_on: false };
    match measure::run(&run, |_| ()) {
        Err(Unfinished::Broken(broken)) if format!("{:?}", broken.violation.rule) == rule => {
            Some(broken.violation.time.as_micros() as f64 / 1e6)
        }
        Err(Unfinished::Broken(_) | Unfinished::Stopped) | Ok(_) => None,
    }
}
