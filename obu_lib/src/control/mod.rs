//! The OBU's state machine.
//!
//! | module | what it decides |
//! |---|---|
//! | `node` | what is heard and when to act; which RSU, which next, and what a change cost |
//! | [`link`] | who is in radio range, how well each direction works, and where that is going |
//! | [`route`] | through whom to one RSU, when that changes, where links are going, the second way in doubt |
//! | `budget` | how often neighbours may be asked |
//! | `solicitation` | asking and answering for a way between heartbeats |
//! | `registration` | telling RSUs who our upstream is and who is behind our TAP |
//! | `towards` | how we stand to an RSU, and the way there |
//! | `announcements` | our client set as frames that are ready |
//! | `clients` | who is behind our TAP |
//! | `children` | who sends through us |
//! | `data` | where clients' frames go |
//! | `flood_dedup` | one broadcast of a LAN with two RSUs, delivered once |
//! | `retransmit` | what the radio gave up, and goes once more |
//! | `echoes` | where a question of an operator goes |
//! | `timing` | every time these depend on |
//! | `context` | what all of these work with |

mod announcements;
mod budget;
mod children;
mod clients;
mod context;
mod data;
mod echoes;
mod flood_dedup;
pub mod link;
pub(crate) mod node;
mod registration;
mod retransmit;
pub mod route;
mod solicitation;
mod timing;
mod towards;
