//! Every time the OBU's decisions depend on, in one place.
//!
//! Most are multiples of the heartbeat interval *I* the RSU advertises, so the whole scales with
//! it. With the default of 100 ms a silent upstream is given up after 225 ms.

use std::time::Duration;

pub(crate) use node_lib::control::answer_scope::CROWD;
use node_lib::control::event::Cause;
use node_lib::messages::OBUS_MAX;

use crate::control::link::neighbour::PROOF_INTERVALS;
use crate::control::route::candidates::{fresh_for, period};

/// Between two heartbeats, as long as no RSU has said anything else: the programs' default.
pub(crate) const INTERVAL_DEFAULT: Duration = Duration::from_millis(100);

/// How closely an upstream is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// Silence after which it is asked.
    pub(crate) late_after: Duration,
    /// Time between the first questions to a late upstream, until it is in doubt …
    pub(crate) ask_every: Duration,
    /// … and between the others.
    pub(crate) ask_later: Duration,
    /// The first question waits a random time up to this: many may have missed the same heartbeat.
    pub(crate) ask_within: Duration,
    /// Silence after which it is dead, if it did not answer.
    pub(crate) dead_after: Duration,
    /// Silence after which it is dead, asked or not.
    pub(crate) silence_max: Duration,
}

impl Watch {
    /// It brings a heartbeat each *P*, of this stride; as a rule that is I. So many of them may
    /// stay away before it is asked. It is late after as many P and 0.2 I, because heartbeats come
    /// at most 1.1 I apart and relays delay them by up to [`RELAY_DELAY_MAX`].
    ///
    /// `is_urgent`: frames go through it, and there is room for questions. Then it is asked at
    /// once, and dead 1.05 I after it was late: if only one heartbeat may stay away, 75 ms of 300
    /// are left for the hand-over itself. Questions follow each I/9 until it is in doubt, so that
    /// three have time before frames go a second way: one or two are lost all the time. Then they
    /// follow each I/5: the more are asked, the longer a link lives on over which hardly anything
    /// comes.
    ///
    /// Else the first question waits a random time up to I/3: many may have missed the same, and
    /// are spared theirs by the first answer. The others follow each I/8, and it is dead 0.8 I
    /// after it was late: after 3 I, if two may stay away. Whoever has no question left bears with
    /// it for as long as what it said counts ([`fresh_for`]).
    pub(crate) fn new(interval: Duration, stride: u8, missed: u32, is_urgent: bool) -> Self {
        let late_after = period(interval, stride) * missed + interval / 5;
        let (ask_every, ask_later, ask_within, answered) = if is_urgent {
            (interval / 9, interval / 5, Duration::ZERO, interval * 21 / 20)
        } else {
            (interval / 8, interval / 8, interval / 3, interval * 4 / 5)
        };
        let dead_after = late_after + answered;
        let silence_max = fresh_for(interval, stride).max(dead_after);
        Self { late_after, ask_every, ask_later, ask_within, dead_after, silence_max }
    }

    /// So many OBUs in earshot may have missed the same, and ask as well. So it is asked no more
    /// often than in [`turn`] with them, but each 0.6 I at least: three times before what it said
    /// counts no more.
    pub(crate) fn in_turn(self, interval: Duration, in_earshot: u16) -> Self {
        let turn = turn(in_earshot).min(interval * 3 / 5);
        Self { ask_every: self.ask_every.max(turn), ask_later: self.ask_later.max(turn), ..self }
    }

    /// From the last of so many unanswered questions to the next.
    pub(crate) fn ask_again_after(&self, asked: u32) -> Duration {
        if asked <= DOUBTED_AFTER { self.ask_every } else { self.ask_later }
    }
}

/// Questions that must go unanswered before an upstream is dead. At 10 % loss in each direction
/// four in a row are lost with probability 0.19⁴ ≈ 10⁻³, and only after a heartbeat was. Who is in
/// no hurry asks no more; who carries frames asks seven times by then, 0.19⁷ ≈ 10⁻⁵.
pub(crate) const ASKED_MIN: u32 = 4;

/// Questions that stay unanswered before an upstream is in doubt. At 10 % loss in each direction
/// three in a row do with probability 0.19³ ≈ 0.007, and only after a heartbeat was lost: then
/// frames go twice until the next answer.
pub(crate) const DOUBTED_AFTER: u32 = 3;

