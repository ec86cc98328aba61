//! MTU arithmetic: what the radio carries decides what the TAP may.
//!
//! A frame from the TAP travels whole behind our header: 14 bytes of inner Ethernet header, up to 4 of
//! an inner VLAN tag and 22 of ours. The radio's own Ethernet header is not part of its MTU.

use crate::messages::data::{self, OVERHEAD};
pub use crate::messages::data::{TAP_MTU_MAX, TAP_MTU_MIN};

/// Every IPv6 link carries this much (RFC 8200 §5); below it Linux turns IPv6 off.
pub const TAP_MTU_MIN_IPV6: usize = 1280;

/// Radio and TAP MTU do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MtuError {
    /// The TAP would produce frames the radio cannot carry.
    #[error(
        "a TAP MTU of {tap} needs a radio MTU of at least {} and the radio has {radio}; \
         use --mtu {} or less, or raise the MTU of the radio",
        tap + OVERHEAD, radio.saturating_sub(OVERHEAD)
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
        radio.saturating_sub(OVERHEAD), least + OVERHEAD
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
    /// This MTU, whatever the radio's; `None` follows the radio.
    pub fixed: Option<usize>,
    /// The TAP has an IPv6 address.
    pub ipv6: bool,
}

impl TapMtu {
    /// The MTU of the TAP over a radio with this one.
    pub fn over(self, radio: usize) -> Result<usize, MtuError> {
        let least = if self.ipv6 { TAP_MTU_MIN_IPV6 } else { TAP_MTU_MIN };
        let largest = data::tap_mtu(radio).unwrap_or(0);
        match self.fixed {
            Some(tap) if tap < least => Err(MtuError::TapTooSmall { tap, least }),
            Some(tap) if tap > largest => Err(MtuError::TapTooLarge { tap, radio }),
            Some(tap) => Ok(tap),
            None if largest < least => Err(MtuError::RadioTooSmall { radio, least }),
            None => Ok(largest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLLOW: TapMtu = TapMtu { fixed: None, ipv6: false };

    #[test]
    fn follows_the_radio_unless_fixed() {
        assert_eq!(FOLLOW.over(1500), Ok(1460));
        assert_eq!(FOLLOW.over(108), Ok(68));
        assert_eq!(TapMtu { fixed: Some(1400), ..FOLLOW }.over(1500), Ok(1400));
        assert_eq!(TapMtu { fixed: Some(1500), ..FOLLOW }.over(1540), Ok(1500));
    }

    #[test]
    fn an_impossible_pair_is_refused_with_both_numbers() {
        let error = TapMtu { fixed: Some(1500), ..FOLLOW }.over(1500).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("TAP MTU of 1500") && text.contains("at least 1540"), "{text}");
        assert!(text.contains("radio has 1500") && text.contains("--mtu 1460"), "{text}");
        let error = FOLLOW.over(100).unwrap_err().to_string();
        assert!(error.contains("radio MTU of 100 leaves 60") && error.contains("68"), "{error}");
    }

    #[test]
    fn ipv6_needs_more() {
        let ipv6 = TapMtu { ipv6: true, ..FOLLOW };
        assert_eq!(ipv6.over(1320), Ok(1280));
        assert!(ipv6.over(1319).is_err());
        let error = TapMtu { fixed: Some(1000), ipv6: true }.over(1500).unwrap_err().to_string();
        assert!(error.contains("1000") && error.contains("1280"), "{error}");
    }
}
