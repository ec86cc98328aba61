//! What the search decides, one thing at a time.

use std::fmt;
use std::time::Duration;

use sim::FrameKind;

/// How a node that starts again hears its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    Both,
    /// It hears them, they do not hear it.
    HearsOnly,
    /// They hear it, it does not hear them.
    HeardOnly,
    Neither,
}

impl Hearing {
    const ALL: [Self; 4] = [Self::Both, Self::HearsOnly, Self::HeardOnly, Self::Neither];
}

/// One [`Hearing`] per neighbour, two bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings(u16);

impl Surroundings {
    /// All there are for these neighbours: 4 for one, 16 for two, …
    pub fn all(neighbours: &[usize]) -> Vec<Self> {
        let mut all = vec![Self(0)];
        for other in neighbours {
            all = all
                .iter()
                .flat_map(|s| (0..4).map(|code| Self(s.0 | code << (2 * other))))
                .collect();
        }
        all
    }

    pub fn iter(self) -> impl Iterator<Item = (usize, Hearing)> {
        let of = move |other: usize| Hearing::ALL[usize::from(self.0 >> (2 * other) & 3)];
        (0..8).map(move |other| (other, of(other))).filter(|(_, h)| *h != Hearing::Both)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A frame is lost at one receiver.
    Lose { flight: usize, kind: FrameKind, from: usize, to: usize },
    /// It comes late, so that later frames overtake it.
    Delay { flight: usize, kind: FrameKind, from: usize, to: usize, by: Duration },
    /// It comes, and comes again.
    Double { flight: usize, kind: FrameKind, from: usize, to: usize, by: Duration },
    /// Nothing passes any more, in one direction or both, for a while or for good.
    Cut { from: usize, to: usize, both: bool, repaired_after: Option<Duration> },
    /// A node crashes and starts at once, having forgotten all, perhaps elsewhere: it may have lost
    /// either direction of any of its links.
    Restart { node: usize, hearing: Surroundings },
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lose { kind, from, to, .. } => {
                write!(f, "{to} does not hear the {kind} of {from}")
            }
            Self::Delay { kind, from, to, by, .. } => {
                write!(f, "{to} hears the {kind} of {from} {} ms late", by.as_millis())
            }
            Self::Double { kind, from, to, by, .. } => {
                write!(f, "{to} hears the {kind} of {from} again after {} ms", by.as_millis())
            }
            Self::Cut { from, to, both, repaired_after } => {
                match both {
                    true => write!(f, "nothing passes between {from} and {to}")?,
                    false => write!(f, "nothing passes from {from} to {to}")?,
                }
                match repaired_after {
                    Some(after) => write!(f, " for {} ms", after.as_millis()),
                    None => Ok(()),
                }
            }
            Self::Restart { node, hearing } => {
                write!(f, "{node} restarts")?;
                for (other, heard) in hearing.iter() {
                    match heard {
                        Hearing::Both => {}
                        Hearing::HearsOnly => write!(f, ", no longer heard by {other}")?,
                        Hearing::HeardOnly => write!(f, ", no longer hearing {other}")?,
                        Hearing::Neither => write!(f, ", without its link to {other}")?,
                    }
                }
                Ok(())
            }
        }
    }
}
