//! Who takes part, and how each kind of fault is done to them and undone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::Signal;
use node_lib::Mac;
use node_lib::messages::ethernet::Header;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use sim::Role;

use super::DaysPlan;
use super::fault::{FaultKind, InjectedFault, Targets};
use crate::arena;
use crate::arena::sys::PromiscuousSocket;
use crate::daemons::programs::Programs;
use crate::endurance::restarts::{EVERY, age_file, endpoint};
use crate::medium::Quality;
use crate::probe::{Endpoint, Pulse};
use crate::topology::world::{LOGS, Testbed, TestbedNode};

/// Index of the first vehicle among the nodes, after the road-side units.
pub const FIRST_VEHICLE: usize = 2;
/// The small disk that logs and state files share, in bytes.
const DISK_BYTES: u64 = 48 << 20;
const PAYLOAD_LEN: usize = 100;
/// Of the frames with which clients make themselves known: "local experimental 1" is the nodes'
/// own.
const CLIENT_ETHERTYPE: u16 = 0x88b7;
/// Lines each daemon writes to the full disk: counters, of half a kilobyte at least.
const LINES_INTO_FULL: u32 = 12;
/// Bytes a pipe holds (pipe(7)).
const PIPE_CAPACITY: usize = 64 * 1024;
/// Between two new clients.
const CLIENT_EVERY: Duration = Duration::from_millis(1);
/// More clients than an OBU and an RSU remember (512 and 8,192), and the time between two of them.
const CLIENTS_BEHIND: u32 = 640;
const CLIENTS_ON_LAN: u32 = 9_000;
const FILL_EVERY: Duration = Duration::from_micros(250);
/// How far ahead clocks are: beyond 32 bits of milliseconds, nearly so, and years.
const AHEAD_S: [u32; 4] = [4_294_967 - 20, 4_294_968, 86_400 * 400, 7 * 86_400];

/// A LAN with two road-side units, two vehicles that hear both, and one that hears only these two.
#[derive(Debug)]
pub struct DaysScene {
    /// Nodes and links.
    pub bed: Testbed,
    endpoints: Vec<Endpoint>,
    links: Vec<(Rc<TestbedNode>, Rc<TestbedNode>)>,
    disk: PathBuf,
    /// Low bytes of the last two boot counts of each node.
    boots: BTreeMap<String, [u8; 2]>,
    tap_mtu: u32,
    random: Pcg32,
    /// Clients that came and went.
    pub clients: u64,
    /// By how much boot counts have grown, in quarters of a second.
    pub lived: u64,
    /// When the LAN's bridge came up last, with an empty table, and from when on hosts that fill it
    /// could be heard.
    pub lan_up: Option<(Instant, Instant)>,
    quality: Quality,
    never_heals: bool,
    /// Ends of pipes that nobody reads, by node.
    unread: BTreeMap<String, io::PipeReader>,
}

