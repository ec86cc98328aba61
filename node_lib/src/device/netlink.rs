//! Interfaces as the kernel sees them: reads, watches and configures them over rtnetlink(7).
//!
//! Creates nothing: the TAP comes from [`super::tap`], the radio from the operator. A state is
//! always read whole, so notifications may be merged or repeated; after an overrun of the
//! notification queue, or if the connection breaks, both interfaces are read again.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt, TryStreamExt};
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::{Handle, LinkUnspec, MulticastGroup};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::error::{DeviceError, Problem};
use super::{Link, LinkChange, Links, Side, name};
use crate::mac::Mac;

/// Wait before a broken connection to the kernel is opened anew.
const RECOVERY_DELAY: Duration = Duration::from_secs(1);

/// An address for the TAP: `ADDR[/PREFIX]`, by default /24 for IPv4 and /64 for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapAddress {
    /// The address.
    pub ip: IpAddr,
    /// Length of the network prefix.
    pub prefix: u8,
}

/// The text is not an address an interface can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not an interface address ({why}); expected ADDR[/PREFIX] such as 10.0.0.1/24 or fd00::1/64"
)]
pub struct ParseTapAddressError {
    text: String,
    why: &'static str,
}

impl FromStr for TapAddress {
    type Err = ParseTapAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |why| ParseTapAddressError { text: text.to_owned(), why };
        let (ip, prefix) = match text.split_once('/') {
            Some((ip, prefix)) => (ip, Some(prefix)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().map_err(|_| error("no IPv4 or IPv6 address"))?;
        let (default, max) = if ip.is_ipv4() { (24, 32) } else { (64, 128) };
        let prefix = match prefix {
            None => default,
            Some(prefix) => match prefix.parse() {
                Ok(prefix) if (1..=max).contains(&prefix) => prefix,
                _ if ip.is_ipv4() => return Err(error("the prefix is not 1 to 32")),
                _ => return Err(error("the prefix is not 1 to 128")),
            },
        };
        if ip.is_unspecified() {
            return Err(error("it is the unspecified address"));
        }
        if ip.is_multicast() || ip == IpAddr::V4(std::net::Ipv4Addr::BROADCAST) {
            return Err(error("it is a group address"));
        }
        if ip.is_loopback() {
            return Err(error("it is a loopback address"));
        }
        Ok(Self { ip, prefix })
    }
}

impl fmt::Display for TapAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

/// What the TAP is to be like, apart from its MTU.
#[derive(Clone, Debug, Default)]
pub struct TapSettings {
    /// Its addresses.
    pub addresses: Vec<TapAddress>,
    /// Its MAC, so that a TAP that had to be re-created is the same for its neighbours.
    pub mac: Option<Mac>,
}

type Messages = Pin<Box<dyn Stream<Item = NetlinkMessage<RouteNetlinkMessage>> + Send>>;
type Recovery = Pin<Box<dyn Future<Output = io::Result<(Handle, Messages)>> + Send>>;
type Reading = Pin<Box<dyn Future<Output = Result<Vec<LinkChange>, DeviceError>> + Send>>;

/// One interface under watch.
#[derive(Debug)]
struct Watched {
    side: Side,
    name: String,
    /// The state reported last; `None` if none was, or if there is no such interface.
    last: Option<Link>,
}

/// A connection to the kernel's interface tables.
pub struct Netlink {
    handle: Handle,
    messages: Messages,
    recovery: Option<Recovery>,
    reading: Option<Reading>,
    watched: Vec<Watched>,
    queue: VecDeque<LinkChange>,
    settings: TapSettings,
    configuring: Option<JoinHandle<()>>,
}

impl fmt::Debug for Netlink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Netlink").field("watched", &self.watched).finish_non_exhaustive()
    }
}

fn connect() -> io::Result<(Handle, Messages)> {
    let (connection, handle, messages) =
        rtnetlink::new_multicast_connection(&[MulticastGroup::Link])?;
    tokio::spawn(connection);
    Ok((handle, messages.map(|(message, _)| message).boxed()))
}

impl Netlink {
    /// Connects, and collects notifications from now on. Must run inside a tokio runtime with I/O and time.
    pub fn open() -> Result<Self, DeviceError> {
        let (handle, messages) = connect()
            .map_err(|source| DeviceError::new("netlink", "connect to the kernel", source))?;
        Ok(Self {
            handle,
            messages,
            recovery: None,
            reading: None,
            watched: Vec::new(),
            queue: VecDeque::new(),
            settings: TapSettings::default(),
            configuring: None,
        })
    }

