//! State of an interface, and who reports and sets it: [`Links`].

use std::task::{Context, Poll};

use super::signal::{Sample, SignalCounters};
use crate::mac::Mac;
use crate::start::clients::Remembered;

/// What is known about an interface that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// The kernel's number for it; a re-created interface has another one.
    pub index: u32,
    /// Its address.
    pub mac: Mac,
    /// Largest Ethernet payload, in bytes.
    pub mtu: usize,
    /// Enabled by the administrator, and with carrier: a frame sent can arrive.
    pub up: bool,
}

/// A port of the bridge that the TAP is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgePort {
    /// The interface.
    pub name: String,
    /// Largest Ethernet payload, in bytes.
    pub mtu: usize,
}

/// Which of a node's two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards other nodes.
    Radio,
    /// Towards the host.
    Tap,
}

/// An interface is in a new state; `None` if it no longer exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// Which interface.
    pub side: Side,
    /// Its state, complete: changes may be merged, never misread.
    pub link: Option<LinkState>,
}

/// Reports and sets the state of a node's interfaces.
pub trait Links {
    /// The next change, if there is one. Never the same state twice in a row.
    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<LinkChange>;

    /// (Re-)applies the settings of the TAP in the background: up, addresses, and this MTU. A newer
    /// call replaces an older one that has not finished.
    fn configure_tap(&mut self, mtu: usize);

    /// The next measurement of how strong somebody's frames come in on the radio, if there is one.
    /// None where the radio does not tell.
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Sample> {
        let _ = cx;
        Poll::Pending
    }

    /// For how many per cent of the last second the radio's channel was busy, about once a second.
    /// Nothing where the radio does not tell.
    fn poll_channel_busy(&mut self, cx: &mut Context<'_>) -> Poll<u8> {
        let _ = cx;
        Poll::Pending
    }

    /// Who is behind the bridge that the TAP has come into, once for each time it does. Nothing
    /// where nobody can tell.
    fn poll_clients(&mut self, cx: &mut Context<'_>) -> Poll<Vec<Remembered>> {
        let _ = cx;
        Poll::Pending
    }

    /// The widest port of the TAP's bridge, if it takes longer frames than the TAP: the bridge
    /// drops those. None where nobody can tell.
    fn wider_port(&self) -> Option<&BridgePort> {
        None
    }

    /// EtherTypes other than ours in which nodes were heard on the radio in the last minute. None
    /// where nobody can tell.
    fn other_ethertypes(&self) -> Vec<u16> {
        Vec::new()
    }

    /// What was counted of these measurements.
    fn signal_counters(&self) -> SignalCounters {
        SignalCounters::default()
    }
}

/// Interfaces that never change: memory pairs in tests and benches.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticLinks;

impl Links for StaticLinks {
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<LinkChange> {
        Poll::Pending
    }

    fn configure_tap(&mut self, _: usize) {}
}
