//! A test of a program, run again as somebody who may do nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use testbed::Programs;

/// Runs one test of this program as user `nobody`, who gets what a plain user has on a machine
/// that can run the testbed: a TAP device that everybody may open, and nothing else.
///
/// The machine is not changed: device and copies of the programs are in a mount namespace of the
/// thread that starts the test.
pub(crate) fn run_as_plain_user(test: &str) -> Result<()> {
    if !is_real_root()? {
        // The whole program already runs as a plain user.
        return Ok(());
    }
    let programs = Programs::find()?;
    let mut run = Command::new(Path::new(STAGE).join("test"));
    run.args(["--exact", test]).current_dir("/").env_remove("TESTBED_LOGS");
    run.uid(NOBODY).gid(NOBODY);
    let output = std::thread::scope(|scope| {
        let staged = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS).context("unshare")?;
            stage(&std::env::current_exe()?, &programs, &mut run)?;
            run.output().context("start the test as nobody")
        });
        staged.join().map_err(|_| anyhow!("the staging thread died"))?
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "as nobody: {}\n{said}{complained}", output.status);
    ensure!(said.contains("1 passed"), "as nobody the test did not run:\n{said}");
    Ok(())
}

const NOBODY: u32 = 65_534;
/// Where the copies are: hidden in the thread's mount namespace, so any directory will do.
const STAGE: &str = "/mnt";

fn stage(this: &Path, programs: &Programs, run: &mut Command) -> Result<()> {
    for place in [STAGE, "/dev/net"] {
        fs::create_dir_all(place)?;
        mount(Some("stage"), place, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
            .with_context(|| format!("mount over {place}"))?;
    }
    let tun = "/dev/net/tun";
    mknod(tun, SFlag::S_IFCHR, Mode::empty(), makedev(10, 200))
        .context("mknod /dev/net/tun: is this a container without CAP_MKNOD?")?;
    fs::set_permissions(tun, fs::Permissions::from_mode(0o666))?;
    fs::copy(this, Path::new(STAGE).join("test"))?;
    for (variable, name, program) in [
        ("TESTBED_BIN", "testbed", &programs.testbed),
        ("OBU_BIN", "obu", &programs.obu),
        ("RSU_BIN", "rsu", &programs.rsu),
    ] {
        let copy = Path::new(STAGE).join(name);
        if program.is_file() {
            fs::copy(program, &copy)?;
        }
        run.env(variable, copy);
    }
    Ok(())
}

/// Whether root here is root outside, too: a user namespace maps only some ids.
pub(crate) fn is_real_root() -> Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    let columns: Vec<&str> = map.split_whitespace().collect();
    Ok(columns == ["0", "0", "4294967295"])
}
