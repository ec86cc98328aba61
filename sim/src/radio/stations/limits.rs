//! From which power on a frame is noticed, begins, is read, drowns another: [`Limits`].

use crate::radio::errors::ErrorModel;
use crate::radio::path_loss::PathLoss;
use crate::radio::{Budget, RadioModel, attowatts, power};

/// Thresholds in attowatts, ratios of powers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) errors: ErrorModel,
    pub(super) noise: f64,
    /// Weakest frame that can be received, and weakest preamble.
    pub(super) weakest: f64,
    pub(super) preamble: f64,
    /// Busy from here on, whatever it is.
    pub(super) busy: u64,
    pub(super) sinr: f64,
    pub(super) preamble_sinr: f64,
    pub(super) capture: f64,
    /// Less than this is not worth a sum.
    pub(super) ignored: f64,
}

/// What is this much below noise, 10 dB, changes no sum by more than 0.4 dB.
const IGNORED: f64 = 0.1;

impl Limits {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub(super) fn of(radio: &RadioModel) -> Self {
        let Budget { noise_dbm, sinr_db, preamble_db, capture_db, energy_detect_dbm, .. } =
            radio.budget;
        let weakest = attowatts(radio.weakest_dbm());
        match radio.path_loss {
            // Inside a disk nothing is too weak to be heard, and beyond it nothing is in the way.
            PathLoss::Disk { .. } => Self {
                errors: radio.error_model(),
                noise: 0.0,
                weakest,
                preamble: weakest,
                busy: weakest as u64,
                sinr: power(sinr_db),
                preamble_sinr: power(preamble_db),
                capture: power(capture_db),
                ignored: 1.0,
            },
            _ => Self {
                errors: radio.error_model(),
                noise: attowatts(noise_dbm),
                weakest,
                preamble: attowatts(radio.weakest_preamble_dbm()),
                busy: attowatts(energy_detect_dbm) as u64,
                sinr: power(sinr_db),
                preamble_sinr: power(preamble_db),
                capture: power(capture_db),
                ignored: attowatts(noise_dbm) * IGNORED,
            },
        }
    }

    /// Can a frame be read through this?
    pub(super) fn is_clear(self, power: u64, others: u64) -> bool {
        power as f64 >= self.sinr * (self.noise + others as f64)
    }

    /// Can its preamble be decoded through this?
    pub(super) fn begins(self, power: u64, others: u64) -> bool {
        power as f64 >= self.preamble_sinr * (self.noise + others as f64)
    }

    /// Does a frame drown the one being received?
    pub(super) fn captures(self, power: u64, others: u64) -> bool {
        power as f64 >= self.capture * (self.noise + others as f64)
    }
}
