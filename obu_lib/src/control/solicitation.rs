//! Asking the neighbourhood for a way without waiting for the next heartbeat, and answering.
//!
//! A node without a way broadcasts a probe that names no RSU. Neighbours with a way answer by
//! broadcast after a short random wait, unless two others did before: the answer also serves
//! everybody else in earshot, and a crowd does not answer all at once.

use std::time::Duration;

use node_lib::control::deadline::Deadline;
use node_lib::{NodeId, Timestamp};

use super::context::Context;

/// The first question waits a random time up to this: when a relay is lost, many lose their way at
/// once, and what one is answered the others hear.
const ASK_WITHIN: Duration = Duration::from_millis(5);

/// In a crowd, those that have time wait longer, from half of this up to all of it: they know
/// neighbours whom they ask first, and hear what others say. They ask no more often either: when a
/// town is switched on, relays listen for longer than that before they have an answer.
const KNOWN_FIRST: Duration = Duration::from_millis(250);

/// The first questions follow each other this fast: a vehicle that starts beside an RSU must not
/// wait …
const FAST_EVERY: Duration = Duration::from_millis(25);
const FAST_TIMES: u32 = 8;

/// … the next ones are slower …
const SLOW_EVERY: Duration = Duration::from_millis(100);
const SLOW_TIMES: u32 = 24;

/// … and a vehicle alone on the road hardly speaks.
const IDLE_EVERY: Duration = Duration::from_secs(1);

/// Questions of ours that may still be answered.
const NONCES_MAX: usize = 4;

/// Answers wait a random time from 1 ms up to this more …
const ANSWER_WITHIN: Duration = Duration::from_millis(6);

/// … and are not sent when so many others answered before.
const ANSWERS_ENOUGH: u32 = 2;

/// Answers waiting at once; a node asked more often than that is not needed by the rest.
const WAITING_MAX: usize = 16;

/// A question to all, as it was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) asker: NodeId,
    pub(crate) nonce: u32,
}

#[derive(Clone, Debug)]
struct Waiting {
    question: Asked,
    at: Timestamp,
    others: u32,
}

/// Our questions, and others' questions waiting for our answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solicitation {
    asked: u32,
    ask_at: Timestamp,
    /// The next question waits because we have time.
    defers: bool,
    nonces: Vec<u32>,
    waiting: Vec<Waiting>,
}

impl Solicitation {
    /// We have no way (any more): ask soon and often.
    pub(crate) fn begin(&mut self, context: &mut Context, now: Timestamp) {
        self.asked = 0;
        let known_first = KNOWN_FIRST / 2;
        self.defers = context.may_defer(now);
        self.ask_at = if self.defers {
            now + known_first + context.random.up_to(known_first)
        } else {
            now + context.random.up_to(ASK_WITHIN)
        };
    }

    /// A client's frame has nowhere to go: there is no time any more.
    pub(crate) fn hurry(&mut self, now: Timestamp) {
        if self.asked == 0 || std::mem::take(&mut self.defers) {
            self.ask_at = self.ask_at.min(now);
        }
    }

    /// A question is due.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        now >= self.ask_at
    }

    /// The nonce of the question to ask now, if one is due.
    pub(crate) fn question(&mut self, context: &mut Context, now: Timestamp) -> Option<u32> {
        if now < self.ask_at {
            return None;
        }
        let wait = match self.asked {
            0..FAST_TIMES => FAST_EVERY,
            FAST_TIMES..SLOW_TIMES => SLOW_EVERY,
            _ => IDLE_EVERY,
        };
        self.defers = context.may_defer(now) && wait < KNOWN_FIRST;
        let wait = if self.defers { KNOWN_FIRST } else { wait };
        self.asked = self.asked.saturating_add(1);
        self.ask_at = now + context.random.jitter(wait, 25);
        let nonce = context.random.number();
        if self.nonces.len() >= NONCES_MAX {
            self.nonces.remove(0);
        }
        self.nonces.push(nonce);
        Some(nonce)
    }

    /// The answer is to a question of ours, so its sender hears us.
    pub(crate) fn is_ours(&self, nonce: u32) -> bool {
        self.nonces.contains(&nonce)
    }

    /// Somebody asks everybody.
    pub(crate) fn hear_question(
        &mut self,
        context: &mut Context,
        now: Timestamp,
        asker: NodeId,
        nonce: u32,
    ) {
        if self.waiting.len() >= WAITING_MAX
            || self.waiting.iter().any(|w| w.question.asker == asker)
        {
            context.counters.drop_rate_limit += 1;
            return;
        }
        let at = now + Duration::from_millis(1) + context.random.up_to(ANSWER_WITHIN);
        self.waiting.push(Waiting { question: Asked { asker, nonce }, at, others: 0 });
    }

    /// Somebody else answered.
    pub(crate) fn hear_answer(&mut self, asker: NodeId, nonce: u32) {
        for waiting in &mut self.waiting {
            if waiting.question == (Asked { asker, nonce }) {
                waiting.others += 1;
            }
        }
        self.waiting.retain(|waiting| waiting.others < ANSWERS_ENOUGH);
    }

    /// The next question to answer now.
    pub(crate) fn due_answer(&mut self, now: Timestamp) -> Option<Asked> {
        let at = self.waiting.iter().position(|waiting| now >= waiting.at)?;
        let waiting = self.waiting.remove(at);
        Some(waiting.question)
    }

    /// When there is something to do. `may_ask`: we want a way, and may ask for one from then on.
    pub(crate) fn deadline(&self, may_ask: Option<Timestamp>) -> Option<Deadline> {
        let ask = may_ask.map(|from| Deadline::new(self.ask_at.max(from), "ask who has a way"));
        let answer = |waiting: &Waiting| Deadline::new(waiting.at, "answer who asks for a way");
        self.waiting.iter().map(answer).chain(ask).reduce(Deadline::or)
    }
}
