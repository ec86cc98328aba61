//! The `unsafe` of the naive relay, as little as there can be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_tap::{Iface, Mode};

/// Creates a TAP that does not block.
pub(crate) fn tap(name: &str) -> io::Result<File> {
    let iface = Iface::without_packet_info(name, Mode::Tap)?;
    // SAFETY: `into_raw_fd` gave up ownership of an open descriptor, so nobody else closes it.
    let fd = unsafe { OwnedFd::from_raw_fd(iface.into_raw_fd()) };
    fcntl(&fd, FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK))?;
    Ok(fd.into())
}

/// Creates a TAP that does not block and has a vnet header in front of each frame: TCP and, where
/// the kernel can, UDP cross it in super-frames.
pub(crate) fn vnet_tap(name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open("/dev/net/tun")?;
    let fd = file.as_raw_fd();
    // SAFETY: integers, pointers, and arrays and unions of them, for which zero bytes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The zero at the end stays.
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, exclusively ours and alive for the call.
    Errno::result(unsafe { libc::ioctl(fd, libc::TUNSETIFF as _, &raw mut request) })?;
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let offload = |mask: libc::c_uint| {
        // SAFETY: TUNSETOFFLOAD takes its argument by value and touches no memory of ours.
        let result =
            unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD as _, libc::c_ulong::from(mask)) };
        Errno::result(result)
    };
    offload(tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6).or_else(|_| offload(tcp))?;
    Ok(file)
}

/// A socket for frames of `ethertype` on one interface, with buffers of this many bytes, or as many
/// as the system allows.
pub(crate) fn packet_socket(
    interface: &str,
    ethertype: u16,
    recv: usize,
    send: usize,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking().cloexec(), None)?;
    setsockopt(&socket, sockopt::RcvBufForce, &recv)
        .or_else(|_| socket.set_recv_buffer_size(recv))?;
    setsockopt(&socket, sockopt::SndBufForce, &send)
        .or_else(|_| socket.set_send_buffer_size(send))?;
    let index = i32::try_from(if_nametoindex(interface)?).map_err(io::Error::other)?;
    // SAFETY: the storage is larger than a `sockaddr_ll` and aligned for every address; all fields
    // are integers, for which the zeroes there are values. The length is that of what was written.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, len| {
            let address = &mut *storage.cast::<libc::sockaddr_ll>();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = ethertype.to_be();
            address.sll_ifindex = index;
            *len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    }?;
    socket.bind(&address)?;
    Ok(socket)
}

/// Registers a descriptor with tokio, for reading.
pub(crate) fn watch<T: OwnsFd>(inner: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: `OwnsFd` stands for types that keep one open descriptor from creation to drop.
    unsafe { AsyncFd::register_with_interest(inner, Interest::READABLE) }
        .map_err(|error| error.into_parts().1)
}

/// Types that own their descriptor: the same one from creation to drop.
pub(crate) trait OwnsFd: AsRawFd {}
impl OwnsFd for File {}
impl OwnsFd for Socket {}
