//! `testbed compare`: two forms of the daemons on the same data path, in short turns: with the
//! recorder and without, or those of another build and these.
//!
//! How fast a machine is changes within seconds, by more than the two differ. So both lines are up
//! at once and measured in turns of a second, each as often first as the other. Of every figure the
//! medians are compared, and beside them the best turns, which others on the machine disturbed
//! least.
//!
//! What the recorder may cost is judged by the processor time of the loops for a frame, and not by
//! what gets through. A daemon is one loop: with a processor of its own it carries as many frames
//! as their time lets it. Here the loops share the processors with senders, receivers, the
//! recorder's writer and whatever else runs, and what gets through says most about those. For the
//! same reason a datagram counts for each loop that had it, and not only where it arrived: in a
//! flood a loop takes up to a fifth more than the next one, or the receiver, comes round to. What a
//! relay had is not known; for it those count that came to the end.

use std::iter::Sum;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use super::measure::PING_EVERY;
use super::results::RoundSpread;
use crate::arena;
use crate::daemons::programs::Programs;
use crate::daemons::usage::cpu_of;
use crate::probe::{Iperf3, PingStream, flood};
use crate::screen::Screen;
use crate::topology::line::{Carrier, LineTopology, Offload, RADIO, ROAD_V4, TAP};

/// What is compared with the daemons as they are.
#[derive(Args, Debug)]
pub struct CompareOptions {
    /// The same daemons with a recorder; fails if by its processor time for a frame a loop gets
    /// through less than 95 % in the median
    #[arg(long, required_unless_present = "with")]
    record: bool,
    /// Bytes of each client's frame that are recorded, 0: all
    #[arg(long, default_value_t = 128, requires = "record")]
    record_snap: u32,
    /// Where recordings go while it runs; by default into memory
    #[arg(long, value_name = "DIR", requires = "record")]
    into: Option<PathBuf>,
    /// Directory with another `obu` and `rsu`
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    with: Option<PathBuf>,
    /// Turns of each
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    turns: u32,
    /// Hops of the line
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    hops: u32,
}

/// With the recorder on, the loops get through at least so much of what they do with it off.
const RECORDED_MIN: f64 = 0.95;

/// The recorder's thread.
const WRITER: &str = "recorder";

const TCP_S: u32 = 1;
const UDP: Duration = Duration::from_millis(500);
const UDP_SIZES: [usize; 2] = [64, 1400];
const PINGS: u32 = 50;

/// A figure of one turn.
#[derive(Clone, Copy, Debug)]
struct Figure {
    title: &'static str,
    unit: &'static str,
    kind: FigureKind,
    of: fn(&Turn) -> f64,
}

/// What a figure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FigureKind {
    /// More is better.
    Rate,
    /// Less is better.
    Cost,
    /// A cost by which the recorder is judged.
    LoopCost,
}

use FigureKind::{Cost, LoopCost, Rate};

const fn figure(
    title: &'static str,
    unit: &'static str,
    kind: FigureKind,
    of: fn(&Turn) -> f64,
) -> Figure {
    Figure { title, unit, kind, of }
}

const FIGURES: [Figure; 10] = [
    figure("TCP, 1 flow", "Mbit/s", Rate, |turn| turn.tcp_mbit),
    figure("UDP 64 B delivered", "kframes/s", Rate, |turn| turn.udp_kframes[0]),
    figure("UDP 1400 B delivered", "kframes/s", Rate, |turn| turn.udp_kframes[1]),
    figure("round trip idle, p50", "µs", Cost, |turn| turn.idle_us),
    figure("CPU per frame, TCP", "ns", Cost, |turn| turn.tcp_ns.all),
    figure("  without the writer", "ns", LoopCost, |turn| turn.tcp_ns.loops),
    figure("CPU per datagram, UDP 64 B", "ns", Cost, |turn| turn.udp_ns[0].all),
    figure("  without the writer", "ns", LoopCost, |turn| turn.udp_ns[0].loops),
    figure("CPU per datagram, UDP 1400 B", "ns", Cost, |turn| turn.udp_ns[1].all),
    figure("  without the writer", "ns", LoopCost, |turn| turn.udp_ns[1].loops),
];

