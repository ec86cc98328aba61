//! Staying awake for the answer to a frame.
//!
//! Who asks over a short way hears the answer some tens of microseconds later. A core that went to
//! sleep in between has to wake up first. That takes part of that time again, most of all in a
//! virtual machine. So after a frame that was passed on alone the loop looks for the answer by
//! itself for a moment before it waits to be woken. So does `net.core.busy_poll` (Linux,
//! Documentation/admin-guide/sysctl/net.rst) for a socket, and a hypervisor for a guest that halts.
//!
//! Where answers take longer, or a stream flows one way, that is time for nothing. So it is done
//! only where it has lately helped, as adaptive halt polling does it
//! (Documentation/virt/kvm/halt-polling.rst): each way for itself, because an answer is seldom
//! answered. A relay passes on both the same way, and knows the answer by having looked for it.
//!
//! And only where nobody else wants the core. Whoever waits by looking lets others have it in
//! between, for the one that is to answer may be among them. If one that only computes is, it keeps
//! the core until the scheduler takes it away, some milliseconds later; a loop that sleeps gets it
//! as soon as it is woken. So a core that was lost once is not asked of for long, and for twice as
//! long each time that it is lost again.

use std::time::Duration;

use crate::device::Side;

/// Shares are in 256ths.
const ALL: u16 = 256;
/// The share of frames answered in time from which on it is worth while: an answer that comes at
/// once spares the asker a wake-up; one that does not costs nobody but our core.
const WORTH: u16 = ALL / 4;
/// Frames over which the share is taken, an exponentially weighted moving average.
const MEMORY: u16 = 8;
/// Where it was not worth while, one frame of these tells whether it is now. With the longest wait
/// of 1 ms that is 4 µs of processor time per frame, and less with the default.
const RETRY: u32 = 256;
/// The same at the most where the core was lost again and again: then one frame in so many is late.
const RETRY_MAX: u32 = 64 * RETRY;

/// What came of it since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyPollCounters {
    /// Frames whose answer was looked for.
    pub polls: u64,
    /// Those whose answer came meanwhile.
    pub answered: u64,
    /// Those for which the core was lost to somebody else.
    pub core_lost: u64,
}

impl BusyPollCounters {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { polls, answered, core_lost } = *self;
        [("polls", polls), ("answered", answered), ("core_lost", core_lost)].into_iter()
    }
}

/// What came of looking for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// The answer.
    InTime,
    /// No answer, or one for which we might have slept.
    TooLate,
    /// Others that wanted the core, for longer than it takes to answer.
    CoreLost,
}

/// Finds frames that are passed on alone, and remembers how often they were answered.
#[derive(Debug)]
pub(super) struct BusyPoll {
    limit: Duration,
    to_radio: Odds,
    to_tap: Odds,
    /// Frames passed on since the last wait, and where the last one went.
    passed_on: u32,
    to: Side,
    /// What is passed on next to this side is the answer we looked for.
    answered_by: Option<Side>,
    counters: BusyPollCounters,
}

impl BusyPoll {
    /// Stays awake for up to `limit`; zero: never.
    pub(super) fn new(limit: Duration) -> Self {
        let (to_radio, to_tap) = (Odds::new(), Odds::new());
        let counters = BusyPollCounters::default();
        Self { limit, to_radio, to_tap, passed_on: 0, to: Side::Radio, answered_by: None, counters }
    }

    /// A frame was passed on to this side.
    pub(super) fn passed_on(&mut self, to: Side) {
        self.passed_on = self.passed_on.saturating_add(1);
        self.to = to;
    }

    /// Before a wait: the side to look at for an answer, and for how long.
    pub(super) fn question(&mut self) -> Option<(Side, Duration)> {
        let is_alone = std::mem::take(&mut self.passed_on) == 1;
        let to = self.to;
        let is_answer = self.answered_by.take() == Some(to);
        let is_question = is_alone && !is_answer;
        let is_worth_it = is_question && !self.limit.is_zero() && self.odds(to).are_worth_it();
        is_worth_it.then_some((to, self.limit))
    }

    /// What came of looking at this side.
    pub(super) fn came(&mut self, side: Side, came: Came) {
        self.counters.polls += 1;
        self.counters.answered += u64::from(came == Came::InTime);
        self.counters.core_lost += u64::from(came == Came::CoreLost);
        self.odds(side).learn(came);
        self.answered_by = (came == Came::InTime).then_some(side);
    }

    pub(super) fn counters(&self) -> &BusyPollCounters {
        &self.counters
    }

    fn odds(&mut self, to: Side) -> &mut Odds {
        match to {
            Side::Radio => &mut self.to_radio,
            Side::Tap => &mut self.to_tap,
        }
    }
}

/// How likely it is that an answer comes in time.
#[derive(Debug)]
struct Odds {
    share: u16,
    /// Frames for which nobody looked since somebody did.
    passed: u32,
    /// After how many of these somebody looks all the same.
    retry: u32,
}

impl Odds {
    fn new() -> Self {
        Self { share: ALL / 2, passed: 0, retry: RETRY }
    }

