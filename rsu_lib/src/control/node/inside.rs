//! How the RSU stands, for whoever looks inside: every table there is, as plain data.

use std::collections::BTreeMap;

use node_lib::control::snapshot::{self, Air, Client, Neighbour, Port as Side, Role, Snapshot};
use node_lib::{Mac, Timestamp};

use super::super::clients::Port;
use super::Rsu;

impl Rsu {
    pub(super) fn look_inside(&self, now: Timestamp) -> Snapshot {
        let mut snapshot = Snapshot::of(self.radio.id, Role::Rsu);
        snapshot.boot = Some(self.order.boot.0);
        snapshot.air = Some(Air {
            mac: self.radio.mac,
            mtu_bytes: self.radio.mtu,
            ethertype: self.radio.ethertype,
            is_up: self.link_is_up,
            obus: u16::try_from(self.obus.attached()).ok(),
            // It does not listen to heartbeats of others.
            heartbeats_per_s: None,
            is_full: None,
        });
        snapshot.position = self.positions.own(now);
        snapshot.is_leaving = self.is_leaving;
        snapshot.obus = self.obus.view(now, &self.positions);
        snapshot.neighbours = neighbours_of(&snapshot.obus);
        snapshot.clients = self.look_at_clients(now);
        snapshot
    }

    fn look_at_clients(&self, now: Timestamp) -> Vec<Client> {
        let age = |at| snapshot::age_ms(now, at);
        let mut clients: Vec<_> = self
            .clients
            .iter(now)
            .map(|known| {
                let (port, obu) = match known.owner {
                    Port::Tap => (Side::Tap, None),
                    Port::Obu(obu) => (Side::Obu, Some(obu)),
                };
                Client {
                    mac: known.client.mac,
                    vlan: known.client.vlan,
                    port,
                    obu,
                    age_ms: Some(age(known.used)),
                    heard_ms: known.heard.map(age),
                    since_ms: Some(age(known.since)),
                    is_held: known.is_held,
                }
            })
            .collect();
        clients.sort_unstable_by_key(|client| (client.vlan, client.mac));
        clients
    }

    /// Forgets clients, all or those with this address, on whichever side they are.
    pub(super) fn forget(&mut self, now: Timestamp, which: Option<Mac>) -> usize {
        let known: Vec<_> = self.clients.iter(now).map(|known| known.client).collect();
        let meant = known.into_iter().filter(|client| which.is_none_or(|mac| client.mac == mac));
        meant.filter(|client| self.clients.forget(*client)).count()
    }
}

/// OBUs whose upstream the RSU is. It keeps no table of neighbours: nothing it does depends on how
/// well it hears them.
fn neighbours_of(obus: &[snapshot::Obu]) -> Vec<Neighbour> {
    let near = obus.iter().filter(|obu| obu.standing != snapshot::ObuStanding::Gone);
    let by_mac: BTreeMap<Mac, _> = near.filter_map(|obu| Some((obu.mac?, obu))).collect();
    let neighbours = by_mac.into_iter();
    neighbours
        .map(|(mac, obu)| Neighbour {
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
