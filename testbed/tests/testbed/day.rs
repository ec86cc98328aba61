//! A day in the life of real daemons, whose clocks pass a hundred times as fast as everybody
//! else's: they take no more memory at its end than after its second hour. The disk with their
//! state files is read-only.
//!
//! Frames and the machine's hiccups do not get faster. So a neighbour that the scheduler keeps
//! waiting for three milliseconds has been silent for three heartbeats: to these daemons the day
//! is a bad one, in which ways end all the time.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use control_socket::record::EVENTS_KEPT;
use tempfile::TempDir;
use testbed::probe::{PingStream, send_raw};
use testbed::{ATTACHMENT_CHANGED, Host, Testbed, TestbedNode, wait_until};

use crate::beds::with_logs;
use crate::disk::Disk;
use crate::harness::{Area, ms};
use crate::preload::Told;

pub(crate) const AREA: Area = Area {
    name: "day",
    alone: &[
        ("daemons_hold_no_more_at_its_end", daemons_hold_no_more_at_its_end),
        ("one_that_forgets_memory_is_found", one_that_forgets_memory_is_found),
    ],
    together: &[],
};

/// How many times as fast.
const PACE: u32 = 100;
const MINUTE: Duration = Duration::from_secs(60);
/// Between two looks, in minutes.
const LOOK_EVERY: u32 = 5;
/// What part of a life is over when a daemon has all it needs: two hours of a day (row F27).
const SETTLED_AFTER: u32 = 12;
/// Nor is a short life settled before each relay was lost once and found again, in minutes.
const SETTLED_MIN: u32 = 15;
/// More clients than a node remembers (512 an OBU, 8,192 an RSU).
const CLIENTS_EVER: u32 = 9_000;
/// What the rest of the life may add to a daemon's memory.
const GROWTH_MAX_KIB: u64 = 64;

fn daemons_hold_no_more_at_its_end() -> Result<()> {
    let hours = match std::env::var("DAY_HOURS") {
        Ok(text) => text.parse().context("DAY_HOURS: a number")?,
        Err(_) => 1,
    };
    let grown = live(hours * 60, |_| Ok(()))?;
    ensure!(grown.is_empty(), "{}", grown.join("\n"));
    Ok(())
}

/// Otherwise a day without complaints would say nothing.
fn one_that_forgets_memory_is_found() -> Result<()> {
    let grown = live(30, |relay| relay.leak())?;
    let [only] = &grown[..] else { bail!("of one daemon that leaks: {grown:?}") };
    ensure!(only.starts_with("left: from "), "{only}");
    Ok(())
}

/// A server, a road-side unit, two relays, and a vehicle with a host that hears only those, for so
/// many minutes. Returns what became larger. `then` may do something to one of the relays when
/// daemons have settled.
fn live(minutes: u32, then: impl FnOnce(&Told) -> Result<()>) -> Result<Vec<String>> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let relays = [bed.add_obu("left")?, bed.add_obu("right")?];
    let (obu, host) = bed.add_obu_with_host("obu1", "host1")?;
    for relay in &relays {
        bed.connect(&rsu, relay)?;
        bed.connect(relay, &obu)?;
    }
    let nodes = [&rsu, &relays[0], &relays[1], &obu];
    // As the rest of the machine may have it for all the day (row F20).
    let disk = Disk::new()?;
    nodes.into_iter().for_each(|node| disk.give_to(node));
    disk.set_read_only(true)?;
    // Without one a daemon keeps nothing of what happens; of daemons that share a path one has it.
    let sockets = TempDir::new_in(testbed::arena::scratch())?;
    for node in nodes {
        let path = sockets.path().join(node.name()).with_extension("sock");
        node.extra_args.borrow_mut().extend(["--control".to_owned(), path.display().to_string()]);
    }
    let told =
        nodes.into_iter().map(|node| Told::faster(node, PACE)).collect::<Result<Vec<_>>>()?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        let ping = PingStream::start(&host.ns, server.v4, ms(10))?;
        wait_until("the host reaches the server", Duration::from_secs(10), || {
            Ok((ping.received() > 0).then_some(()))
        })?;
        // What a table that is filled for the first time takes is not what a day takes.
        speak(&host, 0..640)?;
        speak(&server, 0..CLIENTS_EVER)?;
        fill_histories(bed, &rsu, &relays, &obu)?;
        let begun = Instant::now();
        let (mut then, mut early, mut looks) = (Some(then), Vec::new(), Vec::new());
        for minute in 1..=minutes {
            for speaker in [&host, &server] {
                speak(speaker, CLIENTS_EVER + minute..CLIENTS_EVER + minute + 1)?;
            }
            if minute % 10 == 1 {
                let lost = usize::from(minute / 10 % 2 == 1);
                bed.cut(&relays[lost], &obu)?;
                bed.connect(&relays[1 - lost], &obu)?;
            }
            let next = begun + MINUTE * minute / PACE;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if minute == (minutes / SETTLED_AFTER).max(SETTLED_MIN) {
                early = held(&nodes)?;
                then.take().map_or(Ok(()), |then| then(&told[1]))?;
            }
            if minute % LOOK_EVERY == 0 {
                looks.push(held(&nodes)?);
            }
        }
        let report = ping.stop()?;
        println!("    {minutes} minutes, {} of {} pings", report.received, report.sent);
        ensure!(report.received > report.sent / 2, "{} of {}", report.received, report.sent);
        let mut grown = Vec::new();
        for (index, (node, early)) in nodes.into_iter().zip(early).enumerate() {
            let most = looks.iter().map(|of_all| of_all[index]).reduce(Held::most);
            let most = most.context("nobody looked")?;
            println!("    {}: {early}, at most {most}", node.name());
            if most.is_more_than(early) {
                grown.push(format!("{}: from {early} to {most}", node.name()));
            }
        }
        Ok(grown)
    })
}

