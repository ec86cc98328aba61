//! Every `unsafe` of this crate: thin safe covers over system calls the standard library, `socket2`
//! and `rustix` have no safe form for.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
#[cfg(feature = "tun-tap")]
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use arrayvec::ArrayVec;

use super::Outgoing;

/// From now on what is given back to the allocator goes back to the kernel as far as it can; to be
/// called before anything is allocated that is large, and before there is a second thread.
///
/// The C library learns from what it sees. A start that looks whether there is memory gives back
/// 16 MiB in one piece. From then on pieces up to that size are in the heap, and 32 MiB that are
/// free at its end are kept. Tables that grow leave holes there. And each thread has a heap of its
/// own, which keeps what one of them needed once. With one heap for all, and large pieces apart
/// from it, a daemon holds what it uses. The lock of that heap costs the loop nothing: in steady
/// state it allocates nothing.
pub fn keep_little_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// The values the C library begins with; once set, they stay.
        const LARGE: libc::c_int = 128 << 10;
        let settings = [
            (libc::M_ARENA_MAX, 1),
            (libc::M_MMAP_THRESHOLD, LARGE),
            (libc::M_TRIM_THRESHOLD, LARGE),
        ];
        for (which, value) in settings {
            // SAFETY: it takes its arguments by value and touches no memory of ours.
            unsafe {
                libc::mallopt(which, value);
            }
        }
    }
}

/// Gives memory back to the kernel that is free in the midst of a heap.
pub(super) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes its argument by value, locks what it looks at, and touches only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Takes the descriptor out of a freshly opened TAP.
#[cfg(feature = "tun-tap")]
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

/// Opens the TAP `name`, new or persistent, without anything in front of its frames. Reads and
/// writes return `WouldBlock` instead of waiting.
///
/// It does what `tun-tap` does, for targets on which the C of that crate does not build: it needs
/// the kernel's headers, which a C library other than glibc does not bring.
#[cfg(not(feature = "tun-tap"))]
pub(super) fn open_plain_tap(name: &str) -> io::Result<File> {
    let file = open_tun()?;
    attach_tap(&file, name, 0)?;
    Ok(file)
}

/// Opens the TAP `name`, new or persistent, with a vnet header in front of each frame. Reads and
/// writes return `WouldBlock` instead of waiting.
pub(super) fn open_vnet_tap(name: &str) -> io::Result<File> {
    let file = open_tun()?;
    let fd = file.as_raw_fd();
    let mut features: libc::c_uint = 0;
    // SAFETY: TUNGETFEATURES writes one unsigned integer, exclusively ours and alive for the call.
    check(unsafe { libc::ioctl(fd, libc::TUNGETFEATURES as _, &raw mut features) })?;
    if features & libc::IFF_VNET_HDR as libc::c_uint == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    attach_tap(&file, name, libc::IFF_VNET_HDR)?;
    // A former owner of a persistent TAP may have wanted other headers than `offload::vnet` has.
    for (operation, value) in
        [(libc::TUNSETVNETHDRSZ, crate::offload::vnet::LEN as libc::c_int), (libc::TUNSETVNETLE, 0)]
    {
        // SAFETY: both read one integer, alive for the call.
        check(unsafe { libc::ioctl(fd, operation as _, &raw const value) })?;
    }
    Ok(file)
}

/// What a TAP is made from, before it has a name.
fn open_tun() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")
}

/// Makes it the TAP `name`, whose frames have no packet information in front, but what `flags` say.
fn attach_tap(tun: &File, name: &str, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: all of it is integers, pointers, and arrays and unions of them, for which zero bytes
    // are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The zero at the end stays: names have been checked to be shorter.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | flags;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, exclusively ours and alive for the call.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) }).map(drop)
}

/// What a TAP with vnet headers may hand over unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TapSegments {
    /// Checksums, and TCP of either version of IP.
    Tcp,
    /// That and UDP. Linux 6.2 or newer.
    TcpAndUdp,
}

