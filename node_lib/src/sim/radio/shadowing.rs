//! Slow changes of a link's strength, by what stands in the way: [`Shadowing`].

use crate::sim::dice::Luck;
use crate::sim::mobility::Position;
use crate::sim::radio::fading::normal;

/// Shadowing as a Gaussian process in decibels along the way of both ends.
///
/// After its ends moved d metres in sum, a link's shadow correlates with what it was by exp(−d/d₀)
/// (Gudmundson, "Correlation model for shadow fading in mobile radio systems", Electronics Letters
/// 27(23), 1991). Nothing changes while both stand still.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// Standard deviation up to [`Shadowing::break_m`], in dB.
    pub near_db: f64,
    /// Standard deviation beyond, in dB.
    pub far_db: f64,
    /// Metres from which `far_db` holds.
    pub break_m: f64,
    /// d₀: metres after which the correlation has fallen to 1/e.
    pub correlation_m: f64,
    /// Standard deviation, in dB, of a further part that each direction has for itself: zero, and
    /// links are symmetric.
    pub asymmetric_db: f64,
}

impl Shadowing {
    /// 5.6 dB up to 100 m and 8.1 dB beyond (Cheng et al., IEEE JSAC 25(8), 2007); correlated over
    /// 25 m, the decorrelation distance of vehicle links on a motorway (3GPP TR 36.885, table A.1.4-1).
    pub const SUBURB: Self =
        Self { near_db: 5.6, far_db: 8.1, break_m: 100.0, correlation_m: 25.0, asymmetric_db: 0.0 };

    /// No more than this is added above the mean in practice (two deviations), in dB: how much
    /// farther to look for somebody who may be heard.
    pub(super) fn headroom_db(&self) -> f64 {
        2.0 * (self.near_db.max(self.far_db) + self.asymmetric_db)
    }

    /// What is added to the mean over this distance, there and back, in dB.
    pub(super) fn of(&self, shadow: &Shadow, distance_m: f64) -> [f64; 2] {
        let deviation = if distance_m <= self.break_m { self.near_db } else { self.far_db };
        let common = deviation * f64::from(shadow.common);
        shadow.own.map(|own| common + self.asymmetric_db * f64::from(own))
    }
}

/// The state of one pair: standard normal numbers, and where the ends were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shadow {
    common: f32,
    /// There and back.
    own: [f32; 2],
    ends: [Position; 2],
}

/// Moved less than this in sum, in metres, a link stays as it is.
const MOVED_MIN_M: f64 = 0.5;

impl Shadow {
    /// A pair that has just come into reach.
    pub(super) fn new(luck: &mut Luck, ends: [Position; 2]) -> Self {
        let mut draw = || normal(luck) as f32;
        Self { common: draw(), own: [draw(), draw()], ends }
    }

    /// How far its ends have moved since it last changed; `None` if too little to matter.
    pub(super) fn moved(&self, ends: [Position; 2]) -> Option<f64> {
        let [(a, b), (c, d)] = [(self.ends[0], ends[0]), (self.ends[1], ends[1])];
        let moved = a.distance_m(b) + c.distance_m(d);
        (moved >= MOVED_MIN_M).then_some(moved)
    }

    /// One step of an autoregressive process: ρ of what was, √(1 − ρ²) of something new.
    pub(super) fn advance(
        &mut self,
        luck: &mut Luck,
        shadowing: &Shadowing,
        moved_m: f64,
        ends: [Position; 2],
    ) {
        let keep = libm::exp(-moved_m / shadowing.correlation_m);
        let fresh = (1.0 - keep * keep).max(0.0).sqrt();
        let [common, there, back] = {
            let [there, back] = self.own;
            [self.common, there, back].map(|was| f64::from(was) * keep + normal(luck) * fresh)
        };
        self.common = common as f32;
        self.own = [there as f32, back as f32];
        self.ends = ends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One end drives past another, a thousand times over.
    fn walk(shadowing: &Shadowing, step_m: f64, steps: u32) -> Vec<[f64; 2]> {
        let post = Position::new(0.0, 0.0);
        let mut luck = Luck::new(3, 1, 2, 0);
        let mut shadow = Shadow::new(&mut luck, [post, Position::new(0.0, 50.0)]);
        (1..=steps)
            .map(|n| {
                let ends = [post, Position::new(step_m * f64::from(n), 50.0)];
                if let Some(moved) = shadow.moved(ends) {
                    shadow.advance(&mut luck, shadowing, moved, ends);
                }
                shadowing.of(&shadow, 150.0)
            })
            .collect()
    }

    fn correlation(xs: &[f64], ys: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(xs, ys) / (dot(xs, xs) * dot(ys, ys)).sqrt()
    }

    #[test]
    fn has_the_asked_deviation_and_correlation() {
        let values: Vec<f64> =
            walk(&Shadowing::SUBURB, 5.0, 100_000).iter().map(|[there, _]| *there).collect();
        let variance = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
        assert!((variance.sqrt() - 8.1).abs() < 0.3, "{}", variance.sqrt());
        for lag in [1_u32, 5, 10] {
            let found = correlation(&values[..90_000], &values[lag as usize..][..90_000]);
            let asked = libm::exp(-5.0 * f64::from(lag) / 25.0);
            assert!((found - asked).abs() < 0.04, "{lag}: {found} for {asked}");
        }
    }

    #[test]
    fn links_are_symmetric_unless_asked_otherwise() {
        assert!(walk(&Shadowing::SUBURB, 5.0, 100).iter().all(|[there, back]| there == back));
        let shadowing = Shadowing { asymmetric_db: 3.0, ..Shadowing::SUBURB };
        let both = walk(&shadowing, 5.0, 100_000);
        let differences: Vec<f64> = both.iter().map(|[there, back]| there - back).collect();
        let variance = differences.iter().map(|x| x * x).sum::<f64>() / differences.len() as f64;
        // Two independent parts of 3 dB each.
        assert!((variance.sqrt() - 3.0 * 2_f64.sqrt()).abs() < 0.2, "{}", variance.sqrt());
    }

    #[test]
    fn nothing_changes_while_nobody_moves() {
        let [first, rest @ ..] = &walk(&Shadowing::SUBURB, 0.0, 10)[..] else { panic!() };
        assert!(rest.iter().all(|value| value == first));
    }
}
