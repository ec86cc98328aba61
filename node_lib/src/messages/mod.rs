//! Every frame on the radio: one documented format per file.
//!
//! | type | message | file | sent by |
//! |-----:|---------|------|---------|
//! | 1 | [`control::heartbeat::Heartbeat`] | `control/heartbeat.rs` | RSU, relayed by OBUs |
//! | 2 | [`control::heartbeat::HeartbeatReply`] | `control/heartbeat.rs` | OBU, relayed to the RSU |
//! | 3 | [`control::probe::Probe`] | `control/probe.rs` | anyone, to a neighbour |
//! | 4 | [`control::probe::ProbeAnswer`] | `control/probe.rs` | the neighbour |
//! | 5 | [`control::withdrawal::Withdrawal`] | `control/withdrawal.rs` | whoever lost its route |
//! | 6 | [`control::announcement::Announcement`] | `control/announcement.rs` | OBU, relayed to the RSU |
//! | 7 | [`control::ack::AnnouncementAck`] | `control/ack.rs` | RSU, relayed to the OBU |
//! | 8 | [`data::ToUpstream`] | `data/upstream.rs` | OBU, relayed to the RSU |
//! | 9 | [`data::ToDownstream`] | `data/downstream.rs` | RSU, relayed to the OBU |
//! | 10 | [`bundle`] of data messages | `bundle.rs` | anyone, to a neighbour |
//! | 11 | [`control::echo::Echo`] | `control/echo.rs` | anyone, to a neighbour, passed on by all |
//! | 12 | [`fragment::Fragment`] | `fragment.rs` | anyone, to a neighbour |
//!
//! All numbers are big-endian. Offsets count from the byte after the 14-byte Ethernet header. Every
//! message opens with the four-byte prefix of [`prefix`]; its explicit length is there because
//! Ethernet pads. [`message::Message`] is the frame with its Ethernet header,
//! [`packet_type::PacketType`] any one message. Bytes from outside enter through `TryFrom<&[u8]>`
//! only; past it nothing is malformed.
//!
//! Three ways out, for every type: `emit` appends to a buffer the caller owns. `Vec<u8>` is the
//! flat form, one allocation of the exact size. `Vec<Vec<u8>>` is the older nested form, one part
//! per row of the field table, for gather writes. The parts joined are the flat form.
//!
//! ```
//! use node_lib::messages::control::Control;
//! use node_lib::messages::control::heartbeat::Heartbeat;
//! use node_lib::messages::{Cost, ETHERTYPE_DEFAULT, Message, PacketType, Rhythm};
//! use node_lib::{Boot, Mac, NodeId, Order, Seq};
//!
//! let heartbeat = Heartbeat {
//!     rsu: NodeId([2, 0, 0, 0, 0, 9]),
//!     order: Order { boot: Boot(1), seq: Seq(1) },
//!     rhythm: Rhythm::each(100),
//!     obus: 0,
//!     sender: NodeId([2, 0, 0, 0, 0, 9]),
//!     sender_boot: Boot(1),
//!     hello: 1,
//!     via: NodeId::NONE,
//!     cost: Cost(0),
//!     mtu: 1500,
//!     hop_limit: 31,
//!     hops: 0,
//!     children: 0,
//!     stride: 0,
//!     position: None,
//! };
//! let message = Message {
//!     to: Mac::BROADCAST,
//!     from: Mac([2, 0, 0, 0, 0, 9]),
//!     ethertype: ETHERTYPE_DEFAULT,
//!     packet: PacketType::Control(Control::Heartbeat(heartbeat)),
//! };
//! let flat: Vec<u8> = (&message).into();
//! assert_eq!(Message::try_from(&flat[..])?, message);
//! assert_eq!(Vec::<Vec<u8>>::from(&message).concat(), flat);
//! assert!(Message::try_from(&flat[..61]).is_err(), "a byte is missing");
//! # Ok::<(), node_lib::messages::ParseError>(())
//! ```

#[macro_use]
mod layout;

pub mod bundle;
pub mod capacity;
pub mod control;
pub mod cost;
pub mod data;
pub mod error;
pub mod ethernet;
mod fields;
pub mod flags;
pub(crate) mod format;
pub mod fragment;
pub mod message;

pub mod packet_type;
pub mod prefix;
pub mod rhythm;
pub mod way;

pub use cost::Cost;
pub use error::ParseError;
pub use message::Message;
pub use packet_type::PacketType;
pub use prefix::Kind;
pub use rhythm::{PACE_MAX, Rhythm};
pub use way::{Label, Way};

/// EtherType of our frames unless the operator chooses another: IEEE 802 local experimental 1
/// (IEEE 802-2014 §9.2.4).
pub const ETHERTYPE_DEFAULT: u16 = 0x88b5;

/// Destination, source, EtherType.
pub const ETHERNET_HEADER_LEN: usize = ethernet::HEADER_LEN;

/// Smallest Ethernet frame without its check sequence (IEEE 802.3 §4A.4.2): shorter ones are
/// padded.
pub const MIN_FRAME_LEN: usize = 60;

/// No path is longer. A message that says so is refused, which ends whatever made it travel on.
pub const MAX_HOPS: u8 = 32;

/// No RSU knows of more OBUs at once, attached or not: twice the vehicles of the densest traffic
/// jam in radio range.
pub const OBUS_MAX: u16 = 1024;

/// What an OBU said is believed for so many times what it says about its next word: two of them may
/// be lost.
pub const WORDS_BELIEVED: u32 = 3;

/// Longest time between two heartbeats of an RSU, in milliseconds: what `--hello-periodicity`
/// takes.
pub const INTERVAL_MS_MAX: u16 = 10_000;
