//! How the OBU stands, for whoever looks inside: every table there is, as plain data.

use std::time::Duration;

use node_lib::control::node::Node;
use node_lib::control::snapshot::{
    self, Attached, KnownNeighbour, NodeRole, RadioState, RouteStanding, Snapshot, StandbyRsu,
    WaitsFor, age_ms, milli,
};
use node_lib::{Mac, NodeId, Timestamp};

use super::super::link::neighbour::Neighbour;
use super::super::route::Route;
use super::Obu;

impl Obu {
    pub(super) fn look_inside(&self, now: Timestamp) -> Snapshot {
        let context = &self.context;
        let mut snapshot = Snapshot::of(context.id(), NodeRole::Obu);
        snapshot.boot = Some(context.radio.boot.0);
        snapshot.air = Some(RadioState {
            mac: context.radio.mac,
            mtu_bytes: context.radio.mtu,
            ethertype: context.radio.ethertype,
            is_up: context.link_is_up,
            obus: Some(context.obus),
            heartbeats_per_s: Some(context.load.per_second()),
            is_full: Some(context.load.is_full()),
            interval_ms: None,
            busy_percent: None,
        });
        snapshot.position = context.positions.own(now);
        snapshot.is_leaving = context.is_leaving;
        snapshot.waits_for = self.deadline().map(|next| WaitsFor::of(now, next));
        snapshot.attached = self.look_at_attachment(now);
        snapshot.standby = self
            .registration
            .standby_at()
            .map(|rsu| StandbyRsu { rsu, is_acknowledged: self.registration.is_expected_at(rsu) });
        snapshot.neighbours = self.look_around(now);
        snapshot.routes = self.look_at_routes(now);
        snapshot.clients = self.clients.view(now);
        snapshot.children = self.children.view(now);
        snapshot
    }

    fn look_at_attachment(&self, now: Timestamp) -> Option<Attached> {
        let attached = self.attached?;
        let attachment = self.attachment()?;
        let route = self.routes.get(&attached.rsu)?;
        Some(Attached {
            rsu: attachment.rsu,
            upstream: attachment.upstream,
            upstream_mac: attached.upstream,
            hops: attachment.hops,
            since_ms: age_ms(now, route.changed_at()),
            heard_ms: age_ms(now, route.evidence()),
            mtu_bytes: route.mtu(&self.context),
            is_acknowledged: self.registration.is_known_at(attached.rsu),
            is_unanswered: self.registration.is_unanswered(),
            is_doubted: route.is_doubted(),
        })
    }

    fn look_around(&self, now: Timestamp) -> Vec<KnownNeighbour> {
        let upstream = self.attached.map(|attached| attached.upstream);
        let known = self.context.neighbours.iter();
        known
            .map(|(mac, known)| KnownNeighbour {
                is_upstream: upstream == Some(mac),
                is_child: self.children.contains(now, mac),
                ..self.look_at_neighbour(now, mac, known)
            })
            .collect()
    }

    fn look_at_neighbour(&self, now: Timestamp, mac: Mac, known: &Neighbour) -> KnownNeighbour {
        let window = self.context.hello_history;
        let heard = known.heard_of_last(window);
        let lost = heard.map(|heard| 1.0 - f64::from(heard) / f64::from(window.clamp(1, 64)));
        let signal = known.signal(now, self.context.thresholds.signal_ahead);
        let dbm = |cdbm: i32| milli(f64::from(cdbm) / 100.0);
        let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        KnownNeighbour {
            id: known.id,
            mac,
            boot: Some(known.boot.0),
            heard_ms: age_ms(now, known.heard),
            loss_rx_ratio: lost.map(milli),
            loss_round_trip_ratio: known.answered().map(|answered| milli(1.0 - answered)),
            round_trip_us: known.round_trip().map(micros),
            signal_dbm: signal.map(|signal| dbm(signal.mean_cdbm)),
            signal_ahead_dbm: signal.map(|signal| dbm(signal.ahead_cdbm)),
            proven_ms: known.proven.map(|at| age_ms(now, at)),
            unanswered: Some(known.unanswered),
            link_cost: Some(milli(known.link_cost(now, self.context.interval).transmissions())),
            is_upstream: false,
            is_child: false,
            position: self.context.positions.of(now, known.id),
        }
    }

    pub(super) fn look_at_routes(&self, now: Timestamp) -> Vec<snapshot::KnownRoute> {
        let routes = self.routes.iter();
        routes
            .map(|(rsu, route)| {
                let until = self.shunned_until(now, *rsu);
                route.view(&self.context, now, self.standing_of(now, *rsu, route), until)
            })
            .collect()
    }

    fn standing_of(&self, now: Timestamp, rsu: NodeId, route: &Route) -> RouteStanding {
        if self.is_attached_to(rsu) {
            return RouteStanding::InUse;
        }
        match route.upstream_candidate() {
            None if route.is_quiet(&self.context, now) => RouteStanding::Quiet,
            None => RouteStanding::NoUpstream,
            Some(upstream) if upstream.is_leaving() => RouteStanding::Leaving,
            Some(_) if self.shunned_until(now, rsu).is_some() => RouteStanding::Shunned,
            Some(_) if self.registration.standby_at() == Some(rsu) => RouteStanding::Standby,
            Some(_) => RouteStanding::NotBetter,
        }
    }

    /// Forgets clients, all or those with this address. The TAP itself stays.
    pub(super) fn forget(&mut self, now: Timestamp, which: Option<Mac>) -> usize {
        let forgotten = self.clients.forget(which);
        if forgotten > 0 {
            self.registration.note_clients_changed(now);
        }
        forgotten
    }
}