/// Asks for super-frames.
pub(super) fn set_tap_offload(fd: BorrowedFd<'_>, offload: TapSegments) -> io::Result<()> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let mask = match offload {
        TapSegments::Tcp => tcp,
        TapSegments::TcpAndUdp => tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6,
    };
    // SAFETY: TUNSETOFFLOAD takes its argument by value and touches no memory of ours.
    let result =
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD as _, libc::c_ulong::from(mask)) };
    check(result).map(drop)
}

/// Makes reads and writes return `WouldBlock` instead of waiting.
#[cfg(feature = "tun-tap")]
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

/// The link type (`ARPHRD_…`) of the interface a packet socket is bound to; 0 if it is to none, or
/// to one that no longer exists.
pub(super) fn bound_link_type(fd: BorrowedFd<'_>) -> io::Result<u16> {
    // SAFETY: all fields are integers or arrays of them, for which zero bytes are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is exclusively ours and alive for the call, and `len` is its size.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len) })?;
    Ok(address.sll_hatype)
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

/// A message with one part and no name.
fn header_of(part: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: integers and pointers, for which zero bytes are a value.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = part;
    header.msg_hdr.msg_iovlen = 1;
    header
}

/// Reads one frame into each of the first slots, as many as are waiting and at most `most`, and
/// says in `reads` how long each is and how the kernel classified it. Returns how many were asked
/// for.
pub(super) fn recv_packets<'a>(
    fd: BorrowedFd<'_>,
    most: usize,
    slots: impl Iterator<Item = &'a mut [u8]>,
    reads: &mut ArrayVec<PacketRead, BATCH>,
) -> io::Result<usize> {
    reads.clear();
    if most == 1 {
        return recv_packet(fd, slots, reads).map(|()| 1);
    }
    let mut from = [const { MaybeUninit::<libc::sockaddr_ll>::uninit() }; BATCH];
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut wanted = 0;
    for (((slot, from), part), header) in
        slots.zip(&mut from).zip(&mut parts).zip(&mut headers).take(most)
    {
        // SAFETY: integers and arrays of them, for which zero bytes are a value.
        let from = from.write(unsafe { std::mem::zeroed() });
        let part =
            part.write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
        let header = header.write(header_of(part));
        header.msg_hdr.msg_name = (&raw mut *from).cast();
        header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        wanted += 1;
    }
    // SAFETY: the first `wanted` headers, at most `BATCH`, each point to an address, and through an
    // iovec to a slot; all of them exclusively ours and alive for the call, with their own lengths.
    // MSG_TRUNC only changes the lengths returned. No time limit is given.
    let read = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            wanted,
            // Unsigned in musl.
            libc::MSG_TRUNC as _,
            std::ptr::null_mut(),
        )
    };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    for (header, from) in headers.iter().zip(&from).take(read) {
        // SAFETY: no more than `wanted` were read, and as many were written above.
        let (header, from) = unsafe { (header.assume_init_ref(), from.assume_init_ref()) };
        let len = header.msg_len as usize;
        reads.push(PacketRead { len, packet_type: from.sll_pkttype });
    }
    Ok(wanted as usize)
}

/// Reads one frame; the call for many would go on to look for a second.
fn recv_packet<'a>(
    fd: BorrowedFd<'_>,
    mut slots: impl Iterator<Item = &'a mut [u8]>,
    reads: &mut ArrayVec<PacketRead, BATCH>,
) -> io::Result<()> {
    let Some(slot) = slots.next() else { return Ok(()) };
    // SAFETY: integers and arrays of them, for which zero bytes are a value.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut from_len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: buffer and address are exclusively ours and alive for the call, and both lengths are
    // those of the memory they describe. MSG_TRUNC only changes the returned number.
    let len = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            slot.as_mut_ptr().cast(),
            slot.len(),
            libc::MSG_TRUNC,
            (&raw mut from).cast(),
            &raw mut from_len,
        )
    };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    reads.push(PacketRead { len, packet_type: from.sll_pkttype });
    Ok(())
}

