//! What `--check` and the start find before anything is changed, and that nothing is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use clap::Parser;
use daemon::args::Common;
use daemon::exit::{FailureKind, Failures};
use daemon::findings::{Findings, Places};
use daemon::start;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    common: Common,
}

/// What is found with these flags, beside a link that is no interface.
fn check(flags: &[&str]) -> Result<(), Failures> {
    let line = ["daemon", "--tap-name", "start-test0"].iter().chain(flags);
    let Flags { common } = Flags::try_parse_from(line).unwrap();
    let runtime = start::tokio_runtime().unwrap();
    let places = Places::default();
    let mut findings = Findings::new(&places);
    let checked = runtime.block_on(start::check(&common, &mut findings));
    findings.end(checked).map(drop)
}

/// The kind of what is wrong, and what is said of it.
fn wrong_with(flags: &[&str]) -> (FailureKind, String) {
    let failures = check(flags).expect_err("something is wrong");
    let [failure] = &failures.0[..] else { panic!("one thing is wrong: {failures:?}") };
    (failure.kind, format!("{:#}", failure.error))
}

const LINK: [&str; 2] = ["--bind", "udp:239.255.77.1:47701"];

fn on_a_link<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    LINK.iter().chain(flags).copied().collect()
}

#[test]
fn one_interface_cannot_be_both_sides() {
    let (kind, text) = wrong_with(&["--bind", "start-test0"]);
    assert_eq!(kind, FailureKind::Usage);
    for word in ["--bind", "--tap-name", "start-test0"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_radio_that_does_not_exist_is_named() {
    let (kind, text) = wrong_with(&["--bind", "start-test9"]);
    assert_eq!(kind, FailureKind::Interface);
    assert!(text.contains("start-test9"), "{text}");
}

#[test]
fn an_mtu_too_small_for_the_addresses_is_refused_with_both_numbers() {
    let (kind, text) = wrong_with(&on_a_link(&["--mtu", "1000", "--ip", "fd00::1"]));
    assert_eq!(kind, FailureKind::Usage);
    assert!(text.contains("1000") && text.contains("1280"), "{text}");
    assert!(text.contains("start-test0"), "{text}");
}

#[test]
fn a_state_file_that_holds_something_else_is_named_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("boots");
    fs::write(&file, "something else").unwrap();
    let (_, text) = wrong_with(&on_a_link(&["--state-file", file.to_str().unwrap()]));
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "something else");
}

#[test]
fn looking_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("boots");
    check(&on_a_link(&["--ip", "10.0.0.1", "--state-file", file.to_str().unwrap()])).unwrap();
    assert!(!file.exists(), "no start was counted");
    assert!(!Path::new("/sys/class/net/start-test0").exists(), "no TAP was made");
    fs::write(&file, "41\n").unwrap();
    check(&on_a_link(&["--state-file", file.to_str().unwrap()])).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "41\n");
}
