//! Runs: what is measured is what happened, and the same seed gives the same bytes.

use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use simulator::campaign::{Campaign, Variant, records};
use simulator::cast::Cast;
use simulator::measure::{self, Direction, Record, Run, Suite, Unfinished};
use simulator::report::json;
use simulator::scenario::{Override, Source, Span, parse_variants};
use simulator::summary::Summary;

fn example(name: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios").join(name);
    Source::open(&path).unwrap()
}

fn run_with(source: &Source, set: &[&str], seed: u64) -> (Record, String) {
    let set: Vec<Override> = set.iter().map(|typed| typed.parse().unwrap()).collect();
    let scenario = source.with(&set).unwrap();
    let cast = Cast::of(source, &scenario, seed).unwrap();
    let (scenario, cast) = (&scenario, &cast);
    let go_on = AtomicBool::new(false);
    let mut trace = tempfile::tempfile().unwrap();
    let run = Run {
        scenario,
        cast,
        seed,
        suite: Suite::Daemons,
        trace: Some(&trace),
        stop: &go_on,
        goes_on: false,
    };
    match measure::run(&run, |_| ()) {
        Ok(done) => {
            done.trace.unwrap();
            let mut text = String::new();
            trace.rewind().unwrap();
            trace.read_to_string(&mut text).unwrap();
            (done.record, text)
        }
        Err(Unfinished::Broken(broken)) => panic!("{}", broken.violation),
        Err(Unfinished::Stopped) => panic!("nobody told it to stop"),
    }
}

#[test]
fn every_example_runs_clean_and_carries_traffic() {
    for (name, set) in [
        ("pair.toml", vec!["duration=7s", "seeds=1"]),
        ("diamond.toml", vec![]),
        ("corridor.toml", vec!["duration=20s"]),
        ("platoon.toml", vec!["duration=15s"]),
        ("city.toml", vec!["duration=20s"]),
        // Its own movements are not part of the repository.
        ("bologna.toml", vec!["duration=5s", "mobility.file=grid-180s.csv.gz"]),
    ] {
        let (record, _) = run_with(&example(name), &set, 1);
        let all = Summary::of(std::slice::from_ref(&record)).traffic();
        if name == "bologna.toml" {
            assert!(record.routes.reachable > 0 || record.routes.unreachable > 0);
        } else {
            assert!(all.received * 2 > all.due, "{name}: {all:?}");
            assert_eq!(all.due, all.received + all.lost.total(), "{name}: {all:?}");
            let routes = record.routes;
            assert!(routes.routed * 10 > routes.reachable * 9, "{name}");
            let least = routes.working..=routes.hops;
            assert!(routes.working > 0 && least.contains(&routes.hops_least), "{name}: {routes:?}");
        }
    }
}

/// The last frames may arrive for a while after the end; nothing else is looked at then.
#[test]
fn samples_end_with_the_duration() {
    let set = ["sample_every=1s", "grace=0s", "fault.at=10s"];
    let (record, _) = run_with(&example("pair.toml"), &set, 1);
    // At second 1, when the warm-up is over, to second 10.
    assert_eq!((record.routes.reachable, record.routes.unreachable), (10, 0));
}

