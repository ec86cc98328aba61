//! The arena: one set of namespaces around everything the testbed starts.
//!
//! [`enter`] runs the program again under `unshare` (util-linux) as process 1 of a new process
//! namespace, with its own network and mounts. When that process ends, for whatever reason, the
//! kernel kills every other process in the arena, and with the last of them every interface,
//! namespace and mount is gone. There is no clean-up code, so none can be missed.
//!
//! ```text
//! testbed demo            the process the user started: waits, holds the write end of a pipe
//! └─ unshare --fork …     waits; when it is killed the kernel kills its child
//!    └─ testbed demo      process 1 of the arena; ends when the pipe does
//!       ├─ testbed medium
//!       └─ obu, rsu, …
//! ```
//!
//! Without root the arena adds a user namespace, in which the user is root over the arena's own
//! interfaces and nothing else.

pub mod fdb;
pub mod link;
pub(crate) mod netns;
pub(crate) mod sys;

use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use nix::mount::{MsFlags, mount};

/// Tells the second start of the program that it is inside.
const INSIDE: &str = "V2X_TESTBED_ARENA";
/// What the arena is made of, as `unshare` calls it.
const NAMESPACES: [&str; 6] =
    ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// Added when the caller is not privileged.
const AS_USER: [&str; 2] = ["--user", "--map-root-user"];
/// Hidden in the arena under a file system of its own: logs, sockets, state of the daemons.
const SCRATCH: &str = "/run";
/// Daemons may keep state here; in the arena it is as fresh as everything else.
const STATE: &str = "/var/lib";
const TUN: &str = "/dev/net/tun";

/// What [`enter`] found.
#[derive(Debug)]
pub enum Entered {
    /// This process is inside: carry on.
    Inside,
    /// A second process was inside and has ended: return its exit code.
    Over(ExitCode),
}

/// Enters the arena. Call it first thing in `main`, before there are threads.
///
/// Fails with a message that says what is missing on this machine and how to get it.
pub fn enter() -> Result<Entered> {
    if std::env::var_os(INSIDE).is_some() && std::process::id() == 1 {
        furnish().context("arena")?;
        leave_with_the_caller();
        return Ok(Entered::Inside);
    }
    let namespaces = usable_namespaces()?;
    check_tun(Path::new(TUN))?;
    let program = std::env::current_exe().context("path of this program")?;
    let mut unshare = Command::new("unshare")
        .args(namespaces)
        .arg("--")
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .stdin(Stdio::piped())
        .spawn()
        .context("start unshare")?;
    // Held open until the end of this process: see `leave_with_the_caller`.
    let held = unshare.stdin.take();
    let status = unshare.wait().context("wait for unshare")?;
    drop(held);
    Ok(Entered::Over(exit_code(status)))
}

/// A directory for logs and the like that vanishes with the arena.
pub fn scratch() -> PathBuf {
    PathBuf::from(SCRATCH)
}

/// Checks everything [`enter`] needs, without entering.
pub fn check() -> Result<()> {
    usable_namespaces()?;
    check_tun(Path::new(TUN))
}

/// The flags with which `unshare` works here: as root if possible, else as a plain user.
fn usable_namespaces() -> Result<Vec<&'static str>> {
    let plain = NAMESPACES.to_vec();
    let with_user = [&AS_USER[..], &NAMESPACES[..]].concat();
    if nix::unistd::geteuid().is_root() && try_unshare(&plain)?.is_none() {
        return Ok(plain);
    }
    match try_unshare(&with_user)? {
        None => Ok(with_user),
        Some(complaint) => bail!("{}", explain(&complaint)),
    }
}

/// What `unshare` complains about with these flags; `None` when it works.
fn try_unshare(flags: &[&str]) -> Result<Option<String>> {
    let mut unshare = Command::new("unshare");
    match unshare.args(flags).args(["--", "true"]).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(None),
        Ok(output) => Ok(Some(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("`unshare` is missing; it is part of util-linux: apt-get install util-linux")
        }
        Err(error) => Err(error).context("start unshare"),
    }
}

