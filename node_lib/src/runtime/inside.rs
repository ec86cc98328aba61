//! Looking inside a running node from other threads: [`Inside`] asks, the loop answers between two
//! turns.
//!
//! Three rules keep whoever looks from costing frames:
//!
//! * Questions wait in a bounded queue, and whoever asks waits there too; the loop never does.
//! * All who ask for a [`View`] at a time get the same one. The loop makes the next one so much
//!   later that views take at most a fiftieth of its time ([`SHARE`]), however many ask.
//! * Events go into a bounded ring. Who reads too slowly misses the oldest, and is told how many
//!   they were.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, mpsc, oneshot};

use crate::control::pin::{NoPin, Pin};
use crate::control::ping::Echoed;
use crate::control::positions::Located;
use crate::control::snapshot::View;
use crate::device;
use crate::mac::Mac;
use crate::runtime::command::{Command, Commands};
use crate::runtime::request::{Request, Told};
use crate::time::Timestamp;

/// Questions that wait for the loop; beyond, whoever asks waits for room.
pub const REQUESTS_MAX: usize = 64;

/// Events kept for those that read slowly.
pub const EVENTS_MAX: usize = 512;

/// Views are made no more often than this.
pub const VIEW_EVERY: Duration = Duration::from_millis(20);

/// After a view that took so long to make, the next one is made so many times as long later.
pub const SHARE: u32 = 50;

/// … but no later than this. What takes so long is not the view: the machine slept meanwhile, or
/// others had the core.
pub const VIEW_WITHIN: Duration = Duration::from_secs(1);

/// The loop is gone, or on its last legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node has stopped")]
pub struct Stopped;

/// Asks a running node, from any thread; as many clones as are needed.
#[derive(Clone, Debug)]
pub struct Inside {
    requests: mpsc::Sender<Request>,
    events: broadcast::Sender<Arc<Told>>,
    last: Arc<Mutex<Option<Last>>>,
}

/// The last view, and when it came.
#[derive(Clone, Debug)]
struct Last {
    at: Instant,
    view: Arc<View>,
}

impl Inside {
    /// How the node stands, now or at most [`VIEW_EVERY`] ago.
    ///
    /// # Errors
    /// The node has stopped.
    pub async fn view(&self) -> Result<Arc<View>, Stopped> {
        if let Some(view) = self.recent() {
            return Ok(view);
        }
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::View(reply)).await.map_err(|_| Stopped)?;
        let view = answer.await.map_err(|_| Stopped)?;
        let last = Last { at: Instant::now(), view: Arc::clone(&view) };
        self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(last);
        Ok(view)
    }

    /// Asks who is on the way to a node or client, so many hops far. `None`: no answer came in this
    /// time.
    ///
    /// # Errors
    /// The node has stopped, or others have asked so much since that this was forgotten.
    pub async fn ping(
        &self,
        target: Mac,
        hop_limit: u8,
        patience: Duration,
    ) -> Result<Option<Echoed>, Stopped> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Ping(target, hop_limit, reply);
        self.requests.send(request).await.map_err(|_| Stopped)?;
        match tokio::time::timeout(patience, answer).await {
            Ok(answer) => answer.map(Some).map_err(|_| Stopped),
            Err(_) => Ok(None),
        }
    }

    /// Tells the node where it is; `None`: that is not known any more. Waits while many questions
    /// do, and so must not be called on a thread of tokio.
    ///
    /// # Errors
    /// The node has stopped.
    pub fn locate(&self, located: Option<Located>) -> Result<(), Stopped> {
        self.requests.blocking_send(Request::Position(located)).map_err(|_| Stopped)
    }

    /// Makes the node forget clients: all, or those with this address. Returns how many.
    ///
    /// # Errors
    /// The node has stopped.
    pub async fn forget_clients(&self, which: Option<Mac>) -> Result<usize, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::ForgetClients(which, reply)).await.map_err(|_| Stopped)?;
        let forgotten = answer.await.map_err(|_| Stopped)?;
        // What was seen before is not true any more.
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(forgotten)
    }

    /// Puts clients behind an OBU whatever is heard of them, or no longer. Returns how many pins
    /// that changed, or why none can be.
    ///
    /// # Errors
    /// The node has stopped.
    pub async fn pin_clients(&self, pin: Pin) -> Result<Result<usize, NoPin>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::PinClients(pin, reply)).await.map_err(|_| Stopped)?;
        let pinned = answer.await.map_err(|_| Stopped)?;
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(pinned)
    }

    /// Every event from now on. One that misses some is told how many.
    pub fn events(&self) -> broadcast::Receiver<Arc<Told>> {
        self.events.subscribe()
    }

    fn recent(&self) -> Option<Arc<View>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Last { at, view } = last.as_ref()?;
        (at.elapsed() < VIEW_EVERY).then(|| Arc::clone(view))
    }
}

/// Instructions from elsewhere, and questions and listeners of [`Inside`].
#[derive(Debug)]
pub struct Attended<C> {
    commands: C,
    requests: mpsc::Receiver<Request>,
    events: broadcast::Sender<Arc<Told>>,
}

