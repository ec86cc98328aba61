//! Every line on the socket, both ways. A line is one JSON object.

use node_lib::control::ping::Echoed;
use node_lib::control::snapshot::{Counts, NodeRole, View};
use node_lib::{Mac, NodeId};
use serde::{Deserialize, Serialize};

use crate::health::HealthProblem;
use crate::position::PositionReport;
use crate::record::{Change, Happened};

/// Version of the protocol. Fields and topics may be added within one; a reader ignores what it
/// does not know.
pub const VERSION: u32 = 1;

/// The longest request, in bytes: no request needs a hundredth of it.
pub const REQUEST_MAX: usize = 16 << 10;

/// The longest line of a daemon that a client need take: an RSU with all its clients fills a tenth
/// of it.
pub const ANSWER_MAX: usize = 32 << 20;

/// Clients that may be connected to one socket at once.
pub const CLIENTS_MAX: usize = 32;

/// Subscriptions of one client.
pub const SUBSCRIPTIONS_MAX: usize = 16;

/// The first line of a daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub v2x_control: u32,
    /// Of the daemon.
    pub version: String,
    /// Its TAP, by which it is known on its host.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// When it was started, in milliseconds since 1970: with its process it tells one start from
    /// another.
    #[serde(default)]
    pub started_unix_ms: u64,
    /// What can be done here.
    pub access: Access,
}

/// What can be done on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Look.
    ReadOnly,
    /// Change as well.
    ReadWrite,
}

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Topic {
    /// The node and its process, now. To subscribers whole, once a second.
    View,
    /// What happened. To subscribers as it happens.
    Events,
    /// Changes of upstream, why, and what they cost. To subscribers as they happen.
    Changes,
    /// What is wrong. To subscribers whenever it changes, looked at once a second.
    Problems,
    /// The settings, and where each comes from, as they are now.
    Config,
    /// What is logged.
    Log,
    /// Whether and where the node is recorded, and how much of it.
    Recording,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Self; 7] = [
        Self::View,
        Self::Events,
        Self::Changes,
        Self::Problems,
        Self::Config,
        Self::Log,
        Self::Recording,
    ];
}

/// A line of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestLine {
    /// Comes back with the answer.
    pub id: u64,
    /// What is wanted.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Ask {
    /// These topics, once.
    Get(Vec<Topic>),
    /// These topics now, and then whatever changes in them.
    Subscribe(Vec<Topic>),
    /// No more of the subscription with this id.
    Unsubscribe(u64),
    /// Forget clients: all, or those with this address. Needs the read-write socket.
    FlushClients(Option<Mac>),
    /// Put a client behind an OBU, whatever is heard of it. Needs the read-write socket.
    PinClient(PinAsk),
    /// Take pins off: all, or those of clients with this address. Needs the read-write socket.
    UnpinClients(Option<Mac>),
    /// Log this from now on. Needs the read-write socket.
    SetLog(String),
    /// A setting gets this value from now on, until the next start. Needs the read-write socket.
    Set(SetAsk),
    /// Read the configuration file again, as SIGHUP has it read. Needs the read-write socket.
    Reload,
    /// What [`Ask::Reload`] would do. Nothing is changed.
    Check,
    /// Record into this directory, or where the settings say. Needs the read-write socket.
    RecordStart(Option<String>),
    /// Record no longer. Needs the read-write socket.
    RecordStop,
    /// Who is on the way to a node or client? Needs the read-write socket: something is sent.
    Ping(PingAsk),
    /// This text goes into the recording, and the moment is kept. Needs the read-write socket.
    RecordMark(String),
}

/// A client, and where it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinAsk {
    /// Its address.
    pub mac: Mac,
    /// Its VLAN; 0 without a tag.
    #[serde(default)]
    pub vlan: u16,
    /// Id of the OBU.
    pub obu: NodeId,
}

/// A question to be sent over the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingAsk {
    /// Id of a node, or address of a client.
    pub target: Mac,
    /// Hops it may go, 1 to 32; 1 asks whoever comes first on the way.
    pub hop_limit: u8,
    /// How long to wait for the answer, 1 to 10,000.
    pub within_ms: u16,
}

/// A setting, and what it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsk {
    /// Its flag, without dashes.
    pub name: String,
    /// As it would follow the flag.
    pub value: String,
}

impl Ask {
    /// It changes something.
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Get(_) | Self::Subscribe(_) | Self::Unsubscribe(_) | Self::Check)
    }
}

/// A line of a daemon after the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// To a request.
    Answer(AnswerLine),
    /// To a subscription.
    Update(Update),
}

/// What a request is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerLine {
    /// Of the request; 0 if it could not be read.
    pub id: u64,
    /// What was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Box<Topics>>,
    /// Why it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Refusal>,
}

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// The id of the subscription.
    pub update: u64,
    /// So many events, or changes, were missed before this one: this client reads too slowly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// What is new.
    #[serde(flatten)]
    pub topics: Box<Topics>,
}

