//! What `top` shows: [`Model`].

use super::rates::Rates;
use crate::watch::Seen;

/// Which daemon is shown, and how it has been.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) rates: Rates,
    pub(super) seen: Seen,
    /// Of so many daemons, this one.
    pub(super) place: (usize, usize),
}

impl Model {
    /// So many daemons further.
    pub(super) fn another(&mut self, step: usize) {
        let (place, of) = self.place;
        *self = Self { place: ((place + step) % of.max(1), of), ..Self::default() };
    }
}
