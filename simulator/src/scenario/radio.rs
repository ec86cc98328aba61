//! What the air does to frames: [`RadioSpec`], as the file says it.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::Span;

/// A word of the file and its variant.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$item:meta])* $variant:ident $word:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
            pub enum $name {
                $($(#[$item])* #[serde(rename = $word)] $variant,)*
            }

            impl $name {
                /// Its name in a file.
                pub const fn as_str(self) -> &'static str {
                    match self {
                        $(Self::$variant => $word,)*
                    }
                }
            }
        )*
    };
}

words! {
    /// What decides who hears whom.
    Model {
        /// Nothing but `[[link]]`.
        #[default]
        Links "links",
        /// Everybody within a range.
        Disk "disk",
        /// Strength falls with one exponent.
        LogDistance "log-distance",
        /// Strength falls with one exponent up to a break and with another beyond.
        DualSlope "dual-slope",
    }

    /// How one frame's strength differs from the mean.
    FadingSpec {
        /// Not at all.
        #[default]
        None "none",
        /// Nakagami, with *m* by distance as measured in a suburb.
        Suburb "nakagami-suburb",
        /// The same without the shadowing in it.
        Scatter "nakagami-scatter",
        /// Nakagami, with one *m* near and one far.
        Simple "nakagami-simple",
        /// Nakagami with the same *m* everywhere.
        Nakagami "nakagami",
    }

    /// What noise and interference do to a frame.
    Errors {
        /// Errors bit by bit, as ns-3 has them.
        #[default]
        Nist "nist",
        /// A fixed ratio over its whole length.
        Threshold "threshold",
    }

    /// How a frame gets on the air.
    AccessSpec {
        /// Listen, wait, send, perhaps collide: 802.11p.
        #[default]
        Csma "csma",
        /// At once; frames take no air.
        Instant "instant",
    }
}

/// The radio channel. What is not named has the default of the model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "struct Radio")]
pub struct RadioSpec {
    /// What decides who hears whom.
    pub model: Model,
    /// A file that says how links are from when on (links).
    pub trace: Option<PathBuf>,
    /// Everybody so near hears everything (disk).
    pub range_m: Option<f64>,
    /// Share of frames lost within the range (disk).
    pub loss: Option<f64>,
    /// Path-loss exponent (log-distance).
    pub exponent: Option<f64>,
    /// Distance at which the exponent changes (dual-slope).
    pub break_m: Option<f64>,
    /// Exponent up to the break (dual-slope).
    pub near_exponent: Option<f64>,
    /// Exponent beyond it (dual-slope).
    pub far_exponent: Option<f64>,
    /// Slow changes by what stands in the way.
    pub shadowing: bool,
    /// Their standard deviation up to 100 m.
    pub shadowing_near_db: Option<f64>,
    /// Their standard deviation beyond.
    pub shadowing_far_db: Option<f64>,
    /// Distance after which their correlation has fallen to 1/e.
    pub shadowing_correlation_m: Option<f64>,
    /// Standard deviation of a part that each direction has for itself.
    pub shadowing_asymmetric_db: Option<f64>,
    /// Fast changes, frame by frame.
    pub fading: FadingSpec,
    /// *m* of Nakagami fading.
    pub nakagami_m: Option<f64>,
    /// What noise and interference do to a frame.
    pub errors: Errors,
    /// Transmitted power.
    pub tx_dbm: Option<f64>,
    /// Antenna gain of both ends together.
    pub gain_dbi: Option<f64>,
    /// Noise of the receiver.
    pub noise_dbm: Option<f64>,
    /// Weakest frame that can be received.
    pub sensitivity_dbm: Option<f64>,
    /// How much stronger than noise and interference a frame must be.
    pub sinr_db: Option<f64>,
    /// How much stronger its preamble must be to be decoded.
    pub preamble_db: Option<f64>,
    /// From this power on the channel is busy even for who missed the preamble.
    pub energy_detect_dbm: Option<f64>,
    /// Means below this are neither heard nor in the way.
    pub floor_dbm: Option<f64>,
    /// Whether a radio tells how strong frames come in; it does unless this is `false`.
    pub reports_signal: Option<bool>,
    /// Whether a radio tells which unicast frames it gave up; it does not unless this is `true`.
    pub reports_unacknowledged: Option<bool>,
    /// Whether a radio tells how busy its channel is; it does unless this is `false` (csma).
    pub reports_busy: Option<bool>,
    /// How a frame gets on the air.
    pub access: AccessSpec,
    /// Data rate (csma).
    pub rate_mbps: Option<f64>,
    /// How often a unicast frame is sent again (links, csma).
    pub retries: Option<u16>,
    /// Frames that wait in each of the two queues of a radio (csma).
    pub queue_frames: Option<u16>,
    /// Time under way, at least (instant).
    pub delay: Option<Span>,
    /// Added to it, evenly from nothing to this (instant).
    pub jitter: Option<Span>,
    /// How often it is looked where nodes are.
    pub update_every: Option<Span>,
}

