//! What is compared.

use anyhow::{Result, anyhow};
use serde::{Serialize, Serializer};

use crate::daemons::programs::Programs;
use crate::topology::line::{Carrier, LineTopology, Offload};

/// One way to carry frames from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchVariant {
    /// A veth pair and nothing else, as the kernel sets it up.
    Veth,
    /// The same with every offload of both ends switched off.
    VethPlain,
    /// The naive relay at both ends, and between them with two hops.
    Naive {
        /// 1 or 2.
        hops: usize,
    },
    /// `obu` and `rsu`.
    Ours {
        /// 1 or 2.
        hops: usize,
        /// Of all TAPs.
        offload: Offload,
    },
    /// Over one hop, what the daemons do for speed without a node: one loop, or a thread for each
    /// direction.
    Loops {
        /// 1 or 2.
        threads: u8,
    },
}

impl BenchVariant {
    /// All of them; those with TAP offload only when the daemons have it.
    pub fn all(has_offload: bool) -> Vec<Self> {
        let mut all = vec![Self::Veth, Self::VethPlain];
        for hops in [1, 2] {
            all.push(Self::Naive { hops });
            all.push(Self::Ours { hops, offload: Offload::Off });
            if has_offload {
                all.push(Self::Ours { hops, offload: Offload::On });
            }
        }
        all
    }

    /// With one of `only` in their names, of all and of those that answer a question of their own;
    /// without `only`, all.
    pub fn chosen(has_offload: bool, only: &[String]) -> Vec<Self> {
        let mut variants = Self::all(has_offload);
        if only.is_empty() {
            return variants;
        }
        if has_offload {
            variants.extend(Self::LOOPS);
        }
        variants.retain(|variant| only.iter().any(|text| variant.name().contains(text.as_str())));
        variants
    }

    /// What decides whether a daemon has one loop or two threads.
    pub const LOOPS: [Self; 2] = [Self::Loops { threads: 1 }, Self::Loops { threads: 2 }];

    /// What tables and files call it.
    pub fn name(self) -> String {
        match self {
            Self::Veth => "veth".to_owned(),
            Self::VethPlain => "veth, no offload".to_owned(),
            Self::Naive { hops } => format!("naive, {}", hops_text(hops)),
            Self::Ours { hops, offload: Offload::Off } => format!("ours, {}", hops_text(hops)),
            Self::Ours { hops, offload: Offload::On } => {
                format!("ours + offload, {}", hops_text(hops))
            }
            Self::Loops { threads: 1 } => "one loop".to_owned(),
            Self::Loops { .. } => "two threads".to_owned(),
        }
    }

    /// Lays the line and starts its programs; frames get through when it returns.
    pub(super) fn set_up(
        self,
        programs: &Programs,
        logs: &std::path::Path,
    ) -> Result<LineTopology> {
        let (hops, carrier) = match self {
            Self::Veth => return LineTopology::cable(true),
            Self::VethPlain => return LineTopology::cable(false),
            Self::Naive { hops } => (hops, Carrier::Naive),
            Self::Ours { hops, offload } => {
                (hops, Carrier::Daemons { vehicle: offload, road: offload })
            }
            Self::Loops { threads } => (1, Carrier::Loops { threads }),
        };
        let mut line = LineTopology::lay(hops)?;
        match line.start(programs, &carrier, logs) {
            Ok(()) => Ok(line),
            Err(error) => Err(anyhow!("{}\n{error:#}", line.log_tails())),
        }
    }
}

fn hops_text(hops: usize) -> &'static str {
    if hops == 1 { "1 hop" } else { "2 hops" }
}

impl Serialize for BenchVariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}