    fn are_worth_it(&mut self) -> bool {
        self.passed += 1;
        let is_worth_it = self.share >= WORTH || self.passed >= self.retry;
        if is_worth_it {
            self.passed = 0;
        }
        is_worth_it
    }

    fn learn(&mut self, came: Came) {
        match came {
            Came::InTime => {
                self.share = self.share - self.share / MEMORY + ALL / MEMORY;
                self.retry = RETRY;
            }
            Came::TooLate => self.share -= self.share / MEMORY,
            Came::CoreLost => {
                self.share = 0;
                self.retry = (2 * self.retry).min(RETRY_MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(50);

    /// Passes on frames one by one, and says how many of them were waited for.
    fn waited(
        poll: &mut BusyPoll,
        to: Side,
        frames: u32,
        is_answered: impl Fn(u32) -> bool,
    ) -> u32 {
        (0..frames)
            .filter(|n| {
                poll.passed_on(to);
                let question = poll.question();
                if let Some((side, limit)) = question {
                    assert_eq!((side, limit), (to, LIMIT));
                    poll.came(side, if is_answered(*n) { Came::InTime } else { Came::TooLate });
                    assert_eq!(poll.question(), None, "the answer is for us");
                }
                question.is_some()
            })
            .count() as u32
    }

    #[test]
    fn only_a_frame_passed_on_alone_is_waited_for() {
        let mut poll = BusyPoll::new(LIMIT);
        assert_eq!(poll.question(), None, "nothing happened");
        poll.passed_on(Side::Radio);
        assert_eq!(poll.question(), Some((Side::Radio, LIMIT)));
        assert_eq!(poll.question(), None, "asked already");
        poll.passed_on(Side::Radio);
        poll.passed_on(Side::Tap);
        assert_eq!(poll.question(), None, "answered already");
        let mut never = BusyPoll::new(Duration::ZERO);
        never.passed_on(Side::Radio);
        assert_eq!(never.question(), None);
    }

    #[test]
    fn a_way_without_answers_is_given_up_and_tried_now_and_then() {
        let mut poll = BusyPoll::new(LIMIT);
        let tries = waited(&mut poll, Side::Radio, 10_000, |_| false);
        assert!((10_000 / RETRY..10_000 / RETRY + 10).contains(&tries), "{tries} of 10,000");
        // Answers are noticed again, and from then on always waited for.
        waited(&mut poll, Side::Radio, 2 * RETRY, |_| true);
        assert_eq!(waited(&mut poll, Side::Radio, 1000, |_| true), 1000);
    }

    #[test]
    fn every_other_answer_is_enough_and_one_in_ten_is_not() {
        let mut poll = BusyPoll::new(LIMIT);
        assert_eq!(waited(&mut poll, Side::Radio, 1000, |n| n % 2 == 0), 1000);
        let tries = waited(&mut poll, Side::Radio, 1000, |n| n % 10 == 0);
        assert!(tries < 100, "{tries} of 1,000");
    }

    #[test]
    fn an_answer_that_a_relay_passes_on_is_no_question() {
        let mut poll = BusyPoll::new(LIMIT);
        for _ in 0..100 {
            poll.passed_on(Side::Radio);
            assert!(poll.question().is_some(), "the question");
            poll.came(Side::Radio, Came::InTime);
            poll.passed_on(Side::Radio);
            assert_eq!(poll.question(), None, "its answer");
        }
        // At an end it goes to the other side, and may be a question to the host.
        poll.passed_on(Side::Radio);
        assert!(poll.question().is_some());
        poll.came(Side::Radio, Came::InTime);
        poll.passed_on(Side::Tap);
        assert!(poll.question().is_some());
    }

    /// As for a core that others want all the time: how many of these frames were waited for.
    fn lost(poll: &mut BusyPoll, frames: u32) -> usize {
        let looked = (0..frames).filter(|_| {
            poll.passed_on(Side::Radio);
            let question = poll.question();
            if let Some((side, _)) = question {
                poll.came(side, Came::CoreLost);
            }
            question.is_some()
        });
        looked.count()
    }

    #[test]
    fn a_core_that_others_want_is_left_to_them() {
        let mut poll = BusyPoll::new(LIMIT);
        waited(&mut poll, Side::Radio, 1000, |_| true);
        assert_eq!(lost(&mut poll, 500), 1, "however often it has helped before");
        let early = lost(&mut poll, 2 * RETRY_MAX);
        assert!((4..=8).contains(&early), "{early}");
        let late = lost(&mut poll, 8 * RETRY_MAX);
        assert!((7..=9).contains(&late), "{late}");
        // Once they are gone it helps again, as soon as before.
        waited(&mut poll, Side::Radio, RETRY_MAX + 3 * RETRY, |_| true);
        assert_eq!(waited(&mut poll, Side::Radio, 1000, |_| true), 1000);
        assert_eq!(poll.counters().core_lost, 1 + (early + late) as u64);
    }

    #[test]
    fn each_way_is_judged_by_itself() {
        let mut poll = BusyPoll::new(LIMIT);
        waited(&mut poll, Side::Tap, 100, |_| false);
        assert_eq!(waited(&mut poll, Side::Radio, 100, |_| true), 100);
        assert!(waited(&mut poll, Side::Tap, 100, |_| false) <= 1);
    }
}
