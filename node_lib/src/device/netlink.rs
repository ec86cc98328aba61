//! Interfaces as the kernel sees them: reads, watches and configures them over rtnetlink(7).
//!
//! Creates nothing: the TAP comes from [`super::tap`], the radio from the operator. A state is
//! always read whole, so notifications may be merged or repeated; after an overrun of the
//! notification queue, or if the connection breaks, both interfaces are read again.

mod address;
mod configure;
mod connection;
mod home;
mod interface;
mod neighbours;
mod ports;
mod tun;

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt};
use rtnetlink::Handle;
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::link::{InfoKind, LinkAttribute, LinkLayerType, LinkMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::error::{DeviceError, Problem};
use super::ethertypes::{EthertypeSurvey, Surveying};
use super::signal::{Sample, SignalCounters, SignalSource, Watch};
use super::tap_owner::TapOwner;
use super::{BridgePort, LinkChange, LinkState, Links, Side, name};
use crate::mac::Mac;
use crate::start::clients::Remembered;
pub use address::{ParseTapAddressError, TapAddress};
pub use configure::TapSettings;
use configure::{Wanted, configure};
use connection::{MessageStream, Server, connect};
use home::Home;
use interface::{Seen, find_bridge, has_index, is_unused, kind_of, name_of, parse, read};
use neighbours::Place;
use ports::OtherPorts;
use tun::tun_info;

/// Wait before a broken connection to the kernel is opened anew.
const RECOVERY_DELAY: Duration = Duration::from_secs(1);

/// Wait before a TAP that left its bridge is put there again.
const PUT_BACK_AFTER: Duration = Duration::from_secs(1);

/// The bridge the TAP is to be in, as a flag says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bridge {
    name: String,
    /// `None` while there is none of this name.
    seen: Option<LinkState>,
}

type Recovery = Pin<Box<dyn Future<Output = io::Result<(Handle, MessageStream, Server)>> + Send>>;
type Reading = Pin<Box<dyn Future<Output = Result<ReadAgain, DeviceError>> + Send>>;

type Asking = Pin<Box<dyn Future<Output = io::Result<Vec<Remembered>>> + Send>>;

/// What is so now of what may have changed unnoticed.
#[derive(Debug)]
struct ReadAgain {
    /// Of the bridge the TAP was put into, if there is none of this index any more.
    gone: Option<u32>,
    states: Vec<(String, Option<Seen>)>,
}

/// One interface under watch.
#[derive(Debug)]
struct Watched {
    side: Side,
    name: String,
    /// The state reported last; `None` if none was, or if there is no such interface.
    last: Option<LinkState>,
}

/// A connection to the kernel's interface tables.
pub struct Netlink {
    handle: Handle,
    messages: MessageStream,
    server: Server,
    recovery: Option<Recovery>,
    reading: Option<Reading>,
    watched: Vec<Watched>,
    queue: VecDeque<LinkChange>,
    settings: TapSettings,
    /// The MTU the TAP was told to have last.
    tap_mtu: usize,
    /// The TAP itself, whatever becomes of its bridge.
    tap: Option<Seen>,
    bridge: Option<Bridge>,
    /// Where somebody put the TAP, if no flag says where it is to be.
    home: Home,
    configuring: Option<JoinHandle<()>>,
    /// That is to put the TAP back into its bridge, and nothing else.
    is_putting_back: bool,
    looking: Option<JoinHandle<()>>,
    signal: Option<Watch>,
    surveying: Option<Surveying>,
    /// The bridge is asked who is behind it.
    tells_clients: bool,
    /// Where the TAP was when that was asked last.
    asked: Option<Place>,
    asking: Option<Asking>,
    /// Of the bridge the TAP is in, whoever put it there.
    ports: OtherPorts,
}

impl fmt::Debug for Netlink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Netlink").field("watched", &self.watched).finish_non_exhaustive()
    }
}

