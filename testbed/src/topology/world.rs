//! Hosts, road-side units and vehicles, and the radio between them.
//!
//! ```text
//!   LAN namespace           RSU namespace                         OBU namespace
//!  ┌────────────┐   veth   ┌───────────────────────────┐         ┌───────────────────────┐
//!  │   lan0     ├──────────┤ eth0 ─ br0 ─ tap0  radio0 ├─ medium ┤ radio0  tap0 (─ br0 ─ │── host
//!  │ (bridge)   │          └───────────────────────────┘         └───────────────────────┘
//!  └─────┬──────┘ host on the LAN: eth0
//! ```
//!
//! Addresses follow from the order in which hosts are added: `10.20.0.N` and `fd20::N`.

use std::cell::{Cell, Ref, RefCell};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use node_lib::Mac;
use sim::Role;
use tempfile::TempDir;

use crate::Quality;
use crate::arena;
use crate::arena::link::{VethEnd, create_veth};
use crate::arena::netns::Netns;
use crate::arena::sys;
use crate::daemons::daemon::{self, Daemon, LogEvent};
use crate::daemons::programs::Programs;
use crate::medium::{LinkStatistics, MediumLinkTrace, MediumProcess};
use crate::wait::wait_until;

/// What an OBU logs when it sends through another neighbour, or to another road-side unit.
pub const ATTACHMENT_CHANGED: &str = "attachment changed";
/// What an OBU logs when it knows what such a change cost.
pub const HAND_OVER_DONE: &str = "hand-over done";
/// Interface names inside nodes.
const RADIO: &str = "radio0";
/// A monitor interface beside the radio.
pub const MONITOR: &str = "mon0";
const TAP: &str = "tap0";
const BRIDGE: &str = "br0";
const WIRE: &str = "eth0";
/// The MTU of hosts that were told nothing else.
const LAN_MTU: u32 = 1500;
const PREFIX_V4: u8 = 24;
const PREFIX_V6: u8 = 64;
/// How long a daemon may take from start to work.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// Lines of each log shown when something failed.
const TAIL_LINES: usize = 25;
/// Directory for logs that shall outlive the arena.
pub const LOGS: &str = "TESTBED_LOGS";

/// Something with addresses, from which and to which probes go.
#[derive(Clone, Debug)]
pub struct Host {
    /// Where it is.
    pub ns: Netns,
    /// The interface with its addresses.
    pub interface: String,
    /// The address of that interface; `None` for a TAP, whose address the daemon's kernel invents.
    pub mac: Option<Mac>,
    /// IPv4 address.
    pub v4: IpAddr,
    /// IPv6 address.
    pub v6: IpAddr,
}

impl Host {
    /// What messages call it.
    pub fn name(&self) -> &str {
        self.ns.name()
    }

    /// The hardware address of its interface, asked now.
    pub fn mac_now(&self) -> Result<Mac> {
        Ok(self.ns.state(&self.interface)?.mac)
    }
}

/// The LAN of a vehicle: each client is a port of the vehicle's bridge with an address behind it.
/// Nothing in it sends of its own accord; probes send and receive for the clients.
#[derive(Clone, Debug)]
pub struct Cabin {
    /// Where the clients are.
    pub ns: Netns,
    /// Interface and address of each client.
    pub clients: Vec<(String, Mac)>,
}

/// A node: a radio, and a daemon that may be running.
#[derive(Debug)]
pub struct TestbedNode {
    /// Its own address on the carried network.
    pub host: Host,
    /// Which daemon it runs.
    pub role: Role,
    /// Address of its radio, and its node id.
    pub radio: Mac,
    /// Added to the daemon's command line at the next start.
    pub extra_args: RefCell<Vec<String>>,
    /// Where the daemon's standard error goes at the next start, if not to its log.
    pub stderr: RefCell<Option<Stdio>>,
    /// By how much the clocks of the next daemon are ahead.
    pub clock_ahead: Cell<Duration>,
    /// What is started the next time.
    pub program: RefCell<PathBuf>,
    /// Standard error of the present daemon is its log.
    has_log: Cell<bool>,
    is_bridged: bool,
    log: PathBuf,
    daemon: RefCell<Option<Daemon>>,
}

impl TestbedNode {
    /// What messages call it, and the name of its radio in the medium.
    pub fn name(&self) -> &str {
        self.host.name()
    }

    /// Where it is.
    pub fn ns(&self) -> &Netns {
        &self.host.ns
    }

