//! A frame: one message with its Ethernet header.
//!
//! | offset | bytes | field     | meaning                                                              |
//! |-------:|------:|-----------|----------------------------------------------------------------------|
//! |      0 |     6 | to        | the neighbour it is for, or broadcast                                |
//! |      6 |     6 | from      | the radio that sent it: one hop, not the origin                      |
//! |     12 |     2 | ethertype | [`super::ETHERTYPE_DEFAULT`] unless the operator chose another       |
//! |     14 |       | packet    | one message from its prefix on, then padding                         |
//!
//! Offsets in this file count from the start of the frame; everywhere else from the packet.

use super::data::Data;
use super::ethernet::Header;
use super::{ETHERNET_HEADER_LEN, PacketType, ParseError};
use crate::mac::Mac;

/// One frame on the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The neighbour it is for, or broadcast.
    pub to: Mac,
    /// The radio that sent it.
    pub from: Mac,
    /// EtherType.
    pub ethertype: u16,
    /// What it says.
    pub packet: PacketType<'a>,
}

impl<'a> Message<'a> {
    /// Reads one frame of ours; another EtherType is refused before anything else is looked at.
    pub fn parse(frame: &'a [u8], ethertype: u16) -> Result<Self, ParseError> {
        Self::assemble(ours(frame, ethertype)?)
    }

    /// What follows the Ethernet header of a frame of ours, unread.
    #[inline]
    pub fn packet(frame: &'a [u8], ethertype: u16) -> Result<&'a [u8], ParseError> {
        Ok(ours(frame, ethertype)?.1)
    }

    /// Bytes of the frame, without padding.
    #[inline]
    pub fn wire_len(&self) -> usize {
        ETHERNET_HEADER_LEN + self.packet.wire_len()
    }

    /// Appends the frame, without padding: whoever puts it on a wire pads it.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.header().emit(out);
        self.packet.emit(out);
    }

    fn assemble((header, packet): (Header, &'a [u8])) -> Result<Self, ParseError> {
        let Header { to, from, ethertype } = header;
        Ok(Self { to, from, ethertype, packet: PacketType::try_from(packet)? })
    }

    #[inline]
    fn header(&self) -> Header {
        Header { to: self.to, from: self.from, ethertype: self.ethertype }
    }
}

/// Appends a frame up to the payload of its data message, for a sender that has that in place.
#[inline]
pub fn emit_head(to: Mac, from: Mac, ethertype: u16, data: &Data<'_>, out: &mut Vec<u8>) {
    Header { to, from, ethertype }.emit(out);
    data.emit_head(out);
}

#[inline]
fn ours(frame: &[u8], ethertype: u16) -> Result<(Header, &[u8]), ParseError> {
    let (header, packet) = header(frame)?;
    let have = header.ethertype;
    if have != ethertype {
        return Err(ParseError::EtherType { need: ethertype, have });
    }
    Ok((header, packet))
}

#[inline]
fn header(frame: &[u8]) -> Result<(Header, &[u8]), ParseError> {
    Header::read(frame).ok_or(ParseError::Truncated {
        message: "frame",
        need: ETHERNET_HEADER_LEN,
        have: frame.len(),
    })
}

impl<'a> TryFrom<&'a [u8]> for Message<'a> {
    type Error = ParseError;

    /// Reads one frame, whatever its EtherType: for tools that look at captures.
    fn try_from(frame: &'a [u8]) -> Result<Self, ParseError> {
        Self::assemble(header(frame)?)
    }
}

/// The flat form: one allocation of the exact size.
impl From<&Message<'_>> for Vec<u8> {
    #[inline]
    fn from(message: &Message<'_>) -> Self {
        let mut flat = Vec::with_capacity(message.wire_len());
        message.emit(&mut flat);
        flat
    }
}

