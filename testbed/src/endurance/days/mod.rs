//! A week in minutes: real daemons, and everything that goes wrong in a long life, one thing after
//! the other and at times several at once.
//!
//! ```text
//!            server
//!              │
//!   ═══╤═══════╧═══════╤═══      road-side LAN
//!     rsu1           rsu2        rsu2 and obu1 never restart: their memory is watched
//!       ╎ ╲╌╌╌╌╌╌╌╌╌╱ ╎
//!       ╎ ╱╌╌╌╌╌╌╌╌╌╲ ╎
//!  host1─obu1 ╌╌╌╌╌ obu2─host2
//!           ╲       ╱
//!            obu3─host3          hears only the vehicles
//! ```
//!
//! The server exchanges a numbered frame with each host every 10 ms. A *round* is what the seed's
//! script lets happen at the same time ([`fault`]); when it is over, frames must flow again on
//! every stream within the promised time, counted in frames. While it lasts, vehicles that have
//! another way must have found it. What else must hold is looked at all the time ([`health`]).
//!
//! What takes a week is the growth of the boot count between restarts, which the state file tells,
//! and the clocks of daemons, which begin months ahead in time namespaces. The time of day is
//! everybody's and stays as it is.

pub mod command;
pub mod fault;
pub mod health;
pub mod report;
mod samples;
pub mod scene;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use nix::sys::signal::Signal;
use sim::Role;

use fault::{InjectedFault, Script};
use health::Patient;
use report::{DaysReport, Row};
use samples::Samples;
use scene::{DaysScene, FIRST_VEHICLE};

use crate::daemons::daemon::LogEvent;
use crate::daemons::programs::Programs;
use crate::endurance::restarts::{EVERY, STEADY};
use crate::medium::Quality;
use crate::probe::{Doubled, Pulse, Totals};
use crate::topology::world::TestbedNode;
use crate::wait::wait_until;

/// What is run.
#[derive(Clone, Debug)]
pub struct DaysPlan {
    /// Seed of the script.
    pub seed: u64,
    /// How long faults go on.
    pub lasts: Duration,
    /// The longest stall.
    pub stall_max: Duration,
    /// Other programs instead of the daemon of a node, by index: what shall be found out in tests.
    pub planted: BTreeMap<usize, PathBuf>,
    /// How well radios hear each other when nothing is wrong.
    pub quality: Quality,
    /// Links that were cut stay so: what shall be found out in tests.
    pub never_heals: bool,
    /// Where it is written down, minute by minute, what nodes hold that never restart.
    pub samples: Option<PathBuf>,
}

/// How long recovery is waited for at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// A frame sent later than this before a look may still be on its way.
const IN_FLIGHT: Duration = Duration::from_millis(150);
/// How long the LAN's bridge takes to learn where the hosts are: each speaks every 10 ms.
const LEARNS: Duration = Duration::from_millis(300);
/// Frames that it sends both ways until then, to three hosts.
const FLOODED_MAX: u64 = 30;
/// A machine that lets the sender wait longer cannot keep promises of milliseconds.
const LATE_MAX: Duration = Duration::from_millis(150);
/// How long the machine is left alone to see what daemons take when nothing happens.
const REST: Duration = Duration::from_secs(3);
/// Share of a core a daemon may take then: heartbeats of five nodes, in an unoptimised build.
const REST_SHARE_MAX: f64 = 0.05;

impl DaysPlan {
    /// A run of this length with nothing planted in it.
    pub fn new(seed: u64, lasts: Duration) -> Self {
        let stall_max = Duration::from_secs(8);
        let (planted, quality) = (BTreeMap::new(), Quality::default());
        Self { seed, lasts, stall_max, planted, quality, never_heals: false, samples: None }
    }
}

