//! What goes wrong in a long life, what is promised about it, and a script of it drawn from a seed.

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use sim::Role;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind {
            $($(#[$doc])* $kind,)*
        }

        impl FaultKind {
            /// All there are.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// What a person calls it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A daemon dies by SIGKILL and starts again, having lived for up to a day.
    Kill = "restart after kill -9",
    /// A daemon is told to stop, says goodbye, and starts again, as above.
    Term = "restart after SIGTERM",
    /// A daemon starts again with its output going to a full pipe that nobody reads.
    Blocked = "life with blocked output",
    /// A daemon starts again in a time whose clocks are months ahead.
    ClockJump = "life in another time",
    /// A daemon does not run for seconds (SIGSTOP, SIGCONT).
    Stall = "stall",
    /// A radio goes down and up.
    RadioDown = "radio down and up",
    /// A radio vanishes and is there again.
    RadioDeleted = "radio deleted and made",
    /// A radio gets another MTU, and its own again.
    RadioMtu = "radio with another MTU",
    /// A TAP is deleted; what is made in its place goes into the bridge.
    TapDeleted = "TAP deleted",
    /// The bridge of the road-side LAN goes down and up.
    LanDown = "LAN bridge down and up",
    /// The disk with logs and state files is full.
    DiskFull = "disk full",
    /// Hundreds of clients speak once and are never heard again.
    Clients = "clients come and go",
    /// All links of a node lose a third to two thirds of frames.
    LossBurst = "loss burst",
    /// A vehicle hears nobody.
    Isolated = "vehicle out of reach",
    /// One link is cut.
    LinkCut = "link cut",
    /// No vehicle hears a road-side unit.
    Partition = "all RSUs out of reach",
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// What.
    pub kind: FaultKind,
    /// At which node, of those the kind can strike; or which link.
    pub at: usize,
    /// For how long. A daemon that restarts is away for so long.
    pub lasts: Duration,
    /// How much of it: what that is depends on the kind.
    pub amount: u32,
}

/// Who can be struck, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Role of each node.
    pub roles: Vec<Role>,
    /// Nodes that live from the beginning to the end: memory and descriptors are watched there.
    pub elders: Vec<usize>,
    /// Links there are.
    pub links: usize,
}

impl FaultKind {
    /// A daemon ends and starts.
    pub fn is_restart(self) -> bool {
        matches!(self, Self::Kill | Self::Term | Self::Blocked | Self::ClockJump)
    }

    /// It changes who hears whom.
    pub fn is_of_links(self) -> bool {
        matches!(self, Self::LossBurst | Self::Isolated | Self::LinkCut | Self::Partition)
    }

    /// It concerns no node in particular.
    pub fn is_everywhere(self) -> bool {
        matches!(self, Self::LanDown | Self::DiskFull | Self::LinkCut | Self::Partition)
    }

    /// Within what time after it is over frames flow again on every stream.
    pub fn recovers_within(self, role: Role) -> Duration {
        let ms = match self {
            // Three heartbeats, each up to a tenth late.
            kind if kind.is_restart() && role == Role::Rsu => 330,
            // What disturbs no traffic may at most look like a silent death of something.
            Self::RadioMtu | Self::DiskFull | Self::Clients | Self::LinkCut => 300,
            // The kernel lets a bridge's ports forward some time after it comes up.
            Self::LanDown => 2000,
            _ => 1000,
        };
        Duration::from_millis(ms)
    }

    /// Within what time traffic goes another way while it lasts, for vehicles that have one. `None`
    /// where nobody has.
    pub fn survived_within(self) -> Option<Duration> {
        match self {
            Self::LanDown | Self::LossBurst | Self::Partition | Self::TapDeleted => None,
            // Silence is noticed by missing heartbeats.
            _ => Some(Duration::from_millis(300)),
        }
    }
}

/// The script of a run: rounds without end, each of one fault or of several at once.
#[derive(Debug)]
pub struct Script {
    random: Pcg32,
    targets: Targets,
    /// Kinds not yet dealt in this turn, so that each comes up as often as the others.
    deck: Vec<FaultKind>,
    stall_max_ms: u32,
}

impl Script {
    /// The script of this seed. Stalls last up to `stall_max`.
    pub fn new(seed: u64, targets: Targets, stall_max: Duration) -> Self {
        let stall_max_ms = u32::try_from(stall_max.as_millis()).unwrap_or(u32::MAX);
        Self { random: Pcg32::seed_from_u64(seed), targets, deck: Vec::new(), stall_max_ms }
    }

    /// What goes wrong next, all at the same time.
    pub fn next_round(&mut self) -> Vec<InjectedFault> {
        let wanted = match self.below(20) {
            0..15 => 1,
            15..19 => 2,
            _ => 3,
        };
        let mut round: Vec<InjectedFault> = Vec::new();
        while round.len() < wanted {
            let Some(fault) = self.deal(&round) else { break };
            round.push(fault);
        }
        round
    }

    /// A number from a range, evenly.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// A fault of the next kind in the deck that goes together with these.
    fn deal(&mut self, with: &[InjectedFault]) -> Option<InjectedFault> {
        if self.deck.is_empty() {
            self.deck = FaultKind::ALL.to_vec();
            for last in (1..self.deck.len()).rev() {
                let other = self.below(u32::try_from(last + 1).unwrap_or(1)) as usize;
                self.deck.swap(last, other);
            }
        }
        let index = self.deck.iter().rposition(|kind| go_together(*kind, with))?;
        let kind = self.deck.remove(index);
        let taken: Vec<usize> =
            with.iter().filter(|fault| !fault.kind.is_everywhere()).map(|fault| fault.at).collect();
        let Targets { roles, elders, links } = &self.targets;
        let can_be_struck = |node: &usize| {
            let is_vehicle = roles.get(*node) == Some(&Role::Obu);
            !(taken.contains(node)
                || kind.is_restart() && elders.contains(node)
                || matches!(kind, FaultKind::Isolated | FaultKind::Clients) && !is_vehicle)
        };
        let at = if kind.is_everywhere() {
            let links = u32::try_from(*links).unwrap_or(1);
            self.below(links) as usize
        } else {
            let nodes: Vec<usize> = (0..roles.len()).filter(can_be_struck).collect();
            let drawn = self.below(u32::try_from(nodes.len()).unwrap_or(1)) as usize;
            *nodes.get(drawn)?
        };
        let (low, high) = match kind {
            FaultKind::Stall => (1000, self.stall_max_ms),
            FaultKind::Blocked | FaultKind::ClockJump => (0, 400),
            _ => (50, 1500),
        };
        let lasts = Duration::from_millis(u64::from(self.between(low, high)));
        let amount = match kind {
            // Quarters of a second the daemon has lived: up to a day.
            kind if kind.is_restart() => match self.below(4) {
                0 => self.between(20, 240),
                1 => self.between(128, 256),
                _ => self.between(240, 345_600),
            },
            FaultKind::RadioMtu => self.between(1321, 1499),
            FaultKind::Clients => self.between(200, 900),
            // Per cent.
            FaultKind::LossBurst => self.between(33, 66),
            _ => 0,
        };
        Some(InjectedFault { kind, at, lasts, amount })
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.random.next_u32() % limit.max(1)
    }
}

/// Faults of one round must not undo each other. A daemon that starts while the disk is full
/// rightly refuses to.
fn go_together(kind: FaultKind, with: &[InjectedFault]) -> bool {
    with.iter().all(|other| {
        other.kind != kind
            && !(kind.is_of_links() && other.kind.is_of_links())
            && !(kind == FaultKind::DiskFull && other.kind.is_restart())
            && !(other.kind == FaultKind::DiskFull && kind.is_restart())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn script(seed: u64) -> Script {
        let roles = vec![Role::Rsu, Role::Rsu, Role::Obu, Role::Obu, Role::Obu];
        let targets = Targets { roles, elders: vec![1, 2], links: 7 };
        Script::new(seed, targets, Duration::from_secs(8))
    }

    #[test]
    fn a_seed_gives_the_same_faults_again_and_another_seed_others() {
        let rounds = |seed| {
            let mut script = script(seed);
            (0..50).map(|_| script.next_round()).collect::<Vec<_>>()
        };
        assert_eq!(rounds(7), rounds(7));
        assert_ne!(rounds(7), rounds(8));
    }

    #[test]
    fn every_kind_comes_up_in_turn_and_several_at_once_at_times() {
        let mut script = script(1);
        let rounds: Vec<_> = (0..40).map(|_| script.next_round()).collect();
        let early: BTreeSet<FaultKind> = rounds
            .iter()
            .flatten()
            .take(2 * FaultKind::ALL.len())
            .map(|fault| fault.kind)
            .collect();
        assert_eq!(early.len(), FaultKind::ALL.len());
        assert!(rounds.iter().any(|round| round.len() > 1));
        assert!(rounds.iter().filter(|round| round.len() == 1).count() > 20);
    }

    #[test]
    fn elders_never_restart_and_no_two_faults_of_a_round_meet_at_a_node() {
        let mut script = script(3);
        for _ in 0..2000 {
            let round = script.next_round();
            let mut nodes = BTreeSet::new();
            for fault in &round {
                assert!(fault.kind.is_everywhere() || nodes.insert(fault.at), "{round:?}");
                assert!(!fault.kind.is_restart() || !matches!(fault.at, 1 | 2), "{round:?}");
                assert!(fault.lasts <= Duration::from_secs(8), "{round:?}");
            }
        }
    }
}
