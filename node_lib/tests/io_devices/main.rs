//! What the devices do with a real kernel: TAP, packet socket, netlink, in namespaces of their own.
//!
//! Each test runs on a thread in a new network namespace, which vanishes with it. That needs
//! CAP_SYS_ADMIN, and /dev/net/tun for the TAPs: run as root. There is no skipping: a test that
//! cannot run has failed. `ip` (iproute2) plays the operator.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod bench;
mod every_device;
#[path = "../io_support/mod.rs"]
mod io_support;
mod netlink;
mod radio;
mod radio_queues;
mod tap;
