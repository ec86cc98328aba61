//! The testbed tested on itself: arena, medium and probes, without any daemon.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use node_lib::Mac;
use node_lib::device::Links;
use node_lib::device::netlink::Netlink;
use node_lib::device::signal::{Sample, SignalSource};
use testbed::arena::fdb::FdbWatch;
use testbed::medium::{Counters, MediumLinkStep, MediumLinkTrace, SignalStrength};
use testbed::probe::{
    Endpoint, FrameReceiver, NumberedFrame, PingReport, PingStream, Stream, Streams, UdpStream,
    send_frames, transfer,
};
use testbed::{MONITOR, Programs, Quality, Testbed, TestbedNode, wait_until};

use crate::beds::BAD;
use crate::harness::{Area, ms};
use crate::plain_user::run_as_plain_user;

/// How long the last frames may be under way on a busy machine.
const SETTLE: Duration = ms(300);

pub(crate) const AREA: Area = Area {
    name: "arena",
    alone: &[
        ("delay_is_added_in_each_direction", delay_is_added_in_each_direction),
        ("a_rate_limit_holds", a_rate_limit_holds),
        ("control_goes_before_data_that_waits", control_goes_before_data_that_waits),
        ("a_trace_is_replayed_at_its_times", a_trace_is_replayed_at_its_times),
        ("nothing_survives_the_arena", nothing_survives_the_arena),
    ],
    together: &[
        ("ping_crosses_the_medium", ping_crosses_the_medium),
        ("ping_crosses_the_medium_for_a_plain_user", || {
            run_as_plain_user("arena::ping_crosses_the_medium")
        }),
        ("lost_frames_are_the_share_asked_for", lost_frames_are_the_share_asked_for),
        ("a_cut_link_carries_nothing_and_heals", a_cut_link_carries_nothing_and_heals),
        ("hearing_has_a_direction", hearing_has_a_direction),
        ("duplicated_frames_arrive_twice", duplicated_frames_arrive_twice),
        ("unicast_reaches_every_radio_in_range", unicast_reaches_every_radio_in_range),
        ("tagged_short_and_full_size_frames_arrive_whole", tagged_short_and_full_size_frames),
        ("tcp_and_udp_survive_a_bad_link", tcp_and_udp_survive_a_bad_link),
        ("a_radio_tries_unicast_frames_again", a_radio_tries_unicast_frames_again),
        ("a_monitor_tells_the_signal", a_monitor_tells_the_signal),
        ("a_trace_with_strangers_is_refused", a_trace_with_strangers_is_refused),
        ("clients_in_a_cabin_are_silent", clients_in_a_cabin_are_silent),
        ("a_bridge_is_watched_while_it_learns", a_bridge_is_watched_while_it_learns),
        ("a_radio_comes_back_down_or_deleted", a_radio_comes_back_down_or_deleted),
        ("lan_hosts_reach_each_other_over_the_bridge", lan_hosts_reach_each_other),
    ],
};

/// Two radios with addresses, in range of each other.
fn pair() -> Result<(Testbed, Rc<TestbedNode>, Rc<TestbedNode>)> {
    let mut bed = Testbed::new(1)?;
    let (a, b) = (bed.add_obu("a")?, bed.add_obu("b")?);
    for node in [&a, &b] {
        node.ns().add_address("radio0", node.host.v4, 24)?;
        node.ns().add_address("radio0", node.host.v6, 64)?;
    }
    bed.connect(&a, &b)?;
    Ok((bed, a, b))
}

fn ping(from: &TestbedNode, to: &TestbedNode, count: u32) -> Result<PingReport> {
    PingStream::count(from.ns(), to.host.v4, count, ms(10))
}

fn ping_crosses_the_medium() -> Result<()> {
    let (_bed, a, b) = pair()?;
    for to in [b.host.v4, b.host.v6] {
        let report = PingStream::count(a.ns(), to, 20, ms(10))?;
        ensure!(report.received == 20 && report.duplicates == 0, "{to}: {report:?}");
    }
    Ok(())
}

fn lost_frames_are_the_share_asked_for() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.hear(&a, &b, Quality::lossy(0.25))?;
    let frames = numbered(Mac::BROADCAST, a.radio, 2000, 60);
    let receiver = FrameReceiver::start(b.ns(), "radio0")?;
    send_frames(a.ns(), "radio0", &frames, Duration::from_micros(50))?;
    std::thread::sleep(SETTLE);
    let lost = frames.len() - receiver.stop()?.len();
    ensure!((400..600).contains(&lost), "{lost} of 2000 lost");
    let counters = counters(&mut bed, &a, &b)?;
    ensure!(counters.lost as usize >= lost, "{counters:?}");
    Ok(())
}

