//! The real daemons on real interfaces, over the medium: what the product promises.
//!
//! Promised times are counted in lost probes, not read off a clock: on a busy machine a reply may
//! be late, but only a missing route loses many in a row.

#![allow(clippy::indexing_slicing, reason = "test code: an index out of range is a failed test")]

mod harness;
#[path = "harness/plain_user.rs"]
mod plain_user;

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use harness::ms;
use nix::sys::signal::Signal;
use node_lib::Mac;
use plain_user::{is_real_root, run_as_plain_user};
use testbed::daemons::daemon::{Daemon, LogEvent};
use testbed::endurance::soak::StackErrors;
use testbed::medium::{self, LinkStep, LinkTrace};
use testbed::probe::{
    FrameReceiver, Iperf3, NumberedFrame, Ping, Report, UdpStream, send_frames, transfer,
};
use testbed::scenes::corridor::report::Comparison;
use testbed::scenes::corridor::{Corridor, daemons, scenario, simulated};
use testbed::{
    ATTACHMENT_CHANGED, Host, Netns, Node, Programs, Quality, Testbed, asks_for_acknowledgements,
    wait_until,
};

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
        ("hosts_with_an_mtu_of_1500_need_no_setting", hosts_with_an_mtu_of_1500),
        ("senders_hear_of_packets_that_are_too_long", senders_hear_of_what_is_too_long),
        ("vehicles_reach_each_other", vehicles_reach_each_other),
        ("no_loop_and_no_duplicate", no_loop_and_no_duplicate),
        ("frames_doubled_on_air_arrive_once", frames_doubled_on_air_arrive_once),
        ("silent_death_of_the_upstream_20_times", silent_death_of_the_upstream),
        ("silent_client_stays_reachable", silent_client_stays_reachable),
        ("corridor_hands_over_eight_clients", corridor_hands_over_eight_clients),
        ("a_fading_link_is_left_in_time", a_fading_link_is_left_in_time),
        ("data_does_not_starve_control", data_does_not_starve_control),
        ("goodbye_of_a_road_side_unit", goodbye_of_a_road_side_unit),
        ("goodbye_of_a_relay", goodbye_of_a_relay),
        ("road_side_unit_restarts", road_side_unit_restarts),
        ("vehicle_restarts", vehicle_restarts),
        ("a_restarted_vehicle_is_reached_at_once", a_restarted_vehicle_is_reached_at_once),
        ("a_silent_client_is_known_after_a_restart", a_silent_client_is_known_after_a_restart),
        ("a_tap_stays_in_its_bridge", a_tap_stays_in_its_bridge),
        ("a_prepared_tap_takes_no_right_to_change_it", a_prepared_tap_takes_no_right_to_change_it),
        ("a_road_side_unit_without_a_lan_is_left", a_road_side_unit_without_a_lan_is_left),
        ("the_last_path_dies_and_comes_back", the_last_path_dies_and_comes_back),
        ("a_vehicle_asks_its_radio_what_was_acknowledged", a_vehicle_asks_its_radio),
        ("radio_goes_down_and_up", radio_goes_down_and_up),
        ("radio_is_deleted_and_made_again", radio_is_deleted_and_made_again),
        ("start_on_a_radio_that_is_down", start_on_a_radio_that_is_down),
        ("start_without_a_radio", start_without_a_radio),
        ("tap_vanishes", tap_vanishes),
        ("impossible_mtu_is_refused", impossible_mtu_is_refused),
        ("a_source_of_signal_that_cannot_be_used", a_source_of_signal_that_cannot_be_used),
        ("a_monitor_is_deleted_and_made_again", a_monitor_is_deleted_and_made_again),
        ("check_finds_what_the_start_finds", check_finds_what_the_start_finds),
        ("first_contact_names_what_is_wrong", first_contact_names_what_is_wrong),
        ("different_ethertypes_are_named", different_ethertypes_are_named),
        ("tagged_frames_are_named", tagged_frames_are_named),
        ("frames_that_are_too_long_are_named", frames_that_are_too_long_are_named),
        ("tcp_crosses_with_offload_at_either_end", tcp_crosses_with_offload_at_either_end),
        ("tcp_is_intact_over_a_bad_link", tcp_is_intact_over_a_bad_link),
        ("every_signal_ends_in_order", every_signal_ends_in_order_or_not_at_all),
        ("a_file_is_read_again", a_file_is_read_again),
        ("a_supervisor_is_told", a_supervisor_is_told),
        ("daemons_outlive_their_log", daemons_outlive_their_log),
        ("answers_are_looked_for", answers_are_looked_for),
        ("what_waits_together_travels_together", what_waits_together_travels_together),
    ])
}

/// Heartbeats are sent every 100 ms by default, up to a tenth later.
const HEARTBEATS_3: Duration = ms(330);
/// What the product promises.
const SILENT_DEATH_MAX: Duration = ms(300);
const GOODBYE_MAX: Duration = ms(50);
/// What a node says whose TAP leads nowhere.
const LAN_DOWN: &str = "TAP is down, gone or out of its bridge: no frame gets through to the LAN";
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

