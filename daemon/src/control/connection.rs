//! One client of the control socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use control_socket::health;
use control_socket::message::{
    Access, AnswerLine, Ask, PinAsk, PingAsk, Pinged, REQUEST_MAX, Refusal, RefusalKind, Reloaded,
    RequestLine, SUBSCRIPTIONS_MAX, SetAsk, Topic, Topics, Update,
};
use node_lib::control::pin::Pin;
use node_lib::messages::MAX_HOPS;
use node_lib::messages::control::announcement::{Client, MAX_VLAN};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::debug;

use super::keeper::{Notice, now_unix_ms};
use super::shared::{Shared, elsewhere, stopped, unable};
use crate::recording::RecordingSwitch;
use crate::reload::{self, Reload};

/// A client that takes nothing for so long is left.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Nobody waits for longer for the answer to a ping.
const PING_MS_MAX: u16 = 10_000;

/// What has no moment of its own is told to subscribers this often.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

/// Lines to a client.
pub(super) struct LineWriter {
    stream: OwnedWriteHalf,
    line: Vec<u8>,
}

impl LineWriter {
    pub(super) fn new(stream: OwnedWriteHalf) -> Self {
        Self { stream, line: Vec::new() }
    }

    /// Sends one line. An error ends the connection: the client has gone, or takes nothing.
    pub(super) async fn line(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, what)?;
        self.line.push(b'\n');
        let written = tokio::time::timeout(STALLED_AFTER, self.stream.write_all(&self.line));
        written.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// What a client wants to be told of.
struct Subscription {
    id: u64,
    topics: Vec<Topic>,
    /// Who the node is, and what the client was told last of topics that are told when they change.
    last: Topics,
}

struct Connection {
    shared: Arc<Shared>,
    access: Access,
    out: LineWriter,
    subscriptions: Vec<Subscription>,
    news: broadcast::Receiver<Arc<Notice>>,
    refresh: Interval,
}

/// Serves a client until it goes, or takes nothing any more.
pub(super) async fn serve(stream: UnixStream, shared: Arc<Shared>, access: Access) {
    let (lines, out) = stream.into_split();
    let mut refresh = interval(REFRESH_EVERY);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let news = shared.keeper.subscribe();
    let out = LineWriter::new(out);
    let mut connection =
        Connection { shared, access, out, subscriptions: Vec::new(), news, refresh };
    if let Err(error) = connection.run(BufReader::new(lines)).await {
        debug!(%error, "control socket: a client is left");
    }
}

impl Connection {
    async fn run(&mut self, mut lines: BufReader<OwnedReadHalf>) -> io::Result<()> {
        self.out.line(&self.shared.hello(self.access)).await?;
        let mut line = Vec::new();
        loop {
            // A line that has begun stays in `line` while something else is done.
            let room = (REQUEST_MAX + 1).saturating_sub(line.len());
            let mut lines = (&mut lines).take(room as u64);
            let wants_refresh = !self.subscriptions.is_empty();
            tokio::select! {
                read = lines.read_until(b'\n', &mut line) => {
                    read?;
                    if line.last() != Some(&b'\n') {
                        if line.len() > REQUEST_MAX {
                            let text = format!("a request has at most {REQUEST_MAX} bytes");
                            self.refuse(0, RefusalKind::TooLong, text).await?;
                        }
                        return Ok(());
                    }
                    self.handle(&line).await?;
                    line.clear();
                }
                news = self.news.recv() => self.pass_on(news).await?,
                _ = self.refresh.tick(), if wants_refresh => self.refresh().await?,
            }
        }
    }

    async fn handle(&mut self, line: &[u8]) -> io::Result<()> {
        let RequestLine { id, ask } = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => {
                let text = format!("{error}; expected such as {{\"id\":1,\"get\":[\"view\"]}}");
                return self.refuse(0, RefusalKind::Malformed, text).await;
            }
        };
        if ask.is_change() && self.access == Access::ReadOnly {
            let text = "this socket is for looking only; expected its .rw.sock".to_owned();
            return self.refuse(id, RefusalKind::ReadOnly, text).await;
        }
        match self.answer(id, ask).await {
            Ok(topics) => {
                self.out.line(&AnswerLine { id, ok: Some(Box::new(topics)), error: None }).await
            }
            Err(Refusal { kind, text }) => self.refuse(id, kind, text).await,
        }
    }

