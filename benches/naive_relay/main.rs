//! What the nodes are measured against: a relay between a TAP and a raw packet socket as one writes
//! it first. One task, one frame per system call each way, nothing decided, learnt or counted.
//!
//! It is meant to be fair. It has a header as long as that of our data messages (and laid out like
//! it), an EtherType of its own, and socket buffers as large as the daemons'. Frames are read
//! behind the place of their header, so that nothing is copied or allocated. What it lacks are
//! batches and segmentation offload, and everything that makes a network: no routes, no clients, no
//! duplicates found.
//!
//! ```text
//! naive_relay end   --radio radio0 --own MAC --tap tap0 --peer MAC   TAP <-> radio
//! naive_relay chain --radio radio0 --own MAC --between MAC MAC       radio <-> radio, next header
//! naive_relay loops --radio radio0 --own MAC --tap tap0 --peer MAC   as `end`: see `loops`
//! ```
//!
//! The interfaces are set up by whoever starts it.

mod loops;
mod sys;

use std::fs::File;
use std::io::{self, Read, Write};

use clap::{Parser, Subcommand};
use node_lib::Mac;
use node_lib::messages::ETHERNET_HEADER_LEN;
use node_lib::messages::data::{HEADER_LEN, HOP_LIMIT_OFFSET};
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// "Local experimental 2" (IEEE 802); the daemons use the first.
const ETHERTYPE: u16 = 0x88b6;
/// In front of the carried frame.
const HEADROOM: usize = ETHERNET_HEADER_LEN + HEADER_LEN;
/// A full frame on a radio of jumbo frames.
const BUFFER_LEN: usize = 10_240;
/// As the daemons have them.
const RECV_BUFFER: usize = 4 << 20;
const SEND_BUFFER: usize = 1 << 20;
/// Relays a frame may pass.
const HOP_LIMIT: u8 = 16;

#[derive(Parser)]
#[command(about = "A relay with one frame per system call: what the daemons are measured against")]
struct Args {
    /// Interface that stands for the radio
    #[arg(long)]
    radio: String,
    /// Its address
    #[arg(long)]
    own: Mac,
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    /// Carry frames between a TAP and the radio
    End {
        /// The TAP to create
        #[arg(long)]
        tap: String,
        /// The radio at the other end
        #[arg(long)]
        peer: Mac,
    },
    /// Pass frames on between two radios
    Chain {
        /// Their addresses
        #[arg(long, num_args = 2)]
        between: Vec<Mac>,
    },
    /// Carry frames between a TAP and the radio with batches and segmentation offload
    Loops {
        /// The TAP to create
        #[arg(long)]
        tap: String,
        /// The radio at the other end
        #[arg(long)]
        peer: Mac,
        /// One loop for both directions, or a thread for each
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
        threads: u8,
    },
}

fn main() -> io::Result<()> {
    let Args { radio, own, mode } = Args::parse();
    let radio = sys::packet_socket(&radio, ETHERTYPE, RECV_BUFFER, SEND_BUFFER)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    match mode {
        Mode::End { tap, peer } => runtime.block_on(async {
            end(&sys::watch(radio)?, &sys::watch(sys::tap(&tap)?)?, own, peer).await
        }),
        Mode::Chain { between } => match *between.as_slice() {
            [a, b] => runtime.block_on(async { chain(&sys::watch(radio)?, own, a, b).await }),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        },
        Mode::Loops { tap, peer, threads } => {
            loops::run((sys::vnet_tap(&tap)?, radio), (own, peer), threads)
        }
    }
}

/// Both directions, each as long as it has frames or its turn is over (128 frames, by tokio's
/// budget).
async fn end(radio: &AsyncFd<Socket>, tap: &AsyncFd<File>, own: Mac, peer: Mac) -> io::Result<()> {
    tokio::try_join!(up(radio, tap, own, peer), down(radio, tap, own)).map(drop)
}