/// What nothing was measured of is not 0: in the record, in JSON, and in its sums.
#[test]
fn what_was_not_measured_is_not_zero() {
    // `far` loses its upstream twice; the traffic of its clients begins after that.
    let set = ["flow.start=19s"];
    let (record, _) = run_with(&example("diamond.toml"), &set, 1);
    assert!(!record.hand_overs.is_empty());
    for hand_over in &record.hand_overs {
        let gaps = (hand_over.frames, hand_over.gap_ms, hand_over.gap_by_routing_ms);
        assert_eq!(gaps, (0, None, None), "{hand_over:?}");
    }
    let sum = Summary::of(std::slice::from_ref(&record));
    assert_eq!((sum.all_hand_overs.measured, sum.all_hand_overs.gap_ms), (0, None));
    assert!(sum.all_hand_overs.without_ms.is_some());
    // Frames of links take no air.
    assert_eq!((record.control.airtime, sum.airtime), (None, None));
    assert!(record.control.seconds.iter().all(|second| second.airtime.is_none()));
    // No frames, no gap; and one that lasts to the end has no length yet.
    let set = ["flow.to=nobody", "fault.what=crash", "fault.node=rsu1"];
    let (record, _) = run_with(&example("diamond.toml"), &set, 1);
    assert!(record.flows.iter().all(|flow| flow.longest_gap_ms.is_none()), "{:?}", record.flows);
    let last = record.hand_overs.last().unwrap();
    assert_eq!((&last.to, last.without_ms), (&None, None), "{last:?}");
    // Percentiles are of what was measured.
    let (record, _) = run_with(&example("city.toml"), &["duration=30s"], 1);
    let sum = Summary::of(std::slice::from_ref(&record)).all_hand_overs;
    assert!(0 < sum.measured && sum.measured < sum.count, "{sum:?}");
    let mut gaps: Vec<f64> = record.hand_overs.iter().filter_map(|h| h.gap_ms).collect();
    gaps.sort_by(f64::total_cmp);
    assert_eq!(gaps.len() as u64, sum.measured);
    assert_eq!(sum.gap_ms.unwrap().p50, gaps[gaps.len().div_ceil(2) - 1]);
}

#[test]
fn losses_add_up_with_what_was_cut() {
    // Cut from second 4 to 6, 100 frames a second each way, on a link that loses nothing else.
    let (record, _) = run_with(&example("pair.toml"), &["link.loss=0"], 3);
    for flow in &record.flows {
        let lost = flow.lost;
        assert_eq!(lost.total(), flow.due - flow.received, "{flow:?}");
        assert_eq!(lost.on_air, 0, "{flow:?}");
        // No way at all for two seconds, and for a moment after: nothing routing could have done,
        // but for what is lost until the new link has been noticed.
        assert!((190..=205).contains(&lost.out_of_range), "{flow:?}");
        assert!(lost.by_routing() <= 30, "{flow:?}");
        assert!((1990.0..2400.0).contains(&flow.longest_gap_ms.unwrap()), "{flow:?}");
    }
    assert_eq!(record.hand_overs.len(), 1, "{:?}", record.hand_overs);
    let hand_over = &record.hand_overs[0];
    assert_eq!((hand_over.obu.as_str(), hand_over.cause), ("car", "dead"));
    assert_eq!(hand_over.to.as_ref().unwrap().rsu, "rsu1");
    assert!(!hand_over.rsu_changed);
    let all: u64 = record.flows.iter().map(|flow| flow.lost.total()).sum();
    assert_eq!(hand_over.lost.total(), all);
    let longest = record.flows.iter().filter_map(|flow| flow.longest_gap_ms).fold(0.0, f64::max);
    assert!((hand_over.gap_ms.unwrap() - longest).abs() < 0.001);
    assert!(hand_over.gap_by_routing_ms.unwrap() < 300.0, "{hand_over:?}");
    // What the OBU wrote down itself agrees with what its client saw: the frames it had no way for
    // are those that were lost on their way up and never sent.
    let own = hand_over.own.unwrap();
    assert!(own.is_settled);
    assert!((own.gap_ms - longest).abs() < 150.0, "{own:?}, {longest}");
    let up = &record.flows[0];
    assert!(
        own.lost <= up.lost.total() && up.lost.total() <= own.lost + own.at_risk,
        "{own:?} {up:?}"
    );
}

#[test]
fn a_link_that_only_loses_frames_is_told_apart_from_one_that_is_gone() {
    let (record, _) = run_with(&example("pair.toml"), &["link.loss=0.2", "fault.at=10s"], 3);
    let lost = Summary::of(std::slice::from_ref(&record)).traffic().lost;
    // 1,800 frames; three standard deviations.
    assert!((309..=411).contains(&lost.on_air), "{lost:?}");
    assert!(lost.total() - lost.on_air < 40, "{lost:?}");
    // Sent again up to seven times, next to nothing is lost.
    let set = ["link.loss=0.2", "fault.at=10s", "radio.retries=7"];
    let (record, _) = run_with(&example("pair.toml"), &set, 3);
    let lost = Summary::of(std::slice::from_ref(&record)).traffic().lost;
    assert!(lost.total() < 5, "{lost:?}");
}

