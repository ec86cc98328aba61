//! What daemons keep of root's rights, asked of the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::{Programs, Testbed, TestbedNode};

use super::look::reaches;
use super::scene::PATIENCE;
use crate::beds::with_logs;
use crate::plain_user::is_real_root;

/// `CAP_NET_ADMIN` and `CAP_NET_RAW`.
pub(crate) const NEEDED: u64 = 1 << 12 | 1 << 13;
const DAC_OVERRIDE: u64 = 1 << 1;
const NOBODY: u32 = 65_534;

/// Each thread of a daemon has these rights, may never have others, and neither may what it starts.
pub(crate) fn has_these_rights(node: &TestbedNode, rights: u64) -> Result<()> {
    for thread in fs::read_dir(format!("/proc/{}/task", node.daemon()?.pid()))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        let fields: BTreeMap<_, _> =
            status.lines().filter_map(|line| line.split_once(':')).collect();
        let field = |name: &str| fields.get(name).map(|value| value.trim()).context(status.clone());
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            let has = u64::from_str_radix(field(set)?, 16)?;
            ensure!(has == rights, "{}: {set} is {has:#x}: {status}", node.name());
        }
        ensure!(field("NoNewPrivs")? == "1", "{}: {status}", node.name());
    }
    Ok(())
}

fn told(socket: &Path, line: &[&str]) -> Result<std::process::Output> {
    Ok(Command::new(Programs::find()?.v2xctl).arg("-s").arg(socket).args(line).output()?)
}

/// A daemon that root starts keeps the two rights of its unit, in every thread, and with them makes
/// its TAP again and follows its radio. What is somebody else's costs one right more, where the
/// settings name it, and is refused where they do not.
pub(crate) fn root_gives_up_what_is_not_needed() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (server, rsu, obu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    let scratch = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let at = |name: &str| scratch.path().join(name);
    let (socket, theirs) = (at("obu.sock"), at("theirs"));
    let mut settings = vec!["--http".to_owned(), "8080".to_owned()];
    for (flag, path) in [("--control", &socket), ("--state-file", &at("boots"))] {
        settings.extend([flag.to_owned(), path.display().to_string()]);
    }
    obu.extra_args.replace(settings);
    fs::create_dir(&theirs)?;
    with_logs(bed, |bed| {
        bed.start_all()?;
        for node in [&rsu, &obu] {
            has_these_rights(node, NEEDED)?;
        }
        reaches(&obu.host, &server, PATIENCE)?;
        bed.delete_tap(&obu)?;
        obu.adopt_tap()?;
        obu.ns().set_down("radio0")?;
        obu.ns().set_up("radio0")?;
        reaches(&obu.host, &server, PATIENCE)?;
        has_these_rights(&obu, NEEDED)?;
        if !is_real_root()? {
            // Here nobody else is there whose files it could be.
            return Ok(());
        }
        std::os::unix::fs::chown(&theirs, Some(NOBODY), Some(NOBODY))?;
        let theirs = theirs.display().to_string();
        let refused = told(&socket, &["record", "start", &theirs])?;
        let said = String::from_utf8_lossy(&refused.stderr);
        ensure!(!refused.status.success() && said.contains("ermission denied"), "{said}");
        obu.stop()?;
        let state = format!("{theirs}/boots");
        obu.extra_args.replace(vec!["--state-file".to_owned(), state]);
        obu.start()?;
        has_these_rights(&obu, NEEDED | DAC_OVERRIDE)?;
        let says = "a right of root is kept";
        let is_said = |node: &TestbedNode| {
            Ok::<_, anyhow::Error>(node.events()?.iter().any(|e| e.message().starts_with(says)))
        };
        ensure!(is_said(&obu)? && !is_said(&rsu)?, "{}", obu.log_tail(40));
        reaches(&obu.host, &server, PATIENCE).map(drop)
    })
}
