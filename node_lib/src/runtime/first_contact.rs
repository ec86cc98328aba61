//! [`FirstContact`]: says once why a node may be alone.
//!
//! Somebody who tries this for the first time sees nothing at all when two nodes do not find each
//! other. The reasons are few: nobody is in range, the radio is down, or the others use another
//! EtherType, another radio mode or a VLAN.

use std::time::Duration;

use tracing::warn;

use crate::device::Device;
use crate::time::Timestamp;

/// A node that hears nobody for this long looks at what else is on its radio …
const LISTEN_AFTER: Duration = Duration::from_secs(5);

/// … and after this says what it found: twice as long as the longest common start of a neighbour.
const WARN_AFTER: Duration = Duration::from_secs(10);

/// Watches until somebody has been heard, or the warning has been given.
#[derive(Debug)]
pub(super) struct FirstContact {
    started: Timestamp,
    is_listening: bool,
    is_over: bool,
    /// What the warning said, …
    causes: Option<String>,
    /// … and the EtherTypes of others that were heard.
    others: Vec<u16>,
}

/// What is known of nobody being heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence<'a> {
    /// Why that may be, as far as the radio told, while it is so.
    pub(super) causes: Option<&'a str>,
    /// EtherTypes of others that were heard.
    pub(super) other_ethertypes: &'a [u16],
}

impl FirstContact {
    /// From now on.
    pub(super) fn new(now: Timestamp) -> Self {
        let (causes, others) = (None, Vec::new());
        Self { started: now, is_listening: false, is_over: false, causes, others }
    }

    /// What has been found so far.
    pub(super) fn found(&self, radio: &mut impl Device) -> Silence<'_> {
        let is_alone = radio.counters().rx_frames == 0;
        let causes = self.causes.as_deref().filter(|_| is_alone);
        Silence { causes, other_ethertypes: &self.others }
    }

    /// When there is something to do, if nobody is heard before that.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let after = if self.is_listening { WARN_AFTER } else { LISTEN_AFTER };
        (!self.is_over).then(|| self.started + after)
    }

    /// Does what the time has come for. Returns the causes it warned of.
    pub(super) fn drive(
        &mut self,
        now: Timestamp,
        radio: &mut impl Device,
        is_up: bool,
    ) -> Option<String> {
        if self.deadline().is_none_or(|at| now < at) {
            return None;
        }
        if radio.counters().rx_frames > 0 {
            self.is_over = true;
            if self.is_listening {
                radio.end_survey();
            }
            return None;
        }
        if !self.is_listening {
            self.is_listening = true;
            radio.begin_survey();
            return None;
        }
        self.is_over = true;
        self.others = radio.end_survey();
        let causes = causes(radio, is_up, &self.others);
        self.causes = Some(causes.clone());
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
        let list: Vec<_> = others.iter().map(|ethertype| format!("{ethertype:#06x}")).collect();
        causes.push(format!("others use EtherType {} (--ethertype)", list.join(", ")));
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
        assert_eq!(watch.deadline(), Some(at(5)));
        assert_eq!(watch.drive(at(4), &mut radio, false), None);
        assert_eq!(watch.drive(at(5), &mut radio, false), None);
        assert_eq!(watch.deadline(), Some(at(10)));
        let causes = watch.drive(at(10), &mut radio, false).expect("a warning");
        assert!(causes.contains("down"), "{causes}");
        assert_eq!((watch.deadline(), watch.drive(at(99), &mut radio, false)), (None, None));
    }

    #[test]
    fn says_nothing_once_somebody_was_heard() {
        let (mut radio, mut air) = memory::pair(1500).unwrap();
        let mut watch = FirstContact::new(Timestamp::ZERO);
        assert_eq!(watch.drive(at(5), &mut radio, true), None);
        air.send(&[Outgoing::new(&[0; 60])]);
        radio.recv(&mut Burst::new(4));
        assert_eq!((watch.drive(at(10), &mut radio, true), watch.deadline()), (None, None));
    }
}