/// What one turn gave.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    tcp_mbit: f64,
    tcp_ns: PerFrame,
    udp_kframes: [f64; 2],
    udp_ns: [PerFrame; 2],
    idle_us: f64,
}

/// Processor time of all programs on the line, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct PerFrame {
    /// Of all their threads.
    all: f64,
    /// Of those but the recorder's writer, which has its own and a processor's leisure.
    loops: f64,
}

/// How the two compare in one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Compared {
    /// Of the daemons as they are, and of the other form.
    medians: [f64; 2],
    /// The other form's median, over the median of the daemons as they are.
    ratio: f64,
    /// The same of the best turn of each.
    best: f64,
    /// The same of turns that came one after the other.
    turns: RoundSpread,
}

impl Compared {
    fn of(figure: &Figure, turns: &[[Turn; 2]]) -> Option<Self> {
        let values = |form: usize| {
            turns.iter().filter_map(move |turn| turn.get(form)).map(|turn| (figure.of)(turn))
        };
        let [own, other] = [RoundSpread::of(values(0))?, RoundSpread::of(values(1))?];
        let best = |spread: RoundSpread| if figure.kind == Rate { spread.max } else { spread.min };
        Some(Self {
            medians: [own.median, other.median],
            ratio: other.median / own.median,
            best: best(other) / best(own),
            turns: RoundSpread::of(values(0).zip(values(1)).map(|(own, other)| other / own))?,
        })
    }
}

impl Compared {
    /// Of a cost: what is carried in a time for which the daemons as they are carry one. A turn is
    /// held against its neighbour: what else the machine does is the same for both.
    fn gets_through(&self) -> f64 {
        self.turns.median.recip()
    }
}

/// Runs it inside the arena.
pub fn run(options: &CompareOptions) -> Result<()> {
    let own = Programs::find()?;
    own.require_daemons()?;
    let other = match &options.with {
        Some(with) => own.clone().with_daemons_of(with)?,
        None => own.clone(),
    };
    let name = if options.record { "recorder on" } else { "the other build" };
    let screen = Screen::new();
    screen.title(&format!("The data path in turns: {name} against the daemons as they are"));
    let logs = tempfile::TempDir::new_in(arena::scratch())?;
    let mut least = f64::INFINITY;
    for offload in [Offload::Off, Offload::On] {
        let hops = if options.hops == 1 { "1 hop" } else { "2 hops" };
        let with = if offload == Offload::On { ", offload" } else { "" };
        screen.step(&format!("{hops}{with}, {} turns of each", options.turns));
        let into = options.into.clone().unwrap_or_else(arena::scratch);
        let recordings = tempfile::TempDir::new_in(into)?;
        let flags = recorder_flags(options, recordings.path());
        let forms = [(&own, Vec::new()), (&other, flags)];
        let mut lines = Vec::new();
        for (form, (programs, flags)) in forms.iter().enumerate() {
            let logs = logs.path().join(format!("{with}{form}"));
            std::fs::create_dir_all(&logs)?;
            lines.push(set_up(options.hops as usize, offload, programs, flags, &logs)?);
        }
        let turns = measure(&lines, options.turns, &screen)?;
        for figure in &FIGURES {
            let compared = Compared::of(figure, &turns).context("no turns")?;
            screen.plain(&row(figure, &compared));
            if figure.kind == LoopCost {
                least = least.min(compared.gets_through());
            }
        }
        if options.record {
            let line = lines.pop().context("two lines")?;
            screen.plain(&recorded(line)?);
        }
    }
    ensure!(
        !options.record || least >= RECORDED_MIN,
        "with the recorder on a loop gets through {least:.3} of what it does with it off; \
         {RECORDED_MIN} is the goal"
    );
    Ok(())
}

fn recorder_flags(options: &CompareOptions, into: &Path) -> Vec<String> {
    if !options.record {
        return Vec::new();
    }
    let snap = options.record_snap.to_string();
    let into = into.display().to_string();
    ["--record", &into, "--record-snap", &snap].map(str::to_owned).to_vec()
}

fn set_up(
    hops: usize,
    offload: Offload,
    programs: &Programs,
    flags: &[String],
    logs: &Path,
) -> Result<LineTopology> {
    let mut line = LineTopology::lay(hops)?;
    let carrier = Carrier::Daemons { vehicle: offload, road: offload };
    match line.start_with(programs, &carrier, flags, logs) {
        Ok(()) => Ok(line),
        Err(error) => Err(anyhow!("{}\n{error:#}", line.log_tails())),
    }
}

