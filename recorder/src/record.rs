//! What a recording holds: [`Record`], one thing that went into a node or came out of it.
//!
//! # Format
//!
//! A record is a MessagePack array. Its first item is the kind, its second the time: microseconds
//! on the node's clock since [the first of its block](crate::block). New items are only ever
//! appended, so that a reader takes what it knows and skips the rest.
//!
//! | kind | record | then |
//! |-----:|--------|------|
//! | 0 | frame off the radio | length (uint), bytes (bin) |
//! | 1 | frame out of the TAP | length, bytes |
//! | 2 | frame the radio gave up | length, bytes |
//! | 3 | signal of a neighbour | MAC (bin, 6), dBm (int) |
//! | 4 | link event | code (uint), value (nil, uint or bin) |
//! | 5 | the time has come | – |
//! | 6 | the node is to stop | – |
//! | 7 | clients it is told of | 16 bytes each (bin): VLAN (2), MAC (6), silent for so many µs (8) |
//! | 8 | clients to forget | MAC (bin, 6), or nil: all |
//! | 9 | frame out of the TAP that may have waited there for long | length, bytes |
//! | 10 | an operator asks who is on a way | target (bin, 6), hop limit (uint), nonce (uint) |
//! | 11 | where the node is | latitude and longitude in 10⁻⁷ degrees (int), accuracy in 0.1 m (uint, or nil), whether it stays there (uint); all nil: not known any more |
//! | 12 | clients to pin to an OBU, or no longer | VLAN (uint), MAC (bin, 6; nil: all), OBU (bin, 6; nil: unpin) |
//! | 16 | frame for the radio | length, bytes |
//! | 17 | frame for the TAP | length, bytes |
//! | 18 | the last frame passed on to the radio | length, header (bin), where its payload begins (uint) |
//! | 19 | the last frame passed on to the TAP | length, where it begins |
//! | 20 | event | code, values (array): [`crate::event`] |
//! | 32 | mark | text (str) |
//! | 33 | records lost here | number (uint) |
//! | 64 + 0 to 2, or 9 | a frame of that kind, passed on as it came and nothing else: two records in one | length, bytes, header (bin; nil: to the TAP), where its payload begins (uint) |
//!
//! The length is that of the whole frame; there are fewer bytes than that if the recording was made
//! with a snap length and the frame was only passed on. 18 and 19 say that a frame is the last of
//! kind 0 to 2 or 9 *in this block* again, also one of 64 and more, behind another header. It is
//! from some byte on, and for as long as there is room for. Most of what a node forwards is written
//! once, and as one record. Whoever reads gets the frame that went in, and 16 or 17.

use std::borrow::Cow;
use std::fmt;

use node_lib::control::event::Event;
use node_lib::control::node::LinkEvent;
use node_lib::control::pin::Pin;
use node_lib::control::ping::Ping;
use node_lib::control::positions::Located;
use node_lib::start::clients::Remembered;
use node_lib::{Mac, Timestamp};

use crate::text::Hex;

/// No interface has longer frames; a damaged length must not ask for all memory.
const FILLED_MAX: usize = 128 << 10;

/// A whole Ethernet frame, or its first bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its length when it passed.
    pub len: u32,
    /// What was kept of it.
    pub bytes: Cow<'a, [u8]>,
}

impl Frame<'_> {
    /// All of it was kept.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == u64::from(self.len)
    }

    /// As long as it was, with zeros for what was not kept.
    pub fn filled(&self) -> Cow<'_, [u8]> {
        let len = (self.len as usize).min(FILLED_MAX);
        if self.bytes.len() >= len {
            return Cow::Borrowed(&self.bytes);
        }
        let mut filled = self.bytes.to_vec();
        filled.resize(len, 0);
        Cow::Owned(filled)
    }

    fn into_owned(self) -> Frame<'static> {
        Frame { len: self.len, bytes: Cow::Owned(self.bytes.into_owned()) }
    }
}

impl<'a> From<&'a [u8]> for Frame<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { len: u32::try_from(bytes.len()).unwrap_or(u32::MAX), bytes: Cow::Borrowed(bytes) }
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes {}", self.len, Hex(&self.bytes))
    }
}