/// Contents of topics; those that were not asked for are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topics {
    /// When, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Who.
    pub node: NodeId,
    /// What it is to the others.
    pub role: NodeRole,
    /// [`Topic::View`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// Where the node is; with [`Topic::View`], if it was told who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionReport>,
    /// [`Topic::Events`], the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Happened>>,
    /// [`Topic::Changes`], the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
    /// [`Topic::Problems`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Vec<HealthProblem>>,
    /// [`Topic::Config`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Vec<Setting>>,
    /// [`Topic::Log`]; what it is now, after [`Ask::SetLog`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// [`Topic::Recording`]; what it is now, after [`Ask::RecordStart`] and the like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// What became of the configuration file, after [`Ask::Reload`], or would, after
    /// [`Ask::Check`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reloaded: Option<Reloaded>,
    /// After [`Ask::Ping`]: the answer, or that none came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinged: Option<Pinged>,
    /// Pins put or taken off, after [`Ask::PinClient`] and [`Ask::UnpinClients`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pins: Option<u64>,
    /// Clients forgotten, after [`Ask::FlushClients`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed: Option<u64>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What kind of reason.
    pub kind: RefusalKind,
    /// For people: what was wrong, and what was expected.
    pub text: String,
}

/// Kinds of reasons to refuse a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RefusalKind {
    /// It is no request.
    Malformed,
    /// It is longer than [`REQUEST_MAX`].
    TooLong,
    /// There are too many clients, or subscriptions.
    TooMany,
    /// This socket is for looking only.
    ReadOnly,
    /// A value in it cannot be used.
    Invalid,
    /// It cannot be done as things are.
    Unable,
    /// The node has stopped.
    Stopped,
}

/// What became of a ping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinged {
    /// `None`: nothing came back in time.
    pub answer: Option<Echoed>,
}

/// The recording of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recording {
    /// It is recorded.
    pub is_on: bool,
    /// Where; with nothing on, where it was last.
    pub directory: Option<String>,
    /// From the making of the node on, so that it can be replayed.
    pub is_from_start: bool,
    /// Records, bytes and what was lost, of this recording or the last.
    pub counters: Counts,
}

/// What became of a configuration file that was read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reloaded {
    /// Settings that changed at once.
    pub taken: Vec<String>,
    /// Settings that wait for the next start: this daemon cannot change them while it runs.
    pub waiting: Vec<String>,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its flag, without dashes.
    pub name: String,
    /// Its values, as they were typed.
    pub values: Vec<String>,
    /// Where it comes from.
    pub from: Origin,
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment.
    Environment,
    /// The configuration file.
    File,
    /// A client of the control socket.
    Socket,
    /// Nobody said anything.
    Default,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn requests_read_as_documented() {
        let read = |text: &str| serde_json::from_str::<RequestLine>(text).unwrap();
        assert_eq!(
            read(r#"{"id":1,"get":["view","changes"]}"#),
            RequestLine { id: 1, ask: Ask::Get(vec![Topic::View, Topic::Changes]) }
        );
        assert_eq!(
            read(r#"{"id":2,"subscribe":["events"],"later":true}"#),
            RequestLine { id: 2, ask: Ask::Subscribe(vec![Topic::Events]) }
        );
        assert_eq!(read(r#"{"id":3,"flush-clients":null}"#).ask, Ask::FlushClients(None));
        assert_eq!(read(r#"{"id":5,"reload":null}"#).ask, Ask::Reload);
        assert_eq!(read(r#"{"id":6,"record-stop":null}"#).ask, Ask::RecordStop);
        assert_eq!(read(r#"{"id":7,"record-start":null}"#).ask, Ask::RecordStart(None));
        let set = SetAsk { name: "log".to_owned(), value: "debug".to_owned() };
        let text = r#"{"id":8,"set":{"name":"log","value":"debug"}}"#;
        assert_eq!(read(text).ask, Ask::Set(set));
        let line = serde_json::to_string(&RequestLine { id: 9, ask: Ask::Check }).unwrap();
        assert_eq!(read(&line).ask, Ask::Check, "{line}");
        assert_eq!(read(r#"{"id":4,"set-log":"debug"}"#).ask, Ask::SetLog("debug".to_owned()));
        for bad in ["", "{}", r#"{"id":1}"#, r#"{"get":["view"]}"#, r#"{"id":1,"get":["x"]}"#] {
            assert!(serde_json::from_str::<RequestLine>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_and_updates_are_told_apart_and_survive_the_way() {
        let view = View::default();
        let topics = Topics { view: Some(view), ..Topics::default() };
        let refusal = Refusal { kind: RefusalKind::ReadOnly, text: "no".to_owned() };
        let replies = [
            Reply::Answer(AnswerLine { id: 1, ok: Some(Box::new(topics.clone())), error: None }),
            Reply::Answer(AnswerLine { id: 2, ok: None, error: Some(refusal) }),
            Reply::Update(Update { update: 3, missed: Some(88), topics: Box::new(topics) }),
        ];
        for reply in replies {
            let line = serde_json::to_string(&reply).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply, "{line}");
        }
    }
}
