//! Who takes part: [`Cast`], every node, client and flow of a scenario by name, in a run with
//! one seed.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::{Mac, Timestamp};
use sim::{LinkTrace, Location, NodeIndex, Role, Track};

use crate::mobility::line::Line;
use crate::mobility::{Point, Vehicle};
use crate::scenario::{ArrivalsSpec, FaultSpec, FlowSpec, LinkSpec, ObuSpec, Scenario};

/// Every node, client and flow of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    /// Road-side LANs, by name.
    pub lans: Vec<String>,
    /// Nodes; the first is `n0` in a trace.
    pub nodes: Vec<Member>,
    /// Clients.
    pub clients: Vec<CastClient>,
    /// Flows.
    pub flows: Vec<CastFlow>,
    /// Faults, each with the nodes it happens to.
    pub faults: Vec<CastFault>,
    /// Links, each from one node to another.
    pub links: Vec<CastLink>,
    /// How links change as time goes by, where a file says it.
    pub trace: LinkTrace,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name, such as `rsu1` or `vehicles/17`.
    pub name: String,
    /// RSU or OBU.
    pub role: Role,
    /// Where it is.
    pub place: Placement,
    /// The LAN its TAP is plugged into.
    pub lan: Option<usize>,
}

impl Member {
    /// When it is first there.
    pub fn appears(&self) -> Timestamp {
        match &self.place {
            Placement::Way(track) => track.start(),
            Placement::Nowhere | Placement::Stands(_) => Timestamp::ZERO,
        }
    }

    /// When it is gone; `None` if it stays.
    fn vanishes(&self) -> Option<Timestamp> {
        match &self.place {
            Placement::Way(track) => Some(track.end()),
            Placement::Nowhere | Placement::Stands(_) => None,
        }
    }
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum Placement {
    /// It has no place, only links.
    Nowhere,
    /// It stands.
    Stands(Location),
    /// It drives, and is there from its first waypoint to its last.
    Way(Track),
}

/// Where a client lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Behind the TAP of this node.
    Behind(NodeIndex),
    /// On this LAN.
    Lan(usize),
}

/// A client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastClient {
    /// Its name, such as `camera@car/1`.
    pub name: String,
    /// Its address.
    pub mac: Mac,
    /// Where it lives.
    pub home: Home,
}

/// Who a flow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The client with this index.
    Client(usize),
    /// Everyone.
    Everyone,
    /// An address nobody has.
    Nobody,
}

/// Frames from one client to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastFlow {
    /// Which `[[flow]]` of the file it belongs to.
    pub of: usize,
    /// Index of the client that sends.
    pub from: usize,
    /// Who should receive.
    pub to: To,
    /// First frame; of a Poisson process, when it begins.
    pub start: Timestamp,
    /// When it ends: no frame is sent at this time or after it.
    pub stop: Timestamp,
    /// Time between two frames, on average.
    pub every: Duration,
    /// How they follow each other.
    pub arrivals: ArrivalsSpec,
    /// Bytes of each.
    pub size: usize,
}

/// A fault and whom it hits: each node, or each pair of node and peer.
#[derive(Clone, Debug, PartialEq)]
pub struct CastFault {
    /// As the file has it.
    pub fault: FaultSpec,
    /// Nodes.
    pub nodes: Vec<NodeIndex>,
    /// Nodes at the other end.
    pub peers: Vec<NodeIndex>,
}

/// A link as the file has it, and its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct CastLink {
    /// As the file has it.
    pub link: LinkSpec,
    /// Nodes at one end.
    pub from: Vec<NodeIndex>,
    /// Nodes at the other.
    pub to: Vec<NodeIndex>,
}

impl Cast {
    /// Gives everybody a name; these vehicles are those of `mobility`. Beside it are the fields
    /// that name nobody, and what is wrong with them.
    pub(crate) fn with(scenario: &Scenario, vehicles: &[Vehicle]) -> (Self, Vec<(String, String)>) {
        let (cast, names, problems) = (Self::empty(scenario), BTreeMap::new(), Vec::new());
        let mut maker = Maker { scenario, cast, names, problems };
        maker.rsus();
        maker.obus();
        maker.vehicles(vehicles);
        let groups = maker.clients();
        maker.flows(&groups);
        maker.faults();
        maker.links();
        (maker.cast, maker.problems)
    }

    /// Indices of the nodes of a role.
    pub fn of_role(&self, role: Role) -> impl Iterator<Item = NodeIndex> {
        let of_role = move |(_, node): &(usize, &Member)| node.role == role;
        self.nodes.iter().enumerate().filter(of_role).map(|(index, _)| NodeIndex(index))
    }

