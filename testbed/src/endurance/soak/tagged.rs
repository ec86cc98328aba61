//! A VLAN over a TAP, by a thread of ours: as an interface of type `vlan` does it, for kernels that
//! have no such interfaces.
//!
//! Hosts use a TAP of ours. What they send there gets its tag and goes out of the interface below;
//! what comes in there with the tag loses it and goes up. Both sides have segmentation offload, so
//! that tagged frames longer than the MTU meet the data path too, and are cut and joined by it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use node_lib::messages::ethernet::{C_TAG, Tag};

use crate::arena::netns::Netns;
use crate::arena::sys::{
    ADDRESSES_LEN, OFFLOAD_HEADER_LEN, PromiscuousSocket, TAG_LEN, open_offload_tap,
};

/// A VLAN interface. It goes with this value.
#[derive(Debug)]
pub(super) struct Tagged {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A super-frame with everything around it.
const BUFFER_LEN: usize = OFFLOAD_HEADER_LEN + TAG_LEN + 14 + 65_536;
/// Frames of one side before the other has its turn.
const BURST: usize = 64;
const LOOK_EVERY: u16 = 50;

impl Tagged {
    /// Creates `name` for VLAN `id` over the interface `below`, up, with the same address and MTU.
    pub(super) fn start(ns: &Netns, name: &str, below: &str, id: u16) -> Result<Self> {
        let under = ns.state(below)?;
        let (upper, lower) = ns
            .run(|| {
                Ok((
                    open_offload_tap(name)?,
                    PromiscuousSocket::open(below)?.with_offload_header()?,
                ))
            })
            .context("a VLAN")?;
        ns.set_mac(name, under.mac)?;
        ns.set_mtu(name, under.mtu)?;
        ns.set_up(name)?;
        let is_over = Arc::<AtomicBool>::default();
        let stop = Arc::clone(&is_over);
        let thread = Some(std::thread::spawn(move || carry(&upper, &lower, id, &stop)));
        Ok(Self { is_over, thread })
    }
}

impl Drop for Tagged {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a side refuses is lost, as on any cable.
fn carry(upper: &File, lower: &PromiscuousSocket, id: u16, is_over: &AtomicBool) {
    let mut buffer = vec![0; BUFFER_LEN];
    let tag = [C_TAG, id].map(u16::to_be_bytes).concat();
    while !is_over.load(Ordering::Relaxed) {
        let watched = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut polled = [watched(upper.as_fd()), watched(lower.as_fd())];
        let _ = poll(&mut polled, PollTimeout::from(LOOK_EVERY));
        for _ in 0..BURST {
            let room = buffer.get_mut(TAG_LEN..).unwrap_or_default();
            let Ok(len) = (&*upper).read(room) else { break };
            if let Some(frame) = buffer.get_mut(..TAG_LEN + len).and_then(|all| insert(all, &tag)) {
                let _ = lower.send(frame);
            }
        }
        for _ in 0..BURST {
            let Ok(Some((len, have))) = lower.recv_apart(&mut buffer) else { break };
            if have.is_some_and(|have| is_of(have, id)) {
                let _ = (&*upper).write(buffer.get(..len).unwrap_or_default());
            }
        }
    }
}

/// Whether a tag is of this VLAN, in whatever priority.
fn is_of([p0, p1, c0, c1]: [u8; TAG_LEN], id: u16) -> bool {
    u16::from_be_bytes([p0, p1]) == C_TAG && Tag(u16::from_be_bytes([c0, c1])).vlan() == id
}

/// Puts the tag into a frame that stands, with its offload header, four bytes after the beginning.
fn insert<'a>(all: &'a mut [u8], tag: &[u8]) -> Option<&'a [u8]> {
    const FRONT: usize = OFFLOAD_HEADER_LEN + ADDRESSES_LEN;
    all.get(..TAG_LEN + FRONT)?;
    all.copy_within(TAG_LEN..TAG_LEN + FRONT, 0);
    all.get_mut(FRONT..FRONT + TAG_LEN)?.copy_from_slice(tag);
    // struct virtio_net_hdr: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
    const NEEDS_CHECKSUM: u8 = 1;
    let [flags, _, h0, h1, _, _, c0, c1, ..] = all else { return None };
    if *flags & NEEDS_CHECKSUM != 0 {
        for field in [[h0, h1], [c0, c1]] {
            let [low, high] = field;
            let moved = u16::from_ne_bytes([*low, *high]).wrapping_add(TAG_LEN as u16);
            [*low, *high] = moved.to_ne_bytes();
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_moves_the_checksum_and_nothing_else() {
        let header = |hdr_len: u16, csum_start: u16| {
            let mut header = vec![1, 1];
            for field in [hdr_len, 1448, csum_start, 16] {
                header.extend(field.to_ne_bytes());
            }
            header
        };
        let (addresses, rest) = ([7; 12], [8, 0, 1, 2, 3]);
        let mut all = [&[0; 4][..], &header(66, 34), &addresses, &rest].concat();
        let tagged = [&header(70, 38)[..], &addresses, &[0x81, 0, 0, 7], &rest].concat();
        assert_eq!(insert(&mut all, &[0x81, 0, 0, 7]), Some(&tagged[..]));
        assert_eq!(insert(&mut [0; 25], &[0x81, 0, 0, 7]), None);
    }

    #[test]
    fn priority_is_not_part_of_the_vlan() {
        assert!(is_of([0x81, 0, 0xe0, 7], 7));
        assert!(!is_of([0x81, 0, 0, 8], 7) && !is_of([0x88, 0xa8, 0, 7], 7));
    }
}
