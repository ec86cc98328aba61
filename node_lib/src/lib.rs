//! What the two roles of a V2X node share.
//!
//! | module | what it is |
//! |---|---|
//! | [`messages`] | every frame on the radio: one documented format per file |
//! | [`control`] | the [`control::node::Node`] seam and the parts both control planes are made of |
//! | [`address_announcement`] | how a host says, unasked, which address it has |
//! | [`buffer_pool`] | thread-local buffers of 256, 512 and 1500 bytes |
//! | [`offload`] | super-frames of a TAP with segmentation offload, split and joined |
//! | [`mac`], [`order`], [`time`] | addresses and ids; which message is newer; time as a number |
//! | [`settings`] | what the operator decides: defaults and ranges for both roles |
//! | [`start`] | what a node finds at its start, and how it counts its starts |
//! | [`transport`] | between a node and its interfaces: bundles, what a full radio does, MTUs |
//! | `device`, `runtime` | TAP, packet socket and the loop that drives a node over them (feature `io`) |
//!
//! A node is a state machine: time, randomness and frames go in, replies come out in order. It
//! never reads a clock or a socket, so the daemon, the simulator and a test run the same code.

pub mod address_announcement;
pub mod buffer_pool;
pub mod control;
#[cfg(feature = "io")]
pub mod device;
pub mod mac;
pub mod messages;
pub mod offload;
pub mod order;
#[cfg(feature = "io")]
pub mod runtime;
pub mod settings;
pub mod start;
pub mod time;
pub mod transport;

pub use mac::{Mac, NodeId};
pub use order::{Boot, EPOCH_STEP_MAX, Order, Seq};
pub use start::Start;
pub use time::Timestamp;
