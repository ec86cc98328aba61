//! Who is behind an OBU from its announcement to its departure.

use node_lib::control::client_cache::Learnt;
use node_lib::control::event::Event;
use node_lib::control::node::Replies;
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, NodeId, Timestamp};

use super::super::clients::{HEARD_LATELY, Port};
use super::Rsu;

impl Rsu {
    /// An announced client is behind `obu` from now on.
    pub(super) fn take_over(&mut self, now: Timestamp, obu: NodeId, client: Client) {
        if let Some(Port::Obu(other)) = self.clients.owner(now, client) {
            let heard = self.clients.last_used(client);
            let is_alive_there = heard.is_some_and(|at| now.since(at) < HEARD_LATELY)
                && self.downstream.path(now, other).is_some();
            if other != obu && is_alive_there {
                return;
            }
        }
        let (learnt, evicted) = self.clients.learn(now, client, Port::Obu(obu));
        self.counters.evicted += evicted;
        if learnt != Learnt::Known {
            self.wired.add(now, client);
        }
    }

    /// What is announced is complete: others of this OBU that did not just speak are gone.
    pub(super) fn drop_clients_not_in(&mut self, now: Timestamp, obu: NodeId, set: &[Client]) {
        for client in self.clients.clients_of(Port::Obu(obu)) {
            let spoke = self.clients.last_used(client);
            let spoke_lately = spoke.is_some_and(|at| now.since(at) < HEARD_LATELY);
            if set.binary_search(&client).is_err() && !spoke_lately {
                self.clients.forget(client);
            }
        }
    }

    /// Sends an acknowledgement down to `obu`: along the known path, or to `next_hop`.
    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    pub(in crate::control) fn send_ack(
        &mut self,
        now: Timestamp,
        obu: NodeId,
        next_hop: Option<Mac>,
        status: AckStatus,
        epoch: u32,
        (part, parts): (u8, u8),
        digest: u32,
        out: &mut Replies,
    ) {
        let known = self.downstream.path(now, obu).map(|path| path.next);
        let Some(to) = known.or(next_hop) else {
            self.counters.drop_no_route += 1;
            return;
        };
        let ack = AnnouncementAck {
            destination: obu,
            rsu: self.radio.id,
            epoch,
            hop_limit: HOP_LIMIT,
            part,
            parts,
            status,
            digest,
        };
        self.radio.control(to, ack, out, &mut self.counters);
    }

    pub(super) fn detach(&mut self, now: Timestamp, obu: NodeId) {
        self.downstream.retire(now, obu);
        self.clients.forget_owner(Port::Obu(obu));
        if self.obus.forget(obu) {
            self.event(Event::ObuDetached { obu });
        }
    }
}
