//! Segmentation offload with a real kernel on the other side. What it splits and what we split must
//! be the same bytes, and TCP between two hosts must not notice who has offload and who has not.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{setsockopt, sockopt};
use node_lib::Mac;
use node_lib::device::netlink::{Netlink, TapSettings};
use node_lib::device::tap::{Tap, TapOffload};
use node_lib::device::{Burst, Device, LinkState, Outgoing, Problem, Received, Sent};

#[allow(dead_code, reason = "shared with tests that need all of it")]
#[path = "offload/frames.rs"]
mod frames;
#[allow(dead_code, reason = "shared with tests that need all of it")]
mod io_support;

use frames::{ACK, CWR, FIN, Flow, PSH, Segment, assert_intact, pattern};
use io_support::{in_namespace, ip, wait_readable};

const MTU: usize = 1460;
/// Bytes a transfer moves in each direction: some hundred super-frames.
const TRANSFER: usize = 16 << 20;

#[test]
fn the_kernel_splits_what_we_join_to_the_same_bytes_as_we_do() {
    in_namespace(async || {
        // One TAP hands a super-frame to the bridge, which floods it to one that takes
        // super-frames, where we split it, and to a plain one, for which the kernel does.
        let [mut from, mut ours, mut kernels] =
            bridge([TapOffload::On, TapOffload::On, TapOffload::Off]).await;
        for (number, (is_v6, tags, has_timestamps)) in (1..).zip([
            (false, 0, true),
            (true, 0, true),
            (false, 1, false),
            (true, 1, true),
            (false, 2, true),
        ]) {
            let flow = Flow { number, is_v6, tags, has_timestamps, ..Flow::PLAIN };
            for (first, last, last_len) in
                [(0, 0, 1300), (CWR, PSH, 1), (0, FIN, 700), (CWR, FIN | PSH, 1300)]
            {
                let sent = train(&flow, 20, 1300, first, last, last_len);
                let before = from.counters().clone();
                assert_eq!(from.send(&outgoing(&sent)), Sent::All);
                let after = from.counters();
                assert_eq!(after.tx_super_frames - before.tx_super_frames, 1);
                assert_eq!(after.tx_segments - before.tx_segments, 20);
                assert_eq!(after.tx_frames - before.tx_frames, 20, "{after:?}");
                let bytes: usize = sent.iter().map(Vec::len).sum();
                assert_eq!(after.tx_bytes - before.tx_bytes, bytes as u64);
                assert!(receive(&mut kernels, flow.mac(), 20).await == sent, "kernel: {flow:?}");
                assert!(receive(&mut ours, flow.mac(), 20).await == sent, "ours: {flow:?}");
            }
        }
        assert_eq!((ours.counters().rx_super_frames, ours.counters().rx_segments), (20, 400));
        assert_eq!(kernels.counters().rx_super_frames, 0);
        assert_eq!((ours.counters().rx_malformed, ours.counters().rx_oversize), (0, 0));
    });
}

#[test]
fn datagrams_and_unfinished_checksums_are_what_the_kernel_makes_of_them() {
    in_namespace(async || {
        let [mut ours, mut kernels] = bridge([TapOffload::On, TapOffload::Off]).await;
        ip("addr add 10.8.0.1/24 dev br0");
        ip("addr add fd08::1/64 dev br0 nodad");
        ip("neigh add 10.8.0.2 lladdr 02:00:00:00:00:99 dev br0");
        ip("neigh add fd08::2 lladdr 02:00:00:00:00:99 dev br0");
        let mac = Netlink::open().unwrap().link("br0").await.unwrap().mac;
        for (local, remote) in [("10.8.0.1:0", "10.8.0.2:7"), ("[fd08::1]:0", "[fd08::2]:7")] {
            let socket = UdpSocket::bind(local).unwrap();
            socket.send_to(&pattern(777, 1), remote).unwrap();
            let kernel = receive(&mut kernels, mac, 1).await;
            assert_intact(&kernel[0]);
            assert!(receive(&mut ours, mac, 1).await == kernel, "{local}: one datagram");

            setsockopt(&socket, sockopt::UdpGsoSegment, &1000).unwrap();
            let before = ours.counters().rx_super_frames;
            socket.send_to(&pattern(10_234, 2), remote).unwrap();
            let kernel = receive(&mut kernels, mac, 11).await;
            assert_eq!(kernel.len(), 11);
            kernel.iter().for_each(|frame| assert_intact(frame));
            assert!(receive(&mut ours, mac, 11).await == kernel, "{local}: eleven datagrams");
            assert_eq!(ours.counters().rx_super_frames - before, 1);
        }
    });
}

