//! The real daemons on real interfaces, over the medium: what the product promises.
//!
//! Promised times are counted in lost probes, not read off a clock: on a busy machine a reply may
//! be late, but only a missing route loses many in a row.

#![allow(clippy::indexing_slicing, reason = "test code: an index out of range is a failed test")]

mod harness;
#[path = "harness/plain_user.rs"]
mod plain_user;

use std::net::IpAddr;
use std::process::{ExitCode, ExitStatus};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use harness::ms;
use nix::sys::signal::Signal;
use node_lib::Mac;
use plain_user::run_as_plain_user;
use testbed::corridor::report::Comparison;
use testbed::corridor::{Corridor, daemons, scenario, simulated};
use testbed::probe::{
    FrameReceiver, Iperf3, NumberedFrame, Ping, Report, UdpStream, send_frames, transfer,
};
use testbed::soak::StackErrors;
use testbed::{Host, Netns, Node, Programs, Quality, Testbed, wait_until};

fn main() -> ExitCode {
    harness::main(&[
        ("ping_over_1_hop", ping_over_1_hop),
        ("ping_over_1_hop_for_a_plain_user", || run_as_plain_user("ping_over_1_hop")),
        ("all_traffic_over_1_hop", || all_traffic_over(1)),
        ("all_traffic_over_2_hops", || all_traffic_over(2)),
        ("all_traffic_over_3_hops", || all_traffic_over(3)),
        ("frames_of_every_kind_arrive_once_and_whole", frames_of_every_kind),
        ("one_byte_more_than_the_mtu_is_refused", one_byte_more_than_the_mtu_is_refused),
        ("a_host_behind_a_vehicle_is_on_the_lan", a_host_behind_a_vehicle_is_on_the_lan),
        ("vehicles_reach_each_other", vehicles_reach_each_other),
        ("no_loop_and_no_duplicate", no_loop_and_no_duplicate),
        ("frames_doubled_on_air_arrive_once", frames_doubled_on_air_arrive_once),
        ("silent_death_of_the_upstream_20_times", silent_death_of_the_upstream),
        ("silent_client_stays_reachable", silent_client_stays_reachable),
        ("corridor_hands_over_eight_clients", corridor_hands_over_eight_clients),
        ("goodbye_of_a_road_side_unit", goodbye_of_a_road_side_unit),
        ("goodbye_of_a_relay", goodbye_of_a_relay),
        ("road_side_unit_restarts", road_side_unit_restarts),
        ("vehicle_restarts", vehicle_restarts),
        ("the_last_path_dies_and_comes_back", the_last_path_dies_and_comes_back),
        ("radio_goes_down_and_up", radio_goes_down_and_up),
        ("radio_is_deleted_and_made_again", radio_is_deleted_and_made_again),
        ("start_on_a_radio_that_is_down", start_on_a_radio_that_is_down),
        ("start_without_a_radio", start_without_a_radio),
        ("tap_vanishes", tap_vanishes),
        ("impossible_mtu_is_refused", impossible_mtu_is_refused),
        ("tcp_crosses_with_offload_at_either_end", tcp_crosses_with_offload_at_either_end),
        ("tcp_is_intact_over_a_bad_link", tcp_is_intact_over_a_bad_link),
        ("answers_are_looked_for", answers_are_looked_for),
        ("what_waits_together_travels_together", what_waits_together_travels_together),
    ])
}

/// Heartbeats are sent every 100 ms by default, up to a tenth later.
const HEARTBEATS_3: Duration = ms(330);
/// What the product promises.
const SILENT_DEATH_MAX: Duration = ms(300);
const GOODBYE_MAX: Duration = ms(50);
/// Between probes.
const PROBE_EVERY: Duration = ms(10);
/// How long a route may take where no time is promised.
const PATIENCE: Duration = Duration::from_secs(10);

// ---- traffic ----

fn ping_over_1_hop() -> Result<()> {
    chain(1, |_, server, obu| answers_all(&obu.host, server))
}

