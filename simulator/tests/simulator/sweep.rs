//! Sweeps: the scenes a seed makes, what becomes of them, and `v2xsim sweep` and `v2xsim compare`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use node_lib::Timestamp;
use serde_json::Value;
use sim::Role;
use simulator::cast::{Cast, Placement};
use simulator::measure::Suite;
use simulator::scenario::{Override, Source};
use simulator::sweep::results::{Results, SceneResult};
use simulator::sweep::scene::{KINDS, Plan};
use simulator::sweep::town::Town;
use simulator::sweep::{Class, Load, Scene, SceneKind, Sweep};

const SPAN: Duration = Duration::from_secs(35);

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios")
}

fn plan(seed: u64, scenes: u32, kinds: &[SceneKind]) -> Plan {
    let towns = Town::made(seed, SPAN).into_iter().map(Arc::new).collect();
    Plan { towns, kinds: kinds.to_vec(), scenes, seed, measured_s: 30 }
}

fn cast(scene: &Scene) -> Cast {
    let source = Source::from_text(Path::new("scene.toml"), scene.text()).unwrap();
    Cast::of(&source, &source.with(&[]).unwrap(), scene.seed).unwrap()
}

/// Vehicles on the road.
fn at_once(cast: &Cast, second: u64) -> usize {
    at_time(cast, Timestamp::from_millis(1000 * second))
}

fn at_time(cast: &Cast, time: Timestamp) -> usize {
    let there = cast.nodes.iter().filter(|node| match &node.place {
        Placement::Way(track) => track.position_at(time).is_some(),
        Placement::Nowhere | Placement::Stands(_) => false,
    });
    there.count()
}

#[test]
fn scenes_come_from_the_seed_and_are_of_every_kind() {
    let texts = |seed, scenes| -> Vec<String> {
        plan(seed, scenes, &KINDS).scenes().iter().map(Scene::text).collect()
    };
    let scenes = plan(1, 40, &KINDS).scenes();
    assert_eq!(scenes.len(), 40 * KINDS.len());
    assert_eq!(scenes.iter().map(Scene::text).collect::<Vec<_>>(), texts(1, 40));
    assert_ne!(texts(1, 40), texts(2, 40));
    // A shorter sweep is the beginning of a longer one.
    assert_eq!(texts(1, 6), texts(1, 40)[..6 * KINDS.len()]);
    let all = |of: fn(&Scene) -> String| scenes.iter().map(of).collect::<BTreeSet<String>>();
    assert_eq!(all(Scene::name).len(), scenes.len());
    assert_eq!(all(|scene| scene.radio.to_string()).len(), 3);
    assert_eq!(all(|scene| scene.town.name.clone()).len(), 2);
    // Each town has its 16 sets of places, by name: those of the densest squares, and random ones.
    assert_eq!(all(|scene| scene.places.name.clone()).len(), 16);
    let counts = all(|scene| scene.places.at_m.len().to_string());
    assert_eq!(counts, ["1", "2", "3", "4", "5", "6"].map(str::to_owned).into());
    // The n-th scene of each kind differs in its radio, load and vehicles only.
    for group in scenes.chunks(KINDS.len()) {
        for (scene, kind) in group.iter().zip(KINDS) {
            assert_eq!(scene.kind, kind);
            assert_eq!((&scene.places, scene.seed), (&group[0].places, group[0].seed));
            assert_eq!(scene.town.name, group[0].town.name);
        }
    }
}

#[test]
fn road_side_units_stand_on_streets_and_the_first_where_most_vehicles_are() {
    let towns = Town::made(1, SPAN);
    let grid = &towns[0];
    assert_eq!((grid.name.as_str(), towns[1].name.as_str()), ("grid", "motorway"));
    // Streets are 200 m apart.
    let off = |metres: f64| (metres / 200.0 - (metres / 200.0).round()).abs() * 200.0;
    for places in &grid.places {
        for &[x, y] in &places.at_m {
            assert!(off(x).min(off(y)) <= 25.0, "{}: no street at {x}, {y}", places.name);
            if places.name.starts_with("densest") {
                // Vehicles wait before crossings, up to two squares away.
                assert!(off(x).max(off(y)) <= 75.0, "{}: no crossing at {x}, {y}", places.name);
            }
        }
        for (n, &[x, y]) in places.at_m.iter().enumerate() {
            let is_dense = places.name.starts_with("densest");
            for &[u, v] in places.at_m[..n].iter().filter(|_| is_dense) {
                assert!((x - u).hypot(y - v) >= 200.0, "{}: {x},{y} {u},{v}", places.name);
            }
        }
    }
}

