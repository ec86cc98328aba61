//! Restarts of daemons that have lived: how long traffic is away, both ways, over one hop and two.
//!
//! ```text
//!  server ── rsu ╌╌╌ obu1 ╌╌╌ obu2          obu2 hears only obu1
//!                     │        │
//!                   host1    host2          each exchanges a frame with the server every 10 ms
//! ```
//!
//! A node that starts again must be told from its past: its numbers begin anew, and what tells is
//! the boot count, which follows the clock. So a life of a minute is not like one of a second, and
//! each town here either waits for it or writes it into the state file.

pub mod command;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use sim::Role;

use crate::arena;
use crate::daemons::programs::Programs;
use crate::probe::{Endpoint, Outage, Pulse};
use crate::topology::world::{Host, Testbed, TestbedNode};
use crate::wait::wait_until;

/// Between two frames of a stream: what an outage is measured in.
pub const EVERY: Duration = Duration::from_millis(10);
/// So many frames in a row make a way, not a lucky one alone.
pub const STEADY: usize = 10;
/// Three heartbeats, each sent up to a tenth late.
const RSU_WITHIN: Duration = Duration::from_millis(330);
/// What is promised for a vehicle.
const OBU_WITHIN: Duration = Duration::from_secs(1);
/// How long traffic runs before its node is ended.
const RUN_UP: Duration = Duration::from_millis(500);
/// How long is waited for what should be there long before.
const PATIENCE: Duration = Duration::from_secs(10);
const PAYLOAD_LEN: usize = 100;

/// How a daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// SIGKILL: as a crash or a power cut.
    Kill,
    /// SIGTERM: with a goodbye.
    Term,
}

/// Within what time after a start traffic must flow again.
pub fn promise(role: Role) -> Duration {
    match role {
        Role::Rsu => RSU_WITHIN,
        Role::Obu => OBU_WITHIN,
    }
}

/// A road-side unit and a row of vehicles, each of which hears only its neighbours.
#[derive(Debug)]
pub struct RestartTown {
    bed: Testbed,
    nodes: Vec<Rc<TestbedNode>>,
    endpoints: Vec<Endpoint>,
}

impl RestartTown {
    /// Lays a town whose last vehicle is so many hops away. Towns side by side need different
    /// names.
    pub fn lay(programs: &Programs, name: &str, hops: usize) -> Result<Self> {
        let mut bed = Testbed::with_programs(1, programs.clone())?;
        let server = bed.add_host(&format!("{name}-server"))?;
        let mut nodes = vec![bed.add_rsu(&format!("{name}-rsu"))?];
        let mut endpoints = vec![endpoint(&server)?];
        for n in 1..=hops {
            let (obu, host) =
                bed.add_obu_with_host(&format!("{name}-obu{n}"), &format!("{name}-host{n}"))?;
            if let Some(last) = nodes.last() {
                bed.connect(last, &obu)?;
            }
            nodes.push(obu);
            endpoints.push(endpoint(&host)?);
        }
        Ok(Self { bed, nodes, endpoints })
    }

    /// The nodes: the road-side unit, then the vehicles, the nearest first.
    pub fn nodes(&self) -> &[Rc<TestbedNode>] {
        &self.nodes
    }

    /// The ends of all logs.
    pub fn log_tails(&self) -> String {
        self.bed.log_tails()
    }

    /// Gives every node a state file, so that the next lives can be as long as one likes.
    pub fn keep_boot_counts(&self) {
        for node in &self.nodes {
            let path = boot_file(node).display().to_string();
            node.extra_args.borrow_mut().extend(["--state-file".to_owned(), path]);
        }
    }

    /// Starts everybody and waits for traffic.
    pub fn start(&self) -> Result<()> {
        self.bed.start_all()?;
        let pulse = self.pulse()?;
        let since = Instant::now();
        self.recovered(&pulse, since).context("at first")?;
        Ok(())
    }

    /// Ends a node, leaves it away for a time and starts it again, with traffic all the while. How
    /// long each stream was without a way, from the moment the node was running with its TAP in
    /// place.
    ///
    /// `life` lets the boot count grow as by a life of so many quarters of a second.
    pub fn restart(
        &self,
        node: &TestbedNode,
        ending: Ending,
        away: Duration,
        life: Option<u32>,
    ) -> Result<Vec<Outage>> {
        let pulse = self.pulse()?;
        self.recovered(&pulse, Instant::now()).context("before the restart")?;
        std::thread::sleep(RUN_UP);
        match ending {
            Ending::Kill => node.kill()?,
            Ending::Term => node.stop()?,
        }
        std::thread::sleep(away);
        let expected = life.map(|life| age_file(&boot_file(node), life)).transpose()?;
        node.start()?;
        let since = Instant::now();
        if let Some(expected) = expected {
            let boot = boot_of(node)?;
            ensure!(boot == expected, "{} has boot count {boot}, not {expected}", node.name());
        }
        self.recovered(&pulse, since)
            .with_context(|| format!("{} restarted: {ending:?}, life {life:?}", node.name()))
    }

    /// Traffic from the server to each host and back.
    fn pulse(&self) -> Result<Pulse> {
        let pairs: Vec<_> = (1..self.endpoints.len()).flat_map(|n| [(0, n), (n, 0)]).collect();
        Pulse::start(&self.endpoints, &pairs, EVERY, PAYLOAD_LEN)
    }

    fn recovered(&self, pulse: &Pulse, since: Instant) -> Result<Vec<Outage>> {
        let streams = 2 * (self.endpoints.len() - 1);
        let outages = wait_until("frames flow on every stream", PATIENCE, || {
            Ok((0..streams).map(|stream| pulse.outage(stream, since, STEADY)).collect())
        });
        let totals = pulse.totals();
        ensure!(totals.doubled + totals.harmed + totals.stray == 0, "{totals:?}");
        outages.map_err(|error| {
            let silent = (0..streams)
                .filter(|stream| pulse.outage(*stream, since, STEADY).is_none())
                .map(|stream| {
                    let way = if stream % 2 == 0 { "to" } else { "from" };
                    format!("{way} host{}", stream / 2 + 1)
                });
            anyhow!("{error:#}; silent: {}", silent.collect::<Vec<_>>().join(", "))
        })
    }
}

/// The worst of some outages, in time by lost frames.
pub fn worst(outages: &[Outage]) -> Duration {
    EVERY * outages.iter().map(|outage| outage.frames).max().unwrap_or(0)
}

/// Where a host's streams begin and end.
pub(crate) fn endpoint(host: &Host) -> Result<Endpoint> {
    Ok(Endpoint { ns: host.ns.clone(), interface: host.interface.clone(), mac: host.mac_now()? })
}

fn boot_file(node: &TestbedNode) -> PathBuf {
    arena::scratch().join(format!("{}.boot", node.name()))
}

/// Writes into a state file that the node's next start comes so many quarters of a second after the
/// last. The boot count it must have then.
pub(crate) fn age_file(path: &Path, life: u32) -> Result<u32> {
    let last: u32 = std::fs::read_to_string(path)
        .with_context(|| path.display().to_string())?
        .trim()
        .parse()?;
    let next = last.checked_add(life).context("no boot count is left")?;
    std::fs::write(path, format!("{}\n", next - 1))?;
    Ok(next)
}

fn boot_of(node: &TestbedNode) -> Result<u32> {
    let events = node.events()?;
    let opened = events.iter().rfind(|event| event.message() == "devices are open");
    Ok(opened.context("no line about devices")?.text("boot").parse()?)
}