#[test]
fn ordinary_frames_among_super_frames_are_whole_in_any_order() {
    in_namespace(async || {
        let [mut ours, mut kernels] = bridge([TapOffload::On, TapOffload::Off]).await;
        ip("addr add 10.8.0.1/24 dev br0");
        ip("neigh add 10.8.0.2 lladdr 02:00:00:00:00:99 dev br0");
        let mac = Netlink::open().unwrap().link("br0").await.unwrap().mac;
        let socket = UdpSocket::bind("10.8.0.1:0").unwrap();
        setsockopt(&socket, sockopt::UdpGsoSegment, &1000).unwrap();
        // Datagrams at once; more of them ordinary in a row than it takes to expect no other, and
        // fewer; super-frames into the first slots of a burst, and the last.
        let (ordinary, long) = (|n| vec![500; n], |n| vec![6_500; n]);
        let mut fill = 0;
        for lens in [
            [ordinary(20), long(1), ordinary(1), long(1), ordinary(3)].concat(),
            [long(3), ordinary(17), long(1), ordinary(40), long(1)].concat(),
            [ordinary(63), long(1), ordinary(1)].concat(),
        ] {
            for &len in &lens {
                fill += 1;
                socket.send_to(&pattern(len, fill), "10.8.0.2:7").unwrap();
            }
            let frames = lens.iter().map(|len: &usize| len.div_ceil(1000)).sum();
            let kernel = receive(&mut kernels, mac, frames).await;
            assert_eq!(kernel.len(), frames);
            assert!(receive(&mut ours, mac, frames).await == kernel, "{lens:?}");
        }
        let counters = ours.counters();
        assert_eq!((counters.rx_super_frames, counters.rx_segments), (8, 8 * 7));
        assert_eq!((counters.rx_malformed, counters.rx_oversize), (0, 0));
    });
}

#[test]
fn tcp_crosses_whole_whoever_has_offload() {
    for (a, b) in [
        (TapOffload::Off, TapOffload::Off),
        (TapOffload::On, TapOffload::Off),
        (TapOffload::Off, TapOffload::On),
        (TapOffload::Auto, TapOffload::Auto),
    ] {
        in_namespace(async move || {
            let mut near = host("tap0", a, &["10.9.0.1/24", "fd09::1/64"]).await;
            let listeners =
                ["10.9.0.1:0", "[fd09::1]:0"].map(|address| TcpListener::bind(address).unwrap());
            let mut near_snmp = File::open("/proc/thread-self/net/snmp").unwrap();
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let mut far = host("tap0", b, &["10.9.0.2/24", "fd09::2/64"]).await;
            for listener in listeners {
                let address = listener.local_addr().unwrap();
                let server = thread::spawn(move || talk(listener.accept().unwrap().0, 1, 2));
                let client = thread::spawn(move || talk(connect(address), 2, 1));
                relay(&mut near, &mut far, || server.is_finished() && client.is_finished());
                server.join().unwrap();
                client.join().unwrap();
            }
            let mut far_snmp = File::open("/proc/thread-self/net/snmp").unwrap();
            assert_eq!((checksum_errors(&mut near_snmp), checksum_errors(&mut far_snmp)), (0, 0));
            for (tap, offload) in [(&mut near, a), (&mut far, b)] {
                let counters = tap.counters();
                if offload == TapOffload::Off {
                    assert_eq!((counters.rx_super_frames, counters.tx_super_frames), (0, 0));
                } else {
                    assert!(counters.rx_super_frames > 50 && counters.tx_super_frames > 50);
                }
                assert_eq!(counters.rx_malformed + counters.rx_oversize + counters.tx_errors, 0);
            }
        });
    }
}

#[test]
fn a_tap_that_is_made_again_has_offload_again() {
    in_namespace(async || {
        let mut tap = Tap::open("tap0", TapOffload::Auto).unwrap();
        assert!(tap.has_offload());
        ip("link del tap0");
        assert_eq!(tap.recv(&mut Burst::new(4)), Received::Gone);
        let train = train(&Flow::PLAIN, 5, 1000, 0, 0, 1000);
        assert_eq!(tap.send(&outgoing(&train)), Sent::All);
        assert_eq!(tap.counters().tx_down, 5);
        tap.reopen().unwrap();
        assert!(tap.has_offload());
        ip("link set tap0 up");
        assert_eq!(tap.send(&outgoing(&train)), Sent::All);
        assert_eq!((tap.counters().tx_super_frames, tap.counters().tx_segments), (1, 5));
        ip("link del tap0");
        assert_eq!(tap.send(&outgoing(&train)), Sent::Gone);
        assert_eq!((tap.counters().tx_down, tap.counters().tx_frames), (10, 5));
    });
}

