//! The package, made as `make deb` makes it of the programs that the tests built: it installs, runs
//! and goes, and who follows `docs/operating.md` with it gets what that promises.
//!
//! Machines are made of this one: what is written there is written beside it. Daemons run under
//! what their units say, without a systemd. That takes root; a plain user gets what can be had
//! without.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "test code")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// What runs in the namespaces, beside the test.
const PARTS: [(&str, &str); 6] = [
    ("machine.sh", include_str!("installed/machine.sh")),
    ("package.sh", include_str!("installed/package.sh")),
    ("plain.sh", include_str!("installed/plain.sh")),
    ("stand_in.py", include_str!("installed/stand_in.py")),
    ("under_unit.py", include_str!("testbed/e2e/under_unit.py")),
    ("walk.sh", include_str!("installed/walk.sh")),
];
const PROGRAMS: [&str; 4] = ["obu", "rsu", "v2xctl", "v2xtrace"];
/// `CAP_NET_ADMIN` and `CAP_NET_RAW`, as `/proc` has them.
const RIGHTS: &str = "0000000000003000";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Where cargo puts the programs of this profile.
fn programs() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// Runs a command to its good end, and gives what it printed.
fn run(command: &mut Command) -> String {
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(ran.status.success(), "{command:?}: {}\n{}", ran.status, said.concat());
    let [printed, _] = said;
    printed
}

/// The package, made once.
fn package() -> &'static [u8] {
    static PACKAGE: OnceLock<Vec<u8>> = OnceLock::new();
    PACKAGE.get_or_init(make_package)
}

/// Makes it as the last line of `make deb` does. Symbols, which programs built for tests have, are
/// left out, and it is compressed less: both take time and change no promise.
fn make_package() -> Vec<u8> {
    let scratch = tempfile::tempdir().unwrap();
    let into = scratch.path();
    let release = into.join("target/release");
    fs::create_dir_all(&release).unwrap();
    for name in PROGRAMS {
        let built = programs().join(name);
        assert!(built.is_file(), "{} is not built: cargo build --workspace", built.display());
        run(Command::new("strip").arg("-o").arg(release.join(name)).arg(built));
    }
    let root = repository();
    let asked = Command::new("cargo").args(["deb", "--version"]).output().unwrap();
    assert!(asked.status.success(), "cargo-deb is missing: make setup");
    run(Command::new(programs().join("pages")).arg(root.join("packaging/pages")));
    let mut make = Command::new("make");
    // Of the `make` that runs this test it is to know nothing.
    for variable in ["MAKEFLAGS", "MAKELEVEL", "PROFILE"] {
        make.env_remove(variable);
    }
    let recipe = run(make.args(["-n", "deb"]).current_dir(&root));
    let line = recipe.lines().last().unwrap();
    assert!(line.contains(" deb ") && line.contains("--no-build"), "{line}");
    let package = into.join("v2x-node.deb");
    let line = format!("{line} --fast -o '{}'", package.display());
    run(Command::new("sh")
        .args(["-c", &line])
        .current_dir(&root)
        .env("CARGO_TARGET_DIR", into.join("target")));
    fs::read(package).unwrap()
}

/// Whether this is root of the machine. Root of a user namespace, such as that of a container, may
/// not overlay what others have mounted, and has no other users.
fn is_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    let is_whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    nix::unistd::geteuid().is_root() && is_whole
}

/// Runs one of the parts in namespaces of its own. What it left is in `test` of the directory.
fn run_part(name: &str, scripts: &[(&str, String)]) -> TempDir {
    let space = tempfile::tempdir().unwrap();
    let test = space.path().join("test");
    fs::create_dir(&test).unwrap();
    fs::write(test.join("v2x-node_0_amd64.deb"), package()).unwrap();
    let parts = PARTS.iter().map(|&(name, text)| (name, text.to_owned()));
    for (name, text) in parts.chain(scripts.iter().cloned()) {
        fs::write(test.join(name), text).unwrap();
    }
    run(Command::new("chmod").arg("755").arg(test.join("stand_in.py")));
    let mut inside = Command::new("unshare");
    inside.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    if !nix::unistd::geteuid().is_root() {
        inside.arg("--map-root-user");
    }
    // Its own files are where what follows does not hide them.
    let script = format!(
        "mount -t tmpfs none /run\nmount -t tmpfs none /mnt\nmkdir /mnt/test\n\
         mount --bind '{}' /mnt/test\nexport SPACE=/mnt\n. /mnt/test/{name}\n",
        test.display()
    );
    inside.args(["bash", "-euo", "pipefail", "-c", &script]);
    run(&mut inside);
    space
}

fn left(space: &TempDir, name: &str) -> String {
    let path = space.path().join("test").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Mode of each file, as the manifest of the package has it.
fn listed() -> BTreeMap<String, String> {
    let packaging = repository().join("packaging");
    let manifest: toml::Table =
        fs::read_to_string(packaging.join("Cargo.toml")).unwrap().parse().unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let mut modes = BTreeMap::new();
    for asset in deb["assets"].as_array().unwrap() {
        let [source, target, mode] = [0, 1, 2].map(|index| asset[index].as_str().unwrap());
        let names = if let Some((folder, end)) = source.split_once('*') {
            let all = fs::read_dir(packaging.join(folder)).unwrap();
            let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.ends_with(end)).collect()
        } else {
            vec![source.rsplit('/').next().unwrap().to_owned()]
        };
        let mode = if mode == "755" { "-rwxr-xr-x" } else { "-rw-r--r--" };
        for name in names {
            let path =
                if target.ends_with('/') { format!("{target}{name}") } else { target.into() };
            modes.insert(format!("/{path}"), mode.to_owned());
        }
    }
    modes
}

