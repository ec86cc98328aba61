//! Which of its rules an OBU follows: for comparing what each is worth, and for showing that the
//! two that keep routes free of loops are needed.

/// How candidates for upstream are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Ranking {
    /// By expected transmissions, measured per link, then by hops.
    #[default]
    Cost,
    /// By hops alone, as if every link were perfect.
    Hops,
}

/// Rules that can be switched off or on. The default is what the daemons do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Policy {
    /// How candidates are ranked.
    pub ranking: Ranking,
    /// A fading upstream is left before it is lost.
    pub prediction: bool,
    /// In a crowd a relay stays silent when enough neighbours speak.
    pub suppression: bool,
    /// While an upstream is in doubt, frames go both ways.
    pub duplication: bool,
    /// What a lost upstream was given since its last sign of life goes the next way, and the RSU
    /// hears for how long its own frames may have gone astray. Costs a copy of each frame.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rerouting: bool,
    /// The next RSU is told of us and our clients before we go there.
    pub standby: bool,
    /// Only neighbours that cannot lead back to us are used (RFC 8966 §2.4). Without it routes
    /// loop.
    pub feasibility: bool,
    /// After a restart the OBU listens before it routes. Without it routes loop.
    pub quiet_period: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            ranking: Ranking::Cost,
            prediction: true,
            suppression: true,
            duplication: true,
            rerouting: true,
            standby: true,
            feasibility: true,
            quiet_period: true,
        }
    }
}