impl DaysScene {
    /// Lays everything, and starts all daemons.
    pub fn lay(plan: &DaysPlan, programs: &Programs) -> Result<Self> {
        let disk = arena::scratch().join("disk");
        std::fs::create_dir_all(&disk)?;
        let size = format!("size={DISK_BYTES}");
        mount(Some("disk"), &disk, Some("tmpfs"), MsFlags::MS_NOSUID, Some(size.as_str()))
            .context("a small disk")?;
        let mut bed = Testbed::with_logs_in(plan.seed, programs.clone(), disk.join("logs"))?;
        let server = bed.add_host("server")?;
        let rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
        let mut endpoints = vec![endpoint(&server)?];
        let mut obus = Vec::new();
        for n in 1..=3 {
            let (obu, host) = bed.add_obu_with_host(&format!("obu{n}"), &format!("host{n}"))?;
            obus.push(obu);
            endpoints.push(endpoint(&host)?);
        }
        let [obu1, obu2, obu3] = &obus[..] else { anyhow::bail!("three vehicles") };
        let mut links = Vec::new();
        for (a, b) in [
            (&rsus[0], obu1),
            (&rsus[0], obu2),
            (&rsus[1], obu1),
            (&rsus[1], obu2),
            (obu1, obu2),
            (obu1, obu3),
            (obu2, obu3),
        ] {
            bed.connect_with(a, b, plan.quality)?;
            links.push((Rc::clone(a), Rc::clone(b)));
        }
        for (index, node) in bed.nodes().iter().enumerate() {
            let path = disk.join(format!("{}.boot", node.name())).display().to_string();
            node.extra_args.borrow_mut().extend(["--state-file".to_owned(), path]);
            if let Some(program) = plan.planted.get(&index) {
                *node.program.borrow_mut() = program.clone();
            }
        }
        bed.start_all()?;
        let first = bed.nodes().first().context("nodes")?;
        let tap_mtu = first.ns().state("tap0")?.mtu;
        Ok(Self {
            bed,
            endpoints,
            links,
            disk,
            boots: BTreeMap::new(),
            tap_mtu,
            random: Pcg32::seed_from_u64(plan.seed),
            clients: 0,
            lived: 0,
            lan_up: None,
            quality: plan.quality,
            never_heals: plan.never_heals,
            unread: BTreeMap::new(),
        })
    }

    /// Who can be struck.
    pub fn targets(&self) -> Targets {
        let roles = self.bed.nodes().iter().map(|node| node.role).collect();
        // The second road-side unit and the first vehicle.
        Targets { roles, elders: vec![1, FIRST_VEHICLE], links: self.links.len() }
    }

    /// Frames from the server to each vehicle's host, and back: two streams for each.
    pub fn pulse(&self) -> Result<Pulse> {
        let pairs: Vec<_> = (1..self.endpoints.len()).flat_map(|n| [(0, n), (n, 0)]).collect();
        Pulse::start(&self.endpoints, &pairs, EVERY, PAYLOAD_LEN)
    }

    /// Streams of [`DaysScene::pulse`].
    pub fn streams(&self) -> usize {
        2 * (self.endpoints.len() - 1)
    }

    /// What a fault strikes.
    pub fn place_of(&self, fault: &InjectedFault) -> String {
        if fault.kind == FaultKind::LinkCut {
            return self
                .links
                .get(fault.at)
                .map_or_else(String::new, |(a, b)| format!("{} - {}", a.name(), b.name()));
        }
        match self.bed.nodes().get(fault.at).filter(|_| !fault.kind.is_everywhere()) {
            Some(node) => node.name().to_owned(),
            None => "everywhere".to_owned(),
        }
    }

    /// The role a fault's promise depends on.
    pub fn role_of(&self, fault: &InjectedFault) -> Role {
        self.bed.nodes().get(fault.at).map_or(Role::Obu, |node| node.role)
    }

    /// Lets it happen.
    pub fn inject(&mut self, fault: &InjectedFault) -> Result<()> {
        let node = self.node(fault)?;
        match fault.kind {
            FaultKind::Kill | FaultKind::Blocked | FaultKind::ClockJump => node.kill(),
            FaultKind::Term => node.stop(),
            FaultKind::Stall => node.daemon()?.signal(Signal::SIGSTOP),
            FaultKind::RadioDown => self.bed.switch_radio(&node, false),
            FaultKind::RadioDeleted => self.bed.delete_radio(&node),
            FaultKind::RadioMtu => self.bed.set_radio_mtu(&node, fault.amount),
            FaultKind::TapDeleted => self.bed.delete_tap(&node),
            FaultKind::LanDown => self.bed.lan().set_down("lan0"),
            FaultKind::DiskFull => self.fill_disk(),
            FaultKind::Clients => self.let_clients_speak(fault),
            FaultKind::LossBurst => {
                let loss = f64::from(fault.amount) / 100.0;
                self.set_links(|a, b| a == node.name() || b == node.name(), Quality::lossy(loss))
            }
            FaultKind::Isolated => {
                self.set_links(|a, b| a == node.name() || b == node.name(), Quality::CUT)
            }
            FaultKind::LinkCut => {
                let (a, b) = self.links.get(fault.at).context("a link")?.clone();
                self.bed.cut(&a, &b)
            }
            FaultKind::Partition => {
                self.set_links(|a, b| a.starts_with("rsu") || b.starts_with("rsu"), Quality::CUT)
            }
        }
    }