/// What a link takes is what is reported, by flow and by direction.
#[test]
fn delivered_frames_have_a_delay_by_direction() {
    let text = "duration = \"11s\"\n[[lan]]\nid = \"road\"\n[[rsu]]\nid = \"r\"\nlan = \"road\"\n\
        [[obu]]\nid = \"near\"\n[[obu]]\nid = \"far\"\n\
        [[link]]\nfrom = \"r\"\nto = \"near\"\ndelay = \"5ms\"\njitter = \"0s\"\n\
        [[link]]\nfrom = \"near\"\nto = \"far\"\ndelay = \"20ms\"\njitter = \"0s\"\n\
        [[client]]\nid = \"server\"\nlan = \"road\"\n[[client]]\nid = \"car\"\nbehind = \"obus\"\n\
        [[client]]\nid = \"leader\"\nbehind = \"near\"\n\
        [[flow]]\nfrom = \"car\"\nto = \"server\"\nframes_per_s = 10\narrivals = \"even\"\n\
        [[flow]]\nfrom = \"server\"\nto = \"car\"\nframes_per_s = 10\narrivals = \"even\"\n\
        [[flow]]\nfrom = \"leader\"\nto = \"server\"\nframes_per_s = 20\narrivals = \"even\"\n\
        [[flow]]\nfrom = \"leader\"\nto = \"car\"\nframes_per_s = 1\narrivals = \"even\"\n\
        [[flow]]\nfrom = \"server\"\nto = \"everyone\"\nframes_per_s = 1\narrivals = \"even\"\n\
        [[flow]]\nfrom = \"server\"\nto = \"nobody\"\nframes_per_s = 1\narrivals = \"even\"\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/a.toml");
    let source = Source::from_text(&path, text.to_owned()).unwrap();
    let (record, _) = run_with(&source, &[], 1);
    let of = |from: &str, to: &str| {
        let flow = record.flows.iter().find(|flow| flow.from == from && flow.to == to).unwrap();
        (flow.direction.map(Direction::as_str), flow.delay_ms.map(|delay| delay.p50))
    };
    let is_about = |(direction, ms): (Option<&str>, Option<f64>), way: Option<&str>, least: f64| {
        // On top come switches, some of 20 µs, and nothing else.
        assert!(
            direction == way && (least..least + 0.2).contains(&ms.unwrap()),
            "{direction:?} {ms:?}"
        );
    };
    is_about(of("car@near", "server"), Some("up"), 5.0);
    is_about(of("car@far", "server"), Some("up"), 25.0);
    is_about(of("server", "car@far"), Some("down"), 25.0);
    // Through the RSU, which knows where clients are.
    is_about(of("leader@near", "car@far"), Some("between vehicles"), 30.0);
    is_about(of("server", "everyone"), None, 5.0);
    assert_eq!(of("server", "nobody"), (None, None));
    let sum = Summary::of(&[record.clone(), record]);
    let names: Vec<&str> = sum.directions.iter().map(|sum| sum.flow.as_str()).collect();
    assert_eq!(names, ["up", "down", "between vehicles"]);
    // A quarter of the frames come from afar.
    let up = &sum.directions[0];
    let spread = up.delay_ms.spread().unwrap();
    assert!((780..=800).contains(&up.received), "{up:?}");
    assert!(spread.p50 < 5.2 && spread.p90 >= 25.0 && spread.max < 25.2, "{spread:?}");
    assert!(sum.traffic().delay_ms.spread().unwrap().p99 >= 25.0);
}

#[test]
fn a_vehicle_predicts_only_where_radios_report_signal() {
    let causes = |set: &[&str]| {
        let (record, _) = run_with(&example("corridor.toml"), set, 1);
        record.hand_overs.iter().map(|hand_over| hand_over.cause).collect::<Vec<_>>()
    };
    let shipped = causes(&["duration=40s"]);
    assert!(shipped.contains(&"predicted"), "{shipped:?}");
    let unreported = causes(&["duration=40s", "radio.reports_signal=false"]);
    assert!(!unreported.is_empty() && !unreported.contains(&"predicted"), "{unreported:?}");
}

