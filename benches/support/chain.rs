//! RSU, relaying OBU and OBU, each in the loop of the daemons, joined by memory devices: every path
//! a frame can take, without a kernel.

use std::time::Duration;

use node_lib::control::node::Node;
use node_lib::device::memory::{self, Memory};
use node_lib::device::{Burst, Device, LinkState, Outgoing, StaticLinks};
use node_lib::runtime::Runtime;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::Remote;
use node_lib::transport::mtu::TapMtu;
use node_lib::{Mac, Start};
use obu_lib::Obu;
use rsu_lib::Rsu;

/// A client behind the OBU at the end.
pub(crate) const CAR: Mac = Mac([2, 0, 0, 0, 1, 1]);
/// A client behind the relaying OBU.
pub(crate) const TRUCK: Mac = Mac([2, 0, 0, 0, 1, 2]);
/// A host on the LAN of the RSU.
pub(crate) const HOST: Mac = Mac([2, 0, 0, 0, 1, 3]);

/// MTU of the radios.
pub(crate) const MTU: usize = 1600;

/// The far ends of the three nodes' devices, in the order RSU, relay, OBU.
pub(crate) struct Ends<'a> {
    /// What the radios send is here, until [`Ends::carry`] takes it to whoever hears it.
    air: [Memory; 3],
    /// The LANs: behind the RSU, the relay, the OBU.
    pub(crate) lan: [Memory; 3],
    burst: Burst,
    /// Each does one turn of a node's loop, without waiting.
    turns: [&'a mut dyn FnMut(); 3],
}

impl Ends<'_> {
    /// Carries what was sent to the neighbours, then lets the nodes handle it; `hops` times.
    pub(crate) fn carry(&mut self, hops: usize) {
        for _ in 0..hops {
            for from in 0..3usize {
                let Some(air) = self.air.get_mut(from) else { continue };
                air.recv(&mut self.burst);
                for (to, air) in self.air.iter_mut().enumerate() {
                    // The two at the ends do not hear each other.
                    if to.abs_diff(from) == 1 {
                        self.burst.frames().for_each(|frame| {
                            air.send(&[Outgoing::new(frame)]);
                        });
                    }
                }
            }
            for turn in &mut self.turns {
                turn();
                turn();
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn rest(&mut self, span: Duration) {
        const STEP: Duration = Duration::from_millis(10);
        let steps = span.as_millis().div_ceil(STEP.as_millis());
        for _ in 0..steps {
            std::thread::sleep(STEP);
            self.carry(1);
        }
    }

    /// Frames that came out of a TAP, at most 64, and forgets them.
    pub(crate) fn arrived(&mut self, at: usize) -> usize {
        let Some(lan) = self.lan.get_mut(at) else { return 0 };
        lan.recv(&mut self.burst);
        self.burst.len()
    }

    /// A LAN says something `times` times.
    pub(crate) fn say(&mut self, at: usize, frame: &[u8], times: usize) {
        let Some(lan) = self.lan.get_mut(at) else { return };
        for _ in 0..times {
            lan.send(&[Outgoing::new(frame)]);
        }
    }
}

/// A client's frame of `len` bytes.
pub(crate) fn frame(from: Mac, to: Mac, len: usize) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x08, 0x00, 0x45, 0x00]].concat();
    frame.resize(len.max(60), 0);
    frame
}

/// The way of a frame.
pub(crate) struct Path {
    /// What it passes.
    pub(crate) name: &'static str,
    /// The LAN it comes from.
    pub(crate) at: usize,
    /// The client who says it.
    pub(crate) from: Mac,
    /// Who shall hear it.
    pub(crate) to: Mac,
    /// The LANs it arrives at.
    pub(crate) arrives: &'static [usize],
}

const fn path(
    name: &'static str,
    (at, from): (usize, Mac),
    to: Mac,
    arrives: &'static [usize],
) -> Path {
    Path { name, at, from, to, arrives }
}

/// All ways there are.
pub(crate) const PATHS: [Path; 6] = [
    path("one hop up", (1, TRUCK), HOST, &[0]),
    path("relayed up", (2, CAR), HOST, &[0]),
    path("relayed down", (0, HOST), CAR, &[2]),
    path("from OBU to OBU", (2, CAR), TRUCK, &[1]),
    path("broadcast down", (0, HOST), Mac::BROADCAST, &[1, 2]),
    path("broadcast up", (2, CAR), Mac::BROADCAST, &[0, 1]),
];

