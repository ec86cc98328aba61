//! Numbered frames, and whether each of them arrived as often as it should.

use anyhow::{Result, ensure};
use node_lib::Mac;
use testbed::Host;
use testbed::probe::{FrameReceiver, NumberedFrame, send_frames};

use crate::harness::ms;

pub(crate) const MULTICAST_V4: Mac = Mac([0x01, 0, 0x5e, 1, 2, 3]);

pub(crate) const MULTICAST_V6: Mac = Mac([0x33, 0x33, 0, 1, 2, 3]);

pub(crate) fn numbered(to: Mac, from: Mac, count: u32) -> Vec<NumberedFrame> {
    let payload_len = 100;
    (0..count).map(|number| NumberedFrame { to, from, vlan: None, number, payload_len }).collect()
}

/// Sends frames and returns what arrived at each of the hosts.
pub(crate) fn exchange<'a>(
    from: &Host,
    frames: &[NumberedFrame],
    hosts: &[&'a Host],
) -> Result<Vec<(&'a Host, Vec<NumberedFrame>)>> {
    let receivers: Result<Vec<_>> = hosts
        .iter()
        .map(|host| Ok((*host, FrameReceiver::start(&host.ns, &host.interface)?)))
        .collect();
    let receivers = receivers?;
    send_frames(&from.ns, &from.interface, frames, ms(1))?;
    // A loop would show as copies that keep coming.
    std::thread::sleep(ms(300));
    receivers.into_iter().map(|(host, receiver)| Ok((host, receiver.stop()?))).collect()
}

pub(crate) fn each_arrived(
    sent: &[NumberedFrame],
    got: &[NumberedFrame],
    times: usize,
) -> Result<()> {
    let count = |frame: &NumberedFrame| got.iter().filter(|have| *have == frame).count();
    let wrong: Vec<_> = sent
        .iter()
        .map(|frame| (frame.number, count(frame)))
        .filter(|(_, count)| *count != times)
        .collect();
    ensure!(
        wrong.is_empty() && got.len() == sent.len() * times,
        "{} arrivals of {} frames, each expected {times} times; first wrong (number, times): {:?}",
        got.len(),
        sent.len(),
        wrong.get(..wrong.len().min(10))
    );
    Ok(())
}
