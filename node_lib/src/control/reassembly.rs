//! Data messages that came in parts: [`Reassembly`].

use std::time::Duration;

use crate::control::counters::Counters;
use crate::messages::ETHERNET_HEADER_LEN;
use crate::messages::data::Data;
use crate::messages::fragment::Fragment;
use crate::time::Timestamp;

/// How long a message may take to arrive. Its parts leave the sender one right behind the other:
/// what is between them is the radio repeating what was lost, and frames more urgent.
pub const AGE_MAX: Duration = Duration::from_millis(200);

/// Messages of one neighbour under way. What comes after that is too late for the first of them, as
/// a radio keeps the order of frames of one priority.
pub const PER_NEIGHBOUR_MAX: usize = 8;

/// Messages under way in all.
pub const ENTRIES_MAX: usize = 64;

/// Bytes of all of them together: 64 of frames of 1500 take 100 KB.
pub const BYTES_MAX: usize = 256 * 1024;

/// Buffers kept for the next message, and the largest of them.
const SPARE_MAX: usize = 4;
const SPARE_CAPACITY_MAX: usize = 16 * 1024;

/// The Ethernet header of a hop.
type Header = [u8; ETHERNET_HEADER_LEN];

/// A message some parts of which are missing.
#[derive(Clone, Debug)]
struct Entry {
    header: Header,
    id: u32,
    count: u8,
    /// One bit for each part that has not come.
    missing: u8,
    since: Timestamp,
    /// The frame it will be, from its Ethernet header on.
    frame: Vec<u8>,
}

impl Entry {
    fn is_of(&self, header: &Header, fragment: &Fragment<'_>) -> bool {
        self.id == fragment.id && self.header == *header
    }

    /// The neighbour's address, which is the second in the header.
    fn neighbour(&self) -> Option<&[u8]> {
        self.header.get(6..12)
    }

    fn fits(&self, fragment: &Fragment<'_>) -> bool {
        let total = ETHERNET_HEADER_LEN + usize::from(fragment.place.total);
        self.count == fragment.place.count && self.frame.len() == total
    }
}

/// Puts messages together from [fragments](Fragment), each of which came in a frame of its own.
///
/// Bounded in number, bytes and time. A neighbour with [`PER_NEIGHBOUR_MAX`] under way loses its
/// oldest to its next. When there are [`ENTRIES_MAX`] or more than [`BYTES_MAX`], the neighbour
/// with the most loses its oldest. A part that was there already is ignored. A part that
/// contradicts those before it begins anew, as its sender may have.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    /// Oldest first.
    entries: Vec<Entry>,
    spare: Vec<Vec<u8>>,
}

impl Reassembly {
    /// Nothing under way.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the fragment that came in `frame`. Gives the whole frame when it was the last one
    /// missing; it should come back with [`Reassembly::give_back`].
    pub fn add(
        &mut self,
        now: Timestamp,
        frame: &[u8],
        fragment: &Fragment<'_>,
        counters: &mut Counters,
    ) -> Option<Vec<u8>> {
        let header = frame.first_chunk::<ETHERNET_HEADER_LEN>()?;
        counters.fragments_rx += 1;
        self.expire(now, counters);
        let known = self.entries.iter().rposition(|entry| entry.is_of(header, fragment));
        let at = match known {
            Some(at) if self.entries.get(at)?.fits(fragment) => at,
            Some(at) => {
                self.drop_entry(at);
                counters.reassembly_evicted += 1;
                self.begin(now, header, fragment, counters)
            }
            None => self.begin(now, header, fragment, counters),
        };
        let entry = self.entries.get_mut(at)?;
        let bit = 1 << fragment.place.index;
        if entry.missing & bit == 0 {
            counters.drop_duplicate += 1;
            return None;
        }
        let packet = entry.frame.get_mut(ETHERNET_HEADER_LEN..)?;
        packet.get_mut(fragment.place.range())?.copy_from_slice(fragment.part);
        entry.missing &= !bit;
        if entry.missing != 0 {
            return None;
        }
        let whole = self.entries.remove(at).frame;
        // Nothing else is ever cut up.
        if whole.get(ETHERNET_HEADER_LEN..).and_then(Data::read).is_none() {
            counters.drop_malformed += 1;
            self.give_back(whole);
            return None;
        }
        counters.reassembled += 1;
        Some(whole)
    }

    /// Keeps the memory of a frame for the next.
    pub fn give_back(&mut self, mut frame: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && frame.capacity() <= SPARE_CAPACITY_MAX {
            frame.clear();
            self.spare.push(frame);
        }
    }

