//! What became of the frames of each flow: [`Frames`].

use node_lib::Timestamp;
use sim::{ClientIndex, FlowIndex, FlowLog, NodeIndex, World};
use std::time::Duration;

use super::delay::{Delays, Direction};
use super::record::{FlowDelays, FlowRecord, Lost};
use super::routes::ReachTimes;
use crate::cast::{Cast, CastFlow, To};
use crate::scenario::Scenario;
use crate::watch::{Journal, LostTo, Passage};

/// The frames of all flows at the end of a run.
pub(super) struct Frames<'a> {
    pub(super) cast: &'a Cast,
    pub(super) world: &'a World,
    pub(super) journal: &'a Journal,
    pub(super) reach: &'a ReachTimes,
    pub(super) sample: Duration,
    pub(super) indices: &'a [FlowIndex],
}

/// One frame for one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) sent: Timestamp,
    /// Where it was lost, if it did not arrive.
    pub(super) lost: Option<LostTo>,
    pub(super) sent_twice: bool,
}

impl Frames<'_> {
    /// Flows with what the world has noted of them.
    pub(super) fn flows(&self) -> impl Iterator<Item = (&CastFlow, FlowIndex, &FlowLog)> {
        let flows = self.cast.flows.iter().zip(self.indices);
        flows.filter_map(|(flow, &index)| Some((flow, index, self.world.flow(index)?)))
    }

    /// The frames one client should have received, in the order in which they were sent.
    pub(super) fn of(
        &self,
        flow: &CastFlow,
        index: FlowIndex,
        log: &FlowLog,
        to: ClientIndex,
    ) -> impl Iterator<Item = Frame> {
        let vehicles = [self.cast.vehicle_of(flow.from), self.cast.vehicle_of(to.0)];
        (0..).zip(log.sent()).map(move |(number, &sent)| {
            let passage: Passage = self.journal.of(index, number);
            let in_reach = |obu: &NodeIndex| self.reach.could_reach(*obu, sent, self.sample);
            let lost = log.received_at(to, number).is_none().then(|| {
                if vehicles.iter().flatten().all(in_reach) {
                    passage.lost_to(log.lost_in_queue(number).is_some())
                } else {
                    LostTo::Distance
                }
            });
            Frame { sent, lost, sent_twice: passage.sent_twice }
        })
    }

    /// Every flow, and all delays by `[[flow]]` and direction.
    pub(super) fn records(&self, scenario: &Scenario) -> (Vec<FlowRecord>, Vec<FlowDelays>) {
        let mut all: Vec<FlowDelays> = Vec::new();
        let records = self.flows().map(|(flow, index, log)| {
            let (record, delays) = self.record(scenario, flow, index, log);
            let is_it =
                |of: &&mut FlowDelays| of.flow == record.flow && of.direction == record.direction;
            match all.iter_mut().find(is_it) {
                Some(of) => of.delays.add(&delays),
                None => {
                    let (flow, direction) = (record.flow.clone(), record.direction);
                    all.push(FlowDelays { flow, direction, delays });
                }
            }
            record
        });
        (records.collect(), all)
    }

    fn record(
        &self,
        scenario: &Scenario,
        flow: &CastFlow,
        index: FlowIndex,
        log: &FlowLog,
    ) -> (FlowRecord, Delays) {
        let name = scenario.flow.get(flow.of).map_or_else(String::new, |of| {
            of.id.clone().unwrap_or_else(|| format!("{} to {}", of.from, of.to))
        });
        let sent = log.sent().len() as u64;
        let mut record = FlowRecord {
            flow: name,
            from: self.cast.client_name(flow.from).to_owned(),
            to: String::new(),
            direction: None,
            sent,
            due: 0,
            received: 0,
            lost: Lost::default(),
            doubled: 0,
            sent_twice: 0,
            longest_gap_ms: None,
            delay_ms: None,
        };
        let mut delays = Delays::default();
        let mut note_delays = |to: ClientIndex| {
            for (number, sent) in (0..).zip(log.sent()) {
                if let Some(received) = log.received_at(to, number) {
                    delays.note(received.since(*sent));
                }
            }
        };
        match flow.to {
            To::Client(client) => {
                let to = ClientIndex(client);
                record.to = self.cast.client_name(client).to_owned();
                let is_in_vehicle = |client| self.cast.vehicle_of(client).is_some();
                record.direction =
                    Some(Direction::of(is_in_vehicle(flow.from), is_in_vehicle(client)));
                note_delays(to);
                record.due = sent;
                for frame in self.of(flow, index, log, to) {
                    record.sent_twice += u64::from(frame.sent_twice);
                    match frame.lost {
                        None => record.received += 1,
                        Some(lost) => record.lost.count(lost),
                    }
                }
                record.doubled = log.doubled(to).len() as u64;
                record.longest_gap_ms = (sent > 0).then(|| millis(longest_gap(flow, log, to)));
            }
            To::Everyone => {
                record.to = "everyone".to_owned();
                let others = (0..self.cast.clients.len()).filter(|&client| client != flow.from);
                for client in others.map(ClientIndex) {
                    record.due += sent;
                    record.received += log.received(client) as u64;
                    record.doubled += log.doubled(client).len() as u64;
                    note_delays(client);
                }
                record.lost.in_node = record.due.saturating_sub(record.received);
            }
            To::Nobody => record.to = "nobody".to_owned(),
        }
        record.delay_ms = delays.spread();
        (record, delays)
    }
}

fn longest_gap(flow: &CastFlow, log: &FlowLog, to: ClientIndex) -> Duration {
    let last = log.sent().last().copied().unwrap_or_default();
    log.longest_gap(to, Timestamp::ZERO, last + flow.every)
}

/// In milliseconds, to the microsecond.
pub(super) fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e3
}
