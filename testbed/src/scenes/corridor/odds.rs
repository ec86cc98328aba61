//! What the links of a trace lose by themselves, whoever uses them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::medium::MediumLinkTrace;

/// Shares of frames lost, by sender, receiver and time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Odds {
    vehicle: String,
    tries: i32,
    /// By sender, then by receiver; the earliest first.
    losses: BTreeMap<String, BTreeMap<String, Vec<(Duration, f64)>>>,
}

impl Odds {
    /// The odds of unicast frames between this vehicle and others, tried again so often.
    pub fn new(trace: &MediumLinkTrace, vehicle: &str, retries: u32) -> Self {
        let mut losses: BTreeMap<String, BTreeMap<String, Vec<_>>> = BTreeMap::new();
        for step in trace.steps() {
            let receivers = losses.entry(step.from.clone()).or_default();
            receivers.entry(step.to.clone()).or_default().push((step.time, step.loss));
        }
        let tries = i32::try_from(retries).unwrap_or(i32::MAX).saturating_add(1);
        Self { vehicle: vehicle.to_owned(), tries, losses }
    }

    /// Share lost from this road-side unit to the vehicle, so long after departure.
    pub fn down(&self, rsu: &str, time: Duration) -> f64 {
        self.share(rsu, &self.vehicle, time)
    }

    /// Share lost from the vehicle to this road-side unit.
    pub fn up(&self, rsu: &str, time: Duration) -> f64 {
        self.share(&self.vehicle, rsu, time)
    }

    fn share(&self, from: &str, to: &str, time: Duration) -> f64 {
        let steps = self.losses.get(from).and_then(|receivers| receivers.get(to));
        let holding = steps.and_then(|steps| {
            let later = steps.partition_point(|(since, _)| *since <= time);
            steps.get(later.checked_sub(1)?)
        });
        // Who has no row is not heard.
        holding.map_or(1.0, |(_, loss)| loss.powi(self.tries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_until_the_next_and_every_try_has_its_luck() {
        let text =
            "time_s,from,to,loss,delay_us\n0,rsu1,car,0.5,0\n1,rsu1,car,0.1,0\n1,car,rsu1,0,0\n";
        let odds = Odds::new(&MediumLinkTrace::read(text.as_bytes()).unwrap(), "car", 1);
        let at = Duration::from_millis;
        assert_eq!(odds.down("rsu1", at(999)), 0.25);
        assert!((odds.down("rsu1", at(1000)) - 0.01).abs() < 1e-9);
        assert_eq!((odds.up("rsu1", at(999)), odds.up("rsu1", at(5000))), (1.0, 0.0));
        assert_eq!(odds.down("rsu2", at(0)), 1.0);
    }
}
