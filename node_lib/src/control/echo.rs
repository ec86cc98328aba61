//! Echoes: what a node makes of a question on its way, and of an answer: [`Echoes`]. Where a
//! question goes next is for the role to say.

use std::collections::VecDeque;
use std::time::Duration;

use arrayvec::ArrayVec;

use crate::control::counters::Counters;
use crate::control::next_hop::NextHop;
use crate::control::ping::{Echoed, Ping};
use crate::control::radio::Radio;
use crate::control::replies::Replies;
use crate::control::token_bucket::TokenBucket;
use crate::mac::{Mac, NodeId};
use crate::messages::control::echo::{Echo, PATH_MAX, Path, Verdict};
use crate::time::Timestamp;

/// Questions are answered at most 20 times a second, 40 at once: a trace of the longest way asks
/// sixteen times, and some operators may do so at the same time.
const ANSWERS: TokenBucket = TokenBucket::new(40, Duration::from_millis(50));

/// Of others at most 100 echoes a second are passed on, 100 at once.
const PASSED_ON: TokenBucket = TokenBucket::new(100, Duration::from_millis(10));

/// Questions of ours under way; beyond, the oldest is forgotten.
const ASKED_MAX: usize = 64;

/// Answers that wait for whoever asked; beyond, the oldest is lost.
const TOLD_MAX: usize = 64;

/// Ids on a path, as they stand in a message.
pub type Ids = ArrayVec<[u8; NodeId::LEN], PATH_MAX>;

/// Where a question goes from here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "it lives for one frame; a box would be allocated")]
pub enum EchoStep {
    /// It has come to its end.
    End(Verdict),
    /// To this neighbour, and then to these, if they are known already.
    To(NextHop, Ids),
}

/// A question that is to go on from this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    nonce: u32,
    /// Id of a node, or address of a client.
    pub target: Mac,
    /// Whose way up it takes.
    pub rsu: NodeId,
    /// Hops it may still go.
    pub hop_limit: u8,
    /// Who asks, and everybody up to this node; behind it those an RSU has added.
    path: Ids,
    /// The place of this node.
    at: usize,
}

impl Question {
    /// Whom the path names after this node. `None`: nobody, it goes up.
    pub fn next(&self) -> Option<NodeId> {
        self.path.get(self.at + 1).map(|&id| NodeId(id))
    }

    /// The path names this node last, and an RSU has named it: it does not go up from here.
    pub fn is_at_its_end(&self, us: NodeId) -> bool {
        self.next().is_none() && us != self.rsu && self.has_come_down()
    }

    /// An RSU is on the path before this node.
    fn has_come_down(&self) -> bool {
        self.path.iter().take(self.at).any(|&id| NodeId(id) == self.rsu)
    }
}

/// What is to be done with an echo that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "it lives for one frame; a box would be allocated")]
pub enum Handling {
    /// Nothing more.
    Done,
    /// It is a question: the role says where it goes.
    Question(Question),
    /// It is an answer for somebody before us: it goes on to this neighbour.
    Back(NodeId),
}

/// The echoes of a node.
#[derive(Clone, Debug)]
pub struct Echoes {
    answers: TokenBucket,
    passed_on: TokenBucket,
    asked: VecDeque<(u32, Timestamp)>,
    told: VecDeque<Echoed>,
}

impl Default for Echoes {
    fn default() -> Self {
        Self {
            answers: ANSWERS,
            passed_on: PASSED_ON,
            asked: VecDeque::new(),
            told: VecDeque::new(),
        }
    }
}

impl Echoes {
    /// An operator asks. [`Self::go_on`] follows, with where it goes.
    pub fn ask(&mut self, now: Timestamp, us: NodeId, rsu: NodeId, ping: Ping) -> Question {
        if self.asked.len() >= ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((ping.nonce, now));
        let Ping { target, hop_limit, nonce } = ping;
        Question { nonce, target, rsu, hop_limit, path: Ids::from_iter([us.0]), at: 0 }
    }

    /// An echo that is for us was heard.
    pub fn hear(
        &mut self,
        now: Timestamp,
        us: NodeId,
        echo: &Echo<'_>,
        counters: &mut Counters,
    ) -> Handling {
        counters.echo_rx += 1;
        let at = usize::from(echo.at);
        let is_named = echo.path.get(at).map(|id| id == us);
        let is_answer = echo.verdict.is_some();
        let mut path: Ids = echo.path.iter().map(|id| id.0).collect();
        match (is_named, is_answer) {
            // The next one on the way, which adds itself.
            (None, false) if !path.is_full() => path.push(us.0),
            (Some(true), _) => {}
            _ => {
                counters.drop_echo_stray += 1;
                return Handling::Done;
            }
        }
        if !is_answer {
            let &Echo { nonce, target, rsu, hop_limit, .. } = echo;
            return Handling::Question(Question { nonce, target, rsu, hop_limit, path, at });
        }
        match at.checked_sub(1).and_then(|before| echo.path.get(before)) {
            Some(before) => {
                if !self.passed_on.take(now) {
                    counters.drop_echo_limit += 1;
                    return Handling::Done;
                }
                Handling::Back(before)
            }
            None => {
                self.take_answer(now, echo, counters);
                Handling::Done
            }
        }
    }

