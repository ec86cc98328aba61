//! Scenarios.
pub mod mobility;
pub mod scenario;
