//! Scenarios.
pub mod mobility;
