//! The loop that drives a node over devices.

pub mod mtu;
