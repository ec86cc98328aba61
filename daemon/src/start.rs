//! From flags to a running node: checks, devices, loop, shutdown.

use std::error::Error as _;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use node_lib::control::node::Node;
use node_lib::device::ethertypes::EthertypeSurvey;
use node_lib::device::netlink::{Netlink, TapAddress, TapSettings};
use node_lib::device::packet::{self, PacketSocket};
use node_lib::device::signal::SignalSource;
use node_lib::device::tap::Tap;
use node_lib::device::udp::{self, Udp};
use node_lib::device::{self, Device, DeviceError, LinkState, Problem, Side};
use node_lib::runtime::boot::{self, StartCount};
use node_lib::runtime::clients::ClientFile;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::Signals;
use node_lib::runtime::{Exit, Runtime, addresses, inside};
use node_lib::settings::LoopSettings;
use node_lib::start::clients::Remembered;
use node_lib::transport::mtu::TapMtu;
use node_lib::{Boot, Mac, NodeId, Start};
use recorder::Recorded;
use tracing::{info, warn};

use crate::args::{Bind, Common};
use crate::capabilities;
use crate::control::{self, ControlSocket};
use crate::exit::{Failure, FailureKind, Failures, print};
use crate::findings::Findings;
use crate::http;
use crate::position;
use crate::radio::RadioDevice;
use crate::recording::{self, Plan};
use crate::reload::Reload;
use crate::supervisor::{Supervised, Supervisor};

/// Lives a daemon's life on a tokio runtime: one thread beside that of the packet loop. It watches
/// interfaces and signals, and sleeps nearly all the time.
pub fn on_tokio(life: impl Future<Output = Result<(), Failures>>) -> Result<(), Failures> {
    let runtime = tokio_runtime()?;
    let lived = runtime.block_on(life);
    // Whoever still waits for a file, on a disk that hangs, does not keep the daemon from its end.
    runtime.shutdown_background();
    lived
}

/// The runtime for that.
pub fn tokio_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    has_descriptors()?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .thread_name("control")
        .enable_all()
        .build()
        .context("cannot start the event loop")
        .map_err(|error| Failure::new(FailureKind::Runtime, error))
}

/// Address space a start takes beyond the program itself: stacks of its threads, frames in flight,
/// and what the allocator sets aside.
const MEMORY_MIB: usize = 16;

/// First of all: whoever lacks memory later says so in words that help nobody, or not at all. So it
/// is asked for in one piece, and given back untouched. Before that the allocator is told to keep
/// little, or it would take this piece for what a daemon is like.
pub fn prepare_memory() -> Result<(), Failure> {
    device::keep_little_memory();
    let mut memory = Vec::<u8>::new();
    let had = memory.try_reserve_exact(MEMORY_MIB << 20);
    // Or the compiler may leave out what nobody uses.
    std::hint::black_box(&memory);
    had.map_err(|_| {
        let text = "out of memory: expected a limit (ulimit -v, LimitAS=) that leaves room for";
        Failure::new(FailureKind::Runtime, anyhow!("{text} {MEMORY_MIB} MiB more"))
    })
}

/// What a daemon has open, and some room for clients of its control socket.
const DESCRIPTORS: usize = 40;

/// What takes over signals panics when it cannot have a descriptor. So whether there are enough is
/// asked before.
fn has_descriptors() -> Result<(), Failure> {
    let opened: io::Result<Vec<_>> =
        (0..DESCRIPTORS).map(|_| fs::File::open("/dev/null")).collect();
    opened.map(drop).map_err(|error| {
        let text = "expected a limit (ulimit -n, LimitNOFILE=) that leaves room for";
        Failure::new(FailureKind::Runtime, anyhow!("{error}: {text} {DESCRIPTORS} open files"))
    })
}

/// What was found before anything was changed.
#[derive(Debug)]
pub struct Checked {
    netlink: Netlink,
    /// There is a TAP of that name, which nobody holds.
    has_tap: bool,
    /// State of the radio; `None` for a UDP link, which is not open yet.
    radio: Option<LinkState>,
    /// Another program has the radio.
    is_shared: bool,
    tap_mtu: TapMtu,
}

/// A TAP that nobody uses for so long has been forgotten.
const UNUSED_AFTER: Duration = Duration::from_secs(10);

