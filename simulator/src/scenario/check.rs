//! What TOML cannot say about a scenario: ranges, names, and what goes with what.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use node_lib::messages::capacity::RADIO_MTU_MIN;
use node_lib::settings::{ETHERTYPE_RANGE, HELLO_HISTORY_RANGE};
use node_lib::start::RADIO_MTU;
use node_lib::transport::mtu::{TAP_MTU_MAX, TAP_MTU_MIN};
use obu_lib::settings::CACHED_CANDIDATES_RANGE;
use rsu_lib::settings::{GROUP_RATE_RANGE, HELLO_PERIODICITY_RANGE_MS};

use super::radio::{Number, RATES_MBPS};
use crate::stage::tap_mtu;

use super::{
    ClientSpec, CrossingsSpec, FaultSpec, FlowSpec, GridSpec, Mobility, Model, MotorwaySpec,
    ObuSpec, Scenario, Span, What,
};
use crate::mobility::line::AtEnd;

/// Every problem: the field and what is wrong with it.
pub(super) fn problems(scenario: &Scenario) -> Vec<(String, String)> {
    let mut check = Check { scenario, problems: Vec::new(), names: BTreeMap::new() };
    check.times();
    check.names();
    check.radio();
    check.settings();
    check.nodes();
    check.links();
    check.clients();
    check.flows();
    check.faults();
    check.recorded();
    check.problems
}

/// Names that mean something by themselves.
const RESERVED: [&str; 4] = ["obus", "rsus", "everyone", "nobody"];

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lan,
    Rsu,
    Obu,
    Vehicles,
    Client,
    Flow,
}

impl Kind {
    const fn is_node(self) -> bool {
        matches!(self, Self::Rsu | Self::Obu | Self::Vehicles)
    }
}

struct Check<'a> {
    scenario: &'a Scenario,
    problems: Vec<(String, String)>,
    names: BTreeMap<&'a str, Kind>,
}

impl<'a> Check<'a> {
    fn wrong(&mut self, field: impl Into<String>, what: impl Into<String>) {
        self.problems.push((field.into(), what.into()));
    }

