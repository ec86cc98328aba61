//! A radio channel that follows from where nodes are: [`RadioModel`].
//!
//! Set with [`World::set_radio`](crate::World::set_radio); nodes stand where
//! [`World::place`](crate::World::place) puts them or move as
//! [`World::follow`](crate::World::follow) says. Powers are in dBm at 5.9 GHz.
//!
//! ```
//! use sim::radio::{Access, Csma, RadioModel};
//!
//! // Everyone within 300 m hears everything, and frames take no time.
//! let simple = RadioModel::disk(300.0, 0.0);
//! // Path loss and fading as measured in a suburb, and 802.11p on top.
//! let real = RadioModel { access: Access::Csma(Csma::DEFAULT), ..RadioModel::suburb() };
//! assert_eq!(simple.delivery(299.0), 1.0);
//! assert!(real.delivery(50.0) > 0.99 && real.delivery(250.0) < 0.8);
//! ```
//!
//! | part | what it decides |
//! |---|---|
//! | [`path_loss`] | mean strength by distance |
//! | [`shadowing`] | how that changes as the ends move |
//! | [`fading`] | how strong one frame is |
//! | [`errors`], [`Budget`] | whether it is received |
//! | [`access`] | when it is sent |
//! | [`airtime`] | how long that takes |
//! | [`occupancy`] | how full the channel is |
//!
//! Not modelled: buildings, Doppler, adjacent channels, RTS/CTS, rate adaptation, and the time
//! light takes.

pub mod access;
pub mod airtime;
mod channel;
mod earshot;
pub mod errors;
pub mod fading;
mod grid;
pub mod occupancy;
pub mod path_loss;
pub mod shadowing;
mod stations;

pub use access::{Access, Category, Csma};
pub use airtime::DataRate;
pub(crate) use channel::Channel;
pub use errors::ErrorModel;
pub use fading::Fading;
pub use occupancy::{Airtime, AirtimeSecond, Occupancy};
pub use path_loss::PathLoss;
pub use shadowing::Shadowing;

use std::time::Duration;

use crate::dice::Luck;
use fading::Shape;

/// How often it is looked where nodes are, unless said otherwise: a vehicle at 130 km/h moves 3.6 m
/// meanwhile.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the channel between any two places does to a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioModel {
    /// Mean strength by distance.
    pub path_loss: PathLoss,
    /// What stands in the way.
    pub shadowing: Option<Shadowing>,
    /// Each frame's own strength.
    pub fading: Fading,
    /// What noise and interference do to it. A disk has an edge instead of noise, and so a
    /// threshold.
    pub errors: ErrorModel,
    /// Powers and thresholds.
    pub budget: Budget,
    /// How a frame gets on the air.
    pub access: Access,
    /// How often it is looked where nodes are; at most a thousand times a second.
    pub update_every: Duration,
}

/// Powers and thresholds of every radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Transmitted, in dBm.
    pub tx_dbm: f64,
    /// Antenna gain of both ends together, in dBi.
    pub gain_dbi: f64,
    /// Noise of the receiver over 10 MHz, in dBm.
    pub noise_dbm: f64,
    /// Weakest frame that can be received, in dBm; with [`ErrorModel::Threshold`].
    pub sensitivity_dbm: f64,
    /// A frame is received if it is this much stronger than noise and interference, in dB; with
    /// [`ErrorModel::Threshold`].
    pub sinr_db: f64,
    /// Its preamble and header can be decoded if it is this much stronger, in dB: who can is busy
    /// until it ends.
    pub preamble_db: f64,
    /// A frame this much stronger than everything else is received even if it began later, in dB.
    pub capture_db: f64,
    /// From this power on the channel is busy even for who missed the preamble, in dBm.
    pub energy_detect_dbm: f64,
    /// Means below this are neither heard nor in the way, in dBm.
    pub floor_dbm: f64,
}

