//! The TAP: an Ethernet interface whose cable ends in this process.
//!
//! Linux, as measured: a read into a buffer that is too short loses the rest of the frame silently.
//! A write to an interface that is down says `EIO`. On one that was deleted everything says
//! `EBADFD`. A write of any length is accepted, so the length is checked here.
//!
//! With [`TapOffload::Auto`] or [`TapOffload::On`] frames have vnet headers, and up to 64 KiB of a
//! TCP flow cross in one system call: see [`crate::offload`]. A plain one is opened by `tun-tap`,
//! which knows no vnet headers, or, without the feature of that name, by ourselves.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use tracing::{info, trace};

use super::error::{DeviceError, Problem};
use super::offload::{Offload, Shape};
use super::{Burst, Device, DeviceCounters, LinkState, Outgoing, Received, Sent, name, sys};
use crate::control::event::{Limit, TooLong};
use crate::offload::vnet;

/// Ethernet header, one VLAN tag, and one byte more: a frame that fills the buffer is too long.
const SLACK: usize = 14 + 4 + 1;
/// The smallest buffer: the MTU may grow before we hear of it.
const BUFFER_MIN: usize = 2048;
/// Shorter frames are refused by the kernel.
const HEADER_LEN: usize = 14;

/// Whether TCP crosses the TAP in super-frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TapOffload {
    /// If the kernel can; otherwise frame by frame.
    #[default]
    Auto,
    /// Yes, or opening fails.
    On,
    /// No.
    Off,
}

/// An open TAP, or one that was deleted and waits for [`Device::reopen`].
#[derive(Debug)]
pub struct Tap {
    name: String,
    file: Option<File>,
    wanted: TapOffload,
    /// Frames have vnet headers.
    offload: Option<Box<Offload>>,
    buffer_len: usize,
    too_long: Option<TooLong>,
    counters: DeviceCounters,
}

impl Tap {
    /// Creates the TAP `name`, or attaches to a persistent one.
    pub fn open(name: &str, offload: TapOffload) -> Result<Self, DeviceError> {
        name::check(name)?;
        let mut tap = Self {
            name: name.to_owned(),
            file: None,
            wanted: offload,
            offload: None,
            buffer_len: BUFFER_MIN,
            too_long: None,
            counters: DeviceCounters::default(),
        };
        tap.create()?;
        Ok(tap)
    }

    /// TCP crosses it in super-frames.
    pub fn has_offload(&self) -> bool {
        self.offload.is_some()
    }

    /// Sizes the read buffer for frames with payloads of up to `mtu` bytes.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.buffer_len = mtu.saturating_add(SLACK).max(BUFFER_MIN);
    }

    fn lose(&mut self) {
        // Nobody waits on it any more: a deleted TAP is readable for ever.
        self.file = None;
        if let Some(offload) = &mut self.offload {
            offload.forget();
        }
    }

    fn create(&mut self) -> Result<(), DeviceError> {
        let error = |problem| DeviceError::new(&self.name, "create the TAP", problem);
        let opened =
            choose(self.wanted, || open_with_offload(&self.name), || open_plain(&self.name))
                .map_err(error)?;
        let (file, has_offload) = match opened {
            Opened::WithOffload(file) => (file, true),
            Opened::Plain { file, why_not } => {
                if let Some(cause) = why_not {
                    info!(tap = %self.name, %cause, "TAP works frame by frame");
                }
                (file, false)
            }
        };
        self.file = Some(file);
        self.offload = if has_offload { self.offload.take().or_else(Offload::boxed) } else { None };
        Ok(())
    }
}

/// A TAP as it could be had.
#[derive(Debug)]
enum Opened {
    WithOffload(File),
    Plain {
        file: File,
        /// Offload was wanted if possible.
        why_not: Option<Problem>,
    },
}

fn choose(
    wanted: TapOffload,
    with_offload: impl FnOnce() -> Result<File, Problem>,
    plain: impl FnOnce() -> Result<File, Problem>,
) -> Result<Opened, Problem> {
    let why_not = match wanted {
        TapOffload::Off => None,
        TapOffload::On => return with_offload().map(Opened::WithOffload),
        TapOffload::Auto => match with_offload() {
            Ok(file) => return Ok(Opened::WithOffload(file)),
            // If it is something that keeps us from any TAP, the next attempt finds it too.
            Err(problem) => Some(problem),
        },
    };
    Ok(Opened::Plain { file: plain()?, why_not })
}

