//! What the kernel lets this process do (capabilities(7)).
//!
//! Asked before anything is opened, so that the message can name what is missing. In a user
//! namespace capabilities are relative: having one here says nothing about network namespaces owned
//! by another user namespace, so opening a device may still be refused, and says so then.

use std::fs;

use anyhow::anyhow;
use node_lib::device::TapOwner;
use node_lib::device::{DeviceError, Problem};
use tracing::debug;

use crate::args::{Bind, Common};
use crate::exit::{Failure, FailureKind};

/// Bits of capabilities(7).
const NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");
const NET_RAW: (u32, &str) = (13, "CAP_NET_RAW");

/// Fails with the names of the capabilities that are needed and missing. A TAP the administrator
/// has prepared is not changed, and takes none.
pub fn check(args: &Common, changes_tap: bool) -> Result<(), Failure> {
    let Some(process) = process() else { return Ok(()) };
    let missing = missing(process.capabilities, &args.bind, changes_tap);
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" and ");
    let program = std::env::current_exe()
        .map_or_else(|_| "FILE".to_owned(), |path| path.display().to_string());
    Err(Failure::new(
        FailureKind::Permission,
        anyhow!(
            "{missing} missing: grant what is needed to the file with `setcap \
             cap_net_admin,cap_net_raw+ep {program}`, or start it with ambient capabilities (see \
             setpriv(1))"
        ),
    ))
}

/// Fails if the TAP of this name, which is there, is for somebody else and the kernel makes no
/// exception for this process.
pub fn check_owner(tap_name: &str, owner: TapOwner) -> Result<(), DeviceError> {
    let Some(process) = process() else { return Ok(()) };
    if process.may_open(owner) {
        return Ok(());
    }
    Err(DeviceError {
        interface: tap_name.to_owned(),
        operation: "create the TAP",
        source: Problem::NotOurs(owner),
    })
}

fn missing(effective: u64, bind: &Bind, changes_tap: bool) -> Vec<&'static str> {
    // An ordinary UDP socket needs nothing.
    let has_radio = matches!(bind, Bind::Interface(_));
    let needed = [(NET_ADMIN, changes_tap), (NET_RAW, has_radio)];
    let missing =
        needed.iter().filter(|((bit, _), is_needed)| *is_needed && effective & (1 << bit) == 0);
    missing.map(|((_, name), _)| *name).collect()
}

/// Who this process is, as the kernel asks when it tries something.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    /// Its effective capabilities.
    capabilities: u64,
    /// Its effective user.
    user: u32,
    /// Its effective group, and those beside.
    groups: Vec<u32>,
}

impl Process {
    fn may_open(&self, owner: TapOwner) -> bool {
        let (bit, _) = NET_ADMIN;
        self.capabilities & (1 << bit) != 0 || owner.admits(self.user, &self.groups)
    }
}

fn process() -> Option<Process> {
    let status = fs::read_to_string("/proc/self/status").ok();
    let process = status.as_deref().and_then(parse);
    if process.is_none() {
        debug!("/proc/self/status does not tell who we are and what we may, going on without");
    }
    process
}

fn parse(status: &str) -> Option<Process> {
    let line = |begin| status.lines().find_map(|line| line.strip_prefix(begin));
    // Real, effective, saved and that of file systems (proc_pid_status(5)).
    let effective = |line: &str| line.split_whitespace().nth(1)?.parse().ok();
    let beside = line("Groups:")?.split_whitespace().map(str::parse);
    let mut groups: Vec<u32> = beside.collect::<Result<_, _>>().ok()?;
    groups.push(effective(line("Gid:")?)?);
    Some(Process {
        capabilities: u64::from_str_radix(line("CapEff:")?.trim(), 16).ok()?,
        user: effective(line("Uid:")?)?,
        groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(capabilities: &str) -> String {
        format!(
            "Name:\tobu\nUid:\t10\t11\t12\t13\nGid:\t20\t21\t22\t23\nGroups:\t4 27 \n\
             CapEff:\t{capabilities}\n"
        )
    }

    #[test]
    fn names_what_is_missing_and_only_what_is_needed() {
        let radio = Bind::Interface("wlan0".into());
        let udp: Bind = "udp:".parse().unwrap();
        let both = parse(&status("0000000000003000")).unwrap();
        assert!(missing(both.capabilities, &radio, true).is_empty());
        assert_eq!(missing(0, &radio, true), ["CAP_NET_ADMIN", "CAP_NET_RAW"]);
        assert_eq!(missing(1 << 12, &radio, true), ["CAP_NET_RAW"]);
        assert_eq!(missing(1 << 13, &udp, true), ["CAP_NET_ADMIN"]);
        assert!(missing(1 << 12, &udp, true).is_empty());
        assert!(missing(1 << 13, &radio, false).is_empty(), "a TAP that was prepared");
        assert!(missing(0, &udp, false).is_empty());
    }

    #[test]
    fn an_unknown_status_is_not_an_answer() {
        assert_eq!(parse("Name:\tobu\n"), None);
        assert_eq!(parse(&status("none")), None);
        assert_eq!(parse(&status("0").replace("Uid", "Who")), None);
        assert!(process().is_some());
    }

    #[test]
    fn who_it_is_or_the_capability_opens_a_tap() {
        let plain = parse(&status("0000000000002000")).unwrap();
        assert_eq!((plain.user, &plain.groups[..]), (11, &[4, 27, 21][..]));
        let admin = Process { capabilities: 1 << 12, ..parse(&status("0")).unwrap() };
        for (user, group, is_ours) in [
            (None, None, true),
            (Some(11), Some(27), true),
            (None, Some(21), true),
            (Some(10), None, false),
            (None, Some(20), false),
        ] {
            let owner = TapOwner { user, group };
            assert_eq!(plain.may_open(owner), is_ours, "{owner}");
            assert!(admin.may_open(owner), "{owner}");
        }
    }
}