impl Netlink {
    /// Connects, and collects notifications from now on. Must run inside a tokio runtime with I/O
    /// and time.
    pub fn open() -> Result<Self, DeviceError> {
        let (handle, messages, server) = connect()
            .map_err(|source| DeviceError::new("netlink", "connect to the kernel", source))?;
        Ok(Self {
            handle,
            messages,
            server,
            recovery: None,
            reading: None,
            watched: Vec::new(),
            queue: VecDeque::new(),
            settings: TapSettings::default(),
            tap_mtu: 0,
            tap: None,
            bridge: None,
            home: Home::default(),
            configuring: None,
            is_putting_back: false,
            looking: None,
            signal: None,
            surveying: None,
            tells_clients: false,
            asked: None,
            asking: None,
            ports: OtherPorts::default(),
        })
    }

    /// The state of an interface that must exist and carry Ethernet frames.
    pub async fn link(&self, name: &str) -> Result<LinkState, DeviceError> {
        name::check(name)?;
        let error = |problem| DeviceError::new(name, "use the interface", problem);
        let message =
            read(&self.handle, name).await?.ok_or_else(|| error(Problem::NoSuchInterface))?;
        let kind = message.header.link_layer_type;
        if kind != LinkLayerType::Ether {
            return Err(error(Problem::NotEthernet(format!("{kind:?}").to_lowercase())));
        }
        let seen = parse(&message).map(|seen| seen.link);
        seen.ok_or_else(|| error(Problem::NotEthernet("without a MAC address".into())))
    }

    /// What would keep the TAP of this name from being made, or taken over, as far as that can be
    /// seen without opening it and without knowing who asks. And who may open the one that is
    /// there, if there is one.
    pub async fn find_tap(&self, name: &str) -> Result<Option<TapOwner>, DeviceError> {
        name::check(name)?;
        let Some(message) = read(&self.handle, name).await? else { return Ok(None) };
        let error = |problem| Err(DeviceError::new(name, "create the TAP", problem));
        let is_tun = kind_of(&message) == Some(&InfoKind::Tun);
        if !is_tun || message.header.link_layer_type != LinkLayerType::Ether {
            return error(Problem::NotTap);
        }
        let tun = tun_info(&message);
        if tun.is_multi_queue {
            return error(Problem::SeveralQueues);
        }
        // A TAP has a carrier while a process holds its other end, also while it is down.
        if message.attributes.contains(&LinkAttribute::Carrier(1)) {
            return error(Problem::Busy);
        }
        Ok(Some(tun.owner))
    }

    /// The bridge of this name, which must exist.
    pub async fn find_bridge(&self, name: &str) -> Result<LinkState, DeviceError> {
        find_bridge(&self.handle, name).await
    }

    /// Whether the TAP of this name lacks anything of these settings: then configuring it takes
    /// `CAP_NET_ADMIN`.
    pub async fn lacks(
        &self,
        name: &str,
        settings: &TapSettings,
        mtu: usize,
    ) -> Result<bool, DeviceError> {
        let Some(message) = read(&self.handle, name).await? else { return Ok(true) };
        let home = Home::default();
        let wanted = Wanted::of(&self.handle, name, &message, settings, mtu, home).await?;
        Ok(!wanted.is_nothing())
    }

    /// Whether there is an interface of this name, of whatever kind.
    pub async fn exists(&self, name: &str) -> Result<bool, DeviceError> {
        Ok(read(&self.handle, name).await?.is_some())
    }

    /// Reports changes of this interface from now on, starting from the state `known`.
    pub fn watch(&mut self, side: Side, name: &str, known: &LinkState) {
        self.watched.push(Watched { side, name: name.to_owned(), last: Some(known.clone()) });
        if side == Side::Tap {
            self.report_tap();
        }
    }

    /// Sets the TAP's MTU, address(es) and MAC and brings it up; remembers `settings` for
    /// [`Links::configure_tap`].
    pub async fn set_up_tap(
        &mut self,
        name: &str,
        settings: TapSettings,
        mtu: usize,
    ) -> Result<(), DeviceError> {
        let result = configure(&self.handle, name, &settings, mtu, self.home).await;
        let bridge = match &settings.bridge {
            None => None,
            Some(bridge) => {
                let seen = read(&self.handle, bridge).await?.as_ref().and_then(parse);
                Some(Bridge { name: bridge.clone(), seen: seen.map(|seen| seen.link) })
            }
        };
        let tap = read(&self.handle, name).await?.as_ref().and_then(parse);
        // Answers and notifications come through one socket: what was said while the TAP was made
        // is here by now, and older than what was just read.
        while let Some(Some(message)) = self.messages.next().now_or_never() {
            self.note(message);
        }
        self.bridge = bridge;
        self.note_tap(tap);
        self.settings = settings;
        self.tap_mtu = mtu;
        result
    }

