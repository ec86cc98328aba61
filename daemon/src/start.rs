//! From flags to a running node: checks, devices, loop, shutdown.

use std::fs::OpenOptions;
use std::io;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use node_lib::control::node::Node;
use node_lib::device::netlink::{Netlink, TapSettings};
use node_lib::device::packet::Packet;
use node_lib::device::tap::Tap;
use node_lib::device::udp::{self, Udp};
use node_lib::device::{self, Device, DeviceError, Link, Problem, Side};
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::Signals;
use node_lib::runtime::mtu::TapMtu;
use node_lib::runtime::{Exit, Runtime, boot};
use node_lib::{Boot, Mac, NodeId};
use tracing::info;

use crate::args::{Bind, Bundles, Common};
use crate::exit::{Failure, Kind};
use crate::radio::Radio;

/// The tokio runtime of a daemon: one thread beside that of the packet loop. It watches interfaces and signals, and
/// sleeps nearly all the time.
pub fn tokio_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .thread_name("control")
        .enable_all()
        .build()
        .context("cannot start the event loop")
        .map_err(|error| Failure::new(Kind::Runtime, error))
}

/// What was found before anything was changed.
#[derive(Debug)]
pub struct Checked {
    netlink: Netlink,
    /// State of the radio; `None` for a UDP link, which is not open yet.
    radio: Option<Link>,
    tap_mtu: TapMtu,
}

