//! The nodes for programs in C and C++, as ns-3 or OMNeT++ would link them: `libv2x.so`, `v2x.h`.
//!
//! ```sh
//! cargo build --release -p v2x_capi      # target/release/libv2x.so, libv2x.a
//! cc examples/two_nodes.c -Icapi/include -Ltarget/release -lv2x -o two_nodes
//! ```
//!
//! It is the seam of [`node_lib::control::node::Node`] and no more: frames, time and link events
//! in, frames out. Names of types are those of the header. `include/v2x.h` is made by cbindgen from
//! this file; a test holds the two together, and another compiles and runs `examples/two_nodes.c`.
//!
//! Nothing here panics across the border: a null pointer or a value that cannot be is refused with
//! an error. A node is not to be used from two threads at once; different nodes may be.

#![allow(non_camel_case_types, reason = "names of C")]

mod ffi;

use std::time::Duration;

use node_lib::control::node::{Interface, LinkEvent, Node, Replies};
use node_lib::{Boot, Mac, Start, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;

pub use ffi::*;

/// What a node is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum v2x_role {
    /// In a vehicle.
    Obu = 0,
    /// At the road side.
    Rsu = 1,
}

/// Which of a node's two interfaces.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum v2x_interface {
    /// The one other nodes hear.
    Radio = 0,
    /// The one clients are behind.
    Tap = 1,
}

/// Something happened to an interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum v2x_link_event {
    /// The radio can send and receive (again).
    RadioUp = 0,
    /// The radio cannot.
    RadioDown = 1,
    /// What is written to the TAP arrives (again).
    TapUp = 2,
    /// What is written to the TAP is lost.
    TapDown = 3,
}

/// What a call came to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum v2x_error {
    /// It worked.
    Ok = 0,
    /// There is nothing of what was asked for.
    Nothing = 1,
    /// A pointer is null that may not be.
    Null = 2,
    /// A value is none of those that are allowed, or time went back.
    Value = 3,
}

/// What one start of a node finds. All zero but `mac` is the first start of a node with that radio.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct v2x_start {
    /// MAC of the radio; also the node's id.
    pub mac: [u8; 6],
    /// MAC of the node's own TAP; all zero: it has none.
    pub tap_mac: [u8; 6],
    /// Largest Ethernet payload the radio carries, in bytes, at least 576; 0: 1500.
    pub mtu: u32,
    /// Boot count, higher than that of any start before; 0: 1.
    pub boot: u32,
    /// Seed of everything random in the node, unlike that of any other; 0: made from `mac`.
    pub seed: u64,
}

/// A frame the node wants sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct v2x_frame {
    /// Through which interface.
    pub interface: v2x_interface,
    /// The whole Ethernet frame, until the next call with this node.
    pub bytes: *const u8,
    /// Bytes of it.
    pub len: usize,
}

/// Which RSU an OBU uses, and through whom.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct v2x_attachment {
    /// The RSU.
    pub rsu: [u8; 6],
    /// The neighbour frames go to.
    pub upstream: [u8; 6],
    /// Radio hops to the RSU.
    pub hops: u8,
}

/// An OBU or an RSU.
#[derive(Debug)]
pub struct v2x_node {
    role: Roles,
    now: Timestamp,
    out: Replies,
    /// How many of `out` were taken.
    taken: usize,
}

#[derive(Debug)]
enum Roles {
    Obu(Box<Obu>),
    Rsu(Box<Rsu>),
}

/// The smallest MTU: what IPv4 hosts take at least (RFC 791 §3.1).
const MTU_MIN: u32 = 576;

