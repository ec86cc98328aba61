//! All `unsafe` of this library: packet sockets that see VLAN tags, offloads on and off, and many
//! datagrams per system call.
//!
//! The kernel takes the outermost VLAN tag out of a received frame and hands it over as
//! "auxiliary data"; [`PromiscuousSocket::recv`] puts it back, so that what is read is what was on
//! the wire.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use libc::{c_int, c_void};
use socket2::{SockFilter, SockRef};

/// Room a caller of [`PromiscuousSocket::recv`] must offer beyond the frame: one VLAN tag.
pub(crate) const TAG_LEN: usize = 4;
/// The two MAC addresses in front of a tag.
pub(crate) const ADDRESSES_LEN: usize = 12;
/// Bytes of a `virtio_net_hdr` as TAPs and packet sockets have it (linux/virtio_net.h).
pub(crate) const OFFLOAD_HEADER_LEN: usize = 10;
const PACKET_VNET_HDR: c_int = 15;
/// Enough for one `tpacket_auxdata` control message, rounded up generously.
const CONTROL_WORDS: usize = 16;
/// Socket buffer per direction: some hundred full frames, so that a descheduled process loses none.
const BUFFER_BYTES: c_int = 4 << 20;

/// A non-blocking AF_PACKET socket on one interface: every EtherType, promiscuous, whole frames,
/// and never the frames this host itself sends.
#[derive(Debug)]
pub struct PromiscuousSocket {
    fd: OwnedFd,
}

impl PromiscuousSocket {
    /// Opens the socket in the network namespace of the calling thread.
    pub fn open(interface: &str) -> io::Result<Self> {
        Self::open_filtered(interface, &[])
    }

