//! Segmentation offload against an independent opinion: frames are built, and what comes out is
//! read and checked, by `etherparse`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, and that is all"
)]

mod frames;
mod join;
mod split;
