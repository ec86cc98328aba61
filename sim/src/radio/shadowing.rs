//! Slow changes of a link's strength, by what stands in the way: [`Shadowing`].

use std::f64::consts::TAU;

use crate::dice::Luck;
use crate::mobility::Location;

/// Shadowing as a Gaussian field in decibels over the places of both ends.
///
/// Two links whose ends are d and e metres apart have shadows that correlate by exp(−d/d₀) ·
/// exp(−e/d₀). It may be one link before and after a vehicle moved (Gudmundson, "Correlation model
/// for shadow fading in mobile radio systems", Electronics Letters 27(23), 1991, for both ends), or
/// the links of two vehicles behind one house. So neighbours fade together, and nothing changes
/// while both ends stand still.
///
/// The field is a sum of [`WAVES`] waves over the four coordinates of both ends: Wang, Tameh and
/// Nix, "Joint shadowing process in urban peer-to-peer radio channels", IEEE Transactions on
/// Vehicular Technology 57(1), 2008. It follows from the seed and the places alone.
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
    /// d₀ between vehicles in a town (3GPP TR 36.885, table A.1.4-1).
    pub const URBAN_CORRELATION_M: f64 = 10.0;

    /// d₀ between vehicles on a motorway (the same).
    pub const MOTORWAY_CORRELATION_M: f64 = 25.0;

    /// 5.6 dB up to 100 m and 8.1 dB beyond (Cheng et al., IEEE JSAC 25(8), 2007); correlated as
    /// among houses.
    pub const SUBURB: Self = Self {
        near_db: 5.6,
        far_db: 8.1,
        break_m: 100.0,
        correlation_m: Self::URBAN_CORRELATION_M,
        asymmetric_db: 0.0,
    };

    /// No more than this is added above the mean in practice (two deviations), in dB: how much
    /// farther to look for somebody who may be heard.
    pub(super) fn headroom_db(&self) -> f64 {
        2.0 * (self.near_db.max(self.far_db) + self.asymmetric_db)
    }

    /// What is added to the mean over this distance, there and back, in dB.
    pub(super) fn of(&self, field: &Field, ends: [&Front; 2], distance_m: f64) -> [f64; 2] {
        let deviation = if distance_m <= self.break_m { self.near_db } else { self.far_db };
        let common = deviation * field.common(ends, distance_m);
        if self.asymmetric_db == 0.0 {
            return [common; 2];
        }
        field.own(ends).map(|own| common + self.asymmetric_db * own)
    }
}

/// Waves of which a field is the sum. Over the places of one field correlations are off by about
/// 1/√(2·64), 9 %; over many seeds they are exact.
pub const WAVES: usize = 64;

/// The waves of one world.
#[derive(Clone, Debug)]
pub(super) struct Field {
    correlation_m: f64,
    /// Those of what both directions share; then, if links are not symmetric, those of what each
    /// has for itself.
    waves: Vec<Wave>,
}

/// Wave vectors for the one and for the other end, in turns per metre, and the phase in turns.
#[derive(Clone, Copy, Debug)]
struct Wave {
    one: [f64; 2],
    other: [f64; 2],
    phase: f64,
}

/// What the waves are at one place. For a pair of places only products are left to be summed.
#[derive(Clone, Debug, Default)]
pub(super) struct Front {
    at: Option<Location>,
    /// Cosine and sine of each wave, here as the one end and as the other.
    as_one: Vec<f32>,
    as_other: Vec<f32>,
}

impl Field {
    pub(super) fn new(shadowing: &Shadowing, seed: u64) -> Self {
        let count = if shadowing.asymmetric_db > 0.0 { 2 * WAVES } else { WAVES };
        let wave = |n: usize| {
            let mut luck = Luck::new(seed, n, n, FIELD);
            let mut vector = || {
                // In the plane the spectrum of exp(−r/d₀) is (1 + k²d₀²)^(−3/2): the share of waves
                // up to k is 1 − (1 + k²d₀²)^(−1/2), which is turned round here.
                let beyond = luck.unit();
                let k = (1.0 / (beyond * beyond) - 1.0).sqrt() / shadowing.correlation_m / TAU;
                let (sine, cosine) = libm::sincos(TAU * luck.unit());
                [k * cosine, k * sine]
            };
            Wave { one: vector(), other: vector(), phase: luck.unit() }
        };
        Self { correlation_m: shadowing.correlation_m, waves: (0..count).map(wave).collect() }
    }