/// Sends frames in order, at most `BATCH` of them, until one is refused. Returns how many were
/// taken; the error is that of the first frame.
pub(super) fn send_packets(fd: BorrowedFd<'_>, frames: &[Outgoing<'_>]) -> io::Result<usize> {
    if let [one] = frames {
        // SAFETY: the frame is alive for the call, and the length is its own.
        let sent =
            unsafe { libc::send(fd.as_raw_fd(), one.bytes.as_ptr().cast(), one.bytes.len(), 0) };
        return if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(1) };
    }
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut count = 0;
    for ((frame, part), header) in frames.iter().zip(&mut parts).zip(&mut headers) {
        let (iov_base, iov_len) = (frame.bytes.as_ptr().cast_mut().cast(), frame.bytes.len());
        header.write(header_of(part.write(libc::iovec { iov_base, iov_len })));
        count += 1;
    }
    // SAFETY: the first `count` headers, at most `BATCH`, each point through an iovec to a frame;
    // all are alive for the call, and the kernel only reads the frames.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr().cast(), count, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Asks for what becomes of each frame sent on the socket. A radio of 802.11 whose driver tells
/// gives it back on the error queue, with whether it was acknowledged (`SO_WIFI_STATUS`, Linux 3.3;
/// mac80211, `ieee80211_report_ack_skb`).
pub(super) fn want_wifi_status(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_WIFI_STATUS, 1)
}

/// A frame that came back on the error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Returned {
    /// Bytes of it, Ethernet header included.
    pub(super) len: usize,
    /// Whether it was acknowledged; `None` if something else is said of it.
    pub(super) acknowledged: Option<bool>,
}

/// Room for the control messages of one returned frame, aligned as they must be: several times what
/// the kernel adds.
const CONTROL_WORDS: usize = 32;

/// Takes the next frame off the error queue.
pub(super) fn recv_returned(fd: BorrowedFd<'_>, slot: &mut [u8]) -> io::Result<Returned> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
    let mut header = header_of(&mut part).msg_hdr;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points to the slot and to the room for control messages, both exclusively
    // ours and alive for the call, with their own lengths. MSG_TRUNC only changes the length
    // returned.
    let len = unsafe {
        libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_TRUNC)
    };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has written whole control messages into `control`, and their length into
    // `header`.
    Ok(Returned { len, acknowledged: unsafe { wifi_status(&header) } })
}

/// What a message says of an acknowledgement, if anything.
///
/// # Safety
///
/// `msg_control` points to `msg_controllen` bytes of whole control messages, aligned as they must
/// be.
unsafe fn wifi_status(header: &libc::msghdr) -> Option<bool> {
    let mut status = None;
    // SAFETY: the macros walk no further than the caller promises, and what they point to is a
    // whole message.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = at.as_ref() {
            let (level, kind) = (message.cmsg_level, message.cmsg_type);
            let len = libc::CMSG_LEN(size_of::<libc::c_int>() as libc::c_uint) as usize;
            if (level, kind) == (libc::SOL_SOCKET, libc::SO_WIFI_STATUS)
                && message.cmsg_len >= len as _
            {
                status = Some(libc::CMSG_DATA(at).cast::<libc::c_int>().read_unaligned() != 0);
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    status
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
pub(super) fn set_buffers(fd: BorrowedFd<'_>, recv: usize, send: usize) -> io::Result<()> {
    for (force, plain, bytes) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, recv),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, send),
    ] {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        let set = |option| set_int(fd, libc::SOL_SOCKET, option, bytes);
        set(force).or_else(|_| set(plain))?;
    }
    Ok(())
}

