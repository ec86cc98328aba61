//! The RSU's state machine.
//!
//! | part | what it decides |
//! |---|---|
//! | `node` | what is heard and when to act |
//! | `obus` | which OBUs are attached, and whether we know their clients |
//! | `clients` | behind which port each client is |
//! | `late` | who left a moment ago, so that what is under way still arrives |
//! | `data` | where clients' frames go |
//! | `wired` | telling the LAN's switches where clients are |
//! | `addresses` | which network addresses clients have |
//! | `repeats` | what other RSUs tell the LAN, passed on to vehicles once |

mod addresses;
mod clients;
mod data;
mod late;
pub(crate) mod node;
mod obus;
mod repeats;
mod wired;
