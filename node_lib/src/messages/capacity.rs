//! How long a packet a radio carries, and what radio a TAP needs.

use super::data::{HEADER_LEN, HEADER_LEN_MAX, WAY_KEPT};
use super::ethernet::TAG_LEN;
use super::{ETHERNET_HEADER_LEN, Kind, ParseError, fragment};

/// What the inner frame costs of the radio's MTU beside the IP packet in it: our header, room for a
/// way, its Ethernet header and one VLAN tag. The outer Ethernet header is not in the MTU.
pub const OVERHEAD: usize = HEADER_LEN + WAY_KEPT + INNER_OVERHEAD;

/// The same for the longest way.
const OVERHEAD_MAX: usize = HEADER_LEN_MAX + INNER_OVERHEAD;

/// What a packet is longer as a client's frame, at most.
pub const INNER_OVERHEAD: usize = ETHERNET_HEADER_LEN + TAG_LEN;

/// The smallest MTU IPv4 works with (RFC 791 §3.2). IPv6 needs 1280 (RFC 8200 §5), but a node that
/// carries only IPv4 is none the worse for a smaller one.
pub const TAP_MTU_MIN: usize = 68;

/// The largest: header and frame fit the length field.
pub const TAP_MTU_MAX: usize = u16::MAX as usize - OVERHEAD_MAX;

/// The smallest MTU of a radio: it carries the smallest IPv4 packet in one frame, and every control
/// message that cannot be split.
pub const RADIO_MTU_MIN: usize = TAP_MTU_MIN + OVERHEAD;

/// The longest IP packet that fits a radio with this MTU in one frame, tagged or not, on ways of up
/// to eight hops. On a longer way it takes two fragments.
#[inline]
pub const fn packet_max(radio_mtu: usize) -> usize {
    radio_mtu.saturating_sub(OVERHEAD)
}

/// The longest IP packet that a radio with this MTU carries in as many [fragments](super::fragment)
/// as there may be, tagged or not, on ways of any length. Here nothing carries what does not fit,
/// so the longest way counts.
#[inline]
pub const fn packet_max_in_fragments(radio_mtu: usize) -> usize {
    fragment::message_max(radio_mtu).saturating_sub(OVERHEAD_MAX)
}

/// The largest MTU of a TAP on a radio with this MTU: every frame of the TAP, tagged or not, gets
/// through in as many [fragments](super::fragment) as there may be. `None` below [`RADIO_MTU_MIN`].
pub const fn tap_mtu_max(radio_mtu: usize) -> Option<usize> {
    if radio_mtu < RADIO_MTU_MIN {
        return None;
    }
    Some(packet_max_in_fragments(radio_mtu))
}

/// The smallest MTU of a radio that carries the frames of a TAP with this MTU.
pub const fn radio_mtu_for(tap_mtu: usize) -> usize {
    let each =
        (tap_mtu + OVERHEAD_MAX).div_ceil(fragment::COUNT_MAX as usize) + fragment::HEADER_LEN;
    if each > RADIO_MTU_MIN { each } else { RADIO_MTU_MIN }
}

impl Kind {
    /// The MTU of a radio, in bytes, at least [`RADIO_MTU_MIN`].
    #[inline]
    pub(super) fn mtu(self, bytes: [u8; 2]) -> Result<u16, ParseError> {
        match u16::from_be_bytes(bytes) {
            mtu if usize::from(mtu) >= RADIO_MTU_MIN => Ok(mtu),
            have => Err(self.value("mtu", "at least 120", have.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tagged_frame_of_the_tap_gets_through_the_radio() {
        // 22 header, 12 for the labels of eight hops, 14 inner Ethernet, 4 VLAN tag.
        assert_eq!((OVERHEAD, packet_max(1500), packet_max(30)), (52, 1448, 0));
        // What the longest way takes of eight fragments: 50 header, 14, 4.
        assert_eq!(tap_mtu_max(1500), Some(8 * (1500 - 12) - 68));
        assert_eq!(tap_mtu_max(120), Some(8 * (120 - 12) - 68));
        assert_eq!(tap_mtu_max(119), None);
        assert_eq!(tap_mtu_max(65_536), Some(TAP_MTU_MAX));
        assert_eq!((radio_mtu_for(68), radio_mtu_for(1500)), (120, 208));
        for tap in (68..10_000).step_by(7) {
            let radio = radio_mtu_for(tap);
            assert!(tap_mtu_max(radio) >= Some(tap), "{tap}");
            assert!(radio == RADIO_MTU_MIN || tap_mtu_max(radio - 1) < Some(tap), "{tap}");
        }
    }
}