/// Bridged on both sides, behind radios of 1500: TCP with every byte checked, and the longest
/// datagrams there are, with and without "don't fragment", both ways.
fn hosts_with_an_mtu_of_1500() -> Result<()> {
    for hops in [1, 2] {
        let mut bed = Testbed::new(1)?;
        let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
        let mut last = Rc::clone(&rsu);
        if hops == 2 {
            last = bed.add_obu("relay")?;
            bed.connect(&rsu, &last)?;
        }
        let (obu, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
        bed.connect(&last, &obu)?;
        with_logs(bed, |bed| {
            bed.start_all()?;
            reaches(&laptop, &server, PATIENCE)?;
            for node in [&rsu, &obu] {
                for interface in ["tap0", &node.host.interface] {
                    let mtu = node.ns().state(interface)?.mtu;
                    ensure!(mtu == 1500, "{interface} of {}: {mtu}", node.name());
                }
            }
            for (from, at) in [(&laptop, &server), (&server, &laptop)] {
                let way = format!("{hops} hops, {} to {}", from.name(), at.name());
                for to in [at.v4, at.v6] {
                    transfer(&from.ns, &at.ns, to, 2_000_000).with_context(|| way.clone())?;
                }
                // The headers of IP and of UDP or ICMP make it 1500.
                for (to, payload, no_pmtu_disc) in
                    [(at.v4, 1472, "0"), (at.v4, 1472, "1"), (at.v6, 1452, "0")]
                {
                    from.ns.run(|| {
                        Ok(std::fs::write("/proc/sys/net/ipv4/ip_no_pmtu_disc", no_pmtu_disc)?)
                    })?;
                    let ping = Ping::count_long(&from.ns, to, 30, PROBE_EVERY, payload)?;
                    let is_clean = ping.received == ping.sent && ping.duplicates == 0;
                    ensure!(is_clean, "{way}, {to}: {ping:?}");
                    let stream = UdpStream::start(&from.ns, &at.ns, to, ms(5), payload)?;
                    std::thread::sleep(ms(300));
                    let udp = stream.stop()?;
                    let is_clean = udp.lost == 0 && udp.duplicates == 0 && udp.received > 20;
                    ensure!(is_clean, "{way}, {to}: {udp:?}");
                }
            }
            for (node, counter) in [(&obu, "mss_clamped="), (&rsu, "reassembled=")] {
                node.daemon()?.signal(Signal::SIGUSR1)?;
                let counters = node.daemon()?.wait_for_event("counters", PATIENCE, |_| true)?;
                let text = counters.text("node");
                ensure!(text.contains(counter), "{}: {text}", node.name());
                ensure!(!text.contains("drop_oversize"), "{}: {text}", node.name());
            }
            all_run(bed)
        })?;
    }
    Ok(())
}

/// As behind a router: Linux learns the MTU of the path and makes its datagrams fit, so that no
/// frame takes two. What may be fragmented is carried in two all the same.
fn senders_hear_of_what_is_too_long() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (obu, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
    bed.connect(&rsu, &obu)?;
    for node in bed.nodes() {
        node.extra_args.borrow_mut().extend(["--pmtu-discovery", "on"].map(str::to_owned));
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&laptop, &server, PATIENCE)?;
        let stream = |from: &Host, at: &Host, to: IpAddr, payload| {
            let stream = UdpStream::start(&from.ns, &at.ns, to, ms(5), payload)?;
            std::thread::sleep(ms(500));
            stream.stop()
        };
        for (from, at, node) in [(&laptop, &server, &obu), (&server, &laptop, &rsu)] {
            let way = format!("{} to {}", from.name(), at.name());
            for (to, payload) in [(at.v4, 1472), (at.v6, 1452)] {
                let udp = stream(from, at, to, payload)?;
                // The first is answered; the next is refused by the sender's own kernel, which says
                // so once.
                let is_told = (1..=4).contains(&udp.lost) && udp.received > 40;
                ensure!(is_told && udp.duplicates == 0, "{way}, {to}: {udp:?}");
                transfer(&from.ns, &at.ns, to, 1_000_000).with_context(|| way.clone())?;
            }
            let counters = counters_of(node)?.text("node");
            ensure!(counters.contains("too_big_told="), "{way}: {counters}");
            ensure!(!counters.contains("fragmented="), "{way}: {counters}");
            from.ns.run(|| Ok(std::fs::write("/proc/sys/net/ipv4/ip_no_pmtu_disc", "1")?))?;
            // Another destination, of which nothing is known yet: the node's own address on that
            // side.
            let other = if from.name() == "laptop" { &rsu.host } else { &obu.host };
            let udp = stream(from, other, other.v4, 1472)?;
            ensure!(udp.lost == 0 && udp.received > 40, "{way}, may be fragmented: {udp:?}");
            let counters = counters_of(node)?.text("node");
            ensure!(counters.contains("fragmented="), "{way}: {counters}");
        }
        all_run(bed)
    })
}

