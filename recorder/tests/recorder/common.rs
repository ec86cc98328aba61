//! What the tests of the recorder share: a header, and any record there can be.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::{Attachment, Cause, Event, HandOver, Limit, TooLong};
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::pin::Pin;
use node_lib::control::positions::Located;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::position::Coordinates;
use node_lib::start::clients::Remembered;
use node_lib::{Boot, Mac, NodeId, Start, Timestamp};
use proptest::prelude::*;
use recorder::header::{RecordingHeader, Role};
use recorder::read::{FileReport, Item, ReadError, Recording};
use recorder::record::{Frame, Record, What};

/// Whose recordings these are.
pub fn header() -> RecordingHeader {
    let start = Start { boot: Boot(7), seed: u64::MAX - 1, ..Start::new(Mac([2, 0, 0, 0, 0, 9])) };
    let settings = serde_json::json!({ "hello_history": 10, "policy": { "ranking": "Cost" } });
    RecordingHeader::new(Role::Obu, &start, Timestamp::from_micros(12), &settings).unwrap()
}

/// Everything in these files.
pub fn read(paths: &[PathBuf]) -> (Vec<Record<'static>>, Vec<FileReport>) {
    let mut records = Vec::new();
    let reports = Recording::open(paths)
        .unwrap()
        .read(|item| {
            if let Item::Record(record) = item {
                records.push(record.clone().into_owned());
            }
            Ok::<_, ReadError>(true)
        })
        .unwrap();
    (records, reports)
}

/// The recordings in a directory, those that are being written among them.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

fn mac() -> impl Strategy<Value = Mac> {
    any::<[u8; 6]>().prop_map(Mac)
}

fn id() -> impl Strategy<Value = NodeId> {
    any::<[u8; 6]>().prop_map(NodeId)
}

fn place() -> impl Strategy<Value = Attachment> {
    (id(), id(), any::<u8>()).prop_map(|(rsu, upstream, hops)| Attachment { rsu, upstream, hops })
}

fn cause() -> impl Strategy<Value = Cause> {
    use Cause::*;
    prop::sample::select(vec![
        First, Dead, Goodbye, Withdrawn, Restarted, Fading, Predicted, Better, LinkDown,
    ])
}

fn span() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn event() -> impl Strategy<Value = Event> {
    let limit = prop::sample::select(vec![Limit::Fragments, Limit::Radio, Limit::Tap]);
    let hand_over = (
        (place(), prop::option::of(place()), cause(), any::<bool>(), span()),
        (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()),
    );
    prop_oneof![
        (prop::option::of(place()), prop::option::of(place()), cause(), span()).prop_map(
            |(from, to, cause, silence)| Event::UpstreamChanged { from, to, cause, silence }
        ),
        hand_over.prop_map(
            |((from, to, cause, is_settled, gap), (lost, at_risk, doubled, sent_twice))| {
                Event::HandOver(HandOver {
                    from,
                    to,
                    cause,
                    is_settled,
                    gap,
                    lost,
                    at_risk,
                    doubled,
                    sent_twice,
                })
            }
        ),
        (id(), any::<usize>(), any::<u32>()).prop_map(|(obu, clients, epoch)| Event::ObuAttached {
            obu,
            clients,
            epoch
        }),
        id().prop_map(|obu| Event::ObuDetached { obu }),
        (id(), any::<u32>(), any::<u32>()).prop_map(|(rsu, epoch, attempts)| Event::Acknowledged {
            rsu,
            epoch,
            attempts
        }),
        (any::<u16>(), mac())
            .prop_map(|(vlan, mac)| Event::ClientHeld { client: Client { vlan, mac } }),
        (id(), mac()).prop_map(|(obu, mac)| Event::ObuIdConflict { obu, mac }),
        (id(), any::<usize>()).prop_map(|(obu, hops_max)| Event::TooFar { obu, hops_max }),
        (any::<u32>(), any::<Option<u8>>()).prop_map(|(ms, busy_percent)| {
            Event::PaceChanged { every: Duration::from_millis(ms.into()), busy_percent }
        }),
        (mac(), any::<usize>(), any::<usize>(), limit).prop_map(|(from, len, most, limit)| {
            Event::TooLong(TooLong { from, len, most, limit })
        }),
        mac().prop_map(|mac| Event::IdConflict { mac }),
    ]
}

