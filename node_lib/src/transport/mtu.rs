//! MTU arithmetic: the TAP is an Ethernet interface like others, over whatever the radio carries.
//!
//! A frame from the TAP travels behind our header: 14 bytes of inner Ethernet header, up to 4 of an
//! inner VLAN tag and 22 of ours. The radio's own Ethernet header is not part of its MTU. What does
//! not fit goes in [fragments](crate::messages::fragment), so the MTU of the TAP is that of the
//! hosts beside it, and bridges pass their frames on.

use crate::messages::capacity;
pub use crate::messages::capacity::{TAP_MTU_MAX, TAP_MTU_MIN};

/// The MTU of Ethernet (RFC 894), and so of every host that was told nothing else.
pub const TAP_MTU_DEFAULT: usize = 1500;

/// Every IPv6 link carries this much (RFC 8200 §5); below it Linux turns IPv6 off.
pub const TAP_MTU_MIN_IPV6: usize = 1280;

/// Radio and TAP MTU do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MtuError {
    /// The TAP would produce frames the radio cannot carry.
    #[error(
        "a TAP MTU of {tap} needs a radio MTU of at least {} and the radio has {radio}; \
         use --mtu {} or less, or raise the MTU of the radio",
        capacity::radio_mtu_for(*tap), capacity::tap_mtu_max(*radio).unwrap_or(0)
    )]
    TapTooLarge {
        /// MTU of the TAP.
        tap: usize,
        /// MTU of the radio.
        radio: usize,
    },
    /// What is left for the TAP is not enough for the addresses it has.
    #[error(
        "a radio MTU of {radio} leaves {} for the TAP, and it needs at least {least}; \
         raise the MTU of the radio to {} or more",
        capacity::tap_mtu_max(*radio).unwrap_or(0), capacity::radio_mtu_for(*least)
    )]
    RadioTooSmall {
        /// MTU of the radio.
        radio: usize,
        /// Least MTU of the TAP.
        least: usize,
    },
    /// The TAP MTU asked for is not enough for the addresses it has.
    #[error(
        "a TAP MTU of {tap} is too small; it needs at least {least} (68 for IPv4, 1280 for IPv6)"
    )]
    TapTooSmall {
        /// MTU of the TAP.
        tap: usize,
        /// Least MTU of the TAP.
        least: usize,
    },
}

/// What the operator decides about the TAP's MTU.
#[derive(Clone, Copy, Debug, Default)]
pub struct TapMtu {
    /// This MTU; `None`: [`TAP_MTU_DEFAULT`], or what the radio carries if that is less.
    pub fixed: Option<usize>,
    /// The TAP has an IPv6 address.
    pub ipv6: bool,
}

impl TapMtu {
    /// The MTU of the TAP over a radio with this one.
    pub fn over(self, radio: usize) -> Result<usize, MtuError> {
        let least = if self.ipv6 { TAP_MTU_MIN_IPV6 } else { TAP_MTU_MIN };
        let largest = capacity::tap_mtu_max(radio).unwrap_or(0);
        match self.fixed {
            Some(tap) if tap < least => Err(MtuError::TapTooSmall { tap, least }),
            Some(tap) if tap > largest => Err(MtuError::TapTooLarge { tap, radio }),
            Some(tap) => Ok(tap),
            None if largest < least => Err(MtuError::RadioTooSmall { radio, least }),
            None => Ok(largest.min(TAP_MTU_DEFAULT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: TapMtu = TapMtu { fixed: None, ipv6: false };

    #[test]
    fn is_that_of_ethernet_unless_fixed_or_the_radio_is_tiny() {
        for radio in [208, 1458, 1500, 1540, 9000] {
            assert_eq!(DEFAULT.over(radio), Ok(1500), "{radio}");
        }
        assert_eq!(DEFAULT.over(207), Ok(8 * (207 - 12) - 68));
        assert_eq!(TapMtu { fixed: Some(1400), ..DEFAULT }.over(1500), Ok(1400));
        assert_eq!(TapMtu { fixed: Some(9000), ..DEFAULT }.over(1500), Ok(9000));
    }

    #[test]
    fn an_impossible_pair_is_refused_with_both_numbers() {
        let error = TapMtu { fixed: Some(12_000), ..DEFAULT }.over(1500).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("TAP MTU of 12000") && text.contains("at least 1521"), "{text}");
        assert!(text.contains("radio has 1500") && text.contains("--mtu 11836"), "{text}");
        let error = DEFAULT.over(100).unwrap_err().to_string();
        assert!(error.contains("radio MTU of 100 leaves 0") && error.contains("68"), "{error}");
        assert!(error.contains("120 or more"), "{error}");
    }

    #[test]
    fn ipv6_needs_more() {
        let ipv6 = TapMtu { ipv6: true, ..DEFAULT };
        // 1284 = 8 × (181 − 12) − 68; a byte less of radio leaves 1276.
        assert_eq!(ipv6.over(181), Ok(1284));
        let error = ipv6.over(180).unwrap_err().to_string();
        assert!(error.contains("1280") && error.contains("181 or more"), "{error}");
        let error = TapMtu { fixed: Some(1000), ipv6: true }.over(1500).unwrap_err().to_string();
        assert!(error.contains("1000") && error.contains("1280"), "{error}");
    }
}