    async fn answer(&mut self, id: u64, ask: Ask) -> Result<Topics, Refusal> {
        match ask {
            Ask::Get(topics) => self.shared.look(&topics).await,
            Ask::Subscribe(topics) => {
                self.subscriptions.retain(|subscription| subscription.id != id);
                if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
                    let text = format!("a client has at most {SUBSCRIPTIONS_MAX} subscriptions");
                    return Err(Refusal { kind: RefusalKind::TooMany, text });
                }
                if self.subscriptions.is_empty() {
                    // What happened before is in the answer.
                    self.news = self.shared.keeper.subscribe();
                    self.refresh.reset();
                }
                let now = self.shared.look(&topics).await?;
                let (node, role, problems) = (now.node, now.role, now.problems.clone());
                let last = Topics { node, role, problems, ..Topics::default() };
                self.subscriptions.push(Subscription { id, topics, last });
                Ok(now)
            }
            Ask::Unsubscribe(of) => {
                self.subscriptions.retain(|subscription| subscription.id != of);
                self.shared.look(&[]).await
            }
            Ask::FlushClients(which) => {
                let flushed = self.shared.inside.forget_clients(which).await.map_err(stopped)?;
                Ok(Topics { flushed: u64::try_from(flushed).ok(), ..self.shared.look(&[]).await? })
            }
            Ask::PinClient(PinAsk { mac, vlan, obu }) => {
                if !mac.is_unicast() || vlan > MAX_VLAN {
                    let text = format!(
                        "{mac} in VLAN {vlan}: expected the address of one client, and 0 (no tag) \
                         to {MAX_VLAN}"
                    );
                    return Err(invalid(text));
                }
                self.pin(Pin::Put { client: Client { vlan, mac }, obu }).await
            }
            Ask::UnpinClients(which) => self.pin(Pin::Take(which)).await,
            Ask::SetLog(filter) => {
                self.shared.about.log.set(&filter).map_err(invalid)?;
                self.shared.look(&[Topic::Log]).await
            }
            Ask::Set(SetAsk { name, value }) => {
                reload::set(&name, &value, &self.shared.about.log).map_err(invalid)?;
                self.shared.look(&[Topic::Config]).await
            }
            Ask::Reload => self.reload(Reload::run).await,
            Ask::Check => self.reload(Reload::check).await,
            Ask::RecordStart(directory) => {
                self.record(move |recording| recording.start(directory.as_deref())).await
            }
            Ask::RecordStop => self.record(RecordingSwitch::stop).await,
            Ask::RecordMark(text) => self.record(move |recording| recording.mark(&text)).await,
            Ask::Ping(ask) => self.ping(ask).await,
            _ => Err(Refusal { kind: RefusalKind::Invalid, text: "not done here".to_owned() }),
        }
    }

    async fn pin(&self, pin: Pin) -> Result<Topics, Refusal> {
        let pinned = self.shared.inside.pin_clients(pin).await.map_err(stopped)?;
        let pins = pinned.map_err(|why| unable(why.to_string()))?;
        Ok(Topics { pins: u64::try_from(pins).ok(), ..self.shared.look(&[]).await? })
    }

    async fn ping(&self, ask: PingAsk) -> Result<Topics, Refusal> {
        let PingAsk { target, hop_limit, within_ms } = ask;
        if !(1..=MAX_HOPS).contains(&hop_limit) || !(1..=PING_MS_MAX).contains(&within_ms) {
            let text = format!(
                "hop_limit {hop_limit}, within_ms {within_ms}: expected 1 to {MAX_HOPS} and 1 to \
                 {PING_MS_MAX}"
            );
            return Err(invalid(text));
        }
        if !target.is_unicast() {
            return Err(invalid(format!("{target}: expected the address of one node or client")));
        }
        let within = Duration::from_millis(within_ms.into());
        let answer = self.shared.inside.ping(target, hop_limit, within).await.map_err(stopped)?;
        Ok(Topics { pinged: Some(Pinged { answer }), ..self.shared.look(&[]).await? })
    }

    /// Has the configuration file read again, which may be slow.
    async fn reload(
        &self,
        read: impl FnOnce(&Reload) -> Result<Reloaded, String> + Send + 'static,
    ) -> Result<Topics, Refusal> {
        let Some(reload) = self.shared.about.reload.clone() else {
            return Err(unable("there is no file to read again: it was started without --config"));
        };
        let reloaded = elsewhere(move || read(&reload)).await?.map_err(invalid)?;
        Ok(Topics { reloaded: Some(reloaded), ..self.shared.look(&[]).await? })
    }

    /// Has something done to the recording, which may wait for the disk.
    async fn record(
        &self,
        change: impl FnOnce(&RecordingSwitch) -> Result<(), String> + Send + 'static,
    ) -> Result<Topics, Refusal> {
        let Some(recording) = self.shared.about.recording.clone() else {
            return Err(unable("this program has no recorder"));
        };
        elsewhere(move || change(&recording)).await?.map_err(unable)?;
        self.shared.look(&[Topic::Recording]).await
    }

    /// Tells subscribers what happened, or how much of it they missed.
    async fn pass_on(&mut self, news: Result<Arc<Notice>, RecvError>) -> io::Result<()> {
        let (news, missed) = match news {
            Ok(news) => (Some(news), None),
            Err(RecvError::Lagged(missed)) => (None, Some(missed)),
            Err(RecvError::Closed) => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        for subscription in &self.subscriptions {
            let has = |topic| subscription.topics.contains(&topic);
            let Topics { node, role, .. } = subscription.last;
            let mut topics = Topics { node, role, ..Topics::default() };
            if let Some(Notice { happened, change }) = news.as_deref() {
                topics.events = has(Topic::Events).then(|| vec![happened.clone()]);
                let change = change.clone().filter(|_| has(Topic::Changes));
                topics.changes = change.map(|change| vec![change]);
            }
            let is_told = topics.events.is_some() || topics.changes.is_some();
            let is_gap = missed.is_some() && (has(Topic::Events) || has(Topic::Changes));
            if !is_told && !is_gap {
                continue;
            }
            topics.at_unix_ms = now_unix_ms();
            let update = Update { update: subscription.id, missed, topics: Box::new(topics) };
            self.out.line(&update).await?;
        }
        Ok(())
    }

    /// Tells subscribers what has no moment of its own.
    async fn refresh(&mut self) -> io::Result<()> {
        let wanted: Vec<_> = [Topic::View, Topic::Problems]
            .into_iter()
            .filter(|topic| self.subscriptions.iter().any(|s| s.topics.contains(topic)))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let Ok(now) = self.shared.look(&wanted).await else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        for subscription in &mut self.subscriptions {
            let has = |topic| subscription.topics.contains(&topic);
            let last = subscription.last.problems.as_deref().unwrap_or_default();
            let is_news = has(Topic::Problems)
                && health::is_news(last, now.problems.as_deref().unwrap_or_default());
            if !has(Topic::View) && !is_news {
                continue;
            }
            let view = now.view.clone().filter(|_| has(Topic::View));
            let problems = now.problems.clone().filter(|_| is_news);
            let position = now.position.clone().filter(|_| has(Topic::View));
            let topics = Topics { view, position, problems, ..now.clone() };
            if is_news {
                subscription.last.problems.clone_from(&topics.problems);
            }
            let update = Update { update: subscription.id, missed: None, topics: Box::new(topics) };
            self.out.line(&update).await?;
        }
        Ok(())
    }

    async fn refuse(&mut self, id: u64, kind: RefusalKind, text: String) -> io::Result<()> {
        self.out.line(&AnswerLine { id, ok: None, error: Some(Refusal { kind, text }) }).await
    }
}

fn invalid(text: String) -> Refusal {
    Refusal { kind: RefusalKind::Invalid, text: text.trim().to_owned() }
}
