//! What routes cost: [`ControlCount`].

use node_lib::Timestamp;
use sim::radio::Occupancy;
use sim::{FrameKind, NodeIndex, Stats, World};

use super::record::{AirtimeShares, ControlTraffic, KindCount, Second, Share};
use crate::scenario::Scenario;

/// Frames sent since the warm-up, and second by second.
#[derive(Debug, Default)]
pub(super) struct ControlCount {
    /// All that was sent before the warm-up was over.
    before: Option<Stats>,
    last: Stats,
    second: u64,
    last_seen: Stats,
    seconds: Vec<Second>,
}

impl ControlCount {
    pub(super) fn look(&mut self, world: &World, scenario: &Scenario) {
        let now = world.now();
        let stats = world.stats();
        if now <= scenario.warm_up.after_start() {
            self.before = Some(stats);
            self.last_seen = stats;
        }
        self.last = stats;
        let second = now.as_micros() / 1_000_000;
        if second > self.second && now > scenario.warm_up.after_start() {
            let sent = stats - self.last_seen;
            self.seconds.push(Second {
                time_s: seconds(now),
                nodes: running(world),
                control_frames: sent.control().frames,
                control_bytes: sent.control().bytes,
                data_frames: sent.data().frames,
                airtime: None,
            });
            self.last_seen = stats;
        }
        self.second = second;
    }

    pub(super) fn finish(mut self, world: &World, scenario: &Scenario) -> ControlTraffic {
        // The second that ends at whole second n is the n-th of the channel, counted from one.
        for second in &mut self.seconds {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a day")]
            let number = (second.time_s as usize).saturating_sub(1);
            second.airtime = world
                .airtime()
                .seconds
                .get(number)
                .map(|heard| AirtimeShares { mean: share(heard.mean), worst: share(heard.worst) });
        }
        let from = scenario.warm_up.0.as_micros().div_ceil(1_000_000);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let channel = sim::radio::Airtime {
            seconds: world.airtime().seconds.iter().skip(from).copied().collect(),
        };

        let sent = self.last - self.before.unwrap_or_default();
        let kinds = (1..FrameKind::COUNT).filter_map(|kind| u8::try_from(kind).ok()).map(FrameKind);
        // Those of another protocol where it runs.
        let is_named = |kind: &FrameKind| *kind < FrameKind::OGM || sent.of(*kind).frames > 0;
        let kinds = kinds.filter(|kind| !kind.is_data() && is_named(kind)).map(|kind| {
            let tally = sent.of(kind);
            KindCount { kind: kind.to_string(), frames: tally.frames, bytes: tally.bytes }
        });
        let all = sent.control();
        ControlTraffic {
            kinds: kinds.collect(),
            frames: all.frames,
            bytes: all.bytes,
            airtime: (!channel.seconds.is_empty()).then(|| AirtimeShares {
                mean: share(channel.mean()),
                worst: share(channel.worst()),
            }),
            seconds: self.seconds,
        }
    }
}

fn share(occupancy: Occupancy) -> Share {
    let Occupancy { control, data, busy, .. } = occupancy;
    Share { control: rounded(control), data: rounded(data), busy: rounded(busy) }
}

/// To a millionth.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

fn running(world: &World) -> u64 {
    let nodes = [sim::Role::Rsu, sim::Role::Obu];
    let all = nodes.into_iter().flat_map(|role| world.nodes(role).collect::<Vec<NodeIndex>>());
    all.filter(|&node| world.node(node).is_some()).count() as u64
}

fn seconds(time: Timestamp) -> f64 {
    time.as_micros() as f64 / 1e6
}
