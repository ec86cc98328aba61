//! Whose recording it is, and what its node was made with: [`RecordingHeader`], in the first block
//! of each file.
//!
//! It is a MessagePack map with names, so that it can grow. What the operator decided stands in it
//! as it does in the settings of the role, so that a replay makes the same node.

use node_lib::{Boot, Mac, NodeId, Start, Timestamp};
use serde::{Deserialize, Serialize};

use crate::block::VERSION;

/// Which control plane a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// In a vehicle.
    Obu,
    /// At the road side.
    Rsu,
}

impl Role {
    /// As file names have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Obu => "obu",
            Self::Rsu => "rsu",
        }
    }
}

/// What a recording says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingHeader {
    /// Version of the format.
    pub format: u8,
    /// Program and version that wrote it.
    pub software: String,
    /// Which control plane.
    pub role: Role,
    /// Name of the radio.
    pub radio: String,
    /// Name of the TAP.
    pub tap: String,
    /// Identity of the node.
    pub id: [u8; 6],
    /// MAC of its radio.
    pub radio_mac: [u8; 6],
    /// MTU of its radio.
    pub radio_mtu: u32,
    /// MAC of its TAP.
    pub tap_mac: Option<[u8; 6]>,
    /// Boot count.
    pub boot: u32,
    /// Seed of everything random in the node.
    pub seed: u64,
    /// What the node's clock showed when it was made, in microseconds.
    pub created_us: u64,
    /// Nanoseconds since 1970 when the node's clock showed zero.
    pub began_unix_ns: u64,
    /// `Settings` of the role.
    pub settings: serde_json::Value,
    /// Bytes kept of a client's frame that was only passed on; 0: all, as of all other frames.
    pub snap: u32,
    /// Number of the file in its recording.
    pub segment: u32,
    /// Which recording of this start of the node it is: 0 from the making of the node on, 1 and
    /// more begun while it ran. Those can be looked at, and not replayed.
    #[serde(default)]
    pub part: u32,
}

impl RecordingHeader {
    /// Of a node that is made now with these settings.
    pub fn new(
        role: Role,
        start: &Start,
        created: Timestamp,
        settings: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            format: VERSION,
            software: concat!("v2x ", env!("CARGO_PKG_VERSION")).to_owned(),
            role,
            radio: "radio".to_owned(),
            tap: "tap".to_owned(),
            id: start.id.0,
            radio_mac: start.radio_mac.0,
            radio_mtu: u32::try_from(start.radio_mtu).unwrap_or(u32::MAX),
            tap_mac: start.tap_mac.map(|mac| mac.0),
            boot: start.boot.0,
            seed: start.seed,
            created_us: created.as_micros(),
            began_unix_ns: 0,
            settings: serde_json::to_value(settings)?,
            snap: 0,
            segment: 0,
            part: 0,
        })
    }

    /// What the start of the node found.
    pub fn start(&self) -> Start {
        Start {
            id: NodeId(self.id),
            radio_mac: Mac(self.radio_mac),
            radio_mtu: self.radio_mtu as usize,
            tap_mac: self.tap_mac.map(Mac),
            boot: Boot(self.boot),
            seed: self.seed,
        }
    }

    /// When the node was made, on its clock.
    pub fn created(&self) -> Timestamp {
        Timestamp::from_micros(self.created_us)
    }

    /// Two files of one recording agree in this.
    pub(crate) fn is_same_run(&self, other: &Self) -> bool {
        Self { segment: 0, ..self.clone() } == Self { segment: 0, ..other.clone() }
    }

    /// How the names of all files of this node begin.
    pub(crate) fn stem(&self) -> String {
        format!("{}-{}-", self.role.as_str(), crate::text::Hex(&self.id))
    }

    /// As the payload of a block.
    pub(crate) fn emit(&self) -> Vec<u8> {
        // Memory takes everything, and nothing in a header cannot be written.
        rmp_serde::to_vec_named(self).unwrap_or_default()
    }

    pub(crate) fn parse(payload: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(payload)
    }
}
