//! An upstream dies, says goodbye or leads nowhere: how long there is no route.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::probe::{FrameReceiver, NumberedFrame, PingStream, UdpStream, send_frames};
use testbed::{ATTACHMENT_CHANGED, Host, Quality, Testbed, TestbedNode};

use super::look::{PROBE_EVERY, active_first, all_run, outage, reaches, rests};
use super::numbered::numbered;
use super::scene::{PATIENCE, chain, fork};
use super::warnings::LAN_DOWN;
use crate::beds::with_logs;
use crate::harness::ms;

/// What the product promises.
pub(crate) const SILENT_DEATH_MAX: Duration = ms(300);

const GOODBYE_MAX: Duration = ms(50);

pub(crate) fn silent_death_of_the_upstream() -> Result<()> {
    const RUNS: usize = 20;
    fork(|bed, server, obu, mut paths| {
        let (mut outages, mut lost) = (Vec::new(), Vec::new());
        for run in 1..=RUNS {
            let (active, _) = active_first(obu, &mut paths)?;
            let active = Rc::clone(active);
            let ping = PingStream::start(obu.ns(), server.v4, PROBE_EVERY)?;
            // Not in step with the heartbeats.
            std::thread::sleep(ms(300 + 37 * run as u64 % 100));
            bed.cut(obu, &active)?;
            std::thread::sleep(ms(1000));
            let report = ping.stop()?;
            bed.connect(obu, &active)?;
            // What went to the silent one comes late, by the other.
            lost.push(outage(&report)?);
            println!(
                "    run {run:2}: {} silent, {} pings lost in a row, gap {} ms",
                active.name(),
                report.lost_in_a_row,
                report.gap.as_millis()
            );
            outages.push(report.gap);
            // Long enough for the healed way to be a candidate again.
            std::thread::sleep(ms(1500));
        }
        outages.sort_unstable();
        let max = outages[RUNS - 1];
        println!("    p50 {} ms, max {} ms", outages[RUNS / 2].as_millis(), max.as_millis());
        ensure!(max <= SILENT_DEATH_MAX, "without a route for {max:?}");
        ensure!(lost.iter().all(|lost| *lost <= PROBE_EVERY), "lost for {lost:?}");
        all_run(bed)
    })
}

/// A client that never speaks again is found behind the new road-side unit, by its frames and by
/// the LAN's switch.
pub(crate) fn silent_client_stays_reachable() -> Result<()> {
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

/// Radios of 500 kbit/s, and clients that offer each way ten times as much in small datagrams, for
/// six seconds. The radio drops nearly all of it, and everybody stays with its upstream.
pub(crate) fn data_does_not_starve_control() -> Result<()> {
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

pub(crate) fn goodbye_of_a_road_side_unit() -> Result<()> {
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

pub(crate) fn goodbye_of_a_relay() -> Result<()> {
    fork(|_, server, obu, mut paths| goodbye_of_the_active(server, obu, &mut paths))
}

fn goodbye_of_the_active(
    server: &Host,
    obu: &TestbedNode,
    paths: &mut [Rc<TestbedNode>; 2],
) -> Result<()> {
    for _ in 0..3 {
        std::thread::sleep(ms(1500));
        let (active, _) = active_first(obu, paths)?;
        let ping = PingStream::start(obu.ns(), server.v4, PROBE_EVERY)?;
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

pub(crate) fn a_road_side_unit_without_a_lan_is_left() -> Result<()> {
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
            let ping = PingStream::start(obu.ns(), server.v4, PROBE_EVERY)?;
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

pub(crate) fn the_last_path_dies_and_comes_back() -> Result<()> {
    chain(2, |bed, server, obu| {
        let nodes: Vec<Rc<TestbedNode>> = bed.nodes().to_vec();
        for pair in nodes.windows(2) {
            bed.cut(&pair[0], &pair[1])?;
            rests(&pair[1], ms(1500))?;
            let report = PingStream::count(obu.ns(), server.v4, 5, PROBE_EVERY)?;
            ensure!(report.received == 0, "{report:?} over no path");
            bed.connect(&pair[0], &pair[1])?;
            let took = reaches(&obu.host, server, PATIENCE)?;
            println!("    traffic {} ms after the path was back", took.as_millis());
        }
        all_run(bed)
    })
}