#[test]
fn a_scene_has_as_many_vehicles_as_its_kind_says() {
    for scene in plan(3, 4, &KINDS).scenes() {
        let cast = cast(&scene);
        let wanted = scene.kind.vehicles as usize;
        for second in [6, 20, 34] {
            let there = at_once(&cast, second);
            let room = wanted / 5;
            assert!(there.abs_diff(wanted) <= room, "{}: {there}", scene.name());
        }
        let rsus = cast.of_role(Role::Rsu).count();
        assert_eq!(rsus, scene.places.at_m.len());
        // One frame each way for each vehicle, or nobody speaks.
        let vehicles = cast.of_role(Role::Obu).count();
        let flows = if scene.kind.load == Load::Busy { 2 * vehicles } else { 0 };
        assert_eq!(cast.flows.len(), flows, "{}", scene.name());
    }
}

#[test]
fn a_scenario_with_a_file_is_a_town_with_its_own_road_side_units() {
    let source = Source::open(&scenarios().join("city.toml")).unwrap();
    let scenario = source.with(&[]).unwrap();
    let town = Town::of_scenario(&source, &scenario, 1, SPAN).unwrap();
    assert_eq!(town.name, "city");
    let own: Vec<[f64; 2]> = scenario.rsu.iter().filter_map(|rsu| rsu.position_m).collect();
    assert!(!own.is_empty());
    assert_eq!((town.places[0].name.as_str(), &town.places[0].at_m), ("file", &own));
    assert_eq!(town.places.len(), 16);
    let kind = SceneKind { class: Class::Steady, load: Load::Idle, vehicles: 20 };
    let plan = Plan { towns: vec![Arc::new(town)], ..plan(1, 1, &[kind]) };
    let there = at_once(&cast(&plan.scenes()[0]), 20);
    assert!((12..=28).contains(&there), "{there}");
    // One that makes its vehicles has no file, and is no town of this sort.
    let text = "duration = \"10s\"\nradio = { model = \"disk\" }\n\
                [[rsu]]\nid = \"r\"\nposition_m = [0, 0]\n[mobility.grid]\n";
    let source = Source::from_text(Path::new("a.toml"), text.to_owned()).unwrap();
    let error = Town::of_scenario(&source, &source.with(&[]).unwrap(), 1, SPAN).unwrap_err();
    assert!(error.to_string().contains("expected a scenario with mobility.file"), "{error}");
}

/// Movements of a file end with the last time in it. A scene is over before.
#[test]
fn a_scene_of_a_file_has_its_vehicles_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    // The later, the more.
    let mut movements = "time_s,vehicle,x_m,y_m,speed_mps,heading_deg\n".to_owned();
    for (second, vehicle) in (0..=60).flat_map(|second| (0..=second / 2).map(move |v| (second, v)))
    {
        let y = 50 * vehicle;
        writeln!(movements, "{second},{vehicle},{},{y},10,90", 10 * second).unwrap();
    }
    std::fs::write(dir.path().join("later.csv"), movements).unwrap();
    let text = "duration = \"10s\"\nradio = { model = \"disk\" }\n\
                [[rsu]]\nid = \"r\"\nposition_m = [0, 0]\n[mobility]\nfile = \"later.csv\"\n";
    let source = Source::from_text(&dir.path().join("later.toml"), text.to_owned()).unwrap();
    let town = Town::of_scenario(&source, &source.with(&[]).unwrap(), 1, SPAN).unwrap();
    let kind = SceneKind { class: Class::Steady, load: Load::Idle, vehicles: 20 };
    let plan = Plan { towns: vec![Arc::new(town)], ..plan(1, 1, &[kind]) };
    let cast = cast(&plan.scenes()[0]);
    let there =
        [1, 20, 34].map(|second| at_time(&cast, Timestamp::from_millis(1000 * second + 900)));
    assert!(there.is_sorted() && there[0] > 5, "{there:?}");
}

fn swept(scenes: &[Scene], set: &[&str], stop: bool) -> Result<Vec<SceneResult>, String> {
    let results = Mutex::new(Vec::new());
    let set: Vec<Override> = set.iter().map(|set| set.parse().unwrap()).collect();
    let stop = AtomicBool::new(stop);
    let sweep = Sweep { scenes, set: &set, suite: Suite::Daemons, jobs: 2, stop: &stop };
    let ended = sweep.run(|result| results.lock().unwrap().push(result));
    ended.map_err(|error| error.to_string())?;
    let mut results = results.into_inner().unwrap();
    results.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(results)
}

