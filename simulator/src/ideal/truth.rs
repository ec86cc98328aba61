//! What every node of an ideal routing knows: [`Truth`], which an [`Oracle`] reads off the world.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node_lib::control::event::Attachment;
use node_lib::{Mac, NodeId, Timestamp};
use sim::{NodeIndex, Role, World};

use super::forest::{Forest, HOP_MIN};
use crate::cast::{self, Cast, CastClient, radio_mac};

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Behind this OBU.
    Vehicle(usize),
    /// On the road side, where the RSUs of this group bring it what is for it.
    RoadSide(usize),
}

/// What all nodes of a world know, without a word from anybody.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    homes: BTreeMap<Mac, Home>,
    nodes: BTreeMap<NodeId, usize>,
    /// By node: the group of an RSU. Those on one LAN are one group.
    groups: Vec<Option<usize>>,
    /// By group: the ways of all nodes to the RSU that is best for them.
    forests: Vec<Forest>,
    /// The RSU over which each client was last heard on its LAN: where a switch sends what is for
    /// it.
    ports: BTreeMap<Mac, usize>,
}

/// What all nodes of a world share. They take turns.
pub(crate) type SharedTruth = Arc<Mutex<Truth>>;

/// Who has a frame next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdealNextHop {
    /// A neighbour.
    Radio(Mac),
    /// Another RSU on the same LAN.
    Lan(Mac),
}

impl Truth {
    fn of(cast: &Cast) -> Self {
        let mut lans = BTreeMap::new();
        let mut count = 0;
        let mut new_group = || {
            count += 1;
            count - 1
        };
        let groups: Vec<Option<usize>> = cast
            .nodes
            .iter()
            .map(|node| match (node.role, node.lan) {
                (Role::Obu, _) => None,
                (Role::Rsu, Some(lan)) => Some(*lans.entry(lan).or_insert_with(&mut new_group)),
                (Role::Rsu, None) => Some(new_group()),
            })
            .collect();
        let home = |client: &CastClient| {
            Some(match client.home {
                cast::Home::Lan(lan) => Home::RoadSide(*lans.get(&lan)?),
                cast::Home::Behind(NodeIndex(node)) => match groups.get(node)? {
                    Some(group) => Home::RoadSide(*group),
                    None => Home::Vehicle(node),
                },
            })
        };
        let homes = cast.clients.iter().filter_map(|client| Some((client.mac, home(client)?)));
        let ids = (0..cast.nodes.len()).map(|node| (NodeId::from(radio_mac(node)), node));
        Self {
            homes: homes.collect(),
            nodes: ids.collect(),
            forests: vec![Forest::default(); count],
            groups,
            ports: BTreeMap::new(),
        }
    }

    fn group(&self, node: usize) -> Option<usize> {
        self.groups.get(node).copied().flatten()
    }

    fn forest(&self, group: usize) -> Option<&Forest> {
        self.forests.get(group)
    }

    /// Is what is for `to` there when it is at `at`? On one LAN any RSU will do.
    pub(super) fn has_arrived(&self, at: usize, to: NodeId) -> bool {
        let Some(&to) = self.nodes.get(&to) else { return false };
        at == to || self.group(at).is_some_and(|group| self.group(to) == Some(group))
    }

    /// The node to which `at` sends a frame from its TAP that is for this client; none if that is
    /// another's business, or nobody's.
    pub(super) fn takes(&self, at: usize, client: Mac) -> Option<NodeId> {
        let to = match (*self.homes.get(&client)?, self.group(at)) {
            (Home::Vehicle(vehicle), None) => vehicle,
            // A switch that does not know the client brings each RSU a copy.
            (Home::Vehicle(vehicle), Some(group)) => {
                let best = || self.forest(group)?.root(vehicle);
                let port = self.ports.get(&client).copied().or_else(best);
                if port != Some(at) {
                    return None;
                }
                vehicle
            }
            (Home::RoadSide(group), own) if own == Some(group) => return None,
            (Home::RoadSide(group), _) => self.forest(group)?.root(at)?,
        };
        (to != at).then(|| radio_mac(to).into())
    }

