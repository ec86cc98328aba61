//! `testbed mtu`: hosts that were told nothing, so that their MTU is 1500, behind radios that carry
//! 1500, beside the same hosts behind radios with room for our header.
//!
//! ```text
//! laptop ── br0 ── tap0 obu ))) (((relay))) ((( rsu tap0 ── br0 ── lan0 ── server
//! ```
//!
//! All bridges and hosts have an MTU of 1500. With radios of 1500 TCP segments are shortened, and
//! the rest goes in two frames over each hop; with radios of 1560 everything goes in one.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use crate::daemons::programs::Programs;
use crate::probe::{PingStream, StreamReport, UdpStream, flood, transfer};
use crate::screen::Screen;
use crate::topology::world::{Host, Testbed};
use crate::wait::wait_until;

/// What is done.
#[derive(Args, Debug)]
pub struct MtuOptions {
    /// Times everything is measured, the two radios in turns
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=50))]
    rounds: u8,
    /// MB sent over TCP, each way
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    megabytes: u64,
    /// MTU of the small radio
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(300..=1539))]
    radio_mtu: u32,
    /// Start all nodes with --pmtu-discovery on
    #[arg(long)]
    pmtu_discovery: bool,
}

/// The longest datagram and echo request in an IPv4 packet of 1500.
const PAYLOAD: usize = 1472;
/// A radio that needs no fragments.
const LARGE: u32 = 1560;
const PINGS: u32 = 200;
const PING_EVERY: Duration = Duration::from_millis(5);
const STREAM_EVERY: Duration = Duration::from_millis(2);
const STREAM_FOR: Duration = Duration::from_secs(1);
const FLOOD_FOR: Duration = Duration::from_secs(1);
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// What hosts see.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Mbit/s, every byte checked, from the vehicle and to it.
    tcp: [f64; 2],
    /// Datagrams a second of as many as can be sent.
    flood_per_s: f64,
    /// Of a steady stream.
    udp: StreamReport,
    ping: StreamReport,
}

/// Measures inside the arena. Fails when a ping, or a datagram of the steady stream, gets lost.
pub fn run(options: &MtuOptions) -> Result<()> {
    let start = Instant::now();
    let programs = Programs::find()?;
    programs.require_daemons()?;
    let screen = Screen::new();
    let small = options.radio_mtu;
    screen.title(&format!("Hosts with an MTU of 1500 behind radios of {small}"));
    screen.dim(&format!(
        "Medians of {} rounds; the ratio is to the same hosts behind radios of {LARGE}, in turns.",
        options.rounds
    ));
    for hops in [1, 2] {
        let mut all: [Vec<Seen>; 2] = Default::default();
        for _ in 0..options.rounds {
            for (seen, mtu) in all.iter_mut().zip([small, LARGE]) {
                let what = || format!("{hops} hops, radios of {mtu}");
                seen.push(measure(options, hops, mtu).with_context(what)?);
            }
        }
        tell(&screen, hops, &all);
    }
    screen.end(start.elapsed())
}

fn measure(options: &MtuOptions, hops: usize, radio_mtu: u32) -> Result<Seen> {
    let mut bed = Testbed::with_radio_mtu(1, radio_mtu)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let mut last = Rc::clone(&rsu);
    for n in 1..hops {
        let relay = bed.add_obu(&format!("relay{n}"))?;
        bed.connect(&last, &relay)?;
        last = relay;
    }
    let (obu, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
    bed.connect(&last, &obu)?;
    if options.pmtu_discovery {
        for node in bed.nodes() {
            node.extra_args.borrow_mut().extend(["--pmtu-discovery", "on"].map(str::to_owned));
        }
    }
    bed.start_all()?;
    wait_until("the laptop reaches the server", REACHED_WITHIN, || {
        let report = PingStream::count(&laptop.ns, server.v4, 1, PING_EVERY)?;
        Ok((report.received > 0).then_some(()))
    })?;
    traffic(options, &laptop, &server).map_err(|error| anyhow!("{error:#}\n{}", bed.log_tails()))
}

fn traffic(options: &MtuOptions, laptop: &Host, server: &Host) -> Result<Seen> {
    let bytes = options.megabytes * 1_000_000;
    let tcp = |from: &Host, at: &Host| -> Result<f64> {
        Ok(transfer(&from.ns, &at.ns, at.v4, bytes)?.mbit_per_s())
    };
    let tcp = [tcp(laptop, server)?, tcp(server, laptop)?];
    let to: IpAddr = server.v4;
    // With path MTU discovery the first of its kind is answered, and lost.
    let ping = PingStream::count_long(&laptop.ns, to, 1, PING_EVERY, PAYLOAD)?;
    ensure!(options.pmtu_discovery || ping.received == 1, "ping -s {PAYLOAD}: {ping:?}");
    let ping = PingStream::count_long(&laptop.ns, to, PINGS, PING_EVERY, PAYLOAD)?;
    let stream = UdpStream::start(&laptop.ns, &server.ns, to, STREAM_EVERY, PAYLOAD)?;
    std::thread::sleep(STREAM_FOR);
    let udp = stream.stop()?;
    for (what, report) in [("ping", &ping), ("UDP", &udp)] {
        ensure!(report.lost == 0 && report.duplicates == 0, "{what} of {PAYLOAD}: {report:?}");
    }
    let flood_per_s = flood(&laptop.ns, &server.ns, to, PAYLOAD, FLOOD_FOR)?.delivered_per_s;
    Ok(Seen { tcp, flood_per_s, udp, ping })
}

fn tell(screen: &Screen, hops: usize, [small, large]: &[Vec<Seen>; 2]) {
    let medians = |figure: &dyn Fn(&Seen) -> f64| {
        [small, large].map(|seen| median(seen.iter().map(figure).collect()))
    };
    let line = |what: &str, unit: &str, figure: &dyn Fn(&Seen) -> f64| {
        let [small, large] = medians(figure);
        let ratio = small / large;
        screen.remember(
            &format!("{hops} hop(s), {what}"),
            format!("{small:>8.1} {unit:<10} {ratio:.2} of {large:.1}"),
        );
    };
    line("TCP from the vehicle", "Mbit/s", &|seen| seen.tcp[0]);
    line("TCP to the vehicle", "Mbit/s", &|seen| seen.tcp[1]);
    let delay_ms = |report: &StreamReport| report.delay_median().as_secs_f64() * 1e3;
    line("ping -M do -s 1472, round trip", "ms", &|seen| delay_ms(&seen.ping));
    line("UDP 1472, one way", "ms", &|seen| delay_ms(&seen.udp));
    line("UDP 1472, all that gets through", "/s", &|seen| seen.flood_per_s);
    let count = |figure: &dyn Fn(&Seen) -> u64| small.iter().map(figure).sum::<u64>();
    let (pings, datagrams) = (count(&|seen| seen.ping.sent), count(&|seen| seen.udp.sent));
    screen.remember(
        &format!("{hops} hop(s), lost or doubled"),
        format!("0 of {pings} pings, 0 of {datagrams} datagrams"),
    );
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
