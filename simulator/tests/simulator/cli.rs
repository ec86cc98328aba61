//! The command line of `v2xsim`.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn v2xsim(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_v2xsim"))
        .current_dir(scenarios())
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios")
}

#[test]
fn help_names_every_subcommand_and_flag() {
    let (code, out, _) = v2xsim(&["--help"]);
    assert_eq!(code, 0);
    for word in ["run", "check", "map", "links", "protocols"] {
        assert!(out.contains(&format!("  {word}")), "{word} missing in {out}");
    }
    let (_, out, _) = v2xsim(&["run", "--help"]);
    for flag in [
        "seeds", "seed", "jobs", "set", "vary", "json", "csv", "plots", "trace", "mobility", "cost",
    ] {
        assert!(out.contains(&format!("--{flag}")), "{flag} missing in {out}");
    }
}

#[test]
fn check_says_what_is_in_a_scenario() {
    for name in ["pair", "diamond", "corridor", "platoon", "city"] {
        let (code, out, error) = v2xsim(&["check", &format!("{name}.toml")]);
        assert_eq!((code, error.as_str()), (0, ""), "{name}");
        assert!(out.contains("in order"), "{out}");
    }
    let (code, out, _) = v2xsim(&["check", "bologna.toml", "--mobility", "grid-180s.csv.gz"]);
    assert_eq!(code, 0);
    assert!(out.contains("80 OBUs"), "{out}");
}

#[test]
fn a_run_says_what_of_it_no_daemon_does() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (json, csv) = (file("r.json"), file("r.csv"));
    let run = |more: &[&str]| {
        let common = ["run", "pair.toml", "--json", &json, "--csv", &csv];
        let (code, out, error) = v2xsim(&[&common, more].concat());
        assert_eq!((code, error.as_str()), (0, ""), "{out}");
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let parts = report["variants"][0]["does_not_ship"].clone();
        (out, parts, std::fs::read_to_string(&csv).unwrap())
    };
    for (more, parts) in [
        (&[][..], &[][..]),
        // Flags of the daemons do all of this.
        (&["--set", "settings.obu.cached_candidates=1", "--set", "settings.state_file=true"], &[]),
        // So do radios that tell.
        (&["--set", "radio.reports_unacknowledged=true"], &[]),
        (
            &["--set", "settings.obu.policy.prediction=false"],
            &["settings.obu.policy.prediction = false"],
        ),
        (
            &[
                "--set",
                "settings.obu.policy.ranking=hops",
                "--set",
                "settings.obu.policy.quiet_period=false",
            ],
            &["settings.obu.policy.ranking = \"hops\"", "settings.obu.policy.quiet_period = false"],
        ),
    ] {
        let (out, listed, table) = run(more);
        assert_eq!(listed, serde_json::json!(parts), "{more:?}");
        let words = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
        assert!(out.contains(&format!("does not ship: {words}\n")), "{out}");
        let mut rows = csv::Reader::from_reader(table.as_bytes());
        let column = rows.headers().unwrap().iter().position(|name| name == "does_not_ship");
        let row = rows.records().next().unwrap().unwrap();
        assert_eq!(&row[column.unwrap()], parts.join(", "), "{table}");
    }
}

/// JSON says null and CSV nothing where nothing was measured: no traffic, no channel, no whole
/// second.
#[test]
fn files_leave_empty_what_was_not_measured() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (json, csv) = (file("r.json"), file("r.csv"));
    let set = ["flow=[]", "duration=1.5s", "fault=[]"].map(|set| ["--set", set]).concat();
    let args = [&["run", "pair.toml", "--json", &json, "--csv", &csv][..], &set].concat();
    let (code, out, error) = v2xsim(&args);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let sum = &report["variants"][0]["summary"];
    for path in [
        "/all_hand_overs/gap_ms",
        "/all_hand_overs/without_ms",
        "/all_hand_overs/own/gap_ms",
        "/airtime",
        "/control_frames_per_node_s",
    ] {
        assert_eq!(sum.pointer(path), Some(&Value::Null), "{path}: {sum}");
    }
    let mut rows = csv::Reader::from_path(&csv).unwrap();
    let header = rows.headers().unwrap().clone();
    let row = rows.records().next().unwrap().unwrap();
    for name in [
        "longest_gap_ms",
        "gap_p50_ms",
        "gap_by_routing_max_ms",
        "control_airtime_mean",
        "busy_worst",
        "control_bytes_per_node_s",
    ] {
        let column = header.iter().position(|column| column == name).unwrap();
        assert_eq!(&row[column], "", "{name}");
    }
    assert!(out.contains("│ per node and second ┆      – ┆     – ┆"), "{out}");
}