/// Says a frame in batches, `rounds` times, and counts what comes out where.
pub(crate) fn window(
    ends: &mut Ends<'_>,
    at: usize,
    frame: &[u8],
    batch: usize,
    rounds: usize,
) -> [usize; 3] {
    let mut arrived = [0; 3];
    for round in 0..=rounds {
        if round < rounds {
            ends.say(at, frame, batch);
            ends.carry(4);
        } else {
            // Whatever is still on its way.
            ends.carry(10);
        }
        for (lan, arrived) in arrived.iter_mut().enumerate() {
            *arrived += ends.arrived(lan);
        }
    }
    arrived
}

/// Waits until frames arrive on every path, and a second more.
pub(crate) fn settle(ends: &mut Ends<'_>) {
    let mut rounds_left = 100;
    for round in 0.. {
        let mut works = true;
        for path in &PATHS {
            let arrived = window(ends, path.at, &frame(path.from, path.to, 60), 1, 1);
            let expected = (0..3).map(|lan| usize::from(path.arrives.contains(&lan)));
            works &= expected.eq(arrived);
        }
        rounds_left = if works { rounds_left - 1 } else { 100 };
        if rounds_left == 0 {
            return;
        }
        assert!(round < 3000, "after half a minute frames still do not arrive on every path");
        ends.rest(Duration::from_millis(10));
    }
}

/// What stands around each node.
pub(crate) trait Around {
    /// The node with it.
    type Of<N: Node>: Node;
    /// Puts it around a node: RSU, relay and OBU, in this order.
    fn wrap<N: Node>(&mut self, node: N) -> Self::Of<N>;
}

/// Nothing.
pub(crate) struct Bare;

impl Around for Bare {
    type Of<N: Node> = N;
    fn wrap<N: Node>(&mut self, node: N) -> N {
        node
    }
}

/// Runs the three nodes while `work` drives the far ends.
#[allow(dead_code, reason = "some have something around their nodes")]
pub(crate) fn drive<T>(work: impl FnOnce(&mut Ends<'_>) -> T) -> T {
    drive_with(Bare, work)
}

/// Runs the three nodes, with something around each, while `work` drives the far ends.
pub(crate) fn drive_with<A: Around, T>(mut around: A, work: impl FnOnce(&mut Ends<'_>) -> T) -> T {
    let clock = Clock::start();
    let now = clock.now();
    let mac = |n| Mac([2, 0, 0, 0, 0, n]);
    // Without a limit on broadcasts: it is their path that is looked at.
    let start = |n| Start { radio_mtu: MTU, ..Start::new(mac(n)) };
    let config = rsu_lib::Settings { group_rate: 0, ..Default::default() }.config(&start(1));
    let mut rsu = around.wrap(Rsu::new(config, now));
    let config = |n| obu_lib::Settings::default().config(&start(n));
    let mut relay = around.wrap(Obu::new(config(2), now));
    let mut obu = around.wrap(Obu::new(config(3), now));
    let pair = || memory::pair(MTU).expect("a few descriptors");
    let [(mut radio0, air0), (mut radio1, air1), (mut radio2, air2)] = [0; 3].map(|_| pair());
    let [(mut tap0, lan0), (mut tap1, lan1), (mut tap2, lan2)] = [0; 3].map(|_| pair());
    // Nothing changes, and nobody gives instructions.
    let [mut quiet0, mut quiet1, mut quiet2] = [0; 3].map(|_| (StaticLinks, Remote::new()));
    let mut first = turns(&mut rsu, &mut radio0, &mut tap0, &mut quiet0, (clock, mac(1)));
    let mut second = turns(&mut relay, &mut radio1, &mut tap1, &mut quiet1, (clock, mac(2)));
    let mut third = turns(&mut obu, &mut radio2, &mut tap2, &mut quiet2, (clock, mac(3)));
    work(&mut Ends {
        air: [air0, air1, air2],
        lan: [lan0, lan1, lan2],
        burst: Burst::new(64),
        turns: [&mut first, &mut second, &mut third],
    })
}

/// Turns of the loop that drives `node`.
fn turns<'a>(
    node: &'a mut impl Node,
    radio: &'a mut Memory,
    tap: &'a mut Memory,
    (links, remote): &'a mut (StaticLinks, Remote),
    (clock, mac): (Clock, Mac),
) -> impl FnMut() + 'a {
    let link = LinkState { index: 1, mac, mtu: MTU, up: true };
    let tap_mtu = TapMtu { fixed: None, ipv6: true };
    let runtime = Runtime {
        clock,
        radio: link,
        tap_mtu,
        bundles: true,
        coalesce: Duration::ZERO,
        busy_poll: Duration::ZERO,
        announcements: Vec::new(),
        remembered: Vec::new(),
        client_file: None,
    };
    let running = runtime.start(node, radio, tap, links, remote);
    let mut running = running.expect("a few descriptors");
    move || {
        let end = running.turn(Some(Duration::ZERO)).expect("poll(2) needs nothing");
        assert!(end.is_none(), "nobody told it to stop: {end:?}");
    }
}
