//! What was measured, in the form in which it is written as JSON: [`Record`].
//!
//! Nothing in it depends on the machine or on how long the run took: the same scenario and seed
//! give the same bytes.

use serde::Serialize;

use super::{Delays, Direction, Spread};
use crate::watch::LostTo;

/// What came of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// Its seed.
    pub seed: u64,
    /// Hash over the trace: equal if and only if the same things happened.
    pub trace_hash: String,
    /// Each flow.
    pub flows: Vec<FlowRecord>,
    /// How long their frames were under way, for sums over runs. Not written: [`FlowRecord`] has
    /// what comes of it.
    #[serde(skip)]
    pub delays: Vec<FlowDelays>,
    /// Each change of upstream or RSU of an OBU, after the warm-up.
    pub hand_overs: Vec<HandOverRecord>,
    /// Time with and without a route.
    pub routes: RouteShare,
    /// Neighbours that OBUs could send through.
    pub candidates: CandidateSamples,
    /// What was sent to keep routes.
    pub control: ControlTraffic,
}

/// Where frames were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Sent to or from a vehicle that was out of everyone's range.
    pub out_of_range: u64,
    /// On a link that was there.
    pub on_air: u64,
    /// In the full queue of a radio.
    pub in_queue: u64,
    /// On a link that was there no more.
    pub on_dead_link: u64,
    /// In a node, which had no way for it or dropped it.
    pub in_node: u64,
}

impl Lost {
    /// All of them.
    pub fn total(self) -> u64 {
        self.out_of_range + self.on_air + self.in_queue + self.by_routing()
    }

    /// One more.
    pub(super) fn count(&mut self, to: LostTo) {
        *match to {
            LostTo::Distance => &mut self.out_of_range,
            LostTo::Air => &mut self.on_air,
            LostTo::Queue => &mut self.in_queue,
            LostTo::DeadLink => &mut self.on_dead_link,
            LostTo::Node => &mut self.in_node,
        } += 1;
    }

    /// Those another route would have saved.
    pub fn by_routing(self) -> u64 {
        self.on_dead_link + self.in_node
    }
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.out_of_range += other.out_of_range;
        self.on_air += other.on_air;
        self.in_queue += other.in_queue;
        self.on_dead_link += other.on_dead_link;
        self.in_node += other.in_node;
    }
}

/// Frames from one client to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowRecord {
    /// Name of the `[[flow]]` it belongs to.
    pub flow: String,
    /// Client that sends.
    pub from: String,
    /// Client that receives, or `everyone`.
    pub to: String,
    /// Which way; none for broadcasts, which go every way.
    pub direction: Option<Direction>,
    /// Frames sent.
    pub sent: u64,
    /// Frames that should have been received: for a broadcast one for each other client.
    pub due: u64,
    /// Frames received.
    pub received: u64,
    /// Frames not received, and where they were lost; of broadcasts only how many, as `in_node`.
    pub lost: Lost,
    /// Frames received a second time.
    pub doubled: u64,
    /// Frames that went out over two links at once.
    pub sent_twice: u64,
    /// Longest time in which nothing came through; none without a receiver, or without frames.
    pub longest_gap_ms: Option<f64>,
    /// From client to client, of delivered frames; none without any.
    pub delay_ms: Option<Spread>,
}

/// How long the frames of one `[[flow]]` were under way that went one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowDelays {
    /// Its name.
    pub flow: String,
    /// Which way; none for broadcasts.
    pub direction: Option<Direction>,
    /// Of delivered frames.
    pub delays: Delays,
}

/// An OBU left one upstream for another, and what its clients saw.
///
/// Frames sent from a second before the change to a second after it are looked at; one that lies
/// within a second of two changes belongs to the nearer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandOverRecord {
    /// The OBU.
    pub obu: String,
    /// When it left the old upstream.
    pub time_s: f64,
    /// Why.
    pub cause: &'static str,
    /// Before.
    pub from: End,
    /// After; none if it found no other until the end of the run.
    pub to: Option<End>,
    /// The RSU changed too.
    pub rsu_changed: bool,
    /// How long the old upstream had been silent.
    pub silence_ms: f64,
    /// How long the OBU had no upstream; none if it found no other until the end of the run.
    pub without_ms: Option<f64>,
    /// Frames to and from its clients that were sent around the change.
    pub frames: u64,
    /// Of those, lost.
    pub lost: Lost,
    /// Of those, received twice.
    pub doubled: u64,
    /// Of those, sent over two links at once.
    pub sent_twice: u64,
    /// Longest time in which nothing of a flow came through; none without frames, which would show
    /// it.
    pub gap_ms: Option<f64>,
    /// The same, counting only frames that another route would have saved.
    pub gap_by_routing_ms: Option<f64>,
    /// What the OBU itself wrote down of it; none if the run ended first.
    pub own: Option<OwnRecord>,
}

