//! Control plane of the RSU: which OBU, via whom, and who is behind it.
//!
//! # The life of an RSU
//!
//! **Start.** It sends a heartbeat every period (100 ms, ±10 %): its id, boot count and sequence,
//! interval, hop count and cost 0. Nobody else originates heartbeats, so control traffic grows with
//! RSUs × nodes and not with nodes². A restart has a higher boot count and is newer than anything
//! before; OBUs believe it at once and announce themselves again.
//!
//! **Attachment.** An OBU announces its clients with an epoch. Of what one OBU says the highest
//! epoch counts; a lower one is told the higher. Of two OBUs that announce one client, the one
//! behind which it was heard has it, or else the one that has announced it for longest; their
//! epochs are unrelated. The RSU acknowledges, notes each client behind that OBU, and tells its
//! LAN, so that switches move the port before the client speaks. It sends one reverse-ARP frame per
//! client, and an ARP announcement and unsolicited neighbour advertisements for the addresses it
//! knows from the client's own frames. Replies carry a digest of the client set; if it differs, the
//! RSU asks for the set.
//!
//! **Standby.** An OBU that is attached elsewhere and may come announces itself the same way, and
//! says so. Its set is kept and acknowledged and the way to it learnt, but its clients stay where
//! they are and the LAN is told nothing. Its first word after that, be it an announcement, a part
//! of one or a reply with the same digest, brings all its clients over at once.
//!
//! **Switching.** The RSU is a learning, VLAN-aware switch whose ports are its TAP and every OBU. A
//! frame for a known client goes to its port. Broadcasts and unknown destinations go to the TAP
//! and, as one frame over the radio, to all attached OBUs except the sender. All of these are
//! within budgets: one for unknown destinations, one for what hosts need to find each other, one
//! for other groups. The second is for ARP, neighbour discovery, DHCP and whatever goes to groups
//! no router passes on.
//!
//! **The way down** is made from what OBUs say of their upstreams: a tree, whose root is the RSU.
//! It stands in what is sent down; relays know nothing of it but their children. An edge that would
//! close a circle is refused.
//!
//! **Detachment.** A goodbye, standby instead of attachment, or three replies that did not come,
//! but five seconds at least: the OBU's clients are forgotten. A client whose frames (or whose
//! reverse ARP from another RSU) appear on the LAN is there from then on; when all of an OBU's have
//! gone there, it is detached 300 ms later. For those 300 ms what the LAN still sends here for such
//! a client goes down the old way. What still comes up from it goes to the LAN and is taken for no
//! news.
//!
//! **Forged frames** cannot be told from others, so what one frame may change is limited. A boot
//! count, epoch or sequence that jumps is believed for an OBU that is here when it is repeated 50
//! ms later and the OBU itself says nothing meanwhile. An OBU that was spoken for falsely is told
//! with its next word, answers with a higher epoch, and has its clients and the way to it at once.
//! Who is attached is never pushed out by newcomers. An OBU that has not announced itself fills
//! half of a table at most.
//!
//! **Two RSUs with one id** both report it, and neither goes above the other. An RSU that was
//! started with a lower boot count than before goes above what relays still say of it, once.
//!
//! **Damping.** A client whose frames come from another place more than five times in 20 s is held
//! where it was before for the rest of them, and reported. Two switches are looped, or two machines
//! have one address. Announcements are not held back: epochs order them.
//!
//! **Stop.** It says goodbye, three times, and forwards for another 200 ms what is under way.

mod config;
mod control;
pub mod settings;

pub use config::Config;
pub use control::node::{AttachedObu, Rsu};
pub use settings::Settings;