    /// As [`PromiscuousSocket::open`], with a filter that says which frames there are (classic BPF,
    /// socket(7) `SO_ATTACH_FILTER`); an empty one is none.
    pub(crate) fn open_filtered(interface: &str, filter: &[SockFilter]) -> io::Result<Self> {
        let index = interface_index(interface)?;
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers. Protocol 0: nothing is received before `bind`.
        let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just returned by `socket` and belongs to nobody else.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(raw) } };
        socket.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, &1_i32)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        // Root may exceed the system's limit; in a user namespace the limit holds.
        for (forced, plain) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            if socket.set(libc::SOL_SOCKET, forced, &BUFFER_BYTES).is_err() {
                socket.set(libc::SOL_SOCKET, plain, &BUFFER_BYTES)?;
            }
        }
        if !filter.is_empty() {
            SockRef::from(&socket.fd).attach_filter(filter)?;
        }
        // SAFETY: both are plain C structs for which all zeroes is a valid value.
        let (mut membership, mut address) =
            unsafe { (zeroed::<libc::packet_mreq>(), zeroed::<libc::sockaddr_ll>()) };
        membership.mr_ifindex = index;
        membership.mr_type = libc::PACKET_MR_PROMISC as u16;
        socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the pointer and the length describe `address`, which outlives the call.
        let bound = unsafe {
            libc::bind(
                socket.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
    }

    /// Reads one frame into `buf`, VLAN tag included. `None` when nothing waits.
    ///
    /// `buf` needs four bytes more than the longest frame; what does not fit is cut off.
    pub fn recv<'a>(&self, buf: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        let Some(room) = buf.get_mut(TAG_LEN..) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let Some((got, tag)) = self.recv_apart(room)? else { return Ok(None) };
        let Some([p0, p1, c0, c1]) = tag.filter(|_| got >= ADDRESSES_LEN) else {
            return Ok(buf.get(TAG_LEN..TAG_LEN + got));
        };
        buf.copy_within(TAG_LEN..TAG_LEN + ADDRESSES_LEN, 0);
        if let Some(hole) = buf.get_mut(ADDRESSES_LEN..ADDRESSES_LEN + TAG_LEN) {
            hole.copy_from_slice(&[p0, p1, c0, c1]);
        }
        Ok(buf.get(..TAG_LEN + got))
    }

    /// Puts a `virtio_net_hdr` in front of every frame, read or sent: frames longer than the MTU
    /// are passed on whole, with what the kernel needs to know to cut them.
    pub(crate) fn with_offload_header(self) -> io::Result<Self> {
        self.set(libc::SOL_PACKET, PACKET_VNET_HDR, &1_i32)?;
        Ok(self)
    }

    /// Reads one frame without its VLAN tag, which is beside it: length and tag. `None` when
    /// nothing waits.
    pub(crate) fn recv_apart(
        &self,
        room: &mut [u8],
    ) -> io::Result<Option<(usize, Option<[u8; TAG_LEN]>)>> {
        let mut control = [0_u64; CONTROL_WORDS];
        let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        // SAFETY: `msghdr` is a plain C struct for which all zeroes is a valid value.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: every pointer in `header` refers to a live local buffer of the length beside it.
        let got = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, 0) };
        let Ok(got) = usize::try_from(got) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        };
        Ok(Some((got, vlan_tag(&header))))
    }

    /// Sends one whole Ethernet frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length describe `frame`.
        let sent =
            unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn set<T>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        // SAFETY: pointer and length describe `value`, which outlives the call.
        let done = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                name,
                std::ptr::from_ref(value).cast::<c_void>(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for PromiscuousSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The VLAN tag the kernel took out of the frame just received.
fn vlan_tag(header: &libc::msghdr) -> Option<[u8; TAG_LEN]> {
    // SAFETY: `header` was filled by a successful `recvmsg`; the CMSG functions stay inside the
    // control buffer it describes, and the data is read unaligned, only when long enough.
    let aux = unsafe {
        let mut cursor = libc::CMSG_FIRSTHDR(header);
        loop {
            let found = cursor.as_ref()?;
            let wanted = libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as usize;
            if found.cmsg_level == libc::SOL_PACKET
                && found.cmsg_type == libc::PACKET_AUXDATA
                && found.cmsg_len as usize >= wanted
            {
                break libc::CMSG_DATA(cursor).cast::<libc::tpacket_auxdata>().read_unaligned();
            }
            cursor = libc::CMSG_NXTHDR(header, cursor);
        }
    };
    if aux.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let has_tpid = aux.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if has_tpid { aux.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    let ([p0, p1], [c0, c1]) = (tpid.to_be_bytes(), aux.tp_vlan_tci.to_be_bytes());
    Some([p0, p1, c0, c1])
}

/// Makes the kernel finish checksums and cut large segments before frames enter `interface`, as it
/// must for a radio without offloads. Works in the network namespace of the calling thread.
pub(crate) fn disable_offloads(interface: &str) -> io::Result<()> {
    switch_off(interface, &[SET_TCP_SEGMENTATION, SET_TX_CHECKSUM])
}

/// Whether the process asks a radio, by one of its sockets, which of its frames were acknowledged
/// (`SO_WIFI_STATUS`).
pub fn asks_for_acknowledgements(pid: u32) -> io::Result<bool> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let target = match std::fs::read_link(entry.path()) {
            Ok(target) => target,
            // Closed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let is_socket = target.as_os_str().as_encoded_bytes().starts_with(b"socket:");
        if let Some(number) = number.filter(|_| is_socket) {
            let mut value: c_int = 0;
            let mut len = size_of::<c_int>() as libc::socklen_t;
            let socket = descriptor_of(pid, number)?;
            // SAFETY: pointer and length describe `value`, and `len` is ours as well.
            check(unsafe {
                libc::getsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_WIFI_STATUS,
                    (&raw mut value).cast(),
                    &raw mut len,
                )
            })?;
            if value != 0 {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A copy of a descriptor of another process (pidfd_getfd(2), Linux 5.6).
fn descriptor_of(pid: u32, number: c_int) -> io::Result<OwnedFd> {
    let own = |raw: libc::c_long| {
        let raw = c_int::try_from(raw).map_err(io::Error::other)?;
        check(raw)?;
        // SAFETY: `raw` was just returned by the kernel and belongs to nobody else.
        Ok::<_, io::Error>(unsafe { OwnedFd::from_raw_fd(raw) })
    };
    // SAFETY: no pointers.
    let process = own(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: no pointers.
    own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })
}

/// Takes every offload from an interface (`ethtool -K … rx off tx off tso off gso off gro off`):
/// the stack makes and checks each frame as it would be on a wire. In the namespace of the calling
/// thread.
pub(crate) fn disable_all_offloads(interface: &str) -> io::Result<()> {
    const SET_RX_CHECKSUM: u32 = 0x15;
    const SET_GENERIC_SEGMENTATION: u32 = 0x24;
    const SET_GENERIC_RECEIVE: u32 = 0x2c;
    disable_offloads(interface)?;
    switch_off(interface, &[SET_RX_CHECKSUM, SET_GENERIC_SEGMENTATION, SET_GENERIC_RECEIVE])
}

const SET_TX_CHECKSUM: u32 = 0x17;
const SET_TCP_SEGMENTATION: u32 = 0x1f;

/// Sends these commands of `linux/ethtool.h` with 0.
fn switch_off(interface: &str, commands: &[u32]) -> io::Result<()> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    const SIOCETHTOOL: libc::Ioctl = 0x8946;

    let socket =
        std::net::UdpSocket::bind("[::]:0").or_else(|_| std::net::UdpSocket::bind("0.0.0.0:0"))?;
    for command in commands {
        let mut value = Value { command: *command, data: 0 };
        let mut request = request_for(interface)?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request names a terminated interface name and points at `value`, both alive.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })?;
    }
    Ok(())
}

