//! What can go wrong, and right again: [`Fault`].

use std::fmt;
use std::time::Duration;

use crate::index::NodeIndex;
use crate::link::Link;

/// A change to the world, made at once ([`World::apply`](crate::World::apply)) or at a set time
/// ([`World::at`](crate::World::at)).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing passes from the first to the second any more.
    CutOneWay(NodeIndex, NodeIndex),
    /// It passes again.
    HealOneWay(NodeIndex, NodeIndex),
    /// Nothing passes between these two any more.
    Cut(NodeIndex, NodeIndex),
    /// It passes again, both ways.
    Heal(NodeIndex, NodeIndex),
    /// Out of everyone's range; the node itself is not told.
    Isolate(NodeIndex),
    /// Back in range.
    Rejoin(NodeIndex),
    /// The radio interface goes down, and the node is told.
    RadioDown(NodeIndex),
    /// The radio interface comes up, and the node is told.
    RadioUp(NodeIndex),
    /// A node's LAN is gone: what it writes to its TAP is lost, and it is told so.
    LanDown(NodeIndex),
    /// It is back.
    LanUp(NodeIndex),
    /// Silent and gone, with all it knew.
    Crash(NodeIndex),
    /// Starts with a higher boot count. A node that runs crashes first.
    Start(NodeIndex),
    /// Crashes and starts again after this long.
    Restart(NodeIndex, Duration),
    /// The process stands still for this long (SIGSTOP, SIGCONT): it reads nothing, and what comes
    /// fills the sockets of its radio and the queue of its TAP. Then it handles what waited, all of
    /// it late. A packet that waited there may come to a node again that it was at before, once:
    /// routes have changed.
    Stall(NodeIndex, Duration),
    /// Says goodbye, lingers as long as it asks to, and is gone.
    Shutdown(NodeIndex),
    /// Both directions between these two become this link; they are linked if they were not.
    Relink(NodeIndex, NodeIndex, Link),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOneWay(a, b) => write!(f, "cut {a} to {b}"),
            Self::HealOneWay(a, b) => write!(f, "heal {a} to {b}"),
            Self::Cut(a, b) => write!(f, "cut {a} and {b}"),
            Self::Heal(a, b) => write!(f, "heal {a} and {b}"),
            Self::Isolate(a) => write!(f, "isolate {a}"),
            Self::Rejoin(a) => write!(f, "rejoin {a}"),
            Self::RadioDown(a) => write!(f, "radio down {a}"),
            Self::RadioUp(a) => write!(f, "radio up {a}"),
            Self::LanDown(a) => write!(f, "LAN down {a}"),
            Self::LanUp(a) => write!(f, "LAN up {a}"),
            Self::Crash(a) => write!(f, "crash {a}"),
            Self::Start(a) => write!(f, "start {a}"),
            Self::Restart(a, after) => write!(f, "restart {a} after {} ms", after.as_millis()),
            Self::Stall(a, span) => write!(f, "stall {a} for {} ms", span.as_millis()),
            Self::Shutdown(a) => write!(f, "shut down {a}"),
            Self::Relink(a, b, link) => {
                write!(
                    f,
                    "relink {a} and {b}: loss {}, delay {} us + {} us, twice {}",
                    link.loss,
                    link.delay.as_micros(),
                    link.jitter.as_micros(),
                    link.duplicate
                )
            }
        }
    }
}
