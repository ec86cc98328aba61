//! Frames in batches, in queues that are full, and what is counted of them.

use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use node_lib::Mac;
use node_lib::control::event::{Limit, TooLong};
use node_lib::device::{Burst, Device, Outgoing, Received, Sent};
use rustix::event::PollFlags;

use crate::bench::{frame, receive, send, silent, veth_pair};
use crate::io_support::{in_namespace, ip, operate, wait};

#[test]
fn control_frames_come_by_themselves_and_have_room_whatever_waits_of_data() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let (mac_a, mac_b) = (a.mac, b.mac);
        let of = |first: u8| frame(mac_b, mac_a, &[first; 100]);
        // More data than the buffer holds.
        for _ in 0..20_000 {
            send(&mut a.radio, &of(0x28));
        }
        let control = [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27];
        control.iter().for_each(|first| send(&mut a.radio, &of(*first)));
        assert!(b.radio.counters().rx_kernel_drops > 0, "a test with room for all tests nothing");
        let mut burst = Burst::new(64);
        assert_eq!(b.radio.recv_control(&mut burst), Received::Drained);
        let heard: Vec<_> = burst.frames().map(|frame| frame[14]).collect();
        assert_eq!(heard, control);
        // The rest is data, bundles and what nobody knows.
        let mut first_bytes = std::collections::BTreeSet::new();
        while b.radio.recv(&mut burst) == Received::More || !burst.is_empty() {
            first_bytes.extend(burst.frames().map(|frame| frame[14]));
        }
        assert_eq!(first_bytes.into_iter().collect::<Vec<_>>(), [0x28]);
        let others = [0x29, 0x2a, 0x2c, 0x20, 0x2b, 0x2f, 0x11, 0xff];
        others.iter().for_each(|first| send(&mut a.radio, &of(*first)));
        let others = others.map(of);
        assert_eq!(receive(&mut b.radio, others.len()).await, others);
    });
}

#[test]
fn frames_too_long_or_too_short_are_counted_on_both_ways() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let (mac_a, mac_b) = (a.mac, b.mac);
        let long = |len: usize| frame(mac_b, mac_a, &vec![1; len]);
        a.radio.send(&[Outgoing::new(&long(1500))]);
        a.radio.send(&[Outgoing::new(&long(1501))]);
        a.radio.send(&[Outgoing::new(&[0; 5])]);
        assert_eq!((a.radio.counters().tx_oversize, a.radio.counters().tx_short), (1, 1));
        let refused = a.radio.take_too_long().expect("a frame of ours");
        assert_eq!((refused.from, refused.len, refused.limit), (mac_a, 1515, Limit::Radio));
        assert_eq!(receive(&mut b.radio, 1).await[0].len(), 1514);
        // The interfaces grow and `b` has not heard of it yet.
        ip("link set radio0 mtu 9000");
        ip("link set radio1 mtu 9000");
        send(&mut a.radio, &long(5000));
        assert!(silent(&mut b.radio).await);
        assert_eq!(b.radio.counters().rx_oversize, 1);
        let limit = Limit::Radio;
        let heard = TooLong { from: mac_a, len: 5014, most: 2047, limit };
        assert_eq!((b.radio.take_too_long(), b.radio.take_too_long()), (Some(heard), None));
        let link = b.netlink.link("radio1").await.unwrap();
        b.radio.link_changed(Some(&link)).unwrap();
        send(&mut a.radio, &long(5000));
        assert_eq!(receive(&mut b.radio, 1).await, [long(5000)]);
    });
}

#[test]
fn a_batch_arrives_whole_and_in_order_around_what_is_refused() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let mut wanted: Vec<_> = (0..200u16)
            .map(|n| frame(b.mac, a.mac, &[&n.to_be_bytes()[..], &[7; 50]].concat()))
            .collect();
        let (long, short) = (frame(b.mac, a.mac, &[1; 1501]), [0; 5]);
        let mut batch: Vec<_> = wanted.iter().map(|frame| Outgoing::new(frame)).collect();
        batch.insert(150, Outgoing::new(&short));
        batch.insert(70, Outgoing::new(&long));
        batch.insert(0, Outgoing::new(&long));
        assert_eq!(a.radio.send(&batch), Sent::All);
        let counters = a.radio.counters();
        assert_eq!((counters.tx_frames, counters.tx_oversize, counters.tx_short), (200, 2, 1));
        let mut burst = Burst::new(150);
        assert_eq!(b.radio.recv(&mut burst), Received::More);
        let rest = wanted.split_off(150);
        assert_eq!(burst.frames().collect::<Vec<_>>(), wanted);
        assert_eq!(b.radio.recv(&mut burst), Received::Drained);
        assert_eq!(burst.frames().collect::<Vec<_>>(), rest);
    });
}

