//! Gives a TAP what it lacks of its settings.

use futures_util::stream::TryStreamExt;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{LinkFlags, LinkMessage};
use rtnetlink::{Handle, LinkUnspec};

use super::address::TapAddress;
use super::home::Home;
use super::interface::{find_bridge, parse, read, to_io};
use crate::device::error::{DeviceError, Problem};
use crate::mac::Mac;

/// What the TAP is to be like, apart from its MTU.
#[derive(Clone, Debug, Default)]
pub struct TapSettings {
    /// Its addresses.
    pub addresses: Vec<TapAddress>,
    /// Its MAC, so that a TAP that had to be re-created is the same for its neighbours.
    pub mac: Option<Mac>,
    /// The bridge it is to be in: the TAP is up only while it is a port of it and it is up. Without
    /// one the TAP is up when it is up itself, once it is where somebody had put the one before it.
    pub bridge: Option<String>,
}

/// What a TAP lacks of its settings. What it has already is left alone: then a TAP that the
/// administrator has prepared needs no privilege.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    mtu: Option<usize>,
    mac: Option<Mac>,
    up: bool,
    controller: Option<u32>,
    addresses: Vec<TapAddress>,
}

impl Wanted {
    pub(super) async fn of(
        handle: &Handle,
        name: &str,
        message: &LinkMessage,
        settings: &TapSettings,
        mtu: usize,
        home: Home,
    ) -> Result<Self, DeviceError> {
        let error = |problem| DeviceError::new(name, "configure the TAP", problem);
        let tap = parse(message).ok_or_else(|| error(Problem::NotTap))?;
        let mut wanted = Self {
            mtu: (tap.link.mtu != mtu).then_some(mtu),
            mac: settings.mac.filter(|mac| tap.link.mac != *mac),
            up: !message.header.flags.contains(LinkFlags::Up),
            controller: home.way_back(&tap),
            ..Self::default()
        };
        if let Some(bridge) = &settings.bridge {
            let bridge = find_bridge(handle, bridge).await?.index;
            wanted.controller = Some(bridge).filter(|_| tap.controller != Some(bridge));
        }
        if !settings.addresses.is_empty() {
            let index = message.header.index;
            let mut there = handle.address().get().set_link_index_filter(index).execute();
            wanted.addresses.clone_from(&settings.addresses);
            while let Some(has) = there
                .try_next()
                .await
                .map_err(|error| DeviceError::new(name, "read the addresses", to_io(error)))?
            {
                let is_there = |wanted: &TapAddress| {
                    has.header.prefix_len == wanted.prefix
                        && has.attributes.contains(&AddressAttribute::Address(wanted.ip))
                };
                wanted.addresses.retain(|address| !is_there(address));
            }
        }
        Ok(wanted)
    }

    pub(super) fn is_nothing(&self) -> bool {
        let Self { mtu, mac, up, controller, addresses } = self;
        mtu.is_none() && mac.is_none() && !up && controller.is_none() && addresses.is_empty()
    }
}

pub(super) async fn configure(
    handle: &Handle,
    name: &str,
    settings: &TapSettings,
    mtu: usize,
    home: Home,
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
    let wanted = Wanted::of(handle, name, &message, settings, mtu, home).await?;
    if wanted.mtu.is_some() || wanted.mac.is_some() || wanted.up {
        let mut change = LinkUnspec::new_with_index(index).up();
        if let Some(mtu) = wanted.mtu {
            change = change.mtu(u32::try_from(mtu).unwrap_or(u32::MAX));
        }
        if let Some(mac) = wanted.mac {
            change = change.address(mac.0.to_vec());
        }
        let set = handle.link().set(change.build()).execute().await;
        set.map_err(failed("set MTU, address and state of the TAP"))?;
    }
    for address in &wanted.addresses {
        handle
            .address()
            .add(index, address.ip, address.prefix)
            .replace()
            .execute()
            .await
            .map_err(failed("add an IP address to the TAP"))?;
    }
    if let Some(bridge) = wanted.controller {
        let change = LinkUnspec::new_with_index(index).controller(bridge).build();
        let set = handle.link().set(change).execute().await;
        set.map_err(failed("put the TAP into its bridge"))?;
    }
    Ok(())
}
