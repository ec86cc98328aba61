//! Namespaces, a radio medium and the real daemons: the ground on which the demo, the end-to-end
//! tests and the system benches run.
//!
//! A program [enters](arena::enter) the arena first, then builds a [`Testbed`]: hosts on a LAN,
//! road-side units, vehicles, and who hears whom. [`probe`] sends traffic and counts.

pub mod arena;
pub mod bench;
pub mod corridor;
pub mod daemon;
pub mod days;
pub mod demo;
pub mod fdb;
pub mod http;
pub mod line;
pub mod link;
pub mod medium;
pub mod mtu;
mod netns;
pub mod probe;
mod programs;
pub mod restarts;
mod screen;
pub mod soak;
mod sys;
pub mod usage;
mod wait;
mod world;

pub use medium::Quality;
pub use netns::Netns;
pub use programs::Programs;
pub use sys::{PacketSocket, asks_for_acknowledgements};
pub use wait::wait_until;
pub use world::{ATTACHMENT_CHANGED, Cabin, HAND_OVER_DONE, Host, MONITOR, Node, Role, Testbed};
