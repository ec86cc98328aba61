//! Answers that are made once for all who ask within a moment: [`Kept`].
//!
//! While one is made again, which takes a question to the packet loop and its answer, all others
//! get the last one: whoever asks waits only if nobody asked lately. And an answer that is there is
//! given without a way through the router.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use axum::response::Response;
use bytes::Bytes;
use node_lib::runtime::inside::VIEW_EVERY;
use tokio::time::Instant;

use super::endpoint::HttpRefusal;
use super::guard;

/// No answer is older. While a new one is made, the last one is given as long as this.
pub(super) const AGE_MAX: Duration = Duration::from_millis(100);

/// The answers, by their paths.
#[derive(Debug, Default)]
pub(super) struct Kept(Vec<(String, HeaderMap, Arc<Ready>)>);

impl Kept {
    /// A place for the answer to this path.
    pub(super) fn place(&mut self, path: &str, kind: &'static str) -> Arc<Ready> {
        let ready = Arc::<Ready>::default();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        guard::describe(&mut headers);
        self.0.push((path.to_owned(), headers, Arc::clone(&ready)));
        ready
    }

    /// The answer, if it is at hand: with all its header fields.
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Option<Response> {
        if request.method() != Method::GET {
            return None;
        }
        let path = request.uri().path();
        let (_, headers, ready) = self.0.iter().find(|(kept, ..)| kept == path)?;
        let mut response = Response::new(ready.at_hand()?.into());
        response.headers_mut().clone_from(headers);
        Some(response)
    }
}

/// One answer.
#[derive(Debug, Default)]
pub(super) struct Ready {
    last: Mutex<Option<(Instant, Bytes)>>,
    /// Whoever makes it has this.
    making: tokio::sync::Mutex<()>,
}

impl Ready {
    /// The last answer, if nobody has to make another.
    fn at_hand(&self) -> Option<Bytes> {
        let (age, body) = self.last()?;
        let is_made = || self.making.try_lock().is_err();
        (age < VIEW_EVERY || age < AGE_MAX && is_made()).then_some(body)
    }

    /// The last answer, or a new one.
    pub(super) async fn get<F: Future<Output = Result<Bytes, HttpRefusal>>>(
        &self,
        make: impl FnOnce() -> F,
    ) -> Result<Bytes, HttpRefusal> {
        if let Some(body) = self.at_hand() {
            return Ok(body);
        }
        // Whoever comes meanwhile, and has nothing to take, waits here and gets the same.
        let _making = self.making.lock().await;
        if let Some((age, body)) = self.last()
            && age < VIEW_EVERY
        {
            return Ok(body);
        }
        let body = make().await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), body.clone()));
        Ok(body)
    }

    fn last(&self) -> Option<(Duration, Bytes)> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(|(at, body)| (at.elapsed(), body.clone()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use axum::http::StatusCode;
    use tokio::sync::oneshot;
    use tokio::time::{advance, sleep};

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    }

    async fn made(ready: &Ready, body: &'static str) -> Bytes {
        ready.get(|| async { Ok(body.into()) }).await.unwrap()
    }

    #[test]
    fn while_one_makes_an_answer_the_others_get_the_last_one() {
        runtime().block_on(async {
            let ready = Arc::<Ready>::default();
            assert_eq!(ready.at_hand(), None);
            assert_eq!(made(&ready, "first").await, "first");
            assert_eq!(made(&ready, "second").await, "first", "it was made just now");
            advance(VIEW_EVERY).await;
            assert_eq!(ready.at_hand(), None, "somebody has to make it");
            let (finish, finished) = oneshot::channel::<()>();
            let maker = tokio::spawn({
                let ready = Arc::clone(&ready);
                async move {
                    let make = || async {
                        finished.await.unwrap();
                        Ok("second".into())
                    };
                    ready.get(make).await.unwrap()
                }
            });
            tokio::task::yield_now().await;
            assert_eq!(ready.at_hand().unwrap(), "first");
            assert_eq!(made(&ready, "never").await, "first");
            advance(AGE_MAX - VIEW_EVERY).await;
            assert_eq!(ready.at_hand(), None, "by now it is too old for anybody");
            let waits = tokio::spawn({
                let ready = Arc::clone(&ready);
                async move { made(&ready, "never").await }
            });
            tokio::task::yield_now().await;
            finish.send(()).unwrap();
            assert_eq!(maker.await.unwrap(), "second");
            assert_eq!(waits.await.unwrap(), "second");
        });
    }

    #[test]
    fn what_could_not_be_made_is_tried_again_by_the_next() {
        runtime().block_on(async {
            let ready = Ready::default();
            let refuse = || async { Err(HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "no")) };
            assert!(ready.get(refuse).await.is_err());
            assert_eq!(made(&ready, "first").await, "first");
            sleep(AGE_MAX).await;
            assert!(ready.get(refuse).await.is_err(), "and the last one is too old");
            assert_eq!(made(&ready, "second").await, "second");
        });
    }

    #[test]
    fn only_a_get_of_its_path_is_answered() {
        runtime().block_on(async {
            let mut kept = Kept::default();
            let ready = kept.place("/status", "application/json");
            made(&ready, "{}").await;
            let ask = |method: Method, path: &str| {
                kept.answer(&Request::builder().method(method).uri(path).body(()).unwrap())
            };
            let answer = ask(Method::GET, "/status?later=1").unwrap();
            assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/json");
            assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store", "as all answers");
            assert!(ask(Method::HEAD, "/status").is_none());
            assert!(ask(Method::GET, "/status/").is_none());
            assert!(ask(Method::GET, "/").is_none());
        });
    }
}