    /// Ends it.
    pub fn clear(&mut self, fault: &InjectedFault) -> Result<()> {
        let node = self.node(fault)?;
        match fault.kind {
            kind if kind.is_restart() => {
                self.age(&node, fault.amount)?;
                let ahead = AHEAD_S.get(fault.amount as usize % AHEAD_S.len()).copied();
                let ahead = ahead.filter(|_| kind == FaultKind::ClockJump).unwrap_or(0);
                node.clock_ahead.set(Duration::from_secs(u64::from(ahead)));
                if kind == FaultKind::Blocked {
                    let (reader, mut writer) = io::pipe()?;
                    // As much as a pipe takes; not a byte more, or we would wait ourselves.
                    writer.write_all(&[b'\n'; PIPE_CAPACITY])?;
                    node.stderr.replace(Some(writer.into()));
                    self.unread.insert(node.name().to_owned(), reader);
                }
                node.start()?;
                if kind == FaultKind::ClockJump {
                    lives_elsewhere(&node)?;
                }
                Ok(())
            }
            FaultKind::Stall => node.daemon()?.signal(Signal::SIGCONT),
            FaultKind::RadioDown => self.bed.switch_radio(&node, true),
            FaultKind::RadioDeleted => self.bed.create_radio(&node),
            FaultKind::RadioMtu => {
                self.bed.set_radio_mtu(&node, 1500)?;
                // Hosts beside a TAP need not know of the radio.
                let mtu = node.ns().find("tap0")?.map(|tap| tap.mtu);
                ensure!(mtu == Some(self.tap_mtu), "{}: the TAP has MTU {mtu:?}", node.name());
                Ok(())
            }
            FaultKind::TapDeleted => node.adopt_tap(),
            FaultKind::LanDown => {
                let now = Instant::now();
                self.lan_up = Some((now, now));
                self.bed.lan().set_up("lan0")
            }
            FaultKind::DiskFull => Ok(std::fs::remove_file(self.disk.join("filler"))?),
            kind if kind.is_of_links() && !self.never_heals => {
                if let Some((up, heard)) = &mut self.lan_up
                    && up.elapsed() < fault.lasts
                {
                    *heard = Instant::now();
                }
                self.set_links(|_, _| true, self.quality)
            }
            _ => Ok(()),
        }
    }

    /// Copies all logs to where `TESTBED_LOGS` wants them.
    pub fn keep_logs(&self) -> Result<()> {
        let Some(kept) = std::env::var_os(LOGS).map(PathBuf::from) else { return Ok(()) };
        std::fs::create_dir_all(&kept)?;
        for node in self.bed.nodes() {
            std::fs::copy(node.log_path(), kept.join(format!("{}.log", node.name())))?;
        }
        Ok(())
    }

    /// Starts again what has ended. Whether there was something.
    pub fn revive(&self) -> Result<bool> {
        let mut found = false;
        for node in self.bed.nodes() {
            if node.try_wait()?.is_some() || node.daemon().is_err() {
                let _ = node.kill();
                node.clock_ahead.take();
                node.start()?;
                found = true;
            }
        }
        Ok(found)
    }

    fn node(&self, fault: &InjectedFault) -> Result<Rc<TestbedNode>> {
        let index = if fault.kind.is_everywhere() { 0 } else { fault.at };
        self.bed.nodes().get(index).cloned().context("a node")
    }

    fn set_links(&mut self, which: impl Fn(&str, &str) -> bool, quality: Quality) -> Result<()> {
        for (a, b) in self.links.iter().filter(|(a, b)| which(a.name(), b.name())) {
            self.bed.connect_with(a, b, quality)?;
        }
        Ok(())
    }