/// Whatever is run, and whatever things are called.
#[test]
fn tables_fit_into_120_columns_and_have_delays_and_both_kinds_of_routes() {
    let long =
        "flow.0.id=everything that everybody has to say to everybody else at any time of the day";
    let vary = ["--vary", "radio.range_m=200,250", "--vary", "settings.obu.cached_candidates=0,3"];
    for (more, columns) in [
        (&[][..], &["│ delay p50 ", "│ lost frames"][..]),
        (&["--set", long], &["│ delay p50 "]),
        (&vary, &["│ delay p50/p99/max ms ", "│ delay up p50/p99/max ms ", "│ range_m "]),
        (
            &[
                "--vary",
                "settings.obu.policy.prediction=true,false",
                "--vary",
                "flow.size_bytes=60,1500",
            ],
            &["│ delay down p50/p99/max ms "],
        ),
    ] {
        let (code, out, error) =
            v2xsim(&[&["run", "city.toml", "--set", "duration=9s"], more].concat());
        assert_eq!((code, error.as_str()), (0, ""));
        let widest = out.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 120, "{widest}: {out}");
        let is_named = |name: &str| out.replace('┆', "│").contains(name);
        for name in columns.iter().chain(&["│ have a route │ every link there "]) {
            assert!(is_named(name), "{name}: {out}");
        }
    }
}