/// The road-side unit is lost and found until each vehicle's daemon keeps as many events as it ever
/// will: a day fills a history slowly, and what a full one takes is not what it grows by.
fn fill_histories(
    bed: &mut Testbed,
    rsu: &TestbedNode,
    relays: &[Rc<TestbedNode>],
    behind: &Rc<TestbedNode>,
) -> Result<()> {
    // Five heartbeats of these daemons, and a moment for the machine.
    const MOMENT: Duration = Duration::from_millis(15);
    wait_until("histories are full", Duration::from_secs(120), || {
        for relay in relays {
            bed.cut(rsu, relay)?;
        }
        std::thread::sleep(MOMENT);
        for relay in relays {
            bed.connect(rsu, relay)?;
        }
        std::thread::sleep(MOMENT);
        let vehicles = relays.iter().chain([behind]);
        let changes = vehicles.map(|node| node.times_logged(ATTACHMENT_CHANGED));
        let least = changes.collect::<Result<Vec<_>>>()?.into_iter().min();
        Ok(least.filter(|least| *least >= EVENTS_KEPT))
    })?;
    Ok(())
}

/// What must not grow.
#[derive(Clone, Copy, Debug)]
struct Held {
    anonymous_kib: u64,
    descriptors: usize,
    threads: u64,
}

impl Held {
    fn most(self, other: Self) -> Self {
        Self {
            anonymous_kib: self.anonymous_kib.max(other.anonymous_kib),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
        }
    }

    fn is_more_than(self, early: Self) -> bool {
        self.anonymous_kib > early.anonymous_kib + GROWTH_MAX_KIB
            || self.descriptors > early.descriptors
            || self.threads > early.threads
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { anonymous_kib, descriptors, threads } = self;
        write!(f, "{anonymous_kib} KiB, {descriptors} descriptors, {threads} threads")
    }
}

fn held(nodes: &[&Rc<TestbedNode>]) -> Result<Vec<Held>> {
    let of = |node: &&Rc<TestbedNode>| {
        let daemon = node.daemon()?;
        let usage = daemon.usage().with_context(|| format!("{} is there", node.name()))?;
        Ok(Held {
            anonymous_kib: usage.anonymous / 1024,
            descriptors: std::fs::read_dir(format!("/proc/{}/fd", daemon.pid()))?.count(),
            threads: usage.threads,
        })
    };
    nodes.iter().map(of).collect()
}

/// Frames for all, each from somebody else.
fn speak(speaker: &Host, clients: Range<u32>) -> Result<()> {
    let [.., side] = speaker.mac.context("an address of its own")?.0;
    let frames: Vec<_> = clients
        .map(|client| {
            let [_, a, b, c] = client.to_be_bytes();
            let mut frame = [&[0xff; 6][..], &[6, 0, side, a, b, c], &[0x88, 0xb7]].concat();
            frame.resize(64, 0);
            frame
        })
        .collect();
    send_raw(
        &speaker.ns,
        &speaker.interface,
        frames.iter().map(Vec::as_slice),
        Duration::from_micros(250),
    )
}