/// IPv4 and IPv6 with their address resolution, UDP both ways, TCP both ways, iperf3.
fn all_traffic_over(hops: usize) -> Result<()> {
    chain(hops, |_, server, obu| {
        let vehicle = &obu.host;
        answers_all(vehicle, server)?;
        answers_all(server, vehicle)?;
        let streams = [
            UdpStream::start(&vehicle.ns, &server.ns, server.v4, ms(5), 1000)?,
            UdpStream::start(&server.ns, &vehicle.ns, vehicle.v6, ms(5), 1000)?,
        ];
        std::thread::sleep(ms(1000));
        for stream in streams {
            let report = stream.stop()?;
            ensure!(report.lost == 0 && report.duplicates == 0, "UDP: {report:?}");
        }
        for (from, at, to) in [(vehicle, server, server.v4), (server, vehicle, vehicle.v6)] {
            let way = format!("TCP {} to {}", from.name(), at.name());
            let report = transfer(&from.ns, &at.ns, to, 8_000_000).context(way.clone())?;
            println!("    {way}: {:.0} Mbit/s", report.mbit_per_s());
        }
        let iperf3 = Iperf3::serve(&server.ns, server.v4)?.run(&vehicle.ns, 1, 2, false)?;
        println!("    iperf3: {:.0} Mbit/s", iperf3.bits_per_s / 1e6);
        Ok(())
    })
}

fn frames_of_every_kind() -> Result<()> {
    chain(2, |bed, server, obu| {
        let mtu = bed.mtu() as usize;
        for (from, to) in [(&obu.host, server), (server, &obu.host)] {
            let (source, unicast) = (from.mac_now()?, to.mac_now()?);
            let mut frames = Vec::new();
            for destination in [unicast, Mac::BROADCAST, MULTICAST_V4, MULTICAST_V6] {
                for payload_len in [4, 45, 46, 47, 255, 1001, mtu - 1, mtu] {
                    for vlan in [None, Some(7), Some(0xe000 | 4094)] {
                        let number = u32::try_from(frames.len())?;
                        let (to, from) = (destination, source);
                        frames.push(NumberedFrame { to, from, vlan, number, payload_len });
                    }
                }
            }
            let receiver = FrameReceiver::start(&to.ns, &to.interface)?;
            send_frames(&from.ns, &from.interface, &frames, ms(2))?;
            std::thread::sleep(ms(300));
            // A node may pad what is shorter than Ethernet allows; nothing else may differ.
            let mut got = receiver.stop()?;
            got.sort_by_key(|frame| frame.number);
            for frame in &frames {
                let same = got.iter().filter(|have| *have == frame).count();
                ensure!(same == 1, "{} to {}: {same} times {frame:?}", from.name(), to.name());
            }
            ensure!(got.len() == frames.len(), "{} of {} frames", got.len(), frames.len());
        }
        Ok(())
    })
}

fn one_byte_more_than_the_mtu_is_refused() -> Result<()> {
    chain(1, |bed, server, obu| {
        let tap = obu.ns().state("tap0")?;
        ensure!(tap.mtu == bed.mtu(), "TAP of {} on a radio of 1500", tap.mtu);
        let (to, from) = (server.mac_now()?, tap.mac);
        let payload_len = tap.mtu as usize + 1;
        let frame = NumberedFrame { to, from, vlan: None, number: 0, payload_len };
        let sent = send_frames(obu.ns(), "tap0", &[frame], ms(0));
        ensure!(sent.is_err(), "{payload_len} bytes were taken");
        Ok(())
    })
}

fn a_host_behind_a_vehicle_is_on_the_lan() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (obu, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&laptop, &server, PATIENCE)?;
        for (from, to) in [(&laptop, &server), (&server, &laptop), (&obu.host, &server)] {
            answers_all(from, to)?;
        }
        transfer(&laptop.ns, &server.ns, server.v4, 4_000_000)?;
        let mac = laptop.mac_now()?;
        let port = bed.lan().bridge_port_of(mac)?;
        ensure!(port.as_deref() == Some("rsu1"), "the LAN knows {mac} behind {port:?}");
        Ok(())
    })
}

/// Over one road-side unit, and over two and the LAN between them.
fn vehicles_reach_each_other() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let obus = [bed.add_obu("obu1")?, bed.add_obu("obu2")?, bed.add_obu("obu3")?];
    bed.connect(&rsus[0], &obus[0])?;
    bed.connect(&rsus[0], &obus[1])?;
    bed.connect(&rsus[1], &obus[2])?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 1)] {
            let (from, to) = (&obus[from].host, &obus[to].host);
            reaches(from, to, PATIENCE)?;
            answers_all(from, to)?;
            transfer(&from.ns, &to.ns, to.v4, 1_000_000)?;
        }
        Ok(())
    })
}

