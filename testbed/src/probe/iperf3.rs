//! TCP by iperf3, which everybody knows.

use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::arena::netns::Netns;
use crate::wait::wait_until;

/// An iperf3 server. It ends with this value.
#[derive(Debug)]
pub struct Iperf3 {
    server: Child,
    address: IpAddr,
}

/// What iperf3 says about one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Iperf3Report {
    /// What the server got, bits per second, all flows together.
    pub bits_per_s: f64,
    /// What the client got; 0 unless both ways were asked for.
    pub back_bits_per_s: f64,
    /// TCP segments sent again.
    pub retransmits: u64,
}

const PATIENCE: Duration = Duration::from_secs(10);

impl Iperf3 {
    /// Starts a server at an address of `ns`.
    pub fn serve(ns: &Netns, address: IpAddr) -> Result<Self> {
        let mut server = Command::new("iperf3");
        server.args(["--server", "--bind", &address.to_string()]);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = ns
            .run(|| Ok(server.spawn()?))
            .context("iperf3 is needed: apt-get install iperf3, or make setup")?;
        let mut serving = Self { server, address };
        wait_until("iperf3 listens", PATIENCE, || {
            if let Some(status) = serving.server.try_wait()? {
                bail!("iperf3 cannot serve {address}: {status}");
            }
            Ok(is_listening(ns)?.then_some(()))
        })?;
        Ok(serving)
    }

    /// Sends to the server over so many connections, for whole seconds; with `is_both_ways` also
    /// back.
    pub fn run(
        &self,
        from: &Netns,
        flows: u32,
        seconds: u32,
        is_both_ways: bool,
    ) -> Result<Iperf3Report> {
        let mut client = Command::new("iperf3");
        client.args(["--client", &self.address.to_string()]);
        client.args(["--parallel", &flows.to_string(), "--time", &seconds.to_string()]);
        client.args(["--json", "--connect-timeout", "3000"]).stdin(Stdio::null());
        if is_both_ways {
            client.arg("--bidir");
        }
        // After a run the server needs a moment until it takes the next, and gives no sign.
        let what = format!("iperf3 connects to {}", self.address);
        wait_until(&what, PATIENCE, || {
            let output = from.run(|| Ok(client.output()?))?;
            let report: Value = serde_json::from_slice(&output.stdout)?;
            match report.get("error").and_then(Value::as_str) {
                Some(error) if is_still_busy(&report, error) => Ok(None),
                Some(error) => bail!("iperf3: {error}"),
                None => Ok(Some(parse(&report).context("what iperf3 says")?)),
            }
        })
    }
}

/// Whether the server was still busy with the run before. It says so, or it opens its listening
/// socket anew after that run, and the kernel resets who has connected to the old one. A run that
/// had begun is never tried again.
fn is_still_busy(report: &Value, error: &str) -> bool {
    const BUSY: [&str; 4] =
        ["unable to connect", "server is busy", "Connection refused", "Connection reset"];
    let has_begun = report
        .pointer("/start/connected")
        .and_then(Value::as_array)
        .is_some_and(|flows| !flows.is_empty());
    !has_begun && BUSY.iter().any(|known| error.contains(known))
}

/// Whether somebody listens at iperf3's port in this namespace.
fn is_listening(ns: &Netns) -> Result<bool> {
    let tables = ns.run(|| {
        let read = |name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        // Without IPv6 there is no second table.
        Ok(read("tcp")? + &read("tcp6").unwrap_or_default())
    })?;
    Ok(tables.lines().any(is_listener))
}

/// Whether a line of `/proc/net/tcp` is about a socket that listens at iperf3's port, 5201.
fn is_listener(line: &str) -> bool {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let is_port = fields.next().is_some_and(|local| local.ends_with(":1451"));
    is_port && fields.nth(1) == Some(LISTEN)
}

fn parse(report: &Value) -> Option<Iperf3Report> {
    let end = report.get("end")?;
    let sum = |key: &str, field: &str| end.get(key)?.get(field)?.as_f64();
    let back_bits_per_s = sum("sum_received_bidir_reverse", "bits_per_second").unwrap_or(0.0);
    let back_again = sum("sum_sent_bidir_reverse", "retransmits").unwrap_or(0.0);
    let retransmits = sum("sum_sent", "retransmits")? + back_again;
    Some(Iperf3Report {
        bits_per_s: sum("sum_received", "bits_per_second")?,
        back_bits_per_s,
        retransmits: retransmits as u64,
    })
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listener_is_told_from_a_connection() {
        let line = |state| format!("0: 01001E0A:1451 00000000:0000 {state} 00000000:00000000 00:0");
        assert!(is_listener(&line("0A")));
        assert!(!is_listener(&line("01")));
        assert!(!is_listener("  sl  local_address rem_address   st tx_queue"));
    }

    #[test]
    fn only_a_run_that_has_not_begun_is_tried_again() {
        let reset = "unable to receive control message: Connection reset by peer";
        let report = |flows| json!({ "start": { "connected": flows }, "error": reset });
        assert!(is_still_busy(&report(json!([])), reset));
        assert!(!is_still_busy(&report(json!([{ "socket": 5 }])), reset));
        assert!(!is_still_busy(
            &report(json!([])),
            "some option you are trying to set is server only"
        ));
    }

    #[test]
    fn both_directions_count() {
        let end = json!({
            "sum_sent": { "retransmits": 3, "bits_per_second": 9.0 },
            "sum_received": { "bits_per_second": 8.0 },
        });
        let one = Iperf3Report { bits_per_s: 8.0, back_bits_per_s: 0.0, retransmits: 3 };
        assert_eq!(parse(&json!({ "end": end })), Some(one));
        let mut both = json!({ "end": end });
        both["end"]["sum_received_bidir_reverse"] = json!({ "bits_per_second": 5.0 });
        both["end"]["sum_sent_bidir_reverse"] = json!({ "retransmits": 1 });
        let two = Iperf3Report { bits_per_s: 8.0, back_bits_per_s: 5.0, retransmits: 4 };
        assert_eq!(parse(&both), Some(two));
        assert_eq!(parse(&json!({ "end": {} })), None);
    }
}
