//! The seam between a node and whoever drives it, and the parts both control planes are made of.

pub mod counters;
pub mod event;
pub mod node;