const IDLE: SceneKind = SceneKind { class: Class::Steady, load: Load::Idle, vehicles: 100 };
const BUSY: SceneKind = SceneKind { class: Class::Steady, load: Load::Busy, vehicles: 100 };

#[test]
fn figures_of_a_sweep_are_those_of_the_scenes_and_repeat() {
    let mut scenes = Plan { measured_s: 3, ..plan(1, 1, &[IDLE, BUSY]) }.scenes();
    // Another order of scenes, and other threads, change nothing.
    let once = swept(&scenes, &[], false).unwrap();
    scenes.reverse();
    let mut again = swept(&scenes, &[], false).unwrap();
    for (was, is) in once.iter().zip(&mut again) {
        is.wall_s = was.wall_s;
    }
    assert_eq!(once, again);
    assert_eq!(once.len(), 2);
    let of = |load| once.iter().find(|scene| scene.kind.load == load).unwrap().figures.unwrap();
    let (idle, busy) = (of(Load::Idle), of(Load::Busy));
    for figures in [idle, busy] {
        assert!((70.0..130.0).contains(&figures.vehicles), "{figures:?}");
        let (routed, working) = (figures.routed.unwrap(), figures.working.unwrap());
        assert!(0.0 < working && working <= routed && routed <= 1.0, "{figures:?}");
        assert!(figures.routed_of_all.unwrap() <= routed, "{figures:?}");
        let (mean, worst) = (figures.control_mean.unwrap(), figures.control_worst.unwrap());
        assert!(0.0 < mean && mean <= worst, "{figures:?}");
    }
    assert_eq!((idle.lost, idle.delay_p99_ms), (None, None));
    assert!(busy.lost.unwrap() <= busy.lost_of_all.unwrap(), "{busy:?}");
    assert!(busy.delay_p50_ms.unwrap() <= busy.delay_p99_ms.unwrap(), "{busy:?}");
}

#[test]
fn a_sweep_that_is_told_to_stop_or_cannot_be_run_leaves_no_half_scene() {
    let scenes = plan(1, 1, &[IDLE]).scenes();
    assert_eq!(swept(&scenes, &[], true).unwrap(), []);
    let error = swept(&scenes, &["radio.reach=3"], false).unwrap_err();
    assert!(error.contains("radio.reach"), "{error}");
}

fn v2xsim(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_v2xsim")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_sweep_writes_results_and_scenes_that_can_be_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (out, json) = (file("r.json"), file("again.json"));
    let args = ["sweep", "--kind", "steady-idle-100", "--scenes", "2", "--measured", "3s"];
    let (code, table, progress) = v2xsim(&[&args[..], &["--out", &out]].concat());
    assert_eq!(code, 0, "{progress}");
    assert!(progress.lines().last().unwrap().starts_with("2/2, 0 s left: "), "{progress}");
    assert!(table.contains("│ steady, idle, 100 ┆ routed "), "{table}");
    assert!(table.contains("\nsteady radio, idle (100 vehicles): "), "{table}");
    let widest = table.lines().filter(|line| line.starts_with('│')).map(|l| l.chars().count());
    assert!(widest.max().unwrap() <= 120, "{table}");
    let results = Results::read(Path::new(&out)).unwrap();
    assert_eq!((results.planned, results.scenes.len()), (2, 2));
    let words = "v2xsim sweep --scenes 2 --measured 3s --kind steady-idle-100 --seed 1";
    assert_eq!(results.command, words);
    let rows = csv::Reader::from_path(file("r.csv")).unwrap().into_records().count();
    assert_eq!(rows, 2);
    for scene in &results.scenes {
        let path = directory.path().join("r.scenes").join(format!("{}.toml", scene.name));
        let (code, _, error) = v2xsim(&["run", &path.display().to_string(), "--json", &json]);
        assert_eq!((code, error.as_str()), (0, ""));
        let text = std::fs::read_to_string(&json).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        let airtime = &report["variants"][0]["runs"][0]["control"]["airtime"];
        let figures = scene.figures.unwrap();
        assert_eq!(airtime["mean"]["control"].as_f64(), figures.control_mean, "{airtime}");
        assert_eq!(airtime["worst"]["control"].as_f64(), figures.control_worst, "{airtime}");
        assert!(airtime["mean"]["control"].as_f64().is_some());
    }
    // Beside itself nothing is better or worse.
    let (code, table, error) = v2xsim(&["compare", &out, &out]);
    assert_eq!((code, error.as_str()), (0, ""));
    let routed = table.lines().find(|line| line.contains("┆ routed ")).unwrap();
    let cells: Vec<&str> = routed.split('┆').map(str::trim).collect();
    assert_eq!(cells[6..8], ["0", "0"], "{routed}");
}