impl v2x_node {
    fn new(role: u32, start: &v2x_start, now: Timestamp) -> Result<Self, v2x_error> {
        let mac = Mac(start.mac);
        let tap_mac = Some(Mac(start.tap_mac)).filter(|mac| *mac != Mac::ZERO);
        let is_wrong = |mac: Mac| !mac.is_unicast();
        if is_wrong(mac) || tap_mac.is_some_and(is_wrong) || (1..MTU_MIN).contains(&start.mtu) {
            return Err(v2x_error::Value);
        }
        let mut found = Start::new(mac);
        found.tap_mac = tap_mac;
        if let Ok(mtu @ 1..) = usize::try_from(start.mtu) {
            found.radio_mtu = mtu;
        }
        found.boot = Boot(start.boot.max(1));
        if start.seed != 0 {
            found.seed = start.seed;
        }
        let role = match role {
            0 => Roles::Obu(Box::new(Obu::new(obu_lib::Settings::default().config(&found), now))),
            1 => Roles::Rsu(Box::new(Rsu::new(rsu_lib::Settings::default().config(&found), now))),
            _ => return Err(v2x_error::Value),
        };
        Ok(Self { role, now, out: Replies::new(), taken: 0 })
    }

    fn node(&self) -> &dyn Node {
        match &self.role {
            Roles::Obu(obu) => &**obu,
            Roles::Rsu(rsu) => &**rsu,
        }
    }

    /// Calls the node, unless time went back. What was not taken of what it wanted sent stays.
    fn drive(
        &mut self,
        now_us: u64,
        call: impl FnOnce(&mut dyn Node, Timestamp, &mut Replies),
    ) -> v2x_error {
        let now = Timestamp::from_micros(now_us);
        if now < self.now {
            return v2x_error::Value;
        }
        self.now = now;
        if self.taken == self.out.as_slice().len() {
            self.out.recycle();
            self.taken = 0;
        }
        let node: &mut dyn Node = match &mut self.role {
            Roles::Obu(obu) => &mut **obu,
            Roles::Rsu(rsu) => &mut **rsu,
        };
        call(node, now, &mut self.out);
        // Nobody asks for them here, and they take room.
        while node.poll_event().is_some() {}
        v2x_error::Ok
    }

    fn handle(&mut self, now_us: u64, interface: u32, frame: &[u8]) -> v2x_error {
        match interface {
            0 => self.drive(now_us, |node, now, out| node.handle_wire(now, frame, out)),
            1 => self.drive(now_us, |node, now, out| node.handle_tap(now, frame, out)),
            _ => v2x_error::Value,
        }
    }

    fn link(&mut self, now_us: u64, event: u32) -> v2x_error {
        let event = match event {
            0 => LinkEvent::Up,
            1 => LinkEvent::Down,
            2 => LinkEvent::LanUp,
            3 => LinkEvent::LanDown,
            _ => return v2x_error::Value,
        };
        self.drive(now_us, |node, now, out| node.handle_link(now, event, out))
    }

    fn channel_busy(&mut self, now_us: u64, percent: u32) -> v2x_error {
        let Some(percent) = u8::try_from(percent).ok().filter(|percent| *percent <= 100) else {
            return v2x_error::Value;
        };
        let event = LinkEvent::ChannelBusy(percent);
        self.drive(now_us, |node, now, out| node.handle_link(now, event, out))
    }

    fn shutdown(&mut self, now_us: u64) -> v2x_error {
        self.drive(now_us, |node, now, out| node.handle_shutdown(now, out))
    }

    fn linger(&self) -> Duration {
        self.node().linger()
    }

    /// The next frame to be sent; flat, as the nodes make no others.
    fn take_frame(&mut self) -> Option<(v2x_interface, &[u8])> {
        self.out.flatten();
        let reply = self.out.as_slice().get(self.taken)?;
        self.taken += 1;
        let interface = match reply.interface() {
            Interface::Radio => v2x_interface::Radio,
            Interface::Tap => v2x_interface::Tap,
        };
        match reply.frame() {
            std::borrow::Cow::Borrowed(bytes) => Some((interface, bytes)),
            std::borrow::Cow::Owned(_) => None,
        }
    }

    fn attachment(&self) -> Option<v2x_attachment> {
        let Roles::Obu(obu) = &self.role else { return None };
        let at = obu.attachment()?;
        Some(v2x_attachment { rsu: at.rsu.0, upstream: at.upstream.0, hops: at.hops })
    }
}
