//! # Simulation
//!
//! To come.

mod check;
mod dice;
mod fault;
mod frame;
mod index;
mod lan;
mod link;
mod stats;
pub mod topology;
mod trace;
mod traffic;
mod world;

pub use check::{Rule, Violation};
pub use dice::{Dice, subseed};
pub use fault::Fault;
pub use frame::{Kind, Packet};
pub use index::{ClientIndex, FlowIndex, LanIndex, NodeIndex};
pub use lan::{Lan, Port};
pub use link::Link;
pub use stats::{Stats, Tally};
pub use traffic::{Flow, FlowLog, Numbered, Target};
pub use world::{Factory, Place, RadioFrame, Role, TapDelivery, World};