/// Two road-side units on one LAN, two vehicles that hear both, each other, and have hosts.
fn no_loop_and_no_duplicate() -> Result<()> {
    const COUNT: u32 = 200;
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let (obu1, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
    let obu2 = bed.add_obu("obu2")?;
    for rsu in &rsus {
        bed.connect(rsu, &obu1)?;
        bed.connect(rsu, &obu2)?;
    }
    bed.connect(&obu1, &obu2)?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        let hosts = [&server, &laptop, &obu1.host, &obu2.host];
        for from in hosts {
            for to in hosts.into_iter().filter(|to| to.name() != from.name()) {
                reaches(from, to, PATIENCE)?;
            }
        }
        for from in hosts {
            let source = from.mac_now()?;
            for group in [Mac::BROADCAST, MULTICAST_V6] {
                let frames = numbered(group, source, COUNT);
                for (host, got) in exchange(from, &frames, &hosts)? {
                    let expected = if host.name() == from.name() { 0 } else { 1 };
                    each_arrived(&frames, &got, expected)
                        .with_context(|| format!("{group} {} to {}", from.name(), host.name()))?;
                }
            }
            for to in hosts.into_iter().filter(|to| to.name() != from.name()) {
                let frames = numbered(to.mac_now()?, source, COUNT);
                for (host, got) in exchange(from, &frames, &[from, to])? {
                    let expected = if host.name() == from.name() { 0 } else { 1 };
                    each_arrived(&frames, &got, expected)
                        .with_context(|| format!("unicast {} to {}", from.name(), host.name()))?;
                }
            }
        }
        Ok(())
    })
}

/// As when an acknowledgement was lost on air and the radio sent again.
fn frames_doubled_on_air_arrive_once() -> Result<()> {
    chain(2, |bed, server, obu| {
        let nodes: Vec<Rc<Node>> = bed.nodes().to_vec();
        for pair in nodes.windows(2) {
            let doubled = Quality { duplicate: 1.0, ..Quality::default() };
            bed.connect_with(&pair[0], &pair[1], doubled)?;
        }
        for (from, to) in [(&obu.host, server), (server, &obu.host)] {
            for destination in [to.mac_now()?, Mac::BROADCAST] {
                let frames = numbered(destination, from.mac_now()?, 100);
                for (_, got) in exchange(from, &frames, &[to])? {
                    let way = || format!("{} to {}, {destination}", from.name(), to.name());
                    each_arrived(&frames, &got, 1).with_context(way)?;
                }
            }
        }
        Ok(())
    })
}

fn tcp_is_intact_over_a_bad_link() -> Result<()> {
    let bad = Quality {
        loss: 0.005,
        delay: ms(1),
        jitter: ms(1),
        duplicate: 0.02,
        reorder: 0.02,
        corrupt: 0.005,
        retries: 0,
        rate_bps: None,
    };
    chain(2, |bed, server, obu| {
        let nodes: Vec<Rc<Node>> = bed.nodes().to_vec();
        for pair in nodes.windows(2) {
            bed.connect_with(&pair[0], &pair[1], bad)?;
        }
        let report = transfer(obu.ns(), &server.ns, server.v4, 1_000_000)?;
        println!("    up: {:.1} Mbit/s", report.mbit_per_s());
        let report = transfer(&server.ns, obu.ns(), obu.host.v4, 1_000_000)?;
        println!("    down: {:.1} Mbit/s", report.mbit_per_s());
        all_run(bed)
    })
}

