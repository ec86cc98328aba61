//! Every `unsafe` of this crate: thin safe covers over system calls the standard library, `socket2`
//! and `tokio` have no safe form for.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Outgoing;

/// Types that own their descriptor: the same one from creation to drop.
pub(super) trait OwnsFd: AsRawFd {}
impl OwnsFd for File {}
impl OwnsFd for Socket {}

/// Registers a non-blocking descriptor with the running tokio loop, for reading and, of a socket whose
/// buffer can be full, for writing.
pub(super) fn register<T: OwnsFd>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: `OwnsFd` is private to this file and implemented only for types that keep one open
    // descriptor from creation to drop and always report that one.
    unsafe { AsyncFd::register_with_interest(inner, interest) }
        .map_err(|error| error.into_parts().1)
}

/// Takes the descriptor out of a freshly opened TAP.
pub(super) fn tap_file(iface: tun_tap::Iface) -> File {
    let fd = iface.into_raw_fd();
    // SAFETY: `into_raw_fd` gave up ownership of an open descriptor, so nobody else closes it.
    File::from(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Turns a TAP's checksum and segmentation offloads off. They belong to the interface, so a
/// persistent one may still have those of a former owner, and would hand us unfinished checksums.
pub(super) fn clear_tap_offload(fd: BorrowedFd<'_>) -> io::Result<()> {
    const NONE: libc::c_ulong = 0;
    // SAFETY: TUNSETOFFLOAD takes its argument by value and touches no memory of ours.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD as _, NONE) }).map(drop)
}

/// Makes reads and writes return `WouldBlock` instead of waiting.
pub(super) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: F_GETFL takes no argument and returns flags by value.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: F_SETFL takes its flags by value.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Binds a packet socket to one interface and one EtherType. Works again on the same descriptor,
/// and without any privilege, when the interface was deleted and re-created.
pub(super) fn bind_packet(fd: BorrowedFd<'_>, ethertype: u16, index: u32) -> io::Result<()> {
    // SAFETY: all fields are integers or arrays of them, for which zero bytes are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex =
        i32::try_from(index).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is a whole `sockaddr_ll`, alive for the call, and `len` is its size.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}

/// Frames moved by one system call at most.
pub(super) const BATCH: usize = 64;

/// One frame read from a packet socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketRead {
    /// Length of the frame on the wire, which may exceed that of the buffer.
    pub(super) len: usize,
    /// `PACKET_HOST`, `PACKET_OTHERHOST` and so on.
    pub(super) packet_type: u8,
}

/// Reads one frame into each of the first slots, as many as are waiting, and says how long each is and
/// how the kernel classified it. Returns how many were read and how many were asked for.
pub(super) fn recv_packets<'a>(
    fd: BorrowedFd<'_>,
    slots: impl Iterator<Item = &'a mut [u8]>,
    reads: &mut [PacketRead; BATCH],
) -> io::Result<(usize, usize)> {
    // SAFETY: all three are made of integers and pointers, for which zero bytes are a value.
    let (mut from, mut parts, mut headers) = unsafe {
        (
            std::mem::zeroed::<[libc::sockaddr_ll; BATCH]>(),
            std::mem::zeroed::<[libc::iovec; BATCH]>(),
            std::mem::zeroed::<[libc::mmsghdr; BATCH]>(),
        )
    };
    let mut wanted = 0;
    for (((slot, from), part), header) in slots.zip(&mut from).zip(&mut parts).zip(&mut headers) {
        part.iov_base = slot.as_mut_ptr().cast();
        part.iov_len = slot.len();
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_name = (&raw mut *from).cast();
        header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        wanted += 1;
    }
    // SAFETY: the first `wanted` headers, at most `BATCH`, each point to an address, and through an iovec to a
    // slot; all of them exclusively ours and alive for the call, with their own lengths. MSG_TRUNC
    // only changes the lengths returned. No time limit is given.
    let read = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            headers.as_mut_ptr(),
            wanted,
            libc::MSG_TRUNC,
            std::ptr::null_mut(),
        )
    };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    for ((out, header), from) in reads.iter_mut().zip(&headers).zip(&from).take(read) {
        *out = PacketRead { len: header.msg_len as usize, packet_type: from.sll_pkttype };
    }
    Ok((read, wanted as usize))
}

