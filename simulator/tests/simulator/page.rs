//! `v2xsim page`: what is on it is what happened, the script of the page takes it, and it is never
//! too large.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use simulator::cast::Cast;
use simulator::measure::{self, Run, Suite};
use simulator::report::town::{self, PlayedRun, Written};
use simulator::scenario::{Override, Source};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web_page/assets/page.js");

/// The page of an example of so many seconds.
fn page(name: &str, seconds: u32, bytes_max: usize, every: Duration) -> (Written, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios").join(name);
    let source = Source::open(&path).unwrap();
    let set: Vec<Override> = vec![format!("duration={seconds}s").parse().unwrap()];
    let scenario = source.with(&set).unwrap();
    let cast = Cast::of(&source, &scenario, 1).unwrap();
    let town = PlayedRun { name: "a <town>", scenario: &scenario, cast: &cast, seed: 1 };
    let mut out = Vec::new();
    let written = town::write_within(bytes_max, &town, every, &mut out).unwrap();
    (written, String::from_utf8(out).unwrap())
}

/// What is in it for the script.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"town\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    assert!(!data.contains('<'), "nothing in it ends the element it is in");
    serde_json::from_str(data).unwrap()
}

#[test]
fn everybody_is_where_he_is_with_his_way_and_what_there_was_to_choose_from() {
    let (written, page) = page("city.toml", 20, town::LOOKS_BYTES_MAX, Duration::from_secs(1));
    assert!(written.broken.is_none());
    let town = data(&page);
    let looks = town["looks"].as_array().unwrap();
    assert_eq!((looks.len(), written.looks), (22, 22), "0 to 20 s, and the end");
    assert_eq!(looks[20]["at"], 20_000);
    assert_eq!(
        (&town["name"], &town["seed"], &town["broken"]),
        (&"a <town>".into(), &1.into(), &Value::Null)
    );
    let nodes = town["nodes"].as_array().unwrap();
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let (mut routed, mut choices) = (0, 0);
    for row in looks[20]["nodes"].as_array().unwrap() {
        let role = &nodes[number(&row[0])][2];
        assert!(row[1].is_f64() && row[2].is_f64());
        if role == "rsu" {
            assert!(row[3].is_null());
        } else if !row[3].is_null() {
            routed += 1;
            assert_eq!(nodes[number(&row[4])][2], "rsu");
            assert!(number(&row[5]) >= 1);
        }
        for route in row[6].as_array().unwrap() {
            assert_eq!(nodes[number(&route[0])][2], "rsu");
            let candidates = route[4].as_array().unwrap();
            assert!(candidates.len() <= 6);
            choices += candidates.len();
            // The one in use is the upstream, and comes first.
            if route[1] == "in-use" {
                assert_eq!((&candidates[0][0], &candidates[0][1]), (&row[3], &1.into()));
            }
        }
    }
    assert!(routed > 5 && choices > routed, "{routed} routed, {choices} to choose from");
    let changes = town["changes"].as_object().unwrap();
    assert!(changes.values().all(|of_one| of_one.as_array().unwrap().len() <= 24));
    assert!(changes.values().flat_map(|of_one| of_one.as_array().unwrap()).count() > routed);
}

/// What `v2xsim` writes is what the script reads: each vehicle can be chosen at each look.
#[test]
fn the_script_of_the_page_plays_it() {
    let (_, page) = page("city.toml", 12, town::LOOKS_BYTES_MAX, Duration::from_secs(2));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("town.json");
    std::fs::write(&file, data(&page).to_string()).unwrap();
    let script = format!(
        r#"const page = require({SCRIPT:?});
        const town = JSON.parse(require("fs").readFileSync({file:?}));
        let seen = 0, used = 0;
        for (let at = 0; at < town.looks.length; at++) {{
          for (const [id, name, role] of town.nodes) {{
            const state = page.townAt(town, at, id);
            if (!state.map.spots.some((spot) => spot.id === id)) {{
              if (state.view) throw new Error(`${{name}} is nowhere, and seen`);
              continue;
            }}
            seen += 1;
            const {{ rows, edges }} = page.graph(state);
            if (rows.flat()[0] === undefined) throw new Error(name);
            const shown = JSON.stringify([rows, edges, state.view]);
            if (shown.includes("undefined")) throw new Error(name);
            const attached = state.view.node.attached;
            for (const route of state.view.node.routes) for (const one of route.candidates) {{
              if (!page.reasons(route, one)[0]) throw new Error(name);
              if (page.standing(route, one)[0] !== "in use") continue;
              used += 1;
              if (one.id !== attached.upstream || route.rsu !== attached.rsu)
                throw new Error(`${{name}} at ${{at}}`);
            }}
            if (role === "rsu" && at > 3 && !state.view.node.obus.length)
              throw new Error(`${{name}} has nobody`);
          }}
        }}
        console.log(seen, used);"#,
        file = file.display().to_string()
    );
    let output = Command::new("node").args(["-e", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts: Vec<u32> = said.split_whitespace().map(|count| count.parse().unwrap()).collect();
    assert!(counts[0] > 40 && counts[1] > 25, "{said}");
}

#[test]
fn to_look_changes_nothing() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios/city.toml");
    let source = Source::open(&path).unwrap();
    let scenario = source.with(&["duration=8s".parse::<Override>().unwrap()]).unwrap();
    let cast = Cast::of(&source, &scenario, 1).unwrap();
    let (scenario, cast, stop) = (&scenario, &cast, &AtomicBool::new(false));
    let (suite, trace) = (Suite::Daemons, None);
    let run = Run { scenario, cast, seed: 1, suite, trace, stop, goes_on: false };
    let Ok(done) = measure::run(&run, |_| ()) else { panic!("it runs clean") };
    let town = PlayedRun { name: "city", scenario, cast, seed: 1 };
    for every in [70, 3000].map(Duration::from_millis) {
        let written = town::write(&town, every, &mut Vec::new()).unwrap();
        assert_eq!(format!("{:016x}", written.trace_hash), done.record.trace_hash);
    }
}

#[test]
fn a_page_that_would_be_too_large_has_rarer_looks() {
    let ms = Duration::from_millis;
    let (all, whole) = page("pair.toml", 6, usize::MAX, ms(100));
    assert_eq!((all.looks, all.every), (63, ms(100)));
    let most = whole.len() / 4;
    let (fewer, page) = page("pair.toml", 6, 8_000, ms(100));
    assert!(fewer.every > ms(100) && fewer.looks < 63, "{fewer:?}");
    let town = data(&page);
    let looks = town["looks"].as_array().unwrap();
    let times: Vec<_> = looks.iter().map(|look| look["at"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] == 0, "{times:?}");
    assert!(*times.last().unwrap() > 5_000, "it is played to the end: {times:?}");
    let size: usize = looks.iter().map(|look| look.to_string().len()).sum();
    assert!(size <= 8_000 && size < most.max(8_001), "{size}");
}
