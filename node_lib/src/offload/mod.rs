//! Segmentation offload towards the host: super-frames to frames and back.
//!
//! A TAP opened with `IFF_VNET_HDR` and the offloads of `TUNSETOFFLOAD` gives and takes
//! *super-frames*: up to 64 KiB of one TCP flow under one header, with the checksum left half done.
//! The radio carries only frames. So what the host sends is split here, and what comes for it is
//! joined:
//!
//! ```text
//!  host ══ super-frame + vnet header ══► [`Segments`] ── frames ──► radio
//!  host ◄══ super-frame + vnet header ══ [`Joiner`]   ◄── frames ── radio
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | [`vnet`] | the 10 bytes in front of each frame that say what is left to do |
//! | [`checksum`] | the Internet checksum, whole and in parts |
//! | [`split`] | a super-frame to frames, as the kernel's own segmentation (GSO) has them |
//! | [`join`] | frames to super-frames, by the rules of the kernel's receive coalescing (GRO) |
//!
//! Splitting what was joined gives the same frames, byte for byte, in the same order within each
//! flow. Nothing here does I/O, allocates after warm-up, or panics on what it is given.

pub mod checksum;
mod gso;
pub(crate) mod headers;
pub mod join;
mod malformed;
pub mod split;
pub mod vnet;

pub use checksum::Sum;
pub use gso::Gso;
pub use join::{Joiner, Write};
pub use malformed::Malformed;
pub use split::{Segments, complete};
pub use vnet::VnetHeader;