/// The same scenes with other nodes, to be compared with those of ours and to be run again.
#[test]
fn a_sweep_runs_its_scenes_with_other_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (ours, ideal, json) = (file("ours.json"), file("ideal.json"), file("run.json"));
    let args = ["sweep", "--kind", "fading-busy-100", "--scenes", "1", "--measured", "3s"];
    let nodes = ["--nodes", "ideal-routing"];
    let (code, _, error) = v2xsim(&[&args[..], &["--out", &ours]].concat());
    assert_eq!(code, 0, "{error}");
    let (code, table, error) = v2xsim(&[&args[..], &nodes, &["--out", &ideal]].concat());
    assert_eq!(code, 0, "{error}");
    let results = Results::read(Path::new(&ideal)).unwrap();
    assert!(results.command.ends_with(" --seed 1 --nodes ideal-routing"), "{}", results.command);
    let figures = |file: &str| Results::read(Path::new(file)).unwrap().scenes[0].figures.unwrap();
    let (with_ours, with_ideal) = (figures(&ours), figures(&ideal));
    assert!(with_ours.control_mean > Some(0.0), "{with_ours:?}");
    assert_eq!((with_ideal.control_mean, with_ideal.routed), (Some(0.0), Some(1.0)));
    assert!(with_ideal.lost < with_ours.lost, "{with_ideal:?}, {with_ours:?}");
    let (code, _, error) = v2xsim(&["compare", &ours, &ideal]);
    assert_eq!((code, error.as_str()), (0, ""));
    // As the table says it, where a goal is missed.
    for again in table.lines().filter(|line| line.starts_with("  v2xsim run ")) {
        assert!(again.contains(" --nodes ideal-routing  # "), "{again}");
    }
    let path = directory.path().join("ideal.scenes").join(results.scenes[0].name.clone() + ".toml");
    let path = path.display().to_string();
    let (code, _, error) = v2xsim(&[&["run", &path, "--json", &json], &nodes[..]].concat());
    assert_eq!((code, error.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["nodes"], "ideal-routing");
    let busy = &report["variants"][0]["runs"][0]["control"]["airtime"]["mean"]["busy"];
    assert_eq!(busy.as_f64(), with_ideal.busy_mean);
    let (code, _, error) = v2xsim(&[&args[..], &["--nodes", "flooding", "--out", &ours]].concat());
    assert_eq!(code, 2);
    let said = "expected one of daemons, batman-model, ideal-routing";
    assert!(error.contains(said), "{error}");
}

/// What is left of a scene that breaks a rule breaks the same one, and is smaller.
#[test]
fn a_broken_rule_is_made_small() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("r.json");
    // Without the feasibility rule routes loop.
    let set = [
        "settings.obu.policy.feasibility=false",
        "settings.obu.policy.quiet_period=false",
        "radio.access=instant",
        "radio.loss=0.3",
    ];
    let set = set.map(|set| ["--set", set]).concat();
    let name = out.display().to_string();
    let args = ["sweep", "--kind", "steady-busy-100", "--scenes", "1", "--measured", "10s"];
    let (code, table, error) = v2xsim(&[&args[..], &["--out", &name], &set].concat());
    assert_eq!(code, 1, "{table} {error}");
    let results = Results::read(&out).unwrap();
    let scene = &results.scenes[0];
    let broken = scene.broken.as_ref().unwrap();
    assert!(broken.breaches > 0 && scene.figures.is_some(), "{scene:?}");
    let small = directory.path().join("r.scenes").join(format!("{}.small.toml", scene.name));
    let last = table.lines().last().unwrap();
    assert!(last.starts_with(&format!("  v2xsim run {}", small.display())), "{table}");
    let size = |path: &Path| {
        let source = Source::open(path).unwrap();
        let scenario = source.with(&[]).unwrap();
        let cast = Cast::of(&source, &scenario, scenario.seed).unwrap();
        (cast.of_role(Role::Obu).count(), scenario.duration)
    };
    let whole = directory.path().join("r.scenes").join(format!("{}.toml", scene.name));
    let ((vehicles, duration), (before, long)) = (size(&small), size(&whole));
    assert!(vehicles < before && duration <= long, "{vehicles} of {before}, {duration}");
    let small = small.display().to_string();
    let (code, _, error) = v2xsim(&[&["run", &small][..], &set].concat());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains(&broken.rule), "{}: {error}", broken.rule);
}

