//! Where an OBU sends a question that an operator asks, here or elsewhere ([`Echoes`]): to where it
//! would send data.

use node_lib::control::echo::{EchoStep, Handling, Ids, Question};
use node_lib::control::node::Replies;
use node_lib::control::ping::Ping;
use node_lib::messages::control::echo::{Echo, Verdict};
use node_lib::{Mac, NodeId, Timestamp};

use super::node::Obu;

#[cfg(doc)]
use node_lib::control::echo::Echoes;

impl Obu {
    /// An operator asks.
    pub(super) fn ask_echo(&mut self, now: Timestamp, ping: Ping, out: &mut Replies) {
        let us = self.context.id();
        let target = NodeId(ping.target.0);
        // An RSU is asked over our way to it; all else over the one our data take.
        let rsu = match self.attached {
            _ if self.routes.contains_key(&target) => target,
            Some(attached) => attached.rsu,
            None => NodeId::NONE,
        };
        let question = self.echoes.ask(now, us, rsu, ping);
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
        let us = self.context.id();
        match self.echoes.hear(now, us, echo, &mut self.context.counters) {
            Handling::Done => {}
            Handling::Question(question) => self.pass_echo(now, question, Some(from), out),
            Handling::Back(to) => {
                let to = self.neighbour_called(now, to, echo.rsu);
                let sides = (out, &mut self.context.counters);
                self.echoes.go_back(echo, to, &self.context.radio, sides);
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
        let step = self.step_of_echo(now, &question, from);
        let sides = (out, &mut self.context.counters);
        self.echoes.go_on(now, (question, from), step, &self.context.radio, sides);
    }

    fn step_of_echo(&self, now: Timestamp, question: &Question, from: Option<Mac>) -> EchoStep {
        let us = self.context.id();
        if question.target == Mac(us.0) {
            return EchoStep::End(Verdict::Reached);
        }
        if self.clients.has(now, question.target) {
            return EchoStep::End(Verdict::Client);
        }
        if question.is_at_its_end(us) {
            return EchoStep::End(Verdict::Unknown);
        }
        let is_back = |mac: Mac| Some(mac) == from;
        let to = match question.next() {
            Some(child) => {
                let hops = self.children.named(now, question.rsu, child);
                hops.into_iter().find(|hop| !is_back(hop.mac))
            }
            None => {
                let route = self.routes.get(&question.rsu);
                let route = route.filter(|route| !route.is_quiet(&self.context, now));
                let upstream = route.and_then(|route| route.upstream());
                upstream.filter(|mac| !is_back(*mac)).map(|mac| self.hop(question.rsu, mac))
            }
        };
        to.map_or(EchoStep::End(Verdict::NoRoute), |to| EchoStep::To(to, Ids::new()))
    }

    /// The address of a neighbour.
    fn neighbour_called(&self, now: Timestamp, id: NodeId, rsu: NodeId) -> Option<Mac> {
        let child = self.children.named(now, rsu, id).first().map(|hop| hop.mac);
        child.or_else(|| {
            let mut known = self.context.neighbours.iter();
            known.find(|(_, known)| known.id == id).map(|(mac, _)| mac)
        })
    }
}
