//! What goes wrong with interfaces, limits and the process itself, one test each: the daemons go
//! on, or end with the reason, and nothing leaks. docs/testing.md says which row of the fault table
//! each is, and where the other rows are.

#![allow(clippy::indexing_slicing, reason = "test code: an index out of range is a failed test")]

mod harness;

use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use harness::ms;
use nix::sys::signal::Signal;
use testbed::probe::{Ping, UdpStream, send_raw};
use testbed::{Host, Node, Programs, Testbed, wait_until};

fn main() -> ExitCode {
    harness::main(&[
        ("a_radio_that_flaps_leaks_nothing", a_radio_that_flaps),
        ("a_radio_made_again_and_again_leaks_nothing", a_radio_made_again_and_again),
        ("a_tap_that_is_down_costs_nothing", a_tap_that_is_down),
        ("a_shaped_radio_is_not_waited_for", a_shaped_radio),
        ("a_radio_whose_mtu_changes_carries_on", a_radio_whose_mtu_changes),
        ("garbage_storms_no_log", garbage_storms_no_log),
        ("a_daemon_that_aborts_is_back_when_started", a_daemon_that_aborts),
        ("without_descriptors_the_start_says_so", without_descriptors),
    ])
}

const PATIENCE: Duration = Duration::from_secs(10);
const PROBE_EVERY: Duration = ms(10);

/// `FAULTS_ROUNDS`: how often, instead of the quick number.
fn rounds(quick: u32) -> Result<u32> {
    match std::env::var("FAULTS_ROUNDS") {
        Ok(text) => text.parse().context("FAULTS_ROUNDS: a number"),
        Err(_) => Ok(quick),
    }
}

/// A server, a road-side unit, and a vehicle with a host.
struct Pair {
    server: Host,
    rsu: Rc<Node>,
    obu: Rc<Node>,
}

fn pair(test: impl FnOnce(&mut Testbed, &Pair) -> Result<()>) -> Result<()> {
    Programs::find()?.require_daemons()?;
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    bed.start_all()?;
    let pair = Pair { server, rsu, obu };
    reaches(&pair).map_err(|error| anyhow!("{error:#}\n{}", bed.log_tails()))?;
    test(&mut bed, &pair).map_err(|error| anyhow!("{error:#}\n{}", bed.log_tails()))
}

/// Probes until the first answer.
fn reaches(pair: &Pair) -> Result<u64> {
    let begun = Instant::now();
    let ping = Ping::start(&pair.obu.host.ns, pair.server.v4, PROBE_EVERY)?;
    let got = wait_until("the vehicle reaches the server", PATIENCE, || {
        Ok((ping.received() > 0).then(|| begun.elapsed()))
    });
    ping.stop()?;
    Ok((got?.as_millis() / PROBE_EVERY.as_millis()).try_into()?)
}

fn descriptors(node: &Node) -> Result<usize> {
    let pid = node.daemon()?.pid();
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

fn lines(node: &Node) -> Result<usize> {
    Ok(std::fs::read_to_string(node.log_path())?.lines().count())
}

/// Does something to the radios in turn, again and again. The traffic is back each time, and no
/// descriptor more is open.
fn again_and_again(
    quick: u32,
    mut fault: impl FnMut(&mut Testbed, &Rc<Node>) -> Result<()>,
) -> Result<()> {
    pair(|bed, pair| {
        let nodes = [Rc::clone(&pair.rsu), Rc::clone(&pair.obu)];
        let before = [descriptors(&nodes[0])?, descriptors(&nodes[1])?];
        let pids = [nodes[0].daemon()?.pid(), nodes[1].daemon()?.pid()];
        let mut waits = Vec::new();
        for round in 0..rounds(quick)? {
            let node = &nodes[round as usize % 2];
            fault(bed, node)?;
            waits.push(reaches(pair).with_context(|| format!("round {round}, {}", node.name()))?);
        }
        waits.sort_unstable();
        let p99 = waits[(waits.len() * 99).div_ceil(100) - 1];
        println!("    {} times, probes without answer: p99 {p99}", waits.len());
        // A second, as `make days` promises.
        ensure!(p99 <= 100, "{waits:?}");
        for ((node, before), pid) in nodes.iter().zip(before).zip(pids) {
            ensure!(node.daemon()?.pid() == pid && node.try_wait()?.is_none(), "{}", node.name());
            let after = descriptors(node)?;
            ensure!(after <= before, "{}: {before} descriptors, then {after}", node.name());
        }
        Ok(())
    })
}

/// F1.
fn a_radio_that_flaps() -> Result<()> {
    again_and_again(20, |_, node| {
        node.ns().set_down("radio0")?;
        std::thread::sleep(ms(20));
        node.ns().set_up("radio0")
    })
}

/// F2.
fn a_radio_made_again_and_again() -> Result<()> {
    again_and_again(8, |bed, node| {
        bed.delete_radio(node)?;
        std::thread::sleep(ms(50));
        bed.create_radio(node)
    })
}

/// F3.
fn a_tap_that_is_down() -> Result<()> {
    pair(|_, pair| {
        let obu = &pair.obu;
        let (said, descriptors_before) = (lines(obu)?, descriptors(obu)?);
        obu.ns().set_down("tap0")?;
        let before = obu.daemon()?.usage()?.cpu;
        let slept = obu.daemon()?.sleeps()?;
        std::thread::sleep(ms(3000));
        let cpu = obu.daemon()?.usage()?.cpu - before;
        let woken = obu.daemon()?.sleeps()? - slept;
        let more = lines(obu)? - said;
        println!("    {cpu:?} of a processor in 3 s, {woken} times awake, {more} lines");
        ensure!(cpu <= ms(60), "2 %: {cpu:?}");
        ensure!(more <= 5, "{more} lines");
        obu.ns().set_up("tap0")?;
        let probes = reaches(pair)?;
        ensure!(probes <= 600, "{probes} probes");
        ensure!(descriptors(obu)? <= descriptors_before);
        Ok(())
    })
}

/// F5: the queue of the radio is full all the time (`ENOBUFS`), and poll says that there is room.
fn a_shaped_radio() -> Result<()> {
    pair(|_, pair| {
        let obu = &pair.obu;
        let shape = |line: &str| -> Result<()> {
            let mut tc = Command::new("tc");
            tc.args(["qdisc", "replace", "dev", "radio0", "root"]).args(line.split(' '));
            let done = obu.ns().run(|| Ok(tc.output()?)).context("tc")?;
            ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Ok(())
        };
        shape("tbf rate 100kbit burst 2000 limit 3000")?;
        let before = obu.daemon()?.usage()?.cpu;
        let (from, to) = (&obu.host.ns, &pair.server.ns);
        let stream = UdpStream::start(from, to, pair.server.v4, ms(1), 64)?;
        std::thread::sleep(ms(5000));
        let cpu = obu.daemon()?.usage()?.cpu - before;
        let report = stream.stop()?;
        println!("    {cpu:?} of a processor in 5 s, {report:?}");
        ensure!(report.lost * 2 > report.sent, "the radio was not full: {report:?}");
        ensure!(cpu <= ms(1000), "20 %: {cpu:?}");
        shape("pfifo")?;
        let probes = reaches(pair)?;
        ensure!(probes <= 100, "{probes} probes");
        Ok(())
    })
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
            let all = Ping::count_long(&pair.obu.host.ns, pair.server.v4, 20, PROBE_EVERY, 1400)?;
            ensure!(all.received == all.sent, "at {mtu}: {all:?}");
            let more = lines(&pair.obu)? - said;
            ensure!(more <= 3, "at {mtu}: {more} lines");
        }
        let now = [pair.rsu.daemon()?.pid(), pair.obu.daemon()?.pid()];
        ensure!(now == pids, "restarted");
        Ok(())
    })
}

