//! What carries frames along a line: the daemons, or what they are measured against.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{LineTopology, RADIO, RELAY, ROAD, TAP, TAP_MTU, VEHICLE};
use crate::arena::netns::Netns;
use crate::daemons::daemon::Daemon;
use crate::daemons::programs::Programs;
use crate::topology::world::ATTACHMENT_CHANGED;
use crate::wait::wait_until;

/// The carriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// One frame per system call (`benches/naive_relay/`).
    Naive,
    /// Its other form over one hop: batches and super-frames, in one loop or in a thread for each
    /// direction.
    Loops {
        /// 1 or 2.
        threads: u8,
    },
    /// `obu` and `rsu`, with what each TAP does.
    Daemons {
        /// At the vehicle, and at the relay, whose TAP carries nothing.
        vehicle: Offload,
        /// At the road side.
        road: Offload,
    },
}

/// Segmentation offload of a TAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// A plain TAP: one frame per read and write.
    Off,
    /// Super-frames, cut and joined by the daemon.
    On,
}

/// How long a daemon may take until its TAP is there, and until it has a way.
const READY_WITHIN: Duration = Duration::from_secs(10);
const FLAG: &str = "--tap-offload";

/// Whether the daemons can be told to use segmentation offload.
pub fn has_tap_offload(programs: &Programs) -> Result<bool> {
    let help = Command::new(&programs.obu)
        .arg("--help")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("start {}", programs.obu.display()))?;
    Ok(String::from_utf8_lossy(&help.stdout).contains(FLAG))
}

pub(super) fn start(
    line: &LineTopology,
    programs: &Programs,
    carrier: &Carrier,
    flags: &[String],
    logs: &Path,
) -> Result<Vec<Daemon>> {
    match carrier {
        Carrier::Naive => naive(line, programs, &["end"], logs),
        Carrier::Loops { threads } => {
            naive(line, programs, &["loops", "--threads", &threads.to_string()], logs)
        }
        Carrier::Daemons { vehicle, road } => {
            daemons(line, programs, (*vehicle, *road), flags, logs)
        }
    }
}

fn naive(
    line: &LineTopology,
    programs: &Programs,
    form: &[&str],
    logs: &Path,
) -> Result<Vec<Daemon>> {
    let (vehicle, relay, road) = (VEHICLE.to_string(), RELAY.to_string(), ROAD.to_string());
    let start = |ns: &Netns, own: &str, mode: &[&str]| {
        let args: Vec<String> = ["--radio", RADIO, "--own", own]
            .iter()
            .chain(mode)
            .map(|arg| (*arg).to_owned())
            .collect();
        Daemon::start(ns, &programs.naive_relay, &args, &logs.join(format!("{}.log", ns.name())))
    };
    let has_relay = line.relay.is_some();
    let end = |ns: &Netns, own: &str, neighbour: &str| {
        let peer = if has_relay { &relay } else { neighbour };
        let process = start(ns, own, &[form, &["--tap", TAP, "--peer", peer]].concat())?;
        ns.wait_for(TAP)?;
        ns.set_mtu(TAP, TAP_MTU)?;
        ns.set_up(TAP)?;
        Ok::<_, anyhow::Error>(process)
    };
    let mut running = vec![end(&line.vehicle, &vehicle, &road)?];
    if let Some(ns) = &line.relay {
        running.push(start(ns, &relay, &["chain", "--between", &vehicle, &road])?);
    }
    running.push(end(&line.road, &road, &vehicle)?);
    Ok(running)
}

fn daemons(
    line: &LineTopology,
    programs: &Programs,
    (at_vehicle, at_road): (Offload, Offload),
    flags: &[String],
    logs: &Path,
) -> Result<Vec<Daemon>> {
    let has_flag = has_tap_offload(programs)?;
    let start = |ns: &Netns, program: &Path, offload: Offload| {
        let mut args = vec!["-b", RADIO, "-t", TAP, "--log-format", "json"];
        match offload {
            Offload::On if !has_flag => bail!("{} has no {FLAG}", program.display()),
            Offload::On => args.extend([FLAG, "on"]),
            Offload::Off if has_flag => args.extend([FLAG, "off"]),
            Offload::Off => {}
        }
        let args = args.into_iter().map(str::to_owned);
        let args: Vec<String> = args.chain(flags.iter().cloned()).collect();
        let log = logs.join(format!("{}.log", ns.name()));
        let daemon = Daemon::start(ns, program, &args, &log)?;
        daemon.wait_for_event("running", READY_WITHIN, |_| true)?;
        Ok(daemon)
    };
    let road = start(&line.road, &programs.rsu, at_road)?;
    let relay = line.relay.as_ref().map(|ns| start(ns, &programs.obu, at_vehicle)).transpose()?;
    let vehicle = start(&line.vehicle, &programs.obu, at_vehicle)?;
    let hops = if relay.is_some() { "(2 hops)" } else { "(1 hop)" };
    wait_until(&format!("the vehicle has a way {hops}"), READY_WITHIN, || {
        let events = vehicle.events()?;
        let last = events.iter().rfind(|event| event.message() == ATTACHMENT_CHANGED);
        Ok(last.filter(|event| event.text("to").contains(hops)).map(drop))
    })?;
    Ok([Some(vehicle), relay, Some(road)].into_iter().flatten().collect())
}
