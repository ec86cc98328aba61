//! MessagePack to records. Bytes come from a file that somebody may have written by hand: nothing
//! here trusts them.

use std::borrow::Cow;
use std::time::Duration;

use node_lib::control::node::LinkEvent;
use node_lib::control::pin::Pin;
use node_lib::control::ping::Ping;
use node_lib::control::positions::Located;
use node_lib::messages::control::announcement::Client;
use node_lib::messages::control::position::Coordinates;
use node_lib::start::clients::Remembered;
use node_lib::{Mac, NodeId, Timestamp};
use rmp::Marker;
use rmp::decode;

use crate::encode::{CLIENT_LEN, kind, link};
use crate::event::{self, Value};
use crate::record::{Frame, Record, What};

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end before the record does.
    #[error("the block ends in the middle of a record")]
    Short,
    /// Something else stands where this should.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A kind of record this version does not know.
    #[error("a record of kind {0}, which this version does not know")]
    Kind(u8),
    /// A frame refers to the one before, and there is none in this block.
    #[error("a frame that was passed on stands before the one it is made of")]
    Reference,
    /// An event this version does not know.
    #[error("event {0}, which this version does not know")]
    Event(u8),
}

/// The records of one block, first to last. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    base: Timestamp,
    /// The last frame that went in.
    last: Option<Frame<'a>>,
    /// What it was passed on as, if that is part of the same record.
    passed_on: Option<Record<'a>>,
}

impl<'a> Records<'a> {
    /// Those of a block that begins at `base`.
    pub fn new(payload: &'a [u8], base: Timestamp) -> Self {
        Self { rest: payload, base, last: None, passed_on: None }
    }