fn frame() -> impl Strategy<Value = Frame<'static>> {
    let len = prop_oneof![0..80usize, 1400..1600usize];
    len.prop_flat_map(|len| {
        let bytes = prop::collection::vec(any::<u8>(), len);
        // Some were cut.
        (bytes, 0..3u32).prop_map(|(bytes, cut)| Frame {
            len: bytes.len() as u32 + cut * 500,
            bytes: Cow::Owned(bytes),
        })
    })
}

fn located() -> impl Strategy<Value = Located> {
    let place = (-900_000_000..=900_000_000, -1_800_000_000..=1_800_000_000);
    (place, prop::option::of(0..u16::MAX), any::<bool>()).prop_map(
        |((latitude, longitude), accuracy, is_fixed)| {
            let at = Coordinates::from_units(latitude, longitude, accuracy).unwrap();
            Located { at, is_fixed }
        },
    )
}

fn what() -> impl Strategy<Value = What<'static>> {
    let link = prop_oneof![
        Just(LinkEvent::Up),
        Just(LinkEvent::Down),
        Just(LinkEvent::LanUp),
        Just(LinkEvent::LanDown),
        mac().prop_map(LinkEvent::AddressChanged),
        any::<usize>().prop_map(LinkEvent::MtuChanged),
        any::<u8>().prop_map(LinkEvent::ChannelBusy),
    ];
    let client = (mac(), any::<u16>(), any::<u64>()).prop_map(|(mac, vlan, silent_us)| {
        Remembered { client: Client { vlan, mac }, silent_for: Duration::from_micros(silent_us) }
    });
    let clients = prop::collection::vec(client, 0..40);
    prop_oneof![
        frame().prop_map(What::FromRadio),
        frame().prop_map(What::FromTap),
        frame().prop_map(What::FromTapLate),
        frame().prop_map(What::Unacknowledged),
        frame().prop_map(What::ToRadio),
        frame().prop_map(What::ToTap),
        (mac(), any::<i8>()).prop_map(|(from, dbm)| What::Signal { from, dbm }),
        link.prop_map(What::Link),
        Just(What::Timeout),
        Just(What::Shutdown),
        clients.prop_map(|clients| What::Clients(clients.into())),
        prop::option::of(mac()).prop_map(What::ForgetClients),
        prop::option::of(located()).prop_map(What::Position),
        prop::option::of(mac()).prop_map(|which| What::Pin(Pin::Take(which))),
        (mac(), any::<u16>(), mac()).prop_map(|(mac, vlan, obu)| {
            What::Pin(Pin::Put { client: Client { vlan, mac }, obu: NodeId(obu.0) })
        }),
        event().prop_map(What::Event),
        ".{0,40}".prop_map(|text| What::Mark(text.into())),
        any::<u64>().prop_map(What::Lost),
    ]
}

/// Records of every kind, in the order of time.
pub fn records(most: usize) -> impl Strategy<Value = Vec<Record<'static>>> {
    let times = prop_oneof![0..2000u64, 0..u64::MAX / 4096];
    prop::collection::vec((times, what()), 0..most).prop_map(|records| {
        let mut now = 0;
        records
            .into_iter()
            .map(|(since, what)| {
                now += since;
                Record { at: Timestamp::from_micros(now), what }
            })
            .collect()
    })
}

/// A node that does this with what it hears, and nothing else.
pub struct Hears {
    hear: fn(&[u8], &mut Replies),
    counters: Counters,
}

impl Hears {
    pub fn new(hear: fn(&[u8], &mut Replies)) -> Self {
        Self { hear, counters: Counters::default() }
    }
}

impl Node for Hears {
    fn id(&self) -> NodeId {
        NodeId([2; 6])
    }
    fn handle_wire(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        (self.hear)(frame, out);
    }
    fn handle_tap(&mut self, _: Timestamp, _: &[u8], _: &mut Replies) {}
    fn handle_link(&mut self, _: Timestamp, _: LinkEvent, _: &mut Replies) {}
    fn handle_timeout(&mut self, _: Timestamp, _: &mut Replies) {}
    fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn handle_shutdown(&mut self, _: Timestamp, _: &mut Replies) {}
    fn linger(&self) -> Duration {
        Duration::ZERO
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
