//! Time that passes from heartbeat to heartbeat.

use node_lib::Mac;
use node_lib::control::event::{Cause, Event};

use crate::talk::{Heard, Talk};

/// 100 ms, in which each of these, so many hops from the RSU, sends the next heartbeat and answers
/// what it is asked.
pub(crate) fn beat(t: &mut Talk, heard: &[(Mac, u8)]) {
    t.pass(t.now + 100);
    beat_now(t, heard);
}

pub(crate) fn beat_now(t: &mut Talk, heard: &[(Mac, u8)]) {
    t.seq += 1;
    for (who, hops) in heard {
        t.hear(t.now, *who, Heard::heartbeat(t.seq, *hops));
        if let Some(nonce) = t.last_probe(*who) {
            t.hear(t.now, *who, Heard::answer(nonce, t.seq, *hops));
        }
    }
    t.acknowledge_all();
    t.clear();
}

pub(crate) fn causes(t: &mut Talk) -> Vec<Cause> {
    let cause = |event| match event {
        Event::UpstreamChanged { cause, .. } => Some(cause),
        _ => None,
    };
    t.events().into_iter().filter_map(cause).collect()
}
