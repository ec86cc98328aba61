//! Frames to super-frames, by the rules of the kernel's receive coalescing (GRO), narrowed so that
//! splitting gives the same frames again, byte for byte.
//!
//! Segments of one TCP flow join when they follow each other in sequence and differ in nothing but
//! length, IPv4 identification (one more each), sequence number, checksums, and FIN and PSH on the
//! last. The flow is what the frame begins with: MAC addresses, VLAN tags, IP addresses, ports.
//!
//! | a segment … | and the super-frame before it |
//! |---|---|
//! | follows, and is as long as the first | goes on |
//! | follows, and is shorter, or has FIN or PSH | goes on to include it, and ends |
//! | differs in window, acknowledgement, options, TTL, traffic class, … | ends; the segment begins the next |
//! | has CWR | ends; the segment begins the next, which says so (`ecn`) |
//! | has SYN, RST, URG, no ACK, no payload, padding, IPv4 options, IPv6 extensions | ends; the segment passes as it is |
//! | has a wrong checksum | ends; the segment passes as it is, for the host to count and drop |
//! | is an IP fragment of TCP, or cut off | of every flow ends: its ports are not known |
//!
//! All else passes as it is and ends nothing. Narrower than GRO: the window must not change, and a
//! checksum must have the one form splitting gives it. Identifications that stay the same do not
//! join, because a vnet header cannot say that they did. Ends come also with the batch, with 64
//! segments, and at 65,535 bytes.
//!
//! The kernel takes a super-frame's word for it, so checksums are verified first, but only where
//! there is something to join: a segment that stays alone is left to the kernel.

use super::checksum::Sum;
use super::gso::Gso;
use super::headers::{
    ACK, CWR, FIN, Headers, PSH, RST, SYN, TCP, TCP_CHECK, TCP_FLAGS, TCP_LEN_MIN, URG, V6_LEN,
    Version, array_at, put,
};
use super::malformed::Malformed;
use super::vnet::{self, VnetHeader};

/// Flows that may be open at once. One more ends the oldest.
pub const FLOWS_MAX: usize = 16;
/// Segments in a super-frame, at most: 64 KiB hold 45 of 1460 bytes.
pub const SEGMENTS_MAX: usize = 64;
/// Parts of a [`Write`], at most: vnet header, headers, and the payload of each segment.
pub const PARTS_MAX: usize = SEGMENTS_MAX + 2;

/// Bytes of a super-frame, at most: an IP packet and its link header within a legacy GSO packet.
const FRAME_MAX: usize = 65_535;
/// Ethernet with two tags, IPv6, TCP with all options.
const HEADERS_MAX: usize = 14 + 2 * 4 + 40 + 60;

/// Joins the frames of one batch after another. Keeps nothing between batches but its memory.
#[derive(Debug, Default)]
pub struct Joiner {
    /// Open super-frames, oldest first.
    flows: Vec<Flow>,
    planned: Vec<Planned>,
    /// For each frame of the batch the one that continues it in its super-frame.
    continued_by: Vec<Option<u32>>,
}

/// An open super-frame.
#[derive(Clone, Debug)]
struct Flow {
    /// Number of its first frame, and what was found there.
    first: u32,
    segment: Segment,
    /// Number of its last frame.
    last: u32,
    segments: u16,
    /// Bytes of all payloads.
    payload: usize,
    /// Flags of the last segment.
    flags: u8,
    /// The checksums of the first segment are right. Not looked at before a second one comes.
    is_verified: bool,
}

/// One write to be made.
#[derive(Debug)]
struct Planned {
    first: u32,
    segments: u16,
    vnet: VnetHeader,
    /// Headers of a super-frame; empty if the frame is to be written as it is.
    headers: [u8; HEADERS_MAX],
    headers_len: usize,
}

/// A TCP segment that may join others.
#[derive(Clone, Copy, Debug)]
struct Segment {
    headers: Headers,
    /// Where its payload begins.
    payload: usize,
    seq: u32,
    flags: u8,
    /// Of IPv4.
    identification: u16,
    constant: Constant,
}

/// What all segments of a super-frame have in common beside addresses, ports and TCP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Constant {
    /// IPv4: version, traffic class, flags, offset, time to live, protocol. IPv6: version, traffic
    /// class, flow label, next header, hop limit.
    network: [u8; 6],
    acknowledgement: [u8; 4],
    /// With the reserved bits.
    header_len: u8,
    window: [u8; 2],
    urgent: [u8; 2],
}