/// A number of the file, and where it belongs.
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) value: Option<f64>,
    /// The models it belongs to.
    pub(super) models: &'static [Model],
    pub(super) least: f64,
    pub(super) most: f64,
}

/// Data rates of 10 MHz channels (802.11-2020, table 17-4).
pub(super) const RATES_MBPS: [f64; 8] = [3.0, 4.5, 6.0, 9.0, 12.0, 18.0, 24.0, 27.0];

impl RadioSpec {
    pub(super) fn numbers(&self) -> Vec<Number> {
        use Model::{Disk, DualSlope, Links, LogDistance};
        const ALL: &[Model] = &[Links, Disk, LogDistance, DualSlope];
        const ANY: &[Model] = &[Disk, LogDistance, DualSlope];
        const SLOPES: &[Model] = &[LogDistance, DualSlope];
        let mut numbers = Vec::new();
        let mut add = |name, value, models, least, most| {
            numbers.push(Number { name, value, models, least, most });
        };
        let seconds = |span: Option<Span>| span.map(|span| span.0.as_secs_f64());
        add("trace", self.trace.as_ref().map(|_| 1.0), &[Links] as &[Model], 0.0, 1.0);
        add("range_m", self.range_m, &[Disk] as &[Model], 1.0, 10_000.0);
        add("loss", self.loss, &[Disk], 0.0, 1.0);
        add("exponent", self.exponent, &[LogDistance], 1.0, 6.0);
        add("break_m", self.break_m, &[DualSlope], 1.0, 10_000.0);
        add("near_exponent", self.near_exponent, &[DualSlope], 1.0, 6.0);
        add("far_exponent", self.far_exponent, &[DualSlope], 1.0, 6.0);
        add("shadowing", self.shadowing.then_some(1.0), SLOPES, 0.0, 1.0);
        add("shadowing_near_db", self.shadowing_near_db, SLOPES, 0.0, 20.0);
        add("shadowing_far_db", self.shadowing_far_db, SLOPES, 0.0, 20.0);
        add("shadowing_correlation_m", self.shadowing_correlation_m, SLOPES, 1.0, 1000.0);
        add("shadowing_asymmetric_db", self.shadowing_asymmetric_db, SLOPES, 0.0, 20.0);
        let fades = self.fading != FadingSpec::None;
        add("fading", fades.then_some(1.0), SLOPES, 0.0, 1.0);
        add("nakagami_m", self.nakagami_m, SLOPES, 0.1, 100.0);
        add("errors", (self.errors != Errors::Nist).then_some(1.0), SLOPES, 0.0, 1.0);
        add("tx_dbm", self.tx_dbm, SLOPES, -30.0, 40.0);
        add("gain_dbi", self.gain_dbi, SLOPES, -30.0, 40.0);
        add("noise_dbm", self.noise_dbm, SLOPES, -120.0, 0.0);
        add("sensitivity_dbm", self.sensitivity_dbm, SLOPES, -120.0, 0.0);
        add("sinr_db", self.sinr_db, SLOPES, 0.0, 40.0);
        add("preamble_db", self.preamble_db, SLOPES, 0.0, 40.0);
        add("energy_detect_dbm", self.energy_detect_dbm, SLOPES, -120.0, 0.0);
        add("floor_dbm", self.floor_dbm, SLOPES, -130.0, 0.0);
        add("reports_signal", self.reports_signal.map(f64::from), ALL, 0.0, 1.0);
        let reports = self.reports_unacknowledged.map(f64::from);
        add("reports_unacknowledged", reports, ALL, 0.0, 1.0);
        add("reports_busy", self.reports_busy.map(f64::from), ANY, 0.0, 1.0);
        add("access", (self.access != AccessSpec::Csma).then_some(1.0), ANY, 0.0, 1.0);
        add("rate_mbps", self.rate_mbps, ANY, 3.0, 27.0);
        add("retries", self.retries.map(f64::from), ALL, 0.0, 255.0);
        add("queue_frames", self.queue_frames.map(f64::from), ANY, 1.0, 10_000.0);
        add("delay", seconds(self.delay), ANY, 0.0, 10.0);
        add("jitter", seconds(self.jitter), ANY, 0.0, 10.0);
        add("update_every", seconds(self.update_every), ANY, 0.001, 10.0);
        numbers
    }