/// Two ways to the RSU, of which the one in use loses a third of all tries; each frame is tried
/// three times.
#[test]
fn what_a_radio_gives_up_goes_once_more_where_radios_tell() {
    let text = "duration = \"60s\"\n[radio]\nmodel = \"links\"\nretries = 2\n[[lan]]\n\
                id = \"road\"\n[[rsu]]\nid = \"r\"\nlan = \"road\"\n[[obu]]\nid = \"a\"\n[[obu]]\n\
                id = \"o\"\n[[link]]\nfrom = \"r\"\nto = \"a\"\nloss = 0.3\n[[link]]\n\
                from = \"a\"\nto = \"o\"\nloss = 0.3\n[[client]]\nid = \"server\"\nlan = \"road\"\n\
                [[client]]\nid = \"car\"\nbehind = \"o\"\n[[flow]]\nfrom = \"server\"\n\
                to = \"car\"\nframes_per_s = 50\n[[flow]]\nfrom = \"car\"\nto = \"server\"\n\
                frames_per_s = 50\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/a.toml");
    let source = Source::from_text(&path, text.to_owned()).unwrap();
    let run = |set: &[&str]| {
        let (record, _) = run_with(&source, set, 1);
        record.flows.iter().map(|flow| flow.due - flow.received).collect::<Vec<_>>()
    };
    let (silent, told) = (run(&[]), run(&["radio.reports_unacknowledged=true"]));
    println!("lost {silent:?}, where radios tell {told:?}");
    // Up both hops send once more, down only the relay: the RSU does not.
    assert!(told[1] * 4 < silent[1] && told[0] * 3 < silent[0] * 2, "{silent:?}, {told:?}");
}

/// A relay falls silent and another says goodbye: what they were given goes the other way, and no
/// client gets a frame twice.
#[test]
fn a_silent_death_loses_nothing() {
    let source = example("diamond.toml");
    let lost = |set: &[&str], seed| {
        let (record, _) = run_with(&source, set, seed);
        let flows = record.flows.iter();
        flows.map(|flow| (flow.due - flow.received, flow.doubled)).collect::<Vec<_>>()
    };
    let neither = ["settings.obu.policy.rerouting=false", "settings.rsu.rerouting=false"];
    let mut without = 0;
    for seed in 1..=5 {
        assert_eq!(lost(&[], seed), [(0, 0); 3], "seed {seed}");
        without += lost(&neither, seed).iter().map(|(lost, _)| lost).sum::<u64>();
    }
    assert!(without > 0, "the relays in use were others");
}

/// A thousand broadcasts of 200 bytes a second, each counted as 264, in whole units of 64: the
/// RSU's setting says how many of them it sends.
#[test]
fn an_rsu_sends_as_much_broadcast_as_its_group_rate_lets_it() {
    let text = "duration = \"11s\"\n[[lan]]\nid = \"road\"\n[[rsu]]\nid = \"r\"\nlan = \"road\"\n\
        [[obu]]\nid = \"o\"\n[[link]]\nfrom = \"r\"\nto = \"o\"\n\
        [[client]]\nid = \"server\"\nlan = \"road\"\n[[client]]\nid = \"car\"\nbehind = \"o\"\n\
        [[flow]]\nfrom = \"server\"\nto = \"everyone\"\nframes_per_s = 1000\narrivals = \"even\"\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/a.toml");
    let source = Source::from_text(&path, text.to_owned()).unwrap();
    let received = |set: &[&str]| {
        let (record, _) = run_with(&source, set, 1);
        (record.flows[0].received, record.flows[0].due)
    };
    let (all, due) = received(&["settings.rsu.group_rate=0"]);
    assert_eq!((all, due), (10_000, 10_000));
    // Ten seconds, and two that may go at once at the start.
    for (set, kb) in [(&[][..], 128), (&["settings.rsu.group_rate=26"], 26)] {
        let (received, _) = received(set);
        let expected = kb * 1000 * 12 / 320;
        assert!(received.abs_diff(expected) * 50 < expected, "{received}, {kb} kB a second");
    }
}

