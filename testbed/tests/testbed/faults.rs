//! What goes wrong with interfaces, limits and the process itself, one test each: the daemons go
//! on, or end with the reason, and nothing leaks. docs/testing.md says which row of the fault table
//! each is, and where the other rows are.

mod panic;
mod shaped;
mod starved;
mod storm;

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use node_lib::messages::control::Control;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, Timestamp};
use recorder::read::{Item, ReadError, Recording};
use recorder::record::What;
use tempfile::TempDir;
use testbed::daemons::usage::read_of_thread;
use testbed::probe::{PingStream, send_raw};
use testbed::{Host, Netns, Programs, Testbed, TestbedNode, wait_until};

use crate::beds::with_logs;
use crate::control::{problem, v2xctl};
use crate::disk::Disk;
use crate::harness::{Area, ms};
use crate::preload::Told;
use crate::row::give_socket;

pub(crate) const AREA: Area = Area {
    name: "faults",
    alone: &[
        ("a_radio_made_again_and_again_leaks_nothing", a_radio_made_again_and_again),
        ("a_radio_made_again_is_taken_without_any_right", a_radio_made_again_without_any_right),
        ("what_a_large_bridge_tells_takes_no_memory_for_good", what_a_large_bridge_tells),
        ("a_shaped_radio_is_not_waited_for", shaped::a_shaped_radio_is_not_waited_for),
        ("a_vehicle_with_a_full_radio_is_heard", shaped::a_vehicle_with_a_full_radio_is_heard),
        ("a_radio_whose_mtu_changes_carries_on", a_radio_whose_mtu_changes),
        ("a_machine_that_slept_for_an_hour_is_back", a_machine_that_slept),
        ("a_clock_that_is_set_costs_no_frame", a_clock_that_is_set),
        ("garbage_storms_no_log", storm::garbage_storms_no_log),
        ("strangers_storm_no_log", storm::strangers_storm_no_log),
        ("a_daemon_that_panics_says_so_and_is_back_when_started", panic::a_daemon_that_panics),
        ("frames_of_every_length_harm_nobody", frames_of_every_length),
        ("without_a_processor_heartbeats_go_before_data", starved::heartbeats_go_before_data),
        ("one_that_wastes_its_processor_is_found", starved::one_that_wastes_its_processor),
    ],
    together: &[
        ("without_memory_the_start_says_so", without_memory),
        ("a_radio_that_flaps_leaks_nothing", a_radio_that_flaps),
        ("a_tap_that_is_down_costs_nothing", a_tap_that_is_down),
        ("a_tap_that_cannot_be_made_again_costs_nothing", a_tap_that_cannot_be_made_again),
        ("killed_again_and_again_it_starts", killed_again_and_again),
        ("a_disk_that_is_read_only_harms_nobody", a_disk_that_is_read_only),
        ("without_descriptors_the_start_says_so", without_descriptors),
    ],
};

const PATIENCE: Duration = Duration::from_secs(10);
const PROBE_EVERY: Duration = ms(10);

/// `FAULTS_ROUNDS`: how often, instead of the quick number.
fn rounds(quick: u32) -> Result<u32> {
    match std::env::var("FAULTS_ROUNDS") {
        Ok(text) => text.parse().context("FAULTS_ROUNDS: a number"),
        Err(_) => Ok(quick),
    }
}

/// `FAULTS_SECONDS`: for how long, instead of the quick number.
fn seconds(quick: u64) -> Result<u64> {
    match std::env::var("FAULTS_SECONDS") {
        Ok(text) => text.parse().context("FAULTS_SECONDS: a number"),
        Err(_) => Ok(quick),
    }
}

/// A server, a road-side unit, and a vehicle with a host.
struct Pair {
    server: Host,
    rsu: Rc<TestbedNode>,
    obu: Rc<TestbedNode>,
}

impl Pair {
    /// In earshot of each other.
    fn add_to(bed: &mut Testbed) -> Result<Self> {
        let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
        let obu = bed.add_obu("obu1")?;
        bed.connect(&rsu, &obu)?;
        Ok(Self { server, rsu, obu })
    }
}

fn pair(test: impl FnOnce(&mut Testbed, &Pair) -> Result<()>) -> Result<()> {
    pair_with(|_| (), test)
}

