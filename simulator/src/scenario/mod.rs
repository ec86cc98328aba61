//! What is to be simulated: [`Scenario`], read from a TOML file.
//!
//! The fields, their units and defaults are described in `docs/simulator.md`. A field nobody knows,
//! a value out of its range and a name nobody has are errors that say where and what was expected.
//!
//! What ends in `Spec` is a thing as the file describes it, before its names are looked up and its
//! defaults taken. What is made of it has the plain word, or `Cast` before it ([`crate::cast`]).
//! Errors say the plain word too (`expecting`): nobody who writes a file knows of a `Spec`.

mod check;
mod error;
mod locate;
mod mobility;
mod overrides;
pub mod quantity;
mod radio;
mod read;

use serde::Deserialize;

pub use error::{ScenarioError, ScenarioProblem};
pub use mobility::{CrossingsSpec, GridSpec, Mobility, MotorwaySpec, Pick};
pub use overrides::{Override, ParseOverrideError, parse_variants};
pub use quantity::Span;
pub use radio::{AccessSpec, Errors, FadingSpec, Model, RadioSpec};
pub use read::Source;

use crate::mobility::line::AtEnd;

/// A scenario, checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a sentence.
    #[serde(default)]
    pub about: String,
    /// Simulated time.
    pub duration: Span,
    /// What happens before this is not measured: everybody starts at once.
    #[serde(default = "default::warm_up")]
    pub warm_up: Span,
    /// First seed.
    #[serde(default = "default::one_u64")]
    pub seed: u64,
    /// Runs, each with the next seed.
    #[serde(default = "default::one_u32")]
    pub seeds: u32,
    /// How often routes are compared with what the links allow.
    #[serde(default = "default::sample_every")]
    pub sample_every: Span,
    /// A node that has become reachable may be without a route for so long.
    #[serde(default = "default::grace")]
    pub grace: Span,
    /// Nodes a copy of a packet may come to again while routes change below it.
    pub revisits: Option<u32>,
    /// What the air does to frames.
    #[serde(default)]
    pub radio: RadioSpec,
    /// Settings of the nodes.
    #[serde(default)]
    pub settings: NodeSettings,
    /// Road-side LANs.
    #[serde(default)]
    pub lan: Vec<LanSpec>,
    /// Road-side units.
    #[serde(default)]
    pub rsu: Vec<RsuSpec>,
    /// Vehicles, one by one.
    #[serde(default)]
    pub obu: Vec<ObuSpec>,
    /// Vehicles from a file, or from a town made from the seed.
    pub mobility: Option<Mobility>,
    /// Links, where no radio model makes them.
    #[serde(default)]
    pub link: Vec<LinkSpec>,
    /// Addresses behind nodes and on LANs.
    #[serde(default)]
    pub client: Vec<ClientSpec>,
    /// Traffic between them.
    #[serde(default)]
    pub flow: Vec<FlowSpec>,
    /// What goes wrong, and when.
    #[serde(default)]
    pub fault: Vec<FaultSpec>,
    /// What vehicles wrote down of their hand-overs when this was recorded, to compare with.
    #[serde(default)]
    pub recorded: Vec<Recorded>,
    /// What was changed in it after it was read ([`Source::with`]).
    #[serde(skip)]
    changes: Vec<Override>,
}

impl Scenario {
    /// [`Scenario::revisits`] or its default: none where frames are under way for a millisecond,
    /// and two where they wait in queues while routes change.
    pub fn revisits(&self) -> u32 {
        let waits = self.radio.model != Model::Links && self.radio.access == AccessSpec::Csma;
        self.revisits.unwrap_or(if waits { 2 } else { 0 })
    }

    /// The gaps that were recorded in the time that is measured, in milliseconds.
    pub fn recorded(&self) -> Vec<f64> {
        let measured = self.recorded.iter().filter(|recorded| recorded.at >= self.warm_up);
        measured.map(|recorded| recorded.gap.0.as_secs_f64() * 1e3).collect()
    }
}

