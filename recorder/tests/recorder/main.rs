//! Recordings: what is written, kept, read back and replayed. Run one module with
//! `cargo test -p recorder --test recorder NAME::`.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;
mod copies;
#[cfg(feature = "cli")]
mod links;
#[cfg(feature = "cli")]
mod living;
mod properties;
mod ring;
#[cfg(feature = "cli")]
mod sim_replay;
mod snap;
#[cfg(feature = "cli")]
mod tools;
mod written_over;
