//! [`FirstContact`]: says once why a node may be alone.
//!
//! Somebody who tries this for the first time sees nothing at all when two nodes do not find each
//! other. The reasons are few: nobody is in range, the radio is down, or the others use another
//! EtherType, another radio mode or a VLAN.

use std::time::Duration;

use tracing::warn;

use crate::device::Device;
use crate::device::ethertypes::listed;
use crate::time::Timestamp;

/// A node that hears nobody for this long says why that may be: twice as long as the longest common
/// start of a neighbour. By then its radio was listened to for other EtherTypes once.
const WARN_AFTER: Duration = Duration::from_secs(10);

/// Watches until somebody has been heard, or the warning has been given.
#[derive(Debug)]
pub(super) struct FirstContact {
    started: Timestamp,
    is_over: bool,
}

impl FirstContact {
    /// From now on.
    pub(super) fn new(now: Timestamp) -> Self {
        Self { started: now, is_over: false }
    }

    /// What it warned of, as it is now, if still nobody was heard. `others`: EtherTypes of others
    /// that are heard.
    pub(super) fn likely(
        &self,
        radio: &mut impl Device,
        is_up: bool,
        others: &[u16],
    ) -> Option<String> {
        // Who was heard once is counted for good: then it never warned, or that is over.
        let is_alone = self.is_over && radio.counters().rx_frames == 0;
        is_alone.then(|| causes(radio, is_up, others))
    }

    /// When there is something to do, if nobody is heard before that.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        (!self.is_over).then(|| self.started + WARN_AFTER)
    }

    /// Does what the time has come for. Returns the causes it warned of.
    pub(super) fn drive(
        &mut self,
        now: Timestamp,
        radio: &mut impl Device,
        is_up: bool,
        others: impl FnOnce() -> Vec<u16>,
    ) -> Option<String> {
        if self.deadline().is_none_or(|at| now < at) {
            return None;
        }
        self.is_over = true;
        let causes = self.likely(radio, is_up, &others())?;
        let (radio, after_s) = (radio.name(), WARN_AFTER.as_secs());
        warn!(radio, after_s, likely = %causes, "no other node has been heard");
        Some(causes)
    }
}

/// What may keep us from hearing others, as far as the radio tells.
fn causes(radio: &mut impl Device, is_up: bool, others: &[u16]) -> String {
    let counters = radio.counters();
    let (foreign, tagged) = (counters.rx_foreign, counters.rx_tagged);
    let oversize = counters.rx_oversize;
    let mut causes = Vec::new();
    if !is_up {
        causes.push("the radio is down or has no carrier".to_owned());
    }
    if radio.is_shared() {
        causes.push(
            "another program of this host has this radio, and programs on one radio do not hear \
             each other"
                .to_owned(),
        );
    }
    if !others.is_empty() {
        causes.push(format!("others use EtherType {} (--ethertype)", listed(others)));
    }
    if tagged > 0 {
        causes.push(format!(
            "{tagged} frames with a VLAN tag were heard: others, or a switch between, put them \
             into a VLAN (have the tag taken off, or give the VLAN's interface to --bind)"
        ));
    }
    if foreign > 0 {
        causes.push(format!("{foreign} frames for other addresses were heard"));
    }
    if oversize > 0 {
        causes.push(format!("{oversize} frames longer than our MTU were heard (ip link set mtu)"));
    }
    if causes.is_empty() {
        causes.push(
            "nobody is in range or running, or the radios differ in channel, mode or network"
                .to_owned(),
        );
    }
    causes.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::memory;
    use crate::device::{Burst, Outgoing};

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn warns_once_of_what_the_radio_tells() {
        let (mut radio, _air) = memory::pair(1500).unwrap();
        let mut watch = FirstContact::new(Timestamp::ZERO);
        assert_eq!(watch.deadline(), Some(at(10)));
        assert_eq!(watch.drive(at(9), &mut radio, false, Vec::new), None);
        assert_eq!(watch.likely(&mut radio, false, &[]), None);
        let causes = watch.drive(at(10), &mut radio, false, || vec![0x88b6]).expect("a warning");
        assert!(causes.contains("down") && causes.contains("EtherType 0x88b6"), "{causes}");
        assert_eq!(watch.deadline(), None);
        assert_eq!(watch.drive(at(99), &mut radio, false, Vec::new), None);
    }

    #[test]
    fn tells_the_causes_of_now_until_somebody_is_heard() {
        let (mut radio, mut air) = memory::pair(1500).unwrap();
        let mut watch = FirstContact::new(Timestamp::ZERO);
        watch.drive(at(10), &mut radio, false, Vec::new).expect("a warning");
        let causes = watch.likely(&mut radio, true, &[0x88b7]).expect("still alone");
        assert_eq!(causes, "others use EtherType 0x88b7 (--ethertype)");
        air.send(&[Outgoing::new(&[0; 60])]);
        radio.recv(&mut Burst::new(4));
        assert_eq!(watch.likely(&mut radio, true, &[0x88b7]), None);
    }

    #[test]
    fn says_nothing_once_somebody_was_heard() {
        let (mut radio, mut air) = memory::pair(1500).unwrap();
        let mut watch = FirstContact::new(Timestamp::ZERO);
        air.send(&[Outgoing::new(&[0; 60])]);
        radio.recv(&mut Burst::new(4));
        assert_eq!(watch.drive(at(10), &mut radio, true, || vec![0x88b6]), None);
        assert_eq!((watch.likely(&mut radio, true, &[0x88b6]), watch.deadline()), (None, None));
    }
}
