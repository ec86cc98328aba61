//! A monitor interface: what arrives at a radio, with a radiotap header that says how strong.
//!
//! It is a TUN device whose link type is set to that of 802.11 with radiotap (803) before it comes
//! up. So whoever reads it cannot tell it from one of mac80211, but for the frames themselves. Each
//! is a data frame of 802.11 in OCB mode with the sender's address and the beginning of what it
//! carries.

use std::fs::File;
use std::io::{self, Write};

use crate::arena::sys;

/// How much of an Ethernet frame is passed on: its headers.
const CARRIED_MAX: usize = 64;
/// Addresses of an Ethernet frame: receiver, then sender.
const ADDRESSES: usize = 12;
/// In front of a frame written to a TUN device: no flags, and the protocol mac80211 gives monitor
/// frames (`ETH_P_802_2`).
const TUN_HEADER: [u8; 4] = [0, 0, 0, 4];
/// Version 0, nine bytes long, with nothing but the antenna signal, which follows.
const RADIOTAP: [u8; 8] = [0, 0, 9, 0, 0x20, 0, 0, 0];
/// A data frame, neither to nor from an access point, and its duration.
const DATA: [u8; 4] = [0x08, 0, 0, 0];
/// The network of radios that belong to none.
const WILDCARD: [u8; 6] = [0xff; 6];
/// Sequence control; then LLC and SNAP in front of the EtherType (RFC 1042).
const REST: [u8; 8] = [0, 0, 0xaa, 0xaa, 3, 0, 0, 0];

/// The device of one radio.
#[derive(Debug)]
pub(super) struct MonitorDevice(File);

impl MonitorDevice {
    /// Creates the interface, down, under a name the kernel chooses.
    pub(super) fn create() -> io::Result<(Self, String)> {
        sys::open_monitor().map(|(file, name)| (Self(file), name))
    }

    /// A frame has arrived at the radio. A monitor that is down or gone misses it.
    pub(super) fn hear(&mut self, frame: &[u8], dbm: i8) {
        let _ = self.0.write(&packet(frame, dbm));
    }
}

/// What is written for one Ethernet frame.
fn packet(frame: &[u8], dbm: i8) -> Vec<u8> {
    let frame = frame.get(..CARRIED_MAX).unwrap_or(frame);
    let (addresses, rest) = frame.split_at_checked(ADDRESSES).unwrap_or((frame, &[]));
    let dbm = [dbm.cast_unsigned()];
    [&TUN_HEADER[..], &RADIOTAP, &dbm, &DATA, addresses, &WILDCARD, &REST, rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_lib::Mac;
    use node_lib::device::signal::{Sample, radiotap};

    #[test]
    fn what_is_written_reads_as_radiotap_with_the_sender_of_the_frame() {
        let from = Mac([2, 0x0b, 0, 0, 1, 7]);
        let frame = [&[0xff; 6][..], &from.0, &[0x88, 0xb5], &[1; 900]].concat();
        let packet = packet(&frame, -67);
        let (tun, told) = packet.split_at(4);
        assert_eq!(tun, TUN_HEADER);
        assert!(told.len() < 100, "{}", told.len());
        assert_eq!(
            radiotap::read(told),
            Ok(radiotap::FrameSignal::Sample(Sample { from, dbm: -67 }))
        );
    }
}