    /// Name of a node.
    pub fn name(&self, node: NodeIndex) -> &str {
        self.nodes.get(node.0).map_or("?", |node| &node.name)
    }

    /// The node with this radio.
    pub fn node_of(&self, mac: Mac) -> Option<NodeIndex> {
        let [.., high, middle, low] = mac.0;
        let number = u32::from_be_bytes([0, high, middle, low]).checked_sub(1)?;
        let index = usize::try_from(number).ok()?;
        (radio_mac(index) == mac && index < self.nodes.len()).then_some(NodeIndex(index))
    }

    /// Name of a client.
    pub fn client_name(&self, client: usize) -> &str {
        self.clients.get(client).map_or("?", |client| &client.name)
    }

    /// The OBU a client is behind.
    pub fn vehicle_of(&self, client: usize) -> Option<NodeIndex> {
        match self.clients.get(client)?.home {
            Home::Behind(node) if self.nodes.get(node.0)?.role == Role::Obu => Some(node),
            Home::Behind(_) | Home::Lan(_) => None,
        }
    }

    fn empty(scenario: &Scenario) -> Self {
        Self {
            lans: scenario.lan.iter().map(|lan| lan.id.clone()).collect(),
            nodes: Vec::new(),
            clients: Vec::new(),
            flows: Vec::new(),
            faults: Vec::new(),
            links: Vec::new(),
            trace: LinkTrace::new(),
        }
    }
}

/// MAC of the radio of the `n`-th node.
pub fn radio_mac(n: usize) -> Mac {
    address(0, n)
}

/// MAC of the `n`-th client.
fn client_mac(n: usize) -> Mac {
    address(1, n)
}

/// An address nobody in a simulation has.
pub const NOBODY: Mac = Mac([2, 0xff, 0, 0, 0, 1]);

/// Locally administered; three bytes for the number, from 1.
fn address(group: u8, n: usize) -> Mac {
    let [.., high, middle, low] = (n as u64 + 1).to_be_bytes();
    Mac([2, 0, group, high, middle, low])
}

struct Maker<'a> {
    scenario: &'a Scenario,
    cast: Cast,
    /// What names of groups and of single nodes stand for.
    names: BTreeMap<String, Vec<NodeIndex>>,
    problems: Vec<(String, String)>,
}

