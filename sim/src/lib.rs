//! # Simulation
//!
//! A [`World`] runs any number of nodes in one thread, in virtual time, from one seed: the same
//! [`Node`](node_lib::control::node::Node)s the daemons run, unchanged. Several worlds run on
//! several threads, and [`World::node_as`] shows a node with its tables. A world reads no clock and
//! opens no socket; ten minutes of four nodes take a fraction of a second. Two worlds with the same
//! seed and the same calls do the same to the byte, so a failure is a number.
//!
//! A crate of its own needs `node_lib` without its default features, a role or both, and `sim`:
//! `docs/howto/own-radio.md`.
//!
//! ```
//! use node_lib::Mac;
//! use sim::{Fault, Flow, Link, Place, Role, Target, World, topology::Graph};
//! use obu_lib::Obu;
//! use rsu_lib::Rsu;
//! use std::time::Duration;
//! # use node_lib::Timestamp;
//!
//! let radio = |n| Mac([2, 0, 0, 0, 0, n]);
//! let mut world = World::new(7);
//! let rsu = world.add(Role::Rsu, radio(1), |start, now| {
//!     Rsu::new(rsu_lib::Settings::default().config(start), now)
//! });
//! let obu = world.add(Role::Obu, radio(2), |start, now| {
//!     Obu::new(obu_lib::Settings::default().config(start), now)
//! });
//! world.link_all(&Graph::chain(2), Link::lossy(0.01));
//!
//! // A host behind the RSU sends to a client behind the OBU, a hundred frames a second; for half a
//! // second nothing passes between the two nodes.
//! let host = world.add_client(Mac([2, 0, 0, 0, 1, 1]), Place::Tap(rsu));
//! let rider = world.add_client(Mac([2, 0, 0, 0, 1, 2]), Place::Tap(obu));
//! let at = Timestamp::from_millis;
//! let flow = world.add_flow(Flow::steady(
//!     host, Target::Client(rider), at(1000), Duration::from_millis(10), 300));
//! world.at(at(2000), Fault::Cut(rsu, obu));
//! world.at(at(2500), Fault::Heal(rsu, obu));
//!
//! world.run_until(at(5000))?; // an error is a broken rule, with the seed and what led to it
//! let log = world.flow(flow).unwrap();
//! assert!(log.received(rider) > 200);
//! # Ok::<(), Box<sim::Violation>>(())
//! ```
//!
//! ## What is in a world
//!
//! | part | what it does |
//! |---|---|
//! | node | made by a [`Factory`] at every start, so that it can crash and start again and remember nothing. Boot counts, the wait for them and clocks are those of the daemons: see [`Counting`], [`World::time_of_day`], [`World::clock`] |
//! | [`Link`] | one direction between two nodes: loss, delay, jitter, doubling. A frame sent once reaches every linked node by its own luck; unicast passes the filter of its addressee only ([`World::hear_all`] lifts that) |
//! | [`LinkTrace`] | loss and delay of links over time ([`World::replay`]): the same trace gives a testbed the same links |
//! | [`Location`], [`Track`] | where a node stands ([`World::place`]) or drives ([`World::follow`]); a vehicle exists from its first waypoint to its last |
//! | [`RadioModel`] | instead of links ([`World::set_radio`]): who hears whom follows from positions, see [`radio`] |
//! | [`Reach`], [`Medium`] | a radio of your own instead ([`World::set_medium`]): in one line, or whole, see [`medium`] |
//! | [`Fault`] | cut, heal, one way or both; out of range; radio down; crash, restart, goodbye, a process that stands still; another link. Now ([`World::apply`]) or later ([`World::at`]) |
//! | [`transport`](node_lib::transport) | between a node and its radio, as in the daemons: bundles, and an outbox for what a full radio does not take; the TAP has an MTU and a queue ([`World::tap_counters`]) |
//! | [`Lan`] | a learning switch. The TAPs of several RSUs plugged into one are one road-side LAN |
//! | client | an address behind a TAP or on a LAN. It takes what is for it or for all |
//! | [`Flow`] | numbered frames from one client to another; its [`FlowLog`] knows which arrived, when, the longest time cut off, and on which radio hop the others were lost |
//! | [`Stats`], [`radio::Airtime`] | frames and bytes on the air by message type; how full the channel was at every receiver |
//! | [`topology`] | shapes, random graphs, all small graphs, and who can reach whom |
//!
//! What is not in it without a [`RadioModel`]: no airtime, so no collisions and no queue for the
//! medium. Unicast is repeated by the radio only after [`World::try_again`]. A link with jitter may
//! put frames out of order. A cut, and a restart of the receiver, take what is under way.
//!
//! ## Vehicles on a road
//!
//! ```
//! use node_lib::{Mac, Timestamp};
//! use sim::radio::{Access, Csma, RadioModel};
//! use sim::{Location, Role, Track, World};
//! # use obu_lib::Obu;
//! # use rsu_lib::Rsu;
//!
//! let mut world = World::new(7);
//! // Heard up to 300 m, with the airtime and the collisions of 802.11p.
//! let access = Access::Csma(Csma::DEFAULT);
//! world.set_radio(RadioModel { access, ..RadioModel::disk(300.0, 0.0) });
//! # let radio = |n| Mac([2, 0, 0, 0, 0, n]);
//! let rsu = world.add_node(Role::Rsu, radio(1), Box::new(|start, now| {
//!     Box::new(Rsu::new(rsu_lib::Settings::default().config(start), now))
//! }));
//! world.place(rsu, Location::new(0.0, 10.0));
//! // Off until its track begins, a second from now; then 20 m/s from west to east.
//! let car = world.add_stopped(Role::Obu, radio(2), Box::new(|start, now| {
//!     Box::new(Obu::new(obu_lib::Settings::default().config(start), now))
//! }));
//! let [west, east] = [Location::new(-400.0, 0.0), Location::new(400.0, 0.0)];
//! world.follow(car, Track::straight(Timestamp::from_millis(1000), west, east, 20.0)?);
//!
//! world.run_until(Timestamp::from_millis(21_000))?;
//! assert!(world.attachment(car).is_some(), "it passes the RSU");
//! assert!(world.airtime().worst().control < 0.05);
//! world.run_until(Timestamp::from_millis(42_000))?;
//! assert!(world.node(car).is_none(), "it left the map");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Positions are looked at every 100 ms ([`RadioModel::update_every`](radio::RadioModel)); who is
//! near is found through a grid, so the work grows with nodes times neighbours. One event brings a
//! frame to all who hear it. Memory is a few kilobytes a node; take what nodes report
//! ([`World::take_events`]) now and then, for it is the one thing that grows with time, with
//! [`FlowLog`] and what is kept on request.
//!
//! ## Rules that are always watched
//!
//! Each [`Rule`] is checked on every frame of every run; [`World::run_until`] returns the first
//! [`Violation`]. *Visited twice*: a copy of a data packet came to a node it had been to. Each copy
//! carries the way it went, so a frame doubled by the medium is not mistaken for a loop. *Cycle*:
//! the upstreams of nodes attached to one RSU never lead in a circle, not for a microsecond.
//! *Flooded twice*, *hop limit*: a relay forwards a flood once and lowers the limit. *Doubled*: no
//! numbered frame reaches a TAP or a client twice. *Wrong delivery*, *echo*: no frame comes out
//! where it is not for, or where it came from. *Malformed*: whatever is sent can be parsed and
//! bears its sender's address. *Spin*: no node keeps its driver busy. `World::now` never goes back.
//!
//! ## Randomness
//!
//! Every purpose has its own stream ([`Dice`], PCG), derived from the world's seed: each direction
//! of each link, each start of each node. Under a [`RadioModel`] each frame has its own at each
//! receiver, derived from both and the frame's number. A frame more on one link does not change the
//! luck of another. Logarithms and powers are those of `libm`, not of the platform: the same bits
//! on every machine. Things planned for the same microsecond happen in the order they were planned.
//!
//! ## Seeing a failure again
//!
//! The tests in `sim/tests/sim_*.rs` run many worlds and print, for the first that fails, its last
//! lines and the command that repeats it:
//!
//! ```sh
//! V2X_SIM_SEED=42 cargo test -p sim --test sim random:: -- --nocapture
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `V2X_SIM_SEED` | this seed and no other |
//! | `V2X_SIM_TRACE` | with one seed: the file its whole trace is written to |
//! | `V2X_SIM_RUNS` | how many runs, instead of the quick number |
//! | `V2X_SIM_SHOW` | how many failures are listed, one line each |

mod batman;
mod check;
mod dice;
mod fault;
mod frame;
mod guest;
mod index;
mod lan;
mod link;
mod link_trace;
pub mod medium;
pub mod mobility;
pub mod radio;
mod reach;
mod stats;
pub mod topology;
mod trace;
mod traffic;
mod world;

pub use check::{Rule, Violation};
pub use dice::{Dice, subseed};
pub use fault::Fault;
pub use frame::{Flight, FrameKind, Packet, inner_frames};
pub use guest::Guest;
pub use index::{ClientIndex, FlowIndex, LanIndex, NodeIndex};
pub use lan::{Lan, LanPort};
pub use link::Link;
pub use link_trace::{LinkStep, LinkTrace, LinkTraceError};
pub use medium::{Air, Medium, Step};
pub use mobility::{Location, Track};
pub use radio::{RadioModel, Strength};
pub use reach::Reach;
pub use stats::{Stats, Tally};
pub use traffic::{AirLoss, Arrivals, Flow, FlowLog, Numbered, Target};
pub use world::{
    Counting, DAY_OFF_MAX, Delivery, Factory, Place, RadioFrame, Role, TapCounters, TapDelivery,
    World,
};
