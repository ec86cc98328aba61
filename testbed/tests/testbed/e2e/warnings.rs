//! What is wrong on the air or behind the TAP is named in a warning.

use std::time::Duration;

use anyhow::{Result, ensure};
use node_lib::Mac;
use testbed::daemons::daemon::{Daemon, LogEvent};
use testbed::probe::send_frames;
use testbed::{Programs, Testbed, TestbedNode, wait_until};

use super::look::{PROBE_EVERY, all_run, counters_of, reaches};
use super::numbered::numbered;
use super::scene::PATIENCE;
use crate::beds::with_logs;
use crate::harness::ms;

/// What a node says that does not find its radio.
pub(crate) const RADIO_GONE: &str = "radio interface is gone, waiting for it";

/// What a node says whose TAP leads nowhere.
pub(crate) const LAN_DOWN: &str =
    "TAP is down, gone or out of its bridge: no frame gets through to the LAN";

/// Two daemons on one radio, one id for two nodes, a TAP that leads nowhere.
pub(crate) fn first_contact_names_what_is_wrong() -> Result<()> {
    const SHARED: &str = "another program of this host has this radio with the same EtherType: \
                          programs on one radio do not hear each other";
    const CONFLICT: &str =
        "another node uses our node id: give one of the two another with --node-id";
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&rsu, &obu)?;
    let logs = tempfile::TempDir::new_in(testbed::arena::scratch())?;
    let programs = Programs::find()?;
    with_logs(bed, |bed| {
        for node in bed.nodes() {
            let id = ["--node-id", "02:00:00:00:00:77"];
            node.extra_args.borrow_mut().extend(id.map(str::to_owned));
        }
        rsu.launch()?;
        obu.start()?;
        let line = "-b radio0 -t tap1 -i 10.9.9.9/24 --node-id 02:00:00:00:00:78 --log-format json";
        let args: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let log = logs.path().join("second.log");
        let second = Daemon::start(obu.ns(), &programs.obu, &args, &log)?;
        second.wait_for_event(SHARED, PATIENCE, |_| true)?;
        for node in bed.nodes() {
            node.daemon()?.wait_for_event(CONFLICT, PATIENCE, |_| true)?;
        }
        let unused = |event: &LogEvent| event.message().starts_with("TAP has no address");
        wait_until("the RSU says that nobody uses its TAP", Duration::from_secs(20), || {
            Ok(rsu.events()?.iter().any(unused).then_some(()))
        })?;
        for other in [obu.daemon()?.events()?, second.events()?] {
            ensure!(!other.iter().any(unused), "a TAP with an address is used");
        }
        all_run(bed)
    })
}

/// Each of two nodes that do not understand each other says what the other one uses, and a third
/// that hears nobody does not.
pub(crate) fn different_ethertypes_are_named() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (rsu, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    let alone = bed.add_obu("obu2")?;
    bed.connect(&rsu, &obu)?;
    let other = ["--ethertype", "0x88b6"].map(str::to_owned);
    obu.extra_args.borrow_mut().extend(other);
    with_logs(bed, |bed| {
        bed.nodes().iter().try_for_each(|node| node.launch())?;
        let likely = |node: &TestbedNode| -> Result<String> {
            let warning = "no other node has been heard";
            let event =
                node.daemon()?.wait_for_event(warning, Duration::from_secs(20), |_| true)?;
            Ok(event.text("likely"))
        };
        for (node, cause) in [(&rsu, "EtherType 0x88b6"), (&obu, "EtherType 0x88b5")] {
            let said = likely(node)?;
            ensure!(said.contains(cause), "{}: {said}", node.name());
        }
        let said = likely(&alone)?;
        ensure!(said.contains("nobody is in range"), "obu2: {said}");
        all_run(bed)
    })
}

