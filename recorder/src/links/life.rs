//! What one recording tells of one life of a node: what it sent, and what it heard.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};

use node_lib::Mac;
use node_lib::control::event::{Event, HandOver};
use node_lib::control::node::LinkEvent;

use crate::header::RecordingHeader;
use crate::read::{Item, ReadError, Recording};
use crate::record::{Frame, What};
use crate::tape::SNAP_MIN;

use super::Micros;

/// One life of one node, as it was recorded.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) header: RecordingHeader,
    /// From its clock to that of all.
    pub(super) offset: Micros,
    pub(super) began: Micros,
    pub(super) ended: Micros,
    pub(super) said_goodbye: bool,
    pub(super) sent: Vec<Sending>,
    pub(super) heard: HashMap<u64, VecDeque<Micros>>,
    pub(super) signals: BTreeMap<Mac, Vec<(Micros, i8)>>,
    pub(super) radio: Vec<(Micros, bool)>,
    pub(super) hand_overs: Vec<(Micros, HandOver)>,
    /// What clients sent through it, and what they were sent.
    pub(super) up: Traffic,
    pub(super) down: Traffic,
    pub(super) macs: Vec<Mac>,
}

/// Frames one way through a TAP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) first: Micros,
    pub(super) last: Micros,
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

impl Traffic {
    fn note(&mut self, at: Micros, frame: &Frame<'_>) {
        if self.frames == 0 {
            self.first = at;
        }
        self.last = at;
        self.frames += 1;
        self.bytes += u64::from(frame.len);
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) at: Micros,
    pub(super) hash: u64,
    /// `None`: everybody.
    pub(super) to: Option<Mac>,
}

/// Whoever recorded it kept so much of it; the numbers that tell it from others are among that.
fn hash(frame: &Frame<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u32(frame.len);
    hasher.write(frame.bytes.get(..SNAP_MIN as usize).unwrap_or(&frame.bytes));
    hasher.finish()
}

fn mac_at(frame: &Frame<'_>, at: usize) -> Option<Mac> {
    frame.bytes.get(at..at + 6)?.try_into().ok().map(Mac)
}

impl Life {
    pub(super) fn read(recording: &Recording) -> Result<Option<Self>, ReadError> {
        let header = recording.header().clone();
        let base = Micros::try_from(header.began_unix_ns / 1000).unwrap_or(0);
        let mut life = Self {
            offset: 0,
            began: Micros::MAX,
            ended: Micros::MIN,
            said_goodbye: false,
            sent: Vec::new(),
            heard: HashMap::new(),
            signals: BTreeMap::new(),
            radio: Vec::new(),
            hand_overs: Vec::new(),
            up: Traffic::default(),
            down: Traffic::default(),
            macs: vec![Mac(header.radio_mac)],
            header,
        };
        recording.read(|item| {
            let Item::Record(record) = item else { return Ok::<_, ReadError>(true) };
            let at = base + Micros::try_from(record.at.as_micros()).unwrap_or(0);
            life.began = life.began.min(at);
            life.ended = life.ended.max(at);
            match &record.what {
                What::ToRadio(frame) => {
                    let to = mac_at(frame, 0).filter(|mac| mac.is_unicast());
                    life.sent.push(Sending { at, hash: hash(frame), to });
                }
                What::FromTap(frame) | What::FromTapLate(frame) => life.up.note(at, frame),
                What::ToTap(frame) => life.down.note(at, frame),
                What::FromRadio(frame) => {
                    life.heard.entry(hash(frame)).or_default().push_back(at);
                }
                What::Signal { from, dbm } => {
                    life.signals.entry(*from).or_default().push((at, *dbm));
                }
                What::Link(LinkEvent::Up) => life.radio.push((at, true)),
                What::Link(LinkEvent::Down) => life.radio.push((at, false)),
                What::Link(LinkEvent::AddressChanged(mac)) => life.macs.push(*mac),
                What::Shutdown => life.said_goodbye = true,
                What::Event(Event::HandOver(done)) => life.hand_overs.push((at, *done)),
                _ => {}
            }
            Ok(true)
        })?;
        Ok((life.began <= life.ended).then_some(life))
    }

    pub(super) fn shift(&mut self, by: Micros) {
        self.offset += by;
        self.began += by;
        self.ended += by;
        self.sent.iter_mut().for_each(|sent| sent.at += by);
        self.heard.values_mut().flatten().for_each(|at| *at += by);
        self.signals.values_mut().flatten().for_each(|(at, _)| *at += by);
        self.radio.iter_mut().for_each(|(at, _)| *at += by);
        self.hand_overs.iter_mut().for_each(|(at, _)| *at += by);
        for traffic in [&mut self.up, &mut self.down] {
            (traffic.first, traffic.last) = (traffic.first + by, traffic.last + by);
        }
    }

    /// The least time from its sending to the hearing of a frame that was sent once and heard once,
    /// each by the clock of its own node.
    pub(super) fn quickest(&self, hearer: &Self) -> Option<Micros> {
        let mut times: HashMap<u64, u32> = HashMap::new();
        for sent in &self.sent {
            *times.entry(sent.hash).or_default() += 1;
        }
        let once = self.sent.iter().filter(|sent| times.get(&sent.hash) == Some(&1));
        let both = once.filter_map(|sent| {
            let heard = hearer.heard.get(&sent.hash)?;
            (heard.len() == 1).then(|| heard.front().map(|at| at - sent.at)).flatten()
        });
        both.min()
    }

    pub(super) fn name(&self) -> String {
        let id: String = self.header.id.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{id}", self.header.role.as_str())
    }
}