/// Why namespaces are refused, as far as the system's settings tell, and the way out.
fn explain(complaint: &str) -> String {
    const SETTINGS: [(&str, &str, &str); 3] = [
        ("user/max_user_namespaces", "0", "15000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let mut text = format!("this machine refuses the testbed its namespaces ({complaint}).");
    for (name, forbids, allows) in SETTINGS {
        let value = std::fs::read_to_string(Path::new("/proc/sys").join(name));
        if value.is_ok_and(|value| value.trim() == forbids) {
            let key = name.replace('/', ".");
            text += &format!("\n  {key} is {forbids}; allow it: sudo sysctl {key}={allows}");
        }
    }
    text += "\n  Or run as root. In a container: --privileged, or at least --cap-add SYS_ADMIN,\
             \n  --cap-add NET_ADMIN, --device /dev/net/tun and a seccomp profile that allows \
             unshare.";
    text
}

/// Can this user open the TAP device? Inside a user namespace the same owner and mode count.
fn check_tun(path: &Path) -> Result<()> {
    let Err(error) = std::fs::File::options().read(true).write(true).open(path) else {
        return Ok(());
    };
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => bail!(
            "{shown} does not exist: sudo modprobe tun (in a container: --device {shown}; \
             without udev: sudo mkdir -p /dev/net && sudo mknod -m 0666 {shown} c 10 200)"
        ),
        io::ErrorKind::PermissionDenied => {
            let seen = std::fs::metadata(path).map_or_else(
                |error| error.to_string(),
                |m| format!("mode {:04o}, owner {}:{}", m.mode() & 0o7777, m.uid(), m.gid()),
            );
            bail!(
                "{shown} cannot be opened by user {} ({seen}): sudo chmod 0666 {shown}, \
                 or run as root",
                nix::unistd::geteuid()
            )
        }
        _ => bail!("{shown}: {error} (sudo modprobe tun, or a container without the device)"),
    }
}

/// Gives the arena what it has of its own.
fn furnish() -> Result<()> {
    for place in [SCRATCH, STATE] {
        // A program or working directory below would disappear from under us.
        let is_used = [std::env::current_exe(), std::env::current_dir()]
            .iter()
            .any(|path| path.as_ref().is_ok_and(|path| path.starts_with(place)));
        if is_used {
            bail!(
                "cannot run from below {place}: the arena hides it; set CARGO_TARGET_DIR elsewhere"
            );
        }
        if Path::new(place).is_dir() {
            let none: Option<&str> = None;
            mount(Some("arena"), place, Some("tmpfs"), MsFlags::MS_NOSUID, none)
                .with_context(|| format!("mount over {place}"))?;
        }
    }
    Ok(())
}

/// Ends this process, and with it the arena, when the process outside ends.
///
/// Process 1 of a namespace does not feel Ctrl-C, and `unshare` passes no signals on. The process
/// outside dies of any signal, and then our standard input ends.
fn leave_with_the_caller() {
    std::thread::spawn(|| {
        let mut sink = [0; 64];
        while !matches!(io::stdin().read(&mut sink), Ok(0) | Err(_)) {}
        let _ = io::stdout().flush();
        std::process::exit(130)
    });
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        (None, None) => 1,
    };
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tun_device_is_named_with_the_way_to_get_it() {
        let message = check_tun(Path::new("/nonexistent/tun")).unwrap_err().to_string();
        assert!(message.starts_with("/nonexistent/tun does not exist"), "{message}");
        assert!(message.contains("modprobe tun"), "{message}");
    }

    #[test]
    fn a_refusal_repeats_what_unshare_said() {
        let message = explain("unshare: Operation not permitted");
        assert!(message.contains("(unshare: Operation not permitted)"), "{message}");
        assert!(message.contains("--cap-add SYS_ADMIN"), "{message}");
    }
}