    /// Starts the daemon and gives its TAP the place it has in this node.
    pub fn start(&self) -> Result<()> {
        self.launch()?;
        self.adopt_tap()
    }

    /// Starts the daemon and leaves it alone.
    pub fn launch(&self) -> Result<()> {
        let mut args = vec!["-b", RADIO, "-t", TAP, "--log-format", "json"];
        let address = format!("{}/{PREFIX_V4}", self.host.v4);
        if !self.is_bridged {
            args.extend(["-i", &address]);
        }
        let mut args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        args.extend(self.extra_args.borrow().iter().cloned());
        let stderr = self.stderr.take();
        self.has_log.set(stderr.is_none());
        let (program, ahead) = (self.program.borrow(), self.clock_ahead.take());
        let daemon = Daemon::start_with(self.ns(), &program, &args, &self.log, stderr, ahead)?;
        *self.daemon.borrow_mut() = Some(daemon);
        Ok(())
    }

    /// Waits for the TAP and puts it in the bridge, or gives it its IPv6 address.
    pub fn adopt_tap(&self) -> Result<()> {
        let what = format!("{} is running", self.name());
        wait_until(&what, READY_WITHIN, || {
            if let Some(status) = self.try_wait()? {
                bail!("{} ended with {status}", self.name());
            }
            // A daemon that cannot say so is taken to be running when its TAP is up.
            let is_running = !self.has_log.get()
                || self.events()?.iter().any(|event| event.message() == "running");
            Ok(self.ns().find(TAP)?.filter(|tap| is_running && tap.is_up))
        })?;
        if self.is_bridged {
            self.ns().enslave(TAP, BRIDGE)
        } else {
            self.ns().add_address(TAP, self.host.v6, PREFIX_V6)
        }
    }

    /// Stops the daemon with a goodbye.
    pub fn stop(&self) -> Result<()> {
        self.take_daemon()?.terminate().context(self.name().to_owned())
    }

    /// Stops the daemon without a goodbye.
    pub fn kill(&self) -> Result<()> {
        self.take_daemon()?.kill().context(self.name().to_owned())
    }

    /// Whether its daemon logs where [`TestbedNode::events`] reads.
    pub fn has_log(&self) -> bool {
        self.has_log.get()
    }

    /// The daemon, if it was started and not stopped.
    pub fn daemon(&self) -> Result<Ref<'_, Daemon>> {
        Ref::filter_map(self.daemon.borrow(), Option::as_ref)
            .map_err(|_| anyhow::anyhow!("{} is not running", self.name()))
    }

    /// The daemon's exit status, if it ended by itself.
    pub fn try_wait(&self) -> Result<Option<std::process::ExitStatus>> {
        self.daemon.borrow_mut().as_mut().map_or(Ok(None), Daemon::try_wait)
    }

    /// Waits for the daemon to end by itself.
    pub fn wait(&self, timeout: Duration) -> Result<std::process::ExitStatus> {
        self.take_daemon()?.wait(timeout).context(self.name().to_owned())
    }

    /// Everything its daemon logged since it was started.
    pub fn events(&self) -> Result<Vec<LogEvent>> {
        self.daemon()?.events()
    }

    /// How often its daemon logged this message since it was started.
    pub fn times_logged(&self, message: &str) -> Result<usize> {
        Ok(self.events()?.iter().filter(|event| event.message() == message).count())
    }

    /// Where its daemon said last that it sends to: `RSU (1 hop)`, `RSU via NEIGHBOUR (2 hops)` or
    /// `none`.
    pub fn attachment(&self) -> Result<String> {
        let events = self.events()?;
        let last = events.iter().rfind(|event| event.message() == ATTACHMENT_CHANGED);
        Ok(last.map_or_else(|| "none".to_owned(), |event| event.text("to")))
    }

    /// Waits until its daemon has a way to an RSU.
    pub fn wait_until_attached(&self, within: Duration) -> Result<()> {
        let what = format!("{} is attached", self.name());
        wait_until(&what, within, || Ok((self.attachment()? != "none").then_some(())))
    }

    /// Whether its daemon said last that it sends through this neighbour.
    pub fn sends_through(&self, neighbour: &TestbedNode) -> Result<bool> {
        let attachment = self.attachment()?;
        let upstream = attachment.rsplit("via ").next().unwrap_or_default();
        Ok(upstream.starts_with(&neighbour.radio.to_string()))
    }

    /// Its log as text.
    pub fn log_tail(&self, lines: usize) -> String {
        daemon::tail(&self.log, lines)
    }

    /// Where its log is.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    fn take_daemon(&self) -> Result<Daemon> {
        self.daemon.borrow_mut().take().with_context(|| format!("{} is not running", self.name()))
    }
}