/// Cameras fill the channel around one of two RSUs, between which a car goes to and fro. What the
/// full one left in its TAP the car has long had from the other one.
#[test]
fn a_full_rsu_brings_no_broadcast_a_second_time() {
    let text = r#"
        duration = "60s"
        warm_up = "2s"
        radio = { model = "disk", rate_mbps = 3 }
        lan = [{ id = "city" }]
        rsu = [
            { id = "rsu1", position_m = [0, 0], lan = "city" },
            { id = "rsu2", position_m = [500, 0], lan = "city" },
        ]
        obu = [
            { id = "sink", position_m = [-100, 0] },
            { id = "crowd", position_m = [-50, 0], count = 8, gap_m = 10 },
            { id = "car", path_m = [[320, 0], [180, 0]], speed_kmh = 150, at_end = "return" },
        ]
        client = [
            { id = "server", lan = "city" },
            { id = "disk", behind = "sink" },
            { id = "cameras", behind = "crowd" },
            { id = "tablet", behind = "car" },
        ]
        flow = [
            { from = "cameras", to = "server", frames_per_s = 60, size_bytes = 1400 },
            { from = "server", to = "disk", frames_per_s = 200, size_bytes = 1400 },
            { from = "server", to = "tablet", frames_per_s = 10 },
            { id = "news", from = "server", to = "everyone", frames_per_s = 10 },
        ]
    "#;
    let source = Source::from_text(Path::new("full.toml"), text.to_owned()).unwrap();
    for seed in 1..=5 {
        // A frame that comes twice ends it.
        let (record, _) = run_with(&source, &[], seed);
        assert!(record.flows[3].received > 100, "seed {seed}: {}", record.flows[3].received);
    }
}

/// Without a word about it clients speak as a Poisson process, another one for each seed.
#[test]
fn traffic_differs_from_seed_to_seed() {
    let sent = |set: &[&str], seed| {
        let (record, _) = run_with(&example("pair.toml"), set, seed);
        record.flows.iter().map(|flow| flow.sent).collect::<Vec<u64>>()
    };
    let even = ["fault.at=10s", "flow.arrivals=even"];
    assert_eq!(sent(&even, 1), [900, 900]);
    assert_eq!(sent(&even, 2), [900, 900]);
    let poisson = ["fault.at=10s", "flow.arrivals=poisson"];
    let counts: Vec<u64> = (1..=8).flat_map(|seed| sent(&poisson, seed)).collect();
    assert_eq!(sent(&poisson, 1), counts[..2]);
    // Nine seconds of 100 frames: mean and variance of a count are 900. Sixteen counts: within
    // three standard deviations of the mean, and of a variance that such counts show (chi-square).
    let mean = counts.iter().sum::<u64>() as f64 / 16.0;
    let variance = counts.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>() / 15.0;
    assert!((mean - 900.0).abs() < 3.0 * 30.0 / 4.0, "{counts:?}");
    assert!((900.0 * 0.25..900.0 * 2.5).contains(&variance), "{variance} {counts:?}");
}

/// A run that goes on has figures, and counts what a run that does not would have ended with.
#[test]
fn a_run_that_goes_on_counts_broken_rules() {
    let source = example("platoon.toml");
    let set = [
        "settings.obu.policy.feasibility=false",
        "settings.obu.policy.quiet_period=false",
        "radio.access=instant",
        "radio.loss=0.4",
        "duration=20s",
    ];
    let set: Vec<Override> = set.iter().map(|set| set.parse().unwrap()).collect();
    let scenario = &source.with(&set).unwrap();
    let stop = &AtomicBool::new(false);
    let mut broken = 0;
    for seed in 1..=60 {
        let cast = &Cast::of(&source, scenario, seed).unwrap();
        let suite = Suite::Daemons;
        let run = |goes_on| {
            let run = Run { scenario, cast, seed, suite, trace: None, stop, goes_on };
            measure::run(&run, |_| ())
        };
        let Ok(done) = run(true) else { panic!("seed {seed} ended early") };
        assert!(done.record.routes.reachable > 0);
        match run(false) {
            Ok(whole) => {
                assert!(done.breaches == 0 && done.violation.is_none(), "seed {seed}");
                assert_eq!(done.record.trace_hash, whole.record.trace_hash);
            }
            Err(Unfinished::Broken(ended)) => {
                assert!(done.breaches > 0);
                let first = done.violation.unwrap();
                assert_eq!(first.to_string(), ended.violation.to_string(), "seed {seed}");
                broken += 1;
            }
            Err(Unfinished::Stopped) => panic!("nobody stopped it"),
        }
    }
    assert!((1..60).contains(&broken), "{broken}");
}

