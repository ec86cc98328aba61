//! TCP and UDP frames made by `etherparse`.

use etherparse::{
    IpHeaders, IpNumber, Ipv4Header, Ipv4Options, Ipv6Extensions, Ipv6Header, Ipv6RawExtHeader,
    NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice, VlanId,
};
use node_lib::Mac;
use node_lib::offload::{Gso, VnetHeader};
use proptest::prelude::*;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const URG: u8 = 0x20;
pub(crate) const ECE: u8 = 0x40;
pub(crate) const CWR: u8 = 0x80;

/// What all frames of a flow have in common.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) number: u8,
    pub(crate) tags: usize,
    pub is_v6: bool,
    /// IPv4 options, or an IPv6 extension header.
    pub(crate) has_extras: bool,
    pub(crate) has_timestamps: bool,
    pub(crate) ttl: u8,
    pub(crate) dscp: u8,
    pub(crate) is_df: bool,
}

/// What differs from segment to segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) identification: u16,
    pub(crate) timestamp: u32,
    pub(crate) flags: u8,
    pub(crate) urgent: u16,
    pub(crate) payload: Vec<u8>,
}

impl Flow {
    pub(crate) const PLAIN: Self = Self {
        number: 1,
        tags: 0,
        is_v6: false,
        has_extras: false,
        has_timestamps: true,
        ttl: 64,
        dscp: 0,
        is_df: true,
    };

    pub(crate) fn any() -> impl Strategy<Value = Self> {
        (any::<u8>(), 0_usize..3, any::<[bool; 4]>(), any::<u8>(), 0_u8..64).prop_map(
            |(number, tags, [is_v6, has_extras, has_timestamps, is_df], ttl, dscp)| Self {
                number,
                tags,
                is_v6,
                has_extras,
                has_timestamps,
                ttl,
                dscp,
                is_df,
            },
        )
    }

    /// The address it comes from.
    pub(crate) fn mac(&self) -> Mac {
        Mac([2, 0, 0, 0, 0, self.number])
    }

    /// Where the IP header begins.
    pub(crate) fn network(&self) -> usize {
        14 + 4 * self.tags
    }

    /// Where the TCP or UDP header begins.
    pub(crate) fn transport(&self) -> usize {
        let extras = match (self.has_extras, self.is_v6) {
            (false, _) => 0,
            (true, false) => 4,
            (true, true) => 8,
        };
        self.network() + if self.is_v6 { 40 } else { 20 } + extras
    }

    fn ip(&self, identification: u16) -> IpHeaders {
        let n = self.number;
        if self.is_v6 {
            let header = Ipv6Header {
                traffic_class: self.dscp << 2,
                flow_label: u32::from(n).try_into().unwrap(),
                hop_limit: self.ttl,
                source: [n; 16],
                destination: [0xfd; 16],
                ..Ipv6Header::default()
            };
            let options = Ipv6RawExtHeader::new_raw(IpNumber::TCP, &[1, 4, 0, 0, 0, 0]).unwrap();
            let extensions = Ipv6Extensions {
                hop_by_hop_options: self.has_extras.then_some(options),
                ..Ipv6Extensions::default()
            };
            IpHeaders::Ipv6(header, extensions)
        } else {
            let options = if self.has_extras { Ipv4Options::from([1; 4]) } else { <_>::default() };
            let header = Ipv4Header {
                dscp: self.dscp.try_into().unwrap(),
                identification,
                dont_fragment: self.is_df,
                time_to_live: self.ttl,
                source: [10, 0, 0, n],
                destination: [10, 0, 1, n],
                options,
                ..Ipv4Header::default()
            };
            IpHeaders::Ipv4(header, <_>::default())
        }
    }

    /// One whole frame with right checksums.
    pub(crate) fn tcp(&self, segment: &Segment) -> Vec<u8> {
        let has = |flag| segment.flags & flag != 0;
        let mut tcp = TcpHeader {
            source_port: 40_000 + u16::from(self.number),
            destination_port: 443,
            sequence_number: segment.seq,
            acknowledgment_number: segment.ack,
            fin: has(FIN),
            syn: has(SYN),
            rst: has(RST),
            psh: has(PSH),
            ack: has(ACK),
            urg: has(URG),
            ece: has(ECE),
            cwr: has(CWR),
            window_size: segment.window,
            urgent_pointer: segment.urgent,
            ..TcpHeader::default()
        };
        if self.has_timestamps {
            let [a, b, c, d] = segment.timestamp.to_be_bytes();
            tcp.set_options_raw(&[1, 1, 8, 10, a, b, c, d, 0, 0, 0, 9]).unwrap();
        }
        let eth = PacketBuilder::ethernet2(self.mac().0, [2, 0, 0, 0, 1, 1]);
        let ip = self.ip(segment.identification);
        let ip = match self.tags {
            0 => eth.ip(ip),
            1 => eth.single_vlan(vlan(self.number)).ip(ip),
            _ => eth.double_vlan(vlan(7), vlan(self.number)).ip(ip),
        };
        let mut frame = Vec::new();
        ip.tcp_header(tcp).write_to_vec(&mut frame, &segment.payload).unwrap();
        frame
    }