/// In a congested place so many heartbeats of an upstream may stay away before it is asked. They do
/// in a row by chance there all the time. Each upstream that is left for that costs more words than
/// to bear with it, words which collide with what others say. If frames go through it, or others
/// send through us, fewer may, if that is no chance ([`Neighbour::missed_by_chance`]).
///
/// [`Neighbour::missed_by_chance`]: crate::control::link::neighbour::Neighbour::missed_by_chance
pub(crate) const MISSED_MAX: u32 = 4;

/// So many may of one through which nothing goes, elsewhere. Of one through which frames go one
/// may.
pub(crate) const MISSED_IDLE: u32 = 2;

/// How long a proof that a neighbour hears us is believed: 100 I. In a crowd there are few probes
/// ([`probe_every`]). After 30 I hardly anybody would know more than one neighbour to be proven. It
/// would take that one, good or not, as upstream, or have to ask first. Then far more relays would
/// be needed than with a choice. That a proof of 10 s ago still holds the first frame will tell:
/// then the upstream is watched closely ([`Watch`]).
pub(crate) fn proven_for(interval: Duration) -> Duration {
    interval * PROOF_INTERVALS
}

/// Where it is congested, how long the upstream's proof that it hears us spares us the question
/// whether frames sent since have arrived: 30 I. The radio repeats what is not acknowledged, and
/// the upstream itself is asked in its turn.
pub(crate) fn trusted_for(interval: Duration) -> Duration {
    interval * 30
}

/// Who was heard within 100 I is around us, and lies in the way of what we say. In a crowd few
/// speak, and the others only when it is their turn: within 3 I hardly more than the relays are
/// heard. Neighbours are remembered for longer, but a vehicle that has left a jam is not where it
/// is congested any more.
pub(crate) fn heard_lately(interval: Duration) -> Duration {
    interval * 100
}

/// Without a way, a neighbour that may have one is asked this often: I/6.
pub(crate) fn ask_every(interval: Duration) -> Duration {
    interval / 6
}

/// Without a frame for this long a route is idle, and watched less closely.
pub(crate) const IDLE_AFTER: Duration = Duration::from_secs(5);

/// Nobody that brings every heartbeat is upstream after 3 I of silence, however late it was chosen
/// and however little it was asked since. A route nobody uses is not worth questions: it lapses
/// then too.
pub(crate) fn lapsed_after(interval: Duration) -> Duration {
    fresh_for(interval, 0)
}

/// An upstream that answers, but brings no newer heartbeat for 20 I, leads nowhere.
pub(crate) fn stuck_after(interval: Duration) -> Duration {
    interval * 20
}

/// After a restart: half an interval longer than anybody chooses a neighbour by what it said, if
/// that brought every heartbeat: 3.5 I. So by its end nobody chooses us on old news, and every
/// neighbour has either noticed our silence or heard our new boot count; but for those that bear
/// with us longer ([`MISSED_MAX`]). So we say after a restart that there is no way through us.
pub(crate) fn quiet_for(interval: Duration) -> Duration {
    fresh_for(interval, 0) + interval / 2
}

/// Intervals for which a neighbour is remembered as candidate after it last advertised its way, and
/// for which it is borne with at most. Of every fourth heartbeat two may get lost, and the third
/// may be late.
pub(crate) const CANDIDATE_INTERVALS: u32 = 13;

/// Nobody counts on what one of this stride said for longer: half an interval more than who bears
/// with it the longest ([`MISSED_MAX`]), and then it is no candidate any more.
pub(crate) fn counted_on_for(interval: Duration, stride: u8) -> Duration {
    let borne_with = Watch::new(interval, stride, MISSED_MAX, false).silence_max;
    borne_with.min(interval * CANDIDATE_INTERVALS) + interval / 2
}

/// Time between two probes that keep candidates proven and links measured: each of `targets` every
/// 10 I, but in a crowd no more than 2 per interval by all `obus` of an RSU together. At 100 ms
/// that is 20 questions and 20 answers a second, 0.8 % of a radio of 6 Mbit/s.
pub(crate) fn probe_every(interval: Duration, obus: u16, targets: usize) -> Duration {
    let targets = u32::try_from(targets).unwrap_or(u32::MAX).max(1);
    (interval * 10 / targets).max(interval * u32::from(obus) / 2)
}