/// Something between the radios, a switch for example, puts frames into a VLAN.
pub(crate) fn tagged_frames_are_named() -> Result<()> {
    let mut bed = Testbed::new(1)?;
    let (other, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&other, &obu)?;
    // That of the frames a test can send.
    obu.extra_args.borrow_mut().extend(["--ethertype", "0x88b6"].map(str::to_owned));
    with_logs(bed, |bed| {
        obu.launch()?;
        let mut tagged = numbered(Mac::BROADCAST, other.radio, 120);
        tagged.iter_mut().for_each(|frame| frame.vlan = Some(7));
        send_frames(other.ns(), "radio0", &tagged, ms(100))?;
        let warning = "no other node has been heard";
        let event = obu.daemon()?.wait_for_event(warning, PATIENCE, |_| true)?;
        let said = event.text("likely");
        ensure!(said.contains("frames with a VLAN tag were heard"), "{said}");
        ensure!(!said.contains("for other addresses"), "{said}");
        let counters = counters_of(&obu)?.text("radio");
        ensure!(counters.contains("rx_tagged="), "{counters}");
        ensure!(!counters.contains("rx_frames="), "{counters}");
        // In no VLAN but with a priority a frame is a frame.
        tagged.iter_mut().for_each(|frame| frame.vlan = Some(0xe000));
        send_frames(other.ns(), "radio0", &tagged[..1], ms(0))?;
        let counters = counters_of(&obu)?.text("radio");
        ensure!(counters.contains("rx_frames=1"), "{counters}");
        bed.nodes()[1].stop()
    })
}

/// A neighbour's, on a radio that takes less; and those of a host in the vehicle, for which the
/// radio has become too small.
pub(crate) fn frames_that_are_too_long_are_named() -> Result<()> {
    const WARNING: &str = "frame too long, dropped";
    let named = |node: &TestbedNode, from: Mac, bytes: u64, cure: &str| -> Result<()> {
        let event = node.daemon()?.wait_for_event(WARNING, PATIENCE, |_| true)?;
        let said = (event.text("from"), event.text("bytes"), event.text("cure"));
        let is_named = said.0 == from.to_string() && said.1 == bytes.to_string();
        ensure!(is_named && said.2.contains(cure), "{}: {said:?}", node.name());
        let lines = node.times_logged(WARNING)?;
        ensure!(lines == 1, "{}: {lines} warnings", node.name());
        Ok(())
    };
    let mut bed = Testbed::with_radio_mtu(1, 2200)?;
    let (other, obu) = (bed.add_rsu("rsu1")?, bed.add_obu("obu1")?);
    bed.connect(&other, &obu)?;
    obu.extra_args.borrow_mut().extend(["--ethertype", "0x88b6"].map(str::to_owned));
    with_logs(bed, |bed| {
        bed.set_radio_mtu(&obu, 2100)?;
        obu.launch()?;
        obu.daemon()?.wait_for_event("running", PATIENCE, |_| true)?;
        let mut long = numbered(Mac::BROADCAST, other.radio, 20);
        // A veth lets so much more than its MTU through, for a VLAN tag.
        long.iter_mut().for_each(|frame| frame.payload_len = 2104);
        send_frames(other.ns(), "radio0", &long, PROBE_EVERY)?;
        named(&obu, other.radio, 2118, "MTU")?;
        obu.stop()
    })?;

    let mut bed = Testbed::new(1)?;
    let (server, rsu) = (bed.add_host("server")?, bed.add_rsu("rsu1")?);
    let (obu, laptop) = bed.add_obu_with_host("obu1", "laptop")?;
    bed.connect(&rsu, &obu)?;
    obu.extra_args.borrow_mut().extend(["-m", "9000"].map(str::to_owned));
    with_logs(bed, |bed| {
        for (ns, interface) in [(obu.ns(), "eth0"), (&laptop.ns, "eth0"), (obu.ns(), "br0")] {
            ns.set_mtu(interface, 9000)?;
        }
        bed.start_all()?;
        reaches(&laptop, &server, PATIENCE)?;
        bed.set_radio_mtu(&obu, 1000)?;
        obu.daemon()?.wait_for_event("radio MTU does not fit the TAP", PATIENCE, |_| true)?;
        let mut long = numbered(server.mac_now()?, laptop.mac_now()?, 20);
        long.iter_mut().for_each(|frame| frame.payload_len = 9000);
        send_frames(&laptop.ns, &laptop.interface, &long, PROBE_EVERY)?;
        named(&obu, laptop.mac_now()?, 9014, "MTU")?;
        let counters = counters_of(&obu)?.text("node");
        ensure!(counters.contains("drop_oversize=20"), "{counters}");
        all_run(bed)
    })
}
