//! One way to an RSU as an operator reads it: [`Way`].

use std::fmt;

use node_lib::Timestamp;

use crate::control::route::candidates::Rank;

use super::super::core::Core;
use super::Route;
use super::outlook::Outlook;

/// A candidate with the figures it is judged by.
#[derive(Debug)]
pub(crate) struct Way {
    rank: Rank,
    outlook: Outlook,
    /// It is the upstream.
    is_used: bool,
    /// What keeps it from being used.
    but: Vec<&'static str>,
}

impl Route {
    /// All candidates, in the order of their addresses.
    pub(crate) fn ways(&self, core: &Core, now: Timestamp) -> impl Iterator<Item = Way> {
        let judge = self.judge(core, now);
        self.candidates.iter().map(move |candidate| {
            let rank = judge.ranker.rank(candidate);
            let but = [
                (rank.is_late, "late"),
                (candidate.is_leaving(), "leaving"),
                (!judge.is_proven(candidate.mac), "unproven"),
                (!judge.is_eligible(candidate), "infeasible"),
            ];
            Way {
                rank,
                outlook: self.outlook(core, now, candidate),
                is_used: self.parent == Some(candidate.mac),
                but: but.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect(),
            }
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rank { cost, hops, id, .. } = self.rank;
        let used = if self.is_used { " in use" } else { "" };
        write!(f, "via {id} ({hops} hops){used}: cost {cost}, {}", self.outlook)?;
        if !self.but.is_empty() {
            write!(f, " [{}]", self.but.join(", "))?;
        }
        Ok(())
    }
}