impl Budget {
    /// A vehicle's radio at 6 Mbit/s.
    ///
    /// * 20 dBm and 3 dB of antennas: the usual 23 dBm of EIRP, 10 dB below the limit of ETSI EN
    ///   302 571.
    /// * Noise −98 dBm: thermal noise of 10 MHz (−104 dBm) and 6 dB of the receiver; also the
    ///   default of Veins (`sommer/veins examples/veins`).
    /// * 8 dB for QPSK 1/2: Jiang, Chen and Delgrossi, "Optimal data rate selection for vehicle
    ///   safety communications", VANET 2008, who need 5 dB for 3 Mbit/s and 15 for 12. So −90 dBm
    ///   suffice, 8 dB better than 802.11-2020 table 17-18 demands, as radios on the market are.
    /// * 4 dB for the preamble: the default of ns-3 (`ThresholdPreambleDetectionModel`). The header
    ///   after it goes at 3 Mbit/s and survives then.
    /// * Busy from −65 dBm without a preamble: 20 dB above the least sensitivity the standard
    ///   demands at the lowest rate, −85 dBm (802.11-2020, 17.3.10.6, 10 MHz). With one, busy for
    ///   the frame's length from where it can be decoded; the standard demands this from −85 dBm
    ///   on, and radios that receive weaker frames do it with those too.
    pub const VEHICLE: Self = Self {
        tx_dbm: 20.0,
        gain_dbi: 3.0,
        noise_dbm: -98.0,
        sensitivity_dbm: -92.0,
        sinr_db: 8.0,
        preamble_db: 4.0,
        capture_db: 10.0,
        energy_detect_dbm: -65.0,
        floor_dbm: -99.0,
    };
}

/// How strong the frames of a link come in that are received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    /// Their mean, in dBm.
    pub mean_dbm: f64,
    /// Standard deviation from frame to frame, in dB.
    pub deviation_db: f64,
}

impl Strength {
    /// That of one frame.
    pub(crate) fn draw(self, luck: &mut Luck) -> f64 {
        self.mean_dbm + self.deviation_db * fading::normal(luck)
    }
}

impl RadioModel {
    /// Everyone within the range hears everything but this share of frames; frames take no time.
    pub const fn disk(range_m: f64, loss: f64) -> Self {
        Self::with_path_loss(PathLoss::Disk { range_m, loss })
    }

    /// Only path loss decides who hears whom; frames take no time.
    pub const fn with_path_loss(path_loss: PathLoss) -> Self {
        Self {
            path_loss,
            shadowing: None,
            fading: Fading::Still,
            errors: ErrorModel::Nist,
            budget: Budget::VEHICLE,
            access: Access::INSTANT,
            update_every: LOOK_EVERY,
        }
    }

    /// Dual-slope path loss and Nakagami fading as Cheng et al. measured them between vehicles in a
    /// suburb of Pittsburgh; 802.11p on top.
    ///
    /// Their *m* holds all that was not the mean by distance, shadowing included. So the share of
    /// frames that arrive is right at each distance, over all links; but each frame has its own
    /// luck, where in a street those of one link are shadowed together. See
    /// [`RadioModel::suburb_shadowed`].
    pub fn suburb() -> Self {
        Self {
            fading: Fading::Nakagami(Shape::suburb()),
            access: Access::Csma(Csma::DEFAULT),
            ..Self::with_path_loss(PathLoss::DUAL_SLOPE)
        }
    }

    /// The same with shadows that belong to places, and with what is left for fading then
    /// ([`Shape::scatter`]): links that are there for a while, and gone behind a corner. For how
    /// routes hold.
    pub fn suburb_shadowed() -> Self {
        Self {
            shadowing: Some(Shadowing::SUBURB),
            fading: Fading::Nakagami(Shape::scatter()),
            ..Self::suburb()
        }
    }

    /// Mean strength at this distance without shadowing, in dBm.
    pub fn mean_dbm(&self, distance_m: f64) -> f64 {
        let Budget { tx_dbm, gain_dbi, .. } = self.budget;
        tx_dbm + gain_dbi - self.path_loss.loss_db(distance_m)
    }

