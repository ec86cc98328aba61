//! Addresses: [`Mac`] of an interface, [`NodeId`] of a node.
//!
//! Both are six bytes. They are separate types because a node keeps its id when its MAC changes
//! (pseudonym rotation, a replaced radio).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An Ethernet MAC address (IEEE 802, six bytes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Length in bytes.
    pub const LEN: usize = 6;
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// `00:00:00:00:00:00`: never a valid sender.
    pub const ZERO: Self = Self([0; 6]);

    /// Group bit set: broadcast or multicast (IEEE 802-2014 §8.2.2).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Can be the address of one interface: neither a group address nor all zero.
    #[inline]
    pub fn is_unicast(self) -> bool {
        !self.is_group() && self != Self::ZERO
    }

    /// `01:80:c2:00:00:00` to `…:0f`: spanning tree, pause, LLDP and the like. A bridge must not
    /// forward these (IEEE 802.1Q-2018 §8.6.3).
    #[inline]
    pub fn is_bridge_local(self) -> bool {
        let [a, b, c, d, e, f] = self.0;
        [a, b, c, d, e] == [0x01, 0x80, 0xc2, 0x00, 0x00] && f <= 0x0f
    }
}

/// Identity of a node. By default the MAC of its radio, but a field of its own on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NodeId(pub [u8; 6]);

impl NodeId {
    /// Length in bytes.
    pub const LEN: usize = 6;
    /// "Nobody": no node has this id.
    pub const NONE: Self = Self([0; 6]);
}

impl From<Mac> for NodeId {
    fn from(mac: Mac) -> Self {
        Self(mac.0)
    }
}

/// The six bytes as one number. Compared as such they sort as the bytes do, several times faster:
/// maps keyed by addresses are searched for every frame.
const fn number(bytes: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = bytes;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl Ord for Mac {
    fn cmp(&self, other: &Self) -> Ordering {
        number(self.0).cmp(&number(other.0))
    }
}

impl PartialOrd for Mac {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NodeId {
    fn cmp(&self, other: &Self) -> Ordering {
        number(self.0).cmp(&number(other.0))
    }
}

impl PartialOrd for NodeId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn write_colons(bytes: &[u8; 6], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [a, b, c, d, e, g] = bytes;
    write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_colons(&self.0, f)
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_colons(&self.0, f)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_colons(&self.0, f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_colons(&self.0, f)
    }
}

/// The text is not six hexadecimal bytes with colons between them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a MAC address; expected six hexadecimal bytes such as 02:00:00:00:00:01")]
pub struct ParseMacError(String);

impl FromStr for Mac {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseMacError(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(error)?;
            if part.len() != 2 {
                return Err(error());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(Self(bytes)) }
    }
}

/// As text: `"02:00:5e:10:0a:ff"`.
#[cfg(feature = "serde")]
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Mac, NodeId};

    impl Serialize for Mac {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl Serialize for NodeId {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for Mac {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        }
    }

    impl<'de> Deserialize<'de> for NodeId {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Mac::deserialize(deserializer).map(Self::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let mac: Mac = "02:00:5e:10:0a:ff".parse().unwrap();
        assert_eq!(mac, Mac([0x02, 0x00, 0x5e, 0x10, 0x0a, 0xff]));
        assert_eq!(mac.to_string(), "02:00:5e:10:0a:ff");
    }

    #[test]
    fn addresses_sort_as_their_bytes_do() {
        let some = [[0; 6], [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0], [0xff; 6]];
        for a in some {
            for b in some {
                assert_eq!(Mac(a).cmp(&Mac(b)), a.cmp(&b));
                assert_eq!(NodeId(a).partial_cmp(&NodeId(b)), a.partial_cmp(&b));
            }
        }
    }

    #[test]
    fn refuses_anything_else() {
        for text in [
            "",
            "02",
            "02:00:5e:10:0a",
            "02:00:5e:10:0a:ff:00",
            "02:00:5e:10:0a:g0",
            "2:0:5e:10:a:ff",
        ] {
            let error = text.parse::<Mac>().unwrap_err();
            assert!(error.to_string().contains("expected six hexadecimal bytes"), "{error}");
        }
    }

    #[test]
    fn knows_group_and_bridge_local_addresses() {
        assert!(Mac::BROADCAST.is_group());
        assert!(!Mac::ZERO.is_unicast());
        assert!(Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]).is_bridge_local());
        assert!(!Mac([0x01, 0x80, 0xc2, 0, 0, 0x10]).is_bridge_local());
        assert!(!Mac([0x01, 0x00, 0x5e, 0, 0, 1]).is_bridge_local());
    }
}
