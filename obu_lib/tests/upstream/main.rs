//! Through whom an OBU sends: how closely it watches its upstream, and when it prefers another one.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod asking;
mod beats;
mod better;
mod leaving;
mod speaking;
#[path = "../talk/mod.rs"]
mod talk;
