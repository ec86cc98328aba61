//! Interfaces of a [`Netns`], by rtnetlink.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::TryStreamExt;
use node_lib::Mac;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkMessage, State,
};
use rtnetlink::packet_route::neighbour::{NeighbourAttribute, NeighbourMessage};
use rtnetlink::{Handle, LinkBridge, LinkBridgePort, LinkMessageBuilder, LinkUnspec};

use crate::arena::netns::Netns;
use crate::wait::wait_until;

/// One end of a veth pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Where it goes.
    pub ns: &'a Netns,
    /// Its name there.
    pub name: &'a str,
    /// Its address; the kernel invents one when absent.
    pub mac: Option<Mac>,
    /// Its MTU.
    pub mtu: u32,
}

/// What the kernel says about an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAttributes {
    /// Interface index.
    pub index: u32,
    /// Hardware address.
    pub mac: Mac,
    /// MTU.
    pub mtu: u32,
    /// Administratively up.
    pub is_up: bool,
    /// Operationally up (RFC 2863): what is sent now is not dropped on the way to the cable.
    pub is_operational: bool,
    /// Index of the bridge it is a port of.
    pub bridge: Option<u32>,
}

/// Frames an interface has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Out of it.
    pub sent: u64,
    /// Into it.
    pub received: u64,
}

impl Frames {
    /// Both ways.
    pub fn total(self) -> u64 {
        self.sent + self.received
    }
}

/// How long an interface that somebody else creates may take to appear.
const APPEAR_WITHIN: Duration = Duration::from_secs(5);

/// Creates a veth pair between two namespaces, both ends up and ready to carry frames.
pub fn create_veth(a: VethEnd<'_>, b: VethEnd<'_>) -> Result<()> {
    let end = |end: VethEnd<'_>| {
        let builder = LinkMessageBuilder::<LinkUnspec>::new().name(end.name).mtu(end.mtu);
        match end.mac {
            Some(mac) => builder.address(mac.0.to_vec()),
            None => builder,
        }
    };
    let peer = end(b).setns_by_fd(b.ns.as_fd().as_raw_fd()).build();
    let info = InfoData::Veth(InfoVeth::Peer(peer));
    let mut message = end(a).build();
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        rtnetlink::packet_route::link::LinkInfo::Kind(InfoKind::Veth),
        rtnetlink::packet_route::link::LinkInfo::Data(info),
    ]));
    a.ns.netlink(async |handle| Ok(handle.link().add(message).execute().await?)).with_context(
        || format!("veth {}:{} to {}:{}", a.ns.name(), a.name, b.ns.name(), b.name),
    )?;
    // An end can only come up once the other exists.
    a.ns.set_up(a.name)?;
    b.ns.set_up(b.name)?;
    // The second end has its queue at once. The first gets it in the background; frames are dropped
    // until then.
    a.ns.wait_until_operational(a.name)
}

impl Netns {
    /// Creates a bridge, up: no spanning tree, no multicast snooping (nobody queries here).
    pub fn create_bridge(&self, name: &str, mac: Mac) -> Result<()> {
        let message = LinkBridge::new(name)
            .address(mac.0.to_vec())
            .mcast_snooping(false)
            .forward_delay(0)
            .up()
            .build();
        self.netlink(async |handle| Ok(handle.link().add(message).execute().await?))
            .with_context(|| format!("bridge {}:{name}", self.name()))
    }

    /// Moves an interface that is down to another namespace, under another name.
    pub fn hand_over(&self, name: &str, to: &Netns, new_name: &str) -> Result<()> {
        let to = to.as_fd().as_raw_fd();
        self.set(name, "namespace", |link| link.setns_by_fd(to).name(new_name.to_owned()))
    }

    /// Gives an interface another name. It is down meanwhile, for else older kernels refuse.
    pub fn rename(&self, name: &str, new_name: &str) -> Result<()> {
        self.set_down(name)?;
        self.set(name, "another name", |link| link.name(new_name.to_owned()))?;
        self.set_up(new_name)
    }

    /// Sets an interface up.
    pub fn set_up(&self, name: &str) -> Result<()> {
        self.set(name, "up", LinkMessageBuilder::up)
    }

    /// Sets an interface down.
    pub fn set_down(&self, name: &str) -> Result<()> {
        self.set(name, "down", LinkMessageBuilder::down)
    }

