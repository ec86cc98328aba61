//! A row of living daemons whose control sockets are asked.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use testbed::probe::PingStream;
use testbed::{Host, Testbed, TestbedNode, wait_until};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Where each node has its control socket: all of them share the file system.
pub(crate) fn socket(node: &TestbedNode) -> PathBuf {
    PathBuf::from(format!("/run/{}.sock", node.name()))
}

/// Gives every node a socket of its own.
pub(crate) fn give_sockets(bed: &Testbed) {
    bed.nodes().iter().for_each(|node| give_socket(node));
}

pub(crate) fn give_socket(node: &TestbedNode) {
    let control = ["--control".to_owned(), socket(node).display().to_string()];
    node.extra_args.borrow_mut().extend(control);
}

/// Gives a node a configuration file from its next start on. Returns where it is.
pub(crate) fn configure(node: &TestbedNode, directory: &TempDir, text: &str) -> Result<PathBuf> {
    let file = directory.path().join("node.toml");
    std::fs::write(&file, text)?;
    node.extra_args.borrow_mut().extend(["--config".to_owned(), file.display().to_string()]);
    Ok(file)
}

/// A server on the LAN, a road-side unit, a relay, and a vehicle behind it.
pub(crate) struct Row {
    pub(crate) server: Host,
    pub(crate) rsu: Rc<TestbedNode>,
    pub(crate) relay: Rc<TestbedNode>,
    pub(crate) obu: Rc<TestbedNode>,
}

pub(crate) fn row(bed: &mut Testbed) -> Result<Row> {
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (relay, obu) = (bed.add_obu("relay")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &relay)?;
    bed.connect(&relay, &obu)?;
    Ok(Row { server, rsu, relay, obu })
}

pub(crate) fn answers(from: &Host, to: &Host) -> Result<()> {
    wait_until("an answer", PATIENCE, || {
        let report = PingStream::count(&from.ns, to.v4, 1, Duration::from_millis(10))?;
        Ok((report.received == 1).then_some(()))
    })
}