#[test]
fn a_persistent_tap_has_offload_only_while_its_owner_wants_it() {
    in_namespace(async || {
        ip("tuntap add dev tap0 mode tap");
        ip("addr add 10.8.0.1/24 dev tap0");
        ip("neigh add 10.8.0.2 lladdr 02:00:00:00:00:99 dev tap0");
        ip("link set tap0 up mtu 1460");
        for offload in [TapOffload::On, TapOffload::Off, TapOffload::Auto, TapOffload::Off] {
            let mut tap = open_again("tap0", offload).await;
            assert_eq!(tap.has_offload(), offload != TapOffload::Off);
            let mac = carrier("tap0").await;
            let socket = UdpSocket::bind("10.8.0.1:0").unwrap();
            socket.send_to(b"is the checksum there?", "10.8.0.2:7").unwrap();
            let frames = receive(&mut tap, mac, 1).await;
            assert_eq!(frames.len(), 1, "{offload:?}");
            assert_intact(&frames[0]);
        }
    });
}

#[test]
fn segments_too_long_for_the_tap_are_counted_both_ways() {
    in_namespace(async || {
        let [mut from, mut to] = bridge([TapOffload::On, TapOffload::On]).await;
        let long = train(&Flow::PLAIN, 10, 5000, 0, 0, 5000);
        assert_eq!(from.send(&outgoing(&long)), Sent::All);
        assert_eq!((from.counters().tx_oversize, from.counters().tx_frames), (10, 0));
        // One end hears that the interface has grown, the other does not.
        let link = Netlink::open().unwrap().link("tap0").await.unwrap();
        from.link_changed(Some(&LinkState { mtu: 9000, ..link })).unwrap();
        ip("link set tap0 mtu 9000");
        ip("link set tap1 mtu 9000");
        assert_eq!(from.send(&outgoing(&long)), Sent::All);
        let wanted = train(&Flow::PLAIN, 3, 900, 0, 0, 900);
        assert_eq!(from.send(&outgoing(&wanted)), Sent::All);
        assert!(receive(&mut to, Flow::PLAIN.mac(), 3).await == wanted);
        assert_eq!((to.counters().rx_oversize, to.counters().rx_malformed), (10, 0));
    });
}

#[test]
fn an_impossible_tap_is_explained_with_offload_too() {
    in_namespace(async || {
        ip("link add radio0 type veth peer name radio1");
        // Each has a name of its own: a process that another test starts meanwhile may hold the
        // first one open for a moment longer.
        for (name, offload) in [("tap0", TapOffload::Auto), ("tap1", TapOffload::On)] {
            let _first = Tap::open(name, TapOffload::Off).unwrap();
            let busy = Tap::open(name, offload).unwrap_err();
            assert!(matches!(busy.source, Problem::Busy), "{busy:?}");
            let veth = Tap::open("radio0", offload).unwrap_err();
            assert!(matches!(veth.source, Problem::NotTap), "{veth:?}");
        }
    });
}

// ---------------------------------------------------------------------------------------------