/// Looks at everything the flags refer to, and changes nothing. Goes on where something is wrong,
/// but for what depends on it.
pub async fn check(args: &Common, findings: &mut Findings<'_>) -> Option<Checked> {
    let checked = check_interfaces(args, findings).await;
    let count = findings.about("state_file", boot::peek(args.state_file.as_deref()));
    if args.check {
        warn_if_unsaved(count.as_ref());
    }
    findings.about("record", recording::check(args));
    findings.about("control", control::check(args).await);
    findings.about("http", http::check(args));
    findings.about("position", position::check(args));
    findings.about("share_position", position::check_sharing(args));
    checked
}

fn warn_if_unsaved(count: Option<&StartCount>) {
    if let Some(error) = count.and_then(|count| count.unsaved.as_ref()) {
        warn!(
            %error, cause = error.source().map(tracing::field::display),
            "this start is counted by the clock, as the disk takes nothing: keep the clock right \
             until it does"
        );
    }
}

async fn check_interfaces(args: &Common, findings: &mut Findings<'_>) -> Option<Checked> {
    // Of one interface that is two nothing more can be said.
    findings.about("bind", two_interfaces(args))?;
    findings.about("bridge", third_interface(args))?;
    let netlink = findings.keep(Netlink::open())?;
    let radio = findings.about("bind", find_radio(args, &netlink).await);
    let has_tap = find_tap(args, &netlink, findings).await;
    findings.keep(tun_usable(&args.tap_name));
    let bridge = match &args.bridge {
        Some(bridge) => findings.about("bridge", netlink.find_bridge(bridge).await.map(drop)),
        None => Some(()),
    };
    if let Some(has_tap) = has_tap
        && let Some(address) = args.ip.iter().find(|address| address.ip.is_ipv6())
    {
        findings.about("ip", ipv6_usable(&args.tap_name, *address, has_tap));
    }
    let radio = radio?;
    let is_shared =
        radio.as_ref().is_some_and(|link| packet::is_in_use(link.index, args.ethertype));
    let tap_mtu = TapMtu { fixed: args.mtu, ipv6: args.ip.iter().any(|a| a.ip.is_ipv6()) };
    let radio_mtu = radio.as_ref().map_or(udp::MTU, |link| link.mtu);
    let mtu = tap_mtu
        .over(radio_mtu)
        .map_err(|error| Failure::new(FailureKind::Usage, anyhow!("{}: {error}", args.tap_name)));
    let mtu = findings.about("mtu", mtu);
    let radio_mac = radio.as_ref().map(|link| link.mac);
    if let Some(mac) = args.tap_mac.filter(|mac| Some(*mac) == radio_mac) {
        let error = anyhow!("{mac} is the address of the radio: expected another one");
        findings.about("tap_mac", Err::<(), _>(Failure::new(FailureKind::Usage, error)));
    }
    let (has_tap, mtu) = has_tap.zip(mtu)?;
    if has_tap && bridge.is_some() {
        let settings = tap_settings(args, args.tap_mac);
        let lacks = netlink.lacks(&args.tap_name, &settings, mtu).await;
        let lacks = findings.about("tap_name", lacks)?;
        findings.keep(capabilities::check(args, lacks));
    }
    Some(Checked { netlink, has_tap, radio, is_shared, tap_mtu })
}

fn two_interfaces(args: &Common) -> Result<(), Failure> {
    if args.bind != Bind::Interface(args.tap_name.clone()) {
        return Ok(());
    }
    let tap = &args.tap_name;
    let error = anyhow!("--bind and --tap-name both say {tap}: expected two interfaces");
    Err(Failure::new(FailureKind::Usage, error))
}

fn third_interface(args: &Common) -> Result<(), Failure> {
    let is_taken = |bridge: &&String| {
        **bridge == args.tap_name || args.bind == Bind::Interface((*bridge).clone())
    };
    let Some(bridge) = args.bridge.as_ref().filter(is_taken) else { return Ok(()) };
    let error = anyhow!("{bridge} is the TAP or the radio: expected a third interface");
    Err(Failure::new(FailureKind::Usage, error))
}

/// Whether the TAP is there, if it can be had.
async fn find_tap(args: &Common, netlink: &Netlink, findings: &mut Findings<'_>) -> Option<bool> {
    let name = &args.tap_name;
    let owner = findings.about("tap_name", netlink.find_tap(name).await)?;
    match owner {
        None => {
            findings.keep(capabilities::check(args, true));
        }
        Some(owner) => findings.about("tap_name", capabilities::check_owner(name, owner))?,
    }
    Some(owner.is_some())
}

