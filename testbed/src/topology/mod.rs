//! Who is where: road-side units, vehicles and hosts around the [medium](crate::medium), or in a
//! line on the kernel's own cables.

pub mod line;
pub(crate) mod world;
