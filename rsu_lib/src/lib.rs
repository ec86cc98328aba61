//! Control plane of the RSU: which OBU, via whom, and who is behind it.
//!
//! # The life of an RSU
//!
//! **Start.** It sends a heartbeat every period (100 ms, ±10 %): its id, boot count and sequence,
//! interval, hop count and cost 0. Nobody else originates heartbeats, so control traffic grows with
//! RSUs × nodes and not with nodes². A restart has a higher boot count and is newer than anything
//! before; OBUs believe it at once and announce themselves again.
//!
//! **Attachment.** An OBU announces its clients with an epoch. The highest epoch owns; a lower one is
//! told the higher. The RSU acknowledges, notes each client behind that OBU, and tells its LAN with
//! one reverse-ARP frame per client, so that switches move the port before the client speaks. Replies
//! carry a digest of the client set; if it differs, the RSU asks for the set.
//!
//! **Switching.** The RSU is a learning, VLAN-aware switch whose ports are its TAP and every OBU. A
//! frame for a known client goes to its port. Broadcasts and unknown destinations go to the TAP and,
//! as one frame over the radio, to all attached OBUs except the sender; unknown ones within a budget.
//!
//! **The way down** is learnt from replies and announcements, each newer or shorter than the last.
//!
//! **Detachment.** A goodbye, or five seconds without a reply: the OBU's clients are forgotten. A
//! client whose frames (or whose reverse ARP from another RSU) appear on the LAN is there from then
//! on.
//!
//! **Stop.** It says goodbye, three times, and forwards for another 200 ms what is under way.

mod config;
mod control;

pub use config::Config;
pub use control::node::Rsu;