/// State of the radio; `None` for a UDP link.
async fn find_radio(args: &Common, netlink: &Netlink) -> Result<Option<LinkState>, DeviceError> {
    match &args.bind {
        Bind::Interface(name) => netlink.link(name).await.map(Some),
        Bind::Udp(address) => Udp::check(address).map(|()| None),
    }
}

/// The kernel refuses IPv6 addresses on an interface on which IPv6 is off: what it says then is
/// that permission is denied.
fn ipv6_usable(tap_name: &str, address: TapAddress, has_tap: bool) -> Result<(), Failure> {
    const SETTINGS: &str = "/proc/sys/net/ipv6/conf";
    if !Path::new("/proc/sys/net").exists() {
        // Nobody tells.
        return Ok(());
    }
    let of = if has_tap { tap_name } else { "default" };
    let failed = |cause: String| {
        Err(Failure::new(
            FailureKind::Interface,
            anyhow!("{tap_name}: cannot have the address {address}: {cause}"),
        ))
    };
    match fs::read_to_string(format!("{SETTINGS}/{of}/disable_ipv6")) {
        Ok(value) if value.trim() == "0" => Ok(()),
        Ok(_) => failed(format!("IPv6 is off (sysctl net.ipv6.conf.{of}.disable_ipv6)")),
        Err(_) => failed("the kernel has no IPv6".to_owned()),
    }
}

fn tap_settings(args: &Common, mac: Option<Mac>) -> TapSettings {
    TapSettings { addresses: args.ip.clone(), mac, bridge: args.bridge.clone() }
}

/// The MAC of the TAP of this node: always the same, so that the ARP tables of its neighbours on
/// the LAN stay true when it restarts. Locally administered, and neither the id, which is as a rule
/// the radio's MAC, nor that with the local bit set, which is as a rule that of another interface
/// of the same card.
fn tap_mac_of(NodeId([first, rest @ ..]): NodeId) -> Mac {
    const GROUP: u8 = 0x01;
    const LOCAL: u8 = 0x02;
    let another = if first & LOCAL == 0 { 0x40 } else { 0x80 };
    let [a, b, c, d, e] = rest;
    Mac([(first ^ another) & !GROUP | LOCAL, a, b, c, d, e])
}

/// Opening the device node creates nothing yet.
fn tun_usable(tap_name: &str) -> Result<(), DeviceError> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| {
        let source = match error.kind() {
            io::ErrorKind::NotFound => Problem::NoTunDevice,
            io::ErrorKind::PermissionDenied => Problem::TunNotOpenable,
            _ => Problem::Io(error),
        };
        DeviceError { interface: tap_name.to_owned(), operation: "create the TAP", source }
    })
}

/// What is said of a radio that another program has.
const SHARED: &str = "another program of this host has this radio with the same EtherType: \
                      programs on one radio do not hear each other";

/// Open devices, and what a node's configuration takes from them.
#[derive(Debug)]
pub struct Devices {
    netlink: Netlink,
    radio: RadioDevice,
    tap: Tap,
    clock: Clock,
    radio_link: LinkState,
    tap_mtu: TapMtu,
    settings: LoopSettings,
    announcements: Vec<Vec<u8>>,
    remembered: Vec<Remembered>,
    client_file: Option<ClientFile>,
    id: NodeId,
    tap_mac: Mac,
    boot: Boot,
    unsaved_start: Option<String>,
    seed: u64,
    record: Option<Plan>,
    reload: Option<Reload>,
}