    /// Makes a front that of this place, which is a matter of microseconds unless it is already.
    pub(super) fn move_front(&self, front: &mut Front, at: Location) {
        if front.at.replace(at) == Some(at) {
            return;
        }
        front.as_one.clear();
        front.as_other.clear();
        for Wave { one, other, phase } in &self.waves {
            let turns = |[x, y]: &[f64; 2]| x * at.x_m + y * at.y_m;
            let (sine, cosine) = sincos_of(turns(one) + phase);
            front.as_one.extend([cosine, -sine]);
            let (sine, cosine) = sincos_of(turns(other));
            front.as_other.extend([cosine, sine]);
        }
    }

    /// What both directions share, with mean 0 and variance 1.
    fn common(&self, [a, b]: [&Front; 2], distance_m: f64) -> f64 {
        let [there, back] =
            [(a, b), (b, a)].map(|(from, to)| dot(parts(&from.as_one).0, parts(&to.as_other).0));
        // Each way is a field of variance WAVES / 2. They are of places with exchanged ends, each
        // the distance apart.
        let alike = libm::exp(-2.0 * distance_m / self.correlation_m);
        f64::from(there + back) / (WAVES as f64 * (1.0 + alike)).sqrt()
    }

    /// What each has for itself, there and back, with variance 1.
    fn own(&self, [a, b]: [&Front; 2]) -> [f64; 2] {
        [(a, b), (b, a)].map(|(from, to)| {
            let sum = dot(parts(&from.as_one).1, parts(&to.as_other).1);
            f64::from(sum) / (WAVES as f64 / 2.0).sqrt()
        })
    }
}

/// Sine and cosine of so many turns. Whole ones are taken off first, which leaves enough digits for
/// a fast function.
#[allow(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
fn sincos_of(turns: f64) -> (f32, f32) {
    let rest = turns - (turns as i64) as f64;
    libm::sincosf((TAU * rest) as f32)
}

/// Of the waves both directions share, and of the others.
fn parts(front: &[f32]) -> (&[f32], &[f32]) {
    front.split_at_checked(2 * WAVES).unwrap_or_default()
}

/// A sum of products, in an order of its own that processors can do several at a time of.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for ([a0, a1, a2, a3], [b0, b1, b2, b3]) in a.as_chunks().0.iter().zip(b.as_chunks().0) {
        let [s0, s1, s2, s3] = sums;
        sums = [s0 + a0 * b0, s1 + a1 * b1, s2 + a2 * b2, s3 + a3 * b3];
    }
    sums.iter().sum()
}

/// Divides 2 · [`WAVES`].
const LANES: usize = 4;

