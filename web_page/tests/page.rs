//! The script of the page, without a browser: `page.test.js` in Node.js, and what holds for all of
//! its parts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::process::Command;

#[test]
fn the_script_makes_the_right_things_of_what_it_hears() {
    let test = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page.test.js");
    let output = Command::new("node").args(["--test", test]).output();
    let output = output.unwrap_or_else(|error| panic!("node: {error}: install it with .ci/setup"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    // A file without tests would pass as well.
    let passed = said.lines().find_map(|line| line.strip_prefix("# pass "));
    assert!(passed.unwrap().parse::<u32>().unwrap() >= 1, "{said}");
}

#[test]
fn the_page_takes_nothing_from_elsewhere() {
    let parts = [web_page::HTML, web_page::CSS, web_page::JS];
    for part in parts {
        // The one address is the name of a language, and nothing is loaded from it.
        let part = part.replace("http://www.w3.org/2000/svg", "");
        for far in ["http:", "https:", "//cdn", "@import", "url("] {
            assert!(!part.contains(far), "{far}");
        }
        // What the policy forbids, and would fail without a word on a phone.
        for forbidden in ["innerHTML", "eval(", " style=", "onclick="] {
            assert!(!part.contains(forbidden), "{forbidden}");
        }
    }
    assert!(web_page::POLICY.starts_with("default-src 'none'"));
    assert!(!web_page::POLICY.contains("unsafe") && !web_page::POLICY.contains("http"));
}

#[test]
fn a_page_with_a_recording_needs_nothing_else() {
    let [before, after] = web_page::around_recording();
    let recording = format!("{before}{{}}{after}");
    let [before, after] = web_page::around_town();
    let town = format!("{before}{{}}{after}");
    assert!(recording.contains("id=\"recording\">[{}]</script>"));
    assert!(town.contains("id=\"town\">{}</script>"));
    needs_nothing_else(&recording);
    needs_nothing_else(&town);
}

fn needs_nothing_else(page: &str) {
    assert!(!page.contains("/page.css") && !page.contains("/page.js"), "its parts are in it");
    assert!(page.contains(web_page::CSS) && page.contains(web_page::JS));
    assert!(page.trim_end().ends_with("</html>"));
    // Two scripts and a style, each ended once and where it should be.
    for (open, close, count) in [("<script", "</script>", 2), ("<style", "</style>", 1)] {
        assert_eq!((page.matches(open).count(), page.matches(close).count()), (count, count));
    }
}

/// Whatever a node may say has its words on the page.
#[test]
fn every_obstacle_standing_and_cause_is_explained() {
    let source = include_str!("../../node_lib/src/control/snapshot/routes.rs");
    let events = include_str!("../../node_lib/src/control/event.rs");
    let variants = |source: &str, name: &str| -> Vec<String> {
        let body = source.split(&format!("pub enum {name} {{")).nth(1);
        let body = body.unwrap_or_else(|| panic!("no enum {name} in its file"));
        let body = body.split("\n}").next().unwrap();
        let lines = body.lines().filter_map(|line| line.trim().strip_suffix(','));
        let names = lines.filter(|line| line.chars().all(char::is_alphanumeric));
        names.map(kebab).collect()
    };
    for (name, source) in [("Obstacle", source), ("RouteStanding", source), ("Cause", events)] {
        let variants = variants(source, name);
        assert!(variants.len() >= 5, "{name}: {variants:?}");
        for variant in variants {
            let key = format!("\"{variant}\": \"");
            assert!(web_page::JS.contains(&key), "{name} {variant} has no words");
        }
    }
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
