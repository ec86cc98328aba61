//! What a path costs.

use std::fmt;

/// Expected transmissions (ETX) from a node to its RSU, in 1/64 of a transmission.
///
/// A perfect link costs [`Cost::ONE`], a link that loses half its frames twice that, a path the sum
/// of its links. Sums saturate: [`Cost::MAX`] is "as bad as can be said", 1024 transmissions. Two
/// bytes, big-endian, on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cost(pub u16);

impl Cost {
    /// Nothing: what an RSU advertises for itself.
    pub const ZERO: Self = Self(0);
    /// One transmission.
    pub const ONE: Self = Self(64);
    /// As bad as can be said.
    pub const MAX: Self = Self(u16::MAX);

    /// In transmissions, for people and JSON.
    pub fn transmissions(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }

    /// The cost of this path and then that one.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// In transmissions, two decimals: `1.50`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Integers, so that logs of equal runs are equal: 1/64 rounded to the nearest hundredth.
        let hundredths = (u32::from(self.0) * 100 + 32) / 64;
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate() {
        assert_eq!(Cost::ONE.saturating_add(Cost(32)), Cost(96));
        assert_eq!(Cost(65_530).saturating_add(Cost::ONE), Cost::MAX);
    }

    #[test]
    fn reads_in_transmissions() {
        assert_eq!(Cost::ONE.to_string(), "1.00");
        assert_eq!(Cost(96).to_string(), "1.50");
        assert_eq!(Cost(1).to_string(), "0.02");
        assert_eq!(Cost::MAX.to_string(), "1023.98");
    }
}
