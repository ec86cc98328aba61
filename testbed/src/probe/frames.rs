//! Numbered raw Ethernet frames, with or without a VLAN tag.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use node_lib::Mac;
use node_lib::messages::ethernet::{Carried, Header, Tag, carried, carried_by};

use crate::arena::netns::Netns;
use crate::arena::sys::PromiscuousSocket;

/// EtherType of our frames: "local experimental 2" (IEEE 802), the nodes use the first.
pub const PROBE_ETHERTYPE: u16 = 0x88b6;
/// Frames a receiver keeps.
const KEPT_MAX: usize = 100_000;
pub(super) const FRAME_MAX: usize = 65_535 + 18;
const LOOK_EVERY: u16 = 20;

/// A frame as it is sent and as it was received.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberedFrame {
    /// Destination address.
    pub to: Mac,
    /// Source address.
    pub from: Mac,
    /// VLAN tag: priority and VLAN id as they stand in the tag.
    pub vlan: Option<u16>,
    /// Number.
    pub number: u32,
    /// Bytes after the EtherType: at least 4, at most the MTU. Ethernet pads short frames to 46
    /// bytes on real wires; veth and TAP do not.
    pub payload_len: usize,
}

impl NumberedFrame {
    /// The frame in bytes. The payload is the number, then a pattern that depends on it.
    pub fn emit(&self) -> Vec<u8> {
        let mut frame = Vec::new();
        let header = Header { to: self.to, from: self.from, ethertype: PROBE_ETHERTYPE };
        header.emit_with(self.vlan.map(Tag), &mut frame);
        frame.extend(self.number.to_be_bytes());
        frame.extend((4..self.payload_len).map(|at| pattern(self.number, at)));
        frame
    }

    /// Whether this is one of our frames, harmed or not. Tags are looked past.
    pub fn is_one(frame: &[u8]) -> bool {
        carried_by(frame).is_some_and(|carried| carried.ethertype == PROBE_ETHERTYPE)
    }

    /// Reads one of our frames; `None` for any other, and for one whose payload is not as sent.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (Header { to, from, ethertype }, rest) = Header::read(frame)?;
        let Carried { tag, ethertype, payload } = carried(ethertype, rest)?;
        if ethertype != PROBE_ETHERTYPE {
            return None;
        }
        let number = u32::from_be_bytes(*payload.first_chunk::<4>()?);
        let is_as_sent =
            payload.iter().enumerate().skip(4).all(|(at, byte)| *byte == pattern(number, at));
        let (vlan, payload_len) = (tag.map(|tag| tag.0), payload.len());
        is_as_sent.then_some(Self { to, from, vlan, number, payload_len })
    }
}

fn pattern(number: u32, at: usize) -> u8 {
    (number as usize).wrapping_mul(31).wrapping_add(at) as u8
}

/// Sends frames out of an interface, one every `interval`.
pub fn send_frames(
    ns: &Netns,
    interface: &str,
    frames: &[NumberedFrame],
    interval: Duration,
) -> Result<()> {
    let socket = open(ns, interface)?;
    for frame in frames {
        socket.send(&frame.emit()).with_context(|| {
            format!("send {} bytes payload on {}:{interface}", frame.payload_len, ns.name())
        })?;
        std::thread::sleep(interval);
    }
    Ok(())
}

/// Sends these bytes as they are out of an interface, one frame every `interval`.
pub fn send_raw<'a>(
    ns: &Netns,
    interface: &str,
    frames: impl IntoIterator<Item = &'a [u8]>,
    interval: Duration,
) -> Result<()> {
    let socket = open(ns, interface)?;
    for frame in frames {
        let sent = socket.send(frame);
        sent.with_context(|| format!("send {} bytes on {}", frame.len(), ns.name()))?;
        std::thread::sleep(interval);
    }
    Ok(())
}

/// Collects our frames that arrive at an interface; not those this interface itself sends.
#[derive(Debug)]
pub struct FrameReceiver {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<NumberedFrame>>,
}

impl FrameReceiver {
    /// Starts collecting.
    pub fn start(ns: &Netns, interface: &str) -> Result<Self> {
        let socket = open(ns, interface)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || collect(&socket, &stopped));
        Ok(Self { stop, thread })
    }

    /// What arrived, in order.
    pub fn stop(self) -> Result<Vec<NumberedFrame>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the frame receiver died"))
    }
}

fn open(ns: &Netns, interface: &str) -> Result<PromiscuousSocket> {
    ns.run(|| PromiscuousSocket::open(interface).with_context(|| interface.to_owned()))
}

fn collect(socket: &PromiscuousSocket, stop: &AtomicBool) -> Vec<NumberedFrame> {
    let mut kept = Vec::new();
    let mut buf = vec![0; FRAME_MAX];
    loop {
        // Looked at before reading: what arrived until then is read.
        let is_last_round = stop.load(Ordering::Relaxed);
        while let Ok(Some(frame)) = socket.recv(&mut buf) {
            if kept.len() < KEPT_MAX {
                kept.extend(NumberedFrame::parse(frame));
            }
        }
        if is_last_round {
            return kept;
        }
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut polled, PollTimeout::from(LOOK_EVERY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_undoes_emit_with_and_without_a_tag() {
        for vlan in [None, Some(0x6005)] {
            let frame = NumberedFrame {
                to: Mac::BROADCAST,
                from: Mac([2, 0, 0, 0, 0, 1]),
                vlan,
                number: 77,
                payload_len: 1460,
            };
            assert_eq!(NumberedFrame::parse(&frame.emit()), Some(frame));
        }
    }

    #[test]
    fn a_harmed_payload_is_not_ours() {
        let (to, from) = (Mac::BROADCAST, Mac([2; 6]));
        let mut bytes = NumberedFrame { to, from, vlan: None, number: 1, payload_len: 60 }.emit();
        bytes[40] ^= 1;
        assert_eq!(NumberedFrame::parse(&bytes), None);
        assert!(NumberedFrame::is_one(&bytes));
        bytes[12] ^= 1;
        assert!(!NumberedFrame::is_one(&bytes));
    }
}
