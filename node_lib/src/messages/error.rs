//! Why a frame was refused.

use crate::mac::{Mac, NodeId};

/// What was wrong with a frame, and what the format asks for. A bad frame is weather: count it,
/// carry on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than the fixed part of the format, or than the message says it has.
    #[error("{message}: {have} bytes where {need} are needed")]
    Truncated {
        /// Which format.
        message: &'static str,
        /// Bytes it needs.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// The frame belongs to another protocol.
    #[error("frame: EtherType {have:#06x} where ours is {need:#06x}")]
    EtherType {
        /// Ours.
        need: u16,
        /// The one in the frame.
        have: u16,
    },
    /// A format version this program does not speak.
    #[error("version {have} where this program speaks {need}")]
    Version {
        /// Ours.
        need: u8,
        /// The one in the message.
        have: u8,
    },
    /// No message has this type code.
    #[error("type {have} where types are 1 to 9, 11 and 12")]
    UnknownType {
        /// The code in the message.
        have: u8,
    },
    /// A known type, but not the one asked for.
    #[error("{message}: type {have} where it is {need}")]
    Type {
        /// The format asked for.
        message: &'static str,
        /// Its code.
        need: u8,
        /// The code in the message.
        have: u8,
    },
    /// The message is wrapped in a security envelope, which this version cannot open.
    #[error("{message}: security envelope with key slot {slot} where only slot 0 (none) is known")]
    Envelope {
        /// Which format.
        message: &'static str,
        /// Bits 7 and 6 of the flags.
        slot: u8,
    },
    /// A flag is set that the format does not have.
    #[error("{message}: flags {have:#04x} where {need:#04x} is all there is")]
    Flags {
        /// Which format.
        message: &'static str,
        /// Every flag the format has.
        need: u8,
        /// The flags in the message.
        have: u8,
    },
    /// The length in the prefix is not a length of this format.
    #[error("{message}: length {have} where the format has {need}")]
    Length {
        /// Which format.
        message: &'static str,
        /// Length of the format, given what else the message says.
        need: usize,
        /// The length in the prefix.
        have: usize,
    },
    /// More bytes follow the message than Ethernet padding explains.
    #[error("{message}: {have} bytes where the message has {need} and padding ends at \
             {padded}", padded = super::prefix::MIN_BODY_LEN)]
    TrailingBytes {
        /// Which format.
        message: &'static str,
        /// The length in the prefix.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A field holds a value outside its range, or a reserved one is not zero.
    #[error("{message}: {field} {have} where it is {need}")]
    Value {
        /// Which format.
        message: &'static str,
        /// Row of its field table.
        field: &'static str,
        /// The range, in words.
        need: &'static str,
        /// The value in the message.
        have: u32,
    },
    /// The id of nobody where a node must be named.
    #[error("{message}: {field} is zero where a node must be named")]
    NoNode {
        /// Which format.
        message: &'static str,
        /// Row of its field table.
        field: &'static str,
    },
    /// An RSU that names an upstream, or a relay that names none.
    #[error("{message}: via {have} where an RSU has none and a relay names its upstream")]
    Via {
        /// Which format.
        message: &'static str,
        /// The upstream in the message.
        have: NodeId,
    },
    /// A client address that no single interface can have.
    #[error("{message}: client {have} where a unicast address is needed")]
    Client {
        /// Which format.
        message: &'static str,
        /// The address in the message.
        have: Mac,
    },
}
