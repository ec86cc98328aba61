//! The oldest Rust version the workspace claims is one its dependencies support.

#![allow(clippy::unwrap_used, reason = "test code: a surprise in cargo's output is a failed test")]

use std::process::Command;

use serde_json::Value;

#[test]
fn no_dependency_needs_a_newer_rust_than_we_claim() {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    let packages = metadata.get("packages").and_then(Value::as_array).unwrap();
    let too_new: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let text = |key| package.get(key).and_then(Value::as_str);
            let needs = text("rust_version")?;
            (version(needs) > ours).then(|| format!("{} needs {needs}", text("name").unwrap()))
        })
        .collect();
    assert_eq!(too_new, [""; 0]);
}

/// Major, minor, patch; a missing patch is 0.
fn version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap());
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}