/// A loop that takes its instructions from `commands` can be asked as well.
pub fn attend<C: Commands>(commands: C) -> (Attended<C>, Inside) {
    let (asks, requests) = mpsc::channel(REQUESTS_MAX);
    let (events, _) = broadcast::channel(EVENTS_MAX);
    let inside = Inside { requests: asks, events: events.clone(), last: Arc::default() };
    (Attended { commands, requests, events }, inside)
}

impl<C: Commands> Commands for Attended<C> {
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command> {
        self.commands.poll_command(cx)
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Request> {
        match self.requests.poll_recv(cx) {
            Poll::Ready(Some(request)) => Poll::Ready(request),
            // `None` means that nobody can ask any more.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn has_listeners(&self) -> bool {
        self.events.receiver_count() > 0
    }

    fn tell(&mut self, told: Told) {
        // An error means that the last listener has gone meanwhile.
        let _ = self.events.send(Arc::new(told));
    }
}

/// Those who wait for an answer to a ping, in the loop.
#[derive(Debug, Default)]
pub(super) struct Pingers {
    waiting: VecDeque<(u32, oneshot::Sender<Echoed>)>,
    /// The last number.
    last: u32,
}

impl Pingers {
    /// Somebody waits for the answer with this number, which is new each time.
    pub(super) fn add(&mut self, pinger: oneshot::Sender<Echoed>) -> u32 {
        self.waiting.retain(|(_, pinger)| !pinger.is_closed());
        if self.waiting.len() >= REQUESTS_MAX {
            self.waiting.pop_front();
        }
        // Nobody is to know the numbers beforehand, or answers could be made up. A kernel that
        // gives none leaves them in a row.
        let drawn = device::random::<4>().map(u32::from_ne_bytes);
        let nonce = drawn.unwrap_or_else(|_| self.last.wrapping_add(1));
        self.last = nonce;
        self.waiting.push_back((nonce, pinger));
        nonce
    }

    /// Hands an answer to whoever waits for it.
    pub(super) fn answer(&mut self, echoed: Echoed) {
        let place = self.waiting.iter().position(|(nonce, _)| *nonce == echoed.nonce);
        if let Some((_, pinger)) = place.and_then(|place| self.waiting.remove(place)) {
            // Who asked may have gone.
            let _ = pinger.send(echoed);
        }
    }
}

/// Those who wait for a view, in the loop.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    waiting: Vec<oneshot::Sender<Arc<View>>>,
    /// The next view is made no sooner.
    not_before: Timestamp,
}

impl Viewers {
    pub(super) fn add(&mut self, viewer: oneshot::Sender<Arc<View>>) {
        self.waiting.push(viewer);
    }

    /// No more can be taken.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= REQUESTS_MAX
    }

    /// When a view is to be made.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        (!self.waiting.is_empty()).then_some(self.not_before)
    }

    /// The view they waited for. It was made from `began` to `ended`.
    pub(super) fn answer(&mut self, view: View, began: Timestamp, ended: Timestamp) {
        let view = Arc::new(view);
        for viewer in self.waiting.drain(..) {
            // Who does not wait any more gets nothing.
            let _ = viewer.send(Arc::clone(&view));
        }
        let share = ended.since(began).saturating_mul(SHARE);
        self.not_before = ended + share.clamp(VIEW_EVERY, VIEW_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn all_who_wait_get_the_same_view_and_the_next_is_made_later() {
        let mut viewers = Viewers::default();
        assert_eq!(viewers.deadline(), None);
        let (answers, senders): (Vec<_>, Vec<_>) = (0..3)
            .map(|_| {
                let (sender, answer) = oneshot::channel();
                (answer, sender)
            })
            .unzip();
        senders.into_iter().for_each(|sender| viewers.add(sender));
        assert_eq!(viewers.deadline(), Some(Timestamp::ZERO), "at once");
        viewers.answer(View::default(), at(100), at(100));
        let views: Vec<_> =
            answers.into_iter().map(|mut answer| answer.try_recv().unwrap()).collect();
        assert!(views.windows(2).all(|two| Arc::ptr_eq(&two[0], &two[1])));
        viewers.add(oneshot::channel().0);
        assert_eq!(viewers.deadline(), Some(at(120)));
    }

    #[test]
    fn a_view_that_took_long_is_made_less_often() {
        let mut viewers = Viewers::default();
        viewers.answer(View::default(), at(100), at(102));
        viewers.add(oneshot::channel().0);
        assert_eq!(viewers.deadline(), Some(at(202)), "fifty times two milliseconds later");
    }

    #[test]
    fn a_view_during_which_the_machine_slept_keeps_nobody_waiting() {
        let mut viewers = Viewers::default();
        viewers.answer(View::default(), at(100), at(3_600_100));
        viewers.add(oneshot::channel().0);
        assert_eq!(viewers.deadline(), Some(at(3_601_100)), "after a second, and not two days");
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let mut viewers = Viewers::default();
        for _ in 0..REQUESTS_MAX {
            assert!(!viewers.is_full());
            viewers.add(oneshot::channel().0);
        }
        assert!(viewers.is_full());
    }
}
