//! Neighbours and RSUs that answer what the OBU says and asks.

use node_lib::messages::Way;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::probe::{AnsweredRoute, ProbeAnswer};
use node_lib::{Mac, Order, Seq};

use super::heard::{Heard, answer};
use super::said::Word;
use super::{A, RSU, Talk, US, id};

impl Talk {
    /// The RSU it was for acknowledges the last word that wants it.
    pub(crate) fn acknowledge(&mut self, via: Mac) {
        let word = *self.words().last().expect("a word that is to be acknowledged");
        self.answer(via, word, AckStatus::Accepted);
    }

    /// Each RSU acknowledges what it was told.
    pub(crate) fn acknowledge_all(&mut self) {
        for word in self.words() {
            self.answer(word.to, word, AckStatus::Accepted);
        }
    }

    /// The same, but those of our own RSU.
    pub(crate) fn acknowledge_all_there(&mut self) {
        for word in self.words().into_iter().filter(|word| word.rsu != RSU) {
            self.answer(word.to, word, AckStatus::Accepted);
        }
    }

    /// The answer of an RSU to a word of ours.
    pub(crate) fn answer(&mut self, via: Mac, to: Word, status: AckStatus) {
        let ack = AnnouncementAck {
            destination: id(US),
            rsu: id(to.rsu),
            epoch: to.epoch,
            seq: to.seq,
            digest: to.digest,
            part: to.part.0,
            parts: to.part.1,
            status,
            way: Way::END,
        };
        self.wire(via, US, ack.into());
    }

    /// The RSU's answer to somebody behind us, on its way there.
    pub(crate) fn answer_passes(&mut self, via: Mac, to: Mac) {
        let ack = AnnouncementAck {
            destination: id(to),
            rsu: id(self.rsu),
            epoch: 1,
            seq: Seq(1),
            digest: 0,
            part: 0,
            parts: 1,
            status: AckStatus::Accepted,
            way: Way::END,
        };
        self.wire(via, US, ack.into());
    }

    /// Lets time pass until `who` is asked, and answers; A answers as well meanwhile.
    pub(crate) fn prove(&mut self, who: Mac, seq: u32, hops: u8) {
        for _ in 0..2000 {
            if let Some(nonce) = self.last_probe(who) {
                self.hear(self.now, who, Heard::answer(nonce, seq, hops));
                self.forget_sent_to(who);
                return;
            }
            self.pass(self.now + 1);
            self.answer_probes_of(A);
            if self.now.is_multiple_of(90) {
                self.beat(A, 1);
                self.hear(self.now, who, Heard::heartbeat(self.seq, hops));
            }
        }
        panic!("{who} was never asked");
    }

    /// `who`, so many hops from this RSU that is not ours, answers what it is asked; A stays our
    /// upstream.
    pub(crate) fn prove_towards(&mut self, rsu: Mac, who: Mac, hops: u8) {
        for seq in 2..100 {
            self.pass(self.now + 50);
            self.rsu = RSU;
            self.beat(A, 1);
            self.rsu = rsu;
            self.hear(self.now, who, Heard::heartbeat(seq, hops));
            if let Some(nonce) = self.last_probe(who) {
                self.hear(self.now, who, Heard::answer(nonce, seq, hops));
            }
            if self.obu.upstream_for(id(rsu)) == Some(id(who)) {
                self.rsu = RSU;
                return;
            }
        }
        panic!("{who} was never asked");
    }

    /// A brings a heartbeat, `who` brings it as well, and shows that it hears us.
    pub(crate) fn prove_beside_a(&mut self, who: Mac) {
        let seq = self.beat(A, 1);
        self.hear(self.now, who, Heard::heartbeat(seq, 1));
        self.prove(who, seq, 1);
    }

    /// `who`, one hop from the RSU, answers what it was asked.
    pub(crate) fn answer_probes_of(&mut self, who: Mac) {
        if let Some(nonce) = self.last_probe(who) {
            self.hear(self.now, who, Heard::answer(nonce, self.seq, 1));
            self.forget_sent_to(who);
        }
    }

    /// The upstream that speaks answers what it was asked since it last did; who only hears it is
    /// no upstream for long.
    pub(super) fn answer_as_upstream(
        &mut self,
        from: Mac,
        (boot, seq, hops): (u32, u32, u8),
        via: Option<Mac>,
    ) {
        let is_upstream = self.obu.attachment().is_some_and(|to| to.upstream == id(from));
        let asked = self.asked_last.take_if(|(whom, _)| is_upstream && *whom == from);
        let Some((_, nonce)) = asked.filter(|_| !self.is_deaf) else { return };
        let answer = answer(id(self.rsu), from, US, nonce, seq, hops);
        let route = answer.route.map(|route| AnsweredRoute {
            order: Order::new(boot, seq),
            via: via.map_or(route.via, id),
            ..route
        });
        self.wire(from, US, ProbeAnswer { route, mtu: self.mtu, ..answer }.into());
    }
}
