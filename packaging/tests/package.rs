//! What goes into the package is there, and its units are what systemd takes and what the daemons
//! need.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use daemon::exit::FailureKind;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const DAEMONS: [&str; 2] = ["obu", "rsu"];
const TOOLS: [&str; 2] = ["v2xctl", "v2xtrace"];
/// Exposure that `systemd-analyze security` may find, in tenths; 0 is best, 100 worst.
const EXPOSURE_MAX: &str = "20";

fn unit(daemon: &str) -> String {
    fs::read_to_string(format!("{HERE}/systemd/{daemon}@.service")).unwrap()
}

/// All values of a setting.
fn values<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

/// Has systemd judge a unit, without a systemd that runs.
fn analyze(daemon: &str, flags: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(format!("{daemon}@.service"));
    // It looks whether the program is there, which it is once the package is installed.
    let text = unit(daemon).replace(&format!("/usr/bin/{daemon}"), env!("CARGO_BIN_EXE_pages"));
    fs::write(&path, text).unwrap();
    let judged = Command::new("systemd-analyze").args(flags).arg(&path).output();
    let judged = judged.unwrap_or_else(|error| {
        panic!("systemd-analyze: {error}; install it with `make setup`, or the package systemd")
    });
    let said = [judged.stdout, judged.stderr].map(|out| String::from_utf8(out).unwrap()).concat();
    assert!(judged.status.success(), "{daemon}: {said}");
    said
}

#[test]
fn systemd_takes_the_units() {
    for daemon in DAEMONS {
        let said = analyze(daemon, &["verify", "--man=no"]);
        // What it does not know is a warning to it.
        assert!(!said.contains(daemon), "{said}");
    }
}

#[test]
fn the_units_expose_little() {
    for daemon in DAEMONS {
        let threshold = format!("--threshold={EXPOSURE_MAX}");
        analyze(daemon, &["security", "--offline=true", "--no-pager", &threshold]);
    }
}

#[test]
fn the_units_give_what_the_daemons_need_and_no_more() {
    // What one that root starts keeps.
    let kept = daemon::privileges::KEPT.map(|(_, name)| name).join(" ");
    for daemon in DAEMONS {
        let unit = unit(daemon);
        for set in ["AmbientCapabilities", "CapabilityBoundingSet"] {
            assert_eq!(values(&unit, set), [&*kept], "{daemon}: {set}");
        }
        assert_eq!(values(&unit, "DeviceAllow"), ["/dev/net/tun rw"]);
        assert_eq!(values(&unit, "Type"), ["notify"]);
        assert_eq!(values(&unit, "Restart"), ["on-failure"]);
        // Who panics is back within three seconds, this one included.
        assert_eq!(values(&unit, "RestartSec"), ["1"]);
        // Waiting mends neither; an interface may come, and what failed while running may not
        // again.
        let hopeless =
            [FailureKind::Usage, FailureKind::Permission].map(|kind| (kind as u8).to_string());
        assert_eq!(values(&unit, "RestartPreventExitStatus"), [hopeless.join(" ")]);
    }
}

#[test]
fn both_units_differ_in_nothing_but_their_daemon() {
    let obu =
        unit("obu").replace("on-board", "road-side").replace("OBU_", "RSU_").replace("obu", "rsu");
    assert_eq!(obu.replace("MemoryMax=160M", "MemoryMax=320M"), unit("rsu"));
}

#[test]
fn everything_in_the_package_is_there_or_made() {
    let manifest: toml::Table =
        fs::read_to_string(format!("{HERE}/Cargo.toml")).unwrap().parse().unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let pages = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_pages")).arg(pages.path()).status().unwrap();
    assert!(made.success());
    let mut unused: BTreeSet<_> = fs::read_dir(pages.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let (manual, rest): (BTreeSet<_>, BTreeSet<_>) =
        unused.iter().cloned().partition(|name| name.ends_with(".1"));
    assert_eq!(rest.len(), 4 * DAEMONS.len() + 3 * TOOLS.len());
    for tool in TOOLS {
        assert!(manual.contains(&format!("{tool}.1")), "{manual:?}");
    }
    let mut targets = BTreeSet::new();
    for asset in deb["assets"].as_array().unwrap() {
        let [source, target, mode] = [0, 1, 2].map(|index| asset[index].as_str().unwrap());
        if let Some(program) = source.strip_prefix("target/release/") {
            let is_ours = DAEMONS.contains(&program) || TOOLS.contains(&program);
            assert!(is_ours && mode == "755", "{source}");
        } else if source == "pages/*.1" {
            unused.retain(|page| !page.ends_with(".1"));
        } else if let Some(page) = source.strip_prefix("pages/") {
            assert!(unused.remove(page), "{source} is not made, or twice in the list");
        } else {
            assert!(Path::new(HERE).join(source).is_file(), "{source}");
        }
        let name = Path::new(source).file_name().unwrap().to_str().unwrap();
        let target = if target.ends_with('/') { format!("{target}{name}") } else { target.into() };
        assert!(targets.insert(target), "{source}");
    }
    assert!(unused.is_empty(), "made, and not in the package: {unused:?}");
    for program in DAEMONS.iter().chain(&TOOLS) {
        assert!(targets.contains(&format!("usr/bin/{program}")), "{program}");
    }
    for file in deb["conf-files"].as_array().unwrap() {
        let file = file.as_str().unwrap().trim_start_matches('/');
        assert!(targets.contains(file), "{file} is a configuration file, and not in the package");
    }
    let configured = targets.iter().filter(|target| target.starts_with("etc/")).count();
    assert_eq!(configured, deb["conf-files"].as_array().unwrap().len());
}

#[test]
fn scripts_are_scripts() {
    for script in ["postinst", "prerm", "postrm"] {
        let path = format!("{HERE}/debian/{script}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o111, 0o111, "{script}");
        assert!(Command::new("sh").arg("-n").arg(&path).status().unwrap().success(), "{script}");
    }
    let pages = tempfile::tempdir().unwrap();
    assert!(
        Command::new(env!("CARGO_BIN_EXE_pages")).arg(pages.path()).status().unwrap().success()
    );
    for program in DAEMONS.iter().chain(&TOOLS) {
        let completion = pages.path().join(format!("{program}.bash"));
        assert!(Command::new("bash").arg("-n").arg(&completion).status().unwrap().success());
    }
}
