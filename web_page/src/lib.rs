//! The web page that shows a node: live as its daemon's HTTP endpoint serves it, or as it was, from
//! a recording; or all nodes of a simulation.
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

/// What the page may do that has its parts and a recording in itself: nothing but show them.
const POLICY_ALONE: &str = "default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// What stands before and after a recording, in a document that needs nothing else. The recording
/// is a list of topics in JSON without its brackets, and without a `<`.
pub fn around_recording() -> [String; 2] {
    let [before, after] = around("recording");
    [before + "[", format!("]{after}")]
}

/// The same for a simulated town: an object in JSON without a `<`, as `v2xsim page` writes it.
pub fn around_town() -> [String; 2] {
    around("town")
}

/// What stands before and after data that the script finds by this id.
fn around(id: &str) -> [String; 2] {
    let style = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY_ALONE}\">\n\
         <style>{CSS}</style>"
    );
    let head = HTML
        .replace("<link rel=\"stylesheet\" href=\"/page.css\">", &style)
        .replace("<script src=\"/page.js\" defer></script>\n", "");
    let (body, end) = head.split_once("</body>").unwrap_or((&head, ""));
    let before = format!("{body}<script type=\"application/json\" id=\"{id}\">");
    [before, format!("</script>\n<script>{JS}</script>\n</body>{end}")]
}
