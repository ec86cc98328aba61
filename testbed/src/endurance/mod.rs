//! What must hold for long: load with every byte checked, everything that goes wrong in a long
//! life, restarts at any age.

pub mod days;
pub mod restarts;
pub mod soak;