fn a_cut_link_carries_nothing_and_heals() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    ensure!(ping(&a, &b, 5)?.lost == 0);
    bed.cut(&a, &b)?;
    ensure!(ping(&a, &b, 5)?.received == 0);
    bed.connect(&a, &b)?;
    ensure!(ping(&a, &b, 5)?.lost == 0);
    Ok(())
}

/// A radio has more data to send than there is room for. What neighbours say comes after it, and
/// arrives first.
fn control_goes_before_data_that_waits() -> Result<()> {
    const DATA: u32 = 6000;
    /// The first byte of what is in the frame is that of a heartbeat.
    const CONTROL: u32 = 0x2100_0000;
    let (bed, a, b) = pair()?;
    let receiver = FrameReceiver::start(b.ns(), "radio0")?;
    bed.stall_medium(true)?;
    send_frames(a.ns(), "radio0", &numbered(b.radio, a.radio, DATA, 1400), Duration::ZERO)?;
    let mut control = numbered(b.radio, a.radio, 1, 60);
    control.iter_mut().for_each(|frame| frame.number = CONTROL);
    send_frames(a.ns(), "radio0", &control, Duration::ZERO)?;
    bed.stall_medium(false)?;
    std::thread::sleep(SETTLE * 3);
    let got = receiver.stop()?;
    let place = got.iter().position(|frame| frame.number == CONTROL);
    ensure!(got.len() < DATA as usize, "there was room for all");
    ensure!(place.is_some_and(|place| place <= 64), "{place:?} of {} frames", got.len());
    Ok(())
}

fn hearing_has_a_direction() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.hear(&b, &a, Quality::CUT)?;
    for (from, to, expected) in [(&a, &b, 10), (&b, &a, 0)] {
        let receiver = FrameReceiver::start(to.ns(), "radio0")?;
        let frames = numbered(Mac::BROADCAST, from.radio, 10, 60);
        send_frames(from.ns(), "radio0", &frames, ms(1))?;
        std::thread::sleep(SETTLE);
        let got = receiver.stop()?.len();
        ensure!(got == expected, "{} to {}: {got} of 10", from.name(), to.name());
    }
    Ok(())
}

fn duplicated_frames_arrive_twice() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.connect_with(&a, &b, Quality { duplicate: 1.0, ..Quality::default() })?;
    let report = ping(&a, &b, 10)?;
    // Each request twice, each of the two replies twice; of the last one we do not wait for all.
    ensure!(report.received == 10 && (27..=30).contains(&report.duplicates), "{report:?}");
    Ok(())
}

fn unicast_reaches_every_radio_in_range() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    let c = bed.add_obu("c")?;
    bed.connect(&a, &c)?;
    let frames = numbered(b.radio, a.radio, 10, 60);
    let receivers =
        [&a, &b, &c].map(|node| FrameReceiver::start(node.ns(), "radio0").map(|r| (node, r)));
    send_frames(a.ns(), "radio0", &frames, ms(1))?;
    std::thread::sleep(SETTLE);
    for receiver in receivers {
        let (node, receiver) = receiver?;
        let expected = if node.name() == "a" { &[][..] } else { &frames };
        ensure!(receiver.stop()? == expected, "at {}", node.name());
    }
    Ok(())
}

fn tagged_short_and_full_size_frames() -> Result<()> {
    let (_bed, a, b) = pair()?;
    let mut frames = Vec::new();
    for (number, payload_len) in (0..).zip([4, 45, 46, 47, 777, 1499, 1500]) {
        for vlan in [None, Some(5), Some(0xe000 | 4094)] {
            let (to, from) = (b.radio, a.radio);
            frames.push(NumberedFrame { to, from, vlan, number, payload_len });
        }
    }
    let receiver = FrameReceiver::start(b.ns(), "radio0")?;
    send_frames(a.ns(), "radio0", &frames, ms(1))?;
    std::thread::sleep(SETTLE);
    let got = receiver.stop()?;
    ensure!(got == frames, "sent {frames:?}\ngot {got:?}");
    let too_long = numbered(b.radio, a.radio, 1, 1501);
    ensure!(send_frames(a.ns(), "radio0", &too_long, ms(0)).is_err(), "1501 bytes were sent");
    Ok(())
}

fn delay_is_added_in_each_direction() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    ping(&a, &b, 3)?;
    bed.connect_with(&a, &b, Quality { delay: ms(20), ..Quality::default() })?;
    let report = ping(&a, &b, 20)?;
    ensure!(report.delay_median() >= ms(40), "{report:?}");
    ensure!(report.lost == 0, "{report:?}");
    Ok(())
}