    /// One whole datagram with right checksums.
    pub(crate) fn udp(&self, identification: u16, payload: &[u8]) -> Vec<u8> {
        let eth = PacketBuilder::ethernet2(self.mac().0, [2, 0, 0, 0, 1, 1]);
        let ip = self.ip(identification);
        let ip = match self.tags {
            0 => eth.ip(ip),
            1 => eth.single_vlan(vlan(self.number)).ip(ip),
            _ => eth.double_vlan(vlan(7), vlan(self.number)).ip(ip),
        };
        let mut frame = Vec::new();
        ip.udp(5000, u16::from(self.number)).write_to_vec(&mut frame, payload).unwrap();
        frame
    }

    /// The super-frame as a kernel hands it over: only the pseudo header is in the checksum.
    pub(crate) fn super_frame(&self, segment: &Segment, gso_size: u16) -> (VnetHeader, Vec<u8>) {
        let mut frame = self.tcp(segment);
        self.make_partial(&mut frame, 6, 16);
        let vnet = VnetHeader {
            needs_csum: true,
            gso: if self.is_v6 { Gso::TcpV6 } else { Gso::TcpV4 },
            ecn: segment.flags & CWR != 0,
            hdr_len: (frame.len() - segment.payload.len()) as u16,
            gso_size,
            csum_start: self.transport() as u16,
            csum_offset: 16,
            ..VnetHeader::default()
        };
        (vnet, frame)
    }

    /// The same for datagrams.
    pub(crate) fn super_datagram(
        &self,
        id: u16,
        payload: &[u8],
        gso_size: u16,
    ) -> (VnetHeader, Vec<u8>) {
        let mut frame = self.udp(id, payload);
        self.make_partial(&mut frame, 17, 6);
        let vnet = VnetHeader {
            needs_csum: true,
            gso: Gso::Udp,
            gso_size,
            csum_start: self.transport() as u16,
            csum_offset: 6,
            ..VnetHeader::default()
        };
        (vnet, frame)
    }

    /// Replaces the checksum by the sum of the pseudo header, added up word by word.
    pub(crate) fn make_partial(&self, frame: &mut [u8], protocol: u8, offset: usize) {
        let (network, transport) = (self.network(), self.transport());
        let addresses =
            if self.is_v6 { network + 8..network + 40 } else { network + 12..network + 20 };
        let mut sum = (frame.len() - transport) as u32 + u32::from(protocol);
        for word in frame[addresses].chunks(2) {
            sum += u32::from(word[0]) << 8 | u32::from(word[1]);
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        frame[transport + offset..][..2].copy_from_slice(&(sum as u16).to_be_bytes());
    }
}

impl Segment {
    pub(crate) fn with(payload: Vec<u8>) -> Self {
        Self {
            seq: 1000,
            ack: 77,
            window: 501,
            identification: 0xfffe,
            timestamp: 3,
            flags: ACK,
            urgent: 0,
            payload,
        }
    }

    pub(crate) fn any(len: std::ops::Range<usize>) -> impl Strategy<Value = Self> {
        let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u32>());
        let flags = prop_oneof![
            4 => Just(ACK),
            1 => Just(ACK | PSH),
            1 => Just(ACK | FIN),
            1 => Just(ACK | CWR),
            1 => Just(ACK | ECE | CWR | PSH | FIN),
        ];
        (numbers, flags, len, any::<u8>()).prop_map(
            |((seq, ack, window, identification, timestamp), flags, len, fill)| Self {
                seq,
                ack,
                window,
                identification,
                timestamp,
                flags,
                urgent: 0,
                payload: pattern(len, fill),
            },
        )
    }
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(len: usize, fill: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ fill).collect()
}

/// Panics unless `etherparse` can read the frame and finds its checksums right.
pub(crate) fn assert_intact(frame: &[u8]) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    match packet.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
            let (from, to) = (header.source(), header.destination());
            match packet.transport.as_ref().unwrap() {
                TransportSlice::Tcp(tcp) => {
                    assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv4(from, to).unwrap());
                }
                TransportSlice::Udp(udp) => {
                    let header = udp.to_header();
                    let ip = ip.header().to_header();
                    let check = header.calc_checksum_ipv4(&ip, udp.payload()).unwrap();
                    assert_eq!(udp.checksum(), check);
                }
                other => panic!("neither TCP nor UDP: {other:?}"),
            }
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            match packet.transport.as_ref().unwrap() {
                TransportSlice::Tcp(tcp) => {
                    let check = tcp.calc_checksum_ipv6(header.source, header.destination).unwrap();
                    assert_eq!(tcp.checksum(), check);
                }
                TransportSlice::Udp(udp) => {
                    let check = udp.to_header().calc_checksum_ipv6(&header, udp.payload()).unwrap();
                    assert_eq!(udp.checksum(), check);
                }
                other => panic!("neither TCP nor UDP: {other:?}"),
            }
        }
        other => panic!("not IP: {other:?}"),
    }
}

fn vlan(number: u8) -> VlanId {
    VlanId::try_new(u16::from(number)).unwrap()
}
