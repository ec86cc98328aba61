//! From a [`Cast`] and a seed to a world that runs: [`Stage`].

use std::sync::Arc;

use node_lib::control::radio::HOP_LIMIT;
use node_lib::start::{RADIO_MTU, boot};
use node_lib::transport::mtu::TapMtu;
use node_lib::{Mac, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::radio::fading::Shape;
use sim::radio::{
    Access, Csma, DataRate, ErrorModel, Fading, LOOK_EVERY, PathLoss, RadioModel, Shadowing,
};
use sim::{
    Arrivals, ClientIndex, Counting, Factory, Fault, Flow, FlowIndex, Link, NodeIndex, Role,
    Target, Violation, World,
};
use std::time::Duration;

use crate::batman;
use crate::cast::{Cast, CastFault, CastFlow, Home, Member, NOBODY, Placement, To, radio_mac};
use crate::flooding::Flooder;
use crate::ideal::{Ideal, Oracle, SharedTruth};
use crate::scenario::{
    AccessSpec, ArrivalsSpec, Errors, FadingSpec, Model, NodeSettings, ObuSettings, RadioSpec,
    RankingSpec, RsuSettings, Scenario, Span, What,
};
use crate::watch::{SharedJournal, Watched};

/// Whose nodes take part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suite {
    /// The nodes the daemons run.
    #[default]
    Daemons,
    /// Plain flooding, for comparison: see [`crate::flooding`].
    Flooding,
    /// A model of B.A.T.M.A.N. IV, for comparison: see [`crate::batman`].
    BatmanModel,
    /// Nodes that know all routes and say nothing, for comparison: see `simulator/src/ideal/`.
    IdealRouting,
    /// Nodes that say nothing, for looking at who could hear whom.
    Silence,
}

impl Suite {
    /// Those that can be chosen.
    pub const CHOICE: [Self; 4] =
        [Self::Daemons, Self::Flooding, Self::BatmanModel, Self::IdealRouting];

    /// Its name in tables, files and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Daemons => "daemons",
            Self::Flooding => "flooding",
            Self::BatmanModel => "batman-model",
            Self::IdealRouting => "ideal-routing",
            Self::Silence => "silence",
        }
    }

    /// Do its nodes carry clients' frames?
    pub const fn carries_traffic(self) -> bool {
        matches!(self, Self::Daemons | Self::BatmanModel | Self::IdealRouting)
    }

    /// Are its nodes held to the rules of ours?
    pub const fn is_watched(self) -> bool {
        !matches!(self, Self::BatmanModel | Self::IdealRouting)
    }
}

/// A world with everybody in it, at the beginning.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) journal: SharedJournal,
    /// In the order of [`Cast::flows`].
    pub(crate) flows: Vec<FlowIndex>,
    /// Tells its nodes how things are.
    oracle: Option<Oracle>,
}

