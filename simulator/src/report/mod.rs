//! Results for people and for programs.

pub mod csv;
pub mod json;
pub mod plots;
pub mod sweep;
pub mod table;
pub mod town;