/// The same, with something done before the daemons start.
fn pair_with(
    prepare: impl FnOnce(&Pair),
    test: impl FnOnce(&mut Testbed, &Pair) -> Result<()>,
) -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let pair = Pair::add_to(&mut bed)?;
    prepare(&pair);
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&pair)?;
        test(bed, &pair)
    })
}

/// Probes until the first answer.
fn reaches(pair: &Pair) -> Result<u64> {
    let begun = Instant::now();
    let ping = PingStream::start(&pair.obu.host.ns, pair.server.v4, PROBE_EVERY)?;
    let got = wait_until("the vehicle reaches the server", PATIENCE, || {
        Ok((ping.received() > 0).then(|| begun.elapsed()))
    });
    ping.stop()?;
    Ok((got?.as_millis() / PROBE_EVERY.as_millis()).try_into()?)
}

fn descriptors(node: &TestbedNode) -> Result<usize> {
    let pid = node.daemon()?.pid();
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

fn lines(node: &TestbedNode) -> Result<usize> {
    Ok(std::fs::read_to_string(node.log_path())?.lines().count())
}

fn warnings(node: &TestbedNode) -> Result<usize> {
    let log = std::fs::read_to_string(node.log_path())?;
    Ok(log.lines().filter(|line| line.contains("\"WARN\"") && line.contains("\"radio\":")).count())
}

/// Does something to the radios in turn, again and again. The traffic is back each time, and no
/// descriptor more is open.
fn again_and_again(
    quick: u32,
    (p99_max, warnings_max): (u64, usize),
    mut fault: impl FnMut(&mut Testbed, &Rc<TestbedNode>) -> Result<()>,
) -> Result<()> {
    pair(|bed, pair| {
        let nodes = [Rc::clone(&pair.rsu), Rc::clone(&pair.obu)];
        let before = [descriptors(&nodes[0])?, descriptors(&nodes[1])?];
        let pids = [nodes[0].daemon()?.pid(), nodes[1].daemon()?.pid()];
        let mut waits = Vec::new();
        for round in 0..rounds(quick)? {
            let node = &nodes[round as usize % 2];
            let warned = warnings(node)?;
            fault(bed, node)?;
            waits.push(reaches(pair).with_context(|| format!("round {round}, {}", node.name()))?);
            let told = warnings(node)? - warned;
            ensure!(told <= warnings_max, "{}: {told} warnings", node.name());
        }
        waits.sort_unstable();
        let p99 = waits[(waits.len() * 99).div_ceil(100) - 1];
        println!("    {} times, probes without answer: p99 {p99}", waits.len());
        ensure!(p99 <= p99_max, "{waits:?}");
        for ((node, before), pid) in nodes.iter().zip(before).zip(pids) {
            ensure!(node.daemon()?.pid() == pid && node.try_wait()?.is_none(), "{}", node.name());
            let after = descriptors(node)?;
            ensure!(after <= before, "{}: {before} descriptors, then {after}", node.name());
        }
        Ok(())
    })
}

/// F1: traffic within one and a half heartbeats, and one warning.
fn a_radio_that_flaps() -> Result<()> {
    again_and_again(20, (15, 1), |_, node| {
        node.ns().set_down("radio0")?;
        std::thread::sleep(ms(20));
        node.ns().set_up("radio0")
    })
}

/// F2: traffic within a second, as `make days` promises. It may be seen to go down, to be gone, and
/// to be back but down.
fn a_radio_made_again_and_again() -> Result<()> {
    again_and_again(8, (100, 4), |bed, node| {
        bed.delete_radio(node)?;
        std::thread::sleep(ms(50));
        bed.create_radio(node)
    })
}

/// The most any thread of it may do (`CapEff`).
fn rights(node: &TestbedNode) -> Result<Vec<u64>> {
    let mut rights = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", node.daemon()?.pid()))? {
        let Some(status) = read_of_thread(&task?.path(), "status")? else { continue };
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        rights.push(u64::from_str_radix(line.context("CapEff")?.trim(), 16)?);
    }
    Ok(rights)
}

