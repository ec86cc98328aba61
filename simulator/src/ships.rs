//! What a simulation runs, held against what the daemons run. [`CLASSIFIED`] is everything a node
//! and its loop are made from. [`DIFFERENCES`] is where the two part in every run. And
//! [`does_not_ship`] is what of one run no daemon does.
//!
//! Each struct is taken apart field by field with nothing left out, so that a new field does not
//! compile until it stands here.

use node_lib::Start;
use node_lib::settings::LoopSettings;
use node_lib::transport::mtu::TapMtu;
use obu_lib::{Policy, Ranking, Thresholds};

use crate::measure::Suite;
use crate::scenario::Scenario;
use crate::stage::obu_settings;

/// How a field of the daemons stands in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Made by the same function from the same default; a scenario may say what a flag may.
    Same,
    /// The same type and use; the world gives the value a machine would give.
    Given,
    /// No flag changes it: a run that does is listed by [`does_not_ship`].
    Fixed,
    /// Something else, or not there: the row of [`DIFFERENCES`] with this title.
    Differs(&'static str),
}

/// A field and its standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The struct it belongs to.
    pub of: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What a simulation makes of it.
    pub standing: Standing,
}

/// Where every run differs from the daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is about.
    pub title: &'static str,
    /// What the daemons do.
    pub daemons: &'static str,
    /// What a simulation does.
    pub simulation: &'static str,
    /// Why they differ.
    pub why: &'static str,
}

/// Lists every field of structs, and does not compile while one is missing.
macro_rules! classify {
    (
        $(#[$attribute:meta])*
        $vis:vis $list:ident:
        $($of:path as $title:literal { $($name:ident: $standing:expr,)* })*
    ) => {
        $(#[$attribute])*
        $vis const $list: &[Field] = &[
            $($(Field { of: $title, name: stringify!($name), standing: $standing },)*)*
        ];
        $(const _: fn(&$of) = |whole| {
            let $of { $($name: _,)* } = whole;
        };)*
    };
}

use Standing::{Differs, Fixed, Given, Same};

classify! {
    /// Every field a node or its loop is made from.
    pub CLASSIFIED:
    Start as "node_lib::Start" {
        id: Given,
        radio_mac: Given,
        radio_mtu: Given,
        tap_mac: Given,
        boot: Same,
        seed: Given,
    }
    obu_lib::Settings as "obu_lib::Settings" {
        ethertype: Same,
        pmtu_discovery: Same,
        share_position: Same,
        hello_history: Same,
        cached_candidates: Same,
        policy: Fixed,
        thresholds: Fixed,
    }
    Policy as "obu_lib::Policy" {
        ranking: Fixed,
        prediction: Fixed,
        suppression: Fixed,
        duplication: Fixed,
        rerouting: Fixed,
        standby: Fixed,
        feasibility: Fixed,
        quiet_period: Fixed,
    }
    Thresholds as "obu_lib::Thresholds" {
        fading_millinats: Fixed,
        strong_percent: Fixed,
        signal_ahead: Fixed,
        signal_margin_cdb: Fixed,
        trend_for: Fixed,
        rest_for: Fixed,
    }
    rsu_lib::Settings as "rsu_lib::Settings" {
        ethertype: Same,
        hello_periodicity: Same,
        pmtu_discovery: Same,
        share_position: Same,
        hello_history: Same,
        group_rate: Same,
        rerouting: Fixed,
    }
    LoopSettings as "node_lib::settings::LoopSettings" {
        bundles: Same,
        coalesce: Differs("processor time"),
        busy_poll: Differs("processor time"),
    }
    TapMtu as "node_lib::transport::mtu::TapMtu" {
        fixed: Same,
        ipv6: Differs("addresses of the TAP"),
    }
}

/// Where every run differs, each with its reason; `docs/simulator.md` has the same table.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        title: "processor time",
        daemons: "a frame waits for the loop: `--coalesce`, `--busy-poll`, a burst before it",
        simulation: "every frame is handled at once; only what waited, or came in one, leaves in a \
                     bundle",
        why: "some 30 µs a frame on the machines measured, below a radio's own waits",
    },
    Difference {
        title: "opening of devices",
        daemons: "radio and TAP are opened and set up before the wait for the boot count",
        simulation: "the wait for the boot count is all of a start",
        why: "milliseconds of a kernel, and no frame can come before them",
    },
    Difference {
        title: "sockets of the radio",
        daemons: "a buffer of 2 MiB for data and one for control, then the queue of the interface, \
                  which drops when it is full",
        simulation: "`radio.queue_frames` of each access category: without room, frames wait in \
                     the outbox, and the TAP",
        why: "Wi-Fi drivers queue thousands of frames, so that the socket holds back first; the \
              number is the scenario's",
    },
    Difference {
        title: "offload",
        daemons: "super-frames of TCP in the TAP, where the kernel has them",
        simulation: "each frame by itself; MTU and queue of the TAP are the kernel's",
        why: "no TCP runs in a simulation",
    },
    Difference {
        title: "addresses of the TAP",
        daemons: "`--ip`: announced when the node is attached anew; with IPv6 an MTU of 1280 at \
                  least",
        simulation: "a MAC only",
        why: "hosts of a simulation are the clients behind the TAP",
    },
    Difference {
        title: "clients of an earlier start",
        daemons: "told by the file beside `--state-file`, and by the bridge's table where the TAP \
                  is in a bridge",
        simulation: "told by what the world noted, by the same rules, with `settings.state_file`; \
                     there are no bridges",
        why: "neither needs a file system or a kernel; both are tested end to end",
    },
    Difference {
        title: "signal",
        daemons: "measured where the driver tells it, some times a second for each neighbour",
        simulation: "told with each frame heard; not at all with `radio.reports_signal = false`",
        why: "a simulated radio knows it; drivers are as different as their reports",
    },
    Difference {
        title: "how busy the channel is",
        daemons: "asked of the driver once a second (nl80211 survey), where the signal is",
        simulation: "told once a second where there is contention; not with \
                     `radio.reports_busy = false`",
        why: "radios of 802.11p must measure it (ETSI TS 102 687); other links cannot",
    },
    Difference {
        title: "what the radio gave up",
        daemons: "an OBU asks its radio (`SO_WIFI_STATUS`); drivers of 802.11 tell, others do not",
        simulation: "nobody is told; with `radio.reports_unacknowledged = true` every OBU is, at \
                     once",
        why: "whether a driver tells is the radio's matter; without it more is lost",
    },
    Difference {
        title: "interfaces that change",
        daemons: "netlink tells of new addresses, MTUs and numbers; a TAP that is deleted is made \
                  again",
        simulation: "radios go up and down; nothing else of an interface changes",
        why: "tested with real interfaces (`io_devices`, end to end)",
    },
];

