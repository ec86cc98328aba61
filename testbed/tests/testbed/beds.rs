//! Who is there and what links are like, where tests of several areas ask for the same.

use std::rc::Rc;

use anyhow::{Result, anyhow};
use testbed::{Host, Programs, Quality, Testbed, TestbedNode};

use crate::harness::ms;

/// A link on which everything happens that may happen to a frame.
pub(crate) const BAD: Quality = Quality {
    loss: 0.005,
    delay: ms(1),
    jitter: ms(1),
    duplicate: 0.02,
    reorder: 0.02,
    corrupt: 0.005,
    retries: 0,
    rate_bps: None,
    signal: None,
};

/// A server on the LAN, a road-side unit, two relays, and a vehicle that hears only those.
pub(crate) struct Fork {
    pub(crate) server: Host,
    pub(crate) rsu: Rc<TestbedNode>,
    pub(crate) relays: [Rc<TestbedNode>; 2],
    pub(crate) obu: Rc<TestbedNode>,
}

pub(crate) fn fork(bed: &mut Testbed) -> Result<Fork> {
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let relays = [bed.add_obu("left")?, bed.add_obu("right")?];
    let obu = bed.add_obu("obu1")?;
    for relay in &relays {
        bed.connect(&rsu, relay)?;
        bed.connect(relay, &obu)?;
    }
    Ok(Fork { server, rsu, relays, obu })
}

/// Runs a test, and shows what the daemons said when it fails.
pub(crate) fn with_logs<T>(
    mut bed: Testbed,
    test: impl FnOnce(&mut Testbed) -> Result<T>,
) -> Result<T> {
    Programs::find()?.require_daemons()?;
    let result = test(&mut bed);
    result.map_err(|error| anyhow!("{error:#}\n{}", bed.log_tails()))
}