#[test]
fn mistakes_end_with_code_2_and_say_where() {
    for (args, expected) in [
        (vec!["check", "none.toml"], "v2xsim: none.toml: No such file"),
        (
            vec!["check", "bologna.toml", "--set", "duration=9s"],
            "v2xsim: bologna.toml:30: mobility.file: bologna-acosta-300s.csv.gz: No such file",
        ),
        (
            vec!["check", "bologna.toml", "--mobility", "/no/such/file"],
            "bologna.toml with mobility.file=/no/such/file: mobility.file: /no/such/file: No such \
             file",
        ),
        (vec!["check", "bologna.toml", "--mobility", "bologna.toml"], "/bologna.toml:5: \"about"),
        (
            vec!["run", "pair.toml", "--set", "duration=5s"],
            "v2xsim: pair.toml with duration=5s: fault.1.at: 6s; expected a time up to the \
             duration, 5s",
        ),
        (
            vec!["run", "pair.toml", "--set", "link.loss=2"],
            "v2xsim: pair.toml with link.loss=2: link.0.loss: 2; expected",
        ),
        (vec!["run", "pair.toml", "--set", "loss"], "expected key=value"),
        (vec!["run", "pair.toml", "--vary", "link.loss=0,"], "expected key=value"),
        (
            vec!["run", "pair.toml", "--trace", "t", "--seeds", "2"],
            "--trace: several runs; expected --seeds 1",
        ),
        (
            vec!["run", "pair.toml", "--trace", "/no/such/directory/t"],
            "/no/such/directory/t: No such file",
        ),
        // It opens, and takes nothing.
        (vec!["run", "pair.toml", "--trace", "/dev/full"], "/dev/full: No space left on device"),
        (vec!["run", "pair.toml", "--cost"], "--json"),
        (
            vec!["map", "pair.toml", "--at", "60s", "-o", "x.svg"],
            "--at 60s: expected at most the duration, 10s",
        ),
        (
            vec!["run", "pair.toml", "--json", "/no/such/directory/x"],
            "/no/such/directory/x: No such file",
        ),
        (vec!["fly"], "unrecognized subcommand"),
    ] {
        let (code, _, error) = v2xsim(&args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn a_run_shows_tables_and_writes_everything_it_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (json, csv, plots, trace) = (path("r.json"), path("r.csv"), path("plots"), path("t"));
    let args = [
        "run",
        "pair.toml",
        "--set",
        "duration=8s",
        "--json",
        &json,
        "--csv",
        &csv,
        "--plots",
        &plots,
        "--trace",
        &trace,
        "--cost",
    ];
    let (code, out, error) = v2xsim(&args);
    assert_eq!((code, error.as_str()), (0, ""));
    for word in ["traffic", "hand-overs", "routes", "control", "times as fast"] {
        assert!(out.contains(word), "{word} missing in {out}");
    }
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let variant = &report["variants"][0];
    let run = &variant["runs"][0];
    assert_eq!(run["seed"], 1);
    assert_eq!(run["flows"][0]["flow"], "up");
    for flow in [&run["flows"][0], &variant["summary"]["flows"][0]] {
        assert!(flow["delay_ms"]["p99"].as_f64().unwrap() > 0.5, "{flow}");
    }
    assert_eq!(run["flows"][0]["direction"], "up");
    assert_eq!(variant["summary"]["directions"][1]["flow"], "down");
    assert_eq!(run["hand_overs"][0]["cause"], "dead");
    assert!(variant["cost"][0]["cpu_s"].as_f64().unwrap() > 0.0);
    assert!(report["peak_memory_bytes"].as_u64().unwrap() > 0);
    for (file, header) in [
        ("r.csv", "variant,seed,frames,received,"),
        ("r.flows.csv", "variant,seed,flow,from,to,sent,"),
        ("r.hand-overs.csv", "variant,seed,time_s,obu,cause,"),
        ("r.seconds.csv", "variant,seed,time_s,nodes,"),
    ] {
        let text = std::fs::read_to_string(path(file)).unwrap();
        assert!(text.starts_with(header), "{file}: {text}");
        assert!(text.lines().count() > 1, "{file}: {text}");
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{file}: {columns:?}");
    }
    for file in ["plots/gaps.svg", "plots/airtime.svg"] {
        assert!(std::fs::read_to_string(path(file)).unwrap().starts_with("<svg"), "{file}");
    }
    assert!(std::fs::read_to_string(&trace).unwrap().contains("fault cut n0 and n1"));
}

#[test]
fn variants_are_rows_of_tables_and_repeat_to_the_byte() {
    let directory = tempfile::tempdir().unwrap();
    let report = |name: &str, jobs: &str| {
        let path = directory.path().join(name).display().to_string();
        let (code, out, _) = v2xsim(&[
            "run",
            "pair.toml",
            "--set",
            "duration=3s",
            "--set",
            "fault.at=3s",
            "--vary",
            "link.loss=0,0.1",
            "--vary",
            "flow.frames_per_s=10,50",
            "--seeds",
            "2",
            "--jobs",
            jobs,
            "--json",
            &path,
        ]);
        assert_eq!(code, 0);
        for (loss, rate) in [("0", "10"), ("0", "50"), ("0.1", "10"), ("0.1", "50")] {
            let is_row = |line: &&str| {
                let cells: Vec<&str> = line.split(['│', '┆']).map(str::trim).collect();
                cells.get(1..3) == Some(&[loss, rate])
            };
            // Of traffic, delay, hand-overs and routes.
            assert_eq!(out.lines().filter(is_row).count(), 4, "{loss}, {rate}: {out}");
        }
        std::fs::read_to_string(path).unwrap()
    };
    assert!(report("a.json", "1") == report("b.json", "2"), "two runs differ");
}

#[test]
fn a_broken_rule_costs_its_own_run_only_and_can_be_seen_again() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("r.json").display().to_string();
    // Without the feasibility rule routes loop, and the checkers of every run see it. So much is
    // lost here that a third of the runs has a loop: others finish, whatever the luck.
    let args = [
        "run",
        "platoon.toml",
        "--set",
        "settings.obu.policy.feasibility=false",
        "--set",
        "settings.obu.policy.quiet_period=false",
        "--set",
        "radio.access=instant",
        "--set",
        "radio.loss=0.32",
        "--set",
        "duration=30s",
        "--json",
        &json,
        "--seeds",
        "20",
    ];
    let (code, out, error) = v2xsim(&args);
    assert_eq!(code, 1, "{error}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let variant = &report["variants"][0];
    let seeds = |list: &str| -> Vec<u64> {
        variant[list].as_array().unwrap().iter().map(|run| run["seed"].as_u64().unwrap()).collect()
    };
    let (finished, broken) = (seeds("runs"), seeds("broken"));
    assert!(!finished.is_empty() && !broken.is_empty(), "{finished:?} {broken:?}");
    let mut all = [finished.clone(), broken].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=20).collect::<Vec<u64>>());
    assert_eq!((&variant["planned"], &report["interrupted"]), (&20.into(), &false.into()));
    assert!(out.contains(&format!("{} of 20 runs finished", finished.len())), "{out}");
    assert!(out.contains("│ traffic"), "{out}");
    // The first few are shown, and how many more there are.
    let shown: Vec<&str> = error.lines().filter(|line| !line.starts_with("and ")).collect();
    let again = shown.last().unwrap();
    assert!(again.starts_with("  v2xsim run platoon.toml --set settings.obu.policy"), "{again}");
    let words: Vec<&str> = again.split_whitespace().collect();
    let place = words.iter().position(|word| *word == "--seed").unwrap();
    let mut repeat: Vec<&str> = args[..args.len() - 2].to_vec();
    repeat.extend(["--seed", words[place + 1], "--seeds", "1"]);
    let (code, _, repeated) = v2xsim(&repeat);
    assert_eq!(code, 1);
    let repeated: Vec<&str> = repeated.lines().collect();
    let what = |lines: &[&str]| lines.iter().rev().nth(2).unwrap().to_string();
    assert_eq!(what(&repeated), what(&shown));
}