#[test]
fn a_process_stands_still_as_a_scenario_says() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios/pair.toml"),
    )
    .unwrap();
    let text = text.split("[[fault]]").next().unwrap().to_owned()
        + "[[fault]]\nat = \"4s\"\nwhat = \"stall\"\nnode = \"car\"\nafter = \"500ms\"\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/a.toml");
    let source = Source::from_text(&path, text).unwrap();
    let (record, trace) = run_with(&source, &["link.loss=0"], 1);
    assert!(trace.contains("fault stall n1 for 500 ms"));
    // Late, but none is lost on its way up; and there is no reason to go anywhere.
    assert_eq!(record.flows[0].lost.total(), 0, "{:?}", record.flows);
    assert!(record.hand_overs.is_empty(), "{:?}", record.hand_overs);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let source = example("platoon.toml");
    let set = ["duration=8s", "radio.access=instant"];
    let (first, second) = (run_with(&source, &set, 5), run_with(&source, &set, 5));
    assert!(first.1.len() > 10_000);
    assert!(first == second, "two runs of one seed differ");
    let other = run_with(&source, &set, 6);
    assert_ne!(first.0.trace_hash, other.0.trace_hash);
}

#[test]
fn the_report_is_the_same_to_the_byte_however_many_threads_made_it() {
    let source = example("diamond.toml");
    let set: Vec<Override> =
        ["duration=6s", "fault.at=5s"].map(|typed| typed.parse().unwrap()).to_vec();
    let vary = vec![parse_variants("settings.obu.cached_candidates=0,3").unwrap()];
    let report = |jobs| {
        let campaign = Campaign {
            variants: Variant::all(&source, &set, &vary).unwrap(),
            seed: Some(3),
            seeds: Some(2),
            jobs,
            suite: Suite::Daemons,
            trace: None,
            stop: Arc::default(),
        };
        let outcomes = campaign.run(|_| ());
        let seeds: Vec<(usize, u64)> = outcomes.iter().map(|o| (o.variant, o.seed)).collect();
        assert_eq!(seeds, [(0, 3), (0, 4), (1, 3), (1, 4)]);
        assert_eq!(records(&outcomes, 1).len(), 2);
        assert_eq!(campaign.simulated(), 4 * Duration::from_millis(6200));
        json::report("diamond.toml", &[], &campaign, &outcomes, false).unwrap()
    };
    assert_eq!(report(1), report(3));
}

#[test]
fn a_campaign_that_is_told_to_stop_keeps_what_is_finished() {
    let source = example("pair.toml");
    let stop = Arc::<AtomicBool>::default();
    let campaign = Campaign {
        variants: Variant::all(&source, &["sample_every=30s".parse().unwrap()], &[]).unwrap(),
        seed: Some(5),
        seeds: Some(3),
        jobs: 1,
        suite: Suite::Daemons,
        trace: None,
        stop: stop.clone(),
    };
    // In the middle of the second run, though a sample is taken only at its end.
    let passed = Mutex::new(Duration::ZERO);
    let outcomes = campaign.run(|span| {
        let mut passed = passed.lock().unwrap();
        *passed += span;
        stop.store(*passed >= Duration::from_secs(15), Ordering::Relaxed);
    });
    let seeds: Vec<u64> = outcomes.iter().map(|outcome| outcome.seed).collect();
    assert_eq!((seeds, campaign.planned(0)), (vec![5], 3));
    assert!(*passed.lock().unwrap() < Duration::from_secs(17));
    assert_eq!(campaign.simulated_by(&outcomes), Duration::from_millis(10_200));
    let report = json::report("pair.toml", &[], &campaign, &outcomes, false).unwrap();
    assert!(report.contains("\"interrupted\": true") && report.contains("\"trace_hash\""));
}

