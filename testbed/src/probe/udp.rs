//! A numbered UDP stream from one namespace to another.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::tally::{StreamReport, StreamTally};
use crate::arena::netns::Netns;

/// A stream under way.
#[derive(Debug)]
pub struct UdpStream {
    tally: Arc<Mutex<StreamTally>>,
    stop: Arc<AtomicBool>,
    /// Sender, then receiver.
    threads: [JoinHandle<()>; 2],
}

/// How long after the last datagram one still counts.
const GRACE: Duration = Duration::from_millis(300);
/// How often the receiver looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl UdpStream {
    /// Sends a datagram with `payload` bytes (at least 4) every `interval` from `from` to the
    /// address `to` of `at`, until [`UdpStream::stop`].
    pub fn start(
        from: &Netns,
        at: &Netns,
        to: IpAddr,
        interval: Duration,
        payload: usize,
    ) -> Result<Self> {
        let receiver = at.run(|| Ok(UdpSocket::bind(SocketAddr::new(to, 0))?))?;
        receiver.set_read_timeout(Some(LOOK_EVERY))?;
        let port = receiver.local_addr()?.port();
        let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0; 8], 0).into() };
        let sender = from.run(|| {
            let sender = UdpSocket::bind(any)?;
            sender.connect(SocketAddr::new(to, port))?;
            Ok(sender)
        })?;
        let (tally, stop) =
            (Arc::<Mutex<StreamTally>>::default(), Arc::new(AtomicBool::new(false)));
        let threads = [
            spawn(&tally, &stop, move |tally, stop| send(&sender, tally, stop, interval, payload)),
            spawn(&tally, &stop, move |tally, stop| receive(&receiver, tally, stop)),
        ];
        Ok(Self { tally, stop, threads })
    }

    /// Stops sending, waits a moment for the last datagrams, and reports.
    pub fn stop(self) -> Result<StreamReport> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow!("the UDP stream died"))?;
        }
        Ok(self.tally.lock().unwrap_or_else(PoisonError::into_inner).report())
    }
}

fn spawn(
    tally: &Arc<Mutex<StreamTally>>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce(&Mutex<StreamTally>, &AtomicBool) + Send + 'static,
) -> JoinHandle<()> {
    let (tally, stop) = (Arc::clone(tally), Arc::clone(stop));
    std::thread::spawn(move || work(&tally, &stop))
}

fn send(
    socket: &UdpSocket,
    tally: &Mutex<StreamTally>,
    stop: &AtomicBool,
    interval: Duration,
    len: usize,
) {
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let number = tally.lock().unwrap_or_else(PoisonError::into_inner).send(Instant::now());
        let mut datagram = number.to_be_bytes().to_vec();
        datagram.resize(len.max(4), 0x5a);
        // What the stack refuses to send is lost, like anything else.
        let _ = socket.send(&datagram);
        next += interval;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn receive(socket: &UdpSocket, tally: &Mutex<StreamTally>, stop: &AtomicBool) {
    let mut stopped_at = None;
    let mut buf = [0; 65_536];
    loop {
        if stop.load(Ordering::Relaxed) {
            let since = *stopped_at.get_or_insert_with(Instant::now);
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            if since.elapsed() > GRACE || since.elapsed() > LOOK_EVERY && tally.is_complete() {
                return;
            }
        }
        let Ok(n) = socket.recv(&mut buf) else { continue };
        if let Some([n0, n1, n2, n3]) = buf.get(..n).and_then(|got| got.first_chunk::<4>()) {
            let number = u32::from_be_bytes([*n0, *n1, *n2, *n3]);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.arrive(Instant::now(), number);
        }
    }
}