    /// Lets the next start of a node come after a life. Two lives in a row that together are a
    /// multiple of 256 quarters of a second take a minute at least; here they would take a second.
    fn age(&mut self, node: &TestbedNode, life: u32) -> Result<()> {
        let path = self.disk.join(format!("{}.boot", node.name()));
        let [before_last, _] = self.boots.get(node.name()).copied().unwrap_or_default();
        let mut next = age_file(&path, life)?;
        if self.boots.contains_key(node.name()) && next.to_le_bytes()[0] == before_last {
            next = age_file(&path, 2)?;
        }
        let [low, ..] = next.to_le_bytes();
        let boots = self.boots.entry(node.name().to_owned()).or_default();
        *boots = [boots[1], low];
        self.lived += u64::from(life);
        Ok(())
    }

    /// Fills the disk, and gives every daemon something to write on it.
    fn fill_disk(&self) -> Result<()> {
        let mut filler = File::create(self.disk.join("filler"))?;
        for chunk in [64 * 1024, 1024, 1] {
            let chunk = vec![0; chunk];
            loop {
                match filler.write_all(&chunk) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("fill the disk"),
                }
            }
        }
        for node in self.bed.nodes() {
            // More than what is left of the last page of its log.
            for _ in 0..LINES_INTO_FULL {
                node.daemon()?.signal(Signal::SIGUSR1)?;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// Frames to the server with one source address after the other, behind a vehicle; and as many
    /// on the LAN to the vehicle's host.
    fn let_clients_speak(&mut self, fault: &InjectedFault) -> Result<()> {
        let vehicle = fault.at + 1 - FIRST_VEHICLE;
        let (Some(server), Some(host)) = (self.endpoints.first(), self.endpoints.get(vehicle))
        else {
            return Ok(());
        };
        for (from, to) in [(host, server), (server, host)] {
            speak(&mut self.random, from, to.mac, fault.amount / 2, CLIENT_EVERY)?;
            self.clients += u64::from(fault.amount / 2);
        }
        Ok(())
    }

    /// Gives every daemon as many clients as it remembers: what memory is taken after that is not
    /// that of tables which only had not been full yet.
    pub fn fill_tables(&mut self) -> Result<()> {
        let [server, hosts @ ..] = &self.endpoints[..] else { return Ok(()) };
        for host in hosts {
            speak(&mut self.random, host, server.mac, CLIENTS_BEHIND, FILL_EVERY)?;
        }
        // All road-side units hear it, whoever carries whom.
        speak(&mut self.random, server, Mac::BROADCAST, CLIENTS_ON_LAN, FILL_EVERY)
    }
}

impl Drop for DaysScene {
    fn drop(&mut self) {
        // Logs may still be open; the disk goes when they are not.
        let _ = umount2(&self.disk, MntFlags::MNT_DETACH);
    }
}

/// Frames with one source address after the other.
fn speak(
    random: &mut Pcg32,
    from: &Endpoint,
    to: Mac,
    clients: u32,
    every: Duration,
) -> Result<()> {
    let socket = from.ns.run(|| Ok(PromiscuousSocket::open(&from.interface)?))?;
    for _ in 0..clients {
        let [a, b, c, d] = random.next_u32().to_be_bytes();
        let mut frame = Vec::new();
        let from = Mac([6, 0, a, b, c, d]);
        Header { to, from, ethertype: CLIENT_ETHERTYPE }.emit(&mut frame);
        frame.resize(64, 0);
        let _ = socket.send(&frame);
        std::thread::sleep(every);
    }
    Ok(())
}

/// Its clocks are not ours.
fn lives_elsewhere(node: &TestbedNode) -> Result<()> {
    let of = |path: String| std::fs::read_link(Path::new(&path)).context(path);
    let there = of(format!("/proc/{}/ns/time", node.daemon()?.pid()))?;
    let here = of("/proc/self/ns/time".to_owned())?;
    ensure!(there != here, "{} was to have a time namespace of its own", node.name());
    Ok(())
}
