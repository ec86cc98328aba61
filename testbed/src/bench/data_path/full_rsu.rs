//! The memory of a road-side unit that knows as many vehicles and clients as it ever will.
//!
//! The real `rsu`, and at the other end of its radio a program that speaks for all the vehicles.
//! The unit acknowledges each announcement, and tells its LAN of each client: both are counted, so
//! that it is known what the memory holds.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use node_lib::messages::control::Control;
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::ethernet::{Header, RARP};
use node_lib::messages::{ETHERTYPE_DEFAULT, Message, PacketType};
use node_lib::{Mac, NodeId, Order, Seq};
use serde::Serialize;

use crate::arena::link::{VethEnd, create_veth};
use crate::arena::netns::Netns;
use crate::arena::sys::PromiscuousSocket;
use crate::daemons::daemon::Daemon;
use crate::daemons::programs::Programs;
use crate::topology::line::{RADIO, RADIO_MTU, TAP};

/// What the unit knows, and what it takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FullRsu {
    /// OBUs whose announcement it acknowledged.
    pub vehicles: usize,
    /// Clients it told its LAN of.
    pub clients: usize,
    /// Resident memory before, bytes.
    pub resident_empty: u64,
    /// Resident memory with all of them, bytes.
    pub resident: u64,
    /// Of each what is not the program and its libraries.
    pub own_empty: u64,
    /// See `own_empty`.
    pub own: u64,
}

const RSU: Mac = Mac([2, 0x0b, 0, 0, 1, 3]);
const READY_WITHIN: Duration = Duration::from_secs(5);
/// What may be lost in a socket buffer is said again, and the LAN is told of a thousand clients a
/// second.
const SAID_AT_MOST: u32 = 60;
const FRAME_MAX: usize = 2048;
const WITHIN_DS: u16 = 20;

/// Fills a road-side unit and weighs it.
pub(super) fn measure(
    programs: &Programs,
    vehicles: u16,
    clients: u16,
    logs: &Path,
) -> Result<FullRsu> {
    let road = Netns::create_silent("road")?;
    let air = Netns::create_silent("air")?;
    let end = |ns, mac| VethEnd { ns, name: RADIO, mac, mtu: RADIO_MTU };
    create_veth(end(&road, Some(RSU)), end(&air, None))?;
    let args = ["-b", RADIO, "-t", TAP, "--log-format", "json"].map(str::to_owned);
    let rsu = Daemon::start(&road, &programs.rsu, &args, &logs.join("full_rsu.log"))?;
    rsu.wait_for_event("running", READY_WITHIN, |_| true)?;
    let empty = rsu.usage()?;

    let radio = air.run(|| Ok(PromiscuousSocket::open(RADIO)?))?;
    let lan = road.run(|| Ok(PromiscuousSocket::open(TAP)?))?;
    let fleet = fleet(vehicles, clients);
    let mut heard = Heard::default();
    for said in 1..=SAID_AT_MOST {
        let is_missing = |vehicle: &&Vehicle| !heard.vehicles.contains(&vehicle.id);
        let missing: Vec<&Vehicle> = fleet.iter().filter(is_missing).collect();
        if missing.is_empty() && heard.clients.len() >= usize::from(clients) {
            break;
        }
        for vehicle in missing {
            radio.send(&vehicle.announcement(said))?;
            heard.listen(&radio, &lan)?;
        }
        // What vehicles say about once a second: without it the unit would forget them.
        for vehicle in &fleet {
            radio.send(&vehicle.reply(said))?;
            heard.listen(&radio, &lan)?;
        }
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            heard.listen(&radio, &lan)?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let full = rsu.usage()?;
    let (acknowledged, told) = (heard.vehicles.len(), heard.clients.len());
    ensure!(
        acknowledged == usize::from(vehicles) && told == usize::from(clients),
        "the unit knows {acknowledged} of {vehicles} vehicles and {told} of {clients} clients"
    );
    Ok(FullRsu {
        vehicles: acknowledged,
        clients: told,
        resident_empty: empty.resident,
        resident: full.resident,
        own_empty: empty.anonymous,
        own: full.anonymous,
    })
}

/// What the unit said.
#[derive(Default)]
struct Heard {
    vehicles: BTreeSet<NodeId>,
    clients: BTreeSet<Mac>,
}

impl Heard {
    fn listen(&mut self, radio: &PromiscuousSocket, lan: &PromiscuousSocket) -> Result<()> {
        let mut buffer = [0; FRAME_MAX];
        while let Some(frame) = radio.recv(&mut buffer)? {
            if let Ok(message) = Message::parse(frame, ETHERTYPE_DEFAULT)
                && let PacketType::Control(Control::AnnouncementAck(ack)) = message.packet
            {
                self.vehicles.insert(ack.destination);
            }
        }
        while let Some(frame) = lan.recv(&mut buffer)? {
            // Reverse ARP, by which the LAN is told.
            if let Some((Header { from, ethertype: RARP, .. }, _)) = Header::read(frame) {
                self.clients.insert(from);
            }
        }
        Ok(())
    }
}

/// A vehicle that exists only as what it says.
struct Vehicle {
    id: NodeId,
    radio: Mac,
    clients: Vec<Client>,
}

/// So many vehicles with so many clients between them, evenly.
fn fleet(vehicles: u16, clients: u16) -> Vec<Vehicle> {
    let mut fleet: Vec<Vehicle> = (0..vehicles)
        .map(|n| {
            let radio = mac(2, n);
            Vehicle { id: radio.into(), radio, clients: Vec::new() }
        })
        .collect();
    for n in 0..clients {
        if let Some(vehicle) = fleet.get_mut(usize::from(n % vehicles.max(1))) {
            vehicle.clients.push(Client { vlan: 0, mac: mac(3, n) });
        }
    }
    fleet
}

fn mac(kind: u8, n: u16) -> Mac {
    let [high, low] = n.to_be_bytes();
    Mac([2, 0x0b, 0, kind, high, low])
}

impl Vehicle {
    fn announcement(&self, seq: u32) -> Vec<u8> {
        let mut groups = Vec::new();
        Clients::encode(&self.clients, &mut groups);
        let announcement = Announcement {
            rsu: RSU.into(),
            origin: self.id,
            order: Order::new(1, 2 * seq),
            epoch: 1,
            via: RSU.into(),
            digest: client_digest(&self.clients),
            part: 0,
            parts: 1,
            within_ds: WITHIN_DS,
            at_risk_10ms: 0,
            mtu: 1500,
            hops: 0,
            standby: false,
            clients: Clients::parse(&groups).unwrap_or_default(),
        };
        self.say(announcement.into())
    }

    fn reply(&self, seq: u32) -> Vec<u8> {
        let reply = HeartbeatReply {
            rsu: RSU.into(),
            origin: self.id,
            order: Order::new(1, 2 * seq + 1),
            epoch: 1,
            via: RSU.into(),
            digest: client_digest(&self.clients),
            clients: u16::try_from(self.clients.len()).unwrap_or(u16::MAX),
            within_ds: WITHIN_DS,
            at_risk_10ms: 0,
            answers: Seq(0),
            held_100us: 0,
            mtu: 1500,
            hops: 0,
            goodbye: false,
            standby: false,
            acknowledge: false,
        };
        self.say(reply.into())
    }

    fn say(&self, packet: PacketType<'_>) -> Vec<u8> {
        (&Message { to: RSU, from: self.radio, ethertype: ETHERTYPE_DEFAULT, packet }).into()
    }
}
