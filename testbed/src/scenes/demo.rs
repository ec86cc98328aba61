//! The demo: what the nodes are for, in under a minute, on one screen.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::arena::netns::Netns;
use crate::daemons::daemon::LogEvent;
use crate::daemons::programs::Programs;
use crate::probe::{PingReport, PingStream, transfer};
use crate::screen::{Screen, in_ms};
use crate::topology::world::{ATTACHMENT_CHANGED, HAND_OVER_DONE, Host, Testbed, TestbedNode};
use crate::wait::wait_until;

/// Time between pings, here and in the promises below.
const PING_EVERY: Duration = Duration::from_millis(10);
/// What the product promises when an upstream dies without a word.
const GAP_SILENT_MAX: Duration = Duration::from_millis(300);
/// What the product promises when a node says goodbye.
const GAP_GOODBYE_MAX: Duration = Duration::from_millis(50);
/// Longest wait for a route at the start, and for one to come back.
const ROUTE_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait for the record of a hand-over, which is written when the new way is acknowledged
/// and the old one is not listened to any more.
const RECORD_WITHIN: Duration = Duration::from_secs(3);

/// What `testbed demo` is told.
#[derive(Args, Clone, Copy, Debug)]
pub struct DemoOptions {
    /// Stop after discovery and pings
    #[arg(long)]
    pub until_ping: bool,
}

/// Runs the demo inside the arena. Fails when anything did not work as promised.
pub fn run(options: DemoOptions) -> Result<()> {
    let start = Instant::now();
    Programs::find()?.require_daemons()?;
    let screen = Screen::new();
    let mut scene = Scene::set_up()?;
    let told = tell(&screen, &mut scene, options);
    match told {
        Ok(()) => screen.end(start.elapsed()),
        Err(error) => {
            eprintln!("\n{}", scene.bed.log_tails());
            Err(error)
        }
    }
}

/// Who takes part.
struct Scene {
    bed: Testbed,
    server: Host,
    rsus: [Rc<TestbedNode>; 2],
    obus: [Rc<TestbedNode>; 3],
    laptop: Host,
}