/// What of a run no daemon does, each with what to leave out; empty for what ships.
pub fn does_not_ship(scenario: &Scenario, suite: Suite) -> Vec<String> {
    let mut parts = Vec::new();
    match suite {
        Suite::Daemons => {}
        Suite::Flooding => parts.push("plain flooding in place of both daemons".to_owned()),
        Suite::BatmanModel => {
            parts.push("a model of B.A.T.M.A.N. IV in place of both daemons".to_owned());
        }
        Suite::IdealRouting => {
            parts.push("routes that nobody has to learn in place of both daemons".to_owned());
        }
        Suite::Silence => parts.push("silence in place of both daemons".to_owned()),
    }
    let set = obu_settings(&scenario.settings.obu);
    let ships = obu_lib::Settings::default();
    let Policy {
        ranking,
        prediction,
        suppression,
        duplication,
        rerouting,
        standby,
        feasibility,
        quiet_period,
    } = set.policy;
    let p = ships.policy;
    let word = |ranking| match ranking {
        Ranking::Cost => "\"cost\"",
        Ranking::Hops => "\"hops\"",
    };
    if ranking != p.ranking {
        parts.push(format!("settings.obu.policy.ranking = {}", word(ranking)));
    }
    for (name, is, ships) in [
        ("prediction", prediction, p.prediction),
        ("suppression", suppression, p.suppression),
        ("duplication", duplication, p.duplication),
        ("rerouting", rerouting, p.rerouting),
        ("standby", standby, p.standby),
        ("feasibility", feasibility, p.feasibility),
        ("quiet_period", quiet_period, p.quiet_period),
    ] {
        if is != ships {
            parts.push(format!("settings.obu.policy.{name} = {is}"));
        }
    }
    if scenario.settings.rsu.rerouting == Some(false) {
        parts.push("settings.rsu.rerouting = false".to_owned());
    }
    if set.thresholds != ships.thresholds {
        parts.push("thresholds of trends".to_owned());
    }
    parts
}

/// What of a run does not ship, in one line.
pub fn in_words(parts: &[String]) -> String {
    match parts {
        [] => "does not ship: nothing".to_owned(),
        parts => format!("does not ship: {}", parts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    classify! {
        /// Every field of what the loop of a daemon is given, which simulations do not link.
        OF_THE_LOOP:
        node_lib::runtime::Runtime as "node_lib::runtime::Runtime" {
            clock: Given,
            radio: Given,
            tap_mtu: Same,
            bundles: Same,
            coalesce: Differs("processor time"),
            busy_poll: Differs("processor time"),
            announcements: Differs("addresses of the TAP"),
            remembered: Differs("clients of an earlier start"),
            client_file: Differs("clients of an earlier start"),
        }
        node_lib::device::LinkState as "node_lib::device::LinkState" {
            index: Differs("interfaces that change"),
            mac: Given,
            mtu: Given,
            up: Given,
        }
    }

    #[test]
    fn every_difference_of_a_field_has_its_row_and_every_row_its_reason() {
        let titles: BTreeSet<&str> = DIFFERENCES.iter().map(|row| row.title).collect();
        assert_eq!(titles.len(), DIFFERENCES.len());
        for field in CLASSIFIED.iter().chain(OF_THE_LOOP) {
            if let Standing::Differs(title) = field.standing {
                assert!(titles.contains(title), "{field:?}");
            }
        }
        for row in DIFFERENCES {
            let texts = [row.title, row.daemons, row.simulation, row.why];
            assert!(texts.iter().all(|text| !text.is_empty()), "{row:?}");
        }
    }

    #[test]
    fn the_table_in_the_documentation_is_this_one() {
        let document = include_str!("../../docs/simulator.md");
        for Difference { title, daemons, simulation, why } in DIFFERENCES {
            let row = format!("| {title} | {daemons} | {simulation} | {why} |");
            assert!(document.contains(&row), "not in docs/simulator.md:\n{row}");
        }
    }
}
