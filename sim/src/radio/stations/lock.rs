//! A frame being received, and what it has survived so far: [`Lock`].

use super::limits::Limits;
use crate::radio::airtime::{DataRate, PREAMBLE_US, SIGNAL_US, SYMBOL_US};
use crate::radio::errors::{ErrorModel, SIGNAL_BITS};
use node_lib::time::Timestamp;

/// A frame being received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) air: usize,
    pub(super) power: u64,
    pub(super) rate: DataRate,
    pub(super) begun: Timestamp,
    /// It was above the threshold all the time.
    pub(super) is_clear: bool,
    /// Logarithm of the probability that it has survived up to then.
    pub(super) odds: f64,
    pub(super) counted_to: Timestamp,
}

impl Lock {
    /// From here on there is more in its way.
    pub(super) fn disturb(&mut self, limits: &Limits, others: u64) {
        self.is_clear &= limits.is_clear(self.power, others);
    }

    /// What was in its way up to now.
    pub(super) fn count(&mut self, limits: &Limits, now: Timestamp, others: u64) {
        if limits.errors == ErrorModel::Threshold {
            return;
        }
        let snr = self.power as f64 / (limits.noise + others as f64);
        let begun = self.begun.as_micros();
        let [from, to] = [self.counted_to, now].map(|time| time.as_micros() - begun);
        self.counted_to = now;
        let within = |start: u64, end: u64| to.min(end).saturating_sub(from.max(start)) as f64;
        let header_ends = PREAMBLE_US + SIGNAL_US;
        let header = within(PREAMBLE_US, header_ends) * SIGNAL_BITS / SIGNAL_US as f64;
        let payload = within(header_ends, to) * self.rate.bits_per_symbol() as f64;
        self.odds += header * DataRate::LOWEST.log_success(snr)
            + payload / SYMBOL_US as f64 * self.rate.log_success(snr);
    }
}
