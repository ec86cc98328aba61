//! A vehicle, perhaps a relaying vehicle, and the road side in a line, joined by the kernel's own
//! cables alone: for measurements and soaks, in which the radio must not be what is measured.
//!
//! ```text
//! 1 hop    vehicle: tap0 radio0 ───veth─── radio0 tap0 :road
//!
//! 2 hops   vehicle: tap0 radio0 ───veth─── behind ┐          ┌ ahead ───veth─── radio0 tap0 :road
//!                                                 └─ radio0 ─┘
//!                                                 :relay (a bridge)
//! ```
//!
//! The ends of a line of two must not hear each other. The relay's radio is a bridge whose two
//! ports are *isolated*: what comes in through one reaches the bridge's own interface and not the
//! other port. That costs one look into the bridge's table per frame and no further interface, for
//! whoever relays.

mod carrier;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use node_lib::Mac;

pub use carrier::{Carrier, Offload, has_tap_offload};

use crate::arena::link::{VethEnd, create_veth};
use crate::arena::netns::Netns;
use crate::daemons::daemon::{self, Daemon};
use crate::daemons::programs::Programs;
use crate::probe::PingStream;
use crate::wait::wait_until;

/// Interface names.
pub const RADIO: &str = "radio0";
/// The TAP of each end.
pub const TAP: &str = "tap0";
const BEHIND: &str = "behind";
const AHEAD: &str = "ahead";
/// Radios have room for a TAP of 1500, the MTU of everything else here.
pub const RADIO_MTU: u32 = TAP_MTU + 40;
/// What is carried.
pub const TAP_MTU: u32 = 1500;
const VEHICLE: Mac = Mac([2, 0x0b, 0, 0, 1, 1]);
const RELAY: Mac = Mac([2, 0x0b, 0, 0, 1, 2]);
const ROAD: Mac = Mac([2, 0x0b, 0, 0, 1, 3]);
/// How long it may take from the first process to the first reply.
const CARRIES_WITHIN: Duration = Duration::from_secs(10);
const TAIL_LINES: usize = 20;

/// The cables, and what carries frames over them.
#[derive(Debug)]
pub struct LineTopology {
    /// One end.
    pub vehicle: Netns,
    /// In the middle of a line of two hops.
    pub relay: Option<Netns>,
    /// The other end.
    pub road: Netns,
    running: Vec<Daemon>,
}

/// An address of the vehicle's end.
pub const VEHICLE_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 30, 0, 2));
/// An address of the road side's end.
pub const ROAD_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 30, 0, 1));
/// An address of the vehicle's end.
pub const VEHICLE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd30, 0, 0, 0, 0, 0, 0, 2));
/// An address of the road side's end.
pub const ROAD_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd30, 0, 0, 0, 0, 0, 0, 1));

impl LineTopology {
    /// Lays the cables of a line of one or two hops.
    pub fn lay(hops: usize) -> Result<Self> {
        ensure!((1..=2).contains(&hops), "a line has 1 or 2 hops, not {hops}");
        let vehicle = Netns::create("vehicle")?;
        let road = Netns::create("road")?;
        let end = |ns, mac| VethEnd { ns, name: RADIO, mac: Some(mac), mtu: RADIO_MTU };
        let mut relay = None;
        if hops == 1 {
            create_veth(end(&vehicle, VEHICLE), end(&road, ROAD))?;
        } else {
            let middle = Netns::create_silent("relay")?;
            middle.create_bridge(RADIO, RELAY)?;
            for (port, far) in [(BEHIND, end(&vehicle, VEHICLE)), (AHEAD, end(&road, ROAD))] {
                let near = VethEnd { ns: &middle, name: port, mac: None, mtu: RADIO_MTU };
                create_veth(near, far)?;
                middle.enslave(port, RADIO)?;
                middle.isolate(port)?;
            }
            middle.set_mtu(RADIO, RADIO_MTU)?;
            middle.wait_until_operational(RADIO)?;
            relay = Some(middle);
        }
        Ok(Self { vehicle, relay, road, running: Vec::new() })
    }

