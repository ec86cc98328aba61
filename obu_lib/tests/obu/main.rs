//! What an OBU does, told as a conversation: what it hears, what it answers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod again;
mod answering;
mod at_risk;
mod busy_crowd;
mod choosing;
mod count;
mod counters;
mod crowd_moves;
mod crowd_waits;
mod data;
mod frames;
mod full_air;
mod hand_over;
mod inside;
mod leaving;
mod many_rsus;
mod registration;
mod relay;
mod signal;
mod talk;
mod telling;
mod unproven_rsu;
mod upstream;
