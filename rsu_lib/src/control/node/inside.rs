//! How the RSU stands, for whoever looks inside: every table there is, as plain data.

use std::collections::BTreeMap;

use node_lib::control::pin::{NoPin, Pin};
use node_lib::control::snapshot::{
    self, ClientPort, KnownClient, KnownNeighbour, NodeRole, Pinned, RadioState, Snapshot, WaitsFor,
};
use node_lib::{Mac, Timestamp};

use super::super::clients::Port;
use super::Rsu;

impl Rsu {
    pub(super) fn look_inside(&self, now: Timestamp) -> Snapshot {
        let mut snapshot = Snapshot::of(self.radio.id, NodeRole::Rsu);
        let mut load = self.load.clone();
        load.turn_to(now);
        snapshot.boot = Some(self.order.boot.0);
        snapshot.air = Some(RadioState {
            mac: self.radio.mac,
            mtu_bytes: self.radio.mtu,
            ethertype: self.radio.ethertype,
            is_up: self.link_is_up,
            obus: u16::try_from(self.obus.attached()).ok(),
            heartbeats_per_s: Some(load.per_second()),
            is_full: Some(load.is_full()),
            interval_ms: Some(snapshot::span_ms(self.pace.said().interval())),
            busy_percent: self.pace.busy(now),
        });
        snapshot.position = self.positions.own(now);
        snapshot.is_leaving = self.is_leaving;
        snapshot.waits_for = Some(WaitsFor::of(now, self.deadline));
        snapshot.obus = self.obus.view(now, &self.positions);
        snapshot.neighbours = neighbours_of(&snapshot.obus);
        snapshot.clients = self.look_at_clients(now);
        snapshot
    }

    fn look_at_clients(&self, now: Timestamp) -> Vec<KnownClient> {
        let age = |at| snapshot::age_ms(now, at);
        let pinned = |client| {
            let is_in_effect = self.pins.in_effect(client, &self.obus).is_some();
            self.pins.of(client).map(|obu| Pinned { obu, is_in_effect })
        };
        let mut clients: Vec<_> = self
            .clients
            .iter(now)
            .map(|known| {
                let pinned = pinned(known.client);
                let (port, obu) = match (known.owner, pinned) {
                    (_, Some(Pinned { obu, is_in_effect: true })) => (ClientPort::Obu, Some(obu)),
                    (Port::Tap, _) => (ClientPort::Tap, None),
                    (Port::Obu(obu), _) => (ClientPort::Obu, Some(obu)),
                };
                KnownClient {
                    mac: known.client.mac,
                    vlan: known.client.vlan,
                    port,
                    obu,
                    age_ms: Some(age(known.used)),
                    heard_ms: known.heard.map(age),
                    since_ms: Some(age(known.since)),
                    is_held: known.is_held,
                    pinned,
                }
            })
            .collect();
        let is_silent = |(client, _): &(_, _)| self.clients.owner(now, *client).is_none();
        clients.extend(self.pins.iter().filter(is_silent).map(|(client, obu)| KnownClient {
            mac: client.mac,
            vlan: client.vlan,
            port: ClientPort::Obu,
            obu: Some(obu),
            age_ms: None,
            heard_ms: None,
            since_ms: None,
            is_held: false,
            pinned: pinned(client),
        }));
        clients.sort_unstable_by_key(|client| (client.vlan, client.mac));
        clients
    }

    /// Pins clients, or unpins them. Returns how many pins that put or took off.
    pub(super) fn pin(&mut self, now: Timestamp, pin: Pin) -> Result<usize, NoPin> {
        match pin {
            Pin::Put { client, obu } => {
                let is_new = self.pins.put(client, obu)?;
                if is_new && self.obus.is_attached(obu) {
                    self.begin_pin(now, client, obu);
                }
                Ok(usize::from(is_new))
            }
            Pin::Take(which) => Ok(self.pins.take(which)),
        }
    }

    /// Forgets clients, all or those with this address, on whichever side they are. Pins stay.
    pub(super) fn forget(&mut self, now: Timestamp, which: Option<Mac>) -> usize {
        let known: Vec<_> = self.clients.iter(now).map(|known| known.client).collect();
        let meant = known.into_iter().filter(|client| which.is_none_or(|mac| client.mac == mac));
        meant.filter(|client| self.clients.forget(*client)).count()
    }
}

/// OBUs whose upstream the RSU is. It keeps no table of neighbours: nothing it does depends on how
/// well it hears them.
fn neighbours_of(obus: &[snapshot::KnownObu]) -> Vec<KnownNeighbour> {
    let near = obus.iter().filter(|obu| obu.standing != snapshot::ObuStanding::Gone);
    let by_mac: BTreeMap<Mac, _> = near.filter_map(|obu| Some((obu.mac?, obu))).collect();
    let neighbours = by_mac.into_iter();
    neighbours
        .map(|(mac, obu)| KnownNeighbour {
            id: obu.id,
            mac,
            boot: Some(obu.boot),
            heard_ms: obu.heard_ms,
            loss_rx_ratio: None,
            loss_round_trip_ratio: None,
            round_trip_us: obu.round_trip_us,
            signal_dbm: None,
            signal_ahead_dbm: None,
            proven_ms: None,
            unanswered: None,
            link_cost: None,
            is_upstream: false,
            is_child: true,
            position: obu.position.clone(),
        })
        .collect()
}