    fn take_answer(&mut self, now: Timestamp, echo: &Echo<'_>, counters: &mut Counters) {
        let place = self.asked.iter().position(|(nonce, _)| *nonce == echo.nonce);
        let asked = place.and_then(|place| self.asked.remove(place));
        let (Some((nonce, at)), Some(verdict)) = (asked, echo.verdict) else {
            counters.drop_echo_stray += 1;
            return;
        };
        let round_trip_us = u64::try_from(now.since(at).as_micros()).unwrap_or(u64::MAX);
        self.tell(Echoed { nonce, verdict, path: echo.path.iter().collect(), round_trip_us });
    }

    fn tell(&mut self, echoed: Echoed) {
        if self.told.len() >= TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(echoed);
    }

    /// Answers a question that came from `from`, or passes it on: one frame at most.
    pub fn go_on(
        &mut self,
        now: Timestamp,
        (question, from): (Question, Option<Mac>),
        step: EchoStep,
        radio: &Radio,
        (out, counters): (&mut Replies, &mut Counters),
    ) {
        let Question { nonce, target, rsu, hop_limit, mut path, at } = question;
        let step = match step {
            EchoStep::To(..) if hop_limit == 0 => EchoStep::End(Verdict::HopLimit),
            // A path that is full goes no further either.
            EchoStep::To(_, beyond) if path.len() + beyond.len() > PATH_MAX => {
                EchoStep::End(Verdict::HopLimit)
            }
            step => step,
        };
        let (to, bucket, at, hop_limit, verdict) = match step {
            EchoStep::To(to, beyond) => {
                path.extend(beyond);
                (to, &mut self.passed_on, at + 1, hop_limit - 1, None)
            }
            EchoStep::End(verdict) => {
                path.truncate(at + 1);
                let Some(from) = from else {
                    self.asked.retain(|(asked, _)| *asked != nonce);
                    let path = path.into_iter().map(NodeId).collect();
                    self.tell(Echoed { nonce, verdict, path, round_trip_us: 0 });
                    return;
                };
                let to = NextHop { mac: from, mtu: u16::MAX };
                let Some(at) = at.checked_sub(1) else { return };
                (to, &mut self.answers, at, hop_limit, Some(verdict))
            }
        };
        // An operator who asks is not kept from it.
        if from.is_some() && !bucket.take(now) {
            counters.drop_echo_limit += 1;
            return;
        }
        let (Ok(path), Ok(at)) = (Path::new(&path), u8::try_from(at)) else { return };
        let echo = Echo { nonce, target, rsu, hop_limit, verdict, at, path };
        send(radio, to, echo, out, counters);
    }

    /// Passes an answer on to the neighbour before us, if there is one.
    pub fn go_back(
        &self,
        echo: &Echo<'_>,
        to: Option<Mac>,
        radio: &Radio,
        (out, counters): (&mut Replies, &mut Counters),
    ) {
        let Some(mac) = to else {
            counters.drop_echo_stray += 1;
            return;
        };
        let to = NextHop { mac, mtu: u16::MAX };
        send(radio, to, Echo { at: echo.at.saturating_sub(1), ..*echo }, out, counters);
    }

    /// The oldest answer not yet handed out.
    pub fn poll(&mut self) -> Option<Echoed> {
        self.told.pop_front()
    }
}

