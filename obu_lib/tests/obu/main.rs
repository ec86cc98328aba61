//! What an OBU does, told as a conversation: what it hears, what it answers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod answering;
mod choosing;
mod crowd_moves;
mod crowd_waits;
mod frames;
mod leaving;
#[path = "../talk/mod.rs"]
mod talk;
mod telling;
