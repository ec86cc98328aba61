//! The seam between a node and whoever drives it ([`node`]), and the parts both control planes are
//! made of.
//!
//! | module | what it decides |
//! |---|---|
//! | [`node`] | the seam, and what goes in and out |
//! | [`reassembly`] | data messages that came in parts |
//! | [`at_risk`] | copies of frames that may never arrive |
//! | [`duplicates`] | whether a data frame was seen before |
//! | [`client_cache`] | which MAC is behind which node |
//! | [`inner`] | what a bridge must know of the frame inside |
//! | [`deadline`] | when a node wants to be called, and why |
//! | [`replies`] | what is to be sent, and the buffers it is built in |
//! | [`table`] | a map for a few entries that are looked up with every frame |
//! | [`radio`] | how a message becomes a frame, and which frames are ours |
//! | [`next_hop`] | to whom a data frame goes, and how long it may be there |
//! | [`mss`] | how long the segments of a TCP connection may be |
//! | [`path_mtu`] | what senders of packets that are too long are told |
//! | [`random`] | jitter and nonces, from a seed |
//! | [`traffic_class`] | how urgent a frame is |
//! | [`load`] | how full the air is of heartbeats |
//! | [`positions`] | where the node is, and where others say that they are |
//! | [`answer_scope`] | whom an answer goes to when many ask at once |
//! | [`snapshot`] | how a node stands, for whoever looks inside |
//! | [`token_bucket`] | how often something may happen |
//! | [`repeated`] | what is said several times because nobody acknowledges it |
//! | [`counters`], [`event`] | what is counted, and what an operator is told |
//! | [`ping`], [`echo`] | what an operator asks over the radio; what becomes of it on its way |
//! | [`pin`] | which clients an operator puts behind an OBU |

pub mod answer_scope;
pub mod at_risk;
pub mod client_cache;
pub mod counters;
pub mod deadline;
pub mod duplicates;
pub mod echo;
pub mod event;
pub mod inner;
pub mod load;
pub mod mss;
pub mod next_hop;
pub mod node;
pub mod path_mtu;
pub mod pin;
pub mod ping;
pub mod positions;
pub mod radio;
pub mod random;
pub mod reassembly;
pub mod repeated;
pub mod replies;
pub mod snapshot;
pub mod table;
pub mod token_bucket;
pub mod traffic_class;