/// TAPs that are ports of one bridge, up and forwarding.
async fn bridge<const N: usize>(offloads: [TapOffload; N]) -> [Tap; N] {
    ip("link add br0 type bridge forward_delay 0 mcast_snooping 0");
    let mut names = 0..;
    let taps = offloads.map(|offload| {
        let name = format!("tap{}", names.next().unwrap());
        let tap = Tap::open(&name, offload).unwrap();
        ip(&format!("link set {name} mtu {MTU} master br0 up"));
        tap
    });
    ip("link set br0 up");
    for n in 0..N {
        for attempt in 0.. {
            if ip(&format!("-o -d link show tap{n}")).contains("state forwarding") {
                break;
            }
            assert!(attempt < 200, "tap{n} does not forward");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    taps
}

/// A TAP with addresses: a host of its own.
async fn host(name: &str, offload: TapOffload, addresses: &[&str]) -> Tap {
    let mut tap = Tap::open(name, offload).unwrap();
    let mut netlink = Netlink::open().unwrap();
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let settings = TapSettings { addresses, ..TapSettings::default() };
    netlink.set_up_tap(name, settings, MTU).await.unwrap();
    for address in ip(&format!("-o -6 addr show dev {name} tentative")).lines() {
        // Duplicate address detection takes its time, and there is nobody else.
        let address = address.split_whitespace().nth(3).unwrap();
        ip(&format!("addr del {address} dev {name}"));
        ip(&format!("addr add {address} dev {name} nodad"));
    }
    tap.link_changed(Some(&netlink.link(name).await.unwrap())).unwrap();
    tap
}

/// Opens a TAP that its former owner has just closed. A program that another test starts holds the
/// TAP's descriptor as well, from its fork until its exec.
async fn open_again(name: &str, offload: TapOffload) -> Tap {
    for _ in 0..200 {
        match Tap::open(name, offload) {
            Err(error) if matches!(error.source, Problem::Busy) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("{name} is busy for 2 s");
}

/// Waits until the TAP, which its former owner left without, has a carrier again. Returns its
/// address.
async fn carrier(name: &str) -> Mac {
    let netlink = Netlink::open().unwrap();
    for _ in 0..200 {
        let link = netlink.link(name).await.unwrap();
        if link.up {
            return link.mac;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} has no carrier");
}

/// Carries frames between the two until `done`.
fn relay(a: &mut Tap, b: &mut Tap, done: impl Fn() -> bool) {
    let mut burst = Burst::new(64);
    while !done() {
        wait_readable(&[&*a, &*b], Duration::from_millis(20));
        pass_on(a, b, &mut burst);
        pass_on(b, a, &mut burst);
    }
}

fn pass_on(from: &mut Tap, to: &mut Tap, burst: &mut Burst) {
    for _ in 0..4 {
        let received = from.recv(burst);
        let frames: Vec<_> = burst.frames().map(Outgoing::new).collect();
        assert!(frames.iter().all(|frame| frame.bytes.len() <= 14 + MTU));
        assert_eq!(to.send(&frames), Sent::All);
        if received == Received::Drained {
            return;
        }
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    assert!(matches!(address.ip(), IpAddr::V4(_) | IpAddr::V6(_)));
    TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap()
}

/// Sends and receives [`TRANSFER`] bytes at once, and checks every one.
fn talk(stream: TcpStream, send: u8, expect: u8) {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut to = stream.try_clone().unwrap();
    let writer = thread::spawn(move || {
        let data = pattern(TRANSFER, send);
        // Sizes that are no multiple of anything.
        for part in data.chunks(77_777) {
            to.write_all(part).unwrap();
        }
        to.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::with_capacity(TRANSFER);
    (&stream).read_to_end(&mut received).unwrap();
    assert!(received == pattern(TRANSFER, expect), "bytes arrived damaged");
    writer.join().unwrap();
}

/// TCP segments with a wrong checksum that the kernel has counted in this namespace.
fn checksum_errors(snmp: &mut File) -> u64 {
    let mut text = String::new();
    snmp.seek(SeekFrom::Start(0)).unwrap();
    snmp.read_to_string(&mut text).unwrap();
    let mut tcp = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (tcp.next().unwrap(), tcp.next().unwrap());
    let at = names.split(' ').position(|name| name == "InCsumErrors").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Frames from `mac` to one address (to many the kernel sends on its own), waiting up to two
/// seconds for as many. The burst is smaller than most super-frames.
async fn receive(tap: &mut Tap, mac: Mac, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut burst = Burst::new(8);
    for _ in 0..400 {
        while {
            let more = tap.recv(&mut burst) == Received::More;
            frames.extend(burst.frames().filter(|frame| is_wanted(frame, mac)).map(<[u8]>::to_vec));
            more
        } {}
        if frames.len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    frames
}

fn is_wanted(frame: &[u8], mac: Mac) -> bool {
    frame[0] & 1 == 0 && frame[6..12] == mac.0
}

fn outgoing(frames: &[Vec<u8>]) -> Vec<Outgoing<'_>> {
    frames.iter().map(|frame| Outgoing::new(frame)).collect()
}

/// Consecutive segments; the first and the last with more flags than the others, the last shorter.
fn train(
    flow: &Flow,
    count: u16,
    len: usize,
    first: u8,
    last: u8,
    last_len: usize,
) -> Vec<Vec<u8>> {
    let segment = |i: u16| {
        let is_last = i + 1 == count;
        let flags = ACK | if i == 0 { first } else { 0 } | if is_last { last } else { 0 };
        let len_here = if is_last { last_len } else { len };
        Segment {
            seq: 0xffff_f000_u32.wrapping_add(u32::from(i) * len as u32),
            identification: 0xfffa_u16.wrapping_add(i),
            flags,
            ..Segment::with(pattern(len_here, i as u8))
        }
    };
    (0..count).map(|i| flow.tcp(&segment(i))).collect()
}