/// Creates a TAP that exchanges frames longer than its MTU, and unfinished checksums, with whoever
/// holds it: a `virtio_net_hdr` is in front of every frame. Reads and writes do not block.
pub(crate) fn open_offload_tap(name: &str) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    // SAFETY: the request names a terminated interface name and is alive for the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    let offloads = libc::c_ulong::from(libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6);
    // SAFETY: TUNSETOFFLOAD takes its argument by value and touches no memory of ours.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, offloads) })?;
    Ok(file)
}

/// Creates a TUN device that is a monitor interface to whoever looks at its link type, under a name
/// the kernel chooses, and down. Writes do not block; in front of each is a `tun_pi`.
pub(crate) fn open_monitor() -> io::Result<(File, String)> {
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = request_for("mon%d")?;
    request.ifr_ifru.ifru_flags = libc::IFF_TUN as i16;
    // SAFETY: the request names a terminated interface name and is alive for the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    let kind = libc::c_ulong::from(libc::ARPHRD_IEEE80211_RADIOTAP);
    // SAFETY: TUNSETLINK takes its argument by value and touches no memory of ours.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETLINK as _, kind) })?;
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0);
    Ok((file, name.map(|byte| char::from(*byte as u8)).collect()))
}

/// A request about this interface, everything else zero.
fn request_for(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is a plain C struct for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *slot = byte as libc::c_char;
    }
    Ok(request)
}

fn check(done: c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Datagrams sent or received with one system call.
pub(crate) const BATCH: usize = 64;

/// Sends `payload` up to [`BATCH`] times over a connected socket; how often it was taken.
pub(crate) fn send_batch(socket: BorrowedFd<'_>, payload: &[u8]) -> io::Result<usize> {
    let mut part =
        libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    // SAFETY: plain C structs for which all zeroes is a valid value.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    for message in &mut messages {
        message.msg_hdr.msg_iov = &raw mut part;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: every message points at `part` and through it at `payload`, which the kernel only
    // reads; both outlive the call, and the count is that of the array.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as libc::c_uint, 0)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes up to [`BATCH`] datagrams from a socket and forgets them; how many there were. Waits for
/// the first one as the socket's timeout has it.
pub(crate) fn discard_batch(socket: BorrowedFd<'_>) -> io::Result<usize> {
    // SAFETY: plain C structs for which all zeroes is a valid value. Without room for data the
    // kernel drops each datagram's content, which is what is wanted.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    // SAFETY: the messages have neither address nor data, so the kernel writes lengths and flags
    // only; the count is that of the array, and there is no timeout to point at.
    let got = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            BATCH as libc::c_uint,
            libc::MSG_WAITFORONE,
            std::ptr::null_mut(),
        )
    };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

fn interface_index(name: &str) -> io::Result<c_int> {
    let name = CString::new(name)?;
    // SAFETY: `name` is a terminated string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => c_int::try_from(index).map_err(io::Error::other),
    }
}
