//! Every time the OBU's decisions depend on, in one place.
//!
//! Most are multiples of the heartbeat interval *I* the RSU advertises, so the whole scales with it.
//! With the default of 100 ms a silent upstream is given up after 225 ms.

use std::time::Duration;

/// Silence after which an upstream is asked: 1.2 I. Heartbeats come at most 1.1 I apart, and relays
/// delay them by up to [`RELAY_DELAY_MAX`].
pub(crate) fn late_after(interval: Duration) -> Duration {
    interval * 6 / 5
}

/// Time between the questions to a late upstream: I/6. Six fit before [`dead_after`].
pub(crate) fn ask_every(interval: Duration) -> Duration {
    interval / 6
}

/// Questions that must go unanswered before an upstream is dead. At 10 % loss in each direction six
/// in a row are lost with probability 0.19⁶ ≈ 5·10⁻⁵, and only after a heartbeat was.
pub(crate) const ASKED_MIN: u32 = 6;

/// Silence after which an upstream is dead: 2.25 I. Leaves 75 ms of 300 for the hand-over itself.
pub(crate) fn dead_after(interval: Duration) -> Duration {
    interval * 9 / 4
}

/// A route nobody uses is not worth questions: it lapses after 3 I of silence.
pub(crate) fn lapsed_after(interval: Duration) -> Duration {
    interval * 3
}

/// An upstream that answers, but brings no newer heartbeat for 20 I, leads nowhere.
pub(crate) fn stuck_after(interval: Duration) -> Duration {
    interval * 20
}

/// After a restart: 3.5 I. Longer than [`lapsed_after`], so by its end every neighbour has either
/// noticed our silence or heard our new boot count, and nobody sends through us on old news.
pub(crate) fn quiet_for(interval: Duration) -> Duration {
    interval * 7 / 2
}

/// Candidates kept ready are probed this often: 10 I.
pub(crate) fn probe_candidates_every(interval: Duration) -> Duration {
    interval * 10
}

/// Replies go up this often: 10 I.
pub(crate) fn reply_every(interval: Duration) -> Duration {
    interval * 10
}

/// A neighbour that named us as its upstream within 10 I sends through us.
pub(crate) fn child_for(interval: Duration) -> Duration {
    interval * 10
}

/// Relays wait a random time up to this, so that neighbours do not all speak at once.
pub(crate) const RELAY_DELAY_MAX: Duration = Duration::from_millis(4);

/// How long a relay waits for the copy of a candidate it would rather have.
pub(crate) fn prefer_for(interval: Duration) -> Duration {
    interval * 3 / 10
}

/// For this long a candidate must have been better before it is taken: longer than the slow link
/// averages look back, so that one run of luck is not enough.
pub(crate) const BETTER_FOR: Duration = Duration::from_secs(3);

/// After a change, nothing better is looked for during this time.
pub(crate) const SETTLE_FOR: Duration = Duration::from_secs(3);

/// An RSU without newer heartbeats for this long is forgotten, with everything advertised for it.
/// Far longer than any route or frame lives, so nothing old can come back afterwards.
pub(crate) const FORGET_AFTER: Duration = Duration::from_secs(10);

/// Withdrawals and goodbyes are said this often, because nobody acknowledges them …
pub(crate) const SAID_TIMES: u8 = 3;

/// … and this far apart.
pub(crate) const SAID_EVERY: Duration = Duration::from_millis(15);

/// How long an OBU keeps forwarding after its goodbye.
pub(crate) const LINGER: Duration = Duration::from_millis(200);