fn tcp_and_udp_survive_a_bad_link() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.connect_with(&a, &b, BAD)?;
    let report = transfer(a.ns(), b.ns(), b.host.v4, 1_000_000)?;
    ensure!(report.bytes == 1_000_000, "{report:?}");
    let stream = UdpStream::start(a.ns(), b.ns(), b.host.v4, ms(1), 200)?;
    std::thread::sleep(ms(1000));
    let report = stream.stop()?;
    ensure!(report.received > 800 && report.duplicates > 0 && report.lost > 0, "{report:?}");
    Ok(())
}

fn a_rate_limit_holds() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.connect_with(&a, &b, Quality { rate_bps: Some(6_000_000), ..Quality::default() })?;
    let rate = transfer(a.ns(), b.ns(), b.host.v4, 1_500_000)?.mbit_per_s();
    ensure!((3.0..6.0).contains(&rate), "{rate} Mbit/s over a 6 Mbit/s link");
    Ok(())
}

fn a_radio_tries_unicast_frames_again() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.connect_with(&a, &b, Quality { retries: 7, ..Quality::lossy(0.5) })?;
    // Of unicast frames 0.5⁸ are lost.
    for (to, expected) in [(b.radio, 980..=1000), (Mac::BROADCAST, 400..=600)] {
        let receiver = FrameReceiver::start(b.ns(), "radio0")?;
        let frames = numbered(to, a.radio, 1000, 60);
        send_frames(a.ns(), "radio0", &frames, Duration::from_micros(100))?;
        std::thread::sleep(SETTLE);
        let got = receiver.stop()?.len();
        ensure!(expected.contains(&got), "to {to}: {got} of 1000");
    }
    let retried = counters(&mut bed, &a, &b)?.retried;
    ensure!((800..1200).contains(&retried), "{retried} repetitions");
    Ok(())
}

/// Nobody hears, then all, nobody, all, nobody: whatever the sender's pace, in this order.
fn a_trace_is_replayed_at_its_times() -> Result<()> {
    let (mut bed, a, c) = (Testbed::new(1)?, "a", "c");
    let nodes = [bed.add_obu(a)?, bed.add_obu(c)?];
    let rows = [(500, 0.0), (1000, 1.0), (1500, 0.0), (2000, 1.0)];
    let step = |(time, loss)| {
        let (from, to) = (a.to_owned(), c.to_owned());
        MediumLinkStep { time: ms(time), from, to, loss, delay: ms(1), signal: None }
    };
    let trace = MediumLinkTrace::new(rows.map(step).to_vec());
    let ends = nodes.each_ref().map(|node| Endpoint {
        ns: node.ns().clone(),
        interface: "radio0".to_owned(),
        mac: node.radio,
    });
    let streams = Streams::start(&ends, &[Stream { from: 0, to: 1, every: ms(2) }], 60)?;
    bed.play(&trace, Quality::default())?;
    std::thread::sleep(ms(2500));
    let report = streams.stop()?;
    let [log] = &report.logs[..] else { bail!("{} logs", report.logs.len()) };
    let mut phases = log.arrivals.clone();
    phases.dedup();
    ensure!(phases == [0, 1, 0, 1, 0], "{phases:?}");
    let all = log.lost(ms(0), ms(2500)) as f64 / log.sent.len() as f64;
    ensure!((0.4..0.8).contains(&all), "{all} of the frames were lost");
    Ok(())
}

/// A monitor interface made of a TUN device, read as the daemons read that of an 802.11 driver.
fn a_monitor_tells_the_signal() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    let quality =
        |dbm| Quality { signal: Some(SignalStrength { dbm, sd_db: 0.0 }), ..Quality::default() };
    bed.connect_with(&a, &b, quality(-50.0))?;
    bed.add_monitor(&b)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut netlink = b.ns().run(|| {
        let _inside = runtime.enter();
        let mut netlink = Netlink::open()?;
        netlink.watch_signal(SignalSource::radiotap(MONITOR)?);
        Ok(netlink)
    })?;
    let hears = |netlink: &mut Netlink, dbm: i8| {
        let what = format!("b is told that a comes in with {dbm} dBm");
        wait_until(&what, Duration::from_secs(5), || {
            ping(&a, &b, 1)?;
            let mut cx = TaskContext::from_waker(Waker::noop());
            while let Poll::Ready(sample) = netlink.poll_signal(&mut cx) {
                if sample == (Sample { from: a.radio, dbm }) {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })
    };
    hears(&mut netlink, -50)?;
    bed.connect_with(&a, &b, quality(-73.0))?;
    hears(&mut netlink, -73)?;
    b.ns().set_down(MONITOR)?;
    std::thread::sleep(ms(200));
    b.ns().set_up(MONITOR)?;
    bed.connect_with(&a, &b, quality(-60.0))?;
    hears(&mut netlink, -60)?;
    let counters = netlink.signal_counters();
    ensure!(counters.samples > 3 && counters.malformed == 0, "{counters:?}");
    Ok(())
}

fn a_trace_with_strangers_is_refused() -> Result<()> {
    let (mut bed, ..) = pair()?;
    let trace = MediumLinkTrace::read(&b"time_s,from,to,loss,delay_us\n0,a,z,0,0\n"[..])?;
    let refusal = bed.play(&trace, Quality::default()).map_err(|error| error.to_string());
    ensure!(
        refusal == Err("the trace has a radio z, and there is no node of that name".to_owned()),
        "{refusal:?}"
    );
    Ok(())
}

fn clients_in_a_cabin_are_silent() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (obu, cabin) = bed.add_obu_with_cabin("obu1", 3)?;
    let [(first, mac), ..] = &cabin.clients[..] else { bail!("{cabin:?}") };
    // The vehicle itself is not: it asks for a router, which is not there.
    PingStream::count(obu.ns(), std::net::Ipv4Addr::new(10, 20, 0, 99).into(), 20, ms(10))?;
    let sent = || cabin.clients.iter().map(|(interface, _)| cabin.ns.frames_sent(interface));
    let before = sent().collect::<Result<Vec<_>>>()?;
    ensure!(before == [0, 0, 0], "{before:?}");
    send_frames(&cabin.ns, first, &numbered(Mac::BROADCAST, *mac, 5, 60), ms(1))?;
    let after = sent().collect::<Result<Vec<_>>>()?;
    ensure!(after == [5, 0, 0], "{after:?}");
    Ok(())
}

