//! The bits of the flags byte, of all messages; each message says which of them it has.

/// Heartbeat reply and withdrawal: the sender leaves the network.
pub const GOODBYE: u8 = 0x01;

/// Heartbeat reply and announcement: the OBU is attached elsewhere.
pub const STANDBY: u8 = 0x02;

/// Heartbeat reply: the OBU waits for an acknowledgement.
pub const ACKNOWLEDGE: u8 = 0x04;

/// Heartbeat: how many neighbours are reached from this RSU through the sender.
pub const CHILDREN: u8 = 0x0e;

/// The most it can say: so many, or more.
pub const CHILDREN_MAX: u8 = CHILDREN >> CHILDREN.trailing_zeros();

/// Heartbeat and probe answer: the stride of the sender.
pub const STRIDE: u8 = 0x30;

/// The largest: every fourth heartbeat.
pub const STRIDE_MAX: u8 = 2;

/// Downstream data: for every OBU attached to the source.
pub const FLOOD: u8 = 0x08;

/// Upstream data: it has been given to another next hop before, which was lost.
pub const AGAIN: u8 = 0x10;

/// Echo: it is the answer. Where data have a priority there is none: it goes as most data do.
pub const ANSWER: u8 = 0x08;

/// Data either way and fragment: user priority of the frame inside.
pub const PRIORITY: u8 = 0x07;

/// This flag if it `is_set`.
#[inline]
pub(super) const fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

/// The number of children as it stands in the flags.
pub(super) const fn children_flags(children: u8) -> u8 {
    debug_assert!(children <= CHILDREN_MAX);
    (children << CHILDREN.trailing_zeros()) & CHILDREN
}

/// The number of children, from the flags.
pub(super) const fn children(flags: u8) -> u8 {
    (flags & CHILDREN) >> CHILDREN.trailing_zeros()
}

/// A stride as it stands in the flags.
pub(super) const fn stride_flags(stride: u8) -> u8 {
    debug_assert!(stride <= STRIDE_MAX);
    (stride << STRIDE.trailing_zeros()) & STRIDE
}