    /// Two ends and one plain cable with addresses between them: what the kernel does by itself.
    pub fn cable(has_offloads: bool) -> Result<Self> {
        let (vehicle, road) = (Netns::create("vehicle")?, Netns::create("road")?);
        let end = |ns| VethEnd { ns, name: TAP, mac: None, mtu: TAP_MTU };
        create_veth(end(&vehicle), end(&road))?;
        for ns in [&vehicle, &road] {
            if !has_offloads {
                ns.run(|| Ok(crate::arena::sys::disable_all_offloads(TAP)?))?;
            }
        }
        let line = Self { vehicle, relay: None, road, running: Vec::new() };
        line.give_addresses()?;
        line.wait_until_it_carries()?;
        Ok(line)
    }

    /// Starts a carrier and waits until frames get through. Logs go to `logs`.
    pub fn start(&mut self, programs: &Programs, carrier: &Carrier, logs: &Path) -> Result<()> {
        self.start_with(programs, carrier, &[], logs)
    }

    /// As [`LineTopology::start`], with more flags for each daemon.
    pub fn start_with(
        &mut self,
        programs: &Programs,
        carrier: &Carrier,
        flags: &[String],
        logs: &Path,
    ) -> Result<()> {
        self.running = carrier::start(self, programs, carrier, flags, logs)?;
        self.give_addresses()?;
        self.wait_until_it_carries()
    }

    /// Ends what [`LineTopology::start`] started.
    pub fn stop(&mut self) {
        self.running.clear();
    }

    /// Ends it with a goodbye, and hands over what ended: its log is still there.
    pub fn terminate(&mut self) -> Result<Vec<Daemon>> {
        self.running.iter_mut().try_for_each(Daemon::terminate)?;
        Ok(std::mem::take(&mut self.running))
    }

    /// The processes that carry, from the vehicle to the road side.
    pub fn running(&self) -> &[Daemon] {
        &self.running
    }

    /// The namespaces, from the vehicle to the road side.
    pub fn places(&self) -> Vec<&Netns> {
        [Some(&self.vehicle), self.relay.as_ref(), Some(&self.road)].into_iter().flatten().collect()
    }

    /// Gives every radio of the line another MTU.
    pub fn set_radio_mtu(&self, mtu: u32) -> Result<()> {
        if let Some(relay) = &self.relay {
            for interface in [BEHIND, AHEAD, RADIO] {
                relay.set_mtu(interface, mtu)?;
            }
        }
        self.vehicle.set_mtu(RADIO, mtu)?;
        self.road.set_mtu(RADIO, mtu)
    }

    /// The ends of all logs, to be shown when something failed.
    pub fn log_tails(&self) -> String {
        let tail = |daemon: &Daemon| {
            let log = daemon.log();
            format!("--- {}\n{}\n", log.display(), daemon::tail(log, TAIL_LINES))
        };
        self.running.iter().map(tail).collect()
    }

    fn give_addresses(&self) -> Result<()> {
        for (ns, v4, v6) in
            [(&self.vehicle, VEHICLE_V4, VEHICLE_V6), (&self.road, ROAD_V4, ROAD_V6)]
        {
            ns.add_address(TAP, v4, 24)?;
            ns.add_address(TAP, v6, 64)?;
        }
        Ok(())
    }

    fn wait_until_it_carries(&self) -> Result<()> {
        for (from, to) in [
            (&self.vehicle, ROAD_V4),
            (&self.vehicle, ROAD_V6),
            (&self.road, VEHICLE_V4),
            (&self.road, VEHICLE_V6),
        ] {
            wait_until_reached(from, to)?;
        }
        Ok(())
    }
}

/// Waits until an address answers.
pub fn wait_until_reached(from: &Netns, to: IpAddr) -> Result<()> {
    wait_until(&format!("{} reaches {to}", from.name()), CARRIES_WITHIN, || {
        let report = PingStream::count(from, to, 1, Duration::from_millis(10))?;
        Ok((report.received > 0).then_some(()))
    })
}