/// A LAN, radios and a medium.
#[derive(Debug)]
pub struct Testbed {
    medium: MediumProcess,
    lan: Netns,
    programs: Programs,
    logs: PathBuf,
    radio_mtu: u32,
    nodes: Vec<Rc<TestbedNode>>,
    hosts_added: u8,
    /// Removes the logs; absent when they shall be kept.
    _logs_dir: Option<TempDir>,
}

impl Testbed {
    /// An empty LAN and an empty medium. Call it inside the arena.
    pub fn new(seed: u64) -> Result<Self> {
        Self::with_radio_mtu(seed, 1500)
    }

    /// As [`Testbed::new`], with radios of another MTU.
    pub fn with_radio_mtu(seed: u64, radio_mtu: u32) -> Result<Self> {
        Self::with(seed, radio_mtu, Programs::find()?, None)
    }

    /// As [`Testbed::new`], with these programs.
    pub fn with_programs(seed: u64, programs: Programs) -> Result<Self> {
        Self::with(seed, 1500, programs, None)
    }

    /// As [`Testbed::with_programs`], with all logs in this directory.
    pub fn with_logs_in(seed: u64, programs: Programs, logs: PathBuf) -> Result<Self> {
        Self::with(seed, 1500, programs, Some(logs))
    }

    fn with(seed: u64, radio_mtu: u32, programs: Programs, logs: Option<PathBuf>) -> Result<Self> {
        let kept = logs.or_else(|| std::env::var_os(LOGS).map(PathBuf::from));
        let (logs, logs_dir) = match kept {
            Some(kept) => (kept, None),
            None => {
                let dir = TempDir::new_in(arena::scratch())?;
                (dir.path().to_owned(), Some(dir))
            }
        };
        std::fs::create_dir_all(&logs)?;
        let lan = Netns::create("lan")?;
        lan.create_bridge("lan0", mac(0, 0))?;
        let medium = MediumProcess::start(&programs.testbed, seed)?;
        let nodes = Vec::new();
        let _logs_dir = logs_dir;
        Ok(Self { medium, lan, programs, logs, radio_mtu, nodes, hosts_added: 0, _logs_dir })
    }

    /// The namespace of the LAN's bridge `lan0`; its ports are named after what they lead to.
    pub fn lan(&self) -> &Netns {
        &self.lan
    }

    /// The MTU of TAPs and LANs here: that of Ethernet, whatever the radio's.
    pub fn mtu(&self) -> u32 {
        LAN_MTU
    }

    /// A host on the LAN.
    pub fn add_host(&mut self, name: &str) -> Result<Host> {
        let host = self.new_host(name, WIRE)?;
        self.plug_into_lan(&host)?;
        self.give_addresses(&host)?;
        Ok(host)
    }

    /// A road-side unit on the LAN, its daemon not yet started.
    pub fn add_rsu(&mut self, name: &str) -> Result<Rc<TestbedNode>> {
        let host = self.new_host(name, BRIDGE)?;
        self.plug_into_lan(&host)?;
        self.make_bridge(&host)?;
        self.add_node(host, Role::Rsu, true)
    }

    /// A vehicle, its daemon not yet started.
    pub fn add_obu(&mut self, name: &str) -> Result<Rc<TestbedNode>> {
        let host = self.new_host(name, TAP)?;
        self.add_node(host, Role::Obu, false)
    }

    /// A vehicle with a LAN of its own and one host, named `host_name`, on it.
    pub fn add_obu_with_host(
        &mut self,
        name: &str,
        host_name: &str,
    ) -> Result<(Rc<TestbedNode>, Host)> {
        let host = self.new_host(name, BRIDGE)?;
        let behind = self.new_host(host_name, WIRE)?;
        let mtu = self.mtu();
        create_veth(
            VethEnd { ns: &host.ns, name: WIRE, mac: None, mtu },
            VethEnd { ns: &behind.ns, name: WIRE, mac: behind.mac, mtu },
        )?;
        self.make_bridge(&host)?;
        self.give_addresses(&behind)?;
        Ok((self.add_node(host, Role::Obu, true)?, behind))
    }

