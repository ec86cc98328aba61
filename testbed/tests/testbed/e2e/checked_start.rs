//! `--check` against the start itself: the same faults, codes and words.

use std::process::Command;

use anyhow::{Result, ensure};
use testbed::{Programs, Testbed};

use super::scene::make_tap;
use crate::beds::with_logs;
use crate::plain_user::is_real_root;

/// What ends the start is found by `--check`, with the same exit code and in the same words.
pub(crate) fn check_finds_what_the_start_finds() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    let programs = Programs::find()?;
    with_logs(bed, |_| {
        const HELD: &str = "/run/rsu1.sock";
        rsu.extra_args.borrow_mut().extend(["--control", HELD].map(str::to_owned));
        rsu.start()?;
        let ended = |line: &str, is_check: bool| -> Result<(Option<i32>, String)> {
            let output = rsu.ns().run(|| {
                let mut command = Command::new("timeout");
                command.arg("5");
                let unprivileged = line.strip_prefix("UNPRIVILEGED ");
                if unprivileged.is_some() {
                    let sets = ["bounding-set", "inh-caps", "ambient-caps"];
                    command.arg("setpriv").args(sets.map(|set| format!("--{set}=-net_admin")));
                }
                command.arg(&programs.obu).args(unprivileged.unwrap_or(line).split(' '));
                if is_check {
                    command.arg("--check");
                }
                Ok(command.output()?)
            })?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Ok((output.status.code(), said.lines().last().unwrap_or_default().to_owned()))
        };
        rsu.ns()
            .run(|| Ok(std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?))?;
        let radio = rsu.radio;
        for (tap, what) in
            [("queues0", "tap multi_queue"), ("tun0", "tun"), ("own0", "tap user 0 group 0")]
        {
            make_tap(rsu.ns(), tap, what)?;
        }
        let file = testbed::arena::scratch().join("file");
        std::fs::write(&file, "")?;
        let mut lines = vec![
            ("-b none0".to_owned(), 4, "no such interface"),
            ("-b radio0 -t eth0".to_owned(), 4, "is not a TAP"),
            ("-b radio0 -t br0".to_owned(), 4, "is not a TAP"),
            ("-b radio0 -t tap0".to_owned(), 4, "another process has it open"),
            ("-b radio0 -t tun0".to_owned(), 4, "is not a TAP"),
            ("-b radio0 -t queues0".to_owned(), 4, "several queues"),
            ("-b radio0 -t radio0".to_owned(), 2, "two interfaces"),
            ("-b radio0 --bridge eth0".to_owned(), 4, "not a bridge"),
            ("-b radio0 --bridge none0".to_owned(), 4, "no such interface"),
            (format!("-b radio0 --tap-mac {radio}"), 2, "address of the radio"),
            ("-b radio0 -m 12000".to_owned(), 2, "12000"),
            ("-b radio0 -i fd00::1/64".to_owned(), 4, "IPv6 is off"),
            ("-b radio0 --state-file /no/such/boots".to_owned(), 2, "/no/such/boots"),
            ("-b radio0 --state-file /dev/null/boots".to_owned(), 2, "/dev/null/boots"),
            ("-b radio0 --state-file /".to_owned(), 2, "state file /"),
            ("-b radio0 --record /proc".to_owned(), 3, "cannot record into /proc"),
            ("-b radio0 --record /no/such".to_owned(), 2, "cannot record into /no/such"),
            ("-b radio0 --control /no/such/x.sock".to_owned(), 2, "/no/such/x.sock"),
            (format!("-b radio0 --control {}", file.display()), 2, "is no socket"),
            (format!("-b radio0 --control {HELD}"), 2, "has this control socket"),
            ("-b udp:@10.99.9.9".to_owned(), 4, "no interface to reach the group"),
            ("-b radio0 --signal radiotap:none0".to_owned(), 4, "no such interface"),
        ];
        // A user namespace of a plain user knows only that one, so there every TAP is its own.
        if is_real_root()? {
            for (tap, who) in [("user0", "user 1000"), ("group0", "group 1000")] {
                make_tap(rsu.ns(), tap, &format!("tap {who}"))?;
                lines.push((format!("UNPRIVILEGED -b radio0 -t {tap}"), 3, who));
            }
        }
        for (line, code, reason) in lines {
            let (checked, started) = (ended(&line, true)?, ended(&line, false)?);
            ensure!(checked == started, "{line}: {checked:?} and {started:?}");
            ensure!(checked.0 == Some(code) && checked.1.contains(reason), "{line}: {checked:?}");
        }
        // What is ours takes no privilege: it runs until its time is up.
        const TIME_IS_UP: Option<i32> = Some(124);
        let line = "UNPRIVILEGED -b radio0 -t own0";
        let (checked, started) = (ended(line, true)?, ended(line, false)?);
        ensure!(checked.0 == Some(0) && started.0 == TIME_IS_UP, "{checked:?}, {started:?}");
        // A client file that tells nobody ends nothing: both say why.
        let states = tempfile::TempDir::new_in(testbed::arena::scratch())?;
        let boots = states.path().join("boots");
        let known = states.path().join("boots.clients");
        let line = format!("-b radio0 -t own0 --state-file {}", boots.display());
        let check = || -> Result<String> {
            let checked = rsu.ns().run(|| {
                Ok(Command::new(&programs.obu).args(line.split(' ')).arg("--check").output()?)
            })?;
            ensure!(checked.status.success(), "{checked:?}");
            Ok(String::from_utf8_lossy(&checked.stdout).into_owned())
        };
        for (content, reason) in [
            (None, "clients: 0 known from"),
            (Some("yesterday\n"), "clients: none known: client file"),
            (Some("v2x-clients 1\nat 1 1 -\ncrc32 0\n"), "damaged"),
        ] {
            content.map_or(Ok(()), |content| std::fs::write(&known, content))?;
            let said = check()?;
            ensure!(said.contains(reason), "{content:?}: {said}");
            ensure!(known.exists() == content.is_some(), "--check wrote a file");
        }
        let started = rsu.ns().run(|| {
            let mut command = Command::new("timeout");
            Ok(command.arg("5").arg(&programs.obu).args(line.split(' ')).output()?)
        })?;
        let said = String::from_utf8_lossy(&started.stderr);
        let is_warned = said.contains("clients of an earlier start are not known");
        ensure!(is_warned && said.contains("damaged"), "{said}");
        ensure!(started.status.code() == TIME_IS_UP, "{started:?}");
        let said = check()?;
        ensure!(said.contains("clients: 0 known from"), "it was written anew: {said}");
        // Nothing is wrong here, but for the daemon that has the radio already.
        let checked = rsu.ns().run(|| {
            let line = ["-b", "radio0", "--check"];
            Ok(Command::new(&programs.obu).args(line).output()?)
        })?;
        let said = String::from_utf8_lossy(&checked.stdout);
        ensure!(checked.status.success() && said.contains("another program"), "{said}");
        let free = obu.ns().run(|| {
            let line = ["-b", "radio0", "--check"];
            Ok(Command::new(&programs.obu).args(line).output()?)
        })?;
        let said = String::from_utf8_lossy(&free.stdout);
        ensure!(free.status.success() && !said.contains("another program"), "{said}");
        Ok(())
    })
}