/// One thing that went into a node, came out of it, or is said about the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When, on the node's clock.
    pub at: Timestamp,
    /// What.
    pub what: What<'a>,
}

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// In: a frame came off the radio; those in bundles each by itself.
    FromRadio(Frame<'a>),
    /// In: a frame came out of the TAP.
    FromTap(Frame<'a>),
    /// In: the same, and it may have waited there for long.
    FromTapLate(Frame<'a>),
    /// In: the radio gave up a frame of ours.
    Unacknowledged(Frame<'a>),
    /// In: how strong a neighbour comes in.
    Signal {
        /// The neighbour.
        from: Mac,
        /// How strong.
        dbm: i8,
    },
    /// In: an interface changed.
    Link(LinkEvent),
    /// In: the time the node named has come.
    Timeout,
    /// In: the node is to stop.
    Shutdown,
    /// In: clients behind the TAP that need not have spoken.
    Clients(Cow<'a, [Remembered]>),
    /// In: clients are to be forgotten, those with this address or all.
    ForgetClients(Option<Mac>),
    /// In: clients are to be pinned, or no longer.
    Pin(Pin),
    /// In: an operator asks who is on a way.
    Ping(Ping),
    /// In: where the node is, or that this is not known any more.
    Position(Option<Located>),
    /// Out: a frame for the radio, before small ones are put together.
    ToRadio(Frame<'a>),
    /// Out: a frame for the TAP.
    ToTap(Frame<'a>),
    /// Out: what an operator wants to know.
    Event(Event),
    /// Somebody marked this moment.
    Mark(Cow<'a, str>),
    /// So many records are missing here: there was no room for them.
    Lost(u64),
}

impl<'a> What<'a> {
    /// Went into the node.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::FromRadio(_)
                | Self::FromTap(_)
                | Self::FromTapLate(_)
                | Self::Unacknowledged(_)
                | Self::Signal { .. }
                | Self::Link(_)
                | Self::Timeout
                | Self::Shutdown
                | Self::Clients(_)
                | Self::ForgetClients(_)
                | Self::Pin(_)
                | Self::Ping(_)
                | Self::Position(_)
        )
    }

    /// Came out of the node.
    pub fn is_output(&self) -> bool {
        matches!(self, Self::ToRadio(_) | Self::ToTap(_) | Self::Event(_))
    }

    /// The frame it is about.
    pub fn frame(&self) -> Option<&Frame<'a>> {
        match self {
            Self::FromRadio(frame)
            | Self::FromTap(frame)
            | Self::FromTapLate(frame)
            | Self::Unacknowledged(frame)
            | Self::ToRadio(frame)
            | Self::ToTap(frame) => Some(frame),
            _ => None,
        }
    }

    /// What JSON lines and tables call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::FromRadio(_) => "from_radio",
            Self::FromTap(_) => "from_tap",
            Self::FromTapLate(_) => "from_tap_late",
            Self::Unacknowledged(_) => "unacknowledged",
            Self::Signal { .. } => "signal",
            Self::Link(_) => "link",
            Self::Timeout => "timeout",
            Self::Shutdown => "shutdown",
            Self::Clients(_) => "clients",
            Self::ForgetClients(_) => "forget_clients",
            Self::Pin(_) => "pin",
            Self::Ping(_) => "ping",
            Self::Position(_) => "position",
            Self::ToRadio(_) => "to_radio",
            Self::ToTap(_) => "to_tap",
            Self::Event(_) => "event",
            Self::Mark(_) => "mark",
            Self::Lost(_) => "lost",
        }
    }
}

impl Record<'_> {
    /// A copy that outlives the block it was read from.
    pub fn into_owned(self) -> Record<'static> {
        let what = match self.what {
            What::FromRadio(frame) => What::FromRadio(frame.into_owned()),
            What::FromTap(frame) => What::FromTap(frame.into_owned()),
            What::FromTapLate(frame) => What::FromTapLate(frame.into_owned()),
            What::Unacknowledged(frame) => What::Unacknowledged(frame.into_owned()),
            What::Signal { from, dbm } => What::Signal { from, dbm },
            What::Link(event) => What::Link(event),
            What::Timeout => What::Timeout,
            What::Shutdown => What::Shutdown,
            What::Clients(clients) => What::Clients(Cow::Owned(clients.into_owned())),
            What::ForgetClients(which) => What::ForgetClients(which),
            What::Pin(pin) => What::Pin(pin),
            What::Ping(ping) => What::Ping(ping),
            What::Position(located) => What::Position(located),
            What::ToRadio(frame) => What::ToRadio(frame.into_owned()),
            What::ToTap(frame) => What::ToTap(frame.into_owned()),
            What::Event(event) => What::Event(event),
            What::Mark(text) => What::Mark(Cow::Owned(text.into_owned())),
            What::Lost(count) => What::Lost(count),
        };
        Record { at: self.at, what }
    }
}