fn open_plain(name: &str) -> Result<File, Problem> {
    let file = attach_plain(name).map_err(explain)?;
    sys::clear_tap_offload(file.as_fd())?;
    Ok(file)
}

#[cfg(feature = "tun-tap")]
fn attach_plain(name: &str) -> io::Result<File> {
    use tun_tap::{Iface, Mode};

    let file = sys::tap_file(Iface::without_packet_info(name, Mode::Tap)?);
    sys::set_nonblocking(file.as_fd())?;
    Ok(file)
}

#[cfg(not(feature = "tun-tap"))]
fn attach_plain(name: &str) -> io::Result<File> {
    sys::open_plain_tap(name)
}

fn open_with_offload(name: &str) -> Result<File, Problem> {
    let file = sys::open_vnet_tap(name).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => Problem::NoOffload(error),
        _ => explain(error),
    })?;
    // UDP as well: of what a sender with `UDP_SEGMENT` hands over, more comes through, as the queue
    // of the TAP holds super-frames instead of frames (1.05 to 5.5 times, median 1.9, in five
    // rounds in turns).
    sys::set_tap_offload(file.as_fd(), sys::TapSegments::TcpAndUdp)
        .or_else(|_| sys::set_tap_offload(file.as_fd(), sys::TapSegments::Tcp))
        .map_err(Problem::NoOffload)?;
    Ok(file)
}

/// What an error of opening the device node, or of attaching to the interface, means.
fn explain(error: io::Error) -> Problem {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Problem::NoTunDevice,
        Some(libc::EACCES) => Problem::TunNotOpenable,
        Some(libc::EPERM) => Problem::MissingCapability("CAP_NET_ADMIN"),
        Some(libc::EBUSY) => Problem::Busy,
        Some(libc::EINVAL) => Problem::NotTap,
        _ => Problem::Io(error),
    }
}

impl Device for Tap {
    fn name(&self) -> &str {
        &self.name
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(self.buffer_len);
        let Some(file) = self.file.as_ref() else {
            return Received::Drained;
        };
        if let Some(offload) = &mut self.offload {
            offload.go_on(burst, &mut self.counters);
        }
        // Frames that are dropped count too, or a stream of them would keep us here for ever.
        for _ in 0..burst.slots() {
            if burst.is_enough() {
                break;
            }
            let read = match &mut self.offload {
                Some(offload) => offload.read(file, burst, &mut self.counters),
                None => read_frame(file, burst, &mut self.counters),
            };
            match read {
                Ok(()) => {}
                Err(error) if sys::is_would_block(&error) => return Received::Drained,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EBADFD) => {
                        self.lose();
                        return Received::Gone;
                    }
                    _ => {
                        self.counters.rx_errors += 1;
                        trace!(tap = %self.name, %error, "read failed");
                        return Received::Drained;
                    }
                },
            }
        }
        Received::More
    }

    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        let Self { name, file, offload, buffer_len, too_long, counters, .. } = self;
        let Some(file) = file else {
            counters.tx_down += frames.len() as u64;
            return Sent::All;
        };
        let head_len = if offload.is_some() { vnet::LEN } else { 0 };
        let len_max = *buffer_len;
        let mut writer = Writer { name, file, len_max, head_len, too_long, counters };
        let mut left = frames.len();
        let mut write = |shape: Shape, parts: &[IoSlice<'_>]| {
            let is_there = writer.write(shape, parts);
            left -= if is_there { shape.frames } else { 0 };
            is_there
        };
        let is_there = match offload {
            None => frames
                .iter()
                .all(|frame| write(Shape::of_frame(frame.bytes), &[IoSlice::new(frame.bytes)])),
            Some(offload) => offload.write_all(frames, write),
        };
        if is_there {
            return Sent::All;
        }
        self.counters.tx_down += left as u64;
        self.lose();
        Sent::Gone
    }

    fn link_changed(&mut self, link: Option<&LinkState>) -> Result<(), DeviceError> {
        // A deletion is noticed by reading: by now the name may be that of our next TAP.
        if let Some(link) = link {
            self.set_mtu(link.mtu);
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), DeviceError> {
        self.lose();
        self.create()?;
        self.counters.reopened += 1;
        Ok(())
    }

    fn take_too_long(&mut self) -> Option<TooLong> {
        self.too_long.take()
    }

    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// Reads one frame of a plain TAP into `burst`.
fn read_frame(mut file: &File, burst: &mut Burst, counters: &mut DeviceCounters) -> io::Result<()> {
    let Some(slot) = burst.vacant() else { return Ok(()) };
    let room = slot.len();
    let len = file.read(slot)?;
    if len >= room {
        counters.rx_oversize += 1;
    } else {
        counters.count_rx(len);
        burst.commit(len);
    }
    Ok(())
}

/// Writes to a TAP that is there, or was a moment ago.
struct Writer<'a> {
    name: &'a str,
    file: &'a File,
    /// What is as long or longer is too long for the interface.
    len_max: usize,
    /// Bytes in front of each frame.
    head_len: usize,
    too_long: &'a mut Option<TooLong>,
    counters: &'a mut DeviceCounters,
}

