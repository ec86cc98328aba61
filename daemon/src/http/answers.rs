//! The tables as JSON, health, and the web page.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use control_socket::message::{Topic, Topics};
use control_socket::table::Table;
use node_lib::runtime::inside::VIEW_EVERY;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::server::STREAMS_MAX;
use super::{events, metrics};
use crate::control::Shared;

/// A loop that does not answer for so long will not.
const PATIENCE: Duration = Duration::from_secs(5);

const JSON: &str = "application/json";

/// Everything the handlers need.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) shared: Arc<Shared>,
    /// Those who may listen at once.
    pub(super) streams: Arc<Semaphore>,
    metrics: Ready,
}

/// All paths there are.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let streams = Arc::new(Semaphore::new(STREAMS_MAX));
    let endpoint = Arc::new(Endpoint { shared, streams, metrics: Ready::default() });
    let mut router = Router::new()
        .route("/", get(|| async { page(web_page::HTML, "text/html; charset=utf-8") }))
        .route("/page.css", get(|| async { page(web_page::CSS, "text/css; charset=utf-8") }))
        .route("/page.js", get(|| async { page(web_page::JS, "text/javascript; charset=utf-8") }))
        .route("/healthz", get(health))
        .route("/metrics", get(scrape))
        .route("/events", get(events::stream))
        .route("/why", get(why));
    for table in Table::ALL {
        let ready = Arc::new(Ready::default());
        let path = match table {
            // With a number it is another object; and what happens is a stream.
            Table::Why(_) => continue,
            Table::Events => "/events/past".to_owned(),
            other => format!("/{}", other.name()),
        };
        let answer = move |State(endpoint): State<Arc<Endpoint>>| {
            let ready = Arc::clone(&ready);
            async move {
                let body = ready.get(|| async { endpoint.table(table).await }).await?;
                Ok::<_, Refusal>(([(header::CONTENT_TYPE, JSON)], body))
            }
        };
        router = router.route(&path, get(answer));
    }
    router
        .fallback(|| async { Refusal::new(StatusCode::NOT_FOUND, "there is no such path; see /") })
        .with_state(endpoint)
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = format!("{}\n", json!({ "error": { "text": self.text } }));
        (self.status, [(header::CONTENT_TYPE, JSON)], body).into_response()
    }
}

/// An answer that is made once for all who ask within [`VIEW_EVERY`].
#[derive(Debug, Default)]
struct Ready {
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl Ready {
    async fn get<F: Future<Output = Result<Bytes, Refusal>>>(
        &self,
        make: impl FnOnce() -> F,
    ) -> Result<Bytes, Refusal> {
        // Whoever comes meanwhile waits here, and gets the same.
        let mut last = self.last.lock().await;
        if let Some((at, body)) = &*last
            && at.elapsed() < VIEW_EVERY
        {
            return Ok(body.clone());
        }
        let body = make().await?;
        *last = Some((Instant::now(), body.clone()));
        Ok(body)
    }
}

impl Endpoint {
    /// These topics, now.
    pub(super) async fn look(&self, topics: &[Topic]) -> Result<Topics, Refusal> {
        let refused = |text| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text);
        let looked = tokio::time::timeout(PATIENCE, self.shared.look(topics)).await;
        let looked = looked.map_err(|_| refused("the node does not answer".to_owned()))?;
        looked.map_err(|refusal| refused(refusal.text))
    }

    async fn table(&self, table: Table) -> Result<Bytes, Refusal> {
        let topics = self.look(table.topics()).await?;
        Ok(format!("{}\n", table.json(&self.shared.about.name, &topics)).into())
    }
}

async fn health(State(endpoint): State<Arc<Endpoint>>) -> Result<Response, Refusal> {
    let topics = endpoint.look(&[Topic::Problems]).await?;
    let fatal = topics.problems.iter().flatten().filter(|problem| problem.is_fatal);
    let ill: String =
        fatal.map(|problem| format!("{}: {}\n", problem.kind, problem.text)).collect();
    Ok(if ill.is_empty() {
        "well\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, ill).into_response()
    })
}

async fn scrape(State(endpoint): State<Arc<Endpoint>>) -> Result<impl IntoResponse, Refusal> {
    let make = || async {
        let topics = endpoint.look(&[Topic::View, Topic::Problems]).await?;
        let gaps = endpoint.shared.keeper.gaps();
        let text = metrics::text(&endpoint.shared.about.name, &topics, gaps);
        text.map(Bytes::from)
            .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    };
    let body = endpoint.metrics.get(make).await?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], body))
}

#[derive(Debug, Deserialize)]
struct WhyQuery {
    id: Option<u64>,
}

async fn why(
    State(endpoint): State<Arc<Endpoint>>,
    query: Result<Query<WhyQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<impl IntoResponse, Refusal> {
    let Query(WhyQuery { id }) = query.map_err(|error| {
        let text = format!("{}; expected such as /why?id=7", error.body_text());
        Refusal::new(StatusCode::BAD_REQUEST, text)
    })?;
    let table = Table::Why(id);
    let topics = endpoint.look(table.topics()).await?;
    let numbers: Vec<_> = topics.changes.iter().flatten().map(|change| change.number).collect();
    if let Some(id) = id.filter(|id| !numbers.contains(id)) {
        let text =
            format!("no change of upstream has the number {id}; expected one of {numbers:?}");
        return Err(Refusal::new(StatusCode::NOT_FOUND, text));
    }
    let body = format!("{}\n", table.json(&endpoint.shared.about.name, &topics));
    Ok(([(header::CONTENT_TYPE, JSON)], body))
}

/// A part of the page: from here and from nowhere else.
fn page(body: &'static str, kind: &'static str) -> ([(HeaderName, &'static str); 2], &'static str) {
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, web_page::POLICY)], body)
}