/// So many turns on both lines, in alternating order. A turn in which others had the machine for so
/// long that nothing got through is left out, and said; of half of them there must be figures.
fn measure(lines: &[LineTopology], count: u32, screen: &Screen) -> Result<Vec<[Turn; 2]>> {
    let servers = lines.iter().map(|line| Iperf3::serve(&line.road, ROAD_V4));
    let servers = servers.collect::<Result<Vec<_>>>()?;
    let mut turns = Vec::new();
    let mut failed = Ok(());
    for number in 0..count {
        match one_turn(lines, &servers, number % 2 == 1) {
            Ok(turn) => turns.push(turn),
            Err(error) => {
                screen.dim(&format!("turn {} is left out: {error:#}", number + 1));
                failed = Err(error);
            }
        }
    }
    if turns.len() * 2 < count as usize {
        failed?;
    }
    Ok(turns)
}

/// Each measurement of one line is followed by the same of the other.
fn one_turn(lines: &[LineTopology], servers: &[Iperf3], is_reversed: bool) -> Result<[Turn; 2]> {
    let mut turn = [Turn::default(); 2];
    let mut order: Vec<_> = lines.iter().zip(servers).zip(&mut turn).collect();
    if is_reversed {
        order.reverse();
    }
    for ((line, _), turn) in &mut order {
        let report = PingStream::count(&line.vehicle, ROAD_V4, PINGS, PING_EVERY)?;
        turn.idle_us = report.delay_median().as_secs_f64() * 1e6;
    }
    for ((line, server), turn) in &mut order {
        let before = Spent::on(line)?;
        turn.tcp_mbit = server.run(&line.vehicle, 1, TCP_S, false)?.bits_per_s / 1e6;
        turn.tcp_ns = Spent::on(line)?.since(&before).per_frame();
    }
    for (place, size) in UDP_SIZES.into_iter().enumerate() {
        for ((line, _), turn) in &mut order {
            let before = Spent::on(line)?;
            let report = flood(&line.vehicle, &line.road, ROAD_V4, size, UDP)?;
            let spent = Spent::on(line)?.since(&before);
            if let Some(kframes) = turn.udp_kframes.get_mut(place) {
                *kframes = report.delivered_per_s / 1e3;
            }
            if let Some(ns) = turn.udp_ns.get_mut(place) {
                *ns = spent.per_datagram();
            }
        }
    }
    Ok(turn)
}

/// What all programs on a line have had and done.
#[derive(Clone, Debug)]
struct Spent {
    /// Of each daemon, the vehicle's first.
    daemons: Vec<DaemonCpu>,
    /// That all radios have carried.
    frames: u64,
    /// That the vehicle's daemon has taken out of its TAP.
    taken: u64,
    /// That the daemon at the road side has put into its TAP.
    given: u64,
}

#[derive(Clone, Copy, Debug)]
struct DaemonCpu {
    all: Duration,
    loops: Duration,
}

impl Spent {
    fn on(line: &LineTopology) -> Result<Self> {
        let (mut daemons, mut frames) = (Vec::new(), 0);
        for (place, daemon) in line.places().into_iter().zip(line.running()) {
            let all = cpu_of(daemon.pid(), |_| true)?;
            let loops = cpu_of(daemon.pid(), |name| name != WRITER)?;
            daemons.push(DaemonCpu { all, loops });
            frames += place.frames(RADIO)?.total();
        }
        let (taken, given) = (line.vehicle.frames(TAP)?.sent, line.road.frames(TAP)?.received);
        Ok(Self { daemons, frames, taken, given })
    }

    fn since(mut self, before: &Self) -> Self {
        for (now, before) in self.daemons.iter_mut().zip(&before.daemons) {
            now.all = now.all.saturating_sub(before.all);
            now.loops = now.loops.saturating_sub(before.loops);
        }
        self.frames -= before.frames;
        self.taken -= before.taken;
        self.given -= before.given;
        self
    }

    /// For a frame on the radio.
    fn per_frame(&self) -> PerFrame {
        self.daemons.iter().map(|cpu| cpu.per(self.frames)).sum()
    }