impl Stage {
    pub(crate) fn new(scenario: &Scenario, cast: &Cast, seed: u64, suite: Suite) -> Self {
        let mut world = World::new(seed);
        let journal = SharedJournal::default();
        if let Some(radio) = radio(&scenario.radio) {
            world.set_radio(radio);
        }
        world.report_signal(scenario.radio.reports_signal.unwrap_or(true));
        world.report_unacknowledged(scenario.radio.reports_unacknowledged.unwrap_or(false));
        world.report_busy(scenario.radio.reports_busy.unwrap_or(true));
        if scenario.radio.model == Model::Links {
            world.try_again(scenario.radio.retries.unwrap_or(0).into());
        }
        world.tolerate_revisits(scenario.revisits() as usize);
        world.hold_to_rules(suite.is_watched());
        let NodeSettings { state_file, bundles, ideal_every, obu, rsu } = &scenario.settings;
        // Who could hear whom does not wait for anybody's start.
        if *state_file || suite == Suite::Silence {
            world.count_starts(Counting::StateFile);
        }
        for (role, radio_mtu, mtu) in
            [(Role::Obu, obu.radio_mtu, obu.mtu), (Role::Rsu, rsu.radio_mtu, rsu.mtu)]
        {
            world.set_radio_mtu(role, radio_mtu.map_or(RADIO_MTU, usize::from));
            world.set_tap_mtu(role, tap_mtu(mtu));
        }
        if let Some(bundles) = bundles {
            world.bundle(*bundles);
        }
        if suite == Suite::BatmanModel {
            world.bundle(false);
        }
        let oracle = (suite == Suite::IdealRouting).then(|| {
            // Routes change under frames that wait, which then go back where they came from.
            world.tolerate_revisits(HOP_LIMIT.into());
            let every = ideal_every.or(scenario.radio.update_every);
            Oracle::new(cast, every.map_or(LOOK_EVERY, |span| span.0))
        });
        let truth = oracle.as_ref().map(Oracle::truth).unwrap_or_default();
        let rsus: Arc<[Mac]> = cast.of_role(Role::Rsu).map(|rsu| radio_mac(rsu.0)).collect();
        let lans: Vec<_> = cast.lans.iter().map(|_| world.add_lan()).collect();
        for (index, member) in cast.nodes.iter().enumerate() {
            let told = Told { journal: &journal, rsus: &rsus, truth: &truth };
            let factory = factory(scenario, NodeIndex(index), member.role, suite, &told);
            let mac = radio_mac(index);
            let node = match &member.place {
                Placement::Nowhere => world.add_node(member.role, mac, factory),
                Placement::Stands(position) => {
                    let node = world.add_node(member.role, mac, factory);
                    world.place(node, *position);
                    node
                }
                Placement::Way(track) => {
                    let node = world.add_stopped(member.role, mac, factory);
                    world.follow(node, track.clone());
                    node
                }
            };
            if let Some(&lan) = member.lan.and_then(|lan| lans.get(lan)) {
                world.plug(node, lan);
            }
        }
        for link in &cast.links {
            let quality =
                quality(link.link.loss, link.link.delay, link.link.jitter, link.link.duplicate);
            for (&from, &to) in each_pair(&link.from, &link.to) {
                world.link_one_way(from, to, quality);
                if !link.link.one_way {
                    world.link_one_way(to, from, quality);
                }
            }
        }
        world.replay(&cast.trace);
        for client in &cast.clients {
            let place = match client.home {
                Home::Behind(node) => sim::Place::Tap(node),
                Home::Lan(lan) => match lans.get(lan) {
                    Some(&lan) => sim::Place::Lan(lan),
                    None => continue,
                },
            };
            world.add_client(client.mac, place);
        }
        let flows = cast.flows.iter().map(|flow| world.add_flow(plan(flow))).collect();
        for (index, client) in cast.clients.iter().enumerate() {
            let appears = match client.home {
                Home::Behind(node) => cast.nodes.get(node.0).map(Member::appears),
                Home::Lan(_) => None,
            };
            // One after the other, as hosts come up, behind a TAP that is there: after the wait for
            // the boot count.
            let wait = Duration::from_micros(10_000 + 997 * (index as u64 % 64));
            let at = appears.unwrap_or_default() + boot::UNIT + wait;
            world.add_flow(Flow::once(ClientIndex(index), Target::Everyone, at));
        }
        for fault in &cast.faults {
            for change in changes(fault) {
                world.at(fault.fault.at.after_start(), change);
            }
        }
        Self { world, journal, flows, oracle }
    }

    /// Runs the world until this time, and tells its nodes how things are where they are to know.
    ///
    /// # Errors
    /// As [`World::run_until`].
    pub(crate) fn run_until(&mut self, until: Timestamp) -> Result<(), Box<Violation>> {
        if let Some(oracle) = &mut self.oracle {
            while oracle.next() < until {
                self.world.run_until(oracle.next())?;
                oracle.look(&self.world);
            }
        }
        self.world.run_until(until)
    }
}

fn plan(flow: &CastFlow) -> Flow {
    let CastFlow { from, to, start, stop, every, size, .. } = *flow;
    let to = match to {
        To::Client(client) => Target::Client(ClientIndex(client)),
        To::Everyone => Target::Everyone,
        To::Nobody => Target::Nobody(NOBODY),
    };
    let (count, arrivals) = match flow.arrivals {
        ArrivalsSpec::Even => (flow.count(), Arrivals::Even),
        ArrivalsSpec::Poisson => (u32::MAX, Arrivals::Poisson { until: stop }),
    };
    Flow { from: ClientIndex(from), to, start, every, count, arrivals, size }
}

/// What nodes are told beside the scenario, or write to.
struct Told<'a> {
    journal: &'a SharedJournal,
    rsus: &'a Arc<[Mac]>,
    truth: &'a SharedTruth,
}

fn factory(
    scenario: &Scenario,
    index: NodeIndex,
    role: Role,
    suite: Suite,
    told: &Told<'_>,
) -> Factory {
    let Told { journal, rsus, truth } = told;
    let (journal, rsus, truth) = (Arc::clone(journal), Arc::clone(rsus), Arc::clone(truth));
    let (obu, rsu) = (obu_settings(&scenario.settings.obu), rsu_settings(&scenario.settings.rsu));
    Box::new(move |start, now| {
        let journal = Arc::clone(&journal);
        match (suite, role) {
            (Suite::Daemons, Role::Obu) => {
                Box::new(Watched::new(index, Obu::new(obu.config(start), now), journal))
            }
            (Suite::Daemons, Role::Rsu) => {
                Box::new(Watched::new(index, Rsu::new(rsu.config(start), now), journal))
            }
            (Suite::BatmanModel, _) => {
                let model = batman::Model::new(start, role, Arc::clone(&rsus), now);
                Box::new(Watched::new(index, model, journal))
            }
            (Suite::IdealRouting, role) => {
                let node = Ideal::new(start, index, role, Arc::clone(&truth), now);
                Box::new(Watched::new(index, node, journal))
            }
            (Suite::Silence, _) => Box::new(Flooder::new(start, None, now)),
            (Suite::Flooding, _) => {
                let period = (role == Role::Rsu).then_some(rsu.hello_periodicity);
                Box::new(Flooder::new(start, period, now))
            }
        }
    })
}