    /// Nobody farther away than this is ever looked at, in metres.
    pub fn reach_m(&self) -> f64 {
        let Budget { tx_dbm, gain_dbi, floor_dbm, .. } = self.budget;
        let headroom = self.shadowing.map_or(0.0, |shadowing| shadowing.headroom_db());
        self.path_loss.distance_m(tx_dbm + gain_dbi + headroom - floor_dbm)
    }

    /// Probability that a frame sent over this distance is received, when nothing stands in the way
    /// and nobody disturbs it.
    pub fn delivery(&self, distance_m: f64) -> f64 {
        self.delivery_at(distance_m, self.mean_dbm(distance_m))
    }

    /// Probability that a frame is received whose mean strength is this, shadowing included, when
    /// nobody disturbs it. With [`ErrorModel::Nist`] one of [`errors::REFERENCE_LEN`] bytes, to a
    /// hundredth.
    pub fn delivery_at(&self, distance_m: f64, mean_dbm: f64) -> f64 {
        let exceeds = |dbm: f64| self.fading.exceeds(distance_m, power(dbm - mean_dbm));
        match (self.path_loss, self.errors) {
            (PathLoss::Disk { range_m, .. }, _) if distance_m > range_m => 0.0,
            (PathLoss::Disk { loss, .. }, _) => 1.0 - loss,
            (_, ErrorModel::Threshold) => exceeds(self.weakest_dbm()),
            (_, ErrorModel::Nist) if self.fading == Fading::Still => self.success(mean_dbm),
            // What survives at one strength falls from all to nothing within a decibel or two: as
            // good as some edges, each for its share of frames.
            (_, ErrorModel::Nist) => {
                let levels = self.rate().levels_db();
                let shares = levels.iter().map(|db| exceeds(self.budget.noise_dbm + db));
                shares.sum::<f64>() / levels.len() as f64
            }
        }
    }

    /// Probability that a frame just so strong is received when nobody disturbs it.
    fn success(&self, dbm: f64) -> f64 {
        match self.error_model() {
            ErrorModel::Threshold => f64::from(u8::from(dbm >= self.weakest_dbm())),
            ErrorModel::Nist => {
                let snr = power(dbm - self.budget.noise_dbm);
                self.rate().frame_success(snr, errors::REFERENCE_LEN)
            }
        }
    }

    /// What decides here.
    pub(crate) fn error_model(&self) -> ErrorModel {
        match self.path_loss {
            PathLoss::Disk { .. } => ErrorModel::Threshold,
            _ => self.errors,
        }
    }

    /// The rate of every frame; the usual one where frames take no air.
    fn rate(&self) -> DataRate {
        match self.access {
            Access::Csma(csma) => csma.rate,
            Access::Instant { .. } => DataRate::default(),
        }
    }

    /// How strong the frames are that are received, over this distance and of this mean strength,
    /// shadowing included, when nobody disturbs them. `None` if none is.
    ///
    /// Only what is strong enough is received, so near the edge this is above `mean_dbm`, and falls
    /// less steeply. It has mean and deviation over the fading's distribution, each strength
    /// weighted with its chance to be received, summed in steps of half a decibel.
    pub fn strength_at(&self, distance_m: f64, mean_dbm: f64) -> Option<Strength> {
        if self.delivery_at(distance_m, mean_dbm) <= 0.0 {
            return None;
        }
        if self.fading == Fading::Still {
            return Some(Strength { mean_dbm, deviation_db: 0.0 });
        }
        let exceeds = |db: f64| self.fading.exceeds(distance_m, power(db));
        // With a threshold nothing below it counts; else the edge is that wide.
        let edge_db = match self.error_model() {
            ErrorModel::Threshold => 0.0,
            ErrorModel::Nist => FADE_EDGE_DB,
        };
        let mut db = (self.weakest_dbm() - edge_db - mean_dbm).max(FADE_LEAST_DB);
        let mut above = exceeds(db);
        let (mut weight, mut sum, mut squares) = (0.0, 0.0, 0.0);
        while above > FADE_REST && db < FADE_MOST_DB {
            let next = exceeds(db + FADE_STEP_DB);
            let middle = db + FADE_STEP_DB / 2.0;
            let share = (above - next) * self.success(mean_dbm + middle);
            weight += share;
            sum += middle * share;
            squares += middle * middle * share;
            (db, above) = (db + FADE_STEP_DB, next);
        }
        if weight <= 0.0 {
            return None;
        }
        let mean = sum / weight;
        let deviation_db = libm::sqrt((squares / weight - mean * mean).max(0.0));
        Some(Strength { mean_dbm: mean_dbm + mean, deviation_db })
    }

