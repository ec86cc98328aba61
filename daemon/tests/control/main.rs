//! The control socket of a node that runs between two memory devices, as its clients see it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod asking;
mod reconnecting;
mod scene;
mod subscribing;