/// A colour and a name each, in both pictures, whichever variant has how many runs.
#[test]
fn variants_are_told_apart_in_plots() {
    let directory = tempfile::tempdir().unwrap();
    let plots = directory.path().display().to_string();
    let vary = ["--vary", "radio.range_m=200,225,250", "--seeds", "2", "--plots", &plots];
    let (code, _, error) =
        v2xsim(&[&["run", "city.toml", "--set", "duration=40s"], &vary[..]].concat());
    assert_eq!((code, error.as_str()), (0, ""));
    for (file, lines) in [("gaps.svg", 1), ("airtime.svg", 2)] {
        let svg = std::fs::read_to_string(directory.path().join(file)).unwrap();
        for (range, color) in [(200, "#0072B2"), (225, "#D55E00"), (250, "#009E73")] {
            assert!(svg.contains(&format!("\nradio.range_m={range}\n")), "{file}: {range}: {svg}");
            let is_line = |line: &&str| {
                line.starts_with("<polyline")
                    && line.contains("opacity=\"0.8\"")
                    && line.contains(&format!("stroke=\"{color}\""))
            };
            assert_eq!(svg.lines().filter(is_line).count(), 2 * lines, "{file}: {color}: {svg}");
        }
    }
}

/// A signal ends a campaign in order, and the exit code says which it was.
#[test]
fn a_signal_ends_a_campaign_in_order() {
    let directory = tempfile::tempdir().unwrap();
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let json = directory.path().join(signal).display().to_string();
        let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_v2xsim"))
            .current_dir(scenarios())
            .args(["run", "pair.toml", "--set", "duration=24h", "--jobs", "1", "--json", &json])
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Before it can handle the signal it would only die of it.
        let status = format!("/proc/{}/status", run.id());
        while run.try_wait().unwrap().is_none() {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            if caught.is_some_and(|mask| mask & 1 << 1 != 0 && mask & 1 << 14 != 0) {
                break;
            }
            std::thread::yield_now();
        }
        let kill = format!("kill -{signal} {}", run.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let output = run.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(128 + number), "{error}");
        assert_eq!(error, "interrupted: 1 of 1 run was not finished\n");
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(report["interrupted"], true);
        assert_eq!(report["variants"][0]["runs"], serde_json::json!([]));
    }
}

