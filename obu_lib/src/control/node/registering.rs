//! Which RSUs are told of us, through whom, and what follows when one has been told.

use arrayvec::ArrayVec;
use node_lib::control::deadline::Deadline;
use node_lib::control::node::Replies;
use node_lib::{NodeId, Timestamp};

use super::super::timing;
use super::super::towards::{Standing, Towards};
use super::{Obu, ROUTES_MAX};

impl Obu {
    /// Tells each RSU what is due: ours, the one we may go to next, and those to which others go
    /// through us.
    pub(super) fn register(&mut self, now: Timestamp, out: &mut Replies) {
        let told = self.attached.map(|attached| attached.rsu).into_iter();
        let mtus = told.chain(self.registration.standby_at()).map(|rsu| self.mtu_to(rsu));
        let mtu = mtus.fold(self.context.radio.said_mtu(), u16::min);
        if self.registration.wants_clients(now, mtu) {
            self.registration.set_clients(&self.clients.announced(), &self.context.radio, mtu);
            if self.attached.is_some() {
                self.registration.announce_to_all(now);
            }
        }
        if self.context.is_leaving {
            return;
        }
        if let Some(attached) = self.attached {
            self.register_at(now, attached.rsu, Standing::Attached, out);
        }
        // The next one, if it can be reached just now.
        if let Some(rsu) = self.registration.standby_at() {
            self.register_at(now, rsu, Standing::Standby, out);
        }
        let children = &self.children;
        self.registration.retain_relayed(|rsu| children.are_reached(now, rsu));
        let relayed: ArrayVec<_, ROUTES_MAX> = self
            .routes
            .iter()
            .map(|(rsu, _)| *rsu)
            .filter(|rsu| children.are_reached(now, *rsu))
            .collect();
        for rsu in relayed {
            self.register_for_others(now, rsu, out);
        }
    }

    /// Others go to this RSU through us, and it may not know our upstream yet. One that we are just
    /// leaving does; that we are attached elsewhere it hears last.
    pub(super) fn register_for_others(&mut self, now: Timestamp, rsu: NodeId, out: &mut Replies) {
        if self.is_parting_from(rsu) {
            return;
        }
        let standing = if self.is_attached_to(rsu) {
            Standing::Attached
        } else if self.registration.standby_at() == Some(rsu) {
            Standing::Standby
        } else {
            Standing::Relay
        };
        self.register_at(now, rsu, standing, out);
    }

    /// Tells an RSU what is due, if there is a way to it.
    fn register_at(&mut self, now: Timestamp, rsu: NodeId, standing: Standing, out: &mut Replies) {
        let Some(route) = self.routes.get(&rsu) else { return };
        let Some(upstream) = route.upstream_candidate() else { return };
        let every = match standing {
            Standing::Attached => route.reply_every(),
            Standing::Standby | Standing::Relay => timing::standby_every(route.reply_every()),
        };
        let is_ours = standing == Standing::Attached;
        let is_used = !route.is_idle(now) || is_ours && !self.context.is_idle(now);
        let at_risk_10ms = route.at_risk_10ms(&self.context, now);
        let hops = upstream.hops_through();
        let (upstream, via) = (upstream.mac, upstream.id);
        let towards = Towards { rsu, upstream, via, hops, standing, is_used, at_risk_10ms };
        if self.registration.drive(&mut self.context, now, towards, every, out) {
            self.note_mentioned(now);
        }
        self.note_told(rsu);
    }

    pub(in crate::control) fn registration_deadline(&self) -> Deadline {
        let is_told = |rsu| self.upstream_of(rsu).is_some() && !self.is_parting_from(rsu);
        self.registration.deadline(is_told)
    }
}
