//! A crowd whose clients all speak, on a radio with contention: what it says to keep its routes
//! must leave room for what they are for.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use simulator::cast::Cast;
use simulator::measure::{self, Record, Run, Suite, Unfinished};
use simulator::scenario::Source;
use simulator::summary::Summary;

/// So many standing OBUs within 1000 m by 400 m around an RSU, up to two hops away, with a client
/// each. Each sends a frame a second, and gets one.
fn crowd(obus: usize) -> String {
    let mut text = String::from(
        r#"
        about = "A crowd whose clients all speak"
        duration = "20s"
        radio = { model = "disk", range_m = 300, access = "csma" }
        lan = [{ id = "city" }]
        rsu = [{ id = "rsu", position_m = [0, 0], lan = "city" }]
        client = [{ id = "server", lan = "city" }, { id = "tablet", behind = "obus" }]
        flow = [
            { from = "tablet", to = "server", frames_per_s = 1 },
            { from = "server", to = "tablet", frames_per_s = 1 },
        ]
        "#,
    );
    // Multiples of two irrational numbers are spread evenly.
    let spread = |n: usize, by: f64, over_m: f64| ((n as f64 * by).fract() - 0.5) * over_m;
    for n in 1..=obus {
        let (x, y) = (spread(n, 0.754_877_7, 1000.0), spread(n, 0.569_840_3, 400.0));
        writeln!(text, "[[obu]]\nid = \"car{n}\"\nposition_m = [{x:.1}, {y:.1}]").unwrap();
    }
    text
}

fn run(text: String, seed: u64) -> Record {
    let source = Source::from_text(Path::new("crowd.toml"), text).unwrap();
    let scenario = source.with(&[]).unwrap();
    let cast = Cast::of(&source, &scenario, seed).unwrap();
    let (scenario, cast) = (&scenario, &cast);
    let go_on = AtomicBool::new(false);
    let run = Run {
        scenario,
        cast,
        seed,
        suite: Suite::Daemons,
        trace: None,
        stop: &go_on,
        goes_on: false,
    };
    match measure::run(&run, |_| ()) {
        Ok(done) => done.record,
        Err(Unfinished::Broken(broken)) => panic!("{}", broken.violation),
        Err(Unfinished::Stopped) => panic!("nobody told it to stop"),
    }
}

#[test]
fn a_crowd_whose_clients_all_speak_gets_its_frames_through() {
    for (obus, seed) in [(60, 1), (60, 2), (100, 1)] {
        let record = run(crowd(obus), seed);
        let all = Summary::of(std::slice::from_ref(&record)).traffic();
        println!("{obus} OBUs, seed {seed}: {} of {} frames arrived", all.received, all.due);
        assert!(all.due > 30 * obus as u64, "{all:?}");
        assert!(all.received * 100 >= all.due * 98, "{obus} OBUs, seed {seed}: {all:?}");
    }
}