/// TAP to radio.
async fn up(radio: &AsyncFd<Socket>, tap: &AsyncFd<File>, own: Mac, peer: Mac) -> io::Result<()> {
    let mut frame = frame_to(peer, own);
    let mut seq = 0_u32;
    loop {
        let room = frame.get_mut(HEADROOM..).unwrap_or_default();
        let len = HEADROOM + tap.async_io(Interest::READABLE, |mut tap| tap.read(room)).await?;
        seq = seq.wrapping_add(1);
        number(&mut frame, len, seq);
        // What a queue or a dead interface refuses is lost, as on air.
        let _ = radio.get_ref().send(frame.get(..len).unwrap_or_default());
    }
}

/// Radio to TAP.
async fn down(radio: &AsyncFd<Socket>, tap: &AsyncFd<File>, own: Mac) -> io::Result<()> {
    let mut frame = [0; BUFFER_LEN];
    loop {
        let len = radio.async_io(Interest::READABLE, |mut radio| radio.read(&mut frame)).await?;
        if let Some(inner) = inner(frame.get(..len).unwrap_or_default(), own) {
            let _ = tap.get_ref().write(inner);
        }
    }
}

/// Frames of either radio to the other.
async fn chain(radio: &AsyncFd<Socket>, own: Mac, a: Mac, b: Mac) -> io::Result<()> {
    let mut buffer = [0; BUFFER_LEN];
    loop {
        let read = radio.async_io(Interest::READABLE, |mut radio| radio.read(&mut buffer)).await?;
        let frame = buffer.get_mut(..read).unwrap_or_default();
        if forward(frame, own, a, b).is_some() {
            let _ = radio.get_ref().send(frame);
        }
    }
}

/// A buffer with everything in it that is the same for each frame.
fn frame_to(peer: Mac, own: Mac) -> [u8; BUFFER_LEN] {
    let mut frame = [0; BUFFER_LEN];
    let ids = [peer.0, own.0].concat();
    let header = [&ids[..], &ETHERTYPE.to_be_bytes(), &[0; 4], &ids[..], &[HOP_LIMIT]].concat();
    for (slot, byte) in frame.iter_mut().zip(header) {
        *slot = byte;
    }
    frame
}

/// Writes the fields that change: length and sequence, where our data messages have them.
fn number(frame: &mut [u8], len: usize, seq: u32) {
    const LENGTH: usize = ETHERNET_HEADER_LEN + 2;
    const SEQ: usize = ETHERNET_HEADER_LEN + 18;
    let length = u16::try_from(len - ETHERNET_HEADER_LEN).unwrap_or(u16::MAX);
    if let Some(field) = frame.get_mut(LENGTH..LENGTH + 2) {
        field.copy_from_slice(&length.to_be_bytes());
    }
    if let Some(field) = frame.get_mut(SEQ..SEQ + 4) {
        field.copy_from_slice(&seq.to_be_bytes());
    }
}

/// The carried frame of one that is for us; Ethernet may have padded what follows it.
fn inner(frame: &[u8], own: Mac) -> Option<&[u8]> {
    let to = frame.first_chunk::<6>()?;
    let [length, ..] = frame.get(ETHERNET_HEADER_LEN + 2..)?.as_chunks::<2>().0 else {
        return None;
    };
    let end = ETHERNET_HEADER_LEN + usize::from(u16::from_be_bytes(*length));
    frame.get(HEADROOM..end).filter(|_| *to == own.0)
}

/// Readies a frame for the next hop, if it is for us and may go on.
fn forward(frame: &mut [u8], own: Mac, a: Mac, b: Mac) -> Option<()> {
    let hop_limit = frame.get_mut(ETHERNET_HEADER_LEN + HOP_LIMIT_OFFSET)?;
    *hop_limit = hop_limit.checked_sub(1)?;
    let ([to, from, ..], _) = frame.as_chunks_mut::<6>() else { return None };
    let next = if *from == a.0 { b } else { a };
    (*to == own.0).then_some(())?;
    (*to, *from) = (next.0, own.0);
    Some(())
}
