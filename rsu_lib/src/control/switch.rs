//! The RSU as a learning switch: behind which port each client is.

use std::time::Duration;

use node_lib::control::client_cache::{Learnt, Lesson, client};
use node_lib::control::deadline::Deadline;
use node_lib::control::event::Event;
use node_lib::control::inner::Inner;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::ethernet::RARP;
use node_lib::{NodeId, Timestamp};

use super::addresses::snooping::{may_state, payload, said};
use super::clients::{HEARD_LATELY, Port};
use super::departed::{FAREWELL, LATE_FOR};
use super::lan_announce;
use super::lan_announce::rarp::Whereabouts;
use super::node::Rsu;

impl Rsu {
    /// Where frames for this client go: where it is pinned to, or else where it is known to be.
    #[inline]
    pub(in crate::control) fn owner(&self, now: Timestamp, client: Client) -> Option<Port> {
        match self.pins.in_effect(client, &self.obus) {
            Some(obu) => Some(Port::Obu(obu)),
            None => self.clients.owner(now, client),
        }
    }

    /// The client is pinned, and not to where it was heard or announced: counted, and nothing else.
    #[inline]
    pub(in crate::control) fn is_pinned_elsewhere(&mut self, client: Client, port: Port) -> bool {
        let at = self.pins.in_effect(client, &self.obus);
        let is_elsewhere = at.is_some_and(|obu| Port::Obu(obu) != port);
        self.counters.pins_held += u64::from(is_elsewhere);
        is_elsewhere
    }

    /// A pin is in effect from now on: what was known of the client elsewhere is not true any more.
    pub(in crate::control) fn begin_pin(&mut self, now: Timestamp, client: Client, obu: NodeId) {
        if self.clients.owner(now, client) != Some(Port::Obu(obu)) {
            self.clients.forget(client);
        }
        self.late.remove(client);
        self.name_to_lan(now, client);
    }

    /// The LAN is told that this client is behind us.
    pub(in crate::control) fn name_to_lan(&mut self, now: Timestamp, client: Client) {
        let has_room = self.wired.add(now, client);
        self.counters.wired_limited += u64::from(!has_room);
        self.wake_at(Deadline::new(now, lan_announce::DUE));
    }

    /// The client was heard where it is, a moment ago.
    pub(in crate::control) fn has_spoken(&self, now: Timestamp, client: Client) -> bool {
        self.clients.last_heard(client).is_some_and(|at| now.since(at) < HEARD_LATELY)
    }

    /// A client's frame came through `port`. Whether the LAN must be told that the client is here.
    // Always: else what was just read of the frame is written to memory only to be read again, in
    // parts of other sizes, which makes the processor wait.
    #[inline(always)]
    pub(in crate::control) fn learn(
        &mut self,
        now: Timestamp,
        inner: Inner,
        frame: &[u8],
        port: Port,
    ) -> bool {
        let client = client(inner.vlan, inner.source);
        if self.is_pinned_elsewhere(client, port) {
            return false;
        }
        // What another RSU still had of a client that has just come here does not take it back;
        // that RSU's reverse ARP does.
        let settled_for = match port {
            Port::Tap if inner.ethertype != RARP => LATE_FOR,
            Port::Tap if self.keeps_against(now, client, payload(frame)) => return false,
            _ => Duration::ZERO,
        };
        let Lesson { learnt, evicted } = self.clients.learn_settled(now, client, port, settled_for);
        self.counters.evicted += evicted;
        let payload = payload(frame);
        // What is stated is read always; what can only be concluded, where more is done anyway.
        let is_due = learnt != Learnt::Known && port != Port::Tap;
        if is_due || may_state(inner, payload) {
            self.note_said(inner, payload);
        }
        learnt != Learnt::Known && self.note_learnt(now, client, port, learnt)
    }

    /// Keeps a client that another RSU names, if that has not heard yet what its OBU has told us
    /// since. Switches have learnt from it all the same, so the LAN is told again.
    #[cold]
    fn keeps_against(&mut self, now: Timestamp, client: Client, payload: &[u8]) -> bool {
        let (said, owner) = (Whereabouts::read(payload), self.clients.owner(now, client));
        let Some((said, Port::Obu(obu))) = said.zip(owner) else { return false };
        let keeps = self.obus.is_attached(obu) && self.obus.whereabouts(obu).is_newer_than(said);
        if keeps {
            // Nor does anything else take it that comes from there now.
            self.clients.settle(now, client);
            self.name_to_lan(now, client);
        }
        keeps
    }

    /// Notes what the frame says about its sender's addresses.
    #[cold]
    fn note_said(&mut self, inner: Inner, payload: &[u8]) {
        if let Some(said) = said(inner, payload) {
            self.addresses.note(client(inner.vlan, inner.source), said);
        }
    }

    /// Does what it means that the client was heard where it was not heard lately. Whether the LAN
    /// must be told that the client is here.
    #[cold]
    fn note_learnt(
        &mut self,
        now: Timestamp,
        client: Client,
        port: Port,
        learnt: Learnt<Port>,
    ) -> bool {
        match learnt {
            Learnt::Moved(Port::Obu(obu)) if port == Port::Tap => {
                self.late.add(now, client, obu);
                if !self.clients.has_clients(Port::Obu(obu)) && self.obus.is_attached(obu) {
                    let at = now + LATE_FOR;
                    self.leaving.insert(obu, at);
                    self.wake_at(Deadline::new(at, FAREWELL));
                }
                false
            }
            Learnt::Moved(_) => true,
            Learnt::Held { first } => {
                if first {
                    self.counters.clients_damped += 1;
                    if self.held_reports.take(now) {
                        self.event(Event::ClientHeld { client });
                    }
                    return self.hold(now, client, port);
                }
                false
            }
            Learnt::Known | Learnt::Renewed | Learnt::New => false,
        }
    }

    /// A client that moves too often has been put back to where it was before. Whether the LAN must
    /// be told.
    fn hold(&mut self, now: Timestamp, client: Client, port: Port) -> bool {
        match self.clients.owner(now, client) {
            Some(Port::Obu(obu)) if !(self.obus.is_here(obu) && self.obus.is_reached(obu)) => {
                // Nobody is there any more.
                self.clients.claim(now, client, port);
                port != Port::Tap
            }
            Some(Port::Obu(_)) => true,
            Some(Port::Tap) | None => false,
        }
    }
}