/// What a frame is to the flows.
enum Kind {
    /// May join others.
    Segment(Segment),
    /// Of a TCP flow, but not to be joined.
    Alone(Headers),
    /// Of a TCP flow unknown.
    Unclear,
    /// Of no TCP flow.
    Other,
}

impl Joiner {
    /// A joiner with room for a usual burst.
    pub fn new() -> Self {
        Self {
            flows: Vec::with_capacity(FLOWS_MAX),
            planned: Vec::with_capacity(SEGMENTS_MAX),
            continued_by: Vec::with_capacity(SEGMENTS_MAX),
        }
    }

    /// The writes that hand `frames` over. Order is kept within each flow, and among frames that
    /// are of no TCP flow.
    pub fn join<'a, F: AsRef<[u8]>>(
        &'a mut self,
        frames: &'a [F],
    ) -> impl Iterator<Item = Write<'a, F>> {
        self.flows.clear();
        self.planned.clear();
        self.continued_by.clear();
        self.continued_by.resize(frames.len(), None);
        for (number, frame) in (0..).zip(frames) {
            self.take(frames, number, frame.as_ref());
        }
        self.end_all(frames);
        self.planned.iter().map(|planned| Write {
            planned,
            vnet: planned.vnet.emit(),
            frames,
            continued_by: &self.continued_by,
        })
    }

    fn take<F: AsRef<[u8]>>(&mut self, frames: &[F], number: u32, frame: &[u8]) {
        let segment = match Kind::of(frame) {
            Kind::Segment(segment) => segment,
            Kind::Alone(headers) => {
                if let Some(at) = self.find(frames, frame, &headers) {
                    self.end(frames, at);
                }
                return self.pass(number);
            }
            Kind::Unclear => {
                self.end_all(frames);
                return self.pass(number);
            }
            Kind::Other => return self.pass(number),
        };
        if let Some(at) = self.find(frames, frame, &segment.headers) {
            let Some(flow) = self.flows.get_mut(at) else { return };
            let first = bytes(frames, flow.first);
            if flow.continues(first, frame, &segment) {
                flow.is_verified = flow.is_verified || flow.segment.is_intact(first);
                if flow.is_verified {
                    if !segment.is_intact(frame) {
                        self.end(frames, at);
                        return self.pass(number);
                    }
                    let is_last =
                        segment.ends() || segment.payload_len() < flow.segment.payload_len();
                    if let Some(link) = self.continued_by.get_mut(flow.last as usize) {
                        *link = Some(number);
                    }
                    flow.append(number, &segment);
                    if is_last {
                        self.end(frames, at);
                    }
                    return;
                }
            }
            self.end(frames, at);
        }
        if segment.ends() {
            return self.pass(number);
        }
        if self.flows.len() >= FLOWS_MAX {
            self.end(frames, 0);
        }
        self.flows.push(Flow::new(number, segment));
    }

    /// The open super-frame of the flow `frame` belongs to.
    #[inline]
    fn find<F: AsRef<[u8]>>(&self, frames: &[F], frame: &[u8], headers: &Headers) -> Option<usize> {
        self.flows.iter().position(|flow| {
            let (first, at) = (bytes(frames, flow.first), &flow.segment.headers);
            at.network == headers.network
                && ports(first, at) == ports(frame, headers)
                && at.addresses(first) == headers.addresses(frame)
                && first.get(..at.network) == frame.get(..headers.network)
        })
    }

    fn end_all<F: AsRef<[u8]>>(&mut self, frames: &[F]) {
        while !self.flows.is_empty() {
            self.end(frames, 0);
        }
    }

    /// Ends the super-frame at place `at`.
    fn end<F: AsRef<[u8]>>(&mut self, frames: &[F], at: usize) {
        if at >= self.flows.len() {
            return;
        }
        let flow = self.flows.remove(at);
        let mut planned = Planned::pass(flow.first);
        if flow.segments > 1 {
            let written = planned.head(&flow, bytes(frames, flow.first));
            debug_assert_eq!(written, Ok(()), "all of it was read before");
        }
        self.planned.push(planned);
    }

    fn pass(&mut self, number: u32) {
        self.planned.push(Planned::pass(number));
    }
}

impl Kind {
    #[inline]
    fn of(frame: &[u8]) -> Self {
        let headers = match Headers::parse(frame) {
            Ok(headers) if headers.protocol != TCP => return Self::Other,
            Err(Malformed::NotIp(_)) => return Self::Other,
            Ok(headers) if !headers.is_fragment => headers,
            _ => return Self::Unclear,
        };
        match Segment::read(frame, &headers) {
            Ok(Some(segment)) => Self::Segment(segment),
            Ok(None) => Self::Alone(headers),
            Err(_) => Self::Unclear,
        }
    }
}