#[test]
fn flooding_costs_more_than_our_rules() {
    let source = example("city.toml");
    let frames = |suite| {
        let set = ["duration=6s".parse().unwrap(), "radio.access=instant".parse().unwrap()];
        let mut campaign = Campaign {
            variants: Variant::all(&source, &set, &[]).unwrap(),
            seed: None,
            seeds: Some(1),
            jobs: 1,
            suite,
            trace: None,
            stop: Arc::default(),
        };
        campaign.variants[0].scenario.flow.clear();
        let outcomes = campaign.run(|_| ());
        let record = &records(&outcomes, 0)[0];
        let of = |kind: &str| {
            record.control.kinds.iter().find(|count| count.kind == kind).unwrap().frames
        };
        (of("heartbeat"), of("reply"), record.control.bytes)
    };
    let (ours, flooding) = (frames(Suite::Daemons), frames(Suite::Flooding));
    assert!(ours.0 > 0 && ours.1 > 0);
    assert!(flooding.1 > 5 * ours.1, "{ours:?} {flooding:?}");
    assert!(flooding.2 > ours.2, "{ours:?} {flooding:?}");
}

#[test]
fn a_table_of_links_has_a_row_per_pair_in_range_and_one_when_it_leaves() {
    let source = example("corridor.toml");
    let set = ["duration=4s".parse().unwrap(), "radio.floor_dbm=-75".parse().unwrap()];
    let scenario = source.with(&set).unwrap();
    let cast = Cast::of(&source, &scenario, 1).unwrap();
    let mut table = Vec::new();
    simulator::links::write(&scenario, &cast, 1, Span::from_millis(500), &mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("time_s,from,to,loss,delay_us,signal_dbm,signal_sd_db"));
    let rows: Vec<(f64, &str, &str, f64)> = lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[0].parse().unwrap(), fields[1], fields[2], fields[3].parse().unwrap())
        })
        .collect();
    assert!(rows.iter().all(|(_, from, to, loss)| from != to && (0.0..=1.0).contains(loss)));
    let up: Vec<f64> =
        rows.iter().filter(|row| (row.1, row.2) == ("car", "rsu1")).map(|row| row.0).collect();
    assert_eq!(up[..3], [0.0, 0.5, 1.0]);
    // Only who is heard comes in with some strength: the nearer, the stronger.
    let signals: Vec<(f64, &str)> = table
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[3].parse().unwrap(), fields[5])
        })
        .collect();
    assert!(signals.iter().all(|(loss, dbm)| dbm.is_empty() == (*loss == 1.0)), "{table}");
    let strongest =
        signals.iter().filter_map(|(_, dbm)| dbm.parse::<f64>().ok()).fold(-200.0, f64::max);
    assert!((-60.0..-20.0).contains(&strongest), "{strongest}");
    // Every pair has its other direction at the same time.
    for &(time, from, to, _) in &rows {
        assert!(rows.iter().any(|row| (row.0, row.1, row.2) == (time, to, from)));
    }
}

/// While a quarter gets lost between it and the first RSU the relay goes to the second. The vehicle
/// behind it stays with the first, to which the relay still brings it, for 20 s.
const TWO_WAYS: &str = r#"
about = "A relay whose RSU is another than that of the vehicle behind it"
duration = "40s"
warm_up = "25s"
sample_every = "20ms"
radio.trace = "links.csv"
lan = [{ id = "road" }]
rsu = [
    { id = "rsu1", position_m = [0, 0], lan = "road" },
    { id = "rsu2", position_m = [0, 50], lan = "road" },
]
obu = [{ id = "relay", position_m = [100, 0] }, { id = "far", position_m = [200, 0] }]
link = [{ from = "relay", to = "far" }]
"#;

const THEIR_LINKS: &str = "\
time_s,from,to,loss,delay_us
0,rsu1,relay,0,50
0,relay,rsu1,0,50
8,rsu1,relay,0.25,50
8,relay,rsu1,0.25,50
8,rsu2,relay,0,50
8,relay,rsu2,0,50
30,rsu1,relay,1,50
30,relay,rsu1,1,50
";

#[test]
fn every_link_to_the_rsu_of_a_vehicle_counts_and_not_to_that_of_its_relay() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ways.toml");
    std::fs::write(&file, TWO_WAYS).unwrap();
    std::fs::write(directory.path().join("links.csv"), THEIR_LINKS).unwrap();
    let (record, _) = run_with(&Source::open(&file).unwrap(), &[], 1);
    let routes = record.routes;
    assert_eq!(routes.routed, routes.reachable, "each has a way all the time");
    // From the end of its link to the first RSU until it is known to be gone, 0.27 s.
    let gone = routes.reachable - routes.working;
    assert!((10..=15).contains(&gone), "{gone} samples of 20 ms");
}