    /// The weakest frame that is received when nobody disturbs it, in dBm; with
    /// [`ErrorModel::Nist`], of which half are.
    pub fn weakest_dbm(&self) -> f64 {
        let Budget { noise_dbm, sensitivity_dbm, sinr_db, .. } = self.budget;
        match (self.path_loss, self.errors) {
            // The edge of the range, however strong it is there.
            (PathLoss::Disk { range_m, .. }, _) => self.mean_dbm(range_m) - EDGE_DB,
            (_, ErrorModel::Threshold) => sensitivity_dbm.max(noise_dbm + sinr_db),
            (_, ErrorModel::Nist) => {
                let [_, _, half, _, _] = self.rate().levels_db();
                noise_dbm + half
            }
        }
    }

    /// The weakest frame whose preamble and header can be decoded when nobody disturbs it, in dBm.
    pub(crate) fn weakest_preamble_dbm(&self) -> f64 {
        let Budget { noise_dbm, sensitivity_dbm, preamble_db, .. } = self.budget;
        match (self.path_loss, self.errors) {
            (PathLoss::Disk { .. }, _) => self.weakest_dbm(),
            (_, ErrorModel::Threshold) => sensitivity_dbm.max(noise_dbm + preamble_db),
            (_, ErrorModel::Nist) => noise_dbm + preamble_db,
        }
    }
}

/// Steps in which a distribution of fading is summed; where that begins and ends, relative to the
/// mean; and the share that is left out.
const FADE_STEP_DB: f64 = 0.5;
const FADE_LEAST_DB: f64 = -60.0;
const FADE_MOST_DB: f64 = 20.0;
const FADE_REST: f64 = 1e-6;

/// So much below the level of which half of the frames are received, next to none is.
const FADE_EDGE_DB: f64 = 2.0;

/// Room for rounding at the edge of a disk.
const EDGE_DB: f64 = 0.01;