    /// A vehicle with a LAN of its own and this many clients on it.
    pub fn add_obu_with_cabin(
        &mut self,
        name: &str,
        clients: u8,
    ) -> Result<(Rc<TestbedNode>, Cabin)> {
        let host = self.new_host(name, BRIDGE)?;
        host.ns.create_bridge(BRIDGE, host.mac.unwrap_or(Mac::ZERO))?;
        let ns = Netns::create_silent(&format!("{name}-cabin"))?;
        let mtu = self.mtu();
        let clients = (1..=clients).map(|n| (format!("client{n}"), mac(3, n))).collect::<Vec<_>>();
        for (interface, mac) in &clients {
            create_veth(
                VethEnd { ns: &host.ns, name: interface, mac: None, mtu },
                VethEnd { ns: &ns, name: interface, mac: Some(*mac), mtu },
            )?;
            host.ns.enslave(interface, BRIDGE)?;
        }
        host.ns.wait_until_operational(BRIDGE)?;
        self.give_addresses(&host)?;
        Ok((self.add_node(host, Role::Obu, true)?, Cabin { ns, clients }))
    }

    /// All nodes, in the order they were added.
    pub fn nodes(&self) -> &[Rc<TestbedNode>] {
        &self.nodes
    }

    /// Lets two radios hear each other without faults.
    pub fn connect(&mut self, a: &TestbedNode, b: &TestbedNode) -> Result<()> {
        self.connect_with(a, b, Quality::default())
    }

    /// Lets two radios hear each other, this well in both directions.
    pub fn connect_with(
        &mut self,
        a: &TestbedNode,
        b: &TestbedNode,
        quality: Quality,
    ) -> Result<()> {
        self.hear(a, b, quality)?;
        self.hear(b, a, quality)
    }

    /// Lets nothing through between two radios.
    pub fn cut(&mut self, a: &TestbedNode, b: &TestbedNode) -> Result<()> {
        self.connect_with(a, b, Quality::CUT)
    }

    /// Lets `to` hear `from`, this well; says nothing about the other direction.
    pub fn hear(&mut self, from: &TestbedNode, to: &TestbedNode, quality: Quality) -> Result<()> {
        self.medium.link(from.name(), to.name(), quality)
    }

    /// Changes who hears whom as a trace says, which begins now. Radios have the names of their
    /// nodes; what the trace does not say of a link is as in `base`.
    pub fn play(&mut self, trace: &MediumLinkTrace, base: Quality) -> Result<()> {
        if let Some(name) = trace
            .radios()
            .into_iter()
            .find(|radio| self.nodes.iter().all(|node| node.name() != *radio))
        {
            bail!("the trace has a radio {name}, and there is no node of that name");
        }
        self.medium.play(trace, base)
    }

    /// A log line's node ids, replaced by names.
    pub fn with_names(&self, text: &str) -> String {
        self.nodes
            .iter()
            .fold(text.to_owned(), |text, node| text.replace(&node.radio.to_string(), node.name()))
    }

    /// Stops the medium where it is, or lets it go on: [`MediumProcess::stall`].
    pub fn stall_medium(&self, is_stalled: bool) -> Result<()> {
        self.medium.stall(is_stalled)
    }

    /// What happened on every link.
    pub fn statistics(&mut self) -> Result<Vec<LinkStatistics>> {
        self.medium.statistics()
    }

    /// Takes a node's radio away.
    pub fn delete_radio(&self, node: &TestbedNode) -> Result<()> {
        node.ns().delete(RADIO)
    }

    /// Changes the MTU of a node's radio, and of nothing else.
    pub fn set_radio_mtu(&self, node: &TestbedNode, mtu: u32) -> Result<()> {
        node.ns().set_mtu(RADIO, mtu)
    }

    /// Sets a node's radio up or down.
    pub fn switch_radio(&self, node: &TestbedNode, is_on: bool) -> Result<()> {
        if is_on { node.ns().set_up(RADIO) } else { node.ns().set_down(RADIO) }
    }

    /// Takes a node's TAP away.
    pub fn delete_tap(&self, node: &TestbedNode) -> Result<()> {
        node.ns().delete(TAP)
    }

    /// Gives a node a monitor interface `mon0` beside its radio: links with a
    /// [`SignalStrength`](crate::medium::SignalStrength) tell there how strong frames come in.
    pub fn add_monitor(&mut self, node: &TestbedNode) -> Result<()> {
        let created = self.medium.monitor(node.name())?;
        self.medium.ns().hand_over(&created, node.ns(), MONITOR)?;
        node.ns().set_up(MONITOR)
    }