/// Super-frames at both ends, at one, at none: the same bytes, and no checksum the kernels find wrong.
fn tcp_crosses_with_offload_at_either_end() -> Result<()> {
    for (at_rsu, at_obu) in [("on", "on"), ("on", "off"), ("off", "auto"), ("off", "off")] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let nodes = [(bed.add_rsu("rsu1")?, at_rsu), (bed.add_obu("obu1")?, at_obu)];
        bed.connect(&nodes[0].0, &nodes[1].0)?;
        with_logs(bed, |bed| {
            for (node, offload) in &nodes {
                node.extra_args.borrow_mut().extend(["--tap-offload", offload].map(str::to_owned));
            }
            bed.start_all()?;
            let vehicle = &nodes[1].0.host;
            reaches(vehicle, &server, PATIENCE)?;
            for (from, at) in [(vehicle, &server), (&server, vehicle)] {
                for to in [at.v4, at.v6] {
                    let way = format!("rsu {at_rsu}, obu {at_obu}: {} to {to}", from.name());
                    let report = transfer(&from.ns, &at.ns, to, 8_000_000).context(way.clone())?;
                    println!("    {way}: {:.0} Mbit/s", report.mbit_per_s());
                }
            }
            for host in [vehicle, &server] {
                let errors = StackErrors::of(&host.ns)?;
                ensure!(errors.is_none(), "{}: {errors:?}", host.name());
            }
            for (node, offload) in &nodes {
                node.daemon()?.signal(Signal::SIGUSR1)?;
                let counters = node.daemon()?.wait_for_event("counters", PATIENCE, |_| true)?;
                let tap = counters.text("tap");
                for counter in ["rx_super_frames=", "rx_segments=", "tx_super_frames="] {
                    let is_there = tap.contains(counter);
                    ensure!(is_there == (*offload != "off"), "{}: {tap}", node.name());
                }
                ensure!(!tap.contains("malformed") && !tap.contains("errors"), "{tap}");
            }
            all_run(bed)
        })?;
    }
    Ok(())
}

