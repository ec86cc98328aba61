//! The `unsafe` of the naive relay, as little as there can be.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

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
