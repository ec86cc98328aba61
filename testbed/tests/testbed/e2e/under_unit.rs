//! The daemons under what their units restrict them to.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use testbed::{Programs, Testbed, TestbedNode};

use super::look::{answers_all, ended_with_reason, reaches};
use super::scene::PATIENCE;
use crate::beds::with_logs;
use crate::plain_user::is_real_root;

const RUN_UNDER: &str = include_str!("under_unit.py");
/// `CAP_NET_ADMIN` and `CAP_NET_RAW`.
const RIGHTS: &str = "0000000000003000";
const NOBODY: u32 = 65_534;

/// A program that starts a daemon as its unit does, with these lines more in the unit.
fn under_unit(directory: &Path, daemon: &Path, more: &str) -> Result<PathBuf> {
    let name = daemon.file_name().and_then(|name| name.to_str()).context("a name")?;
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd");
    let unit = directory.join(format!("{name}.service"));
    let text = std::fs::read_to_string(units.join(format!("{name}@.service")))?;
    std::fs::write(&unit, format!("{text}{more}"))?;
    let script = directory.join("under_unit.py");
    std::fs::write(&script, RUN_UNDER)?;
    // In a user namespace there is nobody else to become.
    let user = if is_real_root()? { NOBODY } else { 0 };
    let program = directory.join(name);
    let [script, unit, daemon] = [&script, &unit, daemon].map(|path| path.display().to_string());
    let line = format!("#!/bin/sh\nexec python3 {script} {unit} car {user} {daemon} \"$@\"\n");
    std::fs::write(&program, line)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// A place as the daemon sees it: its run-time and state directories are its own.
fn inside(node: &TestbedNode, place: &str) -> Result<PathBuf> {
    Ok(PathBuf::from(format!("/proc/{}/root{place}", node.daemon()?.pid())))
}

/// What `v2xctl` prints of it.
fn told(node: &TestbedNode, line: &[&str]) -> Result<String> {
    let socket = inside(node, "/run/v2x/tap0.sock")?;
    let output =
        Command::new(Programs::find()?.v2xctl).arg("-s").arg(socket).args(line).output()?;
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    ensure!(output.status.success(), "{line:?} of {}: {}", node.name(), said.concat());
    let [said, _] = said;
    Ok(said)
}

fn is_restricted(node: &TestbedNode) -> Result<()> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.daemon()?.pid()))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim).ok_or_else(|| anyhow!("{name} is not in {status}"))
    };
    for set in ["CapEff:", "CapPrm:", "CapBnd:"] {
        ensure!(field(set)? == RIGHTS, "{}: {status}", node.name());
    }
    ensure!(field("NoNewPrivs:")? == "1" && field("Seccomp:")? == "2", "{status}");
    let user = if is_real_root()? { "65534" } else { "0" };
    ensure!(field("Uid:")?.split_whitespace().all(|id| id == user), "{status}");
    Ok(())
}

/// Everything a daemon does to the machine is done under the restrictions of its unit: its start,
/// its traffic, a TAP made again, its files, its sockets, its end.
pub(crate) fn daemons_run_under_their_units() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu, obu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    let scratch = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let programs = Programs::find()?;
    for (node, daemon) in [(&rsu, &programs.rsu), (&obu, &programs.obu)] {
        node.program.replace(under_unit(scratch.path(), daemon, "")?);
        node.extra_args.borrow_mut().extend(["--http", "8080"].map(str::to_owned));
    }
    with_logs(bed, |bed| {
        for node in [&rsu, &obu] {
            node.start()?;
            is_restricted(node)?;
        }
        reaches(&obu.host, &server, PATIENCE)?;
        answers_all(&obu.host, &server)?;
        for (node, role) in [(&rsu, "rsu"), (&obu, "obu")] {
            let boots = inside(node, &format!("/var/lib/v2x/{role}-car.boots"))?;
            ensure!(boots.is_file(), "{} wrote no boot count", node.name());
            ensure!(told(node, &["log-level", "debug"])? == "debug\n");
            let recorded = told(node, &["record", "start", "/var/lib/v2x"])?;
            ensure!(recorded.starts_with("on"), "{recorded}");
        }
        bed.delete_tap(&obu)?;
        obu.adopt_tap()?;
        obu.ns().set_down("radio0")?;
        obu.ns().set_up("radio0")?;
        reaches(&obu.host, &server, PATIENCE)?;
        answers_all(&obu.host, &server)?;
        for node in [&rsu, &obu] {
            let stopped = told(node, &["record", "stop"])?;
            ensure!(stopped.starts_with("off"), "{stopped}");
            let tail = node.log_tail(200);
            ensure!(!tail.contains("not permitted"), "{tail}");
        }
        obu.stop()?;
        rsu.stop()?;
        // And they are restrictions: what a unit does not name is refused.
        let program = under_unit(scratch.path(), &programs.obu, "SystemCallFilter=~socket\n")?;
        obu.program.replace(program);
        obu.launch()?;
        let status = obu.wait(PATIENCE)?;
        ended_with_reason(&obu, status, "radio0")
    })
}
