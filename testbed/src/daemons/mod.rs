//! The real daemons: which programs they are, one as a process, and what it uses.

pub mod daemon;
pub(crate) mod programs;
pub mod usage;
