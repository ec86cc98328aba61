//! How far the clocks of nodes are apart, from the frames that they heard of each other.

use std::collections::VecDeque;

use super::life::Life;
use super::{DriveError, Micros};

/// What a frame takes where only one direction was heard.
pub(super) const DELAY_US: Micros = 300;

/// Moves all clocks to that of the first node, as far as they heard each other.
pub(super) fn align(lives: &mut [Life]) -> Result<(), DriveError> {
    let mut waiting: Vec<usize> = (1..lives.len()).collect();
    let mut known = VecDeque::from([0]);
    let mut has_any = false;
    while let Some(index) = known.pop_front() {
        let mut rest = Vec::new();
        for other in std::mem::take(&mut waiting) {
            let (Some(one), Some(two)) = (lives.get(index), lives.get(other)) else { continue };
            let by = match (one.quickest(two), two.quickest(one)) {
                // What the one's clock is behind is added one way, and missing the other.
                (Some(there), Some(back)) => Some((back - there) / 2),
                (Some(there), None) => Some(DELAY_US - there),
                (None, Some(back)) => Some(back - DELAY_US),
                (None, None) => None,
            };
            match (by, lives.get_mut(other)) {
                (Some(by), Some(life)) => {
                    life.shift(by);
                    known.push_back(other);
                    has_any = true;
                }
                _ => rest.push(other),
            }
        }
        waiting = rest;
        // Whoever heard nobody of these has heard others: their clocks are as they say.
        if known.is_empty() && !waiting.is_empty() {
            known.push_back(waiting.remove(0));
        }
    }
    if has_any { Ok(()) } else { Err(DriveError::Apart) }
}