/// All files of the package are there, with their modes, and belong to root.
fn files_are_as_listed(found: &str) {
    let mut missing = listed();
    missing.insert("/usr/share/doc/v2x-node/copyright".into(), "-rw-r--r--".into());
    for line in found.lines() {
        let [mode, owner, path] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(owner, "root:root", "{line}");
        if mode.starts_with('d') {
            assert!(mode == "drwxr-xr-x", "{line}");
            continue;
        }
        // Manual pages and long documents are compressed on the way.
        let expected =
            missing.remove(path).or_else(|| missing.remove(path.strip_suffix(".gz").unwrap_or("")));
        assert_eq!(expected.as_deref(), Some(mode), "{line}");
    }
    assert!(missing.is_empty(), "not installed: {missing:?}");
}

#[test]
fn the_package_installs_runs_and_goes() {
    if !is_root() {
        let space = run_part("plain.sh", &[("laptop.sh", String::new())]);
        files_are_as_listed(&left(&space, "files.txt"));
        return;
    }
    let space = run_part("package.sh", &[]);
    files_are_as_listed(&left(&space, "files.txt"));
    for complaints in ["harmed.txt", "pages.txt", "units.txt"] {
        assert_eq!(left(&space, complaints), "", "{complaints}");
    }
    let manual = left(&space, "manual.txt");
    assert!(PROGRAMS.iter().all(|name| manual.contains(name)) && manual.contains("SYNOPSIS"));
    let user = left(&space, "user.txt");
    let [entry, group] = user.lines().collect::<Vec<_>>()[..] else { panic!("{user}") };
    let fields: Vec<_> = entry.split(':').collect();
    assert!(fields[0] == "v2x" && fields[6].ends_with("/nologin"), "{entry}");
    assert!(fields[2].parse::<u32>().unwrap() < 1000, "{entry}: an account of the system");
    assert!(group.starts_with("v2x:"), "{group}");
    let ours = |line: &&str| {
        // `man` keeps pages that it has shown.
        let is_of_others = line.starts_with("./var/cache/") || line.contains("/test/");
        ["v2x", "obu", "rsu"].iter().any(|word| line.contains(word)) && !is_of_others
    };
    let left = left(&space, "left.txt");
    assert_eq!(left.lines().filter(ours).collect::<Vec<_>>(), ["./etc/v2x/car.toml"]);
}

/// The blocks of a section that are to be run on one of the machines, one behind the other.
fn blocks(document: &str, section: &str, machine: &str) -> String {
    let (mut is_section, mut is_inside, mut script) = (false, false, String::new());
    for line in document.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            is_section = title == section;
        } else if line.starts_with("```") {
            is_inside = is_section && (line == "```sh" || line == format!("```sh {machine}"));
        } else if is_inside {
            // What goes on until it is ended has a terminal of its own; whoever opens another needs
            // a moment.
            match line.split_once("# a terminal of its own") {
                Some((command, _)) => script.push_str(&format!("{command} &\nsleep 2\n")),
                None => script.push_str(&format!("{line}\n")),
            }
        }
    }
    script
}

#[test]
fn who_follows_the_guide_has_a_pair_a_reason_and_a_capture() {
    let document = fs::read_to_string(repository().join("docs/operating.md")).unwrap();
    let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
    let without = "With the package leave `target/release/` out";
    assert!(words.contains(without), "docs/operating.md does not say: {without}");
    let install = |machine| blocks(&document, "Install", machine);
    let tried =
        blocks(&document, "Try it without a radio", "laptop").replace("target/release/", "");
    let scripts = [("road.sh", install("road")), ("car.sh", install("car")), ("laptop.sh", tried)];
    for (name, script) in &scripts {
        assert!(script.lines().count() > 3, "{name}: docs/operating.md has nothing to run");
    }
    let space = run_part(if is_root() { "walk.sh" } else { "plain.sh" }, &scripts);
    for (name, promises) in [
        ("laptop.txt", &[" 0% packet loss", "because of"][..]),
        ("car.txt", &[" 0% packet loss", "because of", "Heartbeat RSU", "Echo (ping) reply"]),
    ] {
        if !is_root() && name != "laptop.txt" {
            return;
        }
        let said = left(&space, name);
        for promise in promises {
            assert!(said.contains(promise), "{name} lacks {promise}:\n{said}");
        }
        let exported = said.lines().find_map(|line| line.strip_prefix("drive.pcapng: "));
        let frames = exported.and_then(|rest| rest.strip_suffix(" frames")?.parse().ok());
        assert!(frames > Some(20), "{name}: {exported:?}");
    }
    for unit in ["rsu@road", "obu@car"] {
        let status = left(&space, &format!("{unit}.status"));
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            assert!(status.contains(&format!("{set}:\t{RIGHTS}\n")), "{unit}: {status}");
        }
        assert!(status.contains("NoNewPrivs:\t1\nSeccomp:\t2\n"), "{unit}: {status}");
        assert!(!status.contains("Uid:\t0\t"), "{unit}: {status}");
    }
}
