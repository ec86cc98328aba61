//! The links to neighbours, as this OBU finds them.
//!
//! | part | what it decides |
//! |---|---|
//! | [`neighbour`] | who is in radio range, and how well each direction of the link works |
//! | [`trend`] | where a link is going |

pub mod neighbour;
pub mod trend;
