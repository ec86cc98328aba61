//! A node on a device of one's own: here a radio that is a datagram socket, between an RSU and an
//! OBU in two threads. A frame goes from a host on the road-side LAN to a client behind the OBU.
//!
//! `cargo run -p node_lib --example own_device`

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::{Duration, Instant};

use node_lib::control::node::Node;
use node_lib::device::{
    Burst, Device, DeviceCounters, LinkState, Outgoing, Received, Sent, StaticLinks, memory,
};
use node_lib::runtime::Runtime;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::{Command, Remote};
use node_lib::{Mac, Start};
use obu_lib::Obu;
use rsu_lib::Rsu;

/// A radio that is a datagram socket. It never blocks; whoever does not fit in its queue is lost,
/// as on the air.
struct Socket {
    socket: UnixDatagram,
    counters: DeviceCounters,
}

impl Device for Socket {
    fn name(&self) -> &str {
        "socket"
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(2048);
        while let Some(slot) = burst.vacant() {
            match self.socket.recv(slot) {
                Ok(len) => {
                    self.counters.rx_frames += 1;
                    burst.commit(len);
                }
                Err(error) => {
                    self.counters.rx_errors += u64::from(error.kind() != io::ErrorKind::WouldBlock);
                    return Received::Drained;
                }
            }
        }
        Received::More
    }

    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        for frame in frames {
            match self.socket.send(frame.bytes) {
                Ok(_) => self.counters.tx_frames += 1,
                Err(_) => self.counters.tx_full += 1,
            }
        }
        Sent::All
    }

    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

const HOST: Mac = Mac([2, 0, 0, 0, 2, 1]);
const CLIENT: Mac = Mac([2, 0, 0, 0, 1, 1]);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (vehicle, road) = UnixDatagram::pair()?;
    let remotes = [Remote::new(), Remote::new()];
    let [to_obu, to_rsu] = remotes.clone();
    // What stands in for the TAPs: one end is the node's, the other is held by the host behind it.
    let (obu_tap, mut client) = memory::pair(1500)?;
    let (rsu_tap, mut host) = memory::pair(1500)?;
    thread::scope(|threads| {
        let obu = threads.spawn(move || {
            drive(1, vehicle, obu_tap, to_obu, |start, clock| {
                Obu::new(obu_lib::Settings::default().config(&start), clock.now())
            })
        });
        let rsu = threads.spawn(move || {
            drive(2, road, rsu_tap, to_rsu, |start, clock| {
                Rsu::new(rsu_lib::Settings::default().config(&start), clock.now())
            })
        });
        // A client that spoke is known; then the host's frames reach it.
        let heard = exchange(&mut client, &mut host, Duration::from_secs(10));
        remotes.iter().for_each(|remote| remote.send(Command::Stop));
        for thread in [obu, rsu] {
            thread.join().map_err(|_| "a node's thread panicked")??;
        }
        println!("{}", heard.ok_or("nothing was heard within ten seconds")?);
        Ok(())
    })
}

/// Runs a node on a radio and a TAP until it is told to stop.
fn drive<N: Node>(
    number: u8,
    socket: UnixDatagram,
    mut tap: impl Device,
    mut commands: Remote,
    make: impl FnOnce(Start, Clock) -> N,
) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let mut radio = Socket { socket, counters: DeviceCounters::default() };
    let mac = Mac([2, 0, 0, 0, 0, number]);
    let clock = Clock::start();
    let mut node = make(Start::new(mac), clock);
    let link = LinkState { index: 0, mac, mtu: 1500, up: true };
    Runtime::new(clock, link)
        .run(&mut node, &mut radio, &mut tap, &mut StaticLinks, &mut commands)
        .map(drop)
}

/// Both sides speak until the client hears the host.
fn exchange(client: &mut impl Device, host: &mut impl Device, within: Duration) -> Option<String> {
    let began = Instant::now();
    let mut burst = Burst::new(16);
    while began.elapsed() < within {
        client.send(&[Outgoing::new(&frame(HOST, CLIENT, "hello, road"))]);
        host.send(&[Outgoing::new(&frame(CLIENT, HOST, "hello, vehicle"))]);
        thread::sleep(Duration::from_millis(50));
        client.recv(&mut burst);
        if let Some(heard) = burst.frames().find(|frame| frame.get(6..12) == Some(&HOST.0)) {
            let text = heard.get(14..).unwrap_or_default();
            return Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
        }
    }
    None
}

/// An Ethernet frame with some text in it.
fn frame(to: Mac, from: Mac, text: &str) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x88, 0xb6], text.as_bytes()].concat();
    frame.resize(60, 0);
    frame
}

#[cfg(test)]
#[test]
fn it_works() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