impl Writer<'_> {
    /// Makes one write, and counts its frames. `false` if the TAP is gone; then nothing is counted.
    fn write(&mut self, shape: Shape, parts: &[IoSlice<'_>]) -> bool {
        let Shape { frames, bytes, longest } = shape;
        let counters = &mut *self.counters;
        let frames = frames as u64;
        if bytes < HEADER_LEN {
            counters.tx_short += frames;
            return true;
        }
        if longest >= self.len_max {
            counters.tx_oversize += frames;
            let begin = parts.first().and_then(|part| part.get(self.head_len..));
            let (begin, most) = (begin.unwrap_or_default(), self.len_max - 1);
            *self.too_long = Some(TooLong::new(begin, longest, most, Limit::Tap));
            return true;
        }
        let mut file = self.file;
        let written = match parts {
            [whole] => file.write(whole),
            parts => file.write_vectored(parts),
        };
        match written {
            // A TAP takes all of a frame or nothing.
            Ok(_) => {
                counters.tx_frames += frames;
                counters.tx_bytes += bytes as u64;
                if frames > 1 {
                    counters.tx_super_frames += 1;
                    counters.tx_segments += frames;
                }
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EIO) => counters.tx_down += frames,
                // Nothing tells when the host's stack has room again.
                Some(libc::EAGAIN | libc::ENOBUFS) => counters.tx_full += frames,
                Some(libc::EBADFD) => return false,
                _ => {
                    counters.tx_errors += frames;
                    trace!(tap = %self.name, %error, "write failed");
                }
            },
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offload_is_chosen_as_wanted_and_as_possible() {
        let file = || Ok(File::open("/dev/null").unwrap());
        let refused = || Err(Problem::NoOffload(io::ErrorKind::Unsupported.into()));
        for wanted in [TapOffload::Auto, TapOffload::On] {
            let opened = choose(wanted, file, || panic!("not needed"));
            assert!(matches!(opened, Ok(Opened::WithOffload(_))));
        }
        let plain = choose(TapOffload::Off, || panic!("not wanted"), file);
        assert!(matches!(plain, Ok(Opened::Plain { why_not: None, .. })));
        let Ok(Opened::Plain { why_not: Some(why), .. }) = choose(TapOffload::Auto, refused, file)
        else {
            panic!("a kernel without offload still has TAPs");
        };
        assert!(why.to_string().contains("no segmentation offload (unsupported)"), "{why}");
        let on = choose(TapOffload::On, refused, file).unwrap_err();
        assert!(matches!(on, Problem::NoOffload(_)));
        // What keeps us from any TAP is the error that is told.
        let busy = || Err(Problem::Busy);
        assert!(matches!(choose(TapOffload::Auto, busy, busy), Err(Problem::Busy)));
    }

    #[test]
    fn an_error_of_the_kernel_is_explained() {
        let explained = |code| explain(io::Error::from_raw_os_error(code)).to_string();
        assert!(explained(libc::ENOENT).contains("/dev/net/tun does not exist"));
        assert!(explained(libc::EACCES).contains("may not be opened"));
        assert!(explained(libc::EPERM).contains("CAP_NET_ADMIN"));
        assert!(explained(libc::EBUSY).contains("another process"));
        assert!(explained(libc::EINVAL).contains("not a TAP"));
    }
}