/// Replies of all OBUs of one RSU together, per ten heartbeat intervals.
const REPLIES_PER_TEN: u32 = 16;

/// With more OBUs than this none replies any rarer: a child is believed for as long as its next
/// word may take, and a made-up one as well.
const REPLYING_MAX: u32 = OBUS_MAX as u32 * 2 / 3;

/// Time between two replies of an OBU: ten heartbeat intervals, but in a crowd no more than 1.6 per
/// interval by all `obus` of an RSU together. At 100 ms that is 16 a second, each of which takes a
/// radio of 6 Mbit/s for about 0.2 ms with its acknowledgement: 0.3 % on each hop.
pub(crate) fn reply_every(interval: Duration, obus: u16) -> Duration {
    interval * 10 * u32::from(obus).clamp(REPLIES_PER_TEN, REPLYING_MAX) / REPLIES_PER_TEN
}

/// Whoever named us as its upstream, or sent a reply through us, within one and a half times the
/// time between replies sends through us. Replies come up to a quarter later than that time.
pub(crate) fn child_for(interval: Duration, obus: u16) -> Duration {
    reply_every(interval, obus) * 3 / 2
}

/// Candidates are compared with the upstream this often: twice per heartbeat, I/2.
pub(crate) fn consider_every(interval: Duration) -> Duration {
    interval / 2
}

/// How long it takes all others to say what one says, if all have reason to: 1 ms for each, up to a
/// quarter of a second. A question with its answer and both acknowledgements takes a radio of 6
/// Mbit/s for 0.4 ms, one of 3 Mbit/s for twice that. So who speaks after a random part of this
/// finds room, and so does who repeats it no sooner.
pub(crate) fn turn(obus: u16) -> Duration {
    Duration::from_millis(u64::from(obus.saturating_sub(1).min(250)))
}

/// The next RSU is told this often that we may still come: half again as rarely as the one we are
/// attached to. Two in a row may be lost before the path there lapses.
pub(crate) fn standby_every(reply_every: Duration) -> Duration {
    reply_every * 3 / 2
}

/// The longest time between two replies that are to come so far apart: up to a quarter later.
pub(crate) fn longest(reply_every: Duration) -> Duration {
    reply_every * 5 / 4
}

/// No OBU has its next word later than this, 800 intervals. A child that says more may be made up,
/// and would keep its place for hours.
pub(crate) fn within_max(interval: Duration) -> Duration {
    longest(standby_every(reply_every(interval, OBUS_MAX)))
}

/// An RSU counts the OBUs that have registered, and when a whole town is switched on none has. So
/// for this long after its start an OBU takes it that there are at least [`OBUS_PER_NEIGHBOUR`]
/// times as many as it hears: time for all to register.
pub(crate) const COLD_FOR: Duration = Duration::from_secs(5);

/// What one OBU hears is a part of those that share the RSU with it and lie in each other's way.
/// Within two hops there is four times the area, but streets, not areas, are full. Two, found by
/// experiment. With one, the storm of a cold start of 165 vehicles goes on for three seconds, as
/// without the rule. Four saves a tenth of the first second's.
pub(crate) const OBUS_PER_NEIGHBOUR: u16 = 2;

/// After an RSU has started again, the number of its OBUs is believed to fall by at most one in so
/// many per heartbeat. It has none at first, and those it had are no smaller a crowd for that.
pub(crate) const CROWD_LEAVES_BY: u16 = 16;

/// A relay in a crowd of this stride that has brought no news for so long says again what it said
/// last. Otherwise all behind it would ask whether it is still there, at the same moment. That is
/// just before any [`Watch::late_after`].
pub(crate) fn keepalive_after(interval: Duration, stride: u8) -> Duration {
    period(interval, stride) + interval / 7
}

/// How long an OBU in a crowd that is idle or congested looks for a way as short as the one it
/// lost. It is 2.2 I, until it has heard two heartbeats of each relay that brings all.
pub(crate) fn hold_down(interval: Duration) -> Duration {
    interval * 11 / 5
}

/// Relays wait a random time up to this, so that neighbours do not all speak at once.
pub(crate) const RELAY_DELAY_MAX: Duration = Duration::from_millis(4);

