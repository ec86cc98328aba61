//! The tree of upstreams: which way answers and frames take down to an OBU, which words change it,
//! and which do not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod again;
mod asking;
mod doubtful;
mod floods;
mod leaving;
mod room;
mod seen;
#[path = "../talk/mod.rs"]
mod talk;
mod telling;
mod tree;
