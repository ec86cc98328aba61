//! [`DeviceError`]: which interface, what was tried, what was wrong and what was expected.

use std::io;

use super::tap_owner::TapOwner;

/// An interface could not be opened, read or configured.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: cannot {operation}")]
pub struct DeviceError {
    /// The interface, or the resource that stands for it.
    pub interface: String,
    /// What was tried, as a verb phrase.
    pub operation: &'static str,
    /// What was wrong, and what was expected.
    pub source: Problem,
}

/// What was wrong, and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The name cannot be that of any interface.
    #[error("the name is {0} bytes long; interface names have 1 to 15")]
    NameLength(usize),
    /// The name has a character the kernel refuses or expands.
    #[error(
        "the name contains {0:?}; interface names have no space, '/', ':', '%' and are not '.' or \
         '..'"
    )]
    NameCharacter(char),
    /// There is no such interface.
    #[error("no such interface in this network namespace; `ip link` lists those there are")]
    NoSuchInterface,
    /// The interface does not carry Ethernet frames.
    #[error(
        "it is of type {0}; expected an Ethernet-like interface (wired, Wi-Fi in OCB mode, veth, …)"
    )]
    NotEthernet(String),
    /// The interface is no monitor interface.
    #[error(
        "it is of link type {0}; expected a monitor interface with radiotap headers (type 803), as \
         `iw dev wlan0 interface add mon0 type monitor` makes one"
    )]
    NotMonitor(u16),
    /// Nobody keeps statistics of 802.11 stations for the interface.
    #[error("{0}; expected an interface of an 802.11 driver with station statistics (nl80211)")]
    NoStationStatistics(String),
    /// A name of ours is taken by an interface that is not a TAP.
    #[error(
        "an interface of this name exists and is not a TAP, or one with several queues; choose \
         another name with --tap-name"
    )]
    NotTap,
    /// The TAP was made for programs that open it several times.
    #[error(
        "it was made with several queues; expected one: delete it and make it again without \
         `multi_queue`, or choose another name with --tap-name"
    )]
    SeveralQueues,
    /// The TAP is for somebody else.
    #[error(
        "it is for {0} only, and CAP_NET_ADMIN is missing; start it as such, grant the capability, \
         or make the TAP again for who starts it (`ip tuntap add dev NAME mode tap user USER`)"
    )]
    NotOurs(TapOwner),
    /// What is to be the bridge is something else.
    #[error("it is not a bridge; `ip link add NAME type bridge` makes one")]
    NotBridge,
    /// Another process has the TAP open.
    #[error("another process has it open; choose another name with --tap-name")]
    Busy,
    /// A capability is missing.
    #[error(
        "{0} is missing; grant it, for example with `setcap cap_net_admin,cap_net_raw+ep FILE`"
    )]
    MissingCapability(&'static str),
    /// The kernel has no TUN/TAP driver, or the device node is absent.
    #[error(
        "/dev/net/tun does not exist; load the module `tun` or create the device node (10, 200)"
    )]
    NoTunDevice,
    /// The device node may not be opened by this user.
    #[error(
        "/dev/net/tun may not be opened by this user; expected read and write permission on it"
    )]
    TunNotOpenable,
    /// Segmentation offload was demanded and cannot be had.
    #[error(
        "no segmentation offload ({0}); expected Linux with vnet headers on TAPs, or --tap-offload \
         auto or off"
    )]
    NoOffload(io::Error),
    /// Radio and TAP MTU do not fit together.
    #[error(transparent)]
    Mtu(#[from] crate::transport::mtu::MtuError),
    /// Anything else the kernel said.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl DeviceError {
    /// An error of `interface` while doing `operation`.
    pub(crate) fn new(
        interface: impl Into<String>,
        operation: &'static str,
        source: impl Into<Problem>,
    ) -> Self {
        Self { interface: interface.into(), operation, source: source.into() }
    }

    /// Lack of a permission, rather than of an interface, was the reason.
    pub fn is_permission(&self) -> bool {
        match &self.source {
            Problem::MissingCapability(_) | Problem::TunNotOpenable | Problem::NotOurs(_) => true,
            Problem::Io(error) => error.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }

    /// What the user asked for can never work, whatever the state of the machine.
    pub fn is_usage(&self) -> bool {
        matches!(self.source, Problem::NameLength(_) | Problem::NameCharacter(_) | Problem::Mtu(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_permission_usage_and_the_rest_apart() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        let error = |source: Problem| DeviceError::new("tap0", "be created", source);
        assert!(error(denied.into()).is_permission());
        assert!(error(Problem::TunNotOpenable).is_permission());
        assert!(error(Problem::NotOurs(TapOwner::default())).is_permission());
        assert!(error(Problem::NameLength(16)).is_usage());
        let busy = error(Problem::Busy);
        assert!(!busy.is_permission() && !busy.is_usage());
    }
}