    /// Fields that mean something beside another only: the field, whether that is so, and beside
    /// what.
    pub(super) fn companions(&self) -> [(&'static str, bool, &'static str); 13] {
        let shadows = |number: Option<f64>| number.is_none() || self.shadowing;
        let (csma, instant) = (self.access == AccessSpec::Csma, self.access == AccessSpec::Instant);
        let nakagami = self.fading == FadingSpec::Nakagami;
        let threshold = self.errors == Errors::Threshold;
        [
            ("shadowing_near_db", shadows(self.shadowing_near_db), "shadowing = true"),
            ("shadowing_far_db", shadows(self.shadowing_far_db), "shadowing = true"),
            ("shadowing_correlation_m", shadows(self.shadowing_correlation_m), "shadowing = true"),
            ("shadowing_asymmetric_db", shadows(self.shadowing_asymmetric_db), "shadowing = true"),
            ("nakagami_m", self.nakagami_m.is_some() == nakagami, "fading = \"nakagami\""),
            (
                "sensitivity_dbm",
                self.sensitivity_dbm.is_none() || threshold,
                "errors = \"threshold\"",
            ),
            ("sinr_db", self.sinr_db.is_none() || threshold, "errors = \"threshold\""),
            ("rate_mbps", self.rate_mbps.is_none() || csma, "access = \"csma\""),
            ("reports_busy", self.reports_busy.is_none() || csma, "access = \"csma\""),
            ("retries", self.retries.is_none() || csma, "access = \"csma\""),
            ("queue_frames", self.queue_frames.is_none() || csma, "access = \"csma\""),
            ("delay", self.delay.is_none() || instant, "access = \"instant\""),
            ("jitter", self.jitter.is_none() || instant, "access = \"instant\""),
        ]
    }
}

/// In few words.
impl fmt::Display for RadioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model.as_str())?;
        if let Some(trace) = &self.trace {
            write!(f, " as in {}", trace.display())?;
        }
        if self.model != Model::Links {
            if self.shadowing {
                f.write_str(" with shadowing")?;
            }
            if self.fading != FadingSpec::None {
                write!(f, ", {}", self.fading.as_str())?;
            }
            write!(f, ", {}", self.access.as_str())?;
            if self.reports_signal == Some(false) {
                f.write_str(", no signal reported")?;
            }
        }
        if self.reports_busy == Some(false) {
            f.write_str(", does not tell how busy it is")?;
        }
        if self.reports_unacknowledged == Some(true) {
            f.write_str(", tells what it gave up")?;
        }
        Ok(())
    }
}
