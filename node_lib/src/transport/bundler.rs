//! Small frames for the same neighbour leave in one, and are taken apart where they arrive.

use arrayvec::ArrayVec;
use tracing::trace;

use super::{CHUNK, Outgoing};
use crate::control::next_hop::NextHop;
use crate::messages::ETHERNET_HEADER_LEN;
use crate::messages::bundle::{self, Messages};

/// What went through since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleCounters {
    /// Bundles sent.
    pub tx_bundles: u64,
    /// Frames in them.
    pub tx_bundled: u64,
    /// Bundles received.
    pub rx_bundles: u64,
    /// Frames in them.
    pub rx_bundled: u64,
    /// Bundles with something in them that could not be read.
    pub rx_malformed: u64,
}

impl BundleCounters {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("tx_bundles", self.tx_bundles),
            ("tx_bundled", self.tx_bundled),
            ("rx_bundles", self.rx_bundles),
            ("rx_bundled", self.rx_bundled),
            ("rx_malformed", self.rx_malformed),
        ]
        .into_iter()
    }
}

/// Makes bundles, in memory it keeps.
#[derive(Debug, Default)]
pub(super) struct Bundler {
    /// Longest frame the radio takes; zero when nothing is to be bundled.
    frame_max: usize,
    storage: Vec<u8>,
    counters: BundleCounters,
}

impl Bundler {
    pub(super) fn new(radio_mtu: Option<usize>) -> Self {
        let mut bundler =
            Self { frame_max: 0, storage: Vec::new(), counters: BundleCounters::default() };
        if let Some(mtu) = radio_mtu {
            bundler.frame_max = mtu.saturating_add(ETHERNET_HEADER_LEN);
        }
        bundler
    }

    /// The radio has another MTU.
    pub(super) fn set_radio_mtu(&mut self, mtu: usize) {
        if self.frame_max != 0 {
            self.frame_max = mtu.saturating_add(ETHERNET_HEADER_LEN);
        }
    }

    /// The same frames in the same order, those next to each other in bundles where they fit: the
    /// radio, and what is `narrow` on the way of those for it. `room` is where they are put if any
    /// do.
    pub(super) fn gather<'a, 'r>(
        &'a mut self,
        frames: &'r [Outgoing<'a>],
        narrow: &[NextHop],
        room: &'r mut ArrayVec<Outgoing<'a>, CHUNK>,
    ) -> &'r [Outgoing<'a>] {
        let Self { frame_max, storage, counters } = self;
        if frames.len() < 2 || *frame_max == 0 {
            return frames;
        }
        storage.clear();
        let mut sizes: ArrayVec<(usize, usize), CHUNK> = ArrayVec::new();
        for run in runs(*frame_max, narrow, frames) {
            let begin = storage.len();
            if run.len() > 1 {
                bundle::emit(run.iter().map(|frame| frame.bytes), storage);
                counters.tx_bundles += 1;
                counters.tx_bundled += run.len() as u64;
            }
            sizes.push((run.len(), storage.len() - begin));
        }
        let (mut left, mut stored) = (frames, &storage[..]);
        for &(count, len) in &sizes {
            let Some((run, frames)) = left.split_at_checked(count) else { break };
            let Some((bytes, rest)) = stored.split_at_checked(len) else { break };
            (left, stored) = (frames, rest);
            if let [first, others @ ..] = run {
                let bytes = if others.is_empty() { first.bytes } else { bytes };
                room.push(Outgoing { bytes, priority: first.priority });
            }
        }
        room
    }

    /// Remembers what was in a bundle, and says how many frames that were.
    pub(super) fn count(&mut self, opened: &Opened) -> usize {
        self.counters.rx_bundles += 1;
        self.counters.rx_bundled += opened.frames as u64;
        self.counters.rx_malformed += u64::from(opened.is_malformed);
        opened.frames
    }

    pub(super) fn counters(&self) -> &BundleCounters {
        &self.counters
    }
}

/// A bundle that is being taken apart where it lies.
#[derive(Debug)]
pub struct Opened {
    header: [u8; ETHERNET_HEADER_LEN],
    messages: Messages,
    frames: usize,
    is_malformed: bool,
}

impl Opened {
    /// Looks at a received frame. One that is no bundle, or none that can be opened, is the node's
    /// to judge.
    #[inline]
    pub fn open(frame: &[u8]) -> Option<Self> {
        if !bundle::is_bundle(frame) {
            return None;
        }
        let header = *frame.first_chunk()?;
        let messages = Messages::open(frame).ok()?;
        Some(Self { header, messages, frames: 0, is_malformed: false })
    }

    /// The next frame in it: a message, and in front of it the Ethernet header, written over the
    /// end of the message before. `frame` is the bundle, each time.
    pub fn next_in<'a>(&mut self, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        match self.messages.next_in(frame)? {
            Ok(message) => {
                self.frames += 1;
                // The first message has its bundle's header in front of it, which is long enough.
                let begin = message.start.checked_sub(self.header.len())?;
                frame.get_mut(begin..message.start)?.copy_from_slice(&self.header);
                frame.get(begin..message.end)
            }
            Err(error) => {
                self.is_malformed = true;
                trace!(%error, "rest of a bundle left out");
                None
            }
        }
    }
}

/// Frames that go together, first to last.
fn runs<'a>(
    frame_max: usize,
    narrow: &[NextHop],
    mut frames: &'a [Outgoing<'a>],
) -> impl Iterator<Item = &'a [Outgoing<'a>]> {
    std::iter::from_fn(move || {
        let first = frames.first()?;
        let on_the_way = narrow.iter().find(|hop| first.bytes.starts_with(&hop.mac.0));
        let frame_max = on_the_way
            .map_or(frame_max, |hop| frame_max.min(usize::from(hop.mtu) + ETHERNET_HEADER_LEN));
        let alike = frames.iter().take_while(|frame| frame.priority == first.priority);
        let count = bundle::fitting(frame_max, alike.map(|frame| frame.bytes));
        let run;
        (run, frames) = frames.split_at_checked(count)?;
        Some(run)
    })
}