/// What a daemon would be told of its TAP by its flags.
pub(crate) fn tap_mtu(fixed: Option<u16>) -> TapMtu {
    TapMtu { fixed: fixed.map(usize::from), ipv6: false }
}

/// What `obu` would be told by its flags.
pub(crate) fn obu_settings(chosen: &ObuSettings) -> obu_lib::Settings {
    let mut settings = obu_lib::Settings::default();
    set(&mut settings.ethertype, chosen.ethertype);
    set(&mut settings.hello_history, chosen.hello_history.map(usize::from));
    set(&mut settings.cached_candidates, chosen.cached_candidates.map(usize::from));
    let (policy, chosen) = (&mut settings.policy, &chosen.policy);
    set(
        &mut policy.ranking,
        chosen.ranking.map(|ranking| match ranking {
            RankingSpec::Cost => obu_lib::Ranking::Cost,
            RankingSpec::Hops => obu_lib::Ranking::Hops,
        }),
    );
    set(&mut policy.prediction, chosen.prediction);
    set(&mut policy.suppression, chosen.suppression);
    set(&mut policy.duplication, chosen.duplication);
    set(&mut policy.rerouting, chosen.rerouting);
    set(&mut policy.standby, chosen.standby);
    set(&mut policy.feasibility, chosen.feasibility);
    set(&mut policy.quiet_period, chosen.quiet_period);
    settings
}