/// Purpose of random numbers.
const FIELD: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: u64 = 4000;

    /// The shadow between two places, both ways, with this seed.
    fn shadow(shadowing: &Shadowing, seed: u64, ends: [Location; 2]) -> [f64; 2] {
        let field = Field::new(shadowing, seed);
        let fronts = ends.map(|end| {
            let mut front = Front::default();
            field.move_front(&mut front, end);
            front
        });
        let [a, b] = &fronts;
        shadowing.of(&field, [a, b], ends[0].distance_m(ends[1]))
    }

    /// Shadows of two links, with many seeds.
    fn both(
        shadowing: &Shadowing,
        one: [Location; 2],
        other: [Location; 2],
    ) -> (Vec<f64>, Vec<f64>) {
        let there = |seed, ends| shadow(shadowing, seed, ends)[0];
        (0..SEEDS).map(|seed| (there(seed, one), there(seed, other))).unzip()
    }

    fn deviation(xs: &[f64]) -> f64 {
        (xs.iter().map(|x| x * x).sum::<f64>() / xs.len() as f64).sqrt()
    }

    fn correlation(xs: &[f64], ys: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(xs, ys) / (dot(xs, xs) * dot(ys, ys)).sqrt()
    }

    fn at(x_m: f64, y_m: f64) -> Location {
        Location::new(x_m, y_m)
    }

    /// Values of SEEDS draws: a deviation is off by 1/√(2n), 1.1 %, a correlation by 1/√n, 1.6 %;
    /// here four of those.
    #[test]
    fn has_the_asked_deviation_at_any_distance() {
        for (distance_m, asked) in
            [(2.0, 5.6), (40.0, 5.6), (99.0, 5.6), (101.0, 8.1), (400.0, 8.1)]
        {
            let ends = [at(0.0, 0.0), at(0.0, distance_m)];
            let (values, _) = both(&Shadowing::SUBURB, ends, ends);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!(mean.abs() < 4.0 * asked / (SEEDS as f64).sqrt(), "{distance_m}: {mean}");
            let found = deviation(&values);
            assert!((found / asked - 1.0).abs() < 0.045, "{distance_m}: {found} for {asked}");
        }
    }

    /// Who is behind the same house is in the same shadow; both ends count, and the other way
    /// round.
    #[test]
    fn neighbours_fade_together() {
        for correlation_m in [Shadowing::URBAN_CORRELATION_M, Shadowing::MOTORWAY_CORRELATION_M] {
            let shadowing = Shadowing { correlation_m, ..Shadowing::SUBURB };
            let far = at(300.0, 0.0);
            for metres in [2.0, 5.0, 10.0, 30.0] {
                let asked = libm::exp(-metres / correlation_m);
                let near = |found: f64, asked: f64| {
                    assert!((found - asked).abs() < 0.065, "{metres} m: {found} for {asked}");
                };
                let (a, b) = both(&shadowing, [at(0.0, 0.0), far], [at(0.0, metres), far]);
                near(correlation(&a, &b), asked);
                // As seen from the others: the one receives, the other sends.
                let (a, b) = both(&shadowing, [at(0.0, 0.0), far], [far, at(0.0, metres)]);
                near(correlation(&a, &b), asked);
                let moved = at(300.0, metres);
                let (a, b) = both(&shadowing, [at(0.0, 0.0), far], [at(0.0, metres), moved]);
                near(correlation(&a, &b), asked * asked);
            }
        }
    }

    #[test]
    fn links_are_symmetric_unless_asked_otherwise() {
        let ends = [at(0.0, 0.0), at(150.0, 20.0)];
        let all = |shadowing: &Shadowing| -> Vec<[f64; 2]> {
            (0..SEEDS).map(|seed| shadow(shadowing, seed, ends)).collect()
        };
        assert!(all(&Shadowing::SUBURB).iter().all(|[there, back]| there == back));
        let shadowing = Shadowing { asymmetric_db: 3.0, ..Shadowing::SUBURB };
        let differences: Vec<f64> =
            all(&shadowing).iter().map(|[there, back]| there - back).collect();
        // Two independent parts of 3 dB each.
        let found = deviation(&differences);
        assert!((found / (3.0 * 2_f64.sqrt()) - 1.0).abs() < 0.045, "{found}");
    }

    /// Whichever way a vehicle came, and however often it was there.
    #[test]
    fn a_shadow_follows_from_seed_and_places_alone() {
        let field = Field::new(&Shadowing::SUBURB, 7);
        let [mut driven, mut parked] = [Front::default(), Front::default()];
        field.move_front(&mut parked, at(0.0, 120.0));
        let mut drive = || -> Vec<f64> {
            let places = (0..50).map(|n| at(3.0 * f64::from(n), 0.0));
            let look = places.map(|place| {
                field.move_front(&mut driven, place);
                Shadowing::SUBURB.of(&field, [&driven, &parked], 120.0)[0]
            });
            look.collect()
        };
        let first = drive();
        assert!(first.windows(2).all(|pair| pair[0] != pair[1]), "{first:?}");
        assert_eq!(first, drive());
    }
}
