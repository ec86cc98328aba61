//! Somebody on the radio who sends what it likes. Frames are not authenticated, so while a forger
//! sends it can do harm; these tests hold that the harm ends with it: no single frame has an effect
//! that outlives its repetition by more than a few intervals, and whoever is attached and heard is
//! not pushed out by those who are neither.
//!
//! | part | who hears the forger |
//! |---|---|
//! | `heard_by_obu` | vehicles |
//! | `heard_by_rsu` | an RSU |
//! | `keeper` | vehicles behind a relay that passes on all but words |
//! | `fuzz` | a vehicle two hops away, of damaged frames |

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
#![allow(unreachable_pub, reason = "modules of a test")]

mod forger;
mod fuzz;
mod heard_by_obu;
mod heard_by_rsu;
mod keeper;
#[path = "../puppet/mod.rs"]
mod puppet;
mod script;
#[path = "../sim_common/mod.rs"]
mod sim_common;
