//! Control plane of the RSU.

mod config;

pub use config::Config;
