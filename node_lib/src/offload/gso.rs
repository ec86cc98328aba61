//! The kinds of segmentation.

/// What a frame is to be split into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Gso {
    /// Nothing: it is an ordinary frame.
    #[default]
    None = 0,
    /// TCP segments over IPv4.
    TcpV4 = 1,
    /// TCP segments over IPv6.
    TcpV6 = 4,
    /// UDP datagrams over either.
    Udp = 5,
}