    /// Forgets what has been under way for too long.
    pub fn expire(&mut self, now: Timestamp, counters: &mut Counters) {
        while self.entries.first().is_some_and(|oldest| now.since(oldest.since) >= AGE_MAX) {
            self.drop_entry(0);
            counters.reassembly_timed_out += 1;
        }
    }

    /// Messages under way.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// None under way.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes room, and says where the new entry is.
    fn begin(
        &mut self,
        now: Timestamp,
        header: &Header,
        fragment: &Fragment<'_>,
        counters: &mut Counters,
    ) -> usize {
        let len = ETHERNET_HEADER_LEN + usize::from(fragment.place.total);
        while let Some(victim) = self.victim(header, len) {
            self.drop_entry(victim);
            counters.reassembly_evicted += 1;
        }
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.extend_from_slice(header);
        frame.resize(len, 0);
        let count = fragment.place.count;
        let missing = u8::MAX >> (8 - count.clamp(1, 8));
        self.entries.push(Entry {
            header: *header,
            id: fragment.id,
            count,
            missing,
            since: now,
            frame,
        });
        self.entries.len() - 1
    }

    /// Which entry must go for one of `len` bytes from this neighbour.
    fn victim(&self, header: &Header, len: usize) -> Option<usize> {
        let of = |entry: &Entry| {
            self.entries.iter().filter(|other| other.neighbour() == entry.neighbour()).count()
        };
        let from = header.get(6..12);
        let mut own = self.entries.iter().enumerate().filter(|(_, e)| e.neighbour() == from);
        let oldest_own = own.next().map(|(at, _)| at);
        if oldest_own.is_some() && own.count() + 1 >= PER_NEIGHBOUR_MAX {
            return oldest_own;
        }
        let bytes: usize = self.entries.iter().map(|entry| entry.frame.len()).sum();
        if self.entries.len() < ENTRIES_MAX && bytes + len <= BYTES_MAX {
            return None;
        }
        let most = self.entries.iter().map(of).max()?;
        self.entries.iter().position(|entry| of(entry) == most)
    }