impl Maker<'_> {
    fn add(&mut self, group: &str, member: Member) {
        let index = NodeIndex(self.cast.nodes.len());
        let all = if member.role == Role::Rsu { "rsus" } else { "obus" };
        for name in [all, group] {
            self.names.entry(name.to_owned()).or_default().push(index);
        }
        if member.name != group {
            self.names.insert(member.name.clone(), vec![index]);
        }
        self.cast.nodes.push(member);
    }

    fn rsus(&mut self) {
        for rsu in &self.scenario.rsu {
            let lan = self.scenario.lan.iter().position(|lan| Some(&lan.id) == rsu.lan.as_ref());
            let place =
                rsu.position_m.map_or(Placement::Nowhere, |[x, y]| stands(Point::new(x, y)));
            self.add(&rsu.id, Member { name: rsu.id.clone(), role: Role::Rsu, place, lan });
        }
    }

    fn obus(&mut self) {
        let end = self.scenario.duration.after_start();
        for obu in &self.scenario.obu {
            for number in 0..obu.count {
                let name = match obu.count {
                    1 => obu.id.clone(),
                    _ => format!("{}/{}", obu.id, number + 1),
                };
                let behind_m = f64::from(number) * obu.gap_m.unwrap_or(0.0);
                let place = match (&obu.path_m, obu.position_m) {
                    (Some(path), _) => driving(&line(obu, path, behind_m), &name, end),
                    (None, Some([x, y])) => stands(Point::new(x - behind_m, y)),
                    (None, None) => Placement::Nowhere,
                };
                self.add(&obu.id, Member { name, role: Role::Obu, place, lan: None });
            }
        }
    }

    fn vehicles(&mut self, vehicles: &[Vehicle]) {
        let Some(mobility) = &self.scenario.mobility else { return };
        for vehicle in vehicles {
            // One that is there for a moment at an edge of the window never is.
            let end = self.scenario.duration.after_start();
            let Some(track) = track(vehicle, end) else { continue };
            let name = format!("{}/{}", mobility.id, vehicle.name);
            let place = Placement::Way(track);
            self.add(&mobility.id, Member { name, role: Role::Obu, place, lan: None });
        }
        if !self.names.contains_key(&mobility.id) {
            let what = "no vehicle in the window from from to to; expected at least one";
            self.problems.push(("mobility".to_owned(), what.to_owned()));
        }
    }

    fn nodes(&mut self, field: impl Fn() -> String, name: &str) -> Vec<NodeIndex> {
        match self.names.get(name) {
            Some(nodes) => nodes.clone(),
            // "All" may be none.
            None if ["obus", "rsus"].contains(&name) => Vec::new(),
            None => {
                let what = format!("\"{name}\"; expected a vehicle of the file of movements");
                self.problems.push((field(), what));
                Vec::new()
            }
        }
    }

    /// Adds clients; returns which belong to each `[[client]]`.
    fn clients(&mut self) -> BTreeMap<String, Vec<usize>> {
        let mut groups = BTreeMap::new();
        for (index, client) in self.scenario.client.iter().enumerate() {
            let homes: Vec<(Home, String)> = match &client.behind {
                Some(behind) => {
                    let nodes = self.nodes(|| format!("client.{index}.behind"), behind);
                    let (of, share) = (nodes.len(), client.share.unwrap_or(1.0));
                    let chosen = share_of(nodes, share);
                    if chosen.is_empty() && of > 0 {
                        let what =
                            format!("{share} of {of}, which is nobody; expected a larger one");
                        self.problems.push((format!("client.{index}.share"), what));
                    }
                    let named = |node| (Home::Behind(node), format!("@{}", self.cast.name(node)));
                    chosen.into_iter().map(named).collect()
                }
                None => {
                    let lan =
                        self.cast.lans.iter().position(|lan| Some(lan) == client.lan.as_ref());
                    lan.map(|lan| (Home::Lan(lan), String::new())).into_iter().collect()
                }
            };
            let mut group = Vec::new();
            for (home, suffix) in homes {
                for number in 0..client.count {
                    let number = match client.count {
                        1 => String::new(),
                        _ => format!(".{}", number + 1),
                    };
                    let index = self.cast.clients.len();
                    let name = format!("{}{number}{suffix}", client.id);
                    self.cast.clients.push(CastClient { name, mac: client_mac(index), home });
                    group.push(index);
                }
            }
            groups.insert(client.id.clone(), group);
        }
        groups
    }

    fn flows(&mut self, groups: &BTreeMap<String, Vec<usize>>) {
        let nobody = Vec::new();
        for (of, flow) in self.scenario.flow.iter().enumerate() {
            let from = groups.get(&flow.from).unwrap_or(&nobody);
            let pairs: Vec<(usize, To)> = match flow.to.as_str() {
                "everyone" => from.iter().map(|&from| (from, To::Everyone)).collect(),
                "nobody" => from.iter().map(|&from| (from, To::Nobody)).collect(),
                to if to == flow.from && from.len() == 1 => {
                    let what = format!("{to:?}, a client alone; expected somebody else");
                    self.problems.push((format!("flow.{of}.to"), what));
                    Vec::new()
                }
                to => pairs(from, groups.get(to).unwrap_or(&nobody)),
            };
            for (from, to) in pairs {
                self.flow(of, flow, from, to);
            }
        }
    }

    fn flow(&mut self, of: usize, flow: &FlowSpec, from: usize, to: To) {
        let scenario = self.scenario;
        let mut start = flow.start.unwrap_or(scenario.warm_up).after_start();
        let stop = flow.stop.map_or(scenario.duration, |stop| stop.min(scenario.duration));
        let mut stop = stop.after_start();
        // A vehicle sends and is sent to while it is on the road, and has time to find its way
        // first.
        for client in [Some(from), if let To::Client(to) = to { Some(to) } else { None }] {
            let node = client.and_then(|client| self.cast.vehicle_of(client));
            let Some(node) = node.and_then(|node| self.cast.nodes.get(node.0)) else { continue };
            start = start.max(node.appears() + scenario.warm_up.0);
            stop = node.vanishes().map_or(stop, |end| end.min(stop));
        }
        let every_us = (1e6 / flow.frames_per_s).round().max(1.0);
        let every = Duration::try_from_secs_f64(every_us / 1e6).unwrap_or(Duration::MAX);
        let every = Duration::from_micros(micros(every));
        let arrivals = flow.arrivals;
        if arrivals == ArrivalsSpec::Even {
            // Flows do not send all at once, as hosts do not: each begins another part of its
            // interval later (multiples of the golden ratio are spread evenly).
            let part = (self.cast.flows.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let later = (u128::from(part) * u128::from(micros(every))) >> 32;
            start += Duration::from_micros(u64::try_from(later).unwrap_or_default());
        }
        let size = flow.size_bytes.into();
        self.cast.flows.push(CastFlow { of, from, to, start, stop, every, arrivals, size });
    }

    fn faults(&mut self) {
        for (index, fault) in self.scenario.fault.iter().enumerate() {
            let nodes = self.nodes(|| format!("fault.{index}.node"), &fault.node);
            let peers = match &fault.peer {
                Some(peer) => self.nodes(|| format!("fault.{index}.peer"), peer),
                None => Vec::new(),
            };
            self.cast.faults.push(CastFault { fault: fault.clone(), nodes, peers });
        }
    }

    fn links(&mut self) {
        for (index, link) in self.scenario.link.iter().enumerate() {
            let from = self.nodes(|| format!("link.{index}.from"), &link.from);
            let to = self.nodes(|| format!("link.{index}.to"), &link.to);
            self.cast.links.push(CastLink { link: link.clone(), from, to });
        }
    }
}

