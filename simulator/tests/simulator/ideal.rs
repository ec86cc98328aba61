//! Ideal routing: what a world is like whose nodes know everything and say nothing.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use simulator::cast::Cast;
use simulator::measure::{self, Record, Run, Suite, Unfinished};
use simulator::scenario::Source;

/// A server on the LAN of the RSUs. A flow without `arrivals` is even, 50 frames a second.
const SERVER: &str = "[[lan]]\nid = \"road\"\n[[client]]\nid = \"server\"\nlan = \"road\"\n";

fn run(scenario: &str, seed: u64) -> Record {
    let source = Source::from_text(Path::new("scenario.toml"), scenario.to_owned()).unwrap();
    let scenario = &source.with(&[]).unwrap();
    let cast = &Cast::of(&source, scenario, seed).unwrap();
    let (suite, stop) = (Suite::IdealRouting, &AtomicBool::new(false));
    match measure::run(
        &Run { scenario, cast, seed, suite, trace: None, stop, goes_on: false },
        |_| (),
    ) {
        Ok(done) => done.record,
        Err(Unfinished::Broken(broken)) => panic!("{}", broken.violation),
        Err(Unfinished::Stopped) => panic!("nobody told it to stop"),
    }
}

/// Nodes and links, as `a-b:0.2` with the share that is lost both ways; clients behind nodes.
fn linked(rsus: &str, obus: &str, links: &str, clients: &[(&str, &str)]) -> String {
    let mut text = format!("duration = \"20s\"\nwarm_up = \"1s\"\n{SERVER}");
    rsus.split(' ').for_each(|id| text += &format!("[[rsu]]\nid = \"{id}\"\nlan = \"road\"\n"));
    obus.split(' ').for_each(|id| text += &format!("[[obu]]\nid = \"{id}\"\n"));
    for link in links.split(' ') {
        let (ends, loss) = link.split_once(':').unwrap_or((link, "0.0"));
        let (from, to) = ends.split_once('-').unwrap();
        text += &format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nloss = {loss}\n");
    }
    for (id, behind) in clients {
        text += &format!("[[client]]\nid = \"{id}\"\nbehind = \"{behind}\"\n");
    }
    text
}

fn flow(from: &str, to: &str) -> String {
    format!("[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nframes_per_s = 50\narrivals = \"even\"\n")
}

/// Frames that were sent, those that did not arrive, and transmissions of them.
fn carried(record: &Record) -> (u64, u64, u64) {
    let sent = record.flows.iter().map(|flow| flow.sent).sum();
    let lost = record.flows.iter().map(|flow| flow.lost.total() + flow.doubled).sum();
    let hops = record.control.seconds.iter().map(|second| second.data_frames).sum();
    (sent, lost, hops)
}

#[test]
fn on_a_line_without_loss_everything_arrives_and_no_control_frame_is_sent() {
    let laptop = &[("laptop", "far")];
    let text = linked("rsu", "a b far", "rsu-a a-b b-far", laptop)
        + &flow("laptop", "server")
        + &flow("server", "laptop");
    let record = run(&text, 1);
    let (sent, lost, hops) = carried(&record);
    assert_eq!((sent, lost), (2 * 19 * 50, 0));
    // Those under way when the warm-up ends.
    assert!(hops.abs_diff(3 * sent) <= 6, "{hops}");
    assert_eq!((record.control.frames, record.control.bytes), (0, 0));
    let routes = record.routes;
    assert!(routes.reachable > 0 && routes.working == routes.reachable, "{routes:?}");
}

/// One hop over a link that brings a fifth costs 25 transmissions, over one that brings six in ten
/// 2.8, and two good ones cost two; one that brings nine in ten costs 1.23.
#[test]
fn two_good_hops_are_taken_before_a_bad_one_and_a_fair_one_before_two() {
    for (loss, hops_each) in [("0.8", 2), ("0.4", 2), ("0.1", 1)] {
        let links = format!("rsu-far:{loss} rsu-middle middle-far");
        let text = linked("rsu", "middle far", &links, &[("laptop", "far")])
            + &flow("laptop", "server")
            + &flow("server", "laptop");
        let (sent, lost, hops) = carried(&run(&text, 1));
        assert!(hops.abs_diff(hops_each * sent) <= 4, "{loss}: {hops} for {sent}");
        // No radio tries again here.
        let expected = if hops_each == 1 { sent / 10 } else { 0 };
        assert!(lost.abs_diff(expected) <= sent / 30, "{loss}: {lost} of {sent}");
    }
}