/// Settings of the nodes, as their command lines have them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "struct Settings")]
pub struct NodeSettings {
    /// Nodes count their starts in a file, as with `--state-file`, instead of by the clock.
    pub state_file: bool,
    /// Whether small frames that wait for the same neighbour leave in one, as with `--bundles`.
    pub bundles: Option<bool>,
    /// How often ideal routing looks how things are; as often as the radio, unless named.
    pub ideal_every: Option<Span>,
    /// Of every OBU.
    pub obu: ObuSettings,
    /// Of every RSU.
    pub rsu: RsuSettings,
}

/// Settings of every OBU. What is not named has the default of `obu`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObuSettings {
    /// Largest Ethernet payload the radio carries, in bytes.
    pub radio_mtu: Option<u16>,
    /// MTU of the TAP, in bytes, as with `--mtu`.
    pub mtu: Option<u16>,
    /// EtherType of our frames.
    pub ethertype: Option<u16>,
    /// Heartbeats over which a link is judged.
    pub hello_history: Option<u16>,
    /// Usable candidates kept ready beside the upstream.
    pub cached_candidates: Option<u16>,
    /// Rules switched off for comparison.
    pub policy: PolicySpec,
}

/// Rules of an OBU (`obu_lib::Policy`). What is not named is as the daemon has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "struct Policy")]
pub struct PolicySpec {
    /// How candidates are ranked.
    pub ranking: Option<RankingSpec>,
    /// A fading upstream is left before it is lost.
    pub prediction: Option<bool>,
    /// In a crowd a relay stays silent when enough neighbours speak.
    pub suppression: Option<bool>,
    /// While an upstream is in doubt, frames go both ways.
    pub duplication: Option<bool>,
    /// What a lost upstream was given goes the next way.
    pub rerouting: Option<bool>,
    /// The next RSU is told of us before we go there.
    pub standby: Option<bool>,
    /// Only neighbours that cannot lead back to us are used.
    pub feasibility: Option<bool>,
    /// After a restart the OBU listens before it routes.
    pub quiet_period: Option<bool>,
}

/// How candidates are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankingSpec {
    /// By measured cost.
    Cost,
    /// By hops alone.
    Hops,
}

/// Settings of every RSU. What is not named has the default of `rsu`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RsuSettings {
    /// Largest Ethernet payload the radio carries, in bytes.
    pub radio_mtu: Option<u16>,
    /// MTU of the TAP, in bytes, as with `--mtu`.
    pub mtu: Option<u16>,
    /// EtherType of our frames.
    pub ethertype: Option<u16>,
    /// Time between heartbeats.
    pub hello_periodicity: Option<Span>,
    /// Heartbeats over which a link is judged.
    pub hello_history: Option<u16>,
    /// Broadcast and multicast sent over the radio, in kB a second.
    pub group_rate: Option<u32>,
    /// What was sent the old way of an OBU that lost its upstream goes the new one as well.
    pub rerouting: Option<bool>,
}

/// A road-side LAN behind one switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Lan")]
pub struct LanSpec {
    /// Its name.
    pub id: String,
}

/// A road-side unit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Rsu")]
pub struct RsuSpec {
    /// Its name.
    pub id: String,
    /// Where it stands.
    pub position_m: Option<[f64; 2]>,
    /// The LAN its TAP is plugged into.
    pub lan: Option<String>,
}

/// A vehicle, or a row of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Obu")]
pub struct ObuSpec {
    /// Its name; with `count`, the name of the row.
    pub id: String,
    /// Where it stands.
    pub position_m: Option<[f64; 2]>,
    /// The corners of the way it drives.
    pub path_m: Option<Vec<[f64; 2]>>,
    /// How fast.
    pub speed_kmh: Option<f64>,
    /// When it leaves.
    #[serde(default)]
    pub depart: Span,
    /// What it does at the end of its way.
    pub at_end: Option<AtEnd>,
    /// Vehicles in the row.
    #[serde(default = "default::one_u32")]
    pub count: u32,
    /// Metres from one to the next, along the way; the first is in front.
    pub gap_m: Option<f64>,
}

