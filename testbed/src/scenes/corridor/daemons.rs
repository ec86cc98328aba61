//! A drive with the real programs: namespaces, a Linux bridge between the road-side units, and the
//! medium playing the trace.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow};
use node_lib::Mac;

use super::drive::{Change, Drive, HandOverReport};
use super::{Corridor, FRAME_LEN, LEAD, TAIL};
use crate::arena::fdb::{FdbWatch, LearntAddress};
use crate::daemons::daemon::LogEvent;
use crate::daemons::programs::Programs;
use crate::probe::{Endpoint, NumberedFrame, Stream, Streams, send_frames};
use crate::topology::world::{
    ATTACHMENT_CHANGED, Cabin, HAND_OVER_DONE, Host, Testbed, TestbedNode,
};
use crate::wait::wait_until;
use crate::{Quality, medium};

/// What a drive with the real programs leaves behind.
#[derive(Debug)]
pub struct RealDrive {
    /// As of any drive.
    pub drive: Drive,
    /// What the bridge between the road-side units learnt about clients: when, from the start of
    /// the run, about which client, behind which port.
    pub learnt: Vec<(Duration, Mac, String)>,
    /// The clients, those that talk first.
    pub clients: Vec<Mac>,
    /// Frames sent meanwhile by the clients that never speak.
    pub silent_sent: u64,
    /// What the medium carried and lost, over all links.
    pub medium: medium::Counters,
    /// How long the sender of probes had to wait for the processor at worst.
    pub late_max: Duration,
}

/// How a bridge followed a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Clients it knew behind the new road-side unit when the vehicle left that, or arrived.
    pub clients: usize,
    /// Of those, clients that never speak.
    pub silent: usize,
    /// How long after the hand-over it had learnt the last of them.
    pub last: Duration,
}

impl RealDrive {
    /// What the bridge between the road-side units had learnt of each hand-over.
    pub fn moves(&self, talking: usize) -> Vec<Moves> {
        let hand_overs = self.drive.hand_overs();
        let from_start = |time: Duration| self.drive.departure + time;
        let ends = hand_overs.iter().skip(1).map(|next| from_start(next.left));
        let ends = ends.chain([Duration::MAX]);
        let moves = hand_overs.iter().zip(ends).map(|(hand_over, end)| {
            // Where each client was last found before the end, and when.
            let found = self.clients.iter().map(|client| {
                let about = |(at, mac, _): &&(Duration, Mac, String)| mac == client && *at < end;
                let last = self.learnt.iter().rfind(about);
                last.filter(|(.., port)| *port == hand_over.to).map(|(at, ..)| *at)
            });
            let found: Vec<Option<Duration>> = found.collect();
            let last = found.iter().flatten().max().copied().unwrap_or_default();
            Moves {
                clients: found.iter().flatten().count(),
                silent: found.iter().skip(talking).flatten().count(),
                last: last.saturating_sub(from_start(hand_over.at)),
            }
        });
        moves.collect()
    }
}

/// How long everything may take to find each other.
const READY_WITHIN: Duration = Duration::from_secs(15);
/// How often `watch` is called.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// Drives once. `watch` is told from time to time how long the vehicle has been on the road, and
/// where it sends to.
pub fn drive(corridor: &Corridor, watch: &mut dyn FnMut(Duration, &str)) -> Result<RealDrive> {
    Programs::find()?.require_daemons()?;
    let mut bed = Testbed::new(corridor.seed)?;
    let driven = drive_in(&mut bed, corridor, watch);
    driven.map_err(|error| anyhow!("{}\n{error:#}", bed.log_tails()))
}

fn drive_in(
    bed: &mut Testbed,
    corridor: &Corridor,
    watch: &mut dyn FnMut(Duration, &str),
) -> Result<RealDrive> {
    let server = bed.add_host("server")?;
    for name in corridor.rsus() {
        bed.add_rsu(name)?;
    }
    let (obu, cabin) = bed.add_obu_with_cabin(corridor.vehicle()?, corridor.clients)?;
    let base = Quality { retries: corridor.retries, ..Quality::default() };
    bed.play(&corridor.trace.between(Duration::ZERO, Duration::ZERO), base)?;
    if corridor.trace.tells_signal() {
        bed.tell_signal(&obu)?;
    }
    bed.start_all()?;
    introduce(bed, &obu, &cabin)?;

    let silent = cabin.clients.iter().skip(corridor.talking.into());
    let sent_by_silent = || {
        let sent = silent.clone().map(|(interface, _)| cabin.ns.frames_sent(interface));
        sent.sum::<Result<u64>>()
    };
    let before = sent_by_silent()?;
    let fdb = FdbWatch::start(bed.lan())?;
    let streams = start_streams(corridor, &server, &cabin)?;
    let (started, started_at) = (streams.started(), SystemTime::now());
    std::thread::sleep(LEAD.saturating_sub(started.elapsed()));
    bed.play(&corridor.trace, base)?;
    let departure = started.elapsed();
    let on_the_road = Instant::now();
    while on_the_road.elapsed() < corridor.trace.end() + TAIL {
        std::thread::sleep(WATCH_EVERY);
        watch(on_the_road.elapsed(), &bed.with_names(&obu.attachment()?));
    }
    let report = streams.stop()?;
    let silent_sent = sent_by_silent()? - before;
    let learnt = fdb.stop()?;

    let (down, up) = report.logs.split_at(cabin.clients.len());
    let said = Said { bed, started_at };
    let events = obu.events()?;
    let of_kind = |kind| events.iter().filter(move |event| event.message() == kind);
    let changes = of_kind(ATTACHMENT_CHANGED).map(|event| said.change(event));
    let records = of_kind(HAND_OVER_DONE).map(|event| said.record(event));
    let (changes, records) = (changes.collect::<Result<_>>()?, records.collect::<Result<_>>()?);
    let clients: Vec<_> = cabin.clients.iter().map(|(_, mac)| *mac).collect();
    let of_clients = |learnt: &LearntAddress| clients.contains(&learnt.mac);
    let learnt = learnt.into_iter().filter(of_clients);
    let total = |of: fn(&medium::Counters) -> u64, all: &[medium::LinkStatistics]| {
        all.iter().map(|link| of(&link.counters)).sum()
    };
    let statistics = bed.statistics()?;
    Ok(RealDrive {
        drive: Drive {
            departure,
            arrival: departure + corridor.trace.end(),
            changes,
            records,
            odds: corridor.odds()?,
            down: down.to_vec(),
            up: up.to_vec(),
        },
        learnt: learnt.map(|l| (l.at.saturating_duration_since(started), l.mac, l.port)).collect(),
        silent_sent,
        medium: medium::Counters {
            forwarded: total(|counters| counters.forwarded, &statistics),
            lost: total(|counters| counters.lost, &statistics),
            retried: total(|counters| counters.retried, &statistics),
            overflow: total(|counters| counters.overflow, &statistics),
            ..medium::Counters::default()
        },
        late_max: report.late_max,
        clients,
    })
}

