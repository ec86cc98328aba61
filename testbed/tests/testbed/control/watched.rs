//! `v2xctl -w` and `top` beside daemons that end and start again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{Programs, Testbed, TestbedNode};

use super::{shows, start};
use crate::beds::with_logs;
use crate::row::{Row, row, socket};

/// Two daemons at once, again and again, and on a full screen: over the end of one of them.
pub(super) fn what_is_watched_outlives_its_daemon() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let Row { rsu, relay, obu, .. } = row(&mut bed)?;
    with_logs(bed, |bed| {
        start(bed)?;
        shows(&obu, &["status"], |status| status["is_healthy"] == true)?;
        let program = Programs::find()?.v2xctl;
        let mut both = Command::new(&program);
        both.args(["-o", "json", "-w=0.1", "-s"]).arg(socket(&rsu)).arg("-s").arg(socket(&obu));
        let mut both = both.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut lines = BufReader::new(both.stdout.take().context("a pipe")?).lines();
        let mut told = |node: &TestbedNode, accept: &dyn Fn(u64) -> bool| -> Result<u64> {
            loop {
                let said: Value = serde_json::from_str(&lines.next().context("it ended")??)?;
                let up = said["uptime_ms"].as_u64().filter(|up| accept(*up));
                if let Some(up) = up.filter(|_| said["node"] == node.radio.to_string()) {
                    return Ok(up);
                }
            }
        };
        told(&rsu, &|_| true)?;
        let before = told(&obu, &|_| true)?;
        told(&obu, &|up| up > before)?;
        // A terminal, as `script` makes one; a key ends it.
        let mut screen = Command::new("script");
        let top = format!("{} -s {} top", program.display(), socket(&obu).display());
        let top = format!("stty rows 50 cols 150; exec {top}");
        screen.args(["-q", "-e", "-c", &top, "/dev/null"]).env("TERM", "xterm");
        let mut screen = screen.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut keys = screen.stdin.take().context("a pipe")?;
        let mut shown = screen.stdout.take().context("a pipe")?;
        let mut seen = Vec::new();
        let upstream = relay.radio.to_string();
        while !String::from_utf8_lossy(&seen).contains(&upstream) {
            let mut some = [0; 4096];
            let len = shown.read(&mut some)?;
            ensure!(len > 0, "no {upstream} in {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(some.get(..len).unwrap_or_default());
        }
        keys.write_all(b"q")?;
        std::thread::spawn(move || std::io::copy(&mut shown, &mut std::io::sink()));
        ensure!(screen.wait()?.success(), "top did not end well");
        obu.kill()?;
        obu.start()?;
        told(&obu, &|up| up < before).context("of the next start")?;
        both.kill()?;
        both.wait()?;
        Ok(())
    })
}
