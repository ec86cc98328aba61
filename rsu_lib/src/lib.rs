//! Control plane of the RSU.

mod config;
mod control;

pub use config::Config;
pub use control::node::Rsu;