/// The frames of one look are lost, no more: nobody has to notice anything. A switch that knows no
/// client floods, and each frame comes once; to one that has heard it over the other RSU, that RSU
/// passes on what the LAN brings.
#[test]
fn a_way_that_is_cut_is_left_at_once_also_for_the_other_rsu() {
    let (up, down) = (flow("laptop", "server"), flow("server", "laptop"));
    let early = up.clone() + "stop = \"5s\"\n";
    for flows in [down.clone() + &up, down.clone(), down + &early] {
        let text = linked("east west", "far", "east-far west-far:0.1", &[("laptop", "far")])
            + "[[fault]]\nat = \"10010ms\"\nwhat = \"cut\"\nnode = \"east\"\npeer = \"far\"\n\
               [[fault]]\nat = \"10500ms\"\nwhat = \"relink\"\nnode = \"west\"\npeer = \"far\"\n"
            + &flows;
        let record = run(&text, 1);
        let until_the_end = record.flows.iter().filter(|flow| flow.sent == 950);
        assert!(record.flows[0].sent == 950, "{:?}", record.flows);
        for flow in until_the_end {
            // Until the next look 90 ms later, and a tenth of the 20 after that.
            assert!((4..=14).contains(&flow.lost.total()), "{flow:?}");
        }
        assert!(record.flows.iter().all(|flow| flow.doubled == 0), "{:?}", record.flows);
        let [change] = &record.hand_overs[..] else { panic!("{:?}", record.hand_overs) };
        assert_eq!((&*change.from.rsu, &*change.to.as_ref().unwrap().rsu), ("east", "west"));
    }
}

/// What is known late costs what it costs anybody.
#[test]
fn who_looks_more_rarely_loses_more() {
    let text = linked("east west", "far", "east-far west-far", &[("laptop", "far")])
        + "[settings]\nideal_every = \"3s\"\n\
           [[fault]]\nat = \"10010ms\"\nwhat = \"cut\"\nnode = \"east\"\npeer = \"far\"\n"
        + &flow("laptop", "server");
    // At the first look nobody has started: until the one at 3 s, and until the one at 12 s.
    let (_, lost, _) = carried(&run(&text, 1));
    assert!((197..=203).contains(&lost), "{lost}");
}

/// From one vehicle to another the way turns where both have it in common.
#[test]
fn between_vehicles_nothing_goes_farther_up_than_it_must() {
    let clients = &[("left", "a"), ("right", "b")];
    let text = linked("rsu", "top a b", "rsu-top top-a top-b", clients) + &flow("left", "right");
    let (sent, lost, hops) = carried(&run(&text, 1));
    assert_eq!((sent, lost), (950, 0));
    assert!(hops.abs_diff(2 * sent) <= 4, "{hops} for {sent}");
}

/// So many vehicles around an RSU, all in one cell, each with so many frames a second.
fn cell(vehicles: usize, frames_per_s: u32) -> String {
    let mut text = format!(
        "duration = \"4s\"\nwarm_up = \"1s\"\n{SERVER}[radio]\nmodel = \"disk\"\n\
         [[rsu]]\nid = \"rsu\"\nlan = \"road\"\nposition_m = [0, 0]\n\
         [[client]]\nid = \"tablet\"\nbehind = \"obus\"\n\
         [[flow]]\nfrom = \"tablet\"\nto = \"server\"\nframes_per_s = {frames_per_s}\n"
    );
    for n in 0..vehicles {
        text += &format!("[[obu]]\nid = \"o{n}\"\nposition_m = [{n}, 10]\n");
    }
    text
}

/// The radio is that of everybody: what it cannot carry is lost, though every way is known.
#[test]
fn what_a_full_channel_cannot_carry_is_lost_all_the_same() {
    let (_, lost, _) = carried(&run(&cell(40, 5), 1));
    assert_eq!(lost, 0);
    // A frame of 236 bytes takes 392 µs, its acknowledgement 96 with the pause: of 4,000 a second
    // the channel carries half, or less.
    let record = run(&cell(40, 100), 1);
    let (sent, lost, _) = carried(&record);
    assert!(lost > sent / 2, "{lost} of {sent}");
    let airtime = record.control.airtime.unwrap();
    assert!(airtime.mean.busy > 0.6 && airtime.mean.control == 0.0, "{airtime:?}");
}

/// In a town with vehicles that drive, shadows and fading, over several hops.
#[test]
fn the_same_seed_does_the_same_and_another_does_not() {
    let town = format!(
        "duration = \"4s\"\nwarm_up = \"1s\"\n{SERVER}[radio]\nmodel = \"dual-slope\"\n\
         shadowing = true\nfading = \"nakagami-suburb\"\n\
         [[rsu]]\nid = \"rsu\"\nlan = \"road\"\nposition_m = [400, 400]\n\
         [mobility]\ncount = 40\ngrid = {{ blocks = [4, 4] }}\n\
         [[client]]\nid = \"tablet\"\nbehind = \"vehicles\"\n\
         [[flow]]\nfrom = \"tablet\"\nto = \"server\"\nframes_per_s = 5\n\
         [[flow]]\nfrom = \"server\"\nto = \"tablet\"\nframes_per_s = 5\n"
    );
    let once = run(&town, 1);
    let (sent, lost, hops) = carried(&once);
    assert!(hops > sent + sent / 10 && lost * 4 < sent, "{sent}, {lost}, {hops}");
    assert_eq!(once, run(&town, 1));
    assert_ne!(once.trace_hash, run(&town, 2).trace_hash);
}
