//! Links from recordings: who heard how much of whom when in a drive that several nodes recorded
//! ([`Drive`]), as a scenario that `v2xsim` runs under these or other settings.
//!
//! A frame that one node sent and another heard is the same bytes in two recordings. From such
//! frames come, in this order:
//!
//! 1. how far the clocks of the two are apart: a frame takes the same time both ways (the rule of
//!    NTP), and the quickest of all tells most;
//! 2. for each broadcast, who heard it and who did not. Unicast frames say less, because a radio
//!    repeats them: they count for whoever broadcasts nothing for a while;
//! 3. the loss of each direction: a row of misses that chance does not explain is a time without a
//!    link, from half-way to the frame before to half-way to the frame after. Of all other frames
//!    it is the share that was missed, slot by slot.

mod clocks;
mod life;
mod loss;
mod scenario;
mod table;

use std::time::Duration;

use crate::header::Role;
use crate::read::{ReadError, Recording};

use clocks::align;
use life::Life;

/// Microseconds on the clock that all recordings share.
type Micros = i64;

/// Why recordings are no drive.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// One cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is nobody to hear.
    #[error("recordings of {0} nodes; expected those of two or more that drove at the same time")]
    Alone(usize),
    /// Nobody sends heartbeats.
    #[error("no recording of a road-side unit; expected one or more")]
    NoRsu,
    /// They were not there at the same time, or not in one place.
    #[error("nobody heard anybody: of no frame that one sent another has a copy")]
    Apart,
}

/// A drive, put together from what its nodes recorded.
#[derive(Debug)]
pub struct Drive {
    lives: Vec<Life>,
    /// When it began.
    start: Micros,
    end: Micros,
    slot: Micros,
}

/// What was found, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Nodes.
    pub nodes: usize,
    /// Directions of links.
    pub directions: usize,
    /// Broadcasts that somebody might have heard, once for each who might.
    pub frames: u64,
    /// Of those, heard.
    pub heard: u64,
    /// Hand-overs that vehicles wrote down.
    pub hand_overs: usize,
    /// How far each node's clock had to be moved, by name, in microseconds.
    pub clocks: Vec<(String, Micros)>,
}

impl Drive {
    /// Puts recordings together, each of one life of a node.
    pub fn of(recordings: &[Recording], slot: Duration) -> Result<Self, DriveError> {
        let mut lives = Vec::new();
        for recording in recordings {
            lives.extend(Life::read(recording)?);
        }
        let mut ids: Vec<_> = lives.iter().map(|life| life.header.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < 2 {
            return Err(DriveError::Alone(ids.len()));
        }
        if !lives.iter().any(|life| life.header.role == Role::Rsu) {
            return Err(DriveError::NoRsu);
        }
        // The order in which tables name them: road-side units first.
        let order = |life: &Life| (life.header.role != Role::Rsu, life.header.id, life.began);
        lives.sort_by_key(order);
        align(&mut lives)?;
        // Only now is it known which life of a node came first: each has a clock of its own.
        lives.sort_by_key(order);
        let start = lives.iter().map(|life| life.began).min().unwrap_or(0);
        let end = lives.iter().map(|life| life.ended).max().unwrap_or(0);
        let slot = Micros::try_from(slot.as_micros()).unwrap_or(Micros::MAX).max(1);
        Ok(Self { lives, start, end, slot })
    }

    fn seconds(&self, at: Micros) -> f64 {
        (at - self.start).max(0) as f64 / 1e6
    }

    /// Names of nodes, each with its role, road-side units first.
    fn names(&self) -> Vec<(String, Role)> {
        let mut names: Vec<_> =
            self.lives.iter().map(|life| (life.name(), life.header.role)).collect();
        names.dedup();
        names
    }
}