    /// A client was heard on the LAN over this RSU.
    pub(super) fn note_port(&mut self, client: Mac, rsu: usize) {
        self.ports.insert(client, rsu);
    }

    /// Who has a frame next that is at `at`, for the node `to`: the next on the way there, or else
    /// towards the root that both have a way to.
    pub(super) fn next(&self, at: usize, to: NodeId) -> Option<IdealNextHop> {
        let &to = self.nodes.get(&to)?;
        let radio = |node: usize| IdealNextHop::Radio(radio_mac(node));
        if let Some(group) = self.group(to) {
            return self.forest(group)?.next(at).map(radio);
        }
        let joint = |forest: &&Forest| forest.cost_of(at) + forest.cost_of(to);
        let forest = match self.group(at) {
            Some(group) => self.forest(group)?,
            None => self.forests.iter().min_by(|a, b| joint(a).total_cmp(&joint(b)))?,
        };
        let root = forest.root(to)?;
        match forest.down(at, to).or_else(|| forest.next(at)) {
            Some(node) => Some(radio(node)),
            None => {
                (forest.root(at)? == at && root != at).then(|| IdealNextHop::Lan(radio_mac(root)))
            }
        }
    }

    /// The best way from here to an RSU.
    pub(super) fn attachment(&self, at: usize) -> Option<Attachment> {
        let forest = self.forests.iter().min_by(|a, b| a.cost_of(at).total_cmp(&b.cost_of(at)))?;
        let (rsu, upstream) = (forest.root(at)?, forest.next(at)?);
        let hops = u8::try_from(forest.way(at).count() - 1).unwrap_or(u8::MAX);
        let id = |node| NodeId::from(radio_mac(node));
        Some(Attachment { rsu: id(rsu), upstream: id(upstream), hops })
    }
}

/// Reads the truth off a world again and again.
pub(crate) struct Oracle {
    truth: SharedTruth,
    every: Duration,
    next: Timestamp,
}

impl Oracle {
    /// For a world with this cast, whose links change so often.
    pub(crate) fn new(cast: &Cast, every: Duration) -> Self {
        let truth = Arc::new(Mutex::new(Truth::of(cast)));
        Self { truth, every, next: Timestamp::ZERO }
    }

    /// What its nodes share.
    pub(crate) fn truth(&self) -> SharedTruth {
        Arc::clone(&self.truth)
    }

    /// When it wants to look.
    pub(crate) fn next(&self) -> Timestamp {
        self.next
    }

    /// Looks at how things are now.
    pub(crate) fn look(&mut self, world: &World) {
        self.next = world.now() + self.every;
        let mut truth = self.truth.lock().unwrap_or_else(PoisonError::into_inner);
        let Truth { groups, forests, .. } = &mut *truth;
        for (group, forest) in forests.iter_mut().enumerate() {
            let roots = groups.iter().enumerate();
            let roots = roots.filter(|(_, of)| **of == Some(group)).map(|(node, _)| node);
            *forest = Forest::grow(
                groups.len(),
                roots,
                |at| world.hearers(NodeIndex(at)).into_iter().map(|to| to.0).collect(),
                |a, b| hop(world, NodeIndex(a), NodeIndex(b)),
            );
        }
    }
}

/// What a hop costs: transmissions until one is acknowledged, on average (ETX: De Couto, Aguayo,
/// Bicket and Morris, "A high-throughput path metric for multi-hop wireless routing", MobiCom
/// 2003). Of ways that cost the same the one with the shorter hops, which disturbances harm less.
fn hop(world: &World, a: NodeIndex, b: NodeIndex) -> f64 {
    let both = world.delivery(a, b) * world.delivery(b, a);
    let distance_m = match (world.position(a), world.position(b)) {
        (Some(here), Some(there)) => here.distance_m(there),
        _ => 0.0,
    };
    (1.0 / both).max(HOP_MIN) + SQUARE * distance_m * distance_m
}

/// So little that it decides between equals only: a hop of a kilometre costs 0.001 more.
const SQUARE: f64 = 1e-9;