    /// Remembers the TAP's MAC for when it has to be re-created.
    pub fn keep_tap_mac(&mut self, mac: Mac) {
        self.settings.mac = Some(mac);
    }

    /// Whether nothing is connected to this interface: it is in no bridge, has no address but what
    /// IPv6 makes by itself, and nothing is built on top of it. `false` if there is none.
    pub async fn is_unused(&self, name: &str) -> Result<bool, DeviceError> {
        is_unused(&self.handle, name).await
    }

    /// Says so once if nothing is connected to the TAP after this time. Must run inside a tokio
    /// runtime with time.
    pub fn warn_if_unused(&mut self, name: &str, after: Duration) {
        let (handle, tap) = (self.handle.clone(), name.to_owned());
        self.looking = Some(tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if is_unused(&handle, &tap).await.unwrap_or(false) {
                warn!(
                    %tap,
                    "TAP has no address and is in no bridge, so nobody uses it: give it an address \
                     with --ip, or put it into a bridge with --bridge; a vehicle that only relays \
                     needs neither"
                );
            }
        }));
    }

    /// Reports from now on what `source` tells of the radio. Must run inside a tokio runtime with
    /// time.
    pub fn watch_signal(&mut self, source: SignalSource) {
        self.signal = Some(source.watch());
    }

    /// Reports from now on in which other EtherTypes nodes are heard on the radio.
    pub fn watch_ethertypes(&mut self, survey: EthertypeSurvey) {
        match survey.start() {
            Ok(surveying) => self.surveying = Some(surveying),
            Err(cause) => warn!(%cause, "no thread to listen to other EtherTypes"),
        }
    }

    /// Reports from now on who is behind the bridge that the TAP is a port of: now, and whenever it
    /// is put into one.
    pub fn watch_clients(&mut self) {
        self.tells_clients = true;
        self.ask_bridge();
    }

    /// The bridge the TAP is in now.
    fn place(&self) -> Option<Place> {
        let tap = self.tap.as_ref().filter(|tap| tap.is_bridge_port)?;
        Some(Place { tap: tap.link.index, bridge: tap.controller? })
    }

    /// Asks the bridge who is behind it, if the TAP has come into it.
    fn ask_bridge(&mut self) {
        let place = self.place();
        if !self.tells_clients || self.asked == place {
            return;
        }
        self.asked = place;
        self.asking = place.map(|place| -> Asking { Box::pin(neighbours::behind(place)) });
    }

    fn report(&mut self, side: Side, link: Option<LinkState>) {
        for watched in self.watched.iter_mut().filter(|watched| watched.side == side) {
            if watched.last != link {
                watched.last.clone_from(&link);
                self.queue.push_back(LinkChange { side, link: link.clone() });
            }
        }
    }

    /// The TAP as others can reach it: up only while it is where it is to be.
    fn report_tap(&mut self) {
        let link = self.tap.clone().map(|tap| {
            let is_in_place = match &self.bridge {
                None => self.home.way_back(&tap).is_none(),
                Some(bridge) => {
                    bridge.seen.as_ref().is_some_and(|b| b.up && tap.controller == Some(b.index))
                }
            };
            LinkState { up: tap.link.up && is_in_place, ..tap.link }
        });
        self.report(Side::Tap, link);
        self.put_back();
    }

    /// A TAP that is out of its bridge is put there again; not at once, so that two who disagree do
    /// not keep a processor busy.
    fn put_back(&mut self) {
        let Some(tap) = &self.tap else { return };
        let is_out = match &self.bridge {
            None => self.home.way_back(tap).is_some(),
            Some(bridge) => bridge.seen.as_ref().is_some_and(|b| tap.controller != Some(b.index)),
        };
        let under_way = self.configuring.as_ref().filter(|task| !task.is_finished());
        match under_way {
            None if is_out => {
                self.configure_after(PUT_BACK_AFTER);
                self.is_putting_back = true;
            }
            // It is back by itself: whoever takes it out in that second means it.
            Some(task) if !is_out && self.is_putting_back => task.abort(),
            _ => {}
        }
    }

    fn configure_after(&mut self, wait: Duration) {
        let tap = self.watched.iter().find(|watched| watched.side == Side::Tap);
        let Some(name) = tap.map(|watched| watched.name.clone()) else {
            return;
        };
        if let Some(running) = self.configuring.take() {
            running.abort();
        }
        self.is_putting_back = false;
        let (handle, settings) = (self.handle.clone(), self.settings.clone());
        let (mtu, home) = (self.tap_mtu, self.home);
        self.configuring = Some(tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if let Err(error) = configure(&handle, &name, &settings, mtu, home).await {
                warn!(tap = %name, mtu, cause = %error.source, "{error}");
            }
        }));
    }

    fn note_tap(&mut self, tap: Option<Seen>) {
        if let (Some(tap), None) = (&tap, &self.bridge) {
            self.home.note_tap(tap);
        }
        self.tap = tap;
        self.ports.follow(self.place(), &self.handle);
        self.compare_ports();
        self.ask_bridge();
    }

    fn compare_ports(&mut self) {
        self.ports.compare(self.tap.as_ref().map(|tap| tap.link.mtu));
    }

    /// There is no interface of this index any more.
    fn note_gone(&mut self, index: u32) {
        if self.home.note_gone(index) {
            self.report_tap();
        }
    }

    /// The interface of this name is in this state now, or is no more.
    fn note_state(&mut self, name: &str, seen: Option<Seen>) {
        if let Some(bridge) = self.bridge.as_mut().filter(|bridge| bridge.name == name) {
            bridge.seen = seen.clone().map(|seen| seen.link);
            self.report_tap();
        }
        let sides: Vec<_> =
            self.watched.iter().filter(|w| w.name == name).map(|w| w.side).collect();
        for side in sides {
            match side {
                Side::Radio => self.report(side, seen.clone().map(|seen| seen.link)),
                Side::Tap => {
                    self.note_tap(seen.clone());
                    self.report_tap();
                }
            }
        }
    }

    fn note(&mut self, message: NetlinkMessage<RouteNetlinkMessage>) {
        match message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                self.note_link(&link, true);
            }
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) => {
                self.note_link(&link, false);
            }
            NetlinkPayload::Overrun(_) => {
                debug!("interface notifications were lost, reading again");
                self.read_again();
            }
            _ => {}
        }
    }

    fn note_link(&mut self, message: &LinkMessage, exists: bool) {
        // A bridge speaks of its ports in the same words: leaving one is not being deleted.
        if message.header.interface_family != AddressFamily::Unspec {
            return;
        }
        self.ports.note(message, exists);
        self.compare_ports();
        let name = name_of(message);
        let index = message.header.index;
        if !exists {
            self.note_gone(index);
        }
        let bridge = self.bridge.iter();
        let known = self
            .watched
            .iter()
            .map(|watched| (&watched.name, watched.last.as_ref()))
            .chain(bridge.map(|bridge| (&bridge.name, bridge.seen.as_ref())));
        let found: Vec<_> = known
            .filter_map(|(known, last)| {
                let same_name = name == Some(known);
                let same_index = last.is_some_and(|last| last.index == index);
                match (same_name, same_index) {
                    // Incomplete messages (Wi-Fi events) say nothing about what we watch.
                    (true, _) if exists => parse(message).map(|seen| (known.clone(), Some(seen))),
                    // Deleted, unless one of the same name has taken its place already.
                    (_, true) if !exists => Some((known.clone(), None)),
                    // Renamed away.
                    (false, true) if name.is_some() => Some((known.clone(), None)),
                    _ => None,
                }
            })
            .collect();
        for (name, seen) in found {
            self.note_state(&name, seen);
        }
    }

    fn read_again(&mut self) {
        self.ports.read(&self.handle);
        let (handle, home) = (self.handle.clone(), self.home.bridge());
        let bridge = self.bridge.iter().map(|bridge| bridge.name.clone());
        let names: Vec<_> =
            self.watched.iter().map(|watched| watched.name.clone()).chain(bridge).collect();
        self.reading = Some(Box::pin(async move {
            let mut states = Vec::with_capacity(names.len());
            for name in names {
                let seen = read(&handle, &name).await?.as_ref().and_then(parse);
                states.push((name, seen));
            }
            let gone = match home {
                Some(index) if !has_index(&handle, index).await? => home,
                _ => None,
            };
            Ok(ReadAgain { gone, states })
        }));
    }

    /// Drives what is under way; ready when the connection was replaced or a reading ended.
    fn poll_background(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ports.poll(cx).is_ready() {
            self.compare_ports();
        }
        if let Some(recovery) = &mut self.recovery {
            match ready!(recovery.as_mut().poll(cx)) {
                Ok((handle, messages, server)) => {
                    self.recovery = None;
                    (self.handle, self.messages, self.server) = (handle, messages, server);
                    self.read_again();
                }
                Err(_) => self.recover(),
            }
            return Poll::Ready(());
        }
        if let Some(reading) = &mut self.reading {
            let result = ready!(reading.as_mut().poll(cx));
            self.reading = None;
            match result {
                Ok(ReadAgain { gone, states }) => {
                    gone.into_iter().for_each(|index| self.note_gone(index));
                    states.into_iter().for_each(|(name, seen)| self.note_state(&name, seen));
                }
                Err(error) => {
                    debug!(%error, "reading the interfaces failed");
                    self.recover();
                }
            }
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn recover(&mut self) {
        self.recovery = Some(Box::pin(async {
            tokio::time::sleep(RECOVERY_DELAY).await;
            connect()
        }));
    }
}

impl Links for Netlink {
    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<LinkChange> {
        loop {
            if let Some(change) = self.queue.pop_front() {
                return Poll::Ready(change);
            }
            if self.poll_background(cx).is_ready() {
                continue;
            }
            if self.recovery.is_some() {
                return Poll::Pending;
            }
            match ready!(self.messages.as_mut().poll_next(cx)) {
                Some(message) => self.note(message),
                None => {
                    warn!("connection to the kernel's interface table lost, opening it again");
                    self.recover();
                }
            }
        }
    }

    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Sample> {
        self.signal.as_ref().map_or(Poll::Pending, |watch| watch.reports.poll(cx))
    }

    fn poll_channel_busy(&mut self, cx: &mut Context<'_>) -> Poll<u8> {
        self.signal.as_ref().map_or(Poll::Pending, |watch| watch.reports.poll_channel_busy(cx))
    }

    fn signal_counters(&self) -> SignalCounters {
        self.signal.as_ref().map(|watch| watch.reports.counters()).unwrap_or_default()
    }

    fn poll_clients(&mut self, cx: &mut Context<'_>) -> Poll<Vec<Remembered>> {
        let Some(asking) = &mut self.asking else { return Poll::Pending };
        let result = ready!(asking.as_mut().poll(cx));
        self.asking = None;
        match result {
            Ok(clients) => {
                debug!(clients = clients.len(), "the bridge told who is behind it");
                Poll::Ready(clients)
            }
            Err(error) => {
                debug!(%error, "the bridge does not tell who is behind it");
                Poll::Pending
            }
        }
    }

    fn wider_port(&self) -> Option<&BridgePort> {
        self.ports.wider()
    }

    fn other_ethertypes(&self) -> Vec<u16> {
        self.surveying.as_ref().map(Surveying::heard).unwrap_or_default()
    }

    fn configure_tap(&mut self, mtu: usize) {
        self.tap_mtu = mtu;
        self.configure_after(Duration::ZERO);
    }
}

impl Drop for Netlink {
    fn drop(&mut self) {
        for running in [&self.configuring, &self.looking].into_iter().flatten() {
            running.abort();
        }
        let messages = std::mem::replace(&mut self.messages, stream::empty().boxed());
        self.server.stop(messages);
    }
}