    /// Sets the MTU of an interface.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<()> {
        self.set(name, "mtu", |link| link.mtu(mtu))
    }

    /// Sets the hardware address of an interface.
    pub fn set_mac(&self, name: &str, mac: Mac) -> Result<()> {
        self.set(name, "address", |link| link.address(mac.0.to_vec()))
    }

    /// Makes an interface a port of a bridge. A port that is operational forwards at once; the
    /// bridge itself becomes operational some time after its first such port.
    pub fn enslave(&self, name: &str, bridge: &str) -> Result<()> {
        let bridge = self.state(bridge)?.index;
        self.set(name, "bridge", |link| link.controller(bridge))
    }

    /// Takes a port out of its bridge.
    pub fn release(&self, name: &str) -> Result<()> {
        self.set(name, "no bridge", |link| link.nocontroller())
    }

    /// Keeps frames that come in through this port of a bridge from other such ports: they reach
    /// only the bridge itself, and ports that are not isolated.
    pub fn isolate(&self, name: &str) -> Result<()> {
        let message = LinkBridgePort::new(self.state(name)?.index).isolated(true).build();
        self.netlink(async |handle| Ok(handle.link().set_port(message).execute().await?))
            .with_context(|| format!("isolate {}:{name}", self.name()))
    }

    /// Deletes an interface (of a veth pair: both ends).
    pub fn delete(&self, name: &str) -> Result<()> {
        let index = self.state(name)?.index;
        self.netlink(async |handle| Ok(handle.link().del(index).execute().await?))
            .with_context(|| format!("delete {}:{name}", self.name()))
    }

    /// Adds an address to an interface.
    pub fn add_address(&self, name: &str, address: IpAddr, prefix_len: u8) -> Result<()> {
        let index = self.state(name)?.index;
        self.netlink(async |handle| {
            Ok(handle.address().add(index, address, prefix_len).replace().execute().await?)
        })
        .with_context(|| format!("address {address}/{prefix_len} on {}:{name}", self.name()))
    }

    /// The state of an interface, or `None` when there is no such interface.
    pub fn find(&self, name: &str) -> Result<Option<LinkAttributes>> {
        Ok(self.links()?.into_iter().find(|(have, _)| have == name).map(|(_, state)| state))
    }

    /// The state of an interface that must exist.
    pub fn state(&self, name: &str) -> Result<LinkAttributes> {
        match self.find(name)? {
            Some(state) => Ok(state),
            None => bail!("{} has no interface {name}", self.name()),
        }
    }

    /// Waits until a daemon has created an interface.
    pub fn wait_for(&self, name: &str) -> Result<LinkAttributes> {
        let what = format!("interface {name} appears in {}", self.name());
        wait_until(&what, APPEAR_WITHIN, || self.find(name))
    }

    /// Waits until an interface carries what is sent through it. The kernel sees to that in the
    /// background, at times only once a second.
    pub fn wait_until_operational(&self, name: &str) -> Result<()> {
        let what = format!("{}:{name} is operational", self.name());
        wait_until(&what, APPEAR_WITHIN, || Ok(self.state(name)?.is_operational.then_some(())))
    }

    /// The port behind which a bridge of this namespace knows `mac` (`bridge fdb show`).
    pub fn bridge_port_of(&self, mac: Mac) -> Result<Option<String>> {
        let links = self.links()?;
        let entries = self.netlink(async |handle| {
            let request = handle.neighbours().get().set_address_family(AddressFamily::Bridge);
            Ok(request.execute().try_collect::<Vec<_>>().await?)
        })?;
        let is_ours = |entry: &&NeighbourMessage| mac_of(entry) == Some(mac);
        let port = entries.iter().find(is_ours).map(|entry| entry.header.ifindex);
        Ok(port.and_then(|port| {
            links.into_iter().find(|(_, state)| state.index == port).map(|(name, _)| name)
        }))
    }

    /// Frames an interface has sent since it exists.
    pub fn frames_sent(&self, name: &str) -> Result<u64> {
        Ok(self.frames(name)?.sent)
    }

    /// Frames an interface has carried since it exists.
    pub fn frames(&self, name: &str) -> Result<Frames> {
        let is_it = |link: &&LinkMessage| {
            link.attributes.iter().any(|a| matches!(a, LinkAttribute::IfName(have) if have == name))
        };
        let links = self.link_messages()?;
        let link = links.iter().find(is_it);
        let count = link.and_then(|link| {
            link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Stats64(count) => {
                    Some(Frames { sent: count.tx_packets, received: count.rx_packets })
                }
                _ => None,
            })
        });
        count.with_context(|| format!("{} has no counters of {name}", self.name()))
    }

    pub(crate) fn links(&self) -> Result<Vec<(String, LinkAttributes)>> {
        Ok(self.link_messages()?.iter().map(parse_link).collect())
    }

    fn link_messages(&self) -> Result<Vec<LinkMessage>> {
        self.netlink(async |handle| {
            Ok(handle.link().get().execute().try_collect::<Vec<_>>().await?)
        })
    }

    fn set(
        &self,
        name: &str,
        what: &str,
        change: impl FnOnce(LinkMessageBuilder<LinkUnspec>) -> LinkMessageBuilder<LinkUnspec>,
    ) -> Result<()> {
        let index = self.state(name)?.index;
        let message = change(LinkMessageBuilder::<LinkUnspec>::new().index(index)).build();
        self.netlink(async |handle| Ok(handle.link().set(message).execute().await?))
            .with_context(|| format!("set {what} on {}:{name}", self.name()))
    }

    fn netlink<T: Send>(&self, work: impl AsyncFnOnce(Handle) -> Result<T> + Send) -> Result<T> {
        self.run(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
            runtime.block_on(async {
                let (connection, handle, _) = rtnetlink::new_connection()?;
                let connection = tokio::spawn(connection);
                let done = work(handle).await;
                connection.abort();
                done
            })
        })
    }
}

/// The address an entry of a bridge's table is about.
pub(crate) fn mac_of(entry: &NeighbourMessage) -> Option<Mac> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok().map(Mac),
        _ => None,
    })
}

fn parse_link(message: &LinkMessage) -> (String, LinkAttributes) {
    let mut name = String::new();
    let mut state = LinkAttributes {
        index: message.header.index,
        mac: Mac::ZERO,
        mtu: 0,
        is_up: message.header.flags.contains(LinkFlags::Up),
        is_operational: false,
        bridge: None,
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(have) => name.clone_from(have),
            LinkAttribute::Mtu(mtu) => state.mtu = *mtu,
            LinkAttribute::OperState(have) => state.is_operational = *have == State::Up,
            LinkAttribute::Controller(bridge) => state.bridge = Some(*bridge),
            LinkAttribute::Address(mac) => {
                state.mac = mac.as_slice().try_into().map_or(Mac::ZERO, Mac);
            }
            _ => {}
        }
    }
    (name, state)
}