impl Segment {
    /// `None` if it is of a kind that is not to be joined.
    #[inline]
    fn read(frame: &[u8], headers: &Headers) -> Result<Option<Self>, Malformed> {
        let payload = headers.tcp_payload(frame)?;
        let [.., s0, s1, s2, s3, a0, a1, a2, a3, header_len, flags, w0, w1, _, _, u0, u1]: [u8;
            20] = array_at(frame, headers.transport)?;
        let (network, identification) = match headers.version {
            Version::V4 => {
                let [version, class, _, _, i0, i1, f0, f1, ttl, protocol] =
                    array_at(frame, headers.network)?;
                ([version, class, f0, f1, ttl, protocol], u16::from_be_bytes([i0, i1]))
            }
            Version::V6 => {
                let [version, class, l0, l1, _, _, next, hops] = array_at(frame, headers.network)?;
                ([version, class, l0, l1, next, hops], 0)
            }
        };
        let may_join = flags & (SYN | RST | URG | ACK) == ACK
            && headers.is_plain
            && headers.end == frame.len()
            && payload < headers.end
            && frame.len() <= FRAME_MAX;
        Ok(may_join.then_some(Self {
            headers: *headers,
            payload,
            seq: u32::from_be_bytes([s0, s1, s2, s3]),
            flags,
            identification,
            constant: Constant {
                network,
                acknowledgement: [a0, a1, a2, a3],
                header_len,
                window: [w0, w1],
                urgent: [u0, u1],
            },
        }))
    }

    #[inline]
    fn payload_len(&self) -> usize {
        self.headers.end - self.payload
    }

    #[inline]
    fn options<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        frame.get(self.headers.transport + TCP_LEN_MIN..self.payload)
    }

    /// Nothing may follow it in a super-frame.
    #[inline]
    fn ends(&self) -> bool {
        self.flags & (FIN | PSH) != 0
    }

    /// Whether its checksums are right, and as splitting would write them. Zero has two forms, of
    /// which splitting writes the other.
    #[inline]
    fn is_intact(&self, frame: &[u8]) -> bool {
        const OTHER_ZERO: Result<[u8; 2], Malformed> = Ok([0xff, 0xff]);
        let Headers { version, network, transport, end, .. } = self.headers;
        if version == Version::V4 {
            let header = frame.get(network..transport).unwrap_or_default();
            if !Sum::of(header).is_valid() || array_at(header, 10) == OTHER_ZERO {
                return false;
            }
        }
        let segment = frame.get(transport..end).unwrap_or_default();
        array_at(segment, TCP_CHECK) != OTHER_ZERO
            && self.pseudo_header(frame, segment.len()).plus(Sum::of(segment)).is_valid()
    }

    #[inline]
    fn pseudo_header(&self, frame: &[u8], len: usize) -> Sum {
        let addresses = self.headers.addresses(frame).unwrap_or_default();
        // At most an IP packet.
        Sum::pseudo_header(addresses, TCP, len as u32)
    }
}

impl Flow {
    fn new(number: u32, segment: Segment) -> Self {
        Self {
            first: number,
            segment,
            last: number,
            segments: 1,
            payload: segment.payload_len(),
            flags: segment.flags,
            is_verified: false,
        }
    }

    /// Whether `segment` of `frame` is the next after what is there, `first` being the first frame.
    #[inline]
    fn continues(&self, first: &[u8], frame: &[u8], segment: &Segment) -> bool {
        let ours = &self.segment;
        let len = segment.payload_len();
        let identification = match segment.headers.version {
            Version::V4 => ours.identification.wrapping_add(self.segments),
            Version::V6 => 0,
        };
        segment.seq == ours.seq.wrapping_add(self.payload as u32)
            && segment.identification == identification
            && segment.constant == ours.constant
            && segment.payload == ours.payload
            && len <= ours.payload_len()
            && ours.payload + self.payload + len <= FRAME_MAX
            && usize::from(self.segments) < SEGMENTS_MAX
            && segment.flags & CWR == 0
            && (segment.flags ^ self.flags) & !(FIN | PSH | CWR) == 0
            && segment.options(frame) == ours.options(first)
    }

    fn append(&mut self, number: u32, segment: &Segment) {
        self.last = number;
        self.segments += 1;
        self.payload += segment.payload_len();
        // CWR of the first stays, FIN and PSH of the last come.
        self.flags |= segment.flags;
    }
}