/// What `rsu` would be told by its flags.
pub(crate) fn rsu_settings(chosen: &RsuSettings) -> rsu_lib::Settings {
    let mut settings = rsu_lib::Settings::default();
    set(&mut settings.ethertype, chosen.ethertype);
    set(&mut settings.hello_history, chosen.hello_history.map(usize::from));
    set(&mut settings.hello_periodicity, chosen.hello_periodicity.map(|span| span.0));
    set(&mut settings.group_rate, chosen.group_rate);
    set(&mut settings.rerouting, chosen.rerouting);
    settings
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// The channel; `None` where only links count.
pub(crate) fn radio(chosen: &RadioSpec) -> Option<RadioModel> {
    let path_loss = match chosen.model {
        Model::Links => return None,
        Model::Disk => PathLoss::Disk {
            range_m: chosen.range_m.unwrap_or(RANGE_M),
            loss: chosen.loss.unwrap_or(0.0),
        },
        Model::LogDistance => PathLoss::LogDistance { exponent: chosen.exponent.unwrap_or(2.0) },
        Model::DualSlope => match PathLoss::DUAL_SLOPE {
            PathLoss::DualSlope { mut break_m, mut near_exponent, mut far_exponent } => {
                set(&mut break_m, chosen.break_m);
                set(&mut near_exponent, chosen.near_exponent);
                set(&mut far_exponent, chosen.far_exponent);
                PathLoss::DualSlope { break_m, near_exponent, far_exponent }
            }
            other => other,
        },
    };
    let mut radio = RadioModel::with_path_loss(path_loss);
    if chosen.shadowing {
        let mut shadowing = Shadowing::SUBURB;
        set(&mut shadowing.near_db, chosen.shadowing_near_db);
        set(&mut shadowing.far_db, chosen.shadowing_far_db);
        set(&mut shadowing.correlation_m, chosen.shadowing_correlation_m);
        set(&mut shadowing.asymmetric_db, chosen.shadowing_asymmetric_db);
        radio.shadowing = Some(shadowing);
    }
    radio.fading = match chosen.fading {
        FadingSpec::None => Fading::Still,
        FadingSpec::Suburb => Fading::Nakagami(Shape::suburb()),
        FadingSpec::Scatter => Fading::Nakagami(Shape::scatter()),
        FadingSpec::Simple => Fading::Nakagami(Shape::simple()),
        FadingSpec::Nakagami => Fading::Nakagami(Shape::constant(chosen.nakagami_m.unwrap_or(1.0))),
    };
    radio.errors = match chosen.errors {
        Errors::Nist => ErrorModel::Nist,
        Errors::Threshold => ErrorModel::Threshold,
    };
    let budget = &mut radio.budget;
    set(&mut budget.tx_dbm, chosen.tx_dbm);
    set(&mut budget.gain_dbi, chosen.gain_dbi);
    set(&mut budget.noise_dbm, chosen.noise_dbm);
    set(&mut budget.sensitivity_dbm, chosen.sensitivity_dbm);
    set(&mut budget.sinr_db, chosen.sinr_db);
    set(&mut budget.preamble_db, chosen.preamble_db);
    set(&mut budget.energy_detect_dbm, chosen.energy_detect_dbm);
    set(&mut budget.floor_dbm, chosen.floor_dbm);
    set(&mut radio.update_every, chosen.update_every.map(|span| span.0));
    radio.access = access(chosen);
    Some(radio)
}

fn access(chosen: &RadioSpec) -> Access {
    match chosen.access {
        AccessSpec::Instant => {
            let mut link = Link::CLEAN;
            set(&mut link.delay, chosen.delay.map(|span| span.0));
            set(&mut link.jitter, chosen.jitter.map(|span| span.0));
            Access::Instant { delay: link.delay, jitter: link.jitter }
        }
        AccessSpec::Csma => {
            let mut csma = Csma::DEFAULT;
            set(&mut csma.rate, chosen.rate_mbps.and_then(rate));
            set(&mut csma.retries, chosen.retries.and_then(|retries| retries.try_into().ok()));
            set(&mut csma.queue_len_max, chosen.queue_frames.map(usize::from));
            Access::Csma(csma)
        }
    }
}

/// The rate of so many Mbit/s; `None` if there is none.
fn rate(mbps: f64) -> Option<DataRate> {
    use DataRate::{Mbps3, Mbps4_5, Mbps6, Mbps9, Mbps12, Mbps18, Mbps24, Mbps27};
    let rates = [
        (3.0, Mbps3),
        (4.5, Mbps4_5),
        (6.0, Mbps6),
        (9.0, Mbps9),
        (12.0, Mbps12),
        (18.0, Mbps18),
        (24.0, Mbps24),
        (27.0, Mbps27),
    ];
    rates.into_iter().find(|(known, _)| *known == mbps).map(|(_, rate)| rate)
}

/// Range of a disk that is not told another: what 802.11p reaches in a town with a line of sight.
const RANGE_M: f64 = 300.0;

fn quality(
    loss: Option<f64>,
    delay: Option<Span>,
    jitter: Option<Span>,
    duplicate: Option<f64>,
) -> Link {
    let mut link = Link::CLEAN;
    set(&mut link.loss, loss);
    set(&mut link.delay, delay.map(|span| span.0));
    set(&mut link.jitter, jitter.map(|span| span.0));
    set(&mut link.duplicate, duplicate);
    link
}

fn each_pair<'a>(
    from: &'a [NodeIndex],
    to: &'a [NodeIndex],
) -> impl Iterator<Item = (&'a NodeIndex, &'a NodeIndex)> {
    let pairs = from.iter().flat_map(move |a| to.iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a != b)
}

fn changes(fault: &CastFault) -> Vec<Fault> {
    let what = &fault.fault;
    let ends = |make: fn(NodeIndex, NodeIndex) -> Fault| -> Vec<Fault> {
        each_pair(&fault.nodes, &fault.peers).map(|(&a, &b)| make(a, b)).collect()
    };
    let each = |make: fn(NodeIndex) -> Fault| -> Vec<Fault> {
        fault.nodes.iter().map(|&node| make(node)).collect()
    };
    match what.what {
        What::CutOneWay => ends(Fault::CutOneWay),
        What::HealOneWay => ends(Fault::HealOneWay),
        What::Cut => ends(Fault::Cut),
        What::Heal => ends(Fault::Heal),
        What::Isolate => each(Fault::Isolate),
        What::Rejoin => each(Fault::Rejoin),
        What::RadioDown => each(Fault::RadioDown),
        What::RadioUp => each(Fault::RadioUp),
        What::Crash => each(Fault::Crash),
        What::Start => each(Fault::Start),
        What::Shutdown => each(Fault::Shutdown),
        What::Stall => {
            let span = what.after.unwrap_or_default().0;
            fault.nodes.iter().map(|&node| Fault::Stall(node, span)).collect()
        }
        What::Restart => {
            let after = what.after.unwrap_or_default().0;
            fault.nodes.iter().map(|&node| Fault::Restart(node, after)).collect()
        }
        What::Relink => {
            let link = quality(what.loss, what.delay, what.jitter, what.duplicate);
            let pairs = each_pair(&fault.nodes, &fault.peers);
            pairs.map(|(&a, &b)| Fault::Relink(a, b, link)).collect()
        }
    }
}

/// When the last frames under way have arrived.
pub(crate) fn end(scenario: &Scenario) -> Timestamp {
    scenario.duration.after_start() + DRAIN
}

const DRAIN: Duration = Duration::from_millis(200);
