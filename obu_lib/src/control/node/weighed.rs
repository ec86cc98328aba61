//! What a decision was made from, for the log at DEBUG: [`Weighed`].

use std::fmt;

use node_lib::Timestamp;

use super::Obu;

/// Every way to every RSU with the figures by which it is chosen:
///
/// `RSU via NEIGHBOUR (2 hops): cost 2.10, heard 90 %, strain 0.31, -71 dBm going to -74; …`
///
/// *LossCusum* is how much speaks for the link having got bad, in nat; the signal is there where
/// the radio tells it. Words in brackets say what keeps a way from being used:
/// [`node_lib::control::snapshot::Obstacle`].
pub(super) struct Weighed<'a> {
    obu: &'a Obu,
    now: Timestamp,
}

impl Obu {
    /// Nothing is computed before it is written.
    pub(super) fn weighed(&self, now: Timestamp) -> Weighed<'_> {
        Weighed { obu: self, now }
    }
}

impl fmt::Display for Weighed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        for (rsu, route) in &self.obu.routes {
            for way in route.ways(&self.obu.context, self.now) {
                write!(f, "{gap}{rsu} {way}")?;
                gap = "; ";
            }
        }
        if gap.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}