/// Looks at everything the flags refer to, and changes nothing.
pub async fn check(args: &Common) -> Result<Checked, Failure> {
    if args.bind == Bind::Interface(args.tap_name.clone()) {
        return Err(Failure::new(
            Kind::Usage,
            anyhow!("--bind and --tap-name both say {}: expected two interfaces", args.tap_name),
        ));
    }
    let netlink = Netlink::open()?;
    let radio = match &args.bind {
        Bind::Interface(name) => Some(netlink.link(name).await?),
        Bind::Udp(_) => None,
    };
    let tap_mtu = TapMtu { fixed: args.mtu, ipv6: args.ip.iter().any(|a| a.ip.is_ipv6()) };
    let radio_mtu = radio.as_ref().map_or(udp::MTU, |link| link.mtu);
    tap_mtu
        .over(radio_mtu)
        .map_err(|error| Failure::new(Kind::Usage, anyhow!("{}: {error}", args.tap_name)))?;
    tun_usable(&args.tap_name)?;
    boot::peek(args.state_file.as_deref())?;
    Ok(Checked { netlink, radio, tap_mtu })
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

/// Open devices, and what a node's configuration takes from them.
#[derive(Debug)]
pub struct Devices {
    netlink: Netlink,
    radio: Radio,
    tap: Tap,
    clock: Clock,
    radio_link: Link,
    tap_mtu: TapMtu,
    bundles: bool,
    coalesce: Duration,
    busy_poll: Duration,
    /// Identity of the node.
    pub id: NodeId,
    /// MAC of the TAP.
    pub tap_mac: Mac,
    /// Boot count of this start.
    pub boot: Boot,
    /// Random seed.
    pub seed: u64,
}

impl Devices {
    /// Opens the radio, creates and configures the TAP, and counts this start.
    pub async fn open(args: &Common, checked: Checked) -> Result<Self, Failure> {
        let Checked { mut netlink, radio, tap_mtu } = checked;
        let (radio, radio_link) = match (&args.bind, radio) {
            (Bind::Interface(name), Some(link)) => {
                let packet = Packet::open(name, &link, args.ethertype)?;
                netlink.watch(Side::Radio, name, &link);
                (Radio::Packet(packet), link)
            }
            (Bind::Interface(name), None) => {
                // `check` reads the link of every interface.
                return Err(Failure::new(Kind::Runtime, anyhow!("{name} was not checked")));
            }
            (Bind::Udp(address), _) => {
                let udp = Udp::open(address, args.ethertype)?;
                let link = udp.link();
                (Radio::Udp(udp), link)
            }
        };
        let mtu = tap_mtu
            .over(radio_link.mtu)
            .map_err(|error| Failure::new(Kind::Usage, anyhow!("{}: {error}", args.tap_name)))?;
        let mut tap = Tap::open(&args.tap_name, args.tap_offload.into())?;
        let settings = TapSettings { addresses: args.ip.clone(), mac: None };
        netlink.set_up_tap(&args.tap_name, settings, mtu).await?;
        let tap_link = netlink.link(&args.tap_name).await?;
        tap.link_changed(Some(&tap_link))?;
        netlink.watch(Side::Tap, &args.tap_name, &tap_link);
        netlink.keep_tap_mac(tap_link.mac);
        let boot = boot::advance(args.state_file.as_deref())?;
        let seed = device::random::<8>()
            .map(u64::from_ne_bytes)
            .context("cannot get random numbers from the kernel")
            .map_err(|error| Failure::new(Kind::Runtime, error))?;
        let id = args.node_id.unwrap_or_else(|| radio_link.mac.into());
        info!(
            radio = radio.name(), mac = %radio_link.mac, mtu = radio_link.mtu,
            tap = tap.name(), tap_mac = %tap_link.mac, tap_mtu = mtu, tap_offload = tap.has_offload(),
            %id, boot = boot.0, "devices are open"
        );
        Ok(Self {
            netlink,
            radio,
            tap,
            clock: Clock::start(),
            radio_link,
            tap_mtu,
            bundles: args.bundles == Bundles::On,
            coalesce: Duration::from_micros(args.coalesce),
            busy_poll: Duration::from_micros(args.busy_poll),
            id,
            tap_mac: tap_link.mac,
            boot,
            seed,
        })
    }

    /// MAC of the radio.
    pub fn radio_mac(&self) -> Mac {
        self.radio_link.mac
    }

    /// MTU of the radio.
    pub fn radio_mtu(&self) -> usize {
        self.radio_link.mtu
    }

    /// Runs the node `create` makes until a signal stops it, on this thread, which must not be one of tokio's but inside
    /// its runtime.
    pub fn drive<N: Node>(
        mut self,
        create: impl FnOnce(node_lib::Timestamp) -> N,
    ) -> Result<(), Failure> {
        let mut signals = Signals::install()
            .context("cannot take over signals")
            .map_err(|error| Failure::new(Kind::Runtime, error))?;
        let mut node = create(self.clock.now());
        info!(id = %node.id(), "running");
        let runtime = Runtime {
            clock: self.clock,
            radio: self.radio_link,
            tap_mtu: self.tap_mtu,
            bundles: self.bundles,
            coalesce: self.coalesce,
            busy_poll: self.busy_poll,
        };
        let exit = runtime
            .run(&mut node, &mut self.radio, &mut self.tap, &mut self.netlink, &mut signals)
            .context("cannot wait for frames")
            .map_err(|error| Failure::new(Kind::Runtime, error))?;
        match exit {
            Exit::Clean => info!("stopped"),
            Exit::Forced => info!("stopped without waiting"),
        }
        Ok(())
    }
}

/// Tells the user that `--check` found nothing wrong, and what would be used.
pub fn print_checked(args: &Common, checked: &Checked) {
    let state = match &checked.radio {
        None => "UDP link".to_owned(),
        Some(link) => {
            let up = if link.up { "up" } else { "down: will wait for it" };
            format!("MAC {}, MTU {}, {up}", link.mac, link.mtu)
        }
    };
    let radio = match &args.bind {
        Bind::Interface(name) => name.clone(),
        Bind::Udp(address) => address.to_string(),
    };
    println!("radio {radio}: {state}");
    let radio_mtu = checked.radio.as_ref().map_or(udp::MTU, |link| link.mtu);
    if let Ok(mtu) = checked.tap_mtu.over(radio_mtu) {
        println!("tap {}: MTU {mtu}", args.tap_name);
    }
}