fn send(radio: &Radio, to: NextHop, echo: Echo<'_>, out: &mut Replies, counters: &mut Counters) {
    if echo.wire_len() > radio.mtu.min(to.mtu.into()) {
        counters.drop_oversize += 1;
        return;
    }
    radio.control(to.mac, echo, out, counters);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::control::node::ReplyType;
    use crate::messages::{ETHERTYPE_DEFAULT, Message};
    use crate::order::Boot;

    const fn node(last: u8) -> NodeId {
        NodeId([2, 0, 0, 0, 0, last])
    }

    const US: NodeId = node(5);
    const FROM: Mac = Mac([2, 0, 0, 0, 0, 4]);

    fn radio() -> Radio {
        Radio::new(US, Boot(1), Mac(US.0), ETHERTYPE_DEFAULT, 1500)
    }

    fn question(ids: &[[u8; 6]]) -> Echo<'_> {
        Echo {
            nonce: 7,
            target: Mac([2, 0, 0, 0, 0xc, 1]),
            rsu: node(1),
            hop_limit: 3,
            verdict: None,
            at: u8::try_from(ids.len()).unwrap(),
            path: Path::new(ids).unwrap(),
        }
    }

    #[test]
    fn so_many_are_answered_and_passed_on_and_the_rest_is_counted() {
        let ids = [node(4).0];
        let next = NextHop { mac: Mac([2; 6]), mtu: 1500 };
        for (step, most) in
            [(EchoStep::End(Verdict::Reached), 40), (EchoStep::To(next, Ids::new()), 100)]
        {
            let (mut echoes, mut counters) = (Echoes::default(), Counters::default());
            let now = Timestamp::from_millis(5000);
            let mut sent = 0;
            for _ in 0..1000 {
                let mut out = Replies::new();
                let heard = echoes.hear(now, US, &question(&ids), &mut counters);
                let Handling::Question(question) = heard else { panic!("{heard:?}") };
                let sides = (&mut out, &mut counters);
                echoes.go_on(now, (question, Some(FROM)), step.clone(), &radio(), sides);
                assert!(out.as_slice().len() <= 1, "no amplification");
                sent += out.as_slice().len();
            }
            assert_eq!((sent, counters.drop_echo_limit), (most, 1000 - most as u64));
        }
    }

    #[test]
    fn an_answer_nobody_waits_for_or_for_another_is_a_stray() {
        let ids = [US.0, node(4).0];
        let answer = Echo { verdict: Some(Verdict::Reached), at: 0, ..question(&ids) };
        let (mut echoes, mut counters) = (Echoes::default(), Counters::default());
        let now = Timestamp::from_millis(5000);
        assert_eq!(echoes.hear(now, US, &answer, &mut counters), Handling::Done);
        assert_eq!((counters.drop_echo_stray, echoes.poll()), (1, None));
        echoes.ask(now, US, node(1), Ping { target: answer.target, hop_limit: 3, nonce: 7 });
        let later = now + Duration::from_millis(9);
        assert_eq!(echoes.hear(later, US, &answer, &mut counters), Handling::Done);
        let echoed = echoes.poll().unwrap();
        assert_eq!((echoed.round_trip_us, echoed.path), (9000, vec![US, node(4)]));
        // Once.
        echoes.hear(later, US, &answer, &mut counters);
        assert_eq!((counters.drop_echo_stray, echoes.poll()), (2, None));
        let others = [node(8).0, node(9).0];
        let named = Echo { at: 1, ..question(&others) };
        assert_eq!(echoes.hear(now, US, &named, &mut counters), Handling::Done);
        assert_eq!(counters.drop_echo_stray, 3);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let (mut echoes, mut counters) = (Echoes::default(), Counters::default());
        let now = Timestamp::from_millis(5000);
        for nonce in 0..1000 {
            let ping = Ping { target: Mac(US.0), hop_limit: 1, nonce };
            let question = echoes.ask(now, US, node(1), ping);
            let sides = (&mut Replies::new(), &mut counters);
            echoes.go_on(now, (question, None), EchoStep::End(Verdict::Reached), &radio(), sides);
        }
        assert_eq!(std::iter::from_fn(|| echoes.poll()).count(), TOLD_MAX);
        assert!(echoes.asked.is_empty(), "they were answered");
        for nonce in 0..1000 {
            echoes.ask(now, US, node(1), Ping { target: FROM, hop_limit: 1, nonce });
        }
        assert_eq!(echoes.asked.len(), ASKED_MAX);
    }

    #[test]
    fn the_path_of_an_answer_ends_with_who_gives_it() {
        // An RSU has planned a way through us to 9; it ends here.
        let ids = [node(3).0, node(1).0, US.0, node(9).0];
        let planned = Echo { at: 2, hop_limit: 0, ..question(&ids) };
        let (mut echoes, mut counters) = (Echoes::default(), Counters::default());
        let now = Timestamp::from_millis(5000);
        let heard = echoes.hear(now, US, &planned, &mut counters);
        let Handling::Question(question) = heard else { panic!("{heard:?}") };
        assert_eq!(question.next(), Some(node(9)));
        let next = NextHop { mac: Mac(node(9).0), mtu: 1500 };
        let mut out = Replies::new();
        let sides = (&mut out, &mut counters);
        echoes.go_on(now, (question, Some(FROM)), EchoStep::To(next, Ids::new()), &radio(), sides);
        let [ReplyType::WireFlat(flat)] = out.as_slice() else { panic!("one frame") };
        let message = Message::parse(flat, ETHERTYPE_DEFAULT).unwrap();
        assert_eq!(message.to, FROM);
        let echo = Echo::try_from(&flat[14..]).unwrap();
        assert_eq!((echo.verdict, echo.at), (Some(Verdict::HopLimit), 1));
        assert_eq!(echo.path.iter().collect::<Vec<_>>(), [node(3), node(1), US]);
    }
}