/// A ping over a short way is answered before a daemon goes to sleep, and its counters tell; unless it is told not to look.
fn answers_are_looked_for() -> Result<()> {
    for limit_us in ["1000", "0"] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
        bed.connect(&rsu, &obu)?;
        obu.extra_args.borrow_mut().extend(["--busy-poll", limit_us].map(str::to_owned));
        with_logs(bed, |bed| {
            bed.start_all()?;
            reaches(&obu.host, &server, PATIENCE)?;
            obu.daemon()?.signal(Signal::SIGUSR1)?;
            let counters = obu.daemon()?.wait_for_event("counters", PATIENCE, |_| true)?;
            let counted = counters.text("busy_poll");
            ensure!(counted.contains("polls=") == (limit_us != "0"), "{limit_us} us: {counted:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Frames that find a daemon asleep leave it in bundles, unless it makes none; a relay takes them apart and puts
/// them together again.
fn what_waits_together_travels_together() -> Result<()> {
    for makes_bundles in [true, false] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let (rsu, relay) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
        let obu = bed.add_obu("obu2")?;
        bed.connect(&rsu, &relay)?;
        bed.connect(&relay, &obu)?;
        let flag = if makes_bundles { "on" } else { "off" };
        obu.extra_args.borrow_mut().extend(["--bundles", flag].map(str::to_owned));
        with_logs(bed, |bed| {
            bed.start_all()?;
            reaches(&obu.host, &server, PATIENCE)?;
            for (from, at, to) in [(&obu.host, &obu, &server), (&server, &rsu, &obu.host)] {
                let frames = numbered(to.mac_now()?, from.mac_now()?, 300);
                let receiver = FrameReceiver::start(&to.ns, &to.interface)?;
                at.daemon()?.signal(Signal::SIGSTOP)?;
                send_frames(&from.ns, &from.interface, &frames, Duration::ZERO)?;
                at.daemon()?.signal(Signal::SIGCONT)?;
                std::thread::sleep(ms(300));
                each_arrived(&frames, &receiver.stop()?, 1)
                    .with_context(|| format!("{} to {}", from.name(), to.name()))?;
            }
            let bundles = |node: &Node| -> Result<String> {
                node.daemon()?.signal(Signal::SIGUSR1)?;
                let counters = node.daemon()?.wait_for_event("counters", PATIENCE, |_| true)?;
                Ok(counters.text("bundles"))
            };
            let of_obu = bundles(&obu)?;
            ensure!(of_obu.contains("tx_bundles=") == makes_bundles, "{flag}: {of_obu}");
            ensure!(of_obu.contains("rx_bundles="), "the relay's are understood: {of_obu}");
            for node in [&rsu, &relay] {
                let counted = bundles(node)?;
                ensure!(counted.contains("tx_bundled="), "{}: {counted}", node.name());
                ensure!(!counted.contains("malformed"), "{}: {counted}", node.name());
            }
            Ok(())
        })?;
    }
    Ok(())
}

// ---- fail-over ----

fn silent_death_of_the_upstream() -> Result<()> {
    const RUNS: usize = 20;
    fork(|bed, server, obu, mut paths| {
        let mut outages = Vec::new();
        for run in 1..=RUNS {
            let (active, _) = active_first(obu, &mut paths)?;
            let active = Rc::clone(active);
            let ping = Ping::start(obu.ns(), server.v4, PROBE_EVERY)?;
            // Not in step with the heartbeats.
            std::thread::sleep(ms(300 + 37 * run as u64 % 100));
            bed.cut(obu, &active)?;
            std::thread::sleep(ms(1000));
            let report = ping.stop()?;
            bed.connect(obu, &active)?;
            let outage = outage(&report)?;
            println!(
                "    run {run:2}: {} silent, {} pings lost in a row, gap {} ms",
                active.name(),
                report.lost_in_a_row,
                report.gap.as_millis()
            );
            outages.push(outage);
            // Long enough for the healed way to be a candidate again.
            std::thread::sleep(ms(1500));
        }
        outages.sort_unstable();
        let max = outages[RUNS - 1];
        println!("    p50 {} ms, max {} ms", outages[RUNS / 2].as_millis(), max.as_millis());
        ensure!(max <= SILENT_DEATH_MAX, "without a route for {max:?}");
        all_run(bed)
    })
}

/// A client that never speaks again is found behind the new road-side unit, by its frames and by
/// the LAN's switch.
fn silent_client_stays_reachable() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let mut rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let (obu, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
    for rsu in &rsus {
        bed.connect(rsu, &obu)?;
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&laptop, &server, PATIENCE)?;
        std::thread::sleep(ms(1500));
        let (mac, source) = (laptop.mac_now()?, server.mac_now()?);
        let (active, other) = active_first(&obu, &mut rsus)?;
        let port = bed.lan().bridge_port_of(mac)?;
        ensure!(port.as_deref() == Some(active.name()), "before: {mac} behind {port:?}");
        let (active, other) = (Rc::clone(active), Rc::clone(other));
        // Sent blindly: the client has no reason to answer.
        let frames = numbered(mac, source, 200);
        let receiver = FrameReceiver::start(&laptop.ns, &laptop.interface)?;
        send_frames(&server.ns, &server.interface, &frames[..20], PROBE_EVERY)?;
        bed.cut(&obu, &active)?;
        send_frames(&server.ns, &server.interface, &frames[20..], PROBE_EVERY)?;
        let got = receiver.stop()?;
        let arrived = |frame: &NumberedFrame| got.contains(frame);
        let worst = frames.split(arrived).map(<[_]>::len).max().unwrap_or(0);
        println!("    {worst} frames to the silent client lost in a row");
        ensure!(frames.last().is_some_and(arrived), "the last frames did not arrive");
        let outage = PROBE_EVERY * u32::try_from(worst)?;
        ensure!(outage <= SILENT_DEATH_MAX, "unreachable for {outage:?}");
        let port = bed.lan().bridge_port_of(mac)?;
        ensure!(port.as_deref() == Some(other.name()), "after: {mac} behind {port:?}");
        Ok(())
    })
}

/// Part of the corridor: two hand-overs at 130 km/h, with streams to eight clients, four of which
/// never speak, and from the other four; then the same in the simulator. `make corridor` drives all
/// of it.
fn corridor_hands_over_eight_clients() -> Result<()> {
    const SEEDS: u64 = 5;
    // Radios that try once hand over sooner than others: twice in these 20 s at every seed.
    let trace = scenario::links(130.0, 0.0, 720.0, 1)?;
    let corridor = Corridor { retries: 0, ..Corridor::new(trace) };
    let real = daemons::drive(&corridor, &mut |_, _| ())?;
    let simulated = (0..SEEDS).map(|n| simulated::drive(&corridor, corridor.seed + n));
    let comparison = Comparison { real, simulated: simulated.collect::<Result<_>>()? };
    println!("\n{}", comparison.text(&corridor));
    comparison.check(&corridor)?;
    let hand_overs = comparison.hand_overs();
    ensure!(hand_overs.len() >= 2, "{hand_overs:?}");
    Ok(())
}

fn goodbye_of_a_road_side_unit() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let mut rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let obu = bed.add_obu("obu1")?;
    for rsu in &rsus {
        bed.connect(rsu, &obu)?;
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&obu.host, &server, PATIENCE)?;
        goodbye_of_the_active(&server, &obu, &mut rsus)
    })
}

fn goodbye_of_a_relay() -> Result<()> {
    fork(|_, server, obu, mut paths| goodbye_of_the_active(server, obu, &mut paths))
}

