//! `/events`: what there is, and then what is new, as server-sent events.
//!
//! | `event:` | `data:` |
//! |---|---|
//! | `now` | the topics that were asked for, whole; once, at the beginning |
//! | `update` | what is new in them, as the control socket says it |
//! | `missed` | so many events were missed here, because the reader was too slow |
//!
//! Nothing waits for a reader: what happens goes into one bounded ring for all of them, and each
//! takes from it as fast as its connection does.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use control_socket::health;
use control_socket::message::{Topic, Topics};
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::endpoint::{Endpoint, HttpRefusal, STREAMS_MAX};
use crate::control::keeper::{Notice, now_unix_ms};

/// What has no moment of its own is told this often.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

/// When nothing happens, so often a word that it is still alive.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
pub(super) struct EventQuery {
    topics: Option<String>,
}

struct Stream {
    endpoint: Arc<Endpoint>,
    topics: Vec<Topic>,
    news: Receiver<Arc<Notice>>,
    refresh: Interval,
    /// Who it is, and the problems it was told last.
    last: Topics,
    /// What comes first.
    now: Option<Topics>,
    _place: OwnedSemaphorePermit,
}

/// Answers with a stream.
pub(super) async fn stream(
    State(endpoint): State<Arc<Endpoint>>,
    query: Result<Query<EventQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, HttpRefusal> {
    let Query(wanted) =
        query.map_err(|error| HttpRefusal::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    let topics = topics(wanted.topics.as_deref())
        .map_err(|text| HttpRefusal::new(StatusCode::BAD_REQUEST, text))?;
    let place = Arc::clone(&endpoint.streams).try_acquire_owned().map_err(|_| {
        let text = format!("{STREAMS_MAX} listen already; expected fewer");
        HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
    })?;
    // What happens from here on is in the stream, what happened before in its first message.
    let news = endpoint.shared.keeper.subscribe();
    let now = endpoint.look(&topics).await?;
    let mut refresh = interval_at(tokio::time::Instant::now() + REFRESH_EVERY, REFRESH_EVERY);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let problems = now.problems.clone();
    let last = Topics { node: now.node, role: now.role, problems, ..Topics::default() };
    let state = Stream { endpoint, topics, news, refresh, last, now: Some(now), _place: place };
    let messages = unfold(state, |mut state| async move {
        let message = state.next().await?;
        Some((Ok::<_, Infallible>(message), state))
    });
    Ok(Sse::new(messages).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response())
}

fn topics(text: Option<&str>) -> Result<Vec<Topic>, String> {
    let Some(text) = text else {
        return Ok(vec![Topic::Events, Topic::Changes, Topic::Problems]);
    };
    let topic = |word: &str| {
        serde_json::from_value(Value::from(word)).map_err(|_| {
            format!("topics={text}: expected some of view, events, changes, problems, config, log")
        })
    };
    text.split(',').map(topic).collect()
}

impl Stream {
    /// The next message; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        if let Some(now) = self.now.take() {
            return message("now", None, &json!(now));
        }
        loop {
            tokio::select! {
                news = self.news.recv() => match news {
                    Ok(news) => {
                        if let Some(topics) = self.told(&news) {
                            return message("update", Some(news.happened.number), &json!(topics));
                        }
                    }
                    Err(RecvError::Lagged(missed)) => {
                        return message("missed", None, &json!({ "missed": missed }));
                    }
                    Err(RecvError::Closed) => return None,
                },
                _ = self.refresh.tick() => {
                    if let Some(topics) = self.refreshed().await? {
                        return message("update", None, &json!(topics));
                    }
                }
            }
        }
    }

    fn has(&self, topic: Topic) -> bool {
        self.topics.contains(&topic)
    }

    fn told(&self, Notice { happened, change }: &Notice) -> Option<Topics> {
        let events = self.has(Topic::Events).then(|| vec![happened.clone()]);
        let change = change.clone().filter(|_| self.has(Topic::Changes));
        let changes = change.map(|change| vec![change]);
        if events.is_none() && changes.is_none() {
            return None;
        }
        let Topics { node, role, .. } = self.last;
        let at_unix_ms = now_unix_ms();
        Some(Topics { at_unix_ms, node, role, events, changes, ..Topics::default() })
    }

    /// What has no moment of its own. The outer `None`: the node has stopped.
    async fn refreshed(&mut self) -> Option<Option<Topics>> {
        let wanted = [Topic::View, Topic::Problems].into_iter().filter(|topic| self.has(*topic));
        let wanted: Vec<_> = wanted.collect();
        if wanted.is_empty() {
            return Some(None);
        }
        let mut now = self.endpoint.look(&wanted).await.ok()?;
        let last = self.last.problems.as_deref().unwrap_or_default();
        if health::is_news(last, now.problems.as_deref().unwrap_or_default()) {
            self.last.problems.clone_from(&now.problems);
        } else {
            now.problems = None;
        }
        let is_news = now.view.is_some() || now.problems.is_some();
        Some(is_news.then_some(now))
    }
}

fn message(kind: &str, number: Option<u64>, data: &Value) -> Option<Event> {
    let message = Event::default().event(kind);
    let message = match number {
        Some(number) => message.id(number.to_string()),
        None => message,
    };
    Some(message.data(data.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_named_and_an_unknown_one_is_told_which_there_are() {
        assert_eq!(topics(Some("view,problems")), Ok(vec![Topic::View, Topic::Problems]));
        for bad in ["", "views", "view,,events"] {
            assert!(topics(Some(bad)).unwrap_err().contains("expected some of view"), "{bad}");
        }
    }
}