/// The nested form: the three rows above, then one part per row of the message's table.
impl From<&Message<'_>> for Vec<Vec<u8>> {
    fn from(message: &Message<'_>) -> Self {
        /// Room for the longest table without growing: 3 rows here, 17 there (`HeartbeatReply`).
        const ROWS: usize = Header::FIELDS + 17;
        let mut parts = Vec::with_capacity(ROWS);
        message.header().push_parts(&mut parts);
        message.packet.push_parts(&mut parts);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::NodeId;
    use crate::messages::control::heartbeat::HeartbeatReply;
    use crate::messages::control::probe::Probe;
    use crate::messages::data::{Destination, ToDownstream, ToUpstream};
    use crate::messages::{ETHERTYPE_DEFAULT, Way};
    use crate::order::{Boot, Order, Seq};

    fn message() -> Message<'static> {
        Message {
            to: Mac::BROADCAST,
            from: Mac([2, 0, 0, 0, 0, 1]),
            ethertype: ETHERTYPE_DEFAULT,
            packet: Probe {
                sender: NodeId([2, 0, 0, 0, 0, 1]),
                sender_boot: Boot(1),
                nonce: 7,
                rsu: NodeId::NONE,
                asked: NodeId::NONE,
            }
            .into(),
        }
    }

    #[test]
    fn reads_what_it_wrote() {
        let flat: Vec<u8> = (&message()).into();
        assert_eq!(flat.len(), message().wire_len());
        assert_eq!(flat.capacity(), flat.len());
        assert_eq!(Message::parse(&flat, ETHERTYPE_DEFAULT), Ok(message()));
        assert_eq!(Message::try_from(&flat[..]), Ok(message()));
        let nested: Vec<Vec<u8>> = (&message()).into();
        assert_eq!(nested.concat(), flat);
    }

    #[test]
    fn the_head_of_a_data_message_ends_where_its_payload_begins() {
        let payload = [7; 60];
        let data = ToUpstream {
            destination: NodeId([2, 0, 0, 0, 0, 9]),
            source: NodeId([2, 0, 0, 0, 0, 1]),
            hop_limit: 3,
            boot: 1,
            seq: Seq(5),
            again: false,
            priority: 4,
            payload: &payload,
        };
        let labels = [[1, 2], [3, 4], [5, 6]];
        let to = |destination| ToDownstream {
            destination,
            source: NodeId([2, 0, 0, 0, 0, 9]),
            boot: 1,
            seq: Seq(5),
            priority: 4,
            payload: &payload,
        };
        let id = NodeId([2, 0, 0, 0, 0, 1]);
        let way = Way::new(4, &labels).unwrap();
        let except = NodeId::NONE;
        let to_one = to(Destination::Node { id, way });
        let to_all = to(Destination::All { except, hop_limit: 9, taken_at: Seq(7) });
        for (data, head_len) in [(data.into(), 22), (to_one.into(), 30), (to_all.into(), 26)] {
            let message = Message { packet: PacketType::Data(data), ..message() };
            let mut flat = Vec::new();
            emit_head(message.to, message.from, message.ethertype, &data, &mut flat);
            assert_eq!((flat.len(), data.head_len()), (14 + head_len, head_len));
            flat.extend_from_slice(&payload);
            assert_eq!(flat, Vec::from(&message));
        }
    }

    #[test]
    fn the_nested_form_of_the_longest_table_does_not_grow() {
        let node = |last| NodeId([2, 0, 0, 0, 0, last]);
        let reply = HeartbeatReply {
            rsu: node(1),
            origin: node(2),
            order: Order::new(1, 2),
            epoch: 1,
            via: node(1),
            digest: 0,
            clients: 0,
            within_ds: 10,
            at_risk_10ms: 0,
            answers: Seq(3),
            held_100us: 4,
            mtu: 1500,
            hops: 0,
            goodbye: false,
            standby: false,
            acknowledge: false,
        };
        let nested: Vec<Vec<u8>> = (&Message { packet: reply.into(), ..message() }).into();
        assert_eq!((nested.len(), nested.capacity()), (20, 20));
    }

    #[test]
    fn leaves_other_protocols_alone() {
        let flat: Vec<u8> = (&message()).into();
        let need = ParseError::EtherType { need: 0x8947, have: ETHERTYPE_DEFAULT };
        assert_eq!(Message::parse(&flat, 0x8947), Err(need));
    }

    #[test]
    fn refuses_half_a_header() {
        let need = ParseError::Truncated { message: "frame", need: 14, have: 13 };
        assert_eq!(Message::parse(&[0; 13], ETHERTYPE_DEFAULT), Err(need));
    }
}