fn goodbye_of_the_active(server: &Host, obu: &Node, paths: &mut [Rc<Node>; 2]) -> Result<()> {
    for _ in 0..3 {
        std::thread::sleep(ms(1500));
        let (active, _) = active_first(obu, paths)?;
        let ping = Ping::start(obu.ns(), server.v4, PROBE_EVERY)?;
        std::thread::sleep(ms(500));
        active.stop()?;
        std::thread::sleep(ms(700));
        let report = ping.stop()?;
        let outage = outage(&report)?;
        println!(
            "    {} says goodbye: {} pings lost in a row, gap {} ms",
            active.name(),
            report.lost_in_a_row,
            report.gap.as_millis()
        );
        ensure!(outage <= GOODBYE_MAX, "without a route for {outage:?}");
        active.start()?;
    }
    Ok(())
}

fn road_side_unit_restarts() -> Result<()> {
    chain(2, |bed, server, obu| {
        let rsu = Rc::clone(&bed.nodes()[0]);
        for how in ["crash", "goodbye"] {
            if how == "crash" {
                rsu.kill()?
            } else {
                rsu.stop()?
            }
            std::thread::sleep(ms(1000));
            rsu.start()?;
            let took = reaches(&obu.host, server, PATIENCE)?;
            println!("    after a {how}: traffic {} ms after it was back", took.as_millis());
            ensure!(took <= HEARTBEATS_3 + PROBE_EVERY, "after a {how}: {took:?}");
            std::thread::sleep(ms(1000));
        }
        all_run(bed)
    })
}

/// The relay restarts, then the vehicle behind it.
fn vehicle_restarts() -> Result<()> {
    chain(2, |bed, server, obu| {
        for node in &bed.nodes()[1..] {
            node.kill()?;
            std::thread::sleep(ms(500));
            node.start()?;
            let took = reaches(&obu.host, server, PATIENCE)?;
            reaches(server, &obu.host, PATIENCE)?;
            println!("    {}: traffic after {} ms", node.name(), took.as_millis());
        }
        all_run(bed)
    })
}

fn the_last_path_dies_and_comes_back() -> Result<()> {
    chain(2, |bed, server, obu| {
        let nodes: Vec<Rc<Node>> = bed.nodes().to_vec();
        for pair in nodes.windows(2) {
            bed.cut(&pair[0], &pair[1])?;
            rests(&pair[1], ms(1500))?;
            let report = Ping::count(obu.ns(), server.v4, 5, PROBE_EVERY)?;
            ensure!(report.received == 0, "{report:?} over no path");
            bed.connect(&pair[0], &pair[1])?;
            let took = reaches(&obu.host, server, PATIENCE)?;
            println!("    traffic {} ms after the path was back", took.as_millis());
        }
        all_run(bed)
    })
}

fn radio_goes_down_and_up() -> Result<()> {
    chain(2, |bed, server, obu| {
        for node in bed.nodes() {
            node.ns().set_down("radio0")?;
            rests(node, ms(1000))?;
            node.ns().set_up("radio0")?;
            let took =
                reaches(&obu.host, server, PATIENCE).with_context(|| node.name().to_owned())?;
            println!("    {}: traffic after {} ms", node.name(), took.as_millis());
        }
        all_run(bed)
    })
}

fn radio_is_deleted_and_made_again() -> Result<()> {
    chain(2, |bed, server, obu| {
        for node in bed.nodes().to_vec() {
            bed.delete_radio(&node)?;
            rests(&node, ms(1000))?;
            bed.create_radio(&node)?;
            let took =
                reaches(&obu.host, server, PATIENCE).with_context(|| node.name().to_owned())?;
            println!("    {}: traffic after {} ms", node.name(), took.as_millis());
        }
        all_run(bed)
    })
}

// ---- command line ----

/// Either it says so and ends, or it works as soon as the radio is up.
fn start_on_a_radio_that_is_down() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu, obu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |_| {
        rsu.start()?;
        obu.ns().set_down("radio0")?;
        obu.launch()?;
        std::thread::sleep(ms(1000));
        if let Some(status) = obu.try_wait()? {
            return ended_with_reason(&obu, status, "radio0");
        }
        obu.ns().set_up("radio0")?;
        obu.adopt_tap()?;
        reaches(&obu.host, &server, PATIENCE)?;
        obu.stop()
    })
}

