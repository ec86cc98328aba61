//! What the daemon gives up of what it was started with.
//!
//! Units and `setcap` give two capabilities and no more; root has all. What a daemon never needs is
//! given up before it has a second thread, since capabilities belong to threads, and before
//! anything is opened. So a place that cannot be used without is found by the start, and not by the
//! first rename an hour later.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;

use control_socket::path;
use node_lib::runtime::clients::ClientFile;
use node_lib::runtime::directory;
use rustix::io::Errno;
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use tracing::{info, warn};

use crate::args::{Bind, Common};
use crate::position::PositionSource;

/// What a daemon needs while it runs, each with its name in capabilities(7): a TAP that was deleted
/// is made again, and a radio may come back as another interface.
pub const KEPT: [(CapabilitySet, &str); 2] =
    [(CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"), (CapabilitySet::NET_RAW, "CAP_NET_RAW")];

/// What became of the rights of this process.
#[derive(Debug)]
#[must_use = "the log has to say what is kept"]
pub struct Privileges {
    /// What is kept beside, and for which setting.
    beside: Vec<(&'static str, &'static str)>,
    /// What the kernel refuses to take away.
    refused: Option<io::Error>,
}

/// Gives up every capability but those of [`KEPT`], for this thread and all it will start; also for
/// programs that it would start, which nobody does. The process stays root, if it was.
///
/// Root alone may use files and ports of others, and somebody may have told it to. Each place in
/// the settings is tried without that right, and where one is refused the right is kept.
///
/// To be called before there is a second thread.
pub fn give_up(args: &Common) -> Privileges {
    let mut beside = Vec::new();
    let refused = try_to_give_up(&mut beside, args).err().map(io::Error::from);
    Privileges { beside, refused }
}

impl Privileges {
    /// Says what an operator did not expect.
    pub fn log(&self) {
        for (capability, setting) in &self.beside {
            info!(capability, setting, "a right of root is kept: it is needed for this setting");
        }
        if let Some(error) = &self.refused {
            warn!(%error, "rights that are not needed cannot be given up");
        }
    }
}

fn try_to_give_up(
    beside: &mut Vec<(&'static str, &'static str)>,
    args: &Common,
) -> Result<(), Errno> {
    let had = thread::capabilities(None)?;
    let mut kept: CapabilitySet = KEPT.iter().map(|&(capability, _)| capability).collect();
    // Under a unit there is nothing to give up, and its filter of system calls would refuse that.
    if kept.contains(had.permitted) {
        return Ok(());
    }
    // Asked without them: what is permitted may be taken up again.
    thread::set_capabilities(None, CapabilitySets { effective: had.effective & kept, ..had })?;
    let mut refused = needs(args);
    refused.retain(|need| {
        (need.tried)().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    });
    // To bound what may ever be had takes a right itself.
    thread::set_capabilities(None, had)?;
    for Need { capability: (capability, name), setting, tried } in refused {
        // Whatever else is wrong, the checks of the start say it.
        if !kept.contains(capability) && had.effective.contains(capability) && tried().is_ok() {
            beside.push((name, setting));
            kept |= capability;
        }
    }
    if had.effective.contains(CapabilitySet::SETPCAP) {
        bound(kept)?;
    }
    thread::set_capabilities(
        None,
        CapabilitySets {
            effective: had.effective & kept,
            permitted: had.permitted & kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    thread::set_no_new_privs(true)
}

/// Whoever is root starts programs with all that is in this set.
fn bound(kept: CapabilitySet) -> Result<(), Errno> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match thread::capability_is_in_bounding_set(capability) {
            Ok(true) if !kept.contains(capability) => {
                thread::remove_capability_from_bounding_set(capability)?;
            }
            Ok(_) => {}
            // The kernel has no more of them.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A setting that may take another right, and how to find out.
struct Need<'a> {
    setting: &'static str,
    capability: (CapabilitySet, &'static str),
    tried: Box<dyn Fn() -> io::Result<()> + 'a>,
}

const FILES: (CapabilitySet, &str) = (CapabilitySet::DAC_OVERRIDE, "CAP_DAC_OVERRIDE");
const PORTS: (CapabilitySet, &str) = (CapabilitySet::NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE");

/// What is used of the machine beside its interfaces.
fn needs<'a>(args: &'a Common) -> Vec<Need<'a>> {
    let mut needs = Vec::new();
    let mut add = |setting, capability, tried: Box<dyn Fn() -> io::Result<()> + 'a>| {
        needs.push(Need { setting, capability, tried });
    };
    add("tap_name", FILES, Box::new(|| read_and_write("/dev/net/tun".as_ref())));
    if let Some(path) = &args.config {
        add("config", FILES, Box::new(|| read(path)));
    }
    if let Some(path) = &args.state_file {
        add("state_file", FILES, Box::new(|| keep_state(path)));
    }
    if !args.no_control {
        let path = args.control.clone().unwrap_or_else(|| path::of(&args.tap_name));
        add("control", FILES, Box::new(move || directory::takes_files(directory::of(&path))));
    }
    if let Some(directory) = &args.record.record {
        add("record", FILES, Box::new(|| directory::takes_files(directory)));
    }
    if let Some(PositionSource::File(path)) = &args.position {
        add("position", FILES, Box::new(|| read(path)));
    }
    if let Some(address) = args.http {
        add("http", PORTS, Box::new(move || had(TcpListener::bind(address.0))));
    }
    if let Bind::Udp(address) = &args.bind {
        let port = (Ipv4Addr::UNSPECIFIED, address.group.port());
        add("bind", PORTS, Box::new(move || had(UdpSocket::bind(port))));
    }
    needs
}

fn read(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

fn read_and_write(path: &Path) -> io::Result<()> {
    OpenOptions::new().read(true).write(true).open(path).map(drop)
}

/// What is there already is read, and another file then takes its place.
fn keep_state(path: &Path) -> io::Result<()> {
    directory::takes_files(directory::of(path))?;
    for path in [path, ClientFile::beside(path).path()] {
        match read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => found?,
        }
    }
    Ok(())
}

/// Whether somebody has the port already is asked later; here counts that it is not refused.
fn had<T>(bound: io::Result<T>) -> io::Result<()> {
    match bound {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(()),
        bound => bound.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a thread of its own has after `act`: effective, permitted and bounding set.
    fn rights_after(act: impl FnOnce() + Send + 'static) -> [u64; 3] {
        let thread = std::thread::spawn(move || {
            act();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            ["CapEff:", "CapPrm:", "CapBnd:"].map(|set| {
                let value = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
                u64::from_str_radix(value.trim(), 16).unwrap()
            })
        });
        thread.join().unwrap()
    }

    fn common(line: &str) -> Common {
        #[derive(clap::Parser)]
        struct Args {
            #[command(flatten)]
            common: Common,
        }
        let line = line.split_whitespace().map(Into::into);
        crate::args::parse_from::<Args>(crate::OBU, line).unwrap().common
    }

    const KEPT_BITS: u64 = 1 << 12 | 1 << 13;

    #[test]
    fn what_is_not_needed_is_given_up_for_good() {
        let before = rights_after(|| {});
        let [effective, permitted, bounding] = rights_after(|| {
            let given_up = give_up(&common("obu -b radio0 --no-control"));
            assert!(given_up.beside.is_empty() && given_up.refused.is_none(), "{given_up:?}");
        });
        assert_eq!(effective, before[0] & KEPT_BITS);
        assert_eq!(permitted, before[1] & KEPT_BITS);
        // Who may not bound what is to come has nothing to give up either.
        let may_bound = before[0] & CapabilitySet::SETPCAP.bits() != 0;
        assert_eq!(bounding, if may_bound { before[2] & KEPT_BITS } else { before[2] });
    }

    #[test]
    fn twice_is_once() {
        let once = rights_after(|| give_up(&common("obu -b radio0 --no-control")).log());
        let twice = rights_after(|| {
            for _ in 0..2 {
                give_up(&common("obu -b radio0 --no-control")).log();
            }
        });
        assert_eq!(once, twice);
    }

    #[test]
    fn a_port_that_is_not_for_everybody_needs_its_right() {
        let had = rights_after(|| {})[0];
        for (line, needs) in [("obu -b udp: --http 80", true), ("obu -b udp: --http 18080", false)]
        {
            let common = common(&format!("{line} --no-control"));
            let right = CapabilitySet::NET_BIND_SERVICE.bits();
            let has = rights_after(move || give_up(&common).log())[0] & right;
            let limit = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
            let is_for_all = limit.is_ok_and(|limit| limit.trim() == "0");
            assert_eq!(has != 0, needs && !is_for_all && had & right != 0, "{line}");
        }
    }
}