/// What a daemon has counted so far.
fn counters_of(node: &Node) -> Result<LogEvent> {
    let daemon = node.daemon()?;
    let is_counters = |event: &&LogEvent| event.message() == "counters";
    let before = daemon.events()?.iter().filter(is_counters).count();
    daemon.signal(Signal::SIGUSR1)?;
    wait_until("counters", PATIENCE, || {
        Ok(daemon.events()?.iter().filter(is_counters).nth(before).cloned())
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
        signal: None,
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

/// Super-frames at both ends, at one, at none: the same bytes, and no checksum the kernels find
/// wrong.
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

/// A ping over a short way is answered before a daemon goes to sleep, and its counters tell; unless
/// it is told not to look.
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

/// Frames that find a daemon asleep leave it in bundles, unless it makes none; a relay takes them
/// apart and puts them together again.
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

/// A terminal that is closed ends a daemon with its goodbye; what means nothing ends nothing.
fn every_signal_ends_in_order_or_not_at_all() -> Result<()> {
    chain(1, |_, server, obu| {
        obu.daemon()?.signal(Signal::SIGUSR2)?;
        std::thread::sleep(ms(300));
        answers_all(&obu.host, server)?;
        // As many as in a long life: what tokio watches answers a task 128 times.
        wait_until("150 reports", Duration::from_secs(30), || {
            obu.daemon()?.signal(Signal::SIGUSR1)?;
            std::thread::sleep(ms(5));
            let is_report = |event: &&LogEvent| event.message() == "counters";
            Ok((obu.daemon()?.events()?.iter().filter(is_report).count() >= 150).then_some(()))
        })?;
        for _ in 0..2 {
            obu.daemon()?.signal(Signal::SIGHUP)?;
            std::thread::sleep(ms(20));
        }
        let status = obu.wait(Duration::from_secs(3))?;
        ensure!(status.success(), "after SIGHUP it ended with {status}");
        let said = obu.log_tail(5);
        ensure!(said.contains("\"stopped\""), "no goodbye: {said}");
        Ok(())
    })
}

/// An OBU that nobody else starts, with these words before its line and these after it.
fn alone(
    test: impl FnOnce(&dyn Fn(&[&str], &[&str]) -> Result<Daemon>, &Path) -> Result<()>,
) -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let node = bed.add_obu("obu1")?;
    let scratch = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let log = scratch.path().join("obu.log");
    let start = |before: &[&str], after: &[&str]| {
        let obu = programs.obu.to_str().context("a path in UTF-8")?;
        let line = [before, &[obu, "--log-format", "json"], after].concat();
        let line: Vec<_> = line.into_iter().map(str::to_owned).collect();
        Daemon::start(node.ns(), Path::new("env"), &line, &log)
    };
    let result = test(&start, scratch.path());
    result.map_err(|error| anyhow!("{error:#}\n{}", testbed::daemons::daemon::tail(&log, 20)))
}

/// SIGHUP: what is logged changes, the rest is named and waits, and a file with a fault changes
/// nothing.
fn a_file_is_read_again() -> Result<()> {
    const READ: &str = "the configuration was read again";
    const WAITING: &str = "the configuration was read again; these wait for the next start";
    const REFUSED: &str = "the configuration is not taken, all settings stay as they are";
    alone(|start, scratch| {
        let file = scratch.join("car.toml");
        let write = |text: &str| std::fs::write(&file, format!("bind = 'radio0'\n{text}"));
        write("log = 'info'\nmtu = 1400\n")?;
        let mut daemon = start(&[], &["--config", file.to_str().context("a path in UTF-8")?])?;
        daemon.wait_for_event("running", PATIENCE, |_| true)?;
        let hang_up = |text: &str, message: &str, field: &str, value: &str| -> Result<()> {
            write(text)?;
            daemon.signal(Signal::SIGHUP)?;
            let is_it = |event: &LogEvent| field.is_empty() || event.text(field).contains(value);
            daemon.wait_for_event(message, PATIENCE, is_it).map(drop)
        };
        hang_up("log = 'info'\nmtu = 1400\n", READ, "", "")?;
        hang_up("log = 'info'\nmtu = 1300\n", WAITING, "settings", "mtu")?;
        hang_up("log = 'loud'\nmtu = 1300\n", REFUSED, "error", "car.toml:2: log")?;
        hang_up("log = 'debug'\nmtu = 1400\n", "what is logged has changed", "log", "debug")?;
        // What is only told at DEBUG is told now.
        daemon.signal(Signal::SIGUSR2)?;
        daemon.wait_for_event("SIGUSR2 means nothing", PATIENCE, |_| true)?;
        ensure!(daemon.try_wait()?.is_none(), "it ended");
        daemon.terminate()
    })
}

/// What systemd hears of a daemon: that it is ready, that its loop turns, and that it stops.
fn a_supervisor_is_told() -> Result<()> {
    alone(|start, scratch| {
        let name = scratch.join("notify");
        let supervisor = UnixDatagram::bind(&name)?;
        supervisor.set_read_timeout(Some(PATIENCE))?;
        let heard = || -> Result<String> {
            let mut buffer = [0; 100];
            let len = supervisor.recv(&mut buffer).context("nothing was told")?;
            Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
        };
        let socket = format!("NOTIFY_SOCKET={}", name.display());
        let mut daemon = start(&[&socket, "WATCHDOG_USEC=400000"], &["-b", "radio0"])?;
        ensure!(heard()? == "READY=1");
        daemon.wait_for_event("running", PATIENCE, |_| true)?;
        for _ in 0..5 {
            ensure!(heard()? == "WATCHDOG=1");
        }
        daemon.signal(Signal::SIGSTOP)?;
        std::thread::sleep(ms(100));
        supervisor.set_nonblocking(true)?;
        while heard().is_ok() {}
        std::thread::sleep(ms(1000));
        ensure!(heard().is_err(), "a loop that stands still gives no sign of life");
        supervisor.set_nonblocking(false)?;
        daemon.signal(Signal::SIGCONT)?;
        ensure!(heard()? == "WATCHDOG=1");
        daemon.terminate()?;
        while heard()? != "STOPPING=1" {}
        Ok(())
    })
}

/// Nothing here has a radio that could tell; but it is asked, by whoever makes something of the
/// answer.
fn a_vehicle_asks_its_radio() -> Result<()> {
    chain(1, |bed, _, obu| {
        let rsu = bed.nodes().first().context("a road-side unit")?;
        ensure!(asks_for_acknowledgements(obu.daemon()?.pid())?, "the vehicle does not ask");
        ensure!(
            !asks_for_acknowledgements(rsu.daemon()?.pid())?,
            "nobody needs what the road-side unit asks"
        );
        Ok(())
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

/// Two road-side units; the vehicle passes from one to the other within five seconds. Where its
/// radio tells the signal it changes before a frame is lost; where it does not, it changes when
/// frames are lost.
fn a_fading_link_is_left_in_time() -> Result<()> {
    let with = fading_drive(&fading_links())?;
    println!("    with signal: {with:?}");
    ensure!(with.causes == ["predicted"], "{with:?}");
    ensure!(with.lost == 0, "{with:?}");
    let without = fading_drive(&fading_links().without_signal())?;
    println!("    without: {without:?}");
    let noticed = |cause: &String| cause == "fading" || cause == "dead";
    ensure!(!without.causes.is_empty() && without.causes.iter().all(noticed), "{without:?}");
    ensure!(without.lost > 0, "{without:?}");
    Ok(())
}

/// One fades by 7.5 dB a second from −60 dBm, the other comes up as fast from −90. The mean of the
/// last two seconds tells 6 dB of difference after 3.4 s; from −93 dBm on, a second later, the
/// first loses frames, and all from −97.
fn fading_links() -> LinkTrace {
    let mut steps = Vec::new();
    for tenths in 0..53_u32 {
        let fade = 0.75 * f64::from(tenths);
        let (fading, coming) = (-60.0 - fade, -90.0 + fade);
        let lost = ((-93.0 - fading) / 4.0).clamp(0.0, 1.0);
        for (rsu, dbm, loss) in [("rsu1", fading, lost), ("rsu2", coming, 0.0)] {
            for (from, to) in [(rsu, "obu1"), ("obu1", rsu)] {
                steps.push(LinkStep {
                    time: ms(100) * tenths,
                    from: from.to_owned(),
                    to: to.to_owned(),
                    loss,
                    delay: Duration::ZERO,
                    signal: Some(medium::Signal { dbm, sd_db: 1.0 }),
                });
            }
        }
    }
    LinkTrace::new(steps)
}

#[derive(Debug)]
struct FadingDrive {
    causes: Vec<String>,
    lost: u64,
}

fn fading_drive(trace: &LinkTrace) -> Result<FadingDrive> {
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let [rsu1, rsu2] = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let obu = bed.add_obu("obu1")?;
    if trace.tells_signal() {
        bed.tell_signal(&obu)?;
    }
    with_logs(bed, |bed| {
        // Found while there is no other to choose; then both, as they are when the drive begins.
        bed.connect(&rsu1, &obu)?;
        bed.start_all()?;
        reaches(&obu.host, &server, PATIENCE)?;
        bed.play(&trace.between(Duration::ZERO, Duration::ZERO), Quality::default())?;
        std::thread::sleep(ms(2500));
        ensure!(obu.sends_through(&rsu1)?, "it sends to {}", obu.attachment()?);
        let before = obu.events()?.len();
        let ping = Ping::start(obu.ns(), server.v4, PROBE_EVERY)?;
        std::thread::sleep(ms(300));
        bed.play(trace, Quality::default())?;
        std::thread::sleep(trace.end() + ms(500));
        let report = ping.stop()?;
        ensure!(obu.sends_through(&rsu2)?, "it sends to {}", obu.attachment()?);
        let events = obu.events()?;
        let changes = events.iter().skip(before);
        let changes = changes.filter(|event| event.message() == ATTACHMENT_CHANGED);
        Ok(FadingDrive {
            causes: changes.map(|event| event.text("cause")).collect(),
            lost: report.lost,
        })
    })
}

/// Radios of 500 kbit/s, and clients that offer each way ten times as much in small datagrams, for
/// six seconds. The radio drops nearly all of it, and everybody stays with its upstream.
fn data_does_not_starve_control() -> Result<()> {
    const OFFERED_EVERY: Duration = Duration::from_micros(200);
    let slow = Quality { rate_bps: Some(500_000), ..Quality::default() };
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let relays = [bed.add_obu("left")?, bed.add_obu("right")?];
    let obu = bed.add_obu("obu1")?;
    for relay in &relays {
        bed.connect_with(&rsu, relay, slow)?;
        bed.connect_with(relay, &obu, slow)?;
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&obu.host, &server, PATIENCE)?;
        std::thread::sleep(ms(2000));
        let nodes = [&obu, &relays[0], &relays[1]];
        let changes = || -> Result<usize> {
            let mut changes = 0;
            for node in nodes {
                let events = node.events()?;
                changes += events.iter().filter(|e| e.message() == ATTACHMENT_CHANGED).count();
            }
            Ok(changes)
        };
        let before = changes()?;
        let stream =
            |from: &Host, to: &Host| UdpStream::start(&from.ns, &to.ns, to.v4, OFFERED_EVERY, 64);
        let streams = [stream(&obu.host, &server)?, stream(&server, &obu.host)?];
        std::thread::sleep(ms(6000));
        for stream in streams {
            let report = stream.stop()?;
            ensure!(report.received > 0, "nothing arrived: {report:?}");
            ensure!(report.lost * 2 > report.sent, "the radio was not full: {report:?}");
        }
        ensure!(changes()? == before, "{} changes of upstream", changes()? - before);
        Ok(())
    })
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

/// Hosts on the LAN keep talking to the address they know.
fn a_restarted_vehicle_is_reached_at_once() -> Result<()> {
    chain(1, |bed, server, obu| {
        reaches(server, &obu.host, PATIENCE)?;
        let mac = obu.host.mac_now()?;
        for how in ["crash", "goodbye", "change of its MAC"] {
            if how == "crash" {
                obu.kill()?
            } else {
                obu.stop()?
            }
            let is_changed = how.starts_with("change");
            if is_changed {
                obu.extra_args
                    .borrow_mut()
                    .extend(["--tap-mac", "02:77:00:00:00:01"].map(str::to_owned));
            }
            std::thread::sleep(ms(1000));
            obu.start()?;
            ensure!((obu.host.mac_now()? == mac) != is_changed, "the MAC after a {how}");
            let took = reaches(server, &obu.host, PATIENCE)?;
            println!("    after a {how}: reached from the LAN after {} ms", took.as_millis());
            ensure!(took <= Duration::from_secs(1), "after a {how}: {took:?}");
        }
        all_run(bed)
    })
}

/// A camera says one word and never another. Then its vehicle's OBU is killed and started again,
/// and the RSU in use dies. Who is behind it the OBU knows from the bridge its TAP is in; or, as
/// here the bridge has forgotten it too, from the file beside its state file.
fn a_silent_client_is_known_after_a_restart() -> Result<()> {
    const ATTACHED_WITHIN: Duration = Duration::from_secs(5);
    for source in ["bridge", "file"] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let mut rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
        let (obu, cabin) = bed.add_obu_with_cabin("obu1", 1)?;
        for rsu in &rsus {
            bed.connect(rsu, &obu)?;
        }
        let states = tempfile::TempDir::new_in(testbed::arena::scratch())?;
        if source == "file" {
            let boots = states.path().join("boots").display().to_string();
            obu.extra_args.borrow_mut().extend(["--state-file".to_owned(), boots]);
        }
        let attached = || {
            wait_until("obu1 is attached", ATTACHED_WITHIN, || {
                Ok((obu.attachment()? != "none").then_some(()))
            })
        };
        with_logs(bed, |bed| {
            bed.start_all()?;
            attached()?;
            let (camera, mac) = &cabin.clients[0];
            let word = numbered(Mac::BROADCAST, *mac, 1);
            send_frames(&cabin.ns, camera, &word, ms(0))?;
            // Longer than until it is written down.
            std::thread::sleep(ms(3500));
            obu.kill()?;
            if source == "file" {
                // A port that goes down is one behind which nobody is known.
                obu.ns().set_down(camera)?;
                obu.ns().set_up(camera)?;
            }
            obu.start()?;
            attached()?;
            // The other RSU is known, and stands by.
            std::thread::sleep(ms(1500));
            let (active, other) = active_first(&obu, &mut rsus)?;
            let frames = numbered(*mac, server.mac_now()?, 200);
            let receiver = FrameReceiver::start(&cabin.ns, camera)?;
            send_frames(&server.ns, &server.interface, &frames[..20], PROBE_EVERY)?;
            active.kill()?;
            send_frames(&server.ns, &server.interface, &frames[20..], PROBE_EVERY)?;
            let got = receiver.stop()?;
            let arrived = |frame: &NumberedFrame| got.contains(frame);
            let worst = frames.split(arrived).map(<[_]>::len).max().unwrap_or(0);
            println!("    {source}: {worst} frames to the silent client lost in a row");
            ensure!(frames.last().is_some_and(arrived), "{source}: the last did not arrive");
            let outage = PROBE_EVERY * u32::try_from(worst)?;
            ensure!(outage <= SILENT_DEATH_MAX, "{source}: unreachable for {outage:?}");
            let port = bed.lan().bridge_port_of(*mac)?;
            ensure!(port.as_deref() == Some(other.name()), "{source}: behind {port:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// `--bridge` puts it there at the start, again when it was deleted, and again when it was taken
/// out; and a daemon that ends in order has nothing to warn of. Without the flag somebody else puts
/// it there and takes it out, and only a TAP that was deleted is put there again.
fn a_tap_stays_in_its_bridge() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    with_logs(bed, |_| {
        // A socket of its own: both TAPs have one name, and who comes second is warned.
        let args = ["--bridge", "br0", "--control", "/run/rsu1.sock"];
        rsu.extra_args.borrow_mut().extend(args.map(str::to_owned));
        // Nobody but the daemon puts it into the bridge.
        rsu.launch()?;
        obu.start()?;
        reaches(&obu.host, &server, PATIENCE).context("at the start")?;
        rsu.stop()?;
        let said = rsu.log_tail(100);
        ensure!(!said.contains("WARN"), "a warning at a clean end: {said}");
        rsu.launch()?;
        reaches(&obu.host, &server, PATIENCE).context("after a restart")?;
        rsu.ns().delete("tap0")?;
        std::thread::sleep(ms(500));
        reaches(&obu.host, &server, PATIENCE).context("after the TAP was deleted")?;
        rsu.ns().release("tap0")?;
        rsu.daemon()?.wait_for_event(LAN_DOWN, PATIENCE, |_| true)?;
        reaches(&obu.host, &server, PATIENCE).context("after it was taken out of the bridge")?;
        rsu.stop()?;
        rsu.extra_args.borrow_mut().clear();
        rsu.start()?;
        reaches(&obu.host, &server, PATIENCE).context("put there by hand")?;
        for round in 1..=2 {
            rsu.ns().delete("tap0")?;
            std::thread::sleep(ms(500));
            reaches(&obu.host, &server, PATIENCE)
                .with_context(|| format!("put there by hand, and deleted {round} times"))?;
        }
        let is_out = |when: &str| -> Result<()> {
            // Longer than until it would be put back.
            std::thread::sleep(ms(2500));
            let tap = rsu.ns().state("tap0")?;
            ensure!(tap.is_up && tap.bridge.is_none(), "{when}: {tap:?}");
            Ok(())
        };
        rsu.ns().release("tap0")?;
        is_out("taken out by hand")?;
        rsu.ns().delete("tap0")?;
        is_out("taken out by hand, and deleted")?;
        rsu.stop()
    })
}

/// A healthy one is beside it. With a TAP as the flags say a vehicle needs `CAP_NET_RAW` and
/// nothing else; without one it says what it lacks.
fn a_prepared_tap_takes_no_right_to_change_it() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    let scratch = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let program = scratch.path().join("obu");
    let without =
        ["bounding-set", "inh-caps", "ambient-caps"].map(|set| format!("--{set}=-net_admin"));
    let daemon = Programs::find()?.obu;
    let script =
        format!("#!/bin/sh\nexec setpriv {} {} \"$@\"\n", without.join(" "), daemon.display());
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    obu.program.replace(program);
    with_logs(bed, |_| {
        rsu.start()?;
        obu.launch()?;
        let status = obu.wait(PATIENCE)?;
        ended_with_reason(&obu, status, "CAP_NET_ADMIN")?;
        make_tap(obu.ns(), "tap0", "tap user 0")?;
        obu.ns().add_address("tap0", obu.host.v4, 24)?;
        obu.start()?;
        reaches(&obu.host, &server, PATIENCE)?;
        answers_all(&obu.host, &server)
    })
}

fn a_road_side_unit_without_a_lan_is_left() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let mut rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let obu = bed.add_obu("obu1")?;
    for rsu in &rsus {
        bed.connect(rsu, &obu)?;
        rsu.extra_args.borrow_mut().extend(["--bridge", "br0"].map(str::to_owned));
    }
    with_logs(bed, |bed| {
        bed.start_all()?;
        reaches(&obu.host, &server, PATIENCE)?;
        for interface in ["tap0", "br0"] {
            std::thread::sleep(ms(2000));
            let (active, _) = active_first(&obu, &mut rsus)?;
            let ping = Ping::start(obu.ns(), server.v4, PROBE_EVERY)?;
            std::thread::sleep(ms(500));
            active.ns().set_down(interface)?;
            std::thread::sleep(ms(1000));
            let outage = outage(&ping.stop()?)?;
            println!("    {interface} of {} down: {outage:?}", active.name());
            ensure!(outage <= SILENT_DEATH_MAX, "without a route for {outage:?}");
            active.daemon()?.wait_for_event(LAN_DOWN, PATIENCE, |_| true)?;
            active.ns().set_up(interface)?;
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
    with_logs(bed, |_| {
        for node in &nodes {
            node.extra_args.borrow_mut().extend(["-m".to_owned(), "12000".to_owned()]);
            node.launch()?;
            let status = node.wait(Duration::from_secs(3))?;
            for number in [12_000, 1500] {
                ended_with_reason(node, status, &number.to_string())?;
            }
        }
        Ok(())
    })
}

/// Nobody reads the log, somebody closed it, the disk is full: frames pass, and SIGTERM ends it.
fn daemons_outlive_their_log() -> Result<()> {
    chain(1, |bed, server, obu| {
        // One line per frame, so that a pipe of 64 KiB is full in no time.
        obu.extra_args.borrow_mut().extend(["--log", "trace"].map(str::to_owned));
        let (reader, unread) = std::io::pipe()?;
        let (closed_reader, closed) = std::io::pipe()?;
        drop(closed_reader);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
        let sinks: [(&str, Stdio); 3] =
            [("unread", unread.into()), ("closed", closed.into()), ("full", full.into())];
        for (name, stderr) in sinks {
            obu.stop().with_context(|| format!("before {name}"))?;
            obu.stderr.replace(Some(stderr));
            obu.launch()?;
            // Its log does not tell when it is ready.
            wait_until("the TAP is up", PATIENCE, || {
                Ok(obu.ns().find("tap0")?.filter(|tap| tap.is_up))
            })?;
            std::thread::sleep(ms(300));
            reaches(&obu.host, server, PATIENCE).with_context(|| name.to_owned())?;
            let report = Ping::count(obu.ns(), server.v4, 300, ms(2))?;
            ensure!(report.received == report.sent, "{name}: {report:?}");
            all_run(bed).with_context(|| name.to_owned())?;
        }
        obu.stop()?;
        drop(reader);
        Ok(())
    })
}

/// What was named and cannot be used ends the start, with a reason; `auto` goes on without.
fn a_source_of_signal_that_cannot_be_used() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    // With a bridge, whose address leads to a multicast group.
    let (node, _) = bed.add_obu_with_host("obu1", "laptop")?;
    let obu = Programs::find()?.obu;
    let checked = |line: &str| -> Result<(Option<i32>, String)> {
        let line = line.replace("OBU", &obu.display().to_string());
        let line = line.replace("udp:", &format!("udp:@{}", node.host.v4));
        let (program, args) = line.split_once(' ').context("a command line")?;
        let output = node.ns().run(|| {
            Ok(Command::new(program)
                .args(args.split(' '))
                .args(["-t", "tap0", "--check"])
                .output()?)
        })?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    };
    let refused = |line: &str, code: i32, reason: &str| -> Result<()> {
        let (ended, said) = checked(line)?;
        ensure!(ended == Some(code) && said.contains(reason), "{line}: {ended:?}, {said}");
        Ok(())
    };
    refused("OBU -b radio0 --signal radiotap:radio0", 4, "it is of link type 1;")?;
    refused("OBU -b radio0 --signal radiotap:mon0", 4, "mon0: cannot read the signal")?;
    refused("OBU -b radio0 --signal radiotap:mon0", 4, "no such interface")?;
    refused("OBU -b radio0 --signal nl80211", 4, "expected an interface of an 802.11 driver")?;
    refused("OBU -b udp: --signal nl80211", 4, "a multicast group has no radio")?;
    // A radio of UDP needs no packet socket, a monitor does.
    let unprivileged =
        "setpriv --bounding-set=-net_raw --inh-caps=-net_raw --ambient-caps=-net_raw";
    let line = format!("{unprivileged} OBU -b udp: --signal radiotap:radio0");
    refused(&line, 3, "CAP_NET_RAW is missing")?;
    for (line, source) in [
        ("OBU -b radio0", "signal strength: not told"),
        ("OBU -b radio0 --signal off", "signal strength: not told"),
        ("OBU -b udp: --signal auto", "signal strength: not told"),
    ] {
        refused(line, 0, source)?;
    }
    bed.add_monitor(&node)?;
    refused("OBU -b radio0 --signal radiotap:mon0", 0, "signal strength: radiotap:mon0")
}

/// Signal is told again by a monitor interface of the same name, without a restart.
fn a_monitor_is_deleted_and_made_again() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    let signal = Some(medium::Signal { dbm: -60.0, sd_db: 1.0 });
    bed.connect_with(&rsu, &obu, Quality { signal, ..Quality::default() })?;
    bed.tell_signal(&obu)?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        let samples = || -> Result<u64> {
            let text = counters_of(&obu)?.text("signal");
            let count = text.split(' ').find_map(|one| one.strip_prefix("samples="));
            Ok(count.map_or(Ok(0), str::parse)?)
        };
        let grows = |from: u64| {
            wait_until("more signal", PATIENCE, || Ok((samples()? > from).then_some(())))
        };
        grows(0)?;
        for _ in 0..2 {
            let times = |message: &str| -> Result<usize> {
                Ok(obu.events()?.iter().filter(|event| event.message() == message).count())
            };
            let (gone, back) = (
                "monitor interface is gone, waiting for it: no signal strength",
                "monitor interface is back",
            );
            let before = (times(gone)?, times(back)?);
            obu.ns().delete(testbed::MONITOR)?;
            wait_until(gone, PATIENCE, || Ok((times(gone)? > before.0).then_some(())))?;
            rests(&obu, ms(1000))?;
            let silent = samples()?;
            bed.add_monitor(&obu)?;
            wait_until(back, PATIENCE, || Ok((times(back)? > before.1).then_some(())))?;
            grows(silent)?;
        }
        all_run(bed)
    })
}

/// What ends the start is found by `--check`, with the same exit code and in the same words.
fn check_finds_what_the_start_finds() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    let programs = Programs::find()?;
    with_logs(bed, |_| {
        rsu.start()?;
        let ended = |line: &str, is_check: bool| -> Result<(Option<i32>, String)> {
            let output = rsu.ns().run(|| {
                let mut command = Command::new("timeout");
                command.arg("5");
                let unprivileged = line.strip_prefix("UNPRIVILEGED ");
                if unprivileged.is_some() {
                    let sets = ["bounding-set", "inh-caps", "ambient-caps"];
                    command.arg("setpriv").args(sets.map(|set| format!("--{set}=-net_admin")));
                }
                command.arg(&programs.obu).args(unprivileged.unwrap_or(line).split(' '));
                if is_check {
                    command.arg("--check");
                }
                Ok(command.output()?)
            })?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Ok((output.status.code(), said.lines().last().unwrap_or_default().to_owned()))
        };
        rsu.ns()
            .run(|| Ok(std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?))?;
        let radio = rsu.radio;
        for (tap, what) in
            [("queues0", "tap multi_queue"), ("tun0", "tun"), ("own0", "tap user 0 group 0")]
        {
            make_tap(rsu.ns(), tap, what)?;
        }
        let mut lines = vec![
            ("-b none0".to_owned(), 4, "no such interface"),
            ("-b radio0 -t eth0".to_owned(), 4, "is not a TAP"),
            ("-b radio0 -t br0".to_owned(), 4, "is not a TAP"),
            ("-b radio0 -t tap0".to_owned(), 4, "another process has it open"),
            ("-b radio0 -t tun0".to_owned(), 4, "is not a TAP"),
            ("-b radio0 -t queues0".to_owned(), 4, "several queues"),
            ("-b radio0 -t radio0".to_owned(), 2, "two interfaces"),
            ("-b radio0 --bridge eth0".to_owned(), 4, "not a bridge"),
            ("-b radio0 --bridge none0".to_owned(), 4, "no such interface"),
            (format!("-b radio0 --tap-mac {radio}"), 2, "address of the radio"),
            ("-b radio0 -m 12000".to_owned(), 2, "12000"),
            ("-b radio0 -i fd00::1/64".to_owned(), 4, "IPv6 is off"),
            ("-b radio0 --state-file /no/such/boots".to_owned(), 2, "/no/such/boots"),
            ("-b radio0 --state-file /dev/null/boots".to_owned(), 2, "/dev/null/boots"),
            ("-b radio0 --state-file /".to_owned(), 2, "state file /"),
            ("-b udp:@10.99.9.9".to_owned(), 4, "no interface to reach the group"),
            ("-b radio0 --signal radiotap:none0".to_owned(), 4, "no such interface"),
        ];
        // A user namespace of a plain user knows only that one, so there every TAP is its own.
        if is_real_root()? {
            for (tap, who) in [("user0", "user 1000"), ("group0", "group 1000")] {
                make_tap(rsu.ns(), tap, &format!("tap {who}"))?;
                lines.push((format!("UNPRIVILEGED -b radio0 -t {tap}"), 3, who));
            }
        }
        for (line, code, reason) in lines {
            let (checked, started) = (ended(&line, true)?, ended(&line, false)?);
            ensure!(checked == started, "{line}: {checked:?} and {started:?}");
            ensure!(checked.0 == Some(code) && checked.1.contains(reason), "{line}: {checked:?}");
        }
        // What is ours takes no privilege: it runs until its time is up.
        const TIME_IS_UP: Option<i32> = Some(124);
        let line = "UNPRIVILEGED -b radio0 -t own0";
        let (checked, started) = (ended(line, true)?, ended(line, false)?);
        ensure!(checked.0 == Some(0) && started.0 == TIME_IS_UP, "{checked:?}, {started:?}");
        // A client file that tells nobody ends nothing: both say why.
        let states = tempfile::TempDir::new_in(testbed::arena::scratch())?;
        let boots = states.path().join("boots");
        let known = states.path().join("boots.clients");
        let line = format!("-b radio0 -t own0 --state-file {}", boots.display());
        let check = || -> Result<String> {
            let checked = rsu.ns().run(|| {
                Ok(Command::new(&programs.obu).args(line.split(' ')).arg("--check").output()?)
            })?;
            ensure!(checked.status.success(), "{checked:?}");
            Ok(String::from_utf8_lossy(&checked.stdout).into_owned())
        };
        for (content, reason) in [
            (None, "clients: 0 known from"),
            (Some("yesterday\n"), "clients: none known: client file"),
            (Some("v2x-clients 1\nat 1 1 -\ncrc32 0\n"), "damaged"),
        ] {
            content.map_or(Ok(()), |content| std::fs::write(&known, content))?;
            let said = check()?;
            ensure!(said.contains(reason), "{content:?}: {said}");
            ensure!(known.exists() == content.is_some(), "--check wrote a file");
        }
        let started = rsu.ns().run(|| {
            let mut command = Command::new("timeout");
            Ok(command.arg("5").arg(&programs.obu).args(line.split(' ')).output()?)
        })?;
        let said = String::from_utf8_lossy(&started.stderr);
        let is_warned = said.contains("clients of an earlier start are not known");
        ensure!(is_warned && said.contains("damaged"), "{said}");
        ensure!(started.status.code() == TIME_IS_UP, "{started:?}");
        let said = check()?;
        ensure!(said.contains("clients: 0 known from"), "it was written anew: {said}");
        // Nothing is wrong here, but for the daemon that has the radio already.
        let checked = rsu.ns().run(|| {
            let line = ["-b", "radio0", "--check"];
            Ok(Command::new(&programs.obu).args(line).output()?)
        })?;
        let said = String::from_utf8_lossy(&checked.stdout);
        ensure!(checked.status.success() && said.contains("another program"), "{said}");
        let free = obu.ns().run(|| {
            let line = ["-b", "radio0", "--check"];
            Ok(Command::new(&programs.obu).args(line).output()?)
        })?;
        let said = String::from_utf8_lossy(&free.stdout);
        ensure!(free.status.success() && !said.contains("another program"), "{said}");
        Ok(())
    })
}

/// Two daemons on one radio, one id for two nodes, a TAP that leads nowhere.
fn first_contact_names_what_is_wrong() -> Result<()> {
    const SHARED: &str = "another program of this host has this radio with the same EtherType: \
                          programs on one radio do not hear each other";
    const CONFLICT: &str =
        "another node uses our node id: give one of the two another with --node-id";
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    let logs = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let programs = Programs::find()?;
    with_logs(bed, |bed| {
        for node in bed.nodes() {
            let id = ["--node-id", "02:00:00:00:00:77"];
            node.extra_args.borrow_mut().extend(id.map(str::to_owned));
        }
        rsu.launch()?;
        obu.start()?;
        let line = "-b radio0 -t tap1 -i 10.9.9.9/24 --node-id 02:00:00:00:00:78 --log-format json";
        let args: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let log = logs.path().join("second.log");
        let second = Daemon::start(obu.ns(), &programs.obu, &args, &log)?;
        second.wait_for_event(SHARED, PATIENCE, |_| true)?;
        for node in bed.nodes() {
            node.daemon()?.wait_for_event(CONFLICT, PATIENCE, |_| true)?;
        }
        let unused = |event: &LogEvent| event.message().starts_with("TAP has no address");
        wait_until("the RSU says that nobody uses its TAP", Duration::from_secs(20), || {
            Ok(rsu.events()?.iter().any(unused).then_some(()))
        })?;
        for other in [obu.daemon()?.events()?, second.events()?] {
            ensure!(!other.iter().any(unused), "a TAP with an address is used");
        }
        all_run(bed)
    })
}

/// Each of two nodes that do not understand each other says what the other one uses, and a third
/// that hears nobody does not.
fn different_ethertypes_are_named() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    let alone = bed.add_obu("obu2")?;
    bed.connect(&rsu, &obu)?;
    let other = ["--ethertype", "0x88b6"].map(str::to_owned);
    obu.extra_args.borrow_mut().extend(other);
    with_logs(bed, |bed| {
        bed.nodes().iter().try_for_each(|node| node.launch())?;
        let likely = |node: &Node| -> Result<String> {
            let warning = "no other node has been heard";
            let event =
                node.daemon()?.wait_for_event(warning, Duration::from_secs(20), |_| true)?;
            Ok(event.text("likely"))
        };
        for (node, cause) in [(&rsu, "EtherType 0x88b6"), (&obu, "EtherType 0x88b5")] {
            let said = likely(node)?;
            ensure!(said.contains(cause), "{}: {said}", node.name());
        }
        let said = likely(&alone)?;
        ensure!(said.contains("nobody is in range"), "obu2: {said}");
        all_run(bed)
    })
}

/// Something between the radios, a switch for example, puts frames into a VLAN.
fn tagged_frames_are_named() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (other, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&other, &obu)?;
    // That of the frames a test can send.
    obu.extra_args.borrow_mut().extend(["--ethertype", "0x88b6"].map(str::to_owned));
    with_logs(bed, |bed| {
        obu.launch()?;
        let mut tagged = numbered(Mac::BROADCAST, other.radio, 120);
        tagged.iter_mut().for_each(|frame| frame.vlan = Some(7));
        send_frames(other.ns(), "radio0", &tagged, ms(100))?;
        let warning = "no other node has been heard";
        let event = obu.daemon()?.wait_for_event(warning, PATIENCE, |_| true)?;
        let said = event.text("likely");
        ensure!(said.contains("frames with a VLAN tag were heard"), "{said}");
        ensure!(!said.contains("for other addresses"), "{said}");
        let counters = counters_of(&obu)?.text("radio");
        ensure!(counters.contains("rx_tagged="), "{counters}");
        ensure!(!counters.contains("rx_frames="), "{counters}");
        // In no VLAN but with a priority a frame is a frame.
        tagged.iter_mut().for_each(|frame| frame.vlan = Some(0xe000));
        send_frames(other.ns(), "radio0", &tagged[..1], ms(0))?;
        let counters = counters_of(&obu)?.text("radio");
        ensure!(counters.contains("rx_frames=1"), "{counters}");
        bed.nodes()[1].stop()
    })
}

/// A neighbour's, on a radio that takes less; and those of a host in the vehicle, for which the
/// radio has become too small.
fn frames_that_are_too_long_are_named() -> Result<()> {
    const WARNING: &str = "frame too long, dropped";
    let named = |node: &Node, from: Mac, bytes: u64, cure: &str| -> Result<()> {
        let event = node.daemon()?.wait_for_event(WARNING, PATIENCE, |_| true)?;
        let said = (event.text("from"), event.text("bytes"), event.text("cure"));
        let is_named = said.0 == from.to_string() && said.1 == bytes.to_string();
        ensure!(is_named && said.2.contains(cure), "{}: {said:?}", node.name());
        let lines = node.events()?.iter().filter(|event| event.message() == WARNING).count();
        ensure!(lines == 1, "{}: {lines} warnings", node.name());
        Ok(())
    };
    let mut bed = Testbed::with_radio_mtu(1, 2200)?;
    let (other, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&other, &obu)?;
    obu.extra_args.borrow_mut().extend(["--ethertype", "0x88b6"].map(str::to_owned));
    with_logs(bed, |bed| {
        bed.set_radio_mtu(&obu, 2100)?;
        obu.launch()?;
        obu.daemon()?.wait_for_event("running", PATIENCE, |_| true)?;
        let mut long = numbered(Mac::BROADCAST, other.radio, 20);
        // A veth lets so much more than its MTU through, for a VLAN tag.
        long.iter_mut().for_each(|frame| frame.payload_len = 2104);
        send_frames(other.ns(), "radio0", &long, PROBE_EVERY)?;
        named(&obu, other.radio, 2118, "MTU")?;
        obu.stop()
    })?;

    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (obu, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
    bed.connect(&rsu, &obu)?;
    obu.extra_args.borrow_mut().extend(["-m", "9000"].map(str::to_owned));
    with_logs(bed, |bed| {
        for (ns, interface) in [(obu.ns(), "eth0"), (&laptop.ns, "eth0"), (obu.ns(), "br0")] {
            ns.set_mtu(interface, 9000)?;
        }
        bed.start_all()?;
        reaches(&laptop, &server, PATIENCE)?;
        bed.set_radio_mtu(&obu, 1000)?;
        obu.daemon()?.wait_for_event("radio MTU does not fit the TAP", PATIENCE, |_| true)?;
        let mut long = numbered(server.mac_now()?, laptop.mac_now()?, 20);
        long.iter_mut().for_each(|frame| frame.payload_len = 9000);
        send_frames(&laptop.ns, &laptop.interface, &long, PROBE_EVERY)?;
        named(&obu, laptop.mac_now()?, 9014, "MTU")?;
        let counters = counters_of(&obu)?.text("node");
        ensure!(counters.contains("drop_oversize=20"), "{counters}");
        all_run(bed)
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
fn with_logs<T>(mut bed: Testbed, test: impl FnOnce(&mut Testbed) -> Result<T>) -> Result<T> {
    Programs::find()?.require_daemons()?;
    let result = test(&mut bed);
    result.map_err(|error| anyhow!("{error:#}\n{}", bed.log_tails()))
}

/// A TAP made beforehand, as `ip tuntap` has it, which lacks nothing.
fn make_tap(ns: &Netns, name: &str, what: &str) -> Result<()> {
    for line in
        [format!("tuntap add dev {name} mode {what}"), format!("link set {name} mtu 1500 up")]
    {
        let done = ns.run(|| Ok(Command::new("ip").args(line.split(' ')).status()?))?;
        ensure!(done.success(), "ip {line}: {done}");
    }
    Ok(())
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