/// A ratio of powers from decibels.
fn power(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

/// Power in attowatts: sums of whole numbers come out the same in any order. −110 dBm is 10⁴ of
/// them, 33 dBm 2·10¹⁸.
pub(crate) fn attowatts(dbm: f64) -> f64 {
    power(dbm) * ATTOWATTS_PER_MILLIWATT
}

/// Back again.
pub(crate) fn dbm(attowatts: f64) -> f64 {
    10.0 * libm::log10(attowatts.max(1.0) / ATTOWATTS_PER_MILLIWATT)
}

const ATTOWATTS_PER_MILLIWATT: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_ends_at_its_range() {
        let radio = RadioModel::disk(300.0, 0.1);
        assert_eq!([0.0, 300.0, 300.1].map(|d| radio.delivery(d)), [0.9, 0.9, 0.0]);
        assert_eq!(radio.reach_m(), 300.0);
    }

    #[test]
    fn without_fading_delivery_is_all_or_nothing() {
        let radio = RadioModel {
            errors: ErrorModel::Threshold,
            ..RadioModel::with_path_loss(PathLoss::DUAL_SLOPE)
        };
        // −90 dBm are left of 23 dBm after 113 dB: 100 m and a factor of 10^(25.14 / 40) beyond.
        assert_eq!([424.0, 426.0].map(|d| radio.delivery(d)), [1.0, 0.0]);
    }

    #[test]
    fn fading_makes_the_edge_grey() {
        let radio = RadioModel::suburb();
        let by_distance: Vec<f64> =
            [30.0, 100.0, 200.0, 300.0, 425.0].iter().map(|d| radio.delivery(*d)).collect();
        assert!(by_distance.is_sorted_by(|near, far| near > far), "{by_distance:?}");
        assert!(by_distance[0] > 0.999 && by_distance[4] < 0.4, "{by_distance:?}");
    }

    #[test]
    fn frames_that_are_received_are_as_strong_as_those_drawn_are() {
        for errors in [ErrorModel::Threshold, ErrorModel::Nist] {
            let radio = RadioModel { errors, ..RadioModel::suburb() };
            as_strong_as_drawn(&radio);
        }
        let still = RadioModel {
            errors: ErrorModel::Threshold,
            ..RadioModel::with_path_loss(PathLoss::DUAL_SLOPE)
        };
        let strength = still.strength_at(424.0, still.mean_dbm(424.0)).unwrap();
        assert_eq!(strength, Strength { mean_dbm: still.mean_dbm(424.0), deviation_db: 0.0 });
        assert_eq!(still.strength_at(426.0, still.mean_dbm(426.0)), None);
    }

    fn as_strong_as_drawn(radio: &RadioModel) {
        for distance_m in [20.0, 60.0, 150.0, 300.0, 425.0] {
            let mean_dbm = radio.mean_dbm(distance_m);
            let draw = |n| {
                let mut luck = Luck::new(1, 2, 3, n);
                mean_dbm + 10.0 * libm::log10(radio.fading.draw(distance_m, &mut luck))
            };
            let mut luck = Luck::new(4, 5, 6, 7);
            let mut is_received = |dbm: &f64| luck.chance(radio.success(*dbm));
            let received: Vec<f64> = (0..40_000).map(draw).filter(|dbm| is_received(dbm)).collect();
            let count = received.len() as f64;
            let mean = received.iter().sum::<f64>() / count;
            let squares = received.iter().map(|dbm| (dbm - mean) * (dbm - mean)).sum::<f64>();
            let deviation = (squares / count).sqrt();
            let strength = radio.strength_at(distance_m, mean_dbm).unwrap();
            assert!((strength.mean_dbm - mean).abs() < 0.2, "{distance_m} m: {mean}, {strength:?}");
            let off = (strength.deviation_db - deviation).abs();
            assert!(off < 0.3, "{distance_m} m: {deviation}, {strength:?}");
        }
    }

    /// Half of the frames of the reference length survive 5.9 dB above noise, at −92.1 dBm: 115.1
    /// dB after 23 dBm, 100 m and a factor of 10^(27.24 / 40) beyond.
    #[test]
    fn without_fading_the_edge_is_as_wide_as_the_error_model_has_it() {
        let radio = RadioModel::with_path_loss(PathLoss::DUAL_SLOPE);
        let weakest = radio.weakest_dbm();
        assert!((weakest - -92.1).abs() < 0.1, "{weakest}");
        let by_distance = [430.0, 480.0, 520.0].map(|d| radio.delivery(d));
        assert!(by_distance[0] > 0.99 && by_distance[2] < 0.01, "{by_distance:?}");
        assert!((radio.delivery_at(480.0, weakest) - 0.5).abs() < 0.01);
    }

    /// Levels stand for a curve: the sum over the curve itself differs by less than a hundredth.
    #[test]
    fn delivery_is_that_of_the_whole_curve() {
        let radio = RadioModel::suburb();
        for distance_m in [60.0, 150.0, 300.0, 500.0] {
            let mean_dbm = radio.mean_dbm(distance_m);
            let draw = |n| {
                let mut luck = Luck::new(2, 3, 4, n);
                let dbm = mean_dbm + 10.0 * libm::log10(radio.fading.draw(distance_m, &mut luck));
                radio.success(dbm)
            };
            let drawn = (0..40_000).map(draw).sum::<f64>() / 40_000.0;
            let found = radio.delivery(distance_m);
            assert!((found - drawn).abs() < 0.01, "{distance_m} m: {found} for {drawn}");
        }
    }

    #[test]
    fn power_and_decibels_undo_each_other() {
        for level in [-110.0, -65.5, 23.0] {
            assert!((dbm(attowatts(level)) - level).abs() < 1e-9);
        }
    }
}
