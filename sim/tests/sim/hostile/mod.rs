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

mod forger;
mod fuzz;
mod heard_by_obu;
mod heard_by_rsu;
mod keeper;
mod script;
