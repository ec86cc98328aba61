//! What the answers are made from: [`Endpoint`], and what is said where there is none.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use control_socket::message::{Topic, Topics};
use control_socket::table::TableKind;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::control::shared::Shared;

/// Of all connections so many may listen to what happens: the others stay free for questions.
pub const STREAMS_MAX: usize = 32;

/// A loop that does not answer for so long will not.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) const JSON: &str = "application/json";

/// Everything the handlers need.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) shared: Arc<Shared>,
    /// Those who may listen at once.
    pub(super) streams: Arc<Semaphore>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) struct HttpRefusal {
    status: StatusCode,
    text: String,
}

impl HttpRefusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let body = format!("{}\n", json!({ "error": { "text": self.text } }));
        (self.status, [(header::CONTENT_TYPE, JSON)], body).into_response()
    }
}

impl Endpoint {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        Self { shared, streams }
    }

    /// These topics, now.
    pub(super) async fn look(&self, topics: &[Topic]) -> Result<Topics, HttpRefusal> {
        let refused = |text| HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, text);
        let looked = tokio::time::timeout(PATIENCE, self.shared.look(topics)).await;
        let looked = looked.map_err(|_| refused("the node does not answer".to_owned()))?;
        looked.map_err(|refusal| refused(refusal.text))
    }

    pub(super) async fn table(&self, table: TableKind<'_>) -> Result<Bytes, HttpRefusal> {
        let topics = table.narrowed(self.look(table.topics()).await?);
        let topics =
            topics.map_err(|error| HttpRefusal::new(StatusCode::NOT_FOUND, error.to_string()))?;
        Ok(format!("{}\n", table.json(&self.shared.about.name, &topics)).into())
    }
}