/// An address moves from one port to another and back; staying where it is makes no news.
fn a_bridge_is_watched_while_it_learns() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (a, b) = (bed.add_host("a")?, bed.add_host("b")?);
    let wanderer = Mac([2, 0, 0, 0, 0, 0x77]);
    let watch = FdbWatch::start(bed.lan())?;
    for host in [&a, &a, &b, &b, &a] {
        send_frames(&host.ns, &host.interface, &numbered(Mac::BROADCAST, wanderer, 3, 60), ms(5))?;
        let port = bed.lan().bridge_port_of(wanderer)?;
        ensure!(port.as_deref() == Some(host.name()), "behind {port:?}");
    }
    std::thread::sleep(SETTLE);
    let learnt = watch.stop()?;
    let seen = learnt.iter().filter(|learnt| learnt.mac == wanderer);
    let seen: Vec<_> = seen.map(|learnt| learnt.port.as_str()).collect();
    ensure!(seen == ["a", "b", "a"], "{learnt:?}");
    Ok(())
}

fn a_radio_comes_back_down_or_deleted() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    a.ns().set_down("radio0")?;
    ensure!(ping(&b, &a, 5)?.received == 0, "radio down");
    a.ns().set_up("radio0")?;
    ensure!(ping(&b, &a, 20)?.received > 0, "radio up again");
    bed.delete_radio(&a)?;
    ensure!(ping(&b, &a, 5)?.received == 0, "radio deleted");
    bed.create_radio(&a)?;
    a.ns().add_address("radio0", a.host.v4, 24)?;
    wait_until("the new radio carries", Duration::from_secs(2), || {
        Ok((ping(&b, &a, 5)?.received > 0).then_some(()))
    })
}

fn lan_hosts_reach_each_other() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (x, y) = (bed.add_host("x")?, bed.add_host("y")?);
    let report = PingStream::count(&x.ns, y.v4, 10, ms(10))?;
    ensure!(report.lost == 0, "{report:?}");
    let mac = y.mac.context("y has a fixed address")?;
    let port = bed.lan().bridge_port_of(mac)?;
    ensure!(port.as_deref() == Some("y"), "{mac} behind {port:?}");
    Ok(())
}

/// Standard error of everything in the arena is one pipe: when it ends, they all have ended.
fn nothing_survives_the_arena() -> Result<()> {
    let mut outside = Command::new(Programs::find()?.testbed)
        .arg("hold")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (Some(stdout), Some(mut stderr)) = (outside.stdout.take(), outside.stderr.take()) else {
        bail!("no pipes");
    };
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    ensure!(line == "holding\n", "said {line:?}");
    // SIGKILL: the process the user started gets no chance to clean up.
    outside.kill()?;
    outside.wait()?;
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(stderr.read_to_end(&mut Vec::new())));
    ended.recv_timeout(Duration::from_secs(5)).context("something still runs")??;
    Ok(())
}

fn numbered(to: Mac, from: Mac, count: u32, payload_len: usize) -> Vec<NumberedFrame> {
    (0..count).map(|number| NumberedFrame { to, from, vlan: None, number, payload_len }).collect()
}

fn counters(bed: &mut Testbed, from: &TestbedNode, to: &TestbedNode) -> Result<Counters> {
    let all = bed.statistics()?;
    let link = all.into_iter().find(|link| link.from == from.name() && link.to == to.name());
    Ok(link.context("no such link")?.counters)
}
