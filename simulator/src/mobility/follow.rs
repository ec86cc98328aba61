//! How a vehicle follows the one before it: the Intelligent Driver Model ([`Driver`]).
//!
//! Treiber, Hennecke and Helbing, "Congested traffic states in empirical observations and
//! microscopic simulations", Physical Review E 62, 1805 (2000). In dense traffic it brakes too late
//! to be stable: a small disturbance grows to a wave of stop and go, as on a motorway. Everything
//! is plain arithmetic and square roots, which give the same bits on every machine.

/// Length of a vehicle.
pub(super) const LENGTH_M: f64 = 5.0;
/// Time from one step to the next.
pub(super) const STEP_S: f64 = 0.25;
/// Steps in a second.
pub(super) const STEPS_PER_S: u64 = 4;

/// What a driver wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    /// Speed on a free road.
    pub(super) speed_mps: f64,
}

/// Distance that is left between two that stand.
const GAP_M: f64 = 2.0;
/// Time to the one before.
const HEADWAY_S: f64 = 1.6;
/// Acceleration, at most.
const ACCELERATION: f64 = 0.73;
/// Deceleration that is comfortable.
const DECELERATION: f64 = 1.67;
/// Deceleration that is possible on a dry road.
const DECELERATION_MAX: f64 = 8.0;

/// What is in front of a vehicle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// Room up to it.
    pub(super) gap_m: f64,
    /// How fast it is.
    pub(super) speed_mps: f64,
}

/// Where a vehicle is on its lane, and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Motion {
    pub(super) at_m: f64,
    pub(super) speed_mps: f64,
}

impl Driver {
    /// A step later.
    pub(super) fn step(self, now: Motion, ahead: Option<Ahead>) -> Motion {
        let free = {
            let part = now.speed_mps / self.speed_mps;
            part * part * part * part
        };
        let hindered = ahead.map_or(0.0, |ahead| {
            let closing = now.speed_mps * (now.speed_mps - ahead.speed_mps)
                / (2.0 * (ACCELERATION * DECELERATION).sqrt());
            let wanted = GAP_M + (now.speed_mps * HEADWAY_S + closing).max(0.0);
            let part = wanted / ahead.gap_m.max(0.1);
            part * part
        });
        let change = (ACCELERATION * (1.0 - free - hindered)).max(-DECELERATION_MAX);
        let speed_mps = (now.speed_mps + change * STEP_S).max(0.0);
        Motion { at_m: now.at_m + (now.speed_mps + speed_mps) / 2.0 * STEP_S, speed_mps }
    }
}

/// Can one so fast stop in this distance, with twice the deceleration that is comfortable?
pub(super) fn can_stop(speed_mps: f64, within_m: f64) -> bool {
    speed_mps * speed_mps <= 2.0 * (2.0 * DECELERATION) * within_m
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVER: Driver = Driver { speed_mps: 20.0 };

    fn after(seconds: u64, mut motion: Motion, ahead: impl Fn(Motion) -> Option<Ahead>) -> Motion {
        for _ in 0..seconds * STEPS_PER_S {
            motion = DRIVER.step(motion, ahead(motion));
        }
        motion
    }

    #[test]
    fn reaches_its_speed_on_a_free_road() {
        let motion = after(120, Motion::default(), |_| None);
        assert!((19.0..=20.0).contains(&motion.speed_mps), "{motion:?}");
    }

    #[test]
    fn stops_before_what_stands_and_keeps_its_distance_to_what_drives() {
        let stands = |motion: Motion| Some(Ahead { gap_m: 500.0 - motion.at_m, speed_mps: 0.0 });
        let stopped = after(300, Motion::default(), stands);
        assert!((497.0..498.5).contains(&stopped.at_m), "{stopped:?}");
        assert!(stopped.speed_mps < 0.1, "{stopped:?}");
        let start = Motion { at_m: 0.0, speed_mps: 10.0 };
        let mut leader = 50.0;
        let mut motion = start;
        for _ in 0..600 * STEPS_PER_S {
            let ahead = Ahead { gap_m: leader - motion.at_m, speed_mps: 10.0 };
            motion = DRIVER.step(motion, Some(ahead));
            leader += 10.0 * STEP_S;
        }
        // (s0 + vT) / √(1 − (v/v0)⁴), the distance at which the model is at rest.
        let expected = 18.0 / (1.0_f64 - 1.0 / 16.0).sqrt();
        assert!((leader - motion.at_m - expected).abs() < 0.5, "{}", leader - motion.at_m);
    }
}
