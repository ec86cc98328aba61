//! Nodes of a simulation that are recorded while they live.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "test code")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use node_lib::control::node::{Interface, LinkEvent, Node, Replies, ReplyType};
use node_lib::control::ping::Ping;
use node_lib::control::positions::Located;
use node_lib::start::clients::Remembered;
use node_lib::{Mac, Start, Timestamp};
use recorder::header::{RecordingHeader, Role as Recordable};
use recorder::segment::Ring;
use recorder::{Limits, Recorded, Recorder};
use sim::{Factory, Guest};

/// Makes a recorded node; each start of it has a directory of its own. With a snap length it is
/// driven as the daemons drive it, which lend it the frames that it passes on.
pub fn recorded<N: Node + Send + 'static, S: serde::Serialize + Send + 'static>(
    directory: PathBuf,
    role: Recordable,
    settings: S,
    snap: u32,
    make: impl Fn(&S, &Start, Timestamp) -> N + Send + 'static,
) -> Factory {
    let starts = AtomicU32::new(0);
    Box::new(move |start, now| -> Box<dyn Guest> {
        let start_number = starts.fetch_add(1, Ordering::Relaxed);
        let directory = directory.join(start_number.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        let header = RecordingHeader::new(role, start, now, &settings).unwrap();
        let header = RecordingHeader { snap, ..header };
        let ring = Ring::open(&directory, header, Limits::default()).unwrap();
        let recorder = Recorder::start_into(ring, snap, 256 << 10, 32 << 10).unwrap();
        recorder.be_patient();
        let node = Recorded::new(make(&settings, start, now), Some(recorder.tap()));
        Box::new(Owning { node, lends: snap > 0, _recorder: recorder })
    })
}

/// A node that ends its recording when it is dropped.
struct Owning<N> {
    node: Recorded<N>,
    lends: bool,
    _recorder: Recorder,
}

impl<N: Node> Owning<N> {
    /// Has a frame handled, and copies what is on loan.
    fn handle(
        &mut self,
        frame: &[u8],
        out: &mut Replies,
        handle: impl FnOnce(&mut Recorded<N>, &mut Replies),
    ) {
        if !self.lends {
            return handle(&mut self.node, out);
        }
        let mut lent = Replies::new();
        lent.lend(0, frame, 64);
        handle(&mut self.node, &mut lent);
        lent.flatten();
        let mut loans = lent.loans().iter().peekable();
        for index in 0..=lent.as_slice().len() {
            while let Some(loan) = loans.next_if(|loan| loan.after == index) {
                let payload = frame.get(loan.payload.clone()).unwrap();
                out.push(match lent.head(loan) {
                    Some(head) => ReplyType::WireFlat([head, payload].concat()),
                    None => ReplyType::TapFlat(payload.to_vec()),
                });
            }
            if let Some(reply) = lent.as_slice().get(index) {
                let frame = reply.frame().to_vec();
                out.push(match reply.interface() {
                    Interface::Radio => ReplyType::WireFlat(frame),
                    Interface::Tap => ReplyType::TapFlat(frame),
                });
            }
        }
        lent.narrow().iter().for_each(|hop| out.keep_short(*hop));
    }
}

macro_rules! pass_on {
    ($(fn $name:ident(&mut self $(, $arg:ident: $kind:ty)*);)*) => {
        $(fn $name(&mut self $(, $arg: $kind)*) { self.node.$name($($arg),*) })*
    };
}

impl<N: Node> Node for Owning<N> {
    pass_on! {
        fn handle_signal(&mut self, now: Timestamp, from: Mac, dbm: i8);
        fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies);
        fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies);
        fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies);
        fn handle_ping(&mut self, now: Timestamp, ping: Ping, out: &mut Replies);
        fn handle_clients(&mut self, now: Timestamp, clients: &[Remembered], out: &mut Replies);
        fn handle_position(&mut self, now: Timestamp, located: Option<Located>);
    }
    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.handle(frame, out, |node, out| node.handle_wire(now, frame, out));
    }
    fn handle_unacknowledged(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.handle(frame, out, |node, out| node.handle_unacknowledged(now, frame, out));
    }
    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.handle(frame, out, |node, out| node.handle_tap(now, frame, out));
    }
    fn handle_tap_late(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.handle(frame, out, |node, out| node.handle_tap_late(now, frame, out));
    }
    fn clients(&self, now: Timestamp) -> Vec<Remembered> {
        self.node.clients(now)
    }
    fn id(&self) -> node_lib::NodeId {
        self.node.id()
    }
    fn wants_unacknowledged(&self) -> bool {
        self.node.wants_unacknowledged()
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.node.poll_timeout()
    }
    fn linger(&self) -> Duration {
        self.node.linger()
    }
    fn counters(&self) -> &node_lib::control::counters::Counters {
        self.node.counters()
    }
    fn poll_event(&mut self) -> Option<node_lib::control::event::Event> {
        self.node.poll_event()
    }
}