    /// Gives a node a monitor interface, and has its daemon use it from its next start on.
    pub fn tell_signal(&mut self, node: &TestbedNode) -> Result<()> {
        self.add_monitor(node)?;
        let flags = ["--signal".to_owned(), format!("radiotap:{MONITOR}")];
        node.extra_args.borrow_mut().extend(flags);
        Ok(())
    }

    /// Gives a node the radio it had. Who hears whom has not changed.
    pub fn create_radio(&mut self, node: &TestbedNode) -> Result<()> {
        self.create_radio_in(node.ns(), node.radio)
    }

    /// Starts all nodes that are not running, road-side units first.
    pub fn start_all(&self) -> Result<()> {
        for role in [Role::Rsu, Role::Obu] {
            let idle = |node: &&Rc<TestbedNode>| node.role == role && node.daemon().is_err();
            for node in self.nodes.iter().filter(idle) {
                node.launch()?;
            }
        }
        self.nodes.iter().try_for_each(|node| node.adopt_tap())
    }

    /// The ends of all logs, to be shown when something failed.
    pub fn log_tails(&self) -> String {
        let tails = self.nodes.iter().map(|node| {
            let ended = match node.try_wait() {
                Ok(Some(status)) => format!(", ended: {status}"),
                _ => String::new(),
            };
            format!("--- log of {}{ended}\n{}\n", node.name(), node.log_tail(TAIL_LINES))
        });
        tails.collect()
    }

    fn add_node(&mut self, host: Host, role: Role, is_bridged: bool) -> Result<Rc<TestbedNode>> {
        let radio = mac(1, self.hosts_added);
        self.create_radio_in(&host.ns, radio)?;
        let program = match role {
            Role::Rsu => self.programs.rsu.clone(),
            Role::Obu => self.programs.obu.clone(),
        };
        let node = Rc::new(TestbedNode {
            role,
            radio,
            extra_args: RefCell::default(),
            stderr: RefCell::default(),
            clock_ahead: Cell::default(),
            program: RefCell::new(program),
            has_log: Cell::new(true),
            is_bridged,
            log: self.logs.join(format!("{}.log", host.name())),
            daemon: RefCell::new(None),
            host,
        });
        self.nodes.push(Rc::clone(&node));
        Ok(node)
    }

    fn create_radio_in(&mut self, ns: &Netns, radio: Mac) -> Result<()> {
        let mtu = self.radio_mtu;
        create_veth(
            VethEnd { ns: self.medium.ns(), name: ns.name(), mac: None, mtu },
            VethEnd { ns, name: RADIO, mac: Some(radio), mtu },
        )?;
        ns.run(|| sys::disable_offloads(RADIO).context("switch radio0's offloads off"))?;
        self.medium.attach(ns.name(), radio)
    }

    fn new_host(&mut self, name: &str, interface: &str) -> Result<Host> {
        let ns = Netns::create(name)?;
        self.hosts_added = self.hosts_added.checked_add(1).context("254 hosts are enough")?;
        let n = self.hosts_added;
        Ok(Host {
            ns,
            interface: interface.to_owned(),
            mac: (interface != TAP).then(|| mac(2, n)),
            v4: Ipv4Addr::new(10, 20, 0, n).into(),
            v6: Ipv6Addr::new(0xfd20, 0, 0, 0, 0, 0, 0, u16::from(n)).into(),
        })
    }

    /// A cable from the host's `eth0` to the LAN's bridge.
    fn plug_into_lan(&self, host: &Host) -> Result<()> {
        let mtu = self.mtu();
        let mac = host.mac.filter(|_| host.interface == WIRE);
        create_veth(
            VethEnd { ns: &self.lan, name: host.name(), mac: None, mtu },
            VethEnd { ns: &host.ns, name: WIRE, mac, mtu },
        )?;
        self.lan.enslave(host.name(), "lan0")
    }

    /// A bridge with the host's addresses, and its `eth0` as the first port.
    fn make_bridge(&self, host: &Host) -> Result<()> {
        host.ns.create_bridge(BRIDGE, host.mac.unwrap_or(Mac::ZERO))?;
        host.ns.enslave(WIRE, BRIDGE)?;
        host.ns.wait_until_operational(BRIDGE)?;
        self.give_addresses(host)
    }

    fn give_addresses(&self, host: &Host) -> Result<()> {
        host.ns.add_address(&host.interface, host.v4, PREFIX_V4)?;
        host.ns.add_address(&host.interface, host.v6, PREFIX_V6)
    }
}

/// Locally administered, the kind in the fifth byte.
fn mac(kind: u8, n: u8) -> Mac {
    Mac([2, 0x0b, 0, 0, kind, n])
}