    /// The state of an interface that must exist and carry Ethernet frames.
    pub async fn link(&self, name: &str) -> Result<Link, DeviceError> {
        name::check(name)?;
        let error = |problem| DeviceError::new(name, "use the interface", problem);
        let message =
            read(&self.handle, name).await?.ok_or_else(|| error(Problem::NoSuchInterface))?;
        let kind = message.header.link_layer_type;
        if kind != LinkLayerType::Ether {
            return Err(error(Problem::NotEthernet(format!("{kind:?}").to_lowercase())));
        }
        parse(&message).ok_or_else(|| error(Problem::NotEthernet("without a MAC address".into())))
    }

    /// Whether there is an interface of this name, of whatever kind.
    pub async fn exists(&self, name: &str) -> Result<bool, DeviceError> {
        Ok(read(&self.handle, name).await?.is_some())
    }

    /// Reports changes of this interface from now on, starting from the state `known`.
    pub fn watch(&mut self, side: Side, name: &str, known: &Link) {
        self.watched.push(Watched { side, name: name.to_owned(), last: Some(known.clone()) });
    }

    /// Sets the TAP's MTU, address(es) and MAC and brings it up; remembers `settings` for
    /// [`Links::configure_tap`].
    pub async fn set_up_tap(
        &mut self,
        name: &str,
        settings: TapSettings,
        mtu: usize,
    ) -> Result<(), DeviceError> {
        let result = configure(&self.handle, name, &settings, mtu).await;
        self.settings = settings;
        result
    }

    /// Remembers the TAP's MAC for when it has to be re-created.
    pub fn keep_tap_mac(&mut self, mac: Mac) {
        self.settings.mac = Some(mac);
    }