fn set_int(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: i32,
) -> io::Result<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` is an `i32`, alive for the call, and `len` is its size.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len)
    })
    .map(drop)
}

/// The packet socket gets no copies of what is sent on its interface, and nobody makes any for it.
pub(super) fn ignore_outgoing(fd: BorrowedFd<'_>) -> io::Result<()> {
    /// Of `linux/if_packet.h`; the crate `libc` does not have it.
    const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
    set_int(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
}

/// Sets the user priority of everything sent on the socket from now on. mac80211 knows it by the
/// 256 in front (`cfg80211_classify8021d`).
pub(super) fn set_priority(fd: BorrowedFd<'_>, user_priority: u8) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, 256 + i32::from(user_priority))
}

/// Time since the machine started, asleep or not.
pub(crate) fn boottime() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is exclusively ours and alive for the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    debug_assert_eq!(result, 0, "Linux has had CLOCK_BOOTTIME since 2.6.39");
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Makes a timer on that clock go off at this time of it; zero turns it off. Through the C library,
/// as the clock is read, so that a test can come between both (`testbed/tests/testbed/preload.c`).
pub(crate) fn set_alarm(timer: BorrowedFd<'_>, at: Duration) -> io::Result<()> {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let it_value = libc::timespec {
        // 68 years: what fits where this has 32 bits. The nanoseconds do, below 10⁹.
        tv_sec: i32::try_from(at.as_secs()).unwrap_or(i32::MAX).into(),
        tv_nsec: at.subsec_nanos() as libc::c_long,
    };
    let once = libc::itimerspec { it_interval: never, it_value };
    let (fd, flags) = (timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
    // SAFETY: `once` is alive for the call, and null means that nobody wants the old value.
    check(unsafe { libc::timerfd_settime(fd, flags, &raw const once, std::ptr::null_mut()) })
        .map(drop)
}

/// Makes this thread sleep as long as it says. Otherwise the kernel adds up to 50 µs to save
/// wake-ups (prctl(2), `PR_SET_TIMERSLACK`).
pub(crate) fn sleep_precisely() {
    const NANOSECOND: libc::c_ulong = 1;
    // SAFETY: the call takes its arguments by value.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, NANOSECOND) };
    debug_assert_eq!(result, 0, "it fails for no value");
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

/// Nothing to read, or no room to write.
pub(super) fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    /// Control messages of one integer each, as the kernel writes them.
    fn status_in(messages: &[(libc::c_int, libc::c_int, libc::c_int)]) -> Option<bool> {
        let mut control = [0_u64; CONTROL_WORDS];
        let mut part = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut header = header_of(&mut part).msg_hdr;
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: the room is large enough for the few messages here, and aligned.
        unsafe {
            let space = libc::CMSG_SPACE(4) as usize;
            header.msg_controllen = (messages.len() * space) as _;
            for (n, (level, kind, value)) in messages.iter().enumerate() {
                let at = header.msg_control.cast::<u8>().add(n * space).cast::<libc::cmsghdr>();
                (*at).cmsg_level = *level;
                (*at).cmsg_type = *kind;
                (*at).cmsg_len = libc::CMSG_LEN(4) as _;
                libc::CMSG_DATA(at).cast::<libc::c_int>().write_unaligned(*value);
            }
            wifi_status(&header)
        }
    }

    #[test]
    fn a_returned_frame_says_whether_it_was_acknowledged_wherever_that_stands() {
        let other = (libc::SOL_SOCKET, libc::SO_TIMESTAMP, 1);
        let status = |value| (libc::SOL_SOCKET, libc::SO_WIFI_STATUS, value);
        assert_eq!(status_in(&[]), None);
        assert_eq!(status_in(&[other]), None);
        assert_eq!(status_in(&[(libc::SOL_PACKET, libc::SO_WIFI_STATUS, 1)]), None);
        assert_eq!(status_in(&[status(0)]), Some(false));
        assert_eq!(status_in(&[other, status(1)]), Some(true));
        assert_eq!(status_in(&[status(0), other]), Some(false));
    }

    /// A datagram to a port where nobody listens comes back, with the reason and without a status.
    #[test]
    fn what_came_back_for_another_reason_is_taken_off_the_queue() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        set_int(socket.as_fd(), libc::SOL_IP, libc::IP_RECVERR, 1).unwrap();
        want_wifi_status(socket.as_fd()).unwrap();
        socket.send_to(b"anybody there?", nobody).unwrap();
        let mut slot = [0; 64];
        // The kernel answers when it finds time.
        let returned = (0..5000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            recv_returned(socket.as_fd(), &mut slot).ok()
        });
        let returned = returned.unwrap();
        assert_eq!(returned, Returned { len: 14, acknowledged: None });
        assert_eq!(&slot[..14], b"anybody there?");
        let error = recv_returned(socket.as_fd(), &mut slot).unwrap_err();
        assert!(is_would_block(&error), "{error}");
    }
}
