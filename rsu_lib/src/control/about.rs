//! Which word of an OBU an answer is about.

use node_lib::order::Seq;

/// Which word of an OBU is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) seq: Seq,
    pub(super) epoch: u32,
    pub(super) digest: u32,
    pub(super) part: u8,
    pub(super) parts: u8,
}

impl Default for About {
    /// None: what is said is no answer.
    fn default() -> Self {
        Self { seq: Seq(0), epoch: 0, digest: 0, part: 0, parts: 1 }
    }
}