/// F2: what was opened with rights is bound again without any.
fn a_radio_made_again_without_any_right() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let pair = Pair::add_to(&mut bed)?;
    let nodes = [&pair.rsu, &pair.obu];
    let told = [Told::sleeper(nodes[0])?, Told::sleeper(nodes[1])?];
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&pair)?;
        for (node, told) in nodes.into_iter().zip(&told) {
            ensure!(rights(node)?.iter().all(|rights| *rights != 0));
            told.rights_are_gone()?;
            // The thread of the loop has the name of the process, and is its first.
            wait_until("the loop has no rights", PATIENCE, || {
                Ok(rights(node)?.contains(&0).then_some(()))
            })?;
        }
        for round in 0..4 {
            let node = nodes[round % 2];
            bed.delete_radio(node)?;
            std::thread::sleep(ms(50));
            bed.create_radio(node)?;
            let probes = reaches(&pair).with_context(|| node.name().to_owned())?;
            ensure!(probes <= 100, "{}: {probes} probes", node.name());
            ensure!(node.try_wait()?.is_none(), "{} ended", node.name());
        }
        Ok(())
    })
}

/// Nothing is written to the TAP for a while, and nothing comes of it. Then it is there again.
fn without_a_tap(
    pair: &Pair,
    lose: impl FnOnce(&TestbedNode) -> Result<()>,
    give_back: impl FnOnce(&TestbedNode) -> Result<()>,
) -> Result<()> {
    let obu = &pair.obu;
    let span = Duration::from_secs(seconds(3)?);
    let (said, descriptors_before) = (lines(obu)?, descriptors(obu)?);
    lose(obu)?;
    let before = obu.daemon()?.usage()?.cpu;
    let slept = obu.daemon()?.sleeps()?;
    std::thread::sleep(span);
    let cpu = obu.daemon()?.usage()?.cpu - before;
    let woken = obu.daemon()?.sleeps()? - slept;
    let more = lines(obu)? - said;
    println!("    {cpu:?} of a processor in {span:?}, {woken} times awake, {more} lines");
    ensure!(cpu <= span / 50, "2 %: {cpu:?}");
    ensure!(more <= 5, "{more} lines");
    give_back(obu)?;
    let probes = reaches(pair)?;
    println!("    traffic after {probes} probes");
    ensure!(probes <= 600, "{probes} probes");
    ensure!(descriptors(obu)? <= descriptors_before);
    Ok(())
}

/// F3: down.
fn a_tap_that_is_down() -> Result<()> {
    pair(|_, pair| {
        without_a_tap(pair, |obu| obu.ns().set_down("tap0"), |obu| obu.ns().set_up("tap0"))
    })
}

/// F3: deleted, and its name is taken, so that every attempt to make it again fails.
fn a_tap_that_cannot_be_made_again() -> Result<()> {
    pair(|_, pair| {
        let lose = |obu: &TestbedNode| {
            obu.ns().delete("tap0")?;
            obu.ns().create_bridge("tap0", Mac([2, 0, 0, 0, 0x77, 1]))
        };
        let give_back = |obu: &TestbedNode| {
            obu.ns().delete("tap0")?;
            obu.adopt_tap()
        };
        without_a_tap(pair, lose, give_back)
    })
}

/// F27: a vehicle asks its bridge who is behind it whenever its TAP comes into it. The answer of a
/// bridge that knows thousands is much longer than what is kept of it.
fn what_a_large_bridge_tells() -> Result<()> {
    const TOLD: &str = "the bridge told who is behind it";
    let mut bed = Testbed::new(1)?;
    let (obu, host) = bed.add_obu_with_host("obu1", "host1")?;
    obu.extra_args.borrow_mut().extend(["--log", "debug"].map(str::to_owned));
    with_logs(bed, |bed| {
        bed.start_all()?;
        let to = obu.host.mac.context("the bridge's address")?;
        let anonymous = || Ok::<_, anyhow::Error>(obu.daemon()?.usage()?.anonymous / 1024);
        // Enough for the tables that have an end, then many.
        let mut after = Vec::new();
        for clients in [1_000_u32, 20_000] {
            let frames: Vec<_> = (0..clients)
                .map(|n| {
                    let [_, a, b, c] = n.to_be_bytes();
                    // Nobody hears it but the bridge.
                    let mut frame = [&to.0[..], &[6, 0, 1, a, b, c], &[0x88, 0xb7]].concat();
                    frame.resize(64, 0);
                    frame
                })
                .collect();
            let times = || obu.times_logged(TOLD);
            wait_until("it has asked once", PATIENCE, || Ok((times()? > 0).then_some(())))?;
            let before = times()?;
            send_raw(&host.ns, "eth0", frames.iter().map(Vec::as_slice), Duration::ZERO)?;
            bed.delete_tap(&obu)?;
            obu.adopt_tap()?;
            wait_until(TOLD, PATIENCE, || Ok((times()? > before).then_some(())))?;
            after.push(anonymous()?);
        }
        println!("    {after:?} KiB without a file behind them");
        ensure!(after[1] <= after[0] + 64, "{after:?}");
        Ok(())
    })
}