    fn report(&mut self, side: Side, link: Option<Link>) {
        for watched in self.watched.iter_mut().filter(|watched| watched.side == side) {
            if watched.last != link {
                watched.last.clone_from(&link);
                self.queue.push_back(LinkChange { side, link: link.clone() });
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
        let name = name_of(message);
        let index = message.header.index;
        let found: Vec<_> = self
            .watched
            .iter()
            .filter_map(|watched| {
                let same_name = name == Some(&watched.name);
                let same_index = watched.last.as_ref().is_some_and(|last| last.index == index);
                match (same_name, same_index) {
                    // Incomplete messages (Wi-Fi events) say nothing about what we watch.
                    (true, _) if exists => parse(message).map(|link| (watched.side, Some(link))),
                    // Deleted, unless one of the same name has taken its place already.
                    (_, true) if !exists => Some((watched.side, None)),
                    // Renamed away.
                    (false, true) if name.is_some() => Some((watched.side, None)),
                    _ => None,
                }
            })
            .collect();
        for (side, link) in found {
            self.report(side, link);
        }
    }

    fn read_again(&mut self) {
        let handle = self.handle.clone();
        let wanted: Vec<_> =
            self.watched.iter().map(|watched| (watched.side, watched.name.clone())).collect();
        self.reading = Some(Box::pin(async move {
            let mut changes = Vec::with_capacity(wanted.len());
            for (side, name) in wanted {
                let link = read(&handle, &name).await?.as_ref().and_then(parse);
                changes.push(LinkChange { side, link });
            }
            Ok(changes)
        }));
    }

    /// Drives what is under way; ready when the connection was replaced or a reading ended.
    fn poll_background(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(recovery) = &mut self.recovery {
            match ready!(recovery.as_mut().poll(cx)) {
                Ok((handle, messages)) => {
                    self.recovery = None;
                    (self.handle, self.messages) = (handle, messages);
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
                Ok(changes) => changes.into_iter().for_each(|c| self.report(c.side, c.link)),
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

    fn configure_tap(&mut self, mtu: usize) {
        let tap = self.watched.iter().find(|watched| watched.side == Side::Tap);
        let Some(name) = tap.map(|watched| watched.name.clone()) else {
            return;
        };
        if let Some(running) = self.configuring.take() {
            running.abort();
        }
        let (handle, settings) = (self.handle.clone(), self.settings.clone());
        self.configuring = Some(tokio::spawn(async move {
            if let Err(error) = configure(&handle, &name, &settings, mtu).await {
                warn!(tap = %name, mtu, cause = %error.source, "{error}");
            }
        }));
    }
}

impl Drop for Netlink {
    fn drop(&mut self) {
        if let Some(running) = &self.configuring {
            running.abort();
        }
    }
}

async fn read(handle: &Handle, name: &str) -> Result<Option<LinkMessage>, DeviceError> {
    match handle.link().get().match_name(name).execute().try_next().await {
        Ok(message) => Ok(message),
        Err(error) => match to_io(error) {
            error if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            error => Err(DeviceError::new(name, "read the state of the interface", error)),
        },
    }
}

async fn configure(
    handle: &Handle,
    name: &str,
    settings: &TapSettings,
    mtu: usize,
) -> Result<(), DeviceError> {
    let failed = |operation| {
        move |error: rtnetlink::Error| {
            let error = to_io(error);
            let problem = match error.raw_os_error() {
                Some(libc::EPERM) => Problem::MissingCapability("CAP_NET_ADMIN"),
                _ => Problem::Io(error),
            };
            DeviceError::new(name, operation, problem)
        }
    };
    let Some(message) = read(handle, name).await? else {
        return Err(DeviceError::new(name, "configure the TAP", Problem::NoSuchInterface));
    };
    let index = message.header.index;
    let mut wanted =
        LinkUnspec::new_with_index(index).mtu(u32::try_from(mtu).unwrap_or(u32::MAX)).up();
    if let Some(mac) = settings.mac {
        wanted = wanted.address(mac.0.to_vec());
    }
    handle
        .link()
        .set(wanted.build())
        .execute()
        .await
        .map_err(failed("set MTU, address and state of the TAP"))?;
    for address in &settings.addresses {
        handle
            .address()
            .add(index, address.ip, address.prefix)
            .replace()
            .execute()
            .await
            .map_err(failed("add an IP address to the TAP"))?;
    }
    Ok(())
}

fn to_io(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}

fn name_of(message: &LinkMessage) -> Option<&String> {
    message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    })
}

/// The state in a message; `None` if it is not complete.
fn parse(message: &LinkMessage) -> Option<Link> {
    let (mut mac, mut mtu) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::Address(bytes) => mac = <[u8; 6]>::try_from(bytes.as_slice()).ok(),
            LinkAttribute::Mtu(value) => mtu = usize::try_from(*value).ok(),
            _ => {}
        }
    }
    // Running: the operational state is up or unknown, so there is a carrier (RFC 2863).
    let up = message.header.flags.contains(LinkFlags::Up | LinkFlags::Running);
    Some(Link { index: message.header.index, mac: Mac(mac?), mtu: mtu?, up })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_the_usual_prefix() {
        for (text, full) in [
            ("10.1.2.3", "10.1.2.3/24"),
            ("10.1.2.3/8", "10.1.2.3/8"),
            ("fd00::1", "fd00::1/64"),
            ("fd00::1/128", "fd00::1/128"),
        ] {
            assert_eq!(text.parse::<TapAddress>().unwrap().to_string(), full);
        }
    }

    #[test]
    fn refuses_what_no_interface_can_have() {
        for text in [
            "",
            "10.0.0",
            "10.0.0.1/33",
            "10.0.0.1/0",
            "10.0.0.1/",
            "10.0.0.1/x",
            "fd00::1/129",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "ff02::1",
            "127.0.0.1",
            "::1",
            "10.0.0.1/24/1",
            "host",
        ] {
            let error = text.parse::<TapAddress>().unwrap_err().to_string();
            assert!(error.contains("expected ADDR[/PREFIX]"), "{error}");
        }
    }

    #[test]
    fn a_link_is_up_only_with_carrier_and_incomplete_messages_say_nothing() {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.header.flags = LinkFlags::Up;
        assert_eq!(parse(&message), None);
        message.attributes.push(LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]));
        message.attributes.push(LinkAttribute::Mtu(1500));
        assert!(!parse(&message).unwrap().up);
        message.header.flags |= LinkFlags::Running;
        let expected = Link { index: 7, mac: Mac([2, 0, 0, 0, 0, 1]), mtu: 1500, up: true };
        assert_eq!(parse(&message), Some(expected));
    }
}