impl Devices {
    /// Opens the radio, creates and configures the TAP, and counts this start.
    pub async fn open(args: &Common, checked: Checked) -> Result<Self, Failure> {
        let Checked { mut netlink, has_tap, radio, is_shared, tap_mtu } = checked;
        if is_shared {
            warn!(radio = %args.bind, "{SHARED}");
        }
        let (radio, radio_link) = match (&args.bind, radio) {
            (Bind::Interface(name), Some(link)) => {
                let packet = PacketSocket::open(name, &link, args.ethertype)?;
                netlink.watch(Side::Radio, name, &link);
                match EthertypeSurvey::open(name, args.ethertype) {
                    Ok(survey) => netlink.watch_ethertypes(survey),
                    Err(error) => warn!(cause = %error.source, "{error}"),
                }
                (RadioDevice::Packet(packet), link)
            }
            (Bind::Interface(name), None) => {
                // `check` reads the link of every interface.
                return Err(Failure::new(FailureKind::Runtime, anyhow!("{name} was not checked")));
            }
            (Bind::Udp(address), _) => {
                let udp = Udp::open(address, args.ethertype)?;
                let link = udp.link();
                (RadioDevice::Udp(udp), link)
            }
        };
        let mtu = tap_mtu.over(radio_link.mtu).map_err(|error| {
            Failure::new(FailureKind::Usage, anyhow!("{}: {error}", args.tap_name))
        })?;
        let mut tap = Tap::open(&args.tap_name, args.tap_offload.into())?;
        let id = args.node_id.unwrap_or_else(|| radio_link.mac.into());
        // One that was there before has a MAC that others know.
        let own_mac = (!has_tap).then(|| tap_mac_of(id));
        let settings = tap_settings(args, args.tap_mac.or(own_mac));
        netlink.set_up_tap(&args.tap_name, settings, mtu).await?;
        let tap_link = netlink.link(&args.tap_name).await?;
        tap.link_changed(Some(&tap_link))?;
        netlink.watch(Side::Tap, &args.tap_name, &tap_link);
        if args.ip.is_empty() && args.bridge.is_none() {
            netlink.warn_if_unused(&args.tap_name, UNUSED_AFTER);
        }
        netlink.keep_tap_mac(tap_link.mac);
        if args.state_file.is_none() && !boot::clock_is_set() {
            warn!(
                "the clock of this machine is not set: after the machine itself has restarted \
                 others may ignore this node for some ten seconds; set the clock first, or give \
                 --state-file"
            );
        }
        let count = boot::advance(args.state_file.as_deref())?;
        warn_if_unsaved(Some(&count));
        let (boot, unsaved_start) = (count.boot, count.why_unsaved());
        let seed = device::random::<8>()
            .map(u64::from_ne_bytes)
            .context("cannot get random numbers from the kernel")
            .map_err(|error| Failure::new(FailureKind::Runtime, error))?;
        info!(
            radio = radio.name(), mac = %radio_link.mac, mtu = radio_link.mtu,
            tap = tap.name(), tap_mac = %tap_link.mac, tap_mtu = mtu,
            tap_offload = tap.has_offload(), %id, boot = boot.0, "devices are open"
        );
        Ok(Self {
            netlink,
            radio,
            tap,
            clock: Clock::start(),
            radio_link,
            tap_mtu,
            settings: args.loop_settings(),
            announcements: addresses::announcements(tap_link.mac, args.ip.iter().map(|a| a.ip)),
            remembered: Vec::new(),
            client_file: None,
            id,
            tap_mac: tap_link.mac,
            boot,
            unsaved_start,
            seed,
            record: None,
            reload: None,
        })
    }

    /// What goes into the node, and comes out of it, is recorded as this says.
    pub fn record(&mut self, plan: Plan) {
        self.record = Some(plan);
    }

    /// SIGHUP reads the configuration again, if there is a file of it, instead of ending the
    /// daemon.
    pub fn reload_on_hang_up(&mut self, reload: Option<Reload>) {
        self.reload = reload;
    }

    /// What this start found, for the configuration of the node.
    pub fn start(&self) -> Start {
        Start {
            id: self.id,
            radio_mac: self.radio_link.mac,
            radio_mtu: self.radio_link.mtu,
            tap_mac: Some(self.tap_mac),
            boot: self.boot,
            seed: self.seed,
        }
    }

    /// The node is told what `source` says of the radio.
    pub fn watch_signal(&mut self, source: SignalSource) {
        info!(source = source.name(), "the radio tells");
        self.netlink.watch_signal(source);
    }

    /// The node is told who was behind its TAP before it started. The bridge the TAP is in tells
    /// it, and with a state file the file of clients beside it, in which they are written down from
    /// now on.
    pub fn remember_clients(&mut self, state_file: Option<&Path>) {
        self.netlink.watch_clients();
        let Some(file) = state_file.map(ClientFile::beside) else { return };
        match file.read() {
            Ok(clients) => self.remembered = clients,
            Err(error) => warn!(%error, "clients of an earlier start are not known"),
        }
        if !self.remembered.is_empty() {
            let (clients, file) = (self.remembered.len(), file.path().display());
            info!(clients, %file, "clients of an earlier start are known again");
        }
        self.client_file = Some(file);
    }