/// Runs it all inside the arena, and tells `progress` about each round. Broken invariants are in
/// the report; an error is a failure of the testbed.
pub fn run(
    plan: &DaysPlan,
    programs: &Programs,
    progress: &mut dyn FnMut(&DaysReport, &str),
) -> Result<DaysReport> {
    let mut scene = DaysScene::lay(plan, programs)?;
    scene.fill_tables()?;
    let pulse = scene.pulse()?;
    let patients = scene.bed.nodes().iter().map(|_| Patient::default()).collect();
    let report = DaysReport::new(plan.seed, plan.lasts);
    let samples = plan.samples.as_deref().map(Samples::create).transpose()?;
    let mut run = Run { scene, pulse, patients, samples, report, totals: Totals::default() };
    let start = Instant::now();
    run.recover(start, PATIENCE, "at the start");
    let mut script = Script::new(plan.seed, run.scene.targets(), plan.stall_max);
    while start.elapsed() < plan.lasts {
        let round = script.next_round();
        let calm = Duration::from_millis(u64::from(script.between(200, 500)));
        let said = run.round(&round, calm)?;
        run.look(start.elapsed())?;
        progress(&run.report, &said);
    }
    run.end(start)
}

struct Run {
    scene: DaysScene,
    pulse: Pulse,
    patients: Vec<Patient>,
    samples: Option<Samples>,
    report: DaysReport,
    totals: Totals,
}

impl Run {
    /// One round, from the first fault to the calm after it. What a person reads of it.
    fn round(&mut self, round: &[InjectedFault], calm: Duration) -> Result<String> {
        let name = self.name_of(round);
        self.pulse.take_late_max();
        let began = Instant::now();
        for fault in round {
            if let Err(error) = self.scene.inject(fault) {
                self.report.broke(format!("{name}: cannot be done: {error:#}"));
            }
        }
        let struck = Instant::now();
        let mut in_order: Vec<&InjectedFault> = round.iter().collect();
        in_order.sort_by_key(|fault| fault.lasts);
        let mut is_survivable = matches!(round, [_]);
        for fault in in_order {
            std::thread::sleep(fault.lasts.saturating_sub(struck.elapsed()));
            if std::mem::take(&mut is_survivable) {
                self.survived(fault, began, &name);
            }
            if let Err(error) = self.scene.clear(fault) {
                self.report.broke(format!("{name}: {error:#}"));
            }
        }
        let over = Instant::now();
        let within = round.iter().map(|f| f.kind.recovers_within(self.scene.role_of(f))).max();
        let within = within.unwrap_or(PATIENCE);
        self.died(&name)?;
        let recovered = self.recover(over, within, &name);
        std::thread::sleep(calm);
        let took = recovered.map(|took| took.max(self.longest(over, Instant::now())));
        let late = self.pulse.take_late_max();
        self.judge(round, took, within, late, &name);
        Ok(match took {
            Some(took) => format!("{name}: {} ms", took.as_millis()),
            None => format!("{name}: no recovery"),
        })
    }

    /// Waits until all streams are steady. How long that took, in frames.
    fn recover(&mut self, since: Instant, within: Duration, name: &str) -> Option<Duration> {
        let streams = self.scene.streams();
        let outages = wait_until("frames flow on every stream", PATIENCE, || {
            let outages = (0..streams).map(|stream| self.pulse.outage(stream, since, STEADY));
            Ok(outages.collect::<Option<Vec<_>>>())
        });
        match outages {
            Ok(outages) => Some(crate::endurance::restarts::worst(&outages)),
            Err(_) => {
                let silent = (0..streams)
                    .filter(|stream| self.pulse.outage(*stream, since, STEADY).is_none())
                    .map(stream_name);
                let silent = silent.collect::<Vec<_>>().join(", ");
                self.report.broke(format!(
                    "{name}: no traffic {silent} for {} s, promised were {} ms",
                    PATIENCE.as_secs(),
                    within.as_millis()
                ));
                None
            }
        }
    }

    /// Most frames lost in a row on any stream among those sent in this span, as a time.
    fn longest(&self, from: Instant, to: Instant) -> Duration {
        let to = to.checked_sub(IN_FLIGHT).unwrap_or(to);
        let lost = (0..self.scene.streams()).map(|stream| self.pulse.lost(stream, from, to).1);
        EVERY * lost.max().unwrap_or(0)
    }

