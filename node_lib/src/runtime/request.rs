//! What a loop is asked, and what it tells those that listen.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::control::event::Event;
use crate::control::pin::{NoPin, Pin};
use crate::control::ping::Echoed;
use crate::control::positions::Located;
use crate::control::snapshot::{KnownRoute, View};
use crate::mac::Mac;
use crate::time::Timestamp;

/// A question to the loop, and where its answer goes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Request {
    /// How do you stand?
    View(oneshot::Sender<Arc<View>>),
    /// Forget clients: all, or those with this address. The answer is how many there were.
    ForgetClients(Option<Mac>, oneshot::Sender<usize>),
    /// Put clients behind an OBU, or no longer. The answer is how many pins that changed.
    PinClients(Pin, oneshot::Sender<Result<usize, NoPin>>),
    /// Who is on the way to this node or client, so many hops far? Whoever asks sees to it that it
    /// does not wait for ever.
    Ping(Mac, u8, oneshot::Sender<Echoed>),
    /// No question: this is where the node is; `None`: that is not known any more.
    Position(Option<Located>),
}

/// An event as those who listen are told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// When, on the clock of the loop.
    pub at: Timestamp,
    /// What.
    pub event: Event,
    /// For a change of upstream: all there was to choose from, right after the decision.
    pub routes: Vec<KnownRoute>,
}