/// In a crowd they wait up to this much longer, each time anew. Twenty of them then rarely speak at
/// once although they may not hear each other, and who collided once will not again.
pub(crate) const CROWD_DELAY_MAX: Duration = Duration::from_millis(24);

/// How long a relay waits for the copy of a candidate it would rather have.
pub(crate) fn prefer_for(interval: Duration) -> Duration {
    interval * 3 / 10
}

/// For this long a candidate must have been better before it is taken, as long as the slow link
/// averages look back, so that one run of luck is not enough. It counts from the last change at the
/// earliest. With 2 s ways are shorter, and what more changes say takes more than that saves.
pub(crate) const BETTER_FOR: Duration = Duration::from_secs(3);

/// The same, so long after there was no way at all: half of that time. The first way is that of
/// whoever proved first that it hears us, and may be a long way round; what chose it in haste is
/// not worth so much patience.
pub(crate) fn better_for(attached_for: Duration) -> Duration {
    BETTER_FOR.min(attached_for / 2)
}

/// A planned change waits so long for the next RSU to acknowledge that we may come; then we go
/// without. Long enough for five repetitions. After a goodbye the old one forwards for only 200 ms.
pub(crate) fn wait_for_standby(cause: Cause) -> Duration {
    Duration::from_millis(if cause == Cause::Goodbye { 100 } else { 300 })
}

/// An RSU that did not answer is used again after this long, or when there is no other.
pub(crate) const SHUN_FOR: Duration = Duration::from_secs(60);

/// An RSU stays on standby for so long after it was last worth it.
pub(crate) const STANDBY_FOR: Duration = Duration::from_secs(2);

/// After a change of RSU what still comes from the old one is taken, and the old one is told that
/// we left only then: longer than frames wait in any queue here.
pub(crate) const PART_FOR: Duration = Duration::from_millis(300);

