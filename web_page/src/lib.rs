//! The web page that shows a node: live as its daemon's HTTP endpoint serves it.
//!
//! Plain HTML, style and script, in files of their own under `assets/`, with nothing from
//! elsewhere. It reads what `/events` says, which is what the control socket says.

/// The document.
pub const HTML: &str = include_str!("../assets/page.html");

/// Its style, `/page.css`.
pub const CSS: &str = include_str!("../assets/page.css");

/// Its script, `/page.js`.
pub const JS: &str = include_str!("../assets/page.js");

/// What the page may do, as a content security policy: take its parts and its data from where it
/// came from, and nothing else.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";