    fn judge(
        &mut self,
        round: &[InjectedFault],
        took: Option<Duration>,
        within: Duration,
        late: Duration,
        name: &str,
    ) {
        let is_judged = late <= LATE_MAX;
        self.report.rounds += 1;
        self.report.unjudged += u64::from(!is_judged);
        for fault in round {
            *self.report.faults.entry(fault.kind).or_default() += 1;
        }
        let row = match round {
            [only] => self.report.rows.entry((Some(only.kind), within)).or_default(),
            _ => self.report.rows.entry((None, within)).or_default(),
        };
        let Some(took) = took else {
            row.note(PATIENCE);
            return;
        };
        if is_judged {
            row.note(took);
            if took > within {
                self.report.broke(format!(
                    "{name}: without traffic for {} ms, promised were {} ms",
                    took.as_millis(),
                    within.as_millis()
                ));
            }
        }
    }

    /// Whether vehicles that have another way have found it while the fault lasts.
    fn survived(&mut self, fault: &InjectedFault, began: Instant, name: &str) {
        let Some(within) = fault.kind.survived_within() else { return };
        if fault.lasts < within + 2 * IN_FLIGHT {
            return;
        }
        let to = Instant::now().checked_sub(IN_FLIGHT).unwrap_or(began);
        let struck = fault.at.checked_sub(FIRST_VEHICLE).filter(|_| !fault.kind.is_everywhere());
        let others = (0..self.scene.streams()).filter(|stream| Some(stream / 2) != struck);
        let lost = others.map(|stream| (self.pulse.lost(stream, began, to).1, stream)).max();
        let Some((lost, stream)) = lost else { return };
        let gap = EVERY * lost;
        if self.pulse.late_max() > LATE_MAX {
            return;
        }
        self.report.survived.entry(fault.kind).or_insert_with(|| Row::of(within)).note(gap);
        if gap > within {
            self.report.broke(format!(
                "{name}: {} found no other way for {} ms while it lasted, promised were {} ms",
                stream_name(stream),
                gap.as_millis(),
                within.as_millis()
            ));
        }
    }

    /// No daemon ends by itself; the run goes on with a new one.
    fn died(&mut self, name: &str) -> Result<()> {
        for node in self.scene.bed.nodes() {
            if let Some(status) = node.try_wait()? {
                self.report.broke(format!("{name}: {} ended with {status}", node.name()));
            }
        }
        if let Err(error) = self.scene.revive() {
            self.report.broke(format!("{name}: cannot be started again: {error:#}"));
        }
        Ok(())
    }

    /// What must hold at any time.
    fn look(&mut self, run: Duration) -> Result<()> {
        self.died("between faults")?;
        let faults = self.report.faults.values().sum();
        for (node, patient) in self.scene.bed.nodes().iter().zip(&mut self.patients) {
            for wrong in patient.look(node, run, faults)? {
                self.report.broke(wrong);
            }
        }
        if let Some(samples) = &mut self.samples {
            let nodes = self.scene.bed.nodes().iter().enumerate();
            let elders = self.scene.targets().elders;
            let elders = nodes.filter(|(index, _)| elders.contains(index)).map(|(_, node)| &**node);
            samples.look(run, &elders.collect::<Vec<_>>())?;
        }
        let totals = self.pulse.totals();
        for (what, now, before) in [
            ("arrived with other bytes than were sent", totals.harmed, self.totals.harmed),
            ("arrived a minute late", totals.stray, self.totals.stray),
        ] {
            if now > before {
                self.report.broke(format!("{} frames {what}", now - before));
            }
        }
        self.judge_doubled();
        self.totals = totals;
        self.report.totals = totals;
        self.report.clients = self.scene.clients;
        self.report.lived = Duration::from_millis(250 * self.scene.lived);
        Ok(())
    }

    /// Nothing arrives twice, with one exception that is counted. A bridge that has come up knows
    /// no addresses until hosts can be heard, and sends a frame for a vehicle to both road-side
    /// units. Both may carry it, when the vehicle has gone from one to the other meanwhile and the
    /// LAN could not tell the first.
    fn judge_doubled(&mut self) {
        let mut flooded = 0;
        for Doubled { stream, sent, again } in self.pulse.take_doubled() {
            let is_downward = stream.is_multiple_of(2);
            let learns = self.scene.lan_up.map(|(up, heard)| up..heard + LEARNS);
            let is_flooded = learns.is_some_and(|learns| learns.contains(&sent));
            if is_downward && is_flooded {
                flooded += 1;
                continue;
            }
            let ago = Instant::now().saturating_duration_since(sent);
            let sent_at = humantime::format_rfc3339_millis(SystemTime::now() - ago);
            let stream = stream_name(stream);
            let after = again.duration_since(sent).as_millis();
            self.report.broke(format!(
                "a frame {stream}, sent at {sent_at}, arrived again after {after} ms"
            ));
        }
        if flooded > FLOODED_MAX {
            self.report.broke(format!("{flooded} frames arrived twice after the LAN came up"));
        }
        self.report.flooded += flooded;
    }

