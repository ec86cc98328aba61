//! What comes in from outside: no package needs a newer Rust than we claim, none has a licence we
//! do not take, and none comes from elsewhere than the registry.

#![allow(clippy::unwrap_used, reason = "test code: a surprise in cargo's output is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use spdx::{Expression, ParseMode};

/// What cargo says of all packages, ours among them.
static PACKAGES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    metadata.get("packages").and_then(Value::as_array).unwrap().clone()
});

fn text<'a>(package: &'a Value, key: &str) -> Option<&'a str> {
    package.get(key).and_then(Value::as_str)
}

#[test]
fn no_dependency_needs_a_newer_rust_than_we_claim() {
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    let too_new = PACKAGES.iter().filter_map(|package| {
        let needs = text(package, "rust_version")?;
        (version(needs) > ours).then(|| format!("{} needs {needs}", text(package, "name").unwrap()))
    });
    assert_eq!(too_new.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_dependency_has_a_licence_that_deny_toml_allows() {
    let deny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deny.toml");
    let deny: toml::Value = toml::from_str(&fs::read_to_string(deny).unwrap()).unwrap();
    let allowed = deny.get("licenses").and_then(|l| l.get("allow")).unwrap().as_array().unwrap();
    let allowed: BTreeSet<&str> = allowed.iter().map(|name| name.as_str().unwrap()).collect();
    let refused = PACKAGES.iter().filter_map(|package| {
        let licence = text(package, "license").unwrap_or("none");
        let is_allowed = Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
            expression.evaluate(|wanted| allowed.contains(wanted.to_string().as_str()))
        });
        (!is_allowed).then(|| format!("{}: {licence}", text(package, "name").unwrap()))
    });
    assert_eq!(refused.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_dependency_comes_from_the_registry() {
    let elsewhere = PACKAGES.iter().filter_map(|package| {
        // Our own have no source.
        let source = text(package, "source")?;
        (!source.starts_with("registry+")).then(|| text(package, "id").unwrap().to_owned())
    });
    assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0]);
}

/// Major, minor, patch; a missing patch is 0.
fn version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap());
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}