/// Shows each control message that came by radio, and when. Returns when the recording ends.
fn control_in(
    recording: &Path,
    mut heard: impl FnMut(Timestamp, Control<'_>),
) -> Result<Timestamp> {
    let mut end = Timestamp::ZERO;
    Recording::open(&[recording.to_owned()])?.read(|item| {
        if let Item::Record(record) = item {
            end = record.at;
            if let What::FromRadio(frame) = &record.what
                && let Ok(Message { packet: PacketType::Control(said), .. }) =
                    Message::try_from(&frame.bytes[..])
            {
                heard(end, said);
            }
        }
        Ok::<_, ReadError>(true)
    })?;
    Ok(end)
}

/// F6.
fn a_radio_whose_mtu_changes() -> Result<()> {
    pair(|bed, pair| {
        let pids = [pair.rsu.daemon()?.pid(), pair.obu.daemon()?.pid()];
        for mtu in [1000, 1500, 600, 1500] {
            let said = lines(&pair.obu)?;
            bed.set_radio_mtu(&pair.rsu, mtu)?;
            bed.set_radio_mtu(&pair.obu, mtu)?;
            reaches(pair)?;
            // What the host sends is as long as before.
            let all =
                PingStream::count_long(&pair.obu.host.ns, pair.server.v4, 20, PROBE_EVERY, 1400)?;
            ensure!(all.received == all.sent, "at {mtu}: {all:?}");
            let more = lines(&pair.obu)? - said;
            ensure!(more <= 3, "at {mtu}: {more} lines");
        }
        let now = [pair.rsu.daemon()?.pid(), pair.obu.daemon()?.pid()];
        ensure!(now == pids, "restarted");
        Ok(())
    })
}

/// F14: the machine of the vehicle, then that of the road-side unit, sleeps for an hour and hears
/// nothing meanwhile. It knows no neighbour any more, and has a route within three heartbeats.
fn a_machine_that_slept() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let pair = Pair::add_to(&mut bed)?;
    for sleeper in [&pair.obu, &pair.rsu] {
        sleeper.extra_args.borrow_mut().extend(["--log", "debug"].map(str::to_owned));
    }
    let told = [Told::sleeper(&pair.obu)?, Told::sleeper(&pair.rsu)?];
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&pair)?;
        for (sleeper, told) in [&pair.obu, &pair.rsu].into_iter().zip(&told) {
            sleeper.daemon()?.signal(Signal::SIGSTOP)?;
            bed.cut(&pair.rsu, &pair.obu)?;
            // The other one has given it up by then.
            std::thread::sleep(ms(2000));
            told.hour_has_passed()?;
            bed.connect(&pair.rsu, &pair.obu)?;
            sleeper.daemon()?.signal(Signal::SIGCONT)?;
            let probes = reaches(&pair).with_context(|| sleeper.name().to_owned())?;
            println!("    {}: traffic after {probes} probes", sleeper.name());
            ensure!(probes <= 30, "{}: {probes} probes", sleeper.name());
            ensure!(sleeper.try_wait()?.is_none(), "{} ended", sleeper.name());
        }
        Ok(())
    })
}

/// F14: dates are for people. The daemons, their sockets among them, live by another clock.
fn a_clock_that_is_set() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let pair = Pair::add_to(&mut bed)?;
    let told = [Told::faster(&pair.obu, 1)?, Told::faster(&pair.rsu, 1)?];
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&pair)?;
        let ping = PingStream::start(&pair.obu.host.ns, pair.server.v4, PROBE_EVERY)?;
        for is_ahead in [true, false, true] {
            told.iter().try_for_each(|node| node.clock_is_set(is_ahead))?;
            std::thread::sleep(ms(1000));
        }
        let report = ping.stop()?;
        let year = |node: &TestbedNode| -> Result<String> {
            let log = std::fs::read_to_string(node.log_path())?;
            let last = log.lines().last().context("a line")?;
            Ok(last.chars().skip_while(|c| !c.is_ascii_digit()).take(4).collect())
        };
        // That they were told: what they log has the date.
        pair.obu.daemon()?.signal(Signal::SIGUSR1)?;
        wait_until("the log has the new date", PATIENCE, || {
            Ok((year(&pair.obu)?.as_str() > "2030").then_some(()))
        })?;
        println!("    {} of {} pings", report.received, report.sent);
        ensure!(report.received == report.sent, "{report:?}");
        Ok(())
    })
}