    fn drop_entry(&mut self, at: usize) {
        if at < self.entries.len() {
            let entry = self.entries.remove(at);
            self.give_back(entry.frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::NodeId;
    use crate::messages::data::ToUpstream;
    use crate::messages::fragment::PartPlace;
    use crate::order::Seq;

    const US: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn header(neighbour: u16) -> Vec<u8> {
        let [high, low] = neighbour.to_be_bytes();
        [&US[..], &[4, 0, 0, 0, high, low], &[0x88, 0xb5]].concat()
    }

    /// A data message with `len` bytes of payload, all `fill`.
    fn message(len: usize, fill: u8) -> Vec<u8> {
        let (destination, source) = (NodeId([9; 6]), NodeId([7; 6]));
        let payload = &vec![fill; len];
        (&ToUpstream {
            destination,
            source,
            hop_limit: 1,
            boot: 1,
            seq: Seq(1),
            again: false,
            priority: 0,
            payload,
        })
            .into()
    }

    fn fragments(id: u32, message: &[u8], radio_mtu: usize) -> Vec<Fragment<'_>> {
        PartPlace::all(message.len(), radio_mtu)
            .unwrap()
            .map(|place| Fragment { priority: 0, id, place, part: &message[place.range()] })
            .collect()
    }

    struct Bench {
        reassembly: Reassembly,
        counters: Counters,
    }

    impl Bench {
        fn new() -> Self {
            Self { reassembly: Reassembly::new(), counters: Counters::default() }
        }

        fn add(&mut self, ms: u64, neighbour: u16, fragment: &Fragment<'_>) -> Option<Vec<u8>> {
            let frame = header(neighbour);
            self.reassembly.add(at(ms), &frame, fragment, &mut self.counters)
        }

        fn bytes(&self) -> usize {
            let entries = self.reassembly.entries.iter().map(|entry| entry.frame.capacity());
            entries.chain(self.reassembly.spare.iter().map(Vec::capacity)).sum()
        }
    }

    #[test]
    fn parts_in_any_order_make_the_frame() {
        let message = message(1518, 7);
        for mtu in [1500, 600, 300] {
            let parts = fragments(1, &message, mtu);
            for first in 0..parts.len() {
                let mut bench = Bench::new();
                let mut whole = None;
                for n in 0..parts.len() {
                    assert_eq!(whole, None, "{mtu}: not before the last");
                    whole = bench.add(0, 5, &parts[(first + n) % parts.len()]);
                }
                assert_eq!(whole, Some([header(5), message.clone()].concat()), "{mtu}");
                assert_eq!(bench.counters.reassembled, 1);
                assert!(bench.reassembly.is_empty());
            }
        }
    }

    #[test]
    fn parts_of_different_messages_and_neighbours_are_never_mixed() {
        let (one, two) = (message(1518, 1), message(1518, 2));
        let mut bench = Bench::new();
        let (first, second) = (fragments(1, &one, 1500), fragments(2, &two, 1500));
        assert_eq!(bench.add(0, 5, &first[0]), None);
        assert_eq!(bench.add(0, 5, &second[1]), None, "another message");
        assert_eq!(bench.add(0, 6, &first[1]), None, "another neighbour");
        assert_eq!(bench.add(0, 5, &first[0]), None, "a copy");
        assert_eq!(bench.counters.drop_duplicate, 1);
        assert_eq!(bench.add(0, 5, &first[1]), Some([header(5), one].concat()));
        assert_eq!(bench.add(0, 5, &second[0]), Some([header(5), two].concat()));
    }

    #[test]
    fn a_part_that_contradicts_those_before_begins_anew() {
        let (one, two) = (message(1518, 1), message(1500, 2));
        let mut bench = Bench::new();
        let (before, after) = (fragments(1, &one, 1500), fragments(1, &two, 1500));
        assert_eq!(bench.add(0, 5, &before[0]), None);
        assert_eq!(bench.add(0, 5, &after[1]), None);
        assert_eq!(bench.add(0, 5, &after[0]), Some([header(5), two].concat()));
        assert_eq!(bench.counters.reassembly_evicted, 1);
    }

    #[test]
    fn what_is_never_completed_is_forgotten_in_time() {
        let message = message(1518, 1);
        let parts = fragments(1, &message, 1500);
        let mut bench = Bench::new();
        assert_eq!(bench.add(0, 5, &parts[0]), None);
        assert_eq!(bench.add(199, 6, &parts[0]), None);
        bench.reassembly.expire(at(200), &mut bench.counters);
        assert_eq!((bench.reassembly.len(), bench.counters.reassembly_timed_out), (1, 1));
        assert_eq!(bench.add(200, 5, &parts[1]), None, "too late");
        assert!(bench.add(398, 6, &parts[1]).is_some(), "just in time");
    }

    #[test]
    fn one_neighbour_takes_nothing_from_another() {
        let message = message(1518, 1);
        let mut bench = Bench::new();
        assert_eq!(bench.add(0, 5, &fragments(1, &message, 1500)[0]), None);
        for id in 0..10_000 {
            assert_eq!(bench.add(1, 6, &fragments(id, &message, 1500)[0]), None);
        }
        assert_eq!(bench.reassembly.len(), 1 + PER_NEIGHBOUR_MAX);
        assert_eq!(bench.counters.reassembly_evicted, 10_000 - PER_NEIGHBOUR_MAX as u64);
        assert!(bench.add(2, 5, &fragments(1, &message, 1500)[1]).is_some());
    }

    #[test]
    fn memory_stays_flat_whoever_sends_whatever() {
        let mut bench = Bench::new();
        for (len, mtu) in [(1518, 1500), (60_000, 9000)] {
            let message = message(len, 1);
            for neighbour in 0..2000 {
                assert_eq!(bench.add(0, neighbour, &fragments(1, &message, mtu)[0]), None);
                assert!(bench.reassembly.len() <= ENTRIES_MAX);
                assert!(bench.bytes() <= 2 * BYTES_MAX, "{} bytes", bench.bytes());
            }
        }
        bench.reassembly.expire(at(200), &mut bench.counters);
        assert!(bench.reassembly.is_empty());
        assert!(bench.bytes() <= SPARE_MAX * SPARE_CAPACITY_MAX);
    }

    #[test]
    fn only_data_is_put_together() {
        let mut probe = vec![0; 40];
        probe[..4].copy_from_slice(&[0x23, 0, 0, 24]);
        let mut bench = Bench::new();
        let parts = fragments(1, &probe, 1500);
        assert_eq!(bench.add(0, 5, &parts[0]), None);
        assert_eq!(bench.add(0, 5, &parts[1]), None);
        assert_eq!((bench.counters.drop_malformed, bench.counters.reassembled), (1, 0));
    }

    #[test]
    fn buffers_are_used_again() {
        let message = message(1518, 1);
        let mut bench = Bench::new();
        let mut places = Vec::new();
        for id in 0..3 {
            let parts = fragments(id, &message, 1500);
            bench.add(0, 5, &parts[0]);
            let whole = bench.add(0, 5, &parts[1]).unwrap();
            places.push(whole.as_ptr());
            bench.reassembly.give_back(whole);
        }
        assert_eq!(places[0], places[1]);
        assert_eq!(places[0], places[2]);
    }
}