/// F21: what nobody can read, as fast as it goes.
fn garbage_storms_no_log() -> Result<()> {
    const STORM: u32 = 20_000;
    pair(|_, pair| {
        let said = [lines(&pair.rsu)?, lines(&pair.obu)?];
        let to = [0xff; 6];
        let from = [2, 0x0b, 0, 0, 0x77, 1];
        let mut frames = Vec::new();
        for n in 0..STORM {
            // Of our EtherType, with the type and length of each message there is and is not.
            let mut frame = [&to[..], &from, &[0x88, 0xb5], &n.to_be_bytes().repeat(12)].concat();
            frame[14] = 0x20 | (n % 16) as u8;
            frames.push(frame);
        }
        let storm = frames.iter().map(Vec::as_slice);
        send_raw(pair.rsu.ns(), "radio0", storm, Duration::ZERO)?;
        reaches(pair)?;
        for (node, said) in [&pair.rsu, &pair.obu].iter().zip(said) {
            let more = lines(node)? - said;
            println!("    {} said {more} lines", node.name());
            ensure!(more <= 20, "{}: {more} lines", node.name());
            ensure!(node.try_wait()?.is_none(), "{} ended", node.name());
        }
        Ok(())
    })
}

/// F23: as when a panic ends the process; whoever started it starts it again.
fn a_daemon_that_aborts() -> Result<()> {
    pair(|_, pair| {
        for node in [&pair.obu, &pair.rsu] {
            node.daemon()?.signal(Signal::SIGABRT)?;
            let status = node.wait(PATIENCE)?;
            ensure!(!status.success(), "{status}");
            node.start()?;
            let probes = reaches(pair)?;
            println!("    {}: {probes} probes", node.name());
            ensure!(probes <= 300, "{}: {probes} probes", node.name());
        }
        Ok(())
    })
}

/// F26.
fn without_descriptors() -> Result<()> {
    let programs = Programs::find()?;
    let mut bed = Testbed::new(1)?;
    let obu = bed.add_obu("obu1")?;
    let mut started = 0;
    // From none to as many as it takes: it says what it lacks, or runs.
    for limit in (3..64).step_by(6) {
        let mut command = Command::new("sh");
        let line = format!("ulimit -n {limit}; exec \"$0\" -b radio0 -t tap9 --no-control");
        command.args(["-c", &line]).arg(&programs.obu);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let mut child = obu.ns().run(|| Ok(command.spawn()?))?;
        let until = Instant::now() + ms(1500);
        let ended = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if Instant::now() > until => break None,
                None => std::thread::sleep(ms(5)),
            }
        };
        match ended {
            Some(status) => {
                let said = std::io::read_to_string(child.stderr.take().context("a pipe")?)?;
                ensure!(status.code().is_some_and(|code| code > 0), "{limit}: {status}: {said}");
                // With three the loader of the program itself has none left.
                let is_told = said.contains("open files") || limit <= 3;
                ensure!(is_told && !said.contains("panicked"), "{limit}: {said}");
            }
            None => {
                started += 1;
                child.kill()?;
                child.wait()?;
            }
        }
    }
    ensure!(started > 0, "it never started");
    Ok(())
}
