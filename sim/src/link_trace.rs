//! Links that change as recorded or computed beforehand: [`LinkTrace`].

use std::collections::BTreeMap;
use std::time::Duration;

use crate::index::NodeIndex;
use crate::radio::Strength;
use node_lib::time::Timestamp;

/// How a link is from this time on, until the next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkStep {
    /// When.
    pub time: Timestamp,
    /// Probability that a frame is lost, 0 to 1.
    pub loss: f64,
    /// Time under way.
    pub delay: Duration,
    /// How strong frames come in, where the trace knows it.
    pub strength: Option<Strength>,
}

/// Loss and delay of every direction of every link over time, for
/// [`World::replay`](crate::World::replay). A simulated world and a testbed that follow the same
/// trace have the same links at the same times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTrace {
    links: BTreeMap<(NodeIndex, NodeIndex), Vec<LinkStep>>,
}

/// A step that cannot be part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LinkTraceError {
    /// It is not later than the step before it.
    #[error("{from} to {to}: the step at {time} is not later than the one before it")]
    Order {
        /// Sender.
        from: NodeIndex,
        /// Receiver.
        to: NodeIndex,
        /// Time of the step.
        time: Timestamp,
    },
    /// Its loss is not a probability.
    #[error("{from} to {to}: loss {loss} is not between 0 and 1")]
    Loss {
        /// Sender.
        from: NodeIndex,
        /// Receiver.
        to: NodeIndex,
        /// What it says.
        loss: f64,
    },
}

impl LinkTrace {
    /// Nobody hears anybody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next step of one direction.
    ///
    /// # Errors
    /// The step is not later than the one before, or its loss is no probability.
    pub fn push(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        step: LinkStep,
    ) -> Result<(), LinkTraceError> {
        let LinkStep { time, loss, .. } = step;
        if !(0.0..=1.0).contains(&loss) {
            return Err(LinkTraceError::Loss { from, to, loss });
        }
        let steps = self.links.entry((from, to)).or_default();
        if steps.last().is_some_and(|last| last.time >= time) {
            return Err(LinkTraceError::Order { from, to, time });
        }
        steps.push(step);
        Ok(())
    }

    /// All directions with their steps, in the order of nodes.
    pub fn links(&self) -> impl Iterator<Item = (NodeIndex, NodeIndex, &[LinkStep])> {
        self.links.iter().map(|(&(from, to), steps)| (from, to, steps.as_slice()))
    }
}

/// One direction under replay.
#[derive(Clone, Debug)]
pub(super) struct LinkSteps {
    pub(super) from: NodeIndex,
    pub(super) to: NodeIndex,
    pub(super) steps: Vec<LinkStep>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_forward_in_time_and_lose_a_share() {
        let [a, b] = [NodeIndex(0), NodeIndex(1)];
        let step = |millis, loss| LinkStep {
            time: Timestamp::from_millis(millis),
            loss,
            delay: Duration::ZERO,
            strength: None,
        };
        let mut trace = LinkTrace::new();
        trace.push(a, b, step(5, 0.0)).unwrap();
        let error = trace.push(a, b, step(5, 0.0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "n0 to n1: the step at 0.005000 s is not later than the one before it"
        );
        let error = trace.push(b, a, step(5, 1.5)).unwrap_err();
        assert_eq!(error.to_string(), "n1 to n0: loss 1.5 is not between 0 and 1");
        assert_eq!(trace.links().count(), 1);
    }
}