impl CastFlow {
    /// Frames of an even flow.
    pub fn count(&self) -> u32 {
        let span = micros(self.stop.since(self.start));
        u32::try_from(span.div_ceil(micros(self.every).max(1))).unwrap_or(u32::MAX)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// Who sends to whom: one to all, all to one, and several to several in turn; of one group each to
/// the next.
fn pairs(from: &[usize], to: &[usize]) -> Vec<(usize, To)> {
    let longest = if from.is_empty() || to.is_empty() { 0 } else { from.len().max(to.len()) };
    let senders = from.iter().cycle().take(longest);
    let receivers = to.iter().cycle().skip(usize::from(from == to)).take(longest);
    senders.zip(receivers).map(|(&from, &to)| (from, To::Client(to))).collect()
}

/// This share of the nodes, spread evenly over them.
fn share_of(nodes: Vec<NodeIndex>, share: f64) -> Vec<NodeIndex> {
    let chosen_before = |place: usize| (place as f64 * share + 1e-9).floor();
    let numbered = nodes.into_iter().enumerate();
    let chosen = numbered.filter(|&(place, _)| chosen_before(place + 1) > chosen_before(place));
    chosen.map(|(_, node)| node).collect()
}

fn stands(at: Point) -> Placement {
    Placement::Stands(Location::new(at.x_m, at.y_m))
}

/// The way of a vehicle of a row, this far behind the first.
fn line(obu: &ObuSpec, path: &[[f64; 2]], behind_m: f64) -> Line {
    let mut corners: Vec<Point> = path.iter().map(|&[x, y]| Point::new(x, y)).collect();
    // It begins its way so much farther back on the line of the first leg, and ends it so much
    // earlier on that of the last.
    let back = |end: Point, next: Point, by_m: f64| {
        let leg_m = end.distance_m(next);
        if leg_m > 0.0 { end.towards(next, by_m / leg_m) } else { end }
    };
    let (first, last) = (corners.first().copied(), corners.last().copied());
    if let [end, next, ..] = corners.as_mut_slice() {
        *end = first.map_or(*end, |first| back(first, *next, -behind_m));
    }
    if let [.., next, end] = corners.as_mut_slice() {
        *end = last.map_or(*end, |last| back(last, *next, behind_m));
    }
    let speed_mps = obu.speed_kmh.unwrap_or(0.0) / 3.6;
    Line { corners, speed_mps, depart: obu.depart.0, at_end: obu.at_end.unwrap_or_default() }
}

fn driving(line: &Line, name: &str, end: Timestamp) -> Placement {
    let vehicle = line.drive(name.to_owned(), end);
    track(&vehicle, end).map_or(Placement::Nowhere, Placement::Way)
}

/// A vehicle that stays, or has not arrived by the end, is there until after the end.
fn track(vehicle: &Vehicle, end: Timestamp) -> Option<Track> {
    let mut waypoints: Vec<(Timestamp, Location)> =
        vehicle.way.iter().map(|w| (w.time, Location::new(w.at.x_m, w.at.y_m))).collect();
    let &(last, place) = waypoints.last()?;
    let after = end.max(last) + Duration::from_secs(1);
    if vehicle.stays {
        waypoints.push((after, place));
    }
    let track = Track::new(waypoints).ok()?;
    (track.end() > track.start()).then_some(track)
}
