//! Control plane of the OBU.

mod config;

pub use config::Config;
