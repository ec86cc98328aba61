//! What whoever drives a node adds: interfaces and counts, in a [`View`].

use std::borrow::Cow;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::mac::Mac;

/// A node and the process it is in, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct View {
    /// Since the loop began.
    pub uptime_ms: u64,
    /// The node.
    pub node: Snapshot,
    /// The interface to other nodes.
    pub radio: InterfaceState,
    /// The interface to hosts.
    pub tap: InterfaceState,
    /// The widest port of the TAP's bridge, if it takes longer frames than the TAP: the bridge
    /// drops those.
    pub wider_port: Option<WiderPort>,
    /// Frames wait because the radio has no room.
    pub is_radio_full: bool,
    /// Nobody was heard for the first ten seconds, nor since: why that may be.
    pub alone: Option<String>,
    /// EtherTypes other than ours in which nodes were heard on the radio in the last minute.
    pub other_ethertypes: Vec<u16>,
    /// All that is counted.
    pub counters: Groups,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct InterfaceState {
    /// What it is called.
    pub name: String,
    /// Its address, where it is known.
    pub mac: Option<Mac>,
    /// Its MTU, where it is known.
    pub mtu_bytes: Option<usize>,
    /// What is sent there can arrive.
    pub is_up: bool,
}

/// A port of the TAP's bridge that takes longer frames than the TAP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct WiderPort {
    /// The interface.
    pub name: String,
    /// Its MTU.
    pub mtu_bytes: usize,
}

/// Counters by who counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Groups {
    /// The control plane.
    pub node: Counts,
    /// The device to other nodes.
    pub radio: Counts,
    /// The device to hosts.
    pub tap: Counts,
    /// Small frames that travel together.
    pub bundles: Counts,
    /// Frames that waited for the radio.
    pub outbox: Counts,
    /// Looking for answers.
    pub busy_poll: Counts,
    /// Measurements of the signal.
    pub signal: Counts,
}

impl Groups {
    /// Each group under its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Counts)> {
        let Self { node, radio, tap, bundles, outbox, busy_poll, signal } = self;
        [
            ("node", node),
            ("radio", radio),
            ("tap", tap),
            ("bundles", bundles),
            ("outbox", outbox),
            ("busy_poll", busy_poll),
            ("signal", signal),
        ]
        .into_iter()
    }

    /// Keeps the counters whose name is accepted.
    pub fn retain(&mut self, accept: impl Fn(&str) -> bool) {
        let Self { node, radio, tap, bundles, outbox, busy_poll, signal } = self;
        for counts in [node, radio, tap, bundles, outbox, busy_poll, signal] {
            counts.0.retain(|(name, _)| accept(name));
        }
    }
}

/// Named counts, in the order of who counts. In JSON an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub Vec<(Cow<'static, str>, u64)>);

impl Counts {
    /// The count of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, count)| *count)
    }
}

impl FromIterator<(&'static str, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(counts: I) -> Self {
        Self(counts.into_iter().map(|(name, count)| (Cow::Borrowed(name), count)).collect())
    }
}

#[cfg(feature = "serde")]
mod as_object {
    use std::borrow::Cow;
    use std::fmt;

    use serde::de::{MapAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Counts;

    impl Serialize for Counts {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(name, count)| (name, count)))
        }
    }

    impl<'de> Deserialize<'de> for Counts {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Names;
            impl<'de> Visitor<'de> for Names {
                type Value = Counts;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object of counts")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counts, A::Error> {
                    let mut counts = Vec::new();
                    while let Some((name, count)) = map.next_entry::<String, u64>()? {
                        counts.push((Cow::Owned(name), count));
                    }
                    Ok(Counts(counts))
                }
            }
            deserializer.deserialize_map(Names)
        }
    }
}
