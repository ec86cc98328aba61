//! Which relays news came through, in four bytes: [`PathTag`].

use std::fmt;

use crate::mac::NodeId;

/// A tag of the chain of relays between an RSU and a node: CRC-32 over the tag before and the relay's
/// id, relay by relay (the polynomial of IEEE 802.3). It changes when any relay on the way does, and
/// says nothing else; two chains share a tag by chance once in 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathTag(pub u32);

impl PathTag {
    /// No relay: the RSU itself.
    pub const DIRECT: Self = Self(0);

    /// The tag behind `relay`.
    #[must_use]
    pub fn behind(self, relay: NodeId) -> Self {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&self.0.to_be_bytes());
        crc.update(&relay.0);
        Self(crc.finalize())
    }
}

impl fmt::Display for PathTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_depends_on_every_relay_and_on_their_order() {
        let (a, b) = (NodeId([2, 0, 0, 0, 0, 1]), NodeId([2, 0, 0, 0, 0, 2]));
        let tags = [
            PathTag::DIRECT,
            PathTag::DIRECT.behind(a),
            PathTag::DIRECT.behind(b),
            PathTag::DIRECT.behind(a).behind(b),
            PathTag::DIRECT.behind(b).behind(a),
        ];
        for (n, tag) in tags.iter().enumerate() {
            assert!(!tags[..n].contains(tag), "{tag}");
        }
    }
}
