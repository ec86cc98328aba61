//! What an RSU does: what it hears and reads, what it answers and writes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod beating;
mod frames;
mod identity;
mod moving;
mod registering;
mod standby;
#[path = "../talk/mod.rs"]
mod talk;
