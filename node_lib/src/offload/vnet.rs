//! The header in front of each frame on a TAP with `IFF_VNET_HDR`: what is left to do to the frame.
//!
//! `struct virtio_net_hdr` (virtio 1.2 §5.1.6) without `num_buffers`. On a TUN/TAP descriptor the
//! two-byte fields are in the byte order of the machine unless `TUNSETVNETLE` or `TUNSETVNETBE` was
//! called, which nobody here does.
//!
//! | offset | bytes | field         | meaning                                                        |
//! |-------:|------:|---------------|----------------------------------------------------------------|
//! |      0 |     1 | `flags`       | 1: the checksum at `csum_start` + `csum_offset` is unfinished; 2: checksums were verified; the rest is ignored and sent as 0 |
//! |      1 |     1 | `gso_type`    | 0 none, 1 TCP over IPv4, 4 TCP over IPv6, 5 UDP; + 0x80: CWR belongs to the first segment only |
//! |      2 |     2 | `hdr_len`     | bytes of headers; a hint                                        |
//! |      4 |     2 | `gso_size`    | bytes of payload in each segment but the last                   |
//! |      6 |     2 | `csum_start`  | where checksumming starts, in bytes from the Ethernet header    |
//! |      8 |     2 | `csum_offset` | where the checksum goes, in bytes from `csum_start`             |

use super::gso::Gso;
use super::malformed::Malformed;

/// Bytes it takes.
pub const LEN: usize = 10;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const ECN: u8 = 0x80;

/// One vnet header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// The field at `csum_start` + `csum_offset` holds only the sum of the pseudo header.
    pub needs_csum: bool,
    /// Whoever wrote the frame has verified its checksums.
    pub data_valid: bool,
    /// What the frame is to be split into.
    pub gso: Gso,
    /// The CWR flag of TCP belongs to the first segment only.
    pub ecn: bool,
    /// Bytes of all headers. A hint, not to be relied on.
    pub hdr_len: u16,
    /// Bytes of payload in each segment but the last.
    pub gso_size: u16,
    /// Where checksumming starts.
    pub csum_start: u16,
    /// Where the checksum goes, from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Reads a header. The only thing it cannot have is a kind of segmentation we never asked for.
    pub fn parse(bytes: [u8; LEN]) -> Result<Self, Malformed> {
        let [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1] = bytes;
        let gso = match gso_type & !ECN {
            0 => Gso::None,
            1 => Gso::TcpV4,
            4 => Gso::TcpV6,
            5 => Gso::Udp,
            _ => return Err(Malformed::GsoType(gso_type)),
        };
        Ok(Self {
            needs_csum: flags & NEEDS_CSUM != 0,
            data_valid: flags & DATA_VALID != 0,
            gso,
            ecn: gso_type & ECN != 0,
            hdr_len: u16::from_ne_bytes([h0, h1]),
            gso_size: u16::from_ne_bytes([g0, g1]),
            csum_start: u16::from_ne_bytes([s0, s1]),
            csum_offset: u16::from_ne_bytes([o0, o1]),
        })
    }

    /// The header as it goes in front of a frame.
    pub fn emit(&self) -> [u8; LEN] {
        let flags = if self.needs_csum { NEEDS_CSUM } else { 0 }
            | if self.data_valid { DATA_VALID } else { 0 };
        let gso_type = self.gso as u8 | if self.ecn { ECN } else { 0 };
        let [h0, h1] = self.hdr_len.to_ne_bytes();
        let [g0, g1] = self.gso_size.to_ne_bytes();
        let [s0, s1] = self.csum_start.to_ne_bytes();
        let [o0, o1] = self.csum_offset.to_ne_bytes();
        [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote() {
        for gso in [Gso::None, Gso::TcpV4, Gso::TcpV6, Gso::Udp] {
            for (needs_csum, data_valid, ecn) in
                [(false, false, false), (true, false, true), (false, true, false)]
            {
                let header = VnetHeader {
                    needs_csum,
                    data_valid,
                    gso,
                    ecn,
                    hdr_len: 54,
                    gso_size: 1460,
                    csum_start: 34,
                    csum_offset: 16,
                };
                assert_eq!(VnetHeader::parse(header.emit()), Ok(header));
            }
        }
    }

    #[test]
    fn numbers_are_in_the_order_of_the_machine() {
        let header = VnetHeader { gso: Gso::TcpV6, ecn: true, gso_size: 0x0102, ..<_>::default() };
        let [g0, g1] = 0x0102_u16.to_ne_bytes();
        assert_eq!(header.emit(), [0, 0x84, 0, 0, g0, g1, 0, 0, 0, 0]);
    }

    #[test]
    fn refuses_a_segmentation_nobody_asked_for() {
        for kind in [2, 3, 6, 0x83] {
            let bytes = [0, kind, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(VnetHeader::parse(bytes), Err(Malformed::GsoType(kind)));
        }
    }

    #[test]
    fn flags_it_does_not_know_change_nothing() {
        let known = VnetHeader::parse([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(VnetHeader::parse([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0]), known);
    }
}