fn start_without_a_radio() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let nodes = [bed.add_rsu("rsu1")?, bed.add_obu("obu1")?];
    with_logs(bed, |bed| {
        for node in &nodes {
            bed.delete_radio(node)?;
            node.launch()?;
            let status = node.wait(Duration::from_secs(3))?;
            ended_with_reason(node, status, "radio0")?;
        }
        Ok(())
    })
}

/// Either it says so and ends, or it makes a new one; it does not hang.
fn tap_vanishes() -> Result<()> {
    chain(1, |bed, server, obu| {
        for node in bed.nodes() {
            let deleted = node.ns().delete("tap0");
            deleted.with_context(|| format!("delete the TAP of {}", node.name()))?;
            std::thread::sleep(ms(1000));
            if let Some(status) = node.try_wait()? {
                ended_with_reason(node, status, "tap0")?;
                node.start()?;
            } else {
                node.adopt_tap()?;
            }
            reaches(&obu.host, server, PATIENCE).with_context(|| node.name().to_owned())?;
        }
        bed.nodes().iter().try_for_each(|node| node.stop())
    })
}

fn impossible_mtu_is_refused() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let nodes = [bed.add_rsu("rsu1")?, bed.add_obu("obu1")?];
    with_logs(bed, |bed| {
        for node in &nodes {
            node.extra_args.borrow_mut().extend(["-m".to_owned(), (bed.mtu() + 1).to_string()]);
            node.launch()?;
            let status = node.wait(Duration::from_secs(3))?;
            for number in [bed.mtu() + 1, 1500] {
                ended_with_reason(node, status, &number.to_string())?;
            }
        }
        Ok(())
    })
}

// ---- scenes ----

/// `server`, a road-side unit, and a row of vehicles each of which hears only its neighbours.
/// The test gets the last. The nodes are in this order.
fn chain(hops: usize, test: impl FnOnce(&mut Testbed, &Host, &Node) -> Result<()>) -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let mut last = bed.add_rsu("rsu1")?;
    for n in 1..=hops {
        let next = bed.add_obu(&format!("obu{n}"))?;
        bed.connect(&last, &next)?;
        last = next;
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&last.host, &server, PATIENCE)?;
        test(bed, &server, &last)
    })
}

/// `server`, a road-side unit, two relays and a vehicle that hears only those. The test gets the
/// vehicle and the relays.
fn fork(test: impl FnOnce(&mut Testbed, &Host, &Node, [Rc<Node>; 2]) -> Result<()>) -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let relays = [bed.add_obu("left")?, bed.add_obu("right")?];
    let obu = bed.add_obu("obu1")?;
    for relay in &relays {
        bed.connect(&rsu, relay)?;
        bed.connect(relay, &obu)?;
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&obu.host, &server, PATIENCE)?;
        // Both relays known.
        std::thread::sleep(ms(2000));
        test(bed, &server, &obu, relays)
    })
}

/// Runs a test, and shows what the daemons said when it fails.
fn with_logs(mut bed: Testbed, test: impl FnOnce(&mut Testbed) -> Result<()>) -> Result<()> {
    Programs::find()?.require_daemons()?;
    let result = test(&mut bed);
    result.map_err(|error| anyhow!("{error:#}\n{}", bed.log_tails()))
}

// ---- looking ----

/// Waits until one ping is answered, and says how long that took.
fn reaches(from: &Host, to: &Host, timeout: Duration) -> Result<Duration> {
    let start = Instant::now();
    let ping = Ping::start(&from.ns, to.v4, PROBE_EVERY)?;
    let what = format!("{} reaches {}", from.name(), to.name());
    let reached = wait_until(&what, timeout, || Ok((ping.received() > 0).then(|| start.elapsed())));
    ping.stop()?;
    reached
}

/// A steady ping over IPv4 and IPv6 loses nothing and doubles nothing.
fn answers_all(from: &Host, to: &Host) -> Result<()> {
    for address in [to.v4, to.v6] {
        let report = steady_ping(&from.ns, address)?;
        ensure!(
            report.received == report.sent && report.duplicates == 0,
            "{} to {} ({address}): {report:?}",
            from.name(),
            to.name()
        );
    }
    Ok(())
}

fn steady_ping(from: &Netns, to: IpAddr) -> Result<Report> {
    Ping::count(from, to, 30, PROBE_EVERY)
}

