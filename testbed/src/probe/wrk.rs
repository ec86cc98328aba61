//! Requests as fast as they are answered, by wrk, which everybody knows.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::arena::netns::Netns;

/// A run of wrk that has begun.
#[derive(Debug)]
pub struct Wrk {
    client: Option<Child>,
}

impl Wrk {
    /// Asks a server for a path, over so many connections, for whole seconds.
    pub fn start(
        from: &Netns,
        (at, path): (SocketAddr, &str),
        connections: u32,
        seconds: u64,
    ) -> Result<Self> {
        let mut client = Command::new("wrk");
        client.args(["--threads", "1", "--connections", &connections.to_string()]);
        client.args(["--duration", &format!("{seconds}s"), &format!("http://{at}{path}")]);
        client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let client = from
            .run(|| Ok(client.spawn()?))
            .context("wrk is needed: apt-get install wrk, or .ci/setup http")?;
        Ok(Self { client: Some(client) })
    }

    /// Answers a second, once it has ended. An error is an answer that was none.
    pub fn finish(mut self) -> Result<f64> {
        let client = self.client.take().context("it is finished once")?;
        let said = client.wait_with_output()?;
        let text = String::from_utf8_lossy(&said.stdout);
        let errors = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "wrk: {}: {text}{errors}", said.status);
        parse(&text)
    }
}

impl Drop for Wrk {
    fn drop(&mut self) {
        if let Some(client) = &mut self.client {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

fn parse(text: &str) -> Result<f64> {
    let value = |name| text.lines().find_map(|line| line.trim().strip_prefix(name));
    for name in ["Socket errors:", "Non-2xx or 3xx responses:"] {
        if let Some(errors) = value(name) {
            bail!("wrk: {name}{errors}");
        }
    }
    let rate = value("Requests/sec:").with_context(|| format!("what wrk says: {text}"))?;
    rate.trim().parse().with_context(|| format!("what wrk says: {rate}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Running 1s test @ http://127.0.0.1:8080/status
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    31.08us   22.41us   1.50ms   98.32%
    Req/Sec   120.41k     5.29k  127.75k    63.64%
  131784 requests in 1.10s, 100.80MB read
Requests/sec: 119804.75
Transfer/sec:     91.64MB
";

    #[test]
    fn the_rate_is_read_and_an_answer_that_is_none_is_an_error() {
        assert_eq!(parse(SAID).unwrap(), 119_804.75);
        for bad in
            ["  Non-2xx or 3xx responses: 7\n", "  Socket errors: connect 0, read 3, write 0\n"]
        {
            assert!(parse(&SAID.replace("Requests/sec", &format!("{bad}Requests/sec"))).is_err());
        }
        assert!(parse("unable to connect to 127.0.0.1:8080 Connection refused\n").is_err());
    }
}
