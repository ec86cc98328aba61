//! What an RSU does: what it hears and reads, what it answers and writes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod beating;
mod clients;
mod counters;
mod floods;
mod frames;
mod identity;
mod inside;
mod lengths;
mod moving;
mod ownership;
mod pace;
mod pins;
mod registering;
mod standby;
mod talk;
mod ways;