    /// Runs the node `create` makes until a signal stops it, on this thread, which must not be one
    /// of tokio's but inside its runtime.
    pub fn drive<N: Node>(
        mut self,
        control: ControlSocket,
        create: impl FnOnce(node_lib::Timestamp) -> N,
    ) -> Result<(), Failure> {
        let failed = |error| Failure::new(FailureKind::Runtime, error);
        let mut signals = Signals::install().context("cannot take over signals").map_err(failed)?;
        let reload = self.reload.take();
        if let Some(reload) = reload.clone() {
            let mut hang_ups = signals.take_hang_up();
            tokio::spawn(async move {
                while let Some(hang_up) = &mut hang_ups
                    && hang_up.recv().await.is_some()
                {
                    // Elsewhere, for a disk may hang. What became of it stands in the log.
                    let reload = reload.clone();
                    let _ = tokio::task::spawn_blocking(move || reload.run()).await;
                }
            });
        }
        let (commands, inside) = inside::attend(signals);
        let start = self.start();
        let now = self.clock.now();
        let names = (self.radio.name(), self.tap.name());
        let begun = self.record.take().map(|plan| plan.begin(&start, now, names)).transpose()?;
        let (recording, tap) =
            begun.map_or((None, None), |(recording, tap)| (Some(recording), tap));
        let control = control
            .with_reload(reload)
            .with_recording(recording.clone())
            .with_unsaved_start(self.unsaved_start);
        let serving = control.serve(inside)?;
        let mut node = Recorded::new(create(now), tap);
        if let Some(recording) = &recording {
            node = node.with_switch(recording.switch());
        }
        info!(id = %node.id(), "running");
        let LoopSettings { bundles, coalesce, busy_poll } = self.settings;
        let runtime = Runtime {
            clock: self.clock,
            radio: self.radio_link,
            tap_mtu: self.tap_mtu,
            bundles,
            coalesce,
            busy_poll,
            announcements: self.announcements,
            remembered: self.remembered,
            client_file: self.client_file,
        };
        let mut commands = Supervised::ready(commands, Supervisor::from_env());
        let ended = runtime
            .run(&mut node, &mut self.radio, &mut self.tap, &mut self.netlink, &mut commands)
            .context("cannot wait for frames")
            .map_err(|error| Failure::new(FailureKind::Runtime, error));
        if let Some(recording) = recording {
            recording.end();
        }
        // Before the process says that it has stopped: whoever waits for that may start another.
        drop(serving);
        match ended? {
            Exit::Clean => info!("stopped"),
            Exit::Forced => info!("stopped without waiting"),
        }
        Ok(())
    }
}

/// Tells the user that `--check` found nothing wrong, and what would be used.
pub fn print_checked(args: &Common, checked: &Checked) -> Result<(), Failure> {
    let state = match &checked.radio {
        None => "UDP link".to_owned(),
        Some(link) => {
            let up = if link.up { "up" } else { "down: will wait for it" };
            format!("MAC {}, MTU {}, {up}", link.mac, link.mtu)
        }
    };
    let radio = &args.bind;
    let mut text = format!("radio {radio}: {state}\n");
    if checked.is_shared {
        text += &format!("radio {radio}: {SHARED}\n");
    }
    let radio_mtu = checked.radio.as_ref().map_or(udp::MTU, |link| link.mtu);
    if let Ok(mtu) = checked.tap_mtu.over(radio_mtu) {
        let state = if checked.has_tap { "is there" } else { "will be made" };
        text += &format!("tap {}: MTU {mtu}, {state}\n", args.tap_name);
    }
    print(&text)?;
    position::print_checked(args)
}

/// The same for who is remembered of an earlier start. Nothing is wrong where nobody is: the start
/// only warns.
pub fn print_remembered(state_file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = state_file.map(ClientFile::beside) else { return Ok(()) };
    print(&match file.read() {
        Ok(clients) => format!("clients: {} known from {}\n", clients.len(), file.path().display()),
        Err(error) => format!("clients: none known: {error}\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mac_of_a_tap_is_local_unicast_and_not_that_of_the_radio_or_its_twin() {
        for first in (0..=u8::MAX).step_by(2) {
            let id = NodeId([first, 1, 2, 3, 4, 5]);
            let Mac(mac) = tap_mac_of(id);
            assert_eq!(mac[0] & 3, 2, "{first:#04x}");
            assert_ne!(mac, id.0);
            assert_ne!(mac[0], first | 2);
            assert_eq!(tap_mac_of(id), Mac(mac));
        }
    }
}
