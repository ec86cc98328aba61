//! The flight recorder: what went into a node and what came out of it.
//!
//! A node is a pure state machine, so its inputs in order, its settings and its seed are all there
//! is to know. From a recording the same node can be made again, and does the same again, to the
//! byte.
//!
//! * [`recorded::Recorded`] stands between the packet loop and the node and writes to a
//!   [`tape::Tape`]: no allocation, no waiting.
//! * [`recorder::Recorder`] owns the thread that takes blocks from there to disk; [`segment`] says
//!   which files there are, and which go.
//! * [`record`] and [`block`] have the format, as tables; [`header`] what a recording says about
//!   itself, [`json`] the form for people.
//! * [`read::Recording`] reads either, up to the last whole block.
//! * `cli` (feature `cli`) has the tools: `info`, `verify`, `repair`, `cut`, `export`, `page`,
//!   `replay`, `diff`, and `links`, which makes a scenario of a drive.

mod asked;
pub mod block;
pub mod decode;
pub mod encode;
pub mod event;
mod hand;
pub mod header;
pub mod json;
mod memory;
pub mod read;
pub mod record;
pub mod recorded;
pub mod recorder;
pub mod segment;
mod shared;
pub mod tape;
mod text;
pub mod write;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod export;
#[cfg(feature = "cli")]
pub mod links;
#[cfg(feature = "cli")]
pub mod page;
#[cfg(feature = "cli")]
pub mod replay;

pub use header::{RecordingHeader, Role};
pub use recorded::{Recorded, Switch};
pub use recorder::{PanicGuard, Recorder};
pub use segment::Limits;
pub use shared::Stats;
pub use tape::{Handle, Tape};
