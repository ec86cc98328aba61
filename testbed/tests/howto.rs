//! The how-tos of `docs/howto/` do what they say: the blocks marked `sh` of a page are one script,
//! and run in namespaces of their own, in which nothing is left.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The blocks of a page that are to be run, one behind the other.
fn script_of(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap();
    let mut script = String::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            line if is_inside => {
                script.push_str(line);
                script.push('\n');
            }
            _ => {}
        }
    }
    script
}

/// Where cargo puts the programs of this profile.
fn programs() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    deps.ancestors().nth(2).unwrap().to_owned()
}

fn walk(name: &str, needs: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let script = script_of(&root.join("docs/howto").join(name));
    assert!(script.lines().count() > 3, "{name} has nothing to run");
    for program in needs {
        let path = programs().join(program);
        assert!(path.is_file(), "{} is not built: cargo build --workspace", path.display());
    }
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/run/examples", dir.path().join("examples")).unwrap();
    // Namespaces have their names in /run; a page writes to /tmp, and the repository may be there.
    let (programs, examples) = (programs(), root.join("examples"));
    let inside = format!(
        "mount -t tmpfs none /run\nmkdir /run/programs /run/examples\n\
         mount --bind '{}' /run/programs\nmount --bind '{}' /run/examples\n\
         mount --bind . /tmp\ncd /tmp\n{script}",
        programs.display(),
        examples.display()
    );
    let path = format!("/run/programs:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    if !nix::unistd::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["bash", "-euxo", "pipefail", "-c", &inside]);
    let ran = command.current_dir(dir.path()).env("PATH", path).output().unwrap();
    let said = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(ran.status.success(), "{name}: {}\n{}", ran.status, said.concat());
}

#[test]
fn a_laboratory_on_one_laptop() {
    walk("laboratory.md", &["obu", "rsu", "v2xctl"]);
}

#[test]
fn a_bridged_lan() {
    walk("bridged-lan.md", &["obu", "rsu", "v2xctl"]);
}

#[test]
fn cameras_and_how_they_are_found() {
    walk("cameras.md", &["obu", "rsu"]);
}

#[test]
fn a_papers_figures() {
    walk("figures.md", &["v2xsim"]);
}
