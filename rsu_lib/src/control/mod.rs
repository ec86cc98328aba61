//! The RSU's state machine.
//!
//! | module | what it decides |
//! |---|---|
//! | `node` | what is heard and when to act |
//! | `obus` | which OBUs are attached, and whether we know their clients |
//! | `pace` | how often heartbeats are sent |
//! | `about` | which word of an OBU an answer is about |
//! | `switch` | behind which port each client is; `clients`: how many, and for how long |
//! | `pins` | which clients an operator put behind an OBU |
//! | `departed` | who left a moment ago, so that what is under way still arrives |
//! | `data` | where clients' frames go |
//! | `lan_announce` | telling the LAN's switches where clients are |
//! | `addresses` | which network addresses clients have |
//! | `echoes` | where a question of an operator goes |
//! | `lan_dedup` | what other RSUs tell the LAN, passed on to vehicles once |

mod about;
mod addresses;
mod clients;
mod data;
mod departed;
mod echoes;
mod lan_announce;
mod lan_dedup;
pub(crate) mod node;
mod obus;
mod pace;
mod pins;
mod switch;