#[test]
fn maps_links_and_comparisons_have_their_results() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (map, links) = (path("map.svg"), path("links.csv"));
    let (code, _, error) = v2xsim(&["map", "diamond.toml", "--at", "3s", "-o", &map]);
    assert_eq!((code, error.as_str()), (0, ""));
    let svg = std::fs::read_to_string(&map).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("rsu1") && svg.contains("far"), "{svg}");
    for name in ["link", "route", "OBU with a route", "OBU without a route", "RSU that is off"] {
        assert!(svg.contains(&format!("\n{name}\n")), "{name} missing in the legend of {svg}");
    }
    let (code, _, error) = v2xsim(&["links", "diamond.toml", "--every", "1s", "-o", &links]);
    assert_eq!((code, error.as_str()), (0, ""));
    let table = std::fs::read_to_string(&links).unwrap();
    let header = "time_s,from,to,loss,delay_us,signal_dbm,signal_sd_db\n";
    assert!(table.starts_with(&format!("{header}0,rsu1,left,0,")), "{table}");
    // Isolated at second 5: from then on out of everyone's range.
    assert!(table.contains("\n5,rsu1,left,1,"), "{table}");
    let (code, out, error) =
        v2xsim(&["protocols", "diamond.toml", "--set", "duration=4s", "--set", "fault.at=4s"]);
    assert_eq!((code, error.as_str()), (0, ""));
    for suite in ["daemons", "flooding", "batman-model"] {
        assert_eq!(out.matches(&format!("\n│ {suite} ")).count(), 2, "{out}");
    }
    assert!(out.contains("batman-model: does not ship: a model of B.A.T.M.A.N. IV"), "{out}");
    let (code, out, error) = v2xsim(&["protocols", "diamond.toml", "--nodes", "olsr"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        error.contains("expected one of daemons, flooding, batman-model, ideal-routing"),
        "{error}"
    );
}

/// A link that a file takes away for a second; the vehicle wrote down what that cost it when it was
/// recorded.
#[test]
fn links_of_a_file_hold_and_recorded_gaps_stand_beside_simulated_ones() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let scenario = |more: &str| {
        let text = format!(
            "duration = \"8s\"\nradio = {{ model = \"links\", trace = \"links.csv\" }}\n\
             [[lan]]\nid = \"road\"\n[[rsu]]\nid = \"r\"\nlan = \"road\"\n[[obu]]\nid = \"o\"\n\
             [[recorded]]\nobu = \"o\"\nat = \"4.2s\"\ncause = \"dead\"\ngap = \"1234ms\"\n{more}"
        );
        std::fs::write(file("drive.toml"), text).unwrap();
    };
    let links = |rows: &str| {
        let header = "time_s,from,to,loss,delay_us,signal_dbm,signal_sd_db\n";
        std::fs::write(file("links.csv"), format!("{header}{rows}")).unwrap();
    };
    scenario("");
    links(
        "0,r,o,0,500,-60,2\n0,o,r,0,500,,\n4,r,o,1,500,,\n4,o,r,1,500,,\n\
         5,r,o,0,500,,\n5,o,r,0,500,,\n",
    );
    let (code, out, error) = v2xsim(&["run", &file("drive.toml")]);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    let row = |name: &str| {
        let line = out.lines().find(|line| line.contains(name)).unwrap();
        let cells = line.split(['│', '┆']).map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("recorded")[1..3], ["1", "1234 ms"]);
    assert_eq!(row("simulated ")[1], "1.0", "{out}");
    // With variants each has a row.
    let vary = ["--vary", "settings.obu.policy.standby=true,false"];
    let (code, out, _) = v2xsim(&[&["run", &file("drive.toml")], &vary[..]].concat());
    let own: Vec<_> = out.lines().skip_while(|line| !line.contains("own gaps")).collect();
    assert_eq!(code, 0);
    assert!(own[2].contains("recorded") && own[3].contains("standby=true"), "{own:?}");
    for (rows, said) in [
        ("0,r,x,0,500,,\n", "line 2: \"x\"; expected the name of a node"),
        ("0,r,o,2,500,,\n", "line 2: n0 to n1: loss 2 is not between 0 and 1"),
        ("1,r,o,0,500,,\n1,r,o,0,500,,\n", "line 3: n0 to n1: the step at 1.000000 s"),
        ("0,r,o,many,500,,\n", "field 3"),
    ] {
        links(rows);
        let (code, _, error) = v2xsim(&["run", &file("drive.toml")]);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("drive.toml:2: radio.trace: ") && error.contains(said), "{error}");
    }
    std::fs::remove_file(file("links.csv")).unwrap();
    let (code, _, error) = v2xsim(&["run", &file("drive.toml")]);
    assert!(code == 2 && error.contains("radio.trace: ") && error.contains("links.csv"), "{error}");
    let (code, _, error) = v2xsim(&["run", &file("drive.toml"), "--set", "radio.model=disk"]);
    assert!(code == 2 && error.contains("a field of model links"), "{error}");
}
