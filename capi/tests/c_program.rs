//! Programs in C, compiled and run against the library.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Compiles a program as strictly as the compiler can, and runs it.
fn run(source: &Path, compiler: &str, flags: &[&str]) -> Output {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let compiled = Command::new(compiler)
        .args(flags)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg(source)
        .arg("-I")
        .arg(here.join("include"))
        .arg("-L")
        .arg(libraries())
        .args(["-lv2x", "-o"])
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} is needed: {error}"));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Command::new(&program).env("LD_LIBRARY_PATH", libraries()).output().unwrap()
}

/// Where cargo puts the library: beside this program.
fn libraries() -> PathBuf {
    let dir = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(dir.join("libv2x.so").is_file(), "no libv2x.so in {}", dir.display());
    dir
}

#[test]
fn two_nodes_in_c_greet_each_other() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/two_nodes.c");
    let ran = run(&source, "cc", &["-std=c11"]);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "OBU uses RSU ..:02, 1 hop",
            "RSU hands 60 bytes to its TAP: ping",
            "OBU hands 60 bytes to its TAP: pong",
        ]
    );
}

/// What a caller may do wrong is an error, and nothing worse.
#[test]
fn mistakes_are_refused() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes.c");
    let ran = run(&source, "cc", &["-std=c11"]);
    assert!(ran.status.success(), "line {:?}", ran.status.code());
}