    fn ensure(&mut self, holds: bool, field: impl Into<String>, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong(field, what());
        }
    }

    fn number(&mut self, field: impl Into<String>, value: Option<f64>, least: f64, most: f64) {
        if let Some(value) = value {
            self.ensure((least..=most).contains(&value), field, || {
                format!("{value}; expected a number from {least} to {most}")
            });
        }
    }

    fn count(&mut self, field: impl Into<String>, value: Option<u64>, least: u64, most: u64) {
        if let Some(value) = value {
            self.ensure((least..=most).contains(&value), field, || {
                format!("{value}; expected a whole number from {least} to {most}")
            });
        }
    }

    /// A number a flag takes: in the range it has there.
    fn within(
        &mut self,
        field: impl Into<String>,
        value: Option<u64>,
        range: &RangeInclusive<u64>,
    ) {
        self.count(field, value, *range.start(), *range.end());
    }

    fn times(&mut self) {
        let Scenario { duration, warm_up, sample_every, seeds, .. } = *self.scenario;
        let (second, day) = (Span::from_millis(1), Span::from_millis(24 * 3600 * 1000));
        self.ensure((second..=day).contains(&duration), "duration", || {
            format!("{duration}; expected a time from 1ms to 24 hours")
        });
        self.ensure(warm_up < duration, "warm_up", || {
            format!("{warm_up}; expected less than the duration, {duration}")
        });
        self.ensure(sample_every >= Span::from_millis(1), "sample_every", || {
            format!("{sample_every}; expected 1ms or more")
        });
        self.count("seeds", Some(seeds.into()), 1, 1_000_000);
    }

    fn names(&mut self) {
        let scenario = self.scenario;
        let lists: [(&str, Kind, Vec<&'a str>); 5] = [
            ("lan", Kind::Lan, scenario.lan.iter().map(|lan| lan.id.as_str()).collect()),
            ("rsu", Kind::Rsu, scenario.rsu.iter().map(|rsu| rsu.id.as_str()).collect()),
            ("obu", Kind::Obu, scenario.obu.iter().map(|obu| obu.id.as_str()).collect()),
            ("client", Kind::Client, scenario.client.iter().map(|c| c.id.as_str()).collect()),
            ("flow", Kind::Flow, Vec::new()),
        ];
        for (list, kind, names) in lists {
            for (index, name) in names.into_iter().enumerate() {
                self.name(format!("{list}.{index}.id"), name, kind);
            }
        }
        if let Some(mobility) = &scenario.mobility {
            self.name("mobility.id".to_owned(), &mobility.id, Kind::Vehicles);
        }
    }

    fn name(&mut self, field: String, name: &'a str, kind: Kind) {
        // Flows are named in results only.
        let others = if kind == Kind::Flow { "-_. " } else { "-_." };
        let is_plain = |letter: char| letter.is_alphanumeric() || others.contains(letter);
        if name.is_empty() || !name.chars().all(is_plain) {
            self.wrong(field, format!("\"{name}\"; expected letters, digits, '-', '_' and '.'"));
        } else if RESERVED.contains(&name) {
            let reserved = RESERVED.join(", ");
            self.wrong(field, format!("\"{name}\"; expected another name than {reserved}"));
        } else if self.names.insert(name, kind).is_some() {
            self.wrong(field, format!("\"{name}\"; expected a name nothing else has"));
        }
    }

    fn radio(&mut self) {
        let radio = &self.scenario.radio;
        for Number { name, value, models, least, most } in radio.numbers() {
            let field = format!("radio.{name}");
            if value.is_some() && !models.contains(&radio.model) {
                let of: Vec<&str> = models.iter().map(|model| model.as_str()).collect();
                let (of, is) = (of.join(", "), radio.model.as_str());
                self.wrong(
                    field,
                    format!("a field of model {of}; expected none, the model is {is}"),
                );
            } else {
                self.number(field, value, least, most);
            }
        }
        for (name, is_so, beside) in radio.companions() {
            self.ensure(is_so, format!("radio.{name}"), || {
                format!("means something beside {beside} only; expected both or neither")
            });
        }
        if let Some(rate) = radio.rate_mbps {
            self.ensure(RATES_MBPS.contains(&rate), "radio.rate_mbps", || {
                let rates: Vec<String> = RATES_MBPS.iter().map(ToString::to_string).collect();
                format!("{rate}; expected one of {}", rates.join(", "))
            });
        }
    }

    fn settings(&mut self) {
        let settings = &self.scenario.settings;
        let (obu, rsu) = (&settings.obu, &settings.rsu);
        let least = RADIO_MTU_MIN as u64;
        for (role, radio_mtu, mtu, ethertype, history) in [
            ("obu", obu.radio_mtu, obu.mtu, obu.ethertype, obu.hello_history),
            ("rsu", rsu.radio_mtu, rsu.mtu, rsu.ethertype, rsu.hello_history),
        ] {
            let field = |name: &str| format!("settings.{role}.{name}");
            self.count(field("radio_mtu"), radio_mtu.map(u64::from), least, 1500);
            let [least, most] = [TAP_MTU_MIN as u64, TAP_MTU_MAX as u64];
            self.count(field("mtu"), mtu.map(u64::from), least, most);
            let fits = tap_mtu(mtu).over(radio_mtu.map_or(RADIO_MTU, usize::from));
            let error = fits.err().map(|error| error.to_string());
            self.ensure(error.is_none(), field("mtu"), || error.unwrap_or_default());
            self.within(field("ethertype"), ethertype.map(u64::from), &ETHERTYPE_RANGE);
            self.within(field("hello_history"), history.map(u64::from), &HELLO_HISTORY_RANGE);
        }
        let candidates = obu.cached_candidates.map(u64::from);
        self.within("settings.obu.cached_candidates", candidates, &CACHED_CANDIDATES_RANGE);
        let [least, most] = [GROUP_RATE_RANGE.start(), GROUP_RATE_RANGE.end()];
        let [least, most] = [least, most].map(|&rate| rate.unsigned_abs());
        self.count("settings.rsu.group_rate", rsu.group_rate.map(u64::from), least, most);
        if let Some(every) = settings.ideal_every {
            let (least, most) = (Span::from_millis(1), Span::from_millis(10_000));
            self.ensure((least..=most).contains(&every), "settings.ideal_every", || {
                format!("{every}; expected a time from {least} to {most}")
            });
        }
        if let Some(period) = rsu.hello_periodicity {
            let [least, most] =
                [HELLO_PERIODICITY_RANGE_MS.start(), HELLO_PERIODICITY_RANGE_MS.end()]
                    .map(|&millis| Span::from_millis(millis));
            let range = least..=most;
            self.ensure(range.contains(&period), "settings.rsu.hello_periodicity", || {
                format!("{period}; expected a time from {least} to {most}")
            });
        }
    }

    fn nodes(&mut self) {
        let scenario = self.scenario;
        let needs_places = scenario.radio.model != Model::Links;
        self.ensure(!scenario.rsu.is_empty(), "rsu", || {
            "none; expected one [[rsu]] or more: without it no OBU can have a route".to_owned()
        });
        for (index, rsu) in scenario.rsu.iter().enumerate() {
            let field = |name: &str| format!("rsu.{index}.{name}");
            match rsu.position_m {
                Some(place) => self.place(field("position_m"), place),
                None => self.ensure(!needs_places, field("position_m"), || {
                    format!("missing; model {} needs to know", scenario.radio.model.as_str())
                }),
            }
            if let Some(lan) = &rsu.lan {
                self.refers(field("lan"), lan, "the id of a [[lan]]", |kind| kind == Kind::Lan);
            }
        }
        for (index, obu) in scenario.obu.iter().enumerate() {
            self.obu(index, obu, needs_places);
        }
        if let Some(mobility) = &scenario.mobility {
            self.ensure(needs_places, "mobility", || {
                "vehicles that move; expected a radio model other than links".to_owned()
            });
            self.mobility(mobility);
        }
    }

    fn mobility(&mut self, mobility: &Mobility) {
        let Mobility { file, grid, motorway, count, share, pick, from, to, offset_m, .. } =
            mobility;
        let sources = [file.is_some(), grid.is_some(), motorway.is_some()];
        let sources = sources.into_iter().filter(|is_there| *is_there).count();
        self.ensure(sources == 1, "mobility", || {
            format!("{sources} sources of vehicles; expected one of file, grid and motorway")
        });
        self.place("mobility.offset_m".to_owned(), *offset_m);
        self.count("mobility.count", count.map(u64::from), 1, 1_000_000);
        self.ensure(
            share.is_none_or(|share| share > 0.0 && share <= 1.0),
            "mobility.share",
            || format!("{}; expected a number above 0, up to 1", share.unwrap_or_default()),
        );
        self.ensure(count.is_none() || share.is_none(), "mobility.share", || {
            "beside count; expected one of the two".to_owned()
        });
        self.ensure(pick.is_none() || count.is_some() || share.is_some(), "mobility.pick", || {
            "all of them; expected count or share beside it".to_owned()
        });
        let is_file = file.is_some();
        self.ensure(is_file || *from == Span::default(), "mobility.from", || {
            "no file; what is made from the seed begins at the beginning".to_owned()
        });
        self.ensure(is_file || to.is_none(), "mobility.to", || {
            "no file; what is made from the seed lasts to the end".to_owned()
        });
        if let Some(to) = to {
            self.ensure(to > from, "mobility.to", || {
                format!("{to}; expected a time after from, {from}")
            });
        }
        if let Some(grid) = grid {
            for (index, &blocks) in grid.blocks.iter().enumerate() {
                self.count(format!("mobility.grid.blocks.{index}"), Some(blocks.into()), 1, 100);
            }
            self.number("mobility.grid.block_m", Some(grid.block_m), 50.0, 10_000.0);
            self.ensure(
                grid.cycle.is_none() || grid.crossings == CrossingsSpec::Lights,
                "mobility.grid.cycle",
                || "no lights; expected crossings = \"lights\" beside it".to_owned(),
            );
            let cycle = grid.cycle.map(|cycle| cycle.0.as_secs_f64());
            self.number("mobility.grid.cycle", cycle, 10.0, 600.0);
            let GridSpec { vehicles, density_per_km, speed_kmh, .. } = *grid;
            let lanes_m = grid.maker().lanes_m();
            self.made("grid", vehicles, density_per_km, speed_kmh, lanes_m);
        }
        if let Some(motorway) = motorway {
            self.number("mobility.motorway.length_m", Some(motorway.length_m), 100.0, 100_000.0);
            self.count("mobility.motorway.lanes", Some(motorway.lanes.into()), 1, 10);
            let MotorwaySpec { vehicles, density_per_km, speed_kmh, .. } = *motorway;
            self.made("motorway", vehicles, density_per_km, speed_kmh, motorway.lanes_m());
        }
    }

    /// What towns and motorways have in common.
    fn made(
        &mut self,
        table: &str,
        vehicles: Option<u32>,
        density_per_km: Option<f64>,
        speed_kmh: f64,
        lanes_m: f64,
    ) {
        let field = |name: &str| format!("mobility.{table}.{name}");
        self.count(field("vehicles"), vehicles.map(u64::from), 1, 100_000);
        self.number(field("density_per_km"), density_per_km, 0.1, DENSITY_MAX_PER_KM);
        self.ensure(
            vehicles.is_none() || density_per_km.is_none(),
            field("density_per_km"),
            || "beside vehicles; expected one of the two".to_owned(),
        );
        let density = vehicles.map(|vehicles| f64::from(vehicles) / lanes_m * 1000.0);
        self.ensure(
            density.is_none_or(|density| density <= DENSITY_MAX_PER_KM),
            field("vehicles"),
            || {
                let density = density.unwrap_or_default();
                format!(
                    "{density:.0} on a kilometre of lane; expected {DENSITY_MAX_PER_KM} or less"
                )
            },
        );
        self.number(field("speed_kmh"), Some(speed_kmh), 10.0, 300.0);
    }

    fn place(&mut self, field: String, [x, y]: [f64; 2]) {
        let is_near = |metres: f64| metres.abs() <= PLACE_MAX_M;
        self.ensure(is_near(x) && is_near(y), field, || {
            format!("[{x}, {y}]; expected metres from -{PLACE_MAX_M} to {PLACE_MAX_M}")
        });
    }

    fn obu(&mut self, index: usize, obu: &ObuSpec, needs_places: bool) {
        let field = |name: &str| format!("obu.{index}.{name}");
        self.count(field("count"), Some(obu.count.into()), 1, 100_000);
        match (obu.position_m, &obu.path_m) {
            (Some(_), Some(_)) => {
                self.wrong(field("path_m"), "beside position_m; expected one of the two");
            }
            (Some(place), None) => self.place(field("position_m"), place),
            (None, Some(path)) => {
                for (corner, &place) in path.iter().enumerate() {
                    self.place(format!("obu.{index}.path_m.{corner}"), place);
                }
                self.ensure(path.len() >= 2, field("path_m"), || {
                    format!("{} corners; expected two or more", path.len())
                });
                self.ensure(needs_places, field("path_m"), || {
                    "a vehicle that moves; expected a radio model other than links".to_owned()
                });
                self.ensure(obu.speed_kmh.is_some(), field("speed_kmh"), || {
                    "missing; a vehicle with path_m needs it".to_owned()
                });
            }
            (None, None) => self.ensure(!needs_places, field("position_m"), || {
                let model = self.scenario.radio.model.as_str();
                format!("missing; model {model} needs position_m or path_m")
            }),
        }
        self.number(field("speed_kmh"), obu.speed_kmh, 0.1, 1000.0);
        self.number(field("gap_m"), obu.gap_m, 0.1, 10_000.0);
        let moves = obu.path_m.is_some();
        for (name, is_there) in [
            ("speed_kmh", obu.speed_kmh.is_some()),
            ("depart", obu.depart != Span::default()),
            ("at_end", obu.at_end.is_some_and(|end| end != AtEnd::Stay)),
        ] {
            self.ensure(moves || !is_there, field(name), || {
                "a vehicle that stands; expected path_m beside it".to_owned()
            });
        }
        let has_place = moves || obu.position_m.is_some();
        let is_row = obu.count > 1 && has_place;
        self.ensure(!is_row || obu.gap_m.is_some(), field("gap_m"), || {
            "missing; a row of vehicles needs it".to_owned()
        });
        self.ensure(is_row || obu.gap_m.is_none(), field("gap_m"), || {
            "one vehicle; expected count and a place beside it".to_owned()
        });
    }

    /// The name must stand for something of this kind.
    fn refers(&mut self, field: String, name: &str, expected: &str, fits: impl Fn(Kind) -> bool) {
        if self.names.get(name).is_some_and(|&kind| fits(kind)) {
            return;
        }
        let known: Vec<&str> =
            self.names.iter().filter(|(_, kind)| fits(**kind)).map(|(name, _)| *name).collect();
        let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
        self.wrong(field, format!("\"{name}\"; expected {expected}: {known}"));
    }

    /// The name must stand for one node or several.
    fn refers_to_nodes(&mut self, field: String, name: &str) {
        let group = name.split_once('/').map_or(name, |(group, _)| group);
        if ["obus", "rsus"].contains(&name) {
            return;
        }
        if let Some((_, member)) = name.split_once('/')
            && let Some(obu) = self.scenario.obu.iter().find(|obu| obu.id == group)
        {
            let number = member.parse().unwrap_or(0);
            if obu.count < 2 || !(1..=obu.count).contains(&number) {
                let expected = match obu.count {
                    1 => group.to_owned(),
                    count => format!("{group}/1 to {group}/{count}"),
                };
                return self.wrong(field, format!("\"{name}\"; expected {expected}"));
            }
        }
        if let Some(mobility) = &self.scenario.mobility
            && group != name
            && group == mobility.id
            && mobility.is_drawn()
        {
            let what = "which vehicles there are is drawn from the seed; expected a file, and all \
                        of it or pick = \"first\"";
            return self.wrong(field, format!("\"{name}\": {what}"));
        }
        self.refers(field, group, "obus, rsus or the id of a node", Kind::is_node);
    }

    fn quality(&mut self, path: &str, loss: Option<f64>, duplicate: Option<f64>) {
        self.number(format!("{path}.loss"), loss, 0.0, 1.0);
        self.number(format!("{path}.duplicate"), duplicate, 0.0, 1.0);
    }

    fn links(&mut self) {
        let scenario = self.scenario;
        for (index, link) in scenario.link.iter().enumerate() {
            let path = format!("link.{index}");
            self.ensure(scenario.radio.model == Model::Links, path.as_str(), || {
                let model = scenario.radio.model.as_str();
                format!("a link; expected none, model {model} makes them from positions")
            });
            self.refers_to_nodes(format!("{path}.from"), &link.from);
            self.refers_to_nodes(format!("{path}.to"), &link.to);
            self.quality(&path, link.loss, link.duplicate);
        }
    }

    fn clients(&mut self) {
        for (index, client) in self.scenario.client.iter().enumerate() {
            let ClientSpec { behind, lan, share, count, .. } = client;
            let field = |name: &str| format!("client.{index}.{name}");
            match (behind, lan) {
                (Some(behind), None) => self.refers_to_nodes(field("behind"), behind),
                (None, Some(lan)) => {
                    self.refers(field("lan"), lan, "the id of a [[lan]]", |k| k == Kind::Lan);
                    self.ensure(share.is_none(), field("share"), || {
                        "a client on a LAN; expected behind beside it".to_owned()
                    });
                }
                (Some(_), Some(_)) => {
                    self.wrong(field("lan"), "beside behind; expected one of the two");
                }
                (None, None) => self.wrong(field("behind"), "missing; expected behind or lan"),
            }
            self.number(field("share"), *share, 0.0, 1.0);
            self.count(field("count"), Some((*count).into()), 1, 1000);
        }
    }

    fn flows(&mut self) {
        let scenario = self.scenario;
        for (index, flow) in scenario.flow.iter().enumerate() {
            let FlowSpec { from, to, frames_per_s, size_bytes, start, stop, id, arrivals: _ } =
                flow;
            let field = |name: &str| format!("flow.{index}.{name}");
            if let Some(id) = id {
                self.name(field("id"), id, Kind::Flow);
            }
            let is_client = |kind| kind == Kind::Client;
            self.refers(field("from"), from, "the id of a [[client]]", is_client);
            let silent = scenario.client.iter().any(|client| client.id == *from && !client.speaks);
            self.ensure(!silent, field("from"), || {
                format!("\"{from}\"; expected a client with speaks = true")
            });
            if !["everyone", "nobody"].contains(&to.as_str()) {
                let expected = "everyone, nobody or the id of a [[client]]";
                self.refers(field("to"), to, expected, is_client);
            }
            self.number(field("frames_per_s"), Some(*frames_per_s), 0.001, 1e6);
            self.count(field("size_bytes"), Some((*size_bytes).into()), 60, 1514);
            if let Some(start) = start.filter(|start| *start >= scenario.duration) {
                let end = scenario.duration;
                self.wrong(
                    field("start"),
                    format!("{start}; expected a time before the end, {end}"),
                );
            }
            if let (Some(begins), Some(ends)) = (start, stop) {
                self.ensure(begins < ends, field("start"), || {
                    format!("{begins}; expected a time before the flow ends, {ends}")
                });
            }
        }
    }

    fn recorded(&mut self) {
        let scenario = self.scenario;
        for (index, recorded) in scenario.recorded.iter().enumerate() {
            self.refers_to_nodes(format!("recorded.{index}.obu"), &recorded.obu);
        }
    }

    fn faults(&mut self) {
        let scenario = self.scenario;
        for (index, fault) in scenario.fault.iter().enumerate() {
            let FaultSpec { at, what, node, peer, after, loss, delay, jitter, duplicate } = fault;
            let path = format!("fault.{index}");
            let field = |name: &str| format!("{path}.{name}");
            self.ensure(*at <= scenario.duration, field("at"), || {
                format!("{at}; expected a time up to the duration, {}", scenario.duration)
            });
            self.refers_to_nodes(field("node"), node);
            let is_of_link = matches!(
                what,
                What::CutOneWay | What::HealOneWay | What::Cut | What::Heal | What::Relink
            );
            match peer {
                Some(peer) if is_of_link => self.refers_to_nodes(field("peer"), peer),
                Some(_) => self.wrong(field("peer"), "happens to one node; expected no peer"),
                None => self.ensure(!is_of_link, field("peer"), || {
                    "missing; expected the node at the other end".to_owned()
                }),
            }
            let is_for_a_while = matches!(what, What::Restart | What::Stall);
            self.ensure(!is_for_a_while || after.is_some(), field("after"), || {
                "missing; expected how long the node is off, or stands still".to_owned()
            });
            self.ensure(is_for_a_while || after.is_none(), field("after"), || {
                "nothing to wait for; expected it with what = \"restart\" or \"stall\" only"
                    .to_owned()
            });
            let is_relink = *what == What::Relink;
            for (name, is_there) in [
                ("loss", loss.is_some()),
                ("delay", delay.is_some()),
                ("jitter", jitter.is_some()),
                ("duplicate", duplicate.is_some()),
            ] {
                self.ensure(is_relink || !is_there, field(name), || {
                    "no new link; expected it with what = \"relink\" only".to_owned()
                });
            }
            self.ensure(!is_relink || scenario.radio.model == Model::Links, field("what"), || {
                let model = scenario.radio.model.as_str();
                format!("relink; expected it with model links only, the model is {model}")
            });
            self.quality(&path, *loss, *duplicate);
        }
    }
}

/// No map is larger.
const PLACE_MAX_M: f64 = 1e6;
/// More vehicles stand on no lane: 7 m each, and room to move.
const DENSITY_MAX_PER_KM: f64 = 120.0;
