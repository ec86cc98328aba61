//! A node starts again: how soon its traffic is back, and who still knows its clients.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use node_lib::Mac;
use testbed::Testbed;
use testbed::probe::{FrameReceiver, NumberedFrame, send_frames};

use super::fail_over::SILENT_DEATH_MAX;
use super::look::{PROBE_EVERY, active_first, all_run, reaches};
use super::numbered::numbered;
use super::scene::{PATIENCE, chain};
use crate::beds::with_logs;
use crate::harness::ms;

/// Heartbeats are sent every 100 ms by default, up to a tenth later.
const HEARTBEATS_3: Duration = ms(330);

pub(crate) fn road_side_unit_restarts() -> Result<()> {
    chain(2, |bed, server, obu| {
        let rsu = Rc::clone(&bed.nodes()[0]);
        for how in ["crash", "goodbye"] {
            if how == "crash" {
                rsu.kill()?
            } else {
                rsu.stop()?
            }
            std::thread::sleep(ms(1000));
            rsu.start()?;
            let took = reaches(&obu.host, server, PATIENCE)?;
            println!("    after a {how}: traffic {} ms after it was back", took.as_millis());
            ensure!(took <= HEARTBEATS_3 + PROBE_EVERY, "after a {how}: {took:?}");
            std::thread::sleep(ms(1000));
        }
        all_run(bed)
    })
}

/// The relay restarts, then the vehicle behind it.
pub(crate) fn vehicle_restarts() -> Result<()> {
    chain(2, |bed, server, obu| {
        for node in &bed.nodes()[1..] {
            node.kill()?;
            std::thread::sleep(ms(500));
            node.start()?;
            let took = reaches(&obu.host, server, PATIENCE)?;
            reaches(server, &obu.host, PATIENCE)?;
            println!("    {}: traffic after {} ms", node.name(), took.as_millis());
        }
        all_run(bed)
    })
}

/// Hosts on the LAN keep talking to the address they know. They begin when the OBU is attached: its
/// own host's question for their address, asked before that, goes nowhere, and is asked again a
/// second later.
pub(crate) fn a_restarted_vehicle_is_reached_at_once() -> Result<()> {
    chain(1, |bed, server, obu| {
        reaches(server, &obu.host, PATIENCE)?;
        let mac = obu.host.mac_now()?;
        for how in ["crash", "goodbye", "change of its MAC"] {
            if how == "crash" {
                obu.kill()?
            } else {
                obu.stop()?
            }
            let is_changed = how.starts_with("change");
            if is_changed {
                obu.extra_args
                    .borrow_mut()
                    .extend(["--tap-mac", "02:77:00:00:00:01"].map(str::to_owned));
            }
            std::thread::sleep(ms(1000));
            obu.start()?;
            ensure!((obu.host.mac_now()? == mac) != is_changed, "the MAC after a {how}");
            obu.wait_until_attached(Duration::from_secs(1))?;
            let took = reaches(server, &obu.host, PATIENCE)?;
            println!("    after a {how}: reached from the LAN after {} ms", took.as_millis());
            ensure!(took <= Duration::from_secs(1), "after a {how}: {took:?}");
        }
        all_run(bed)
    })
}

/// A camera says one word and never another. Then its vehicle's OBU is killed and started again,
/// and the RSU in use dies. Who is behind it the OBU knows from the bridge its TAP is in; or, as
/// here the bridge has forgotten it too, from the file beside its state file.
pub(crate) fn a_silent_client_is_known_after_a_restart() -> Result<()> {
    const ATTACHED_WITHIN: Duration = Duration::from_secs(5);
    for source in ["bridge", "file"] {
        let mut bed = Testbed::new(1)?;
        let server = bed.add_host("server")?;
        let mut rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
        let (obu, cabin) = bed.add_obu_with_cabin("obu1", 1)?;
        for rsu in &rsus {
            bed.connect(rsu, &obu)?;
        }
        let states = tempfile::TempDir::new_in(testbed::arena::scratch())?;
        if source == "file" {
            let boots = states.path().join("boots").display().to_string();
            obu.extra_args.borrow_mut().extend(["--state-file".to_owned(), boots]);
        }
        with_logs(bed, |bed| {
            bed.start_all()?;
            obu.wait_until_attached(ATTACHED_WITHIN)?;
            let (camera, mac) = &cabin.clients[0];
            let word = numbered(Mac::BROADCAST, *mac, 1);
            send_frames(&cabin.ns, camera, &word, ms(0))?;
            // Longer than until it is written down.
            std::thread::sleep(ms(3500));
            obu.kill()?;
            if source == "file" {
                // A port that goes down is one behind which nobody is known.
                obu.ns().set_down(camera)?;
                obu.ns().set_up(camera)?;
            }
            obu.start()?;
            obu.wait_until_attached(ATTACHED_WITHIN)?;
            // The other RSU is known, and stands by.
            std::thread::sleep(ms(1500));
            let (active, other) = active_first(&obu, &mut rsus)?;
            let frames = numbered(*mac, server.mac_now()?, 200);
            let receiver = FrameReceiver::start(&cabin.ns, camera)?;
            send_frames(&server.ns, &server.interface, &frames[..20], PROBE_EVERY)?;
            active.kill()?;
            send_frames(&server.ns, &server.interface, &frames[20..], PROBE_EVERY)?;
            let got = receiver.stop()?;
            let arrived = |frame: &NumberedFrame| got.contains(frame);
            let worst = frames.split(arrived).map(<[_]>::len).max().unwrap_or(0);
            println!("    {source}: {worst} frames to the silent client lost in a row");
            ensure!(frames.last().is_some_and(arrived), "{source}: the last did not arrive");
            let outage = PROBE_EVERY * u32::try_from(worst)?;
            ensure!(outage <= SILENT_DEATH_MAX, "{source}: unreachable for {outage:?}");
            let port = bed.lan().bridge_port_of(*mac)?;
            ensure!(port.as_deref() == Some(other.name()), "{source}: behind {port:?}");
            Ok(())
        })?;
    }
    Ok(())
}
