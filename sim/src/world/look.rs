//! Looking at a [`World`]: its nodes, what they reported, what became of frames.

use std::any::Any;

use crate::check::Violation;
use crate::index::{FlowIndex, NodeIndex};
use crate::stats::Stats;
use crate::topology::Graph;
use crate::traffic::FlowLog;
use crate::world::{RadioFrame, Role, Slot, TapDelivery, World};
use node_lib::control::event::{Attachment, Event};
use node_lib::control::node::Node;
use node_lib::time::Timestamp;

impl World {
    /// Time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The first rule that was broken, if one was.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_deref()
    }

    /// How often rules were broken so far, after [`World::go_on_when_broken`].
    pub fn breaches(&self) -> u64 {
        self.breaches.unwrap_or_default()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many things happened: a measure of work.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// Hash over the whole trace so far.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// The trace since [`World::keep_trace`].
    pub fn trace_text(&self) -> &str {
        self.trace.text()
    }

    /// The last lines of the trace, always kept.
    pub fn last_lines(&self) -> Vec<String> {
        self.trace.last()
    }

    /// A running node.
    pub fn node(&self, node: NodeIndex) -> Option<&dyn Node> {
        let guest = self.slots.get(node.0)?.node.as_deref()?;
        Some(guest)
    }

    /// A running node as what it is, with its tables and all else its type shows; `None` also if it
    /// is something else.
    ///
    /// ```
    /// use node_lib::Mac;
    /// use sim::{Link, NodeIndex, Role, World, topology::Graph};
    /// use node_lib::Timestamp;
    /// use obu_lib::Obu;
    /// use rsu_lib::Rsu;
    ///
    /// let radio = |n| Mac([2, 0, 0, 0, 0, n]);
    /// let mut world = World::new(7);
    /// let rsu = world.add_node(Role::Rsu, radio(1), Box::new(|start, now| {
    ///     Box::new(Rsu::new(rsu_lib::Settings::default().config(start), now))
    /// }));
    /// let obu = world.add_node(Role::Obu, radio(2), Box::new(|start, now| {
    ///     Box::new(Obu::new(obu_lib::Settings::default().config(start), now))
    /// }));
    /// world.link_all(&Graph::chain(2), Link::CLEAN);
    /// world.run_until(Timestamp::from_millis(3000))?;
    ///
    /// let attached = world.node_as::<Rsu>(rsu).unwrap().attached();
    /// assert_eq!(attached.len(), 1, "the RSU knows its OBU");
    /// assert!(world.node_as::<Obu>(obu).unwrap().attachment().is_some());
    /// assert!(world.node_as::<Obu>(rsu).is_none(), "it is no OBU");
    /// # Ok::<(), Box<sim::Violation>>(())
    /// ```
    pub fn node_as<N: Node + 'static>(&self, node: NodeIndex) -> Option<&N> {
        let guest: &dyn Any = self.slots.get(node.0)?.node.as_deref()?;
        guest.downcast_ref()
    }

    /// Nodes of this role, running or not.
    pub fn nodes(&self, role: Role) -> impl Iterator<Item = NodeIndex> {
        let of_role = move |(_, slot): &(usize, &Slot)| slot.role == role;
        self.slots.iter().enumerate().filter(of_role).map(|(index, _)| NodeIndex(index))
    }

    /// What the node last said it sends through.
    pub fn attachment(&self, node: NodeIndex) -> Option<Attachment> {
        self.slots.get(node.0)?.details.attachment
    }

    /// What nodes reported, in order, since [`World::take_events`].
    pub fn events(&self) -> &[(Timestamp, NodeIndex, Event)] {
        &self.events
    }

    /// Takes what nodes reported: long runs of many nodes would fill the memory with it.
    pub fn take_events(&mut self) -> Vec<(Timestamp, NodeIndex, Event)> {
        std::mem::take(&mut self.events)
    }

    /// What nodes handed to their TAPs since [`World::keep_taps`].
    pub fn taps(&self) -> &[TapDelivery] {
        self.taps.as_deref().unwrap_or_default()
    }

    /// What nodes sent to the radio since [`World::keep_air`].
    pub fn air(&self) -> &[RadioFrame] {
        self.air.as_deref().unwrap_or_default()
    }

    /// What became of a flow.
    pub fn flow(&self, flow: FlowIndex) -> Option<&FlowLog> {
        self.flows.get(flow.0 as usize).map(|(_, log)| log)
    }

    /// What one node sent over the air.
    pub fn stats_of(&self, node: NodeIndex) -> Stats {
        self.slots.get(node.0).map(|slot| slot.details.stats).unwrap_or_default()
    }

    /// What all nodes sent over the air.
    pub fn stats(&self) -> Stats {
        self.slots.iter().fold(Stats::default(), |sum, slot| sum + slot.details.stats)
    }

    /// Data packets a node sent more than once to the same neighbour: no loop, but wasted air.
    pub fn repeats(&self) -> u64 {
        self.checker.repeats()
    }

    /// Who can now hear whom in both directions. The graph has all nodes; those that are off have
    /// no edges. Left out are links that lose everything and, under a [`RadioModel`], those that
    /// lose more than half.
    ///
    /// [`RadioModel`]: crate::radio::RadioModel
    pub fn graph(&self) -> Graph {
        if self.placed.is_some() {
            return self.graph_of_places();
        }
        let mut graph = Graph::empty(self.slots.len());
        for (from, paths) in self.paths.iter().enumerate() {
            for &to in paths.keys().filter(|&&to| to > from) {
                if self.passes(from, to) && self.passes(to, from) {
                    graph.link(from, to);
                }
            }
        }
        graph
    }

    /// The oracle: hops from each node to the nearest running RSU over present links.
    pub fn hops_to_rsu(&self) -> Vec<Option<usize>> {
        let running = |node: &NodeIndex| self.node(*node).is_some();
        self.graph().hops_to(self.nodes(Role::Rsu).filter(running).map(|node| node.0))
    }
}