#[test]
fn mistakes_of_a_sweep_end_with_code_2_and_say_what_was_expected() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("r.json").display().to_string();
    let garbage = directory.path().join("garbage").display().to_string();
    std::fs::write(&garbage, "no JSON").unwrap();
    let no_directory = directory.path().join("none/r.json").display().to_string();
    for (args, expected) in [
        (&["sweep", "--kind", "dense", "--out", &out][..], "expected some of steady-idle-100, "),
        (
            &["sweep", "--out", &out, "--measured", "0s"],
            "--measured 0s: expected whole seconds, from 1s to 1h",
        ),
        (&["sweep", "--out", &out, "--measured", "1500ms"], "expected whole seconds"),
        (&["sweep", "--kind", "idle", "--kind", "dense", "--out", &out], "--kind dense: no such"),
        (&["sweep", "--out", &out, "--mobility", "a.csv"], "<FILE>"),
        (&["sweep", "--out", "r.csv"], "--out r.csv: expected a name that ends in .json"),
        (&["sweep", "--out", &out, "missing.toml"], "missing.toml"),
        (&["sweep", "--quick", "--out", &no_directory, "--set", "radio=3"], "radio"),
        (&["compare", &garbage, &garbage], "no results of a sweep"),
        (&["compare", &out, "missing.json"], ""),
    ] {
        let (code, _, error) = v2xsim(args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

/// A mistake is known before the results of an earlier sweep are replaced.
#[test]
fn a_mistake_costs_no_earlier_results_and_other_scenes_are_not_compared() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, seed, measured_s| {
        let path = directory.path().join(name);
        let results = Results { seed, measured_s, ..Results::default() };
        results.write(&path).unwrap();
        path.display().to_string()
    };
    let (out, seed, time) =
        (write("r.json", 1, 30), write("s.json", 2, 30), write("t.json", 1, 60));
    let before = std::fs::read_to_string(&out).unwrap();
    let (code, _, error) = v2xsim(&["sweep", "--quick", "--out", &out, "--set", "radio.reach=3"]);
    assert_eq!(code, 2);
    assert!(error.contains("radio.reach: unknown field"), "{error}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), before);
    assert!(!directory.path().join("r.scenes").exists());
    for (other, expected) in [
        (&seed, "has seed 1 and measures 30 s of each scene, "),
        (&time, "t.json has 1 and 60 s; expected the same scenes"),
        (&out, "have no scene in common"),
    ] {
        let (code, _, error) = v2xsim(&["compare", &out, other]);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

/// Twenty vehicles are no three hundred, whatever the kind of scene is called.
#[test]
fn a_town_with_fewer_vehicles_than_wanted_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("r.json").display().to_string();
    let city = scenarios().join("city.toml").display().to_string();
    let args = ["sweep", &city, "--kind", "steady-idle-300", "--scenes", "1", "--measured", "1s"];
    let (code, _, error) = v2xsim(&[&args[..], &["--out", &out]].concat());
    assert_eq!(code, 0, "{error}");
    let first = error.lines().next().unwrap();
    assert!(first.starts_with("city: "), "{error}");
    let said = " vehicles at once; scenes that want more have all of them";
    assert!(first.ends_with(said), "{error}");
    assert!(!error.contains("grid: ") && !error.contains("motorway: "), "{error}");
}

/// What is finished is kept, whatever ends the rest.
#[test]
fn a_signal_ends_a_sweep_with_the_scenes_that_are_finished() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("r.json");
    let run = Command::new(env!("CARGO_BIN_EXE_v2xsim"))
        .args(["sweep", "--kind", "steady-idle-100", "--scenes", "500", "--measured", "1s"])
        .args(["--jobs", "1", "--out", &out.display().to_string()])
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !Results::read(&out).is_ok_and(|results| results.scenes.len() >= 2) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = format!("kill -INT {}", run.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    let results = Results::read(&out).unwrap();
    let finished = results.scenes.len();
    assert!((2..500).contains(&finished), "{finished}");
    let last = error.lines().last().unwrap();
    assert_eq!(last, format!("interrupted: {} of 500 scenes were not finished", 500 - finished));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("│ steady, idle, 100 ┆ routed "), "{table}");
}

/// What a rule is worth is measured by taking it away: it has to be where that is done.
#[test]
fn the_rules_whose_worth_is_measured_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let check =
        Command::new("python3").arg(root.join(".ci/worth")).arg("--check").output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}
