//! What is said on the control socket of a daemon.
//!
//! | module | what it is |
//! |---|---|
//! | [`message`] | every line, both ways, as a type; the version; the limits |
//! | [`record`] | what a daemon keeps of what happened |
//! | [`health`] | what is wrong with a node, and the cure |
//! | [`position`] | where a node is, as it tells |
//! | [`table`] | what there is to see, as JSON for programs |
//! | [`why`] | what decided at a change of upstream, in words |
//! | [`path`] | where the sockets are |
//! | [`client`] | asks and listens, for programs that may wait |
//! | [`feed`] | listens for as long as anybody wants, over the ends of connections and daemons |
//!
//! A crate of its own because both ends need it: the daemons, and whatever talks to them. It does
//! no I/O but in [`client`], and knows nothing of devices. The protocol with an example of each
//! line: `docs/control-socket.md`.

pub mod client;
pub mod feed;
pub mod health;
pub mod message;
pub mod path;
pub mod position;
pub mod record;
pub mod table;
pub mod why;