/// F19: nothing of what was there before is in the way: TAP, control socket, state file. And F18:
/// told to stop, it is gone within a hundred probes.
fn killed_again_and_again() -> Result<()> {
    let scratch = TempDir::new_in(testbed::arena::scratch())?;
    let prepare = |pair: &Pair| {
        for node in [&pair.rsu, &pair.obu] {
            let file = scratch.path().join(node.name()).display().to_string();
            let socket = format!("{file}.sock");
            let args = ["--state-file".to_owned(), file, "--control".to_owned(), socket];
            node.extra_args.borrow_mut().extend(args);
        }
    };
    pair_with(prepare, |_, pair| {
        let nodes = [&pair.rsu, &pair.obu];
        for round in 0..rounds(10)? {
            let node = nodes[round as usize % 2];
            node.kill()?;
            node.start().with_context(|| format!("start {round}"))?;
            let told = std::fs::read_to_string(node.log_path())?;
            let last = told.lines().rev().take_while(|line| !line.contains("\"starting\""));
            let warnings: Vec<_> = last.filter(|line| line.contains("\"WARN\"")).collect();
            ensure!(warnings.is_empty(), "start {round}: {warnings:?}");
            reaches(pair).with_context(|| format!("start {round}"))?;
        }
        for node in nodes {
            let clock = PingStream::start(&pair.obu.host.ns, pair.obu.host.v4, PROBE_EVERY)?;
            node.stop()?;
            let probes = clock.stop()?.sent;
            println!("    {}: gone after {probes} probes", node.name());
            ensure!(probes <= 100, "{}: {probes} probes", node.name());
        }
        Ok(())
    })
}

/// F20: daemons need no disk, those that start neither: they say that the clock counts, in the log
/// and in their status. One whose file is ahead of the clock is refused, for it would not be heard
/// after the next start.
fn a_disk_that_is_read_only() -> Result<()> {
    let disk = Disk::new()?;
    let prepare = |pair: &Pair| {
        for node in [&pair.rsu, &pair.obu] {
            disk.give_to(node);
            give_socket(node);
        }
    };
    pair_with(prepare, |_, pair| {
        let before = v2xctl(&pair.obu, &["status"])?.1;
        ensure!(!before.contains("counted by the clock"), "{before}");
        disk.set_read_only(true)?;
        let report = PingStream::count(&pair.obu.host.ns, pair.server.v4, 300, PROBE_EVERY)?;
        ensure!(report.received == report.sent, "{report:?}");
        for node in [&pair.rsu, &pair.obu] {
            node.stop()?;
            node.start()?;
            let said = std::fs::read_to_string(node.log_path())?;
            let file = disk.state_file(node).display().to_string();
            let is_told = |line: &str| line.contains(&file) && line.contains("Read-only");
            ensure!(said.lines().any(is_told), "{}: {said}", node.name());
            reaches(pair).with_context(|| format!("{} started anew", node.name()))?;
            let shown = problem(node, "unsaved-start")?;
            ensure!(shown.contains(&file) && shown.contains("Read-only"), "{shown}");
            let code = v2xctl(node, &["status"])?.0;
            ensure!(code == 0, "{}: code {code}, and frames get through", node.name());
        }
        disk.set_read_only(false)?;
        for node in [&pair.rsu, &pair.obu] {
            std::fs::write(disk.state_file(node), "4294967000")?;
        }
        disk.set_read_only(true)?;
        for node in [&pair.rsu, &pair.obu] {
            node.stop()?;
            node.launch()?;
            let (status, said) = (node.wait(PATIENCE)?, node.log_tail(1));
            let file = disk.state_file(node).display().to_string();
            let is_told = said.contains(&file) && said.contains("Read-only");
            ensure!(status.code() == Some(2) && is_told, "{}: {status}, {said}", node.name());
        }
        Ok(())
    })
}

