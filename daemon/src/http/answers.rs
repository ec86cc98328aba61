//! The tables as JSON, health, and the web page.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use control_socket::message::Topic;
use control_socket::table::TableKind;
use serde::Deserialize;

use super::endpoint::{Endpoint, HttpRefusal, JSON};
use super::kept::{Kept, Ready};
use super::{events, metrics};
use crate::control::shared::Shared;

/// All paths there are, and the answers that may be at hand.
pub(super) fn router(shared: Arc<Shared>) -> (Router, Arc<Kept>) {
    let endpoint = Arc::new(Endpoint::new(shared));
    let mut kept = Kept::default();
    let ready = kept.place("/metrics", metrics::CONTENT_TYPE);
    let scraped = move |State(endpoint): State<Arc<Endpoint>>| {
        let ready = Arc::clone(&ready);
        async move { scrape(&endpoint, &ready).await }
    };
    let mut router = Router::new()
        .route("/", get(|| async { page(web_page::HTML, "text/html; charset=utf-8") }))
        .route("/page.css", get(|| async { page(web_page::CSS, "text/css; charset=utf-8") }))
        .route("/page.js", get(|| async { page(web_page::JS, "text/javascript; charset=utf-8") }))
        .route("/healthz", get(health))
        .route("/metrics", get(scraped))
        .route("/events", get(events::stream))
        .route("/why", get(why));
    for table in TableKind::ALL {
        let path = match table {
            // With a number it is another object; and what happens is a stream.
            TableKind::Why(_) => continue,
            TableKind::Events => "/events/past".to_owned(),
            other => format!("/{}", other.name()),
        };
        let ready = kept.place(&path, JSON);
        let answer = move |State(endpoint): State<Arc<Endpoint>>| {
            let ready = Arc::clone(&ready);
            async move {
                let body = ready.get(|| async { endpoint.table(table).await }).await?;
                Ok::<_, HttpRefusal>(([(header::CONTENT_TYPE, JSON)], body))
            }
        };
        router = router.route(&path, get(answer));
    }
    let router = router
        .fallback(|| async {
            HttpRefusal::new(StatusCode::NOT_FOUND, "there is no such path; see /")
        })
        .with_state(endpoint);
    (router, Arc::new(kept))
}

async fn health(State(endpoint): State<Arc<Endpoint>>) -> Result<Response, HttpRefusal> {
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

async fn scrape(
    endpoint: &Endpoint,
    ready: &Ready,
) -> Result<impl IntoResponse + use<>, HttpRefusal> {
    let make = || async {
        let topics = endpoint.look(&[Topic::View, Topic::Problems]).await?;
        let gaps = endpoint.shared.keeper.gaps();
        let text = metrics::text(&endpoint.shared.about.name, &topics, gaps);
        text.map(Bytes::from)
            .map_err(|error| HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    };
    let body = ready.get(make).await?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], body))
}

#[derive(Debug, Deserialize)]
struct WhyQuery {
    id: Option<u64>,
}

async fn why(
    State(endpoint): State<Arc<Endpoint>>,
    query: Result<Query<WhyQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<impl IntoResponse, HttpRefusal> {
    let Query(WhyQuery { id }) = query.map_err(|error| {
        let text = format!("{}; expected such as /why?id=7", error.body_text());
        HttpRefusal::new(StatusCode::BAD_REQUEST, text)
    })?;
    let body = endpoint.table(TableKind::Why(id)).await?;
    Ok(([(header::CONTENT_TYPE, JSON)], body))
}

/// A part of the page: from here and from nowhere else.
fn page(body: &'static str, kind: &'static str) -> ([(HeaderName, &'static str); 2], &'static str) {
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, web_page::POLICY)], body)
}
