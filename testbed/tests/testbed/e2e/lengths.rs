//! Packets and frames of the full MTU, and longer ones: carried, or refused with the number.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::probe::{NumberedFrame, PingStream, UdpStream, send_frames, transfer};
use testbed::{Host, Testbed};

use super::look::{PROBE_EVERY, all_run, counters_of, ended_with_reason, reaches};
use super::scene::{PATIENCE, chain};
use crate::beds::with_logs;
use crate::harness::ms;

/// Bridged on both sides, behind radios of 1500: TCP with every byte checked, and the longest
/// datagrams there are, with and without "don't fragment", both ways.
pub(crate) fn hosts_with_an_mtu_of_1500() -> Result<()> {
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
                    let ping = PingStream::count_long(&from.ns, to, 30, PROBE_EVERY, payload)?;
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
pub(crate) fn senders_hear_of_what_is_too_long() -> Result<()> {
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

pub(crate) fn one_byte_more_than_the_mtu_is_refused() -> Result<()> {
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

pub(crate) fn impossible_mtu_is_refused() -> Result<()> {
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