/// Every client says one word, and everybody on the LAN comes to know where it is.
fn introduce(bed: &Testbed, obu: &TestbedNode, cabin: &Cabin) -> Result<()> {
    obu.wait_until_attached(READY_WITHIN)?;
    for (interface, mac) in &cabin.clients {
        let (to, from) = (Mac::BROADCAST, *mac);
        let hello = NumberedFrame { to, from, vlan: None, number: 0, payload_len: HELLO_LEN };
        wait_until(&format!("the LAN knows {interface}"), READY_WITHIN, || {
            send_frames(&cabin.ns, interface, std::slice::from_ref(&hello), HELLO_EVERY)?;
            bed.lan().bridge_port_of(*mac)
        })?;
    }
    Ok(())
}

const HELLO_LEN: usize = 46;
/// The first word may be lost, as anything on air.
const HELLO_EVERY: Duration = Duration::from_millis(20);

/// Streams to all clients, then those from the clients that talk.
fn start_streams(corridor: &Corridor, server: &Host, cabin: &Cabin) -> Result<Streams> {
    let mac = server.mac_now()?;
    let at_server = Endpoint { ns: server.ns.clone(), interface: server.interface.clone(), mac };
    let at_clients = cabin.clients.iter().map(|(interface, mac)| Endpoint {
        ns: cabin.ns.clone(),
        interface: interface.clone(),
        mac: *mac,
    });
    let endpoints: Vec<_> = std::iter::once(at_server).chain(at_clients).collect();
    let clients = 1..endpoints.len();
    let down = clients.clone().map(|to| Stream { from: 0, to, every: corridor.down_every() });
    let talking = clients.take(corridor.talking.into());
    let up = talking.map(|from| Stream { from, to: 0, every: corridor.up_every() });
    let streams: Vec<_> = down.chain(up).collect();
    Streams::start(&endpoints, &streams, FRAME_LEN - HEADER_LEN)
}

/// Addresses and EtherType.
const HEADER_LEN: usize = 14;

/// The vehicle's log, read.
struct Said<'a> {
    bed: &'a Testbed,
    started_at: SystemTime,
}

impl Said<'_> {
    fn change(&self, event: &LogEvent) -> Result<Change> {
        let place = |field| Some(self.rsu(event, field)).filter(|rsu| rsu != "none");
        let (at, cause) = (self.time(event)?, event.text("cause"));
        Ok(Change { at, from: place("from"), to: place("to"), cause })
    }

    fn record(&self, event: &LogEvent) -> Result<HandOverReport> {
        let number = |field: &str| {
            let value = event.field(field).and_then(serde_json::Value::as_u64);
            value.with_context(|| format!("\"{HAND_OVER_DONE}\" without {field}"))
        };
        Ok(HandOverReport {
            at: self.time(event)?,
            from: self.rsu(event, "from"),
            to: self.rsu(event, "to"),
            gap: Duration::from_millis(number("gap_ms")?),
            lost: number("lost")?,
            at_risk: number("at_risk")?,
            doubled: number("doubled")?,
            sent_twice: number("sent_twice")?,
        })
    }

    /// From the start of the run; the vehicle found its first road-side unit before that.
    fn time(&self, event: &LogEvent) -> Result<Duration> {
        let time = event.time().context("the vehicle's log")?;
        Ok(time.duration_since(self.started_at).unwrap_or_default())
    }

    /// A place is `RSU (1 hop)`, `RSU via …` or `none`.
    fn rsu(&self, event: &LogEvent, field: &str) -> String {
        let place = self.bed.with_names(&event.text(field));
        place.split(' ').next().unwrap_or_default().to_owned()
    }
}