    /// Rest, counters, goodbyes.
    fn end(mut self, start: Instant) -> Result<DaysReport> {
        let Self { scene, pulse, patients, report, .. } = &mut self;
        let elders = scene.targets().elders;
        for (index, node) in scene.bed.nodes().iter().enumerate() {
            if let Err(error) = counters_are_sane(node, elders.contains(&index)) {
                report.broke(format!("{}: {error:#}", node.name()));
            }
        }
        pulse.pause();
        let cpu = |node: &TestbedNode| Ok::<_, anyhow::Error>(node.daemon()?.usage()?.cpu);
        let before: Vec<_> = scene.bed.nodes().iter().map(|node| cpu(node)).collect();
        std::thread::sleep(REST);
        for ((node, before), patient) in scene.bed.nodes().iter().zip(before).zip(patients) {
            if let (Ok(before), Ok(after)) = (before, cpu(node)) {
                let share = (after.saturating_sub(before)).as_secs_f64() / REST.as_secs_f64();
                if share > REST_SHARE_MAX {
                    let percent = share * 100.0;
                    report.broke(format!("{}: {percent:.1} % of a core at rest", node.name()));
                }
                report.rest = report.rest.max(share);
            }
            report.charts.push((node.name().to_owned(), patient.chart()));
        }
        // Vehicles first, or they would look for road-side units that have gone.
        for role in [Role::Obu, Role::Rsu] {
            for node in scene.bed.nodes().iter().filter(|node| node.role == role) {
                if let Err(error) = node.stop() {
                    report.broke(format!("at the end: {error:#}"));
                }
            }
        }
        if report.unjudged * 2 > report.rounds {
            report.broke(format!(
                "the machine was too busy to judge {} of {} rounds",
                report.unjudged, report.rounds
            ));
        }
        report.took = start.elapsed();
        if !report.broken.is_empty() {
            report.logs = scene.bed.log_tails();
        }
        scene.keep_logs()?;
        Ok(self.report)
    }

    fn name_of(&self, round: &[InjectedFault]) -> String {
        let names = round.iter().map(|fault| {
            let (name, place) = (fault.kind.name(), self.scene.place_of(fault));
            format!("{name} ({place}, {} ms)", fault.lasts.as_millis())
        });
        names.collect::<Vec<_>>().join(" + ")
    }
}

fn stream_name(stream: usize) -> String {
    let way = if stream.is_multiple_of(2) { "to" } else { "from" };
    format!("{way} host{}", stream / 2 + 1)
}

/// What no daemon may count here: nobody sends it frames it cannot read. And one that has lived all
/// the time has carried something.
fn counters_are_sane(node: &TestbedNode, is_elder: bool) -> Result<()> {
    if !node.has_log() {
        return Ok(());
    }
    let told = || -> Result<Vec<LogEvent>> {
        let events = node.events()?;
        Ok(events.into_iter().filter(|event| event.message() == "counters").collect())
    };
    let before = told()?.len();
    node.daemon()?.signal(Signal::SIGUSR1)?;
    let counters = wait_until("counters", PATIENCE, || {
        let mut told = told()?;
        Ok(if told.len() > before { told.pop() } else { None })
    })?;
    let all = counters.text("node");
    for impossible in ["drop_malformed=", "events_lost="] {
        anyhow::ensure!(!all.contains(impossible), "counters: {all}");
    }
    for necessary in ["wire_to_tap=", "tap_to_wire="] {
        anyhow::ensure!(!is_elder || all.contains(necessary), "nothing was carried: {all}");
    }
    Ok(())
}
