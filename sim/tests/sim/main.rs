//! Real nodes in simulated worlds: each module is one question. Run one of them with
//! `cargo test -p sim --test sim NAME::`.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
#![allow(unreachable_pub, reason = "modules of a test")]

mod announce;
mod cell;
mod common;
mod convergence;
mod corridor;
mod crowd;
mod every_length;
mod failover;
mod handover;
mod host;
mod hostile;
mod intervals;
mod loss;
mod medium;
mod minimal;
mod mobility;
mod mtu;
mod pace;
mod position;
mod puppet;
mod radio;
mod random;
mod relay_moves;
mod repeat;
mod restart;
mod same_id;
mod search;
mod small;
mod snapshot;
mod start;
mod world;
