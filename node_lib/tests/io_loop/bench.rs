//! A loop over devices in memory, and what is at the other end of them.

use std::time::{Duration, Instant};

use node_lib::Mac;
use node_lib::control::node::Node;
use node_lib::device::memory::{self, Memory};
use node_lib::device::{Burst, Device, LinkState, Links, Outgoing, Sent};
use node_lib::runtime::clients::ClientFile;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::{Commands, Remote};
use node_lib::runtime::{Exit, Runtime};
use node_lib::start::clients::Remembered;
use node_lib::transport::mtu::TapMtu;

/// A node's two devices and what is at the other end of them.
pub(crate) struct Bench {
    pub(crate) radio: Memory,
    pub(crate) air: Memory,
    pub(crate) tap: Memory,
    pub(crate) host: Memory,
    pub(crate) tap_mtu: TapMtu,
    pub(crate) link: LinkState,
    pub(crate) bundles: bool,
    pub(crate) coalesce: Duration,
    pub(crate) busy_poll: Duration,
    pub(crate) remembered: Vec<Remembered>,
    pub(crate) client_file: Option<ClientFile>,
}

pub(crate) fn radio_link() -> LinkState {
    LinkState { index: 7, mac: Mac([2, 0, 0, 0, 0, 1]), mtu: 1500, up: true }
}

pub(crate) fn bench_radio() -> Memory {
    memory::pair(1500).unwrap().0
}

impl Bench {
    pub(crate) fn new() -> Self {
        let (radio, air) = memory::pair(1500).unwrap();
        let (tap, host) = memory::pair(1500).unwrap();
        let (tap_mtu, link) = (TapMtu::default(), radio_link());
        let (coalesce, busy_poll) = (Duration::ZERO, Duration::ZERO);
        Self {
            radio,
            air,
            tap,
            host,
            tap_mtu,
            link,
            bundles: true,
            coalesce,
            busy_poll,
            remembered: Vec::new(),
            client_file: None,
        }
    }

    pub(crate) fn run(&mut self, node: &mut impl Node, links: &mut impl Links, span: Duration) {
        let mut radio = std::mem::replace(&mut self.radio, bench_radio());
        self.run_with(node, &mut radio, links, span);
        self.radio = radio;
    }

    pub(crate) fn run_with(
        &mut self,
        node: &mut impl Node,
        radio: &mut impl Device,
        links: &mut impl Links,
        span: Duration,
    ) {
        let mut tap = std::mem::replace(&mut self.tap, bench_radio());
        self.run_all(node, radio, &mut tap, links, Remote::new(), Some(span));
        self.tap = tap;
    }

    pub(crate) fn run_until(
        &mut self,
        node: &mut impl Node,
        links: &mut impl Links,
        commands: impl Commands,
    ) -> Exit {
        let mut radio = std::mem::replace(&mut self.radio, bench_radio());
        let mut tap = std::mem::replace(&mut self.tap, bench_radio());
        let exit = self.run_all(node, &mut radio, &mut tap, links, commands, None);
        exit.expect("the loop ended by itself")
    }

    pub(crate) fn run_all(
        &mut self,
        node: &mut impl Node,
        radio: &mut impl Device,
        tap: &mut impl Device,
        links: &mut impl Links,
        mut commands: impl Commands,
        span: Option<Duration>,
    ) -> Option<Exit> {
        let runtime = Runtime {
            clock: Clock::start(),
            radio: self.link.clone(),
            tap_mtu: self.tap_mtu,
            bundles: self.bundles,
            coalesce: self.coalesce,
            busy_poll: self.busy_poll,
            announcements: Vec::new(),
            remembered: self.remembered.clone(),
            client_file: self.client_file.clone(),
        };
        let running = runtime.start(node, radio, tap, links, &mut commands);
        let mut running = running.unwrap();
        let end = Instant::now() + span.unwrap_or(Duration::from_secs(20));
        loop {
            let left = end.checked_duration_since(Instant::now())?;
            if let Some(exit) = running.turn(Some(left)).unwrap() {
                return Some(exit);
            }
        }
    }
}

pub(crate) fn put(end: &mut Memory, frame: &[u8]) {
    assert_eq!(end.send(&[Outgoing::new(frame)]), Sent::All);
    assert_eq!(end.counters().tx_full, 0);
}

pub(crate) fn take(end: &mut Memory) -> Vec<Vec<u8>> {
    let mut burst = Burst::new(1000);
    end.recv(&mut burst);
    burst.frames().map(<[u8]>::to_vec).collect()
}