#[test]
fn frames_come_in_order_and_what_was_lost_is_counted() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let numbered = |n: u32| frame(b.mac, a.mac, &n.to_be_bytes());
        let number = |frame: &[u8]| u32::from_be_bytes(frame[14..18].try_into().unwrap());
        let (mut next, mut got, mut last) = (0, 0, None);
        let mut burst = Burst::new(64);
        // Few enough for the socket's buffer, twice, and then more.
        for batch in [1500, 1500, 40_000] {
            for n in next..next + batch {
                a.radio.send(&[Outgoing::new(&numbered(n))]);
            }
            next += batch;
            while b.radio.recv(&mut burst) == Received::More || !burst.is_empty() {
                for frame in burst.frames() {
                    let n = number(frame);
                    assert!(last.is_none_or(|last| n > last), "{n} after {last:?}");
                    (got, last) = (got + 1, Some(n));
                }
            }
            if batch == 1500 {
                assert_eq!(got, next);
            }
        }
        let lost = b.radio.counters().rx_kernel_drops;
        assert!(lost > 0);
        assert_eq!(u64::from(got) + lost, u64::from(next));
    });
}

#[test]
fn frames_for_others_leave_no_hole_in_a_batch() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        ip("link set radio1 promisc on");
        let ours = |n: u8| frame(b.mac, a.mac, &[n; 50]);
        let other = frame(Mac([2, 9, 9, 9, 9, 9]), a.mac, b"to another");
        let (first, second) = (ours(1), ours(2));
        let batch = [&other, &first, &other, &other, &second].map(|frame| Outgoing::new(frame));
        assert_eq!(a.radio.send(&batch), Sent::All);
        let mut burst = Burst::new(64);
        assert_eq!(b.radio.recv(&mut burst), Received::Drained);
        assert_eq!(burst.frames().collect::<Vec<_>>(), [first, second]);
        assert_eq!(b.radio.counters().rx_foreign, 3);
    });
}

#[test]
fn a_radio_that_is_full_says_so_and_when_there_is_room_again() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        // One frame in 250 ms: the others wait, and count against the send buffer.
        tc("qdisc add dev radio0 root tbf rate 50kbit burst 1600 limit 100mb");
        let long = frame(b.mac, a.mac, &[1; 1500]);
        let batch = [Outgoing::new(&long); 64];
        let mut sent = 0;
        let full = loop {
            match a.radio.send(&batch) {
                Sent::All => sent += batch.len(),
                other => break other,
            }
            assert!(sent < 100_000, "the send buffer has a bound");
        };
        let Sent::Full(done) = full else { panic!("{full:?}") };
        assert!(done < batch.len());
        assert_eq!(a.radio.counters().tx_frames, (sent + done) as u64);
        assert!(!wait(&[&a.radio], PollFlags::OUT, Duration::ZERO));
        // The queue is dropped, and there is room.
        tc("qdisc del dev radio0 root");
        assert!(wait(&[&a.radio], PollFlags::OUT, Duration::from_secs(2)));
        let wanted = frame(b.mac, a.mac, b"after");
        send(&mut a.radio, &wanted);
        let mut last = Vec::new();
        let mut burst = Burst::new(64);
        while last != wanted {
            b.radio.recv(&mut burst);
            last = burst.frames().last().map_or(last, <[u8]>::to_vec);
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn each_frame_has_the_priority_it_was_given() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let frames: Vec<_> = (0..6).map(|n| frame(b.mac, a.mac, &[n; 50])).collect();
        // 256 + user priority is what mac80211 looks for. Control has a socket of its own.
        for (priorities, data, control) in
            [([0; 6], 256, 0), ([0, 7, 7, 0, 4, 6], 262, 263), ([7; 6], 262, 263)]
        {
            let batch = frames.iter().zip(priorities);
            let batch: Vec<_> =
                batch.map(|(bytes, priority)| Outgoing { bytes, priority }).collect();
            assert_eq!(a.radio.send(&batch), Sent::All);
            assert_eq!(getsockopt(&a.radio, sockopt::Priority), Ok(data));
            let of_control = a.radio.control_descriptor().unwrap();
            assert_eq!(getsockopt(&of_control, sockopt::Priority), Ok(control));
            assert_eq!(receive(&mut b.radio, 6).await, frames);
        }
    });
}

#[test]
fn what_the_kernel_drops_for_us_is_counted() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let small = frame(b.mac, a.mac, b"one of very many");
        for _ in 0..40_000 {
            a.radio.send(&[Outgoing::new(&small)]);
        }
        assert!(b.radio.counters().rx_kernel_drops > 0, "{:?}", b.radio.counters());
    });
}

fn tc(line: &str) -> String {
    operate("tc", line)
}
