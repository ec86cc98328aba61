//! Who may ask, and what browsers are told about every answer.
//!
//! The endpoint asks nobody who he is. So a web page from elsewhere, in a browser on this machine,
//! must not be able to read it. It cannot by its own name (it gets no permission to, there is no
//! CORS here), nor by a name that it makes point here (DNS rebinding). The latter always has a name
//! in `Host`: only addresses and `localhost` are taken.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use axum::body::HttpBody as Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// Nothing is loaded and nobody frames it; the page itself allows more.
const NOTHING: &str =
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Answers itself what is no question to us.
pub(super) fn refusal<B: Body>(request: &Request<B>) -> Option<Response> {
    let (status, text) = reason(request)?;
    let mut response = (status, format!("{text}\n")).into_response();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    Some(response)
}

fn reason<B: Body>(request: &Request<B>) -> Option<(StatusCode, String)> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let text = format!("{}: nothing can be changed here; expected GET", request.method());
        return Some((StatusCode::METHOD_NOT_ALLOWED, text));
    }
    if !request.body().is_end_stream() {
        let text = "the request has a body; expected none".to_owned();
        return Some((StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(host);
    match host {
        Some(host) if is_ours(host) => None,
        Some(host) => {
            let host: String = host.chars().take(80).collect();
            let text = format!("Host {host}: expected an address, or localhost");
            Some((StatusCode::MISDIRECTED_REQUEST, text))
        }
        None => Some((StatusCode::BAD_REQUEST, "there is no Host".to_owned())),
    }
}

/// An address or `localhost`, with or without a port: nobody can make these point elsewhere.
fn is_ours(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or(("", rest)),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let has_good_port = match port.strip_prefix(':') {
        Some(digits) => digits.parse::<u16>().is_ok(),
        None => port.is_empty(),
    };
    let is_address = if host.starts_with('[') {
        name.parse::<Ipv6Addr>().is_ok()
    } else {
        name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok()
    };
    has_good_port && is_address
}

/// Puts on an answer what all answers have, and does not have itself.
pub(super) fn describe(headers: &mut HeaderMap) {
    static COMMON: LazyLock<HeaderMap> = LazyLock::new(|| {
        let common = [
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (header::CONTENT_SECURITY_POLICY, NOTHING),
        ];
        common.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter().collect()
    });
    // The few of its own are put to a copy: each that is put in has to be looked up.
    let own = std::mem::replace(headers, COMMON.clone());
    headers.extend(own);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_can_point_elsewhere_is_our_host() {
        for ours in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "localhost",
            "LocalHost:1",
            "[::1]",
            "[::1]:80",
            "10.0.0.7",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "evil.example@127.0.0.1",
            "",
            ":80",
            "127.1",
            "0x7f000001",
            "[::1].evil.example",
            "[127.0.0.1]",
            "::1",
            "localhost:x",
            "localhost:1:2",
            "a b",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