/// A link between two nodes. What is not named is as in `sim::Link::CLEAN`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Link")]
pub struct LinkSpec {
    /// One node.
    pub from: String,
    /// The other.
    pub to: String,
    /// Only what `from` sends reaches the other.
    #[serde(default)]
    pub one_way: bool,
    /// Share of frames lost.
    pub loss: Option<f64>,
    /// Time under way, at least.
    pub delay: Option<Span>,
    /// Added to it, evenly from nothing to this.
    pub jitter: Option<Span>,
    /// Share of frames that arrive twice.
    pub duplicate: Option<f64>,
}

/// Hosts behind nodes or on a LAN.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Client")]
pub struct ClientSpec {
    /// Name of all of them together.
    pub id: String,
    /// The nodes behind whose TAP they are.
    pub behind: Option<String>,
    /// Only this share of those nodes.
    pub share: Option<f64>,
    /// The LAN they are on.
    pub lan: Option<String>,
    /// How many behind each node or on the LAN.
    #[serde(default = "default::one_u32")]
    pub count: u32,
    /// A client that does not speak sends one broadcast when it comes up, as every host does, and
    /// then nothing.
    #[serde(default = "default::yes")]
    pub speaks: bool,
}

/// How the frames of a flow follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsSpec {
    /// As a Poisson process, another one for each seed.
    #[default]
    Poisson,
    /// At even times, the same for every seed.
    Even,
}

/// Numbered frames.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Flow")]
pub struct FlowSpec {
    /// Its name in the results.
    pub id: Option<String>,
    /// Clients that send.
    pub from: String,
    /// Clients that receive, `everyone` or `nobody`.
    pub to: String,
    /// Frames a second from each sender to each of its receivers, on average.
    pub frames_per_s: f64,
    /// How they follow each other.
    #[serde(default)]
    pub arrivals: ArrivalsSpec,
    /// Ethernet header included.
    #[serde(default = "default::size_bytes")]
    pub size_bytes: u16,
    /// When it begins.
    pub start: Option<Span>,
    /// When it ends.
    pub stop: Option<Span>,
}

/// Something that happens to a node or a link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Fault")]
pub struct FaultSpec {
    /// When.
    pub at: Span,
    /// What.
    pub what: What,
    /// To which node.
    pub node: String,
    /// The other end, for what happens to a link.
    pub peer: Option<String>,
    /// How long the node is off, for a restart, or stands still, for a stall.
    pub after: Option<Span>,
    /// Share of frames lost, for a relink.
    pub loss: Option<f64>,
    /// Time under way, at least.
    pub delay: Option<Span>,
    /// Added to it, evenly from nothing to this.
    pub jitter: Option<Span>,
    /// Share of frames that arrive twice.
    pub duplicate: Option<f64>,
}

/// A hand-over as the vehicle wrote it down while the drive was recorded of which this scenario was
/// made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The vehicle.
    pub obu: String,
    /// When.
    pub at: Span,
    /// Why.
    pub cause: String,
    /// How long it had no way it believed in.
    pub gap: Span,
}

/// Names of what can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Nothing passes from the node to the peer any more.
    CutOneWay,
    /// It passes again.
    HealOneWay,
    /// Nothing passes between the two any more.
    Cut,
    /// It passes again.
    Heal,
    /// Out of everyone's range, without being told.
    Isolate,
    /// Back in range.
    Rejoin,
    /// The radio interface goes down.
    RadioDown,
    /// It comes up.
    RadioUp,
    /// Silent and gone.
    Crash,
    /// Starts.
    Start,
    /// Crashes and starts again.
    Restart,
    /// Its process stands still (SIGSTOP, SIGCONT).
    Stall,
    /// Says goodbye and is gone.
    Shutdown,
    /// The link between the two becomes another one.
    Relink,
}

mod default {
    use super::Span;

    pub(super) const fn one_u32() -> u32 {
        1
    }
    pub(super) const fn one_u64() -> u64 {
        1
    }
    pub(super) const fn yes() -> bool {
        true
    }
    pub(super) const fn warm_up() -> Span {
        Span::from_millis(1000)
    }
    pub(super) const fn sample_every() -> Span {
        Span::from_millis(100)
    }
    pub(super) const fn grace() -> Span {
        Span::from_millis(500)
    }
    pub(super) const fn size_bytes() -> u16 {
        200
    }
}
