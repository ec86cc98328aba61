//! `testbed http`: what the endpoint costs. Requests a second beside a bare axum handler that says
//! as much, and how long packets take while it is asked as fast as can be.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;

use crate::arena::netns::Netns;
use crate::daemons::programs::Programs;
use crate::probe::http::{Connection, PORT, enable};
use crate::probe::{PingReport, PingStream, Wrk};
use crate::screen::Screen;
use crate::topology::world::Testbed;

/// What is measured.
#[derive(Args, Debug)]
pub struct HttpOptions {
    /// Rounds; each measures everything once, in turns
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Connections that ask at once
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=32))]
    connections: u32,
    /// Seconds of each measurement: short ones, because how fast a machine is drifts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
}

/// Of the bare handler's requests a second, at least so many.
const RATE_MIN: f64 = 0.90;

/// Packets take so much longer at most.
const DELAY_MAX: f64 = 1.05;

/// The bare handler's port, beside that of a daemon.
const BARE_PORT: u16 = PORT + 1;

/// As urgent as the endpoint of a daemon makes itself.
const NICE: i32 = 10;

const PING_EVERY: Duration = Duration::from_millis(2);

/// Runs it inside the arena. Fails when a goal is missed.
pub fn run(options: &HttpOptions) -> Result<()> {
    Programs::find()?.require_daemons()?;
    let screen = Screen::new();
    screen.title("What the HTTP endpoint costs");
    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let obu = bed.add_obu("obu1")?;
    bed.connect(&rsu, &obu)?;
    enable(&bed);
    bed.start_all()?;
    let bare_ns = Netns::create("bare")?;
    let (at_daemon, at_bare) = (address(PORT), address(BARE_PORT));
    let lasting = Duration::from_secs(options.seconds);
    let mut bodies = Vec::new();
    for path in PATHS {
        bodies.push((path, Connection::open(rsu.ns())?.get(path)?.1));
    }
    serve_bare(rsu.ns(), bodies.clone())?;
    serve_bare(&bare_ns, bodies)?;
    screen.step("Requests a second");
    let mut worst = f64::INFINITY;
    for path in PATHS {
        let (mut of_bare, mut of_daemon) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            let mut turns = [(at_bare, &mut of_bare), (at_daemon, &mut of_daemon)];
            if round % 2 == 1 {
                turns.reverse();
            }
            for (at, rates) in turns {
                let asked = (at, path);
                let load = Wrk::start(rsu.ns(), asked, options.connections, options.seconds)?;
                rates.push(load.finish()?);
            }
        }
        let (bare, own) = (median(&mut of_bare), median(&mut of_daemon));
        worst = worst.min(own / bare);
        let best = |rates: &[f64]| rates.iter().copied().fold(f64::NAN, f64::max);
        screen.plain(&format!(
            "{path:<9} {own:>7.0} of {bare:>7.0} of a bare handler: {:.3}; best rounds {:.3}",
            own / bare,
            best(&of_daemon) / best(&of_bare)
        ));
    }
    screen.step("Packets meanwhile");
    let mut delays = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        for (kind, delays) in delays.iter_mut().enumerate() {
            let loaded = match kind {
                0 => None,
                // The same work for the machine, and none for the daemons.
                1 => Some((&bare_ns, at_bare)),
                _ => Some((rsu.ns(), at_daemon)),
            };
            let mut loads = Vec::new();
            for (path, (ns, at)) in PATHS.into_iter().zip(loaded.into_iter().cycle()) {
                let connections = options.connections.div_ceil(2);
                loads.push(Wrk::start(ns, (at, path), connections, options.seconds + 1)?);
            }
            let ping = PingStream::start(&obu.host.ns, server.v4, PING_EVERY)?;
            std::thread::sleep(lasting);
            let report: PingReport = ping.stop()?;
            for load in loads {
                load.finish()?;
            }
            ensure!(report.received > 0, "no reply at all");
            delays.push((report.delay_median(), report.delay_p99(), report.lost));
        }
    }
    let mut medians = Vec::new();
    for (name, delays) in ["quiet", "load elsewhere", "load on the RSU"].into_iter().zip(&delays) {
        let mut halves: Vec<_> = delays.iter().map(|(half, ..)| half.as_secs_f64() * 1e6).collect();
        let mut tails: Vec<_> =
            delays.iter().map(|(_, tail, _)| tail.as_secs_f64() * 1e6).collect();
        let lost: u64 = delays.iter().map(|(_, _, lost)| *lost).sum();
        let (half, tail) = (median(&mut halves), median(&mut tails));
        screen.plain(&format!("{name:<16} median {half:>6.0} µs, p99 {tail:>6.0} µs, {lost} lost"));
        medians.push(half);
    }
    let [_, elsewhere, here] = medians[..] else { return Err(anyhow!("three are measured")) };
    let longer = here / elsewhere;
    screen.plain(&format!("with the same load on the machine either way: {longer:.3}"));
    ensure!(worst >= RATE_MIN, "requests a second: {worst:.2}, and {RATE_MIN} is the goal");
    ensure!(longer <= DELAY_MAX, "packets take {longer:.3} times as long; {DELAY_MAX} is the goal");
    Ok(())
}

const PATHS: [&str; 2] = ["/status", "/metrics"];

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A server that says the same words, and has to ask nobody for them. It ends with the process.
fn serve_bare(ns: &Netns, bodies: Vec<(&'static str, String)>) -> Result<()> {
    let listener = ns.run(|| TcpListener::bind(address(BARE_PORT)).context("bare handler"))?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("bare".to_owned()).spawn(move || -> std::io::Result<()> {
        rustix::process::setpriority_process(None, NICE)?;
        runtime.block_on(async move {
            let mut router = axum::Router::new();
            for (path, body) in bodies {
                router = router.route(path, axum::routing::get(move || async move { body }));
            }
            axum::serve(tokio::net::TcpListener::from_std(listener)?, router).await
        })
    })?;
    Ok(())
}
