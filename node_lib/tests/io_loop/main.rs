//! The loop that drives a node, with a node and devices made for the purpose.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod bench;
mod bundles;
mod commands;
mod devices;
mod full_radio;
mod given_up;
mod inside;
mod interfaces;
mod passed_on;
mod rest;
mod script;
mod told;
mod turn;
