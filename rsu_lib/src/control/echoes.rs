//! Where an RSU sends a question that an operator asks, here or elsewhere ([`Echoes`]): down the
//! way data for the target would take.

use node_lib::control::client_cache::client;
use node_lib::control::echo::{EchoStep, Handling, Ids, Question};
use node_lib::control::node::Replies;
use node_lib::control::ping::Ping;
use node_lib::messages::control::echo::{Echo, Verdict};
use node_lib::{Mac, NodeId, Timestamp};

use super::clients::Port;
use super::node::Rsu;

#[cfg(doc)]
use node_lib::control::echo::Echoes;

impl Rsu {
    /// An operator asks.
    pub(super) fn ask_echo(&mut self, now: Timestamp, ping: Ping, out: &mut Replies) {
        let us = self.radio.id;
        let question = self.echoes.ask(now, us, us, ping);
        self.pass_echo(now, question, None, out);
    }

    /// A neighbour sent us a question or an answer.
    pub(super) fn hear_echo(
        &mut self,
        now: Timestamp,
        from: Mac,
        echo: &Echo<'_>,
        out: &mut Replies,
    ) {
        if echo.rsu != self.radio.id {
            self.counters.drop_echo_stray += 1;
            return;
        }
        match self.echoes.hear(now, self.radio.id, echo, &mut self.counters) {
            Handling::Done => {}
            Handling::Question(question) => self.pass_echo(now, question, Some(from), out),
            Handling::Back(to) => {
                let to = self.obus.mac_of(to);
                self.echoes.go_back(echo, to, &self.radio, (out, &mut self.counters));
            }
        }
    }

    fn pass_echo(
        &mut self,
        now: Timestamp,
        question: Question,
        from: Option<Mac>,
        out: &mut Replies,
    ) {
        let step = self.step_of_echo(now, &question);
        let sides = (out, &mut self.counters);
        self.echoes.go_on(now, (question, from), step, &self.radio, sides);
    }

    fn step_of_echo(&self, now: Timestamp, question: &Question) -> EchoStep {
        let target = question.target;
        if target == Mac(self.radio.id.0) {
            return EchoStep::End(Verdict::Reached);
        }
        let port = match self.port_of(now, target) {
            _ if self.obus.knows(NodeId(target.0)) => Some(Port::Obu(NodeId(target.0))),
            port => port,
        };
        match port {
            Some(Port::Tap) => EchoStep::End(Verdict::Client),
            None if Some(target) == self.tap_mac => EchoStep::End(Verdict::Client),
            None => EchoStep::End(Verdict::Unknown),
            Some(Port::Obu(obu)) => {
                let Ok(way) = self.obus.way(obu) else { return EchoStep::End(Verdict::NoRoute) };
                let relays = self.obus.relays_to(obu).unwrap_or_default();
                let path: Ids = relays.iter().chain([&obu]).map(|id| id.0).collect();
                EchoStep::To(way.first, path)
            }
        }
    }

    /// Where a client is, of all VLANs the untagged one first.
    fn port_of(&self, now: Timestamp, mac: Mac) -> Option<Port> {
        self.owner(now, client(0, mac)).or_else(|| {
            let mut known = self.clients.iter(now);
            known.find(|known| known.client.mac == mac).map(|known| known.owner)
        })
    }
}