/// Sends frames in order, at most `BATCH` of them, until one is refused. Returns how many were taken; the error
/// is that of the first frame.
pub(super) fn send_packets(fd: BorrowedFd<'_>, frames: &[Outgoing<'_>]) -> io::Result<usize> {
    if let [one] = frames {
        // SAFETY: the frame is alive for the call, and the length is its own.
        let sent =
            unsafe { libc::send(fd.as_raw_fd(), one.bytes.as_ptr().cast(), one.bytes.len(), 0) };
        return if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(1) };
    }
    // SAFETY: as in `recv_packets`.
    let (mut parts, mut headers) = unsafe {
        (std::mem::zeroed::<[libc::iovec; BATCH]>(), std::mem::zeroed::<[libc::mmsghdr; BATCH]>())
    };
    let mut count = 0;
    for ((frame, part), header) in frames.iter().zip(&mut parts).zip(&mut headers) {
        part.iov_base = frame.bytes.as_ptr().cast_mut().cast();
        part.iov_len = frame.bytes.len();
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers, at most `BATCH`, each point through an iovec to a frame; all
    // are alive for the call, and the kernel only reads the frames.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Frames the kernel dropped for lack of room in the socket buffer since the last call.
pub(super) fn packet_drops(fd: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: both fields are integers, for which zero bytes are a value.
    let mut stats: libc::tpacket_stats = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: `stats` is exclusively ours and alive for the call, and `len` is its size.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut len,
        )
    })?;
    Ok(stats.tp_drops)
}

/// Sets both socket buffers, beyond the system's limit if `CAP_NET_ADMIN` allows, else up to it.
pub(super) fn set_buffers(fd: BorrowedFd<'_>, recv: i32, send: i32) -> io::Result<()> {
    for (force, plain, bytes) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, recv),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, send),
    ] {
        set_int(fd, force, bytes).or_else(|_| set_int(fd, plain, bytes))?;
    }
    Ok(())
}

fn set_int(fd: BorrowedFd<'_>, option: libc::c_int, value: i32) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` is an `i32`, alive for the call, and `len` is its size.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), len)
    })
    .map(drop)
}

/// Sets the user priority of everything sent on the socket from now on. mac80211 knows it by the 256 in
/// front (`cfg80211_classify8021d`).
pub(super) fn set_priority(fd: BorrowedFd<'_>, user_priority: u8) -> io::Result<()> {
    set_int(fd, libc::SO_PRIORITY, 256 + i32::from(user_priority))
}

/// Time since the machine started, asleep or not.
pub(crate) fn boottime() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is exclusively ours and alive for the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    debug_assert_eq!(result, 0, "Linux has had CLOCK_BOOTTIME since 2.6.39");
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Random bytes from the kernel, for addresses and seeds.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: `bytes` is exclusively ours and alive for the call, and `N` is its length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    // Up to 256 bytes come whole and uninterrupted once the pool is ready (getrandom(2)).
    match usize::try_from(got) {
        Ok(got) if got == N => Ok(bytes),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Does something once with a descriptor that tokio watches. Asks the kernel even if tokio has not seen
/// readiness yet, and tells tokio to watch again when the answer is `WouldBlock`.
pub(super) fn io_with<T: OwnsFd, R>(
    fd: &AsyncFd<T>,
    interest: Interest,
    mut act: impl FnMut(&T) -> io::Result<R>,
) -> io::Result<R> {
    let mut asked = false;
    let result = fd.try_io(interest, |inner| {
        asked = true;
        act(inner)
    });
    match result {
        Err(error) if is_would_block(&error) && !asked => act(fd.get_ref()),
        result => result,
    }
}

/// Nothing to read, or no room to write. Said by tokio it carries no number of the kernel.
pub(super) fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Borrows the descriptor inside, for the calls above.
pub(super) fn borrow<T: OwnsFd + AsFd>(fd: &AsyncFd<T>) -> BorrowedFd<'_> {
    fd.get_ref().as_fd()
}
