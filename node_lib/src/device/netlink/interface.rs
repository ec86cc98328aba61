//! One interface as the kernel describes it, and questions about it.

use std::io;
use std::net::IpAddr;

use futures_util::stream::TryStreamExt;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{
    InfoKind, InfoPortKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::{Handle, LinkGetRequest};

use crate::device::error::{DeviceError, Problem};
use crate::device::{LinkState, name};
use crate::mac::Mac;

/// What a message says about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) link: LinkState,
    /// Index of the interface it is a port of.
    pub(super) controller: Option<u32>,
    /// That one is a bridge.
    pub(super) is_bridge_port: bool,
}

pub(super) async fn read(handle: &Handle, name: &str) -> Result<Option<LinkMessage>, DeviceError> {
    first(name, handle.link().get().match_name(name)).await
}

/// Whether there is an interface of this index.
pub(super) async fn has_index(handle: &Handle, index: u32) -> Result<bool, DeviceError> {
    let found = first(&index.to_string(), handle.link().get().match_index(index)).await?;
    Ok(found.is_some())
}

async fn first(name: &str, request: LinkGetRequest) -> Result<Option<LinkMessage>, DeviceError> {
    match request.execute().try_next().await {
        Ok(message) => Ok(message),
        Err(error) => match to_io(error) {
            error if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            error => Err(DeviceError::new(name, "read the state of the interface", error)),
        },
    }
}

pub(super) async fn is_unused(handle: &Handle, name: &str) -> Result<bool, DeviceError> {
    let error = |error| DeviceError::new(name, "look who uses the interface", to_io(error));
    let Some(message) = read(handle, name).await? else { return Ok(false) };
    let index = message.header.index;
    if parse(&message).is_some_and(|seen| seen.controller.is_some()) {
        return Ok(false);
    }
    let mut addresses = handle.address().get().set_link_index_filter(index).execute();
    while let Some(address) = addresses.try_next().await.map_err(error)? {
        let is_given = address.attributes.iter().any(|attribute| match attribute {
            AddressAttribute::Address(IpAddr::V6(ip)) => !ip.is_unicast_link_local(),
            AddressAttribute::Address(IpAddr::V4(_)) => true,
            _ => false,
        });
        if is_given {
            return Ok(false);
        }
    }
    let mut links = handle.link().get().execute();
    while let Some(link) = links.try_next().await.map_err(error)? {
        if link.attributes.contains(&LinkAttribute::Link(index)) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) async fn find_bridge(handle: &Handle, name: &str) -> Result<LinkState, DeviceError> {
    name::check(name)?;
    let error = |problem| DeviceError::new(name, "use the bridge", problem);
    let message = read(handle, name).await?.ok_or_else(|| error(Problem::NoSuchInterface))?;
    match parse(&message) {
        Some(seen) if kind_of(&message) == Some(&InfoKind::Bridge) => Ok(seen.link),
        _ => Err(error(Problem::NotBridge)),
    }
}

pub(super) fn to_io(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}

pub(super) fn name_of(message: &LinkMessage) -> Option<&String> {
    message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    })
}

pub(super) fn kind_of(message: &LinkMessage) -> Option<&InfoKind> {
    infos_of(message).find_map(|info| match info {
        LinkInfo::Kind(kind) => Some(kind),
        _ => None,
    })
}

/// What is said of the kind of the interface, and of what it is a port of.
pub(super) fn infos_of(message: &LinkMessage) -> impl Iterator<Item = &LinkInfo> {
    let infos = message.attributes.iter().filter_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => Some(infos),
        _ => None,
    });
    infos.flatten()
}

/// The state in a message; `None` if it is not complete.
pub(super) fn parse(message: &LinkMessage) -> Option<Seen> {
    let (mut mac, mut mtu, mut controller) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::Address(bytes) => mac = <[u8; 6]>::try_from(bytes.as_slice()).ok(),
            LinkAttribute::Mtu(value) => mtu = usize::try_from(*value).ok(),
            LinkAttribute::Controller(index) => controller = Some(*index),
            _ => {}
        }
    }
    // Running: the operational state is up or unknown, so there is a carrier (RFC 2863).
    let up = message.header.flags.contains(LinkFlags::Up | LinkFlags::Running);
    let link = LinkState { index: message.header.index, mac: Mac(mac?), mtu: mtu?, up };
    let port_of_bridge = LinkInfo::PortKind(InfoPortKind::Bridge);
    let is_bridge_port = infos_of(message).any(|info| *info == port_of_bridge);
    Some(Seen { link, controller: controller.filter(|index| *index != 0), is_bridge_port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_up_only_with_carrier_and_incomplete_messages_say_nothing() {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.header.flags = LinkFlags::Up;
        assert_eq!(parse(&message), None);
        message.attributes.push(LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]));
        message.attributes.push(LinkAttribute::Mtu(1500));
        assert!(!parse(&message).unwrap().link.up);
        message.header.flags |= LinkFlags::Running;
        let expected = LinkState { index: 7, mac: Mac([2, 0, 0, 0, 0, 1]), mtu: 1500, up: true };
        let seen = Seen { link: expected, controller: None, is_bridge_port: false };
        assert_eq!(parse(&message), Some(seen));
    }
}
