//! What a node passes on as a copy, out of a bundle or to several, is in the recording once, and
//! is read whole.

use node_lib::Timestamp;
use node_lib::control::node::{Node, Replies, ReplyType};
use recorder::record::What;
use recorder::{Limits, Recorded, Recorder};

use crate::common;

/// Where the client's frame begins in one of ours.
const CLIENT: usize = 38;
const LEN: usize = 106;

/// Hears a frame of `client` bytes that is not lent. Returns what went out, and how often the
/// frame's last bytes are in the file.
fn heard(client: usize, hear: fn(&[u8], &mut Replies)) -> (Vec<What<'static>>, usize) {
    let mut frame = vec![2; CLIENT];
    // No 16 bytes of it come twice.
    frame.extend((0..client).map(|n| ((n * 89 % 251) ^ (n / 251)) as u8));
    let directory = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(directory.path(), common::header(), Limits::default()).unwrap();
    let mut node = Recorded::new(common::Hears::new(hear), Some(recorder.tap()));
    let mut out = Replies::new();
    node.handle_wire(Timestamp::from_millis(1), &frame, &mut out);
    assert_eq!(recorder.finish().lost, 0);
    let files = common::files(directory.path());
    let (records, _) = common::read(&files);
    let mut came: Vec<What<'static>> = records.into_iter().map(|record| record.what).collect();
    assert_eq!(came.remove(0).frame().unwrap().bytes, frame);
    let went: Vec<_> = out.take().into_iter().map(ReplyType::into_frame).collect();
    let told: Vec<_> = came.iter().map(|what| what.frame().unwrap().bytes.to_vec()).collect();
    assert_eq!(told, went, "to the byte");
    let bytes = std::fs::read(&files[0]).unwrap();
    let end = &frame[frame.len() - 16..];
    (came, bytes.windows(end.len()).filter(|window| *window == end).count())
}

fn to_tap(frame: &[u8], out: &mut Replies) {
    out.tap_frame(&frame[CLIENT..]);
}

fn onward(frame: &[u8], out: &mut Replies) {
    out.wire_around(0, &frame[CLIENT..], |head| head.extend_from_slice(&[3; 41]));
}

#[test]
fn a_copy_of_the_end_of_a_frame_is_written_once() {
    for len in [LEN, LEN + 1, 1000] {
        let (came, times) = heard(len, to_tap);
        assert!(matches!(came[..], [What::ToTap(_)]), "{came:?}");
        assert_eq!(times, 1, "{len} bytes");
        let (came, times) = heard(len, onward);
        assert!(matches!(came[..], [What::ToRadio(_)]), "{came:?}");
        assert_eq!(times, 1, "{len} bytes");
        let (came, times) = heard(len, |frame, out| {
            to_tap(frame, out);
            onward(frame, out);
            onward(frame, out);
        });
        assert_eq!((came.len(), times), (3, 1), "{len} bytes");
    }
}

#[test]
fn what_is_not_the_end_of_the_frame_is_written_as_it_is() {
    let (_, times) = heard(LEN, |frame, out| {
        // One byte more, and the last byte another.
        out.tap(|flat| flat.extend(frame[CLIENT..].iter().chain(&[0])));
        out.wire(|flat| {
            flat.extend_from_slice(frame);
            *flat.last_mut().unwrap() ^= 1;
        });
        out.wire(|flat| flat.push(1));
        out.wire(|_| ());
    });
    assert_eq!(times, 2, "in what went in, and in front of one byte more");
}
