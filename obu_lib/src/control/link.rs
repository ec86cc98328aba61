//! The links to neighbours, as this OBU finds them.
//!
//! | part | what it decides |
//! |---|---|
//! | [`neighbour`] | who is in radio range, and how well each direction of the link works |
//! | [`trend`] | where a link is going |
//! | [`floor`] | how weak a signal may get before its link ends |

pub mod floor;
pub mod neighbour;
pub mod trend;