/// Starts a vehicle under a limit of the shell. How it ended within a moment, and what it said;
/// `None` if it runs.
fn started_under(ns: &Netns, limit: &str) -> Result<Option<(ExitStatus, String)>> {
    let mut command = Command::new("sh");
    let line = format!("ulimit {limit}; exec \"$0\" -b radio0 -t tap9 --no-control");
    command.args(["-c", &line]).arg(&Programs::find()?.obu);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ns.run(|| Ok(command.spawn()?))?;
    let until = Instant::now() + ms(1500);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > until => {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            None => std::thread::sleep(ms(5)),
        }
    };
    Ok(Some((status, std::io::read_to_string(child.stderr.take().context("a pipe")?)?)))
}

/// F26: from no descriptor to as many as it takes, it says what it lacks, or runs.
fn without_descriptors() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let obu = bed.add_obu("obu1")?;
    let mut started = 0;
    for limit in (3..64).step_by(6) {
        match started_under(obu.ns(), &format!("-n {limit}"))? {
            Some((status, said)) => {
                ensure!(status.code().is_some_and(|code| code > 0), "{limit}: {status}: {said}");
                // With three the loader of the program itself has none left.
                let is_told = said.contains("open files") || limit <= 3;
                ensure!(is_told && !said.contains("panicked"), "{limit}: {said}");
            }
            None => started += 1,
        }
    }
    ensure!(started > 0, "it never started");
    Ok(())
}

/// F26: the same with memory. What little there is may not even do for the loader of the program,
/// or for what runs before its first line, and these have words of their own. From the first limit
/// under which that line is reached it says what it lacks, or runs.
fn without_memory() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let obu = bed.add_obu("obu1")?;
    let (mut told, mut started) = (0, 0);
    for mebibytes in (8..80).step_by(3) {
        match started_under(obu.ns(), &format!("-v {}", mebibytes * 1024))? {
            Some((status, said)) => {
                ensure!(!status.success() && started == 0, "{mebibytes}: {status}: {said}");
                let is_told = said.contains("out of memory: expected a limit");
                ensure!(is_told || told == 0, "{mebibytes}: {status}: {said}");
                ensure!(!is_told || status.code() == Some(1), "{mebibytes}: {status}");
                told += u32::from(is_told);
            }
            None => started += 1,
        }
    }
    println!("    told {told} times, started {started} times");
    ensure!(told > 0 && started > 0, "told {told} times, started {started} times");
    Ok(())
}

/// F28: on the radio and out of the TAP, each length Ethernet has, and each type of message.
fn frames_of_every_length() -> Result<()> {
    pair(|_, pair| {
        let said = [lines(&pair.rsu)?, lines(&pair.obu)?];
        let mut frames = Vec::new();
        for len in 14..=1514 {
            for kind in 0..16_u8 {
                let mut frame = [&[0xff; 6][..], &[2, 0x0b, 0, 0, 0x77, 1], &[0x88, 0xb5]].concat();
                frame.resize(len, 0x5a);
                if let Some([first, flags, high, low]) = frame.get_mut(14..18) {
                    let body = u16::try_from(len - 14)?.to_be_bytes();
                    (*first, *flags, *high, *low) = (0x20 | kind, 0, body[0], body[1]);
                }
                frames.push(frame);
            }
        }
        let all = || frames.iter().map(Vec::as_slice);
        for node in [&pair.rsu, &pair.obu] {
            send_raw(node.ns(), "radio0", all(), Duration::ZERO)?;
        }
        // Of those that clients send, one of each length is enough.
        send_raw(&pair.obu.host.ns, "tap0", all().step_by(16), Duration::ZERO)?;
        let probes = reaches(pair)?;
        ensure!(probes <= 100, "{probes} probes");
        for (node, said) in [&pair.rsu, &pair.obu].into_iter().zip(said) {
            let more = lines(node)? - said;
            println!("    {} said {more} lines", node.name());
            ensure!(more <= 20, "{}: {more} lines\n{}", node.name(), node.log_tail(more));
            ensure!(node.try_wait()?.is_none(), "{} ended", node.name());
        }
        Ok(())
    })
}
