//! Who is behind an OBU from its announcement to its departure.

use node_lib::control::client_cache::{Learnt, Lesson};
use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::{Client, Clients};
use node_lib::{NodeId, Timestamp};

use crate::control::about::About;

use super::super::clients::Port;
use super::super::obus::tree::{NoWay, WayDown};
use super::super::obus::{Accepted, Standing};
use super::Rsu;

impl Rsu {
    /// Does what an accepted announcement, or a reply, of `obu` changes. `part` is what it names.
    pub(super) fn settle(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        epoch: u32,
        accepted: Accepted,
        part: Clients<'_>,
    ) {
        if accepted.has_left {
            self.let_go(now, obu);
        }
        if !accepted.is_attached {
            return;
        }
        let Some(set) = accepted.set else {
            if accepted.is_new {
                for client in part.iter() {
                    self.take_over(now, obu, client);
                }
            }
            return;
        };
        for client in &set {
            self.take_over(now, obu, *client);
        }
        self.drop_clients_not_in(now, obu, &set);
        if accepted.has_come {
            for client in self.pins.behind(obu) {
                self.begin_pin(now, client, obu);
            }
            if self.arrivals.take(now) {
                self.obus.note_reported(obu);
                self.event(Event::ObuAttached { obu, clients: set.len(), epoch });
            } else {
                self.counters.events_limited += 1;
            }
        }
    }

    /// A client that is newly announced is behind `obu` from now on, unless it is behind another.
    fn take_over(&mut self, now: Timestamp, obu: NodeId, client: Client) {
        if self.is_pinned_elsewhere(client, Port::Obu(obu)) {
            return;
        }
        if let Some(Port::Obu(other)) = self.clients.owner(now, client)
            && other != obu
            && self.keeps(now, other, obu, client)
        {
            return;
        }
        self.late.remove(client);
        let Lesson { learnt, evicted } = self.clients.claim(now, client, Port::Obu(obu));
        self.counters.evicted += evicted;
        if learnt != Learnt::Known {
            self.name_to_lan(now, client);
        }
    }

    /// An announcement takes a client from no OBU that is here, if the client was heard behind that
    /// one, or that one has announced it for longer. Epochs of two OBUs are unrelated counters, and
    /// an OBU goes on announcing what it has not heard for an hour; where a client is, its own
    /// frames tell.
    fn keeps(&self, now: Timestamp, owner: NodeId, other: NodeId, client: Client) -> bool {
        let since = |obu| self.obus.claimed(client, obu).map_or((1, now), |at| (0, at));
        self.obus.is_here(owner)
            && self.obus.is_reached(owner)
            && (self.clients.last_heard(client).is_some() || since(owner) <= since(other))
    }

    /// What is announced is complete: others of this OBU that did not just speak are gone.
    fn drop_clients_not_in(&mut self, now: Timestamp, obu: NodeId, set: &[Client]) {
        for client in self.clients.clients_of(Port::Obu(obu)) {
            if set.binary_search(&client).is_err()
                && !self.has_spoken(now, client)
                && !self.yield_to_claimant(now, obu, client)
            {
                self.clients.forget(client);
            }
        }
    }

    /// Gives a client of `obu` to another OBU that has the better claim; whether there is one.
    fn yield_to_claimant(&mut self, now: Timestamp, obu: NodeId, client: Client) -> bool {
        let is_ours = self.clients.owner(now, client) == Some(Port::Obu(obu));
        let other = self.obus.claimant(client).filter(|other| is_ours && *other != obu);
        let Some(other) = other.filter(|_| !self.has_spoken(now, client)) else { return false };
        self.clients.claim(now, client, Port::Obu(other));
        self.name_to_lan(now, client);
        true
    }

    /// Detaches OBUs whose clients have all been on the LAN side for [`LATE_FOR`].
    pub(super) fn drop_left(&mut self, now: Timestamp) {
        if !self.leaving.values().any(|until| *until <= now) {
            return;
        }
        let due: Vec<_> = self.leaving.extract_if(.., |_, until| *until <= now).collect();
        for (obu, _) in due {
            if !self.clients.has_clients(Port::Obu(obu)) && self.obus.lose(now, obu) {
                self.let_go(now, obu);
            }
        }
    }

    /// `obu` is not attached to us any more.
    pub(super) fn let_go(&mut self, now: Timestamp, obu: NodeId) {
        for client in self.clients.clients_of(Port::Obu(obu)) {
            if !self.yield_to_claimant(now, obu, client) {
                self.clients.forget(client);
                self.late.add(now, client, obu);
            }
        }
        // What is under way to those that are pinned to it goes the old way as well.
        for client in self.pins.behind(obu) {
            self.late.add(now, client, obu);
        }
        if self.obus.take_reported(obu) {
            self.event(Event::ObuDetached { obu });
        }
    }

    /// Without a LAN nobody is attached to us: heartbeats stop, and everybody is told to go. Who
    /// has gone elsewhere the LAN could not tell us, so who is here is to say so again.
    pub(super) fn let_all_go(&mut self, now: Timestamp) {
        let attached: Vec<_> = self.obus.each_attached().map(|(obu, _)| obu).collect();
        for obu in attached {
            self.obus.lose(now, obu);
            self.let_go(now, obu);
        }
    }

    /// Answers a word of `obu`, if there is a way to it.
    pub(super) fn answer(
        &mut self,
        obu: NodeId,
        way: Result<WayDown, NoWay>,
        status: AckStatus,
        about: About,
        out: &mut Replies,
    ) {
        if let Some(way) = self.expect_way(obu, way) {
            self.send_ack(obu, way, status, about, out);
        }
    }

    /// Answers a word of `obu`, which is found this way.
    pub(in crate::control) fn send_ack(
        &mut self,
        obu: NodeId,
        way: WayDown,
        status: AckStatus,
        About { seq, epoch, digest, part, parts }: About,
        out: &mut Replies,
    ) {
        let (destination, rsu, first) = (obu, self.radio.id, way.first.mac);
        let way = way.as_sent();
        let ack =
            AnnouncementAck { destination, rsu, epoch, seq, digest, part, parts, status, way };
        self.radio.control(first, ack, out, &mut self.counters);
    }

    /// The way there is; or it is counted, and where it is too long reported, that there is none.
    pub(in crate::control) fn expect_way(
        &mut self,
        obu: NodeId,
        way: Result<WayDown, NoWay>,
    ) -> Option<WayDown> {
        match way {
            Ok(way) => return Some(way),
            Err(NoWay::Unknown) => self.counters.drop_no_route += 1,
            Err(NoWay::TooLong) => {
                self.counters.drop_hop_limit += 1;
                self.far = Some(obu);
            }
        }
        None
    }

    /// Forgets OBUs that fell silent.
    pub(super) fn drop_silent(&mut self, now: Timestamp) {
        for (obu, standing) in self.obus.silent(now).collect::<Vec<_>>() {
            if standing == Standing::Attached {
                self.obus.give_up(now, obu);
                self.let_go(now, obu);
            } else {
                self.obus.forget(obu);
            }
        }
    }
}
