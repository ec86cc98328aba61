//! What crosses the network comes once and whole: packets, streams and frames of every kind.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use node_lib::Mac;
use testbed::probe::{FrameReceiver, Iperf3, NumberedFrame, UdpStream, send_frames, transfer};
use testbed::{Quality, Testbed, TestbedNode};

use super::look::{all_run, answers_all, reaches};
use super::numbered::{MULTICAST_V4, MULTICAST_V6, each_arrived, exchange, numbered};
use super::scene::{PATIENCE, chain};
use crate::beds::{BAD, with_logs};
use crate::harness::ms;

pub(crate) fn ping_over_1_hop() -> Result<()> {
    chain(1, |_, server, obu| answers_all(&obu.host, server))
}

/// IPv4 and IPv6 with their address resolution, UDP both ways, TCP both ways, iperf3.
pub(crate) fn all_traffic_over(hops: usize) -> Result<()> {
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

pub(crate) fn frames_of_every_kind() -> Result<()> {
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

pub(crate) fn a_host_behind_a_vehicle_is_on_the_lan() -> Result<()> {
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
pub(crate) fn vehicles_reach_each_other() -> Result<()> {
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
pub(crate) fn no_loop_and_no_duplicate() -> Result<()> {
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
pub(crate) fn frames_doubled_on_air_arrive_once() -> Result<()> {
    chain(2, |bed, server, obu| {
        let nodes: Vec<Rc<TestbedNode>> = bed.nodes().to_vec();
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

pub(crate) fn tcp_is_intact_over_a_bad_link() -> Result<()> {
    chain(2, |bed, server, obu| {
        let nodes: Vec<Rc<TestbedNode>> = bed.nodes().to_vec();
        for pair in nodes.windows(2) {
            bed.connect_with(&pair[0], &pair[1], BAD)?;
        }
        let report = transfer(obu.ns(), &server.ns, server.v4, 1_000_000)?;
        println!("    up: {:.1} Mbit/s", report.mbit_per_s());
        let report = transfer(&server.ns, obu.ns(), obu.host.v4, 1_000_000)?;
        println!("    down: {:.1} Mbit/s", report.mbit_per_s());
        all_run(bed)
    })
}