impl Planned {
    fn pass(first: u32) -> Self {
        Self {
            first,
            segments: 1,
            vnet: VnetHeader::default(),
            headers: [0; HEADERS_MAX],
            headers_len: 0,
        }
    }

    /// Makes the headers of a super-frame from those of the first segment.
    fn head(&mut self, flow: &Flow, first: &[u8]) -> Result<(), Malformed> {
        let Headers { version, network, transport, .. } = flow.segment.headers;
        let len = flow.segment.payload;
        let from = first.get(..len).ok_or(Malformed::Truncated)?;
        let headers = self.headers.get_mut(..len).ok_or(Malformed::Truncated)?;
        headers.copy_from_slice(from);

        // All are below FRAME_MAX.
        let end = len + flow.payload;
        match version {
            Version::V4 => {
                put(headers, network + 2, ((end - network) as u16).to_be_bytes())?;
                put(headers, network + 10, [0, 0])?;
                let check = Sum::of(headers.get(network..transport).unwrap_or_default()).finish();
                put(headers, network + 10, check)?;
            }
            Version::V6 => {
                put(headers, network + 4, ((end - network - V6_LEN) as u16).to_be_bytes())?;
            }
        }
        put(headers, transport + TCP_FLAGS, [flow.flags])?;
        let pseudo = flow.segment.pseudo_header(first, end - transport);
        put(headers, transport + TCP_CHECK, pseudo.partial())?;

        self.headers_len = len;
        self.segments = flow.segments;
        self.vnet = VnetHeader {
            needs_csum: true,
            data_valid: false,
            gso: match version {
                Version::V4 => Gso::TcpV4,
                Version::V6 => Gso::TcpV6,
            },
            ecn: flow.flags & CWR != 0,
            hdr_len: len as u16,
            gso_size: flow.segment.payload_len() as u16,
            csum_start: transport as u16,
            csum_offset: TCP_CHECK as u16,
        };
        Ok(())
    }
}

/// One write to a TAP with vnet headers: a frame as it came, or a super-frame.
pub struct Write<'a, F> {
    planned: &'a Planned,
    vnet: [u8; vnet::LEN],
    frames: &'a [F],
    continued_by: &'a [Option<u32>],
}

impl<'a, F: AsRef<[u8]>> Write<'a, F> {
    /// Frames that are in it.
    pub fn segments(&self) -> usize {
        usize::from(self.planned.segments)
    }

    /// Bytes of the longest of them.
    pub fn longest(&self) -> usize {
        let VnetHeader { gso, hdr_len, gso_size, .. } = self.planned.vnet;
        match gso {
            Gso::None => bytes(self.frames, self.planned.first).len(),
            _ => usize::from(hdr_len) + usize::from(gso_size),
        }
    }

    /// Bytes of all of them together.
    pub fn bytes(&self) -> usize {
        let headers = self.segments() * self.planned.headers_len;
        headers + self.payloads().map(<[u8]>::len).sum::<usize>()
    }

    /// The frame, if it is one that passes as it is.
    pub fn whole(&self) -> Option<&'a [u8]> {
        (self.planned.headers_len == 0).then(|| bytes(self.frames, self.planned.first))
    }

    /// The vnet header it begins with.
    pub fn vnet(&self) -> VnetHeader {
        self.planned.vnet
    }

    /// What is to be written one after the other, by a single system call: vnet header, headers,
    /// payloads. At most [`PARTS_MAX`].
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let headers = self.planned.headers.get(..self.planned.headers_len).unwrap_or_default();
        let has_headers = self.planned.headers_len > 0;
        [&self.vnet[..]].into_iter().chain(has_headers.then_some(headers)).chain(self.payloads())
    }

    /// The payload of each segment, or the whole frame.
    fn payloads(&self) -> impl Iterator<Item = &'a [u8]> {
        let (frames, continued_by, skip) =
            (self.frames, self.continued_by, self.planned.headers_len);
        // A frame that passes as it is continues nothing and is continued by nothing.
        std::iter::successors(Some(self.planned.first), move |&number| {
            continued_by.get(number as usize).copied().flatten()
        })
        .map(move |number| bytes(frames, number).get(skip..).unwrap_or_default())
    }
}

/// Source and destination port.
#[inline]
fn ports(frame: &[u8], headers: &Headers) -> Option<[u8; 4]> {
    array_at(frame, headers.transport).ok()
}

#[inline]
fn bytes<F: AsRef<[u8]>>(frames: &[F], number: u32) -> &[u8] {
    frames.get(number as usize).map(AsRef::as_ref).unwrap_or_default()
}
