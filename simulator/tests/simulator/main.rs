//! `v2xsim` and what it is made of. Run one module with `cargo test -p simulator --test simulator
//! NAME::`.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod batman;
mod busy_crowd;
mod cli;
mod ideal;
mod mobility;
mod page;
mod runs;
mod scenario;
mod sweep;