impl Scene {
    fn set_up() -> Result<Self> {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
        let (obu1, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
        let obus = [obu1, bed.add_obu("obu2")?, bed.add_obu("obu3")?];
        let [obu1, obu2, obu3] = &obus;
        for rsu in &rsus {
            bed.connect(obu1, rsu)?;
            bed.connect(obu2, rsu)?;
        }
        bed.connect(obu2, obu3)?;
        Ok(Self { bed, server, rsus, obus, laptop })
    }

    /// The road-side unit a vehicle next to it sends to, by what its daemon said last.
    fn upstream_of(&self, obu: &TestbedNode) -> Result<(Rc<TestbedNode>, Rc<TestbedNode>)> {
        let [rsu1, rsu2] = &self.rsus;
        for (rsu, other) in [(rsu1, rsu2), (rsu2, rsu1)] {
            if obu.sends_through(rsu)? {
                return Ok((Rc::clone(rsu), Rc::clone(other)));
            }
        }
        bail!("{} sends through no road-side unit: {}", obu.name(), obu.attachment()?)
    }
}

fn tell(screen: &Screen, scene: &mut Scene, options: DemoOptions) -> Result<()> {
    screen.title("OBU and RSU: a vehicle's LAN on the road-side LAN, by radio");
    screen.text(TOPOLOGY);
    screen
        .dim("Real daemons and kernel interfaces in private namespaces; only the air is made up.");

    discovery(screen, scene)?;
    pings(screen, scene)?;
    if options.until_ping {
        return Ok(());
    }
    tcp(screen, scene)?;
    silent_death(screen, scene)?;
    goodbye(screen, scene)
}

fn discovery(screen: &Screen, scene: &Scene) -> Result<()> {
    screen.step("Discovery: five daemons start and find each other");
    let start = Instant::now();
    scene.bed.start_all()?;
    for obu in &scene.obus {
        let event = obu
            .daemon()?
            .wait_for_event(ATTACHMENT_CHANGED, ROUTE_WITHIN, |event| event.text("to") != "none")?;
        let to = scene.bed.with_names(&event.text("to"));
        screen.good(obu.name(), &format!("uses {to}"));
    }
    for (from, name) in [&scene.laptop.ns, scene.obus[0].ns()].iter().zip(["laptop", "obu1"]) {
        wait_until(&format!("{name} reaches the server"), ROUTE_WITHIN, || {
            let report = PingStream::count(from, scene.server.v4, 1, PING_EVERY)?;
            Ok((report.received > 0).then_some(()))
        })?;
    }
    screen.good("ready", &format!("{} after the first daemon started", in_ms(start.elapsed())));
    screen.remember("Everybody has a route after", in_ms(start.elapsed()));
    Ok(())
}

fn pings(screen: &Screen, scene: &Scene) -> Result<()> {
    let [obu1, obu2, obu3] = &scene.obus;
    let server = &scene.server;
    screen.step("Ping: to the road-side LAN, and from vehicle to vehicle");
    let ways: [(&str, &Netns, &Host, &str); 6] = [
        ("obu1 → server", obu1.ns(), server, "one hop"),
        ("obu2 → server", obu2.ns(), server, "one hop"),
        ("obu3 → server", obu3.ns(), server, "two hops: obu3 hears only obu2"),
        ("laptop → server", &scene.laptop.ns, server, "a host on obu1's own LAN"),
        ("obu1 → obu3", obu1.ns(), &obu3.host, "vehicle to vehicle"),
        ("server → laptop", &server.ns, &scene.laptop, "into the vehicle"),
    ];
    for (way, from, to, remark) in ways {
        // Address resolution is not what is shown here.
        PingStream::count(from, to.v4, 2, PING_EVERY)?;
        let report = PingStream::count(from, to.v4, 25, PING_EVERY)?;
        ensure!(report.lost == 0 && report.duplicates == 0, "{way}: {report:?}");
        let median = report.delay_median().as_secs_f64() * 1e3;
        screen.good(way, &format!("25 of 25 replies, {median:5.2} ms   {remark}"));
    }
    screen.remember("Pings, all six ways", "150 of 150 answered".to_owned());
    Ok(())
}

fn tcp(screen: &Screen, scene: &Scene) -> Result<()> {
    screen.step("TCP: every byte checked at the far end");
    let ways = [
        ("laptop → server", &scene.laptop.ns, "one hop", 32_000_000),
        ("obu3 → server", scene.obus[2].ns(), "two hops", 16_000_000),
    ];
    for (way, from, hops, bytes) in ways {
        let report = transfer(from, &scene.server.ns, scene.server.v4, bytes).context(way)?;
        let rate = format!("{:.0} Mbit/s", report.mbit_per_s());
        let size = report.bytes / 1_000_000;
        screen.good(way, &format!("{size} MB intact, {rate} over {hops}"));
        screen.remember(&format!("TCP over {hops}"), rate);
    }
    Ok(())
}

fn silent_death(screen: &Screen, scene: &mut Scene) -> Result<()> {
    screen.step("Fail-over: the upstream of obu1 falls silent");
    let obu1 = Rc::clone(&scene.obus[0]);
    let (active, other) = scene.upstream_of(&obu1)?;
    screen.plain(&format!(
        "the radio between obu1 and {} goes dead both ways; a ping runs 100 times a second",
        active.name()
    ));
    let ping = PingStream::start(obu1.ns(), scene.server.v4, PING_EVERY)?;
    std::thread::sleep(Duration::from_millis(700));
    scene.bed.cut(&obu1, &active)?;
    std::thread::sleep(Duration::from_millis(1500));
    let report = ping.stop()?;
    scene.bed.connect(&obu1, &active)?;
    judge(screen, scene, &obu1, &other, &report, GAP_SILENT_MAX)?;
    screen.remember("Upstream dies silently", shown_gap(&report));
    Ok(())
}

fn goodbye(screen: &Screen, scene: &mut Scene) -> Result<()> {
    screen.step("Hand-over: the road-side unit of obu1 is switched off, and says so");
    // What was cut before must be known as a way again.
    std::thread::sleep(Duration::from_millis(1500));
    let obu1 = Rc::clone(&scene.obus[0]);
    let (active, other) = scene.upstream_of(&obu1)?;
    screen.plain(&format!("SIGTERM to {}; a ping runs 100 times a second", active.name()));
    let ping = PingStream::start(obu1.ns(), scene.server.v4, PING_EVERY)?;
    std::thread::sleep(Duration::from_millis(500));
    active.stop()?;
    std::thread::sleep(Duration::from_millis(1000));
    let report = ping.stop()?;
    judge(screen, scene, &obu1, &other, &report, GAP_GOODBYE_MAX)?;
    screen.remember("Road-side unit says goodbye", shown_gap(&report));
    Ok(())
}

/// Shows a fail-over. A promise counts in pings lost in a row: a busy machine delays replies, and
/// a reply delayed is not a route missing.
fn judge(
    screen: &Screen,
    scene: &Scene,
    obu: &TestbedNode,
    other: &TestbedNode,
    report: &PingReport,
    promised: Duration,
) -> Result<()> {
    let outage = PING_EVERY * u32::try_from(report.lost_in_a_row)?;
    ensure!(
        report.received > 0 && outage <= promised,
        "promised at most {}, {} pings lost in a row: {report:?}",
        in_ms(promised),
        report.lost_in_a_row
    );
    let (now, _) = scene.upstream_of(obu)?;
    ensure!(now.name() == other.name(), "{} should now use {}", obu.name(), other.name());
    // Its record says why the old upstream was left, as it turned out: that it had died shows only
    // afterwards.
    let attachment = obu.attachment()?;
    let record = wait_until("record of the hand-over", RECORD_WITHIN, || {
        let is_record =
            |event: &LogEvent| event.message() == HAND_OVER_DONE && event.text("to") == attachment;
        Ok(obu.events()?.into_iter().rfind(is_record))
    })?;
    let to = scene.bed.with_names(&record.text("to"));
    screen.good(obu.name(), &format!("now uses {to} (cause: {})", record.text("cause")));
    screen.good("gap", &format!("{} (promised: at most {})", shown_gap(report), in_ms(promised)));
    Ok(())
}

fn shown_gap(report: &PingReport) -> String {
    format!("{} without a reply, {} of {} pings lost", in_ms(report.gap), report.lost, report.sent)
}

const TOPOLOGY: &str = "
                  server
                    │
      ══════╤═══════╧════════╤══════   road-side LAN
         ┌──┴───┐        ┌───┴──┐
         │ rsu1 │        │ rsu2 │
         └──────┘        └──────┘
           ╎   ╲╌╌╌╌╌╌╌╌╌╱   ╎
           ╎   ╱╌╌╌╌╌╌╌╌╌╲   ╎         radio
         ┌──────┐        ┌──────┐     ┌──────┐
         │ obu1 │        │ obu2 │╌╌╌╌╌│ obu3 │
         └──┬───┘        └──────┘     └──────┘
          laptop                      hears only obu2
";
