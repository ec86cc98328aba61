//! What the kernel lets this process do (capabilities(7)).
//!
//! Asked before anything is opened, so that the message can name what is missing. In a user
//! namespace capabilities are relative: having one here says nothing about network namespaces owned
//! by another user namespace, so opening a device may still be refused, and says so then.

use std::fs;

use anyhow::anyhow;
use tracing::debug;

use crate::args::{Bind, Common};
use crate::exit::{Failure, Kind};

/// Bits of capabilities(7).
const NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");
const NET_RAW: (u32, &str) = (13, "CAP_NET_RAW");

/// Fails with the names of the capabilities that are needed and missing. A TAP the administrator has
/// prepared is not changed, and takes none.
pub fn check(args: &Common, changes_tap: bool) -> Result<(), Failure> {
    let Some(effective) = effective() else {
        debug!("/proc/self/status does not tell our capabilities, going on without");
        return Ok(());
    };
    let missing = missing(effective, &args.bind, changes_tap);
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" and ");
    let program = std::env::current_exe()
        .map_or_else(|_| "FILE".to_owned(), |path| path.display().to_string());
    Err(Failure::new(
        Kind::Permission,
        anyhow!(
            "{missing} missing: grant what is needed to the file with `setcap \
             cap_net_admin,cap_net_raw+ep {program}`, or start it with ambient capabilities (see \
             setpriv(1))"
        ),
    ))
}

fn missing(effective: u64, bind: &Bind, changes_tap: bool) -> Vec<&'static str> {
    // An ordinary UDP socket needs nothing.
    let has_radio = matches!(bind, Bind::Interface(_));
    let needed = [(NET_ADMIN, changes_tap), (NET_RAW, has_radio)];
    let missing =
        needed.iter().filter(|((bit, _), is_needed)| *is_needed && effective & (1 << bit) == 0);
    missing.map(|((_, name), _)| *name).collect()
}

fn effective() -> Option<u64> {
    parse(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_missing_and_only_what_is_needed() {
        let radio = Bind::Interface("wlan0".into());
        let udp: Bind = "udp:".parse().unwrap();
        let both = parse("Name:\tobu\nCapEff:\t0000000000003000\n").unwrap();
        assert!(missing(both, &radio, true).is_empty());
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
        assert_eq!(parse("CapEff:\tnone\n"), None);
        assert!(effective().is_some());
    }
}