/// What an OBU writes down of a hand-over ([`node_lib::control::event::HandOver`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OwnRecord {
    /// The RSU acknowledged the new way, or need not.
    pub is_settled: bool,
    /// Time without a way that was believed.
    pub gap_ms: f64,
    /// Frames of its clients it dropped because there was no way.
    pub lost: u64,
    /// Frames it handed to the old upstream after its last sign of life, and to nobody else.
    pub at_risk: u64,
    /// Frames that came twice, and were delivered once.
    pub doubled: u64,
    /// Frames it sent both ways.
    pub sent_twice: u64,
}

/// One end of a hand-over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// The RSU.
    pub rsu: String,
    /// The neighbour frames go to.
    pub via: String,
    /// Radio hops to the RSU.
    pub hops: u8,
}

/// Time with and without a route, over all OBUs, as sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RouteShare {
    /// Samples of OBUs that could reach an RSU and had been able to for the grace time.
    pub reachable: u64,
    /// Of those, with a route.
    pub routed: u64,
    /// Of those, with a route all of whose links were there at that moment.
    pub working: u64,
    /// Radio hops of the latter together …
    pub hops: u64,
    /// … and of the shortest ways there were.
    pub hops_least: u64,
    /// Samples of OBUs that could reach no RSU.
    pub unreachable: u64,
}

/// Neighbours that OBUs with a route could send through, as sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CandidateSamples {
    /// Samples by number of candidates; the last entry counts all higher numbers.
    pub histogram: Vec<u64>,
    /// Samples of OBUs with three or more neighbours that are no farther from an RSU.
    pub could_have_three: u64,
    /// Of those, with three candidates or more.
    pub have_three: u64,
}

impl CandidateSamples {
    /// Adds the samples of another run.
    pub fn add(&mut self, other: &Self) {
        if self.histogram.len() < other.histogram.len() {
            self.histogram.resize(other.histogram.len(), 0);
        }
        for (sum, more) in self.histogram.iter_mut().zip(&other.histogram) {
            *sum += more;
        }
        self.could_have_three += other.could_have_three;
        self.have_three += other.have_three;
    }

    /// The number half of the samples reach.
    pub fn median(&self) -> Option<usize> {
        let all: u64 = self.histogram.iter().sum();
        let mut up_to = 0;
        self.histogram.iter().position(|count| {
            up_to += count;
            all > 0 && up_to * 2 >= all
        })
    }
}

/// Frames that keep routes, after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ControlTraffic {
    /// By kind.
    pub kinds: Vec<KindCount>,
    /// All of them.
    pub frames: u64,
    /// Bytes in them, Ethernet header included.
    pub bytes: u64,
    /// How full the channel was; none where there is no channel, but links that carry frames.
    pub airtime: Option<AirtimeShares>,
    /// By second.
    pub seconds: Vec<Second>,
}

/// Frames of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// The kind.
    pub kind: String,
    /// Frames sent.
    pub frames: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// How much of the time a channel carries something, 0 to 1. Frames that overlap count twice, but
/// in `busy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Frames that keep routes.
    pub control: f64,
    /// Clients' frames.
    pub data: f64,
    /// Anything, acknowledgements of the radio included.
    pub busy: f64,
}

impl Share {
    /// Adds so much of another.
    pub(crate) fn add(&mut self, other: Self, part: f64) {
        self.control += other.control * part;
        self.data += other.data * part;
        self.busy += other.busy * part;
    }

    /// Takes the greater of both, each by itself.
    pub(crate) fn raise(&mut self, other: Self) {
        self.control = self.control.max(other.control);
        self.data = self.data.max(other.data);
        self.busy = self.busy.max(other.busy);
    }
}

/// How full the channel was, after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AirtimeShares {
    /// Over all receivers and seconds.
    pub mean: Share,
    /// In the worst second at any receiver, each share by itself.
    pub worst: Share,
}

/// What was sent in one second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// Its end.
    pub time_s: f64,
    /// OBUs and RSUs that ran.
    pub nodes: u64,
    /// Control frames sent.
    pub control_frames: u64,
    /// Bytes in them.
    pub control_bytes: u64,
    /// Data frames sent, each hop counted.
    pub data_frames: u64,
    /// How full the channel was; none where there is no channel.
    pub airtime: Option<AirtimeShares>,
}
