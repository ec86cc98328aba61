//! Many OBUs in one radio cell: control traffic grows with their number, not with its square.

use node_lib::messages::control::Control;
use node_lib::messages::{Message, PacketType};
use sim::topology::Graph;
use sim::{Fault, FrameKind, Link, NodeIndex};

use crate::common::{HEARTBEAT, Town, at, broken, ms, run_all, seeds, wrong};

#[test]
fn forty_obus_in_one_cell_speak_four_times_as_much_as_ten() {
    let sizes = [10_u32, 20, 40];
    let mut per_beat = Vec::new();
    for obus in sizes {
        let test = "forty_obus_in_one_cell_speak_four_times_as_much_as_ten";
        let done = run_all(test, seeds(4), |seed| {
            let graph = Graph::complete(obus as usize + 1);
            let mut town = Town::new(seed, &graph, &[0], Link::CLEAN);
            let riders: Vec<_> = town.riders.keys().copied().collect();
            for node in riders {
                town.up(node, at(900), ms(1000), 12);
            }
            town.world.run_until(at(2000)).map_err(broken)?;
            let before = town.world.stats();
            town.world.run_until(at(12_000)).map_err(broken)?;
            Ok(town.world.stats() - before)
        });
        let beats = 10_000.0 / HEARTBEAT.as_millis() as f64 * done.len() as f64;
        let frames: u64 = done.iter().map(|stats| stats.control().frames).sum();
        let bytes: u64 = done.iter().map(|stats| stats.control().bytes).sum();
        let frames = frames as f64 / beats;
        print!(
            "{obus} OBUs: {frames:.1} control frames, {:.0} B per heartbeat:",
            bytes as f64 / beats
        );
        for kind in (1..=7).map(FrameKind) {
            let of_kind: u64 = done.iter().map(|stats| stats.of(kind).frames).sum();
            print!(" {kind} {:.2}", of_kind as f64 / beats);
        }
        println!();
        per_beat.push(frames);
    }
    // Linear with a quarter to spare: four times the nodes, at most five times the frames.
    assert!(per_beat[1] <= per_beat[0] * 2.5, "{per_beat:?}");
    assert!(per_beat[2] <= per_beat[0] * 5.0, "{per_beat:?}");
}

/// Where there is an RSU at each crossing, each has few OBUs, and the radio carries what all of
/// them say.
#[test]
fn eight_rsus_in_one_cell_let_its_obus_speak_no_more_than_eight_times_as_much_as_one() {
    const OBUS: usize = 48;
    let test = "eight_rsus_in_one_cell_let_its_obus_speak_no_more_than_eight_times_as_much_as_one";
    let said_with = |rsus: usize| {
        let done = run_all(test, seeds(2), |seed| {
            let at_rsus: Vec<_> = (0..rsus).collect();
            let mut town = Town::new(seed, &Graph::complete(OBUS + rsus), &at_rsus, Link::CLEAN);
            town.world.run_until(at(10_000)).map_err(broken)?;
            let without = town.riders.keys().filter(|n| town.world.attachment(**n).is_none());
            let without = without.count();
            if without > 0 {
                return Err(wrong(&town, format!("{without} OBUs without an RSU")));
            }
            let before = town.world.stats();
            town.world.run_until(at(20_000)).map_err(broken)?;
            Ok((town.world.stats() - before).of(FrameKind::HEARTBEAT).frames)
        });
        let beats = 10_000.0 / HEARTBEAT.as_millis() as f64 * done.len() as f64;
        let relayed = done.iter().sum::<u64>() as f64 / beats - rsus as f64;
        println!("{rsus} RSUs, {OBUS} OBUs: {relayed:.1} heartbeats relayed per interval");
        relayed
    };
    let (of_one, of_eight) = (said_with(1), said_with(8));
    // If each relayed each, it would be 384. Somebody must, for those who might hear no RSU
    // themselves.
    assert!(of_one > 1.0, "{of_one}");
    // A tenth to spare: eight times as many draw lots.
    assert!(of_eight <= 8.0 * of_one * 1.1, "{of_one} with one RSU, {of_eight} with eight");
}

/// OBUs of a crowd next speak when the crowd has its turn, many seconds after they have announced
/// themselves. The RSU, which has just started, must not have forgotten the first by then.
#[test]
fn an_rsu_that_starts_again_in_an_idle_crowd_forgets_nobody_who_is_there() {
    const OBUS: usize = 600;
    let test = "an_rsu_that_starts_again_in_an_idle_crowd_forgets_nobody_who_is_there";
    run_all(test, seeds(2), |seed| {
        let mut town = Town::new(seed, &Graph::star(OBUS + 1), &[0], Link::CLEAN);
        town.world.run_until(at(20_000)).map_err(broken)?;
        town.world.apply(Fault::Restart(NodeIndex(0), ms(50)));
        town.world.keep_air();
        town.world.run_until(at(50_000)).map_err(broken)?;
        let heartbeats = town.world.air().iter().filter_map(|sent| {
            match Message::try_from(&sent.frame[..]).unwrap().packet {
                PacketType::Control(Control::Heartbeat(h)) if h.hops == 0 => Some((sent.time, h)),
                _ => None,
            }
        });
        let mut most = 0;
        for (time, heartbeat) in heartbeats {
            if heartbeat.obus < most {
                let what = format!("of {most} OBUs it knows {} at {time}", heartbeat.obus);
                return Err(wrong(&town, what));
            }
            most = heartbeat.obus;
        }
        // The last of them speak again only now.
        if usize::from(most) < OBUS * 9 / 10 {
            return Err(wrong(&town, format!("{most} of {OBUS} OBUs known")));
        }
        Ok(())
    });
}