/// An RSU without newer heartbeats for this long is forgotten, with everything advertised for it:
/// 33 I, and 10 s at least. By then nobody counts on what we advertised. An upstream that brings no
/// news is left after 20 I ([`stuck_after`]), so that is how long we may have gone on advertising.
/// Whoever heard us leaves us 13 I later at most ([`CANDIDATE_INTERVALS`]).
pub(crate) fn forget_after(interval: Duration) -> Duration {
    (stuck_after(interval) + interval * CANDIDATE_INTERVALS).max(Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use node_lib::control::repeated::LINGER;
    use node_lib::messages::flags::STRIDE_MAX;

    use super::*;

    /// What RSUs may advertise, from the shortest to the longest.
    const INTERVALS: [Duration; 5] = [
        Duration::from_millis(20),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_secs(1),
        Duration::from_secs(10),
    ];

    /// All there are: how many heartbeats may stay away, their stride, and whether it is urgent.
    fn watches(interval: Duration) -> Vec<(String, Watch)> {
        let urgent = (1, 0..=STRIDE_MAX, true);
        let others = (1..=MISSED_MAX).map(|missed| (missed, 0..=STRIDE_MAX, false));
        let of = |(missed, strides, is_urgent): (u32, std::ops::RangeInclusive<u8>, bool)| {
            strides.map(move |stride| {
                let watch = Watch::new(interval, stride, missed, is_urgent);
                (format!("{missed} of stride {stride}, urgent: {is_urgent}"), watch)
            })
        };
        std::iter::once(urgent).chain(others).flat_map(of).collect()
    }

    fn close(interval: Duration) -> Watch {
        Watch::new(interval, 0, 1, true)
    }

    /// When it is asked, as long as it does not answer and is not dead.
    fn questions(watch: Watch) -> Vec<Duration> {
        let next = |(asked, at): &(u32, Duration)| {
            (*at < watch.dead_after).then(|| (asked + 1, *at + watch.ask_again_after(asked + 1)))
        };
        let all = std::iter::successors(Some((0, watch.late_after + watch.ask_within)), next);
        all.map(|(_, at)| at).filter(|at| *at < watch.dead_after).collect()
    }

    #[test]
    fn a_heartbeat_that_comes_as_late_as_it_may_makes_nobody_ask() {
        for interval in INTERVALS {
            // A tenth of jitter, and a relay's delay, which is for intervals of 100 ms and more.
            let relay = RELAY_DELAY_MAX.min(interval / 25);
            for (name, watch) in watches(interval) {
                assert!(watch.late_after > interval * 11 / 10 + relay, "{name} at {interval:?}");
            }
        }
    }

    #[test]
    fn all_questions_are_asked_before_the_upstream_is_given_up() {
        for interval in INTERVALS {
            for (name, watch) in watches(interval) {
                let questions = questions(watch);
                let Some(last) = questions.get(ASKED_MIN as usize - 1) else {
                    panic!("{name} at {interval:?}: dead after {questions:?}");
                };
                let answered = *last + watch.ask_every / 2;
                assert!(answered <= watch.dead_after, "{name} at {interval:?}: no time to answer");
            }
        }
    }

    #[test]
    fn the_more_there_are_the_rarer_each_asks_and_still_three_times() {
        for interval in INTERVALS {
            let watches =
                [1, 2, 10, 100, OBUS_MAX].map(|obus| close(interval).in_turn(interval, obus));
            assert!(watches.is_sorted_by_key(|watch| watch.ask_every), "{interval:?}");
            assert!(watches.is_sorted_by_key(|watch| watch.ask_later), "{interval:?}");
            for watch in watches {
                let third = watch.late_after + watch.ask_within + watch.ask_every * 2;
                assert!(third < watch.silence_max, "{interval:?}: {watch:?}");
            }
        }
        // A radio has time for so many questions, of all together.
        let interval = Duration::from_millis(20);
        let each = close(interval).in_turn(interval, 12);
        assert!(each.ask_every >= Duration::from_millis(11), "{each:?}");
    }

    #[test]
    fn an_answer_has_its_time_before_the_next_question() {
        for interval in INTERVALS {
            for (name, watch) in watches(interval) {
                assert!(watch.ask_every > interval / 20, "{name}");
            }
            // Those who judge by questions sooner than the rest have asked more of them by then.
            let (urgent, other) = (close(interval), Watch::new(interval, 0, 1, false));
            let asked = [urgent, other].map(|watch| questions(watch).len());
            assert_eq!(asked, [7, 4], "{interval:?}");
        }
    }

    #[test]
    fn frames_go_a_second_way_a_third_of_an_interval_after_it_was_late() {
        for interval in INTERVALS {
            let watch = close(interval);
            let doubted = questions(watch).get(DOUBTED_AFTER as usize).copied();
            let third = watch.late_after + interval / 3;
            assert!(doubted.is_some_and(|at| at.abs_diff(third) < Duration::from_micros(1)));
        }
    }

    #[test]
    fn two_lost_heartbeats_end_nobody_and_three_do_who_answers_no_question() {
        for interval in INTERVALS {
            assert_eq!(lapsed_after(interval), interval * 3);
            for stride in 0..=STRIDE_MAX {
                let (period, silence) = (period(interval, stride), fresh_for(interval, stride));
                assert!(silence > period * 2 && silence <= period * 3, "{stride}, {interval:?}");
                let idle = Watch::new(interval, stride, MISSED_IDLE, false);
                assert_eq!(idle.silence_max, silence, "{stride}, {interval:?}");
            }
            for (name, watch) in watches(interval) {
                assert!(watch.dead_after >= interval * 2, "{name} at {interval:?}");
                assert!(watch.dead_after <= watch.silence_max, "{name} at {interval:?}");
            }
        }
    }

    #[test]
    fn who_carries_frames_leaves_a_quarter_of_the_promised_gap_for_the_change() {
        // 300 ms at the default interval.
        let watch = close(Duration::from_millis(100));
        assert!(watch.dead_after <= Duration::from_millis(225));
    }

    #[test]
    fn a_restarted_node_is_quiet_until_nobody_can_count_on_what_it_said() {
        for interval in INTERVALS {
            let (quiet, chosen_for) = (quiet_for(interval), fresh_for(interval, 0));
            assert!(quiet > chosen_for && quiet <= chosen_for + interval, "{interval:?}");
            for stride in 0..=STRIDE_MAX {
                for missed in 1..=MISSED_MAX {
                    for is_urgent in [true, false] {
                        let watch = Watch::new(interval, stride, missed, is_urgent);
                        let watch = watch.in_turn(interval, OBUS_MAX);
                        let held_for = watch.silence_max.min(interval * CANDIDATE_INTERVALS);
                        assert!(held_for < counted_on_for(interval, stride), "{stride}, {watch:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_way_that_brings_no_news_is_left_after_some_silences_and_before_proofs_lapse() {
        for interval in INTERVALS {
            assert!(stuck_after(interval) > lapsed_after(interval) * 3, "{interval:?}");
            assert!(stuck_after(interval) < proven_for(interval), "{interval:?}");
        }
    }

    #[test]
    fn candidates_are_asked_ten_times_before_their_proof_lapses_where_there_is_no_crowd() {
        for interval in INTERVALS {
            for targets in [0, 1, 3, 5] {
                let all = probe_every(interval, 1, targets) * targets.max(1) as u32;
                assert!(all * 10 <= proven_for(interval), "{targets} at {interval:?}");
                assert!(all * 11 > proven_for(interval), "{targets} at {interval:?}");
            }
        }
    }

    #[test]
    fn all_obus_of_a_crowd_together_probe_twice_per_interval_however_many_they_are() {
        for interval in INTERVALS {
            for obus in [50, 200, 1000] {
                let together = interval.as_secs_f64() * f64::from(obus)
                    / probe_every(interval, obus, 4).as_secs_f64();
                assert!((1.9..=2.1).contains(&together), "{obus} at {interval:?}: {together}");
            }
        }
    }

    #[test]
    fn who_sends_through_us_is_known_from_one_reply_to_the_next() {
        for interval in INTERVALS {
            for obus in [1, 24, 100, 1000] {
                // Replies come up to a quarter later than planned.
                let latest = reply_every(interval, obus) * 5 / 4;
                assert!(child_for(interval, obus) > latest, "{obus} at {interval:?}");
                assert!(child_for(interval, obus) < latest * 2, "{obus} at {interval:?}");
            }
        }
    }

    #[test]
    fn a_standby_is_told_more_rarely_than_the_rsu_in_use_and_more_than_half_as_often() {
        for interval in INTERVALS {
            for obus in [1, 100, 1000] {
                let every = reply_every(interval, obus);
                assert!(standby_every(every) > every && standby_every(every) < every * 2);
            }
        }
    }

    #[test]
    fn nobody_waits_who_is_alone_and_nobody_for_longer_than_a_quarter_second() {
        assert_eq!([0, 1].map(turn), [Duration::ZERO; 2]);
        let waits = [2, 100, 250, 1000, u16::MAX].map(turn);
        assert!(waits.is_sorted() && waits[0] > Duration::ZERO, "{waits:?}");
        assert_eq!(waits[4], Duration::from_millis(250));
    }

    #[test]
    fn a_relay_repeats_itself_before_those_behind_ask_but_not_before_they_could_hear_news() {
        for interval in INTERVALS {
            for stride in 0..=STRIDE_MAX {
                let keepalive = keepalive_after(interval, stride);
                let late_after = Watch::new(interval, stride, 1, true).late_after;
                assert!(keepalive < late_after, "{stride}, {interval:?}");
                assert!(
                    keepalive > period(interval, stride) + interval / 10,
                    "{stride}, {interval:?}"
                );
            }
            for (name, watch) in watches(interval) {
                assert!(keepalive_after(interval, 0) < watch.late_after, "{name} at {interval:?}");
            }
        }
    }

    #[test]
    fn who_waits_for_better_news_has_heard_two_heartbeats_by_then_and_is_not_thought_dead() {
        for interval in INTERVALS {
            assert!(
                hold_down(interval) > interval * 2 && hold_down(interval) < lapsed_after(interval)
            );
            assert!(prefer_for(interval) < interval / 2 && prefer_for(interval) > interval / 10);
            assert_eq!(consider_every(interval) * 2, interval, "twice per heartbeat");
        }
    }

    #[test]
    fn without_a_way_six_questions_fit_into_an_interval() {
        for interval in INTERVALS {
            assert_eq!(ask_every(interval) * 6, interval / 6 * 6, "{interval:?}");
        }
    }

    #[test]
    fn after_a_goodbye_nobody_waits_longer_than_the_old_one_forwards() {
        assert!(wait_for_standby(Cause::Goodbye) < LINGER);
        assert!(wait_for_standby(Cause::Better) > wait_for_standby(Cause::Goodbye));
    }
}
