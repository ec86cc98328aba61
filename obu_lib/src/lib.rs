//! Control plane of the OBU.

mod config;
mod control;

pub use config::Config;
pub use control::node::Obu;
