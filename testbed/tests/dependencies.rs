//! What comes in from outside: no package needs a newer Rust than we claim, none has a licence we
//! do not take, and none comes from elsewhere than the registry.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code: a surprise in cargo's output is a failed test"
)]

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
    let exceptions = deny.get("licenses").and_then(|l| l.get("exceptions")).unwrap();
    let refused = PACKAGES.iter().filter_map(|package| {
        let licence = text(package, "license").unwrap_or("none");
        let name = text(package, "name").unwrap();
        let exception =
            exceptions.as_array().unwrap().iter().find(|exception| {
                exception.get("crate").and_then(toml::Value::as_str) == Some(name)
            });
        let more = exception.map_or(&[][..], |exception| exception["allow"].as_array().unwrap());
        let is_allowed = Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
            expression.evaluate(|wanted| {
                let wanted = wanted.to_string();
                allowed.contains(wanted.as_str())
                    || more.iter().any(|licence| licence.as_str() == Some(&wanted))
            })
        });
        (!is_allowed).then(|| format!("{name}: {licence}"))
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

/// A dependency that nothing names costs build time and trust.
#[test]
fn every_dependency_is_used() {
    let ours = PACKAGES.iter().filter(|package| text(package, "source").is_none());
    let mut unused = Vec::new();
    for package in ours {
        let manifest = Path::new(text(package, "manifest_path").unwrap());
        let targets = package["targets"].as_array().unwrap();
        // Those of a build: `lib`, `bin` and the like; anything else is for tests, benches,
        // examples.
        let is_built = |target: &&Value| {
            let kinds = target["kind"].as_array().unwrap();
            !kinds.iter().any(|kind| {
                ["test", "bench", "example"].contains(&kind.as_str().unwrap_or_default())
            })
        };
        let dirs = |targets: Vec<&Value>| -> String {
            let roots = targets.iter().map(|target| Path::new(text(target, "src_path").unwrap()));
            let dirs: BTreeSet<_> = roots.map(|root| root.parent().unwrap()).collect();
            dirs.into_iter().map(sources).collect()
        };
        let built = dirs(targets.iter().filter(is_built).collect());
        // Also the modules of tests that `src` has.
        let all = dirs(targets.iter().collect()) + &sources(manifest.parent().unwrap());
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = text(dependency, "rename").or(text(dependency, "name")).unwrap();
            let text_of = if text(dependency, "kind").is_none() { &built } else { &all };
            if !names(text_of, &name.replace('-', "_")) {
                unused.push(format!("{}: {name}", text(package, "name").unwrap()));
            }
        }
    }
    assert_eq!(unused, [""; 0], "dependencies that no source names");
}

/// All sources below a directory, one behind the other.
fn sources(dir: &Path) -> String {
    let mut found = String::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            found += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // A module that lies with another crate.
            for line in text.lines().filter(|line| line.trim().starts_with("#[path = \"../")) {
                let elsewhere = dir.join(line.split('"').nth(1).unwrap());
                found += &fs::read_to_string(elsewhere).unwrap();
            }
            found += &text;
        }
    }
    found
}

/// Whether a line that is no comment has this crate's name as a word, as a path or in a `use`.
fn names(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(name).any(|(at, _)| {
            !line[..at].ends_with(is_word) && !line[at + name.len()..].starts_with(is_word)
        })
    })
}

/// Major, minor, patch; a missing patch is 0.
fn version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap());
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}