/// How long there was no route: lost probes in a row, times their distance. Whatever happened,
/// nothing may arrive twice.
fn outage(report: &Report) -> Result<Duration> {
    ensure!(report.duplicates == 0, "{report:?}");
    ensure!(report.received > 0, "no ping was answered");
    let lost_at_the_end = report.sent - 1 - report.last_received;
    ensure!(lost_at_the_end < 5, "the last {lost_at_the_end} pings were lost: {report:?}");
    Ok(PROBE_EVERY * u32::try_from(report.lost_in_a_row)?)
}

/// The node among two that the vehicle uses as upstream, and the other.
fn active_first<'a>(
    obu: &Node,
    paths: &'a mut [Rc<Node>; 2],
) -> Result<(&'a Rc<Node>, &'a Rc<Node>)> {
    if obu.sends_through(&paths[1])? {
        paths.swap(0, 1);
    }
    let [active, other] = &*paths;
    let says = || format!("{} sends through neither: {:?}", obu.name(), obu.attachment());
    ensure!(obu.sends_through(active)?, says());
    Ok((active, other))
}

/// Waits, and sees to it that the daemon waits too: with nobody to talk to there is hardly a reason
/// to wake up. (A daemon that never sleeps is found by its tests' timeouts.)
fn rests(node: &Node, time: Duration) -> Result<()> {
    const PER_SECOND_MAX: f64 = 100.0;
    let before = node.daemon()?.sleeps()?;
    std::thread::sleep(time);
    let woken = node.daemon()?.sleeps()? - before;
    println!("    {} woke up {woken} times in {time:?}", node.name());
    ensure!(
        woken as f64 <= time.as_secs_f64() * PER_SECOND_MAX,
        "{} woke up {woken} times in {time:?}",
        node.name()
    );
    Ok(())
}

fn all_run(bed: &Testbed) -> Result<()> {
    for node in bed.nodes() {
        if let Some(status) = node.try_wait()? {
            bail!("{} ended with {status}", node.name());
        }
    }
    Ok(())
}

/// It failed by itself, without panic, and its last words contain this.
fn ended_with_reason(node: &Node, status: ExitStatus, reason: &str) -> Result<()> {
    let said = node.log_tail(20);
    ensure!(status.code().is_some_and(|code| code != 0), "{} ended with {status}", node.name());
    ensure!(!said.contains("panicked"), "{} panicked", node.name());
    ensure!(said.contains(reason), "{} does not say {reason}: {said}", node.name());
    Ok(())
}

const MULTICAST_V4: Mac = Mac([0x01, 0, 0x5e, 1, 2, 3]);
const MULTICAST_V6: Mac = Mac([0x33, 0x33, 0, 1, 2, 3]);

fn numbered(to: Mac, from: Mac, count: u32) -> Vec<NumberedFrame> {
    let payload_len = 100;
    (0..count).map(|number| NumberedFrame { to, from, vlan: None, number, payload_len }).collect()
}

/// Sends frames and returns what arrived at each of the hosts.
fn exchange<'a>(
    from: &Host,
    frames: &[NumberedFrame],
    hosts: &[&'a Host],
) -> Result<Vec<(&'a Host, Vec<NumberedFrame>)>> {
    let receivers: Result<Vec<_>> = hosts
        .iter()
        .map(|host| Ok((*host, FrameReceiver::start(&host.ns, &host.interface)?)))
        .collect();
    let receivers = receivers?;
    send_frames(&from.ns, &from.interface, frames, ms(1))?;
    // A loop would show as copies that keep coming.
    std::thread::sleep(ms(300));
    receivers.into_iter().map(|(host, receiver)| Ok((host, receiver.stop()?))).collect()
}

fn each_arrived(sent: &[NumberedFrame], got: &[NumberedFrame], times: usize) -> Result<()> {
    let count = |frame: &NumberedFrame| got.iter().filter(|have| *have == frame).count();
    let wrong: Vec<_> = sent
        .iter()
        .map(|frame| (frame.number, count(frame)))
        .filter(|(_, count)| *count != times)
        .collect();
    ensure!(
        wrong.is_empty() && got.len() == sent.len() * times,
        "{} arrivals of {} frames, each expected {times} times; first wrong (number, times): {:?}",
        got.len(),
        sent.len(),
        wrong.get(..wrong.len().min(10))
    );
    Ok(())
}
