//! The testbed tested on itself: arena, medium and probes, without any daemon.

mod harness;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use harness::{ms, run_as_plain_user};
use node_lib::Mac;
use testbed::medium::Counters;
use testbed::probe::{
    FrameReceiver, NumberedFrame, Ping, PingReport, UdpStream, send_frames, transfer,
};
use testbed::{Node, Programs, Quality, Testbed, wait_until};

fn main() -> ExitCode {
    harness::main(&[
        ("ping_crosses_the_medium", ping_crosses_the_medium),
        ("ping_crosses_the_medium_for_a_plain_user", || {
            run_as_plain_user("ping_crosses_the_medium")
        }),
        ("lost_frames_are_the_share_asked_for", lost_frames_are_the_share_asked_for),
        ("a_cut_link_carries_nothing_and_heals", a_cut_link_carries_nothing_and_heals),
        ("hearing_has_a_direction", hearing_has_a_direction),
        ("duplicated_frames_arrive_twice", duplicated_frames_arrive_twice),
        ("unicast_reaches_every_radio_in_range", unicast_reaches_every_radio_in_range),
        ("tagged_short_and_full_size_frames_arrive_whole", tagged_short_and_full_size_frames),
        ("delay_is_added_in_each_direction", delay_is_added_in_each_direction),
        ("tcp_and_udp_survive_a_bad_link", tcp_and_udp_survive_a_bad_link),
        ("a_rate_limit_holds", a_rate_limit_holds),
        ("a_radio_comes_back_down_or_deleted", a_radio_comes_back_down_or_deleted),
        ("lan_hosts_reach_each_other_over_the_bridge", lan_hosts_reach_each_other),
        ("nothing_survives_the_arena", nothing_survives_the_arena),
    ])
}

/// Two radios with addresses, in range of each other.
fn pair() -> Result<(Testbed, Rc<Node>, Rc<Node>)> {
    let mut bed = Testbed::new(1)?;
    let (a, b) = (bed.add_obu("a")?, bed.add_obu("b")?);
    for node in [&a, &b] {
        node.ns().add_address("radio0", node.host.v4, 24)?;
        node.ns().add_address("radio0", node.host.v6, 64)?;
    }
    bed.connect(&a, &b)?;
    Ok((bed, a, b))
}

fn ping(from: &Node, to: &Node, count: u32) -> Result<PingReport> {
    Ping::count(from.ns(), to.host.v4, count, ms(10))
}

fn ping_crosses_the_medium() -> Result<()> {
    let (_bed, a, b) = pair()?;
    for to in [b.host.v4, b.host.v6] {
        let report = Ping::count(a.ns(), to, 20, ms(10))?;
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
    std::thread::sleep(ms(100));
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

fn hearing_has_a_direction() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.hear(&b, &a, Quality::CUT)?;
    for (from, to, expected) in [(&a, &b, 10), (&b, &a, 0)] {
        let receiver = FrameReceiver::start(to.ns(), "radio0")?;
        let frames = numbered(Mac::BROADCAST, from.radio, 10, 60);
        send_frames(from.ns(), "radio0", &frames, ms(1))?;
        std::thread::sleep(ms(50));
        let got = receiver.stop()?.len();
        ensure!(got == expected, "{} to {}: {got} of 10", from.name(), to.name());
    }
    Ok(())
}

fn duplicated_frames_arrive_twice() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    bed.connect_with(&a, &b, Quality { duplicate: 1.0, ..Quality::default() })?;
    let report = ping(&a, &b, 10)?;
    // Each request twice, each of the two replies twice.
    ensure!(report.received == 10 && report.duplicates == 30, "{report:?}");
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
    std::thread::sleep(ms(50));
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
    std::thread::sleep(ms(50));
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
    ensure!(report.delay_median >= ms(40), "{report:?}");
    ensure!(report.lost == 0, "{report:?}");
    Ok(())
}

fn tcp_and_udp_survive_a_bad_link() -> Result<()> {
    let (mut bed, a, b) = pair()?;
    let bad = Quality {
        loss: 0.005,
        delay: ms(1),
        jitter: ms(1),
        duplicate: 0.02,
        reorder: 0.02,
        corrupt: 0.005,
        rate_bps: None,
    };
    bed.connect_with(&a, &b, bad)?;
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
    let report = Ping::count(&x.ns, y.v4, 10, ms(10))?;
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

fn counters(bed: &mut Testbed, from: &Node, to: &Node) -> Result<Counters> {
    let all = bed.statistics()?;
    let link = all.into_iter().find(|link| link.from == from.name() && link.to == to.name());
    Ok(link.context("no such link")?.counters)
}