    fn read(&mut self) -> Result<Record<'a>, DecodeError> {
        let mut input = Input(self.rest);
        let items = input.array()?;
        if items < 2 {
            return Err(DecodeError::Expected("at least kind and time of a record"));
        }
        let kind = input.small("the kind of a record")?;
        let since = input.uint("a time")?;
        let at = Timestamp::from_micros(self.base.as_micros().saturating_add(since));
        let is_passed_on = kind & kind::AND_PASSED_ON > 0;
        let bare = kind & !kind::AND_PASSED_ON;
        let is_frame_in = matches!(
            bare,
            kind::FROM_RADIO | kind::FROM_TAP | kind::FROM_TAP_LATE | kind::UNACKNOWLEDGED
        );
        if is_passed_on && !is_frame_in {
            return Err(DecodeError::Kind(kind));
        }
        let (what, mut used) = self.what(bare, &mut input)?;
        if is_frame_in {
            self.last = what.frame().cloned();
        }
        let mut passed_on = None;
        if is_passed_on {
            passed_on = Some(Record { at, what: self.passed_on(&mut input)? });
            used += 2;
        }
        // What a later version appended.
        for _ in used + 2..items {
            input.skip(0)?;
        }
        self.rest = input.0;
        self.passed_on = passed_on;
        Ok(Record { at, what })
    }

    /// What the record is about, and how many items that took.
    fn what(&self, kind: u8, input: &mut Input<'a>) -> Result<(What<'a>, u32), DecodeError> {
        Ok(match kind {
            kind::FROM_RADIO => (What::FromRadio(input.frame()?), 2),
            kind::FROM_TAP => (What::FromTap(input.frame()?), 2),
            kind::FROM_TAP_LATE => (What::FromTapLate(input.frame()?), 2),
            kind::UNACKNOWLEDGED => (What::Unacknowledged(input.frame()?), 2),
            kind::SIGNAL => {
                let from = input.mac()?;
                let dbm = input.strength()?;
                (What::Signal { from, dbm }, 2)
            }
            kind::LINK => (What::Link(input.link()?), 2),
            kind::TIMEOUT => (What::Timeout, 0),
            kind::SHUTDOWN => (What::Shutdown, 0),
            kind::CLIENTS => (What::Clients(input.clients()?.into()), 1),
            kind::FORGET_CLIENTS => (What::ForgetClients(input.mac_or_nil()?), 1),
            kind::PIN => {
                let vlan = input.small("a VLAN")?;
                let (mac, obu) = (input.mac_or_nil()?, input.mac_or_nil()?);
                let pin = match (mac, obu) {
                    (Some(mac), Some(obu)) => {
                        Pin::Put { client: Client { vlan, mac }, obu: NodeId(obu.0) }
                    }
                    (which, None) => Pin::Take(which),
                    (None, Some(_)) => return Err(DecodeError::Expected("a client")),
                };
                (What::Pin(pin), 3)
            }
            kind::PING => {
                let target = input.mac()?;
                let hop_limit = input.small("a hop limit")?;
                let nonce = u32::try_from(input.uint("a nonce")?).unwrap_or_default();
                (What::Ping(Ping { target, hop_limit, nonce }), 3)
            }
            kind::POSITION => (What::Position(input.located()?), 4),
            kind::TO_RADIO => (What::ToRadio(input.frame()?), 2),
            kind::TO_TAP => (What::ToTap(input.frame()?), 2),
            kind::PASSED_TO_RADIO => {
                let len = input.len()?;
                let head = input.bin()?;
                (What::ToRadio(self.passed(len, head, input.uint("a place")?)?), 3)
            }
            kind::PASSED_TO_TAP => {
                let len = input.len()?;
                (What::ToTap(self.passed(len, &[], input.uint("a place")?)?), 2)
            }
            kind::EVENT => {
                let code = input.small("the code of an event")?;
                let values = input.values()?;
                let event = event::put_together(code, &values).ok_or(DecodeError::Event(code))?;
                (What::Event(event), 2)
            }
            kind::MARK => (What::Mark(Cow::Borrowed(input.text()?)), 1),
            kind::LOST => (What::Lost(input.uint("a number of records")?), 1),
            other => return Err(DecodeError::Kind(other)),
        })
    }

    /// The last frame again, as it was passed on to its end.
    fn passed_on(&self, input: &mut Input<'a>) -> Result<What<'a>, DecodeError> {
        let head = if input.is_nil() { input.skip(0).map(|()| None)? } else { Some(input.bin()?) };
        let start = input.uint("a place")?;
        let whole = self.last.as_ref().map_or(0, |last| u64::from(last.len));
        let bare = head.unwrap_or_default();
        let len = whole.checked_sub(start).map(|rest| rest + bare.len() as u64);
        let len = len.and_then(|len| u32::try_from(len).ok()).ok_or(DecodeError::Reference)?;
        let frame = self.passed(len, bare, start)?;
        Ok(if head.is_some() { What::ToRadio(frame) } else { What::ToTap(frame) })
    }

    /// The last frame again, from `start` on, behind `head`.
    fn passed(&self, len: u32, head: &[u8], start: u64) -> Result<Frame<'a>, DecodeError> {
        let last = self.last.as_ref().ok_or(DecodeError::Reference)?;
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let room = (len as usize).checked_sub(head.len()).ok_or(DecodeError::Reference)?;
        if start > last.len as usize || room > last.len as usize - start {
            return Err(DecodeError::Reference);
        }
        // A snap length may have cut it anywhere.
        let kept = last.bytes.get(start..).unwrap_or_default();
        let payload = kept.get(..room).unwrap_or(kept);
        let bytes = match &last.bytes {
            Cow::Borrowed(bytes) if head.is_empty() => {
                let kept = bytes.get(start..).unwrap_or_default();
                Cow::Borrowed(kept.get(..room).unwrap_or(kept))
            }
            _ => Cow::Owned([head, payload].concat()),
        };
        Ok(Frame { len, bytes })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.passed_on.take() {
            return Some(Ok(record));
        }
        if self.rest.is_empty() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn array(&mut self) -> Result<u32, DecodeError> {
        decode::read_array_len(&mut self.0).map_err(|_| DecodeError::Expected("an array"))
    }

    fn uint(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        decode::read_int(&mut self.0).map_err(|_| DecodeError::Expected(what))
    }

    fn small<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T, DecodeError> {
        self.uint(what)?.try_into().map_err(|_| DecodeError::Expected(what))
    }

    fn strength(&mut self) -> Result<i8, DecodeError> {
        decode::read_int(&mut self.0).map_err(|_| DecodeError::Expected("a strength in dBm"))
    }

    fn len(&mut self) -> Result<u32, DecodeError> {
        self.small("the length of a frame")
    }

    /// A length of so many bytes.
    fn long(&mut self, bytes: usize) -> Result<usize, DecodeError> {
        let number = |value: usize, byte: &u8| value << 8 | usize::from(*byte);
        Ok(self.take(bytes)?.iter().fold(0, number))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn bin(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = decode::read_bin_len(&mut self.0);
        self.take(len.map_err(|_| DecodeError::Expected("bytes"))? as usize)
    }

    fn text(&mut self) -> Result<&'a str, DecodeError> {
        let len = decode::read_str_len(&mut self.0).map_err(|_| DecodeError::Expected("text"))?;
        let text = std::str::from_utf8(self.take(len as usize)?);
        text.map_err(|_| DecodeError::Expected("text in UTF-8"))
    }

    fn mac(&mut self) -> Result<Mac, DecodeError> {
        let bytes = self.bin()?.try_into();
        bytes.map(Mac).map_err(|_| DecodeError::Expected("an address of six bytes"))
    }

    fn mac_or_nil(&mut self) -> Result<Option<Mac>, DecodeError> {
        if self.is_nil() {
            return self.skip(0).map(|()| None);
        }
        self.mac().map(Some)
    }

    fn is_nil(&self) -> bool {
        self.0.first().map(|first| Marker::from_u8(*first)) == Some(Marker::Null)
    }

    fn located(&mut self) -> Result<Option<Located>, DecodeError> {
        const WHAT: &str = "a place on Earth";
        if self.is_nil() {
            (0..4).try_for_each(|_| self.skip(0))?;
            return Ok(None);
        }
        let mut degrees =
            || decode::read_int::<i32, _>(&mut self.0).map_err(|_| DecodeError::Expected(WHAT));
        let (latitude, longitude) = (degrees()?, degrees()?);
        let accuracy = if self.is_nil() {
            self.skip(0)?;
            None
        } else {
            Some(self.small(WHAT)?)
        };
        let at = Coordinates::from_units(latitude, longitude, accuracy);
        let at = at.ok_or(DecodeError::Expected(WHAT))?;
        Ok(Some(Located { at, is_fixed: self.uint(WHAT)? != 0 }))
    }

    fn clients(&mut self) -> Result<Vec<Remembered>, DecodeError> {
        let (clients, rest) = self.bin()?.as_chunks::<CLIENT_LEN>();
        if !rest.is_empty() {
            return Err(DecodeError::Expected("16 bytes for each client"));
        }
        let client =
            |&[v0, v1, m0, m1, m2, m3, m4, m5, silent @ ..]: &[u8; CLIENT_LEN]| Remembered {
                client: Client {
                    vlan: u16::from_be_bytes([v0, v1]),
                    mac: Mac([m0, m1, m2, m3, m4, m5]),
                },
                silent_for: Duration::from_micros(u64::from_be_bytes(silent)),
            };
        Ok(clients.iter().map(client).collect())
    }

    fn frame(&mut self) -> Result<Frame<'a>, DecodeError> {
        let len = self.len()?;
        let bytes = self.bin()?;
        if bytes.len() > len as usize {
            return Err(DecodeError::Expected("no more bytes than the frame had"));
        }
        Ok(Frame { len, bytes: Cow::Borrowed(bytes) })
    }

    fn link(&mut self) -> Result<LinkEvent, DecodeError> {
        let code = self.small("the code of a link event")?;
        if code == link::ADDRESS {
            return Ok(LinkEvent::AddressChanged(self.mac()?));
        }
        if code == link::MTU {
            return Ok(LinkEvent::MtuChanged(self.small("an MTU")?));
        }
        if code == link::CHANNEL_BUSY {
            return Ok(LinkEvent::ChannelBusy(self.small("a percentage")?));
        }
        self.skip(0)?;
        Ok(match code {
            link::UP => LinkEvent::Up,
            link::DOWN => LinkEvent::Down,
            link::LAN_UP => LinkEvent::LanUp,
            link::LAN_DOWN => LinkEvent::LanDown,
            _ => return Err(DecodeError::Expected("a link event this version knows")),
        })
    }

    fn values(&mut self) -> Result<event::Values, DecodeError> {
        let mut values = event::Values::new();
        for _ in 0..self.array()? {
            let value = match self.0.first().map(|first| Marker::from_u8(*first)) {
                None => return Err(DecodeError::Short),
                Some(Marker::Null) => {
                    self.skip(0)?;
                    Value::Nil
                }
                Some(Marker::Bin8) => Value::Mac(self.mac()?),
                Some(Marker::FixStr(_) | Marker::Str8) => {
                    let word = event::word(self.text()?);
                    Value::Word(word.ok_or(DecodeError::Expected("a word this version knows"))?)
                }
                Some(_) => Value::Uint(self.uint("a value of an event")?),
            };
            // Those appended later are not for us.
            let _ = values.try_push(value);
        }
        Ok(values)
    }

    /// Passes over one value.
    fn skip(&mut self, depth: u8) -> Result<(), DecodeError> {
        const DEPTH_MAX: u8 = 8;
        if depth > DEPTH_MAX {
            return Err(DecodeError::Expected("values less deeply nested"));
        }
        let marker = decode::read_marker(&mut self.0).map_err(|_| DecodeError::Short)?;
        let mut nested = 0;
        let len = match marker {
            Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => {
                0
            }
            Marker::U8 | Marker::I8 => 1,
            Marker::U16 | Marker::I16 => 2,
            Marker::U32 | Marker::I32 | Marker::F32 => 4,
            Marker::U64 | Marker::I64 | Marker::F64 => 8,
            Marker::FixStr(len) => len.into(),
            Marker::Str8 | Marker::Bin8 => self.long(1)?,
            Marker::Str16 | Marker::Bin16 => self.long(2)?,
            Marker::Str32 | Marker::Bin32 => self.long(4)?,
            Marker::FixArray(len) => {
                nested = len.into();
                0
            }
            Marker::FixMap(len) => {
                nested = u32::from(len) * 2;
                0
            }
            _ => return Err(DecodeError::Expected("a value that can be skipped")),
        };
        self.take(len)?;
        (0..nested).try_for_each(|_| self.skip(depth + 1))
    }
}