    /// For a datagram, on its way through all loops. What the vehicle's daemon took has its share
    /// of that one's time, and what came to the other end its share of all others'.
    fn per_datagram(&self) -> PerFrame {
        let counts = std::iter::once(self.taken).chain(std::iter::repeat(self.given));
        self.daemons.iter().zip(counts).map(|(cpu, count)| cpu.per(count)).sum()
    }
}

impl DaemonCpu {
    fn per(self, count: u64) -> PerFrame {
        let ns = |span: Duration| span.as_nanos() as f64 / count as f64;
        PerFrame { all: ns(self.all), loops: ns(self.loops) }
    }
}

impl Sum for PerFrame {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        let add =
            |sum: Self, part: Self| Self { all: sum.all + part.all, loops: sum.loops + part.loops };
        parts.fold(Self::default(), add)
    }
}

fn row(figure: &Figure, compared: &Compared) -> String {
    let Compared { medians: [own, other], ratio, best, turns } = compared;
    format!(
        "{:<29} {own:>7.0} → {other:>7.0} {:<9}  {ratio:.3}  best turns {best:.3}  single turns \
         {:.3} ({:.2}–{:.2})",
        figure.title, figure.unit, turns.median, turns.min, turns.max
    )
}

/// Ends the daemons, and says what their recorders counted.
fn recorded(mut line: LineTopology) -> Result<String> {
    let mut told = Vec::new();
    for daemon in line.terminate()? {
        let events = daemon.events()?;
        let ended = events.iter().rfind(|event| event.message() == "recording ended");
        let counted = ended.context("no word of the recording's end")?.text("recorder");
        let of = |name: &str| -> f64 {
            let counts = counted.split(' ').filter_map(|count| count.split_once('='));
            let mut counts = counts.filter(|(counter, _)| *counter == name);
            counts.next().and_then(|(_, count)| count.parse().ok()).unwrap_or(0.0)
        };
        let (records, lost) = (of("records"), of("lost") + of("lost_on_disk"));
        told.push(format!(
            "{:.1} million records, {:.1} % dropped",
            records / 1e6,
            100.0 * lost / (records + lost)
        ));
    }
    Ok(format!("recorders: {}", told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vehicle's loop took 200, of which half got through the other.
    #[test]
    fn a_datagram_counts_for_each_loop_that_had_it() {
        let us = |all, loops| DaemonCpu {
            all: Duration::from_micros(all),
            loops: Duration::from_micros(loops),
        };
        let spent = |daemons, frames, taken, given| Spent { daemons, frames, taken, given };
        let before = spent(vec![us(10, 10), us(20, 20)], 100, 1000, 500);
        let after = spent(vec![us(210, 110), us(320, 120)], 500, 1200, 600);
        let spent = after.since(&before);
        let datagram = spent.per_datagram();
        assert_eq!((datagram.all, datagram.loops), (1000.0 + 3000.0, 500.0 + 1000.0));
        let frame = spent.per_frame();
        assert_eq!((frame.all, frame.loops), (500.0 + 750.0, 250.0 + 250.0));
    }

    #[test]
    fn rates_are_best_at_their_most_and_costs_at_their_least() {
        let turn = |tcp_mbit, all| {
            let tcp_ns = PerFrame { all, loops: all };
            Turn { tcp_mbit, tcp_ns, ..Turn::default() }
        };
        let turns = [
            [turn(100.0, 10.0), turn(90.0, 11.0)],
            [turn(200.0, 5.0), turn(100.0, 8.0)],
            [turn(50.0, 20.0), turn(40.0, 30.0)],
        ];
        let [tcp, _, _, _, ns, ..] = FIGURES;
        let compared = Compared::of(&tcp, &turns).unwrap();
        assert_eq!((compared.medians, compared.ratio), ([100.0, 90.0], 0.9));
        assert_eq!(compared.best, 0.5);
        assert_eq!((compared.turns.min, compared.turns.max), (0.5, 0.9));
        let compared = Compared::of(&ns, &turns).unwrap();
        assert_eq!((compared.ratio, compared.best), (1.1, 1.6));
        // Of 1.1, 1.6 and 1.5 the one in the middle.
        assert_eq!(compared.gets_through(), 1.0 / 1.5);
    }
}
