//! Scenario files: what they mean, and how their mistakes are reported.

use std::path::Path;
use std::time::Duration;

use node_lib::Timestamp;
use sim::{Location, NodeIndex, Role};
use simulator::cast::{Cast, Home, Member, Placement, To};
use simulator::scenario::{ArrivalsSpec, Override, Scenario, Source};

fn source(text: &str) -> Result<Source, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/a.toml");
    let mut text = text.to_owned();
    if text.starts_with(DISK) && !text.contains("[[rsu]]") {
        text += "[[rsu]]\nid = \"beside\"\nposition_m = [0, 50]\n";
    }
    Source::from_text(&path, text).map_err(|error| error.to_string())
}

/// What reading this text says, without the directory.
fn complaint(text: &str) -> String {
    let error = match source(text) {
        Err(error) => error,
        Ok(source) => {
            let scenario = source.with(&[]).unwrap();
            Cast::of(&source, &scenario, 1).unwrap_err().to_string()
        }
    };
    let directory = format!("{}/tests/fixtures/", env!("CARGO_MANIFEST_DIR"));
    error.replace(&directory, "")
}

fn cast(text: &str) -> (Scenario, Cast) {
    let source = source(text).unwrap();
    let scenario = source.with(&[]).unwrap();
    let cast = Cast::of(&source, &scenario, 1).unwrap();
    (scenario, cast)
}

const HEAD: &str = "duration = \"10s\"\n[[rsu]]\nid = \"r\"\n[[obu]]\nid = \"o\"\n";
/// An RSU is put below where none follows.
const DISK: &str = "duration = \"10s\"\n[radio]\nmodel = \"disk\"\n";

const TIME: &str = "a time with its unit, such as \"100ms\", \"1.5s\", \"2min\" or \"1h30min\"";

#[test]
fn errors_name_line_field_and_what_was_expected() {
    let mut wrong = Vec::new();
    for (text, expected) in [
        // TOML, types, unknown and missing fields.
        ("duration = ", "a.toml:1: string values must be quoted, expected literal string"),
        (
            "duration = 5",
            "a.toml:1: duration: invalid type: integer `5`, expected a time with its unit, such as \
             \"100ms\", \"1.5s\", \"2min\" or \"1h30min\"",
        ),
        (
            "duration = \"5\"",
            "a.toml:1: duration: \"5\"; expected a time with its unit, such as \"100ms\", \
             \"1.5s\", \"2min\" or \"1h30min\"",
        ),
        ("seed = 1\nseeds = 2\n", "a.toml:1: missing field `duration`"),
        (
            &format!("{HEAD}[[rsu]]\nposition = [0, 0]\nid = \"s\"\n"),
            "a.toml:7: rsu.1.position: unknown field `position`, expected one of `id`, \
             `position_m`, `lan`",
        ),
        (
            &format!("{HEAD}[radio]\nmodel = \"disc\"\n"),
            "a.toml:7: radio.model: unknown variant `disc`, expected one of `links`, `disk`, \
             `log-distance`, `dual-slope`",
        ),
        (
            &format!("{HEAD}[settings.obu.policy]\nranking = \"speed\"\n"),
            "a.toml:7: settings.obu.policy.ranking: unknown variant `speed`, expected `cost` or \
             `hops`",
        ),
        // Where vehicles come from.
        (
            &format!("{DISK}[mobility]\n"),
            "a.toml:4: mobility: 0 sources of vehicles; expected one of file, grid and motorway",
        ),
        (
            &format!("{DISK}[mobility]\nfile = \"ours.csv\"\n[mobility.grid]\n"),
            "a.toml:4: mobility: 2 sources of vehicles; expected one of file, grid and motorway",
        ),
        (
            &format!("{DISK}[mobility]\nfile = \"ours.csv\"\ncount = 2\nshare = 0.5\n"),
            "a.toml:7: mobility.share: beside count; expected one of the two",
        ),
        (
            &format!("{DISK}[mobility]\nfile = \"ours.csv\"\nshare = 0\n"),
            "a.toml:6: mobility.share: 0; expected a number above 0, up to 1",
        ),
        (
            &format!("{DISK}[mobility]\nfile = \"ours.csv\"\npick = \"first\"\n"),
            "a.toml:6: mobility.pick: all of them; expected count or share beside it",
        ),
        (
            &format!("{DISK}[mobility]\nfrom = \"1s\"\n[mobility.motorway]\n"),
            "a.toml:5: mobility.from: no file; what is made from the seed begins at the beginning",
        ),
        (
            &format!("{DISK}[mobility.grid]\nblocks = [1, 1]\nvehicles = 200\n"),
            "a.toml:6: mobility.grid.vehicles: 125 on a kilometre of lane; expected 120 or less",
        ),
        (
            &format!("{DISK}[mobility.grid]\ncrossings = \"stops\"\ncycle = \"30s\"\n"),
            "a.toml:6: mobility.grid.cycle: no lights; expected crossings = \"lights\" beside it",
        ),
        (
            &format!(
                "{DISK}[mobility]\nfile = \"ours.csv\"\ncount = 2\n[[client]]\nid = \"c\"\n\
                 behind = \"vehicles/0\"\n"
            ),
            "a.toml:9: client.0.behind: \"vehicles/0\": which vehicles there are is drawn from the \
             seed; expected a file, and all of it or pick = \"first\"",
        ),
        // Ranges.
        (
            "duration = \"0s\"\n[[rsu]]\nid = \"r\"",
            "a.toml:1: duration: 0s; expected a time from 1ms to 24 hours\n\
             a.toml:1: warm_up: 1s; expected less than the duration, 0s",
        ),
        (
            &format!("{HEAD}[settings.obu]\ncached_candidates = 17\n"),
            "a.toml:7: settings.obu.cached_candidates: 17; expected a whole number from 0 to 16",
        ),
        (
            &format!("{HEAD}[settings]\nideal_every = \"0s\"\n"),
            "a.toml:7: settings.ideal_every: 0s; expected a time from 1ms to 10s",
        ),
        (
            &format!("{HEAD}[settings.rsu]\nhello_periodicity = \"5ms\"\n"),
            "a.toml:7: settings.rsu.hello_periodicity: 5ms; expected a time from 10ms to 10s",
        ),
        (
            &format!("{HEAD}[settings.rsu]\ngroup_rate = 64001\n"),
            "a.toml:7: settings.rsu.group_rate: 64001; expected a whole number from 0 to 64000",
        ),
        (
            &format!("{HEAD}[settings.obu]\nmtu = 9000\nradio_mtu = 200\n"),
            "a.toml:7: settings.obu.mtu: a TAP MTU of 9000 needs a radio MTU of at least 1146 and \
             the radio has 200; use --mtu 1436 or less, or raise the MTU of the radio",
        ),
        (
            &format!("{HEAD}[[link]]\nfrom = \"r\"\nto = \"o\"\nloss = 1.5\n"),
            "a.toml:9: link.0.loss: 1.5; expected a number from 0 to 1",
        ),
        (
            &format!("{DISK}[[rsu]]\nid = \"r\"\nposition_m = [0, nan]\n"),
            "a.toml:6: rsu.0.position_m: [0, NaN]; expected metres from -1000000 to 1000000",
        ),
        (
            &format!("{DISK}rate_mbps = 7\n[[rsu]]\nid = \"r\"\nposition_m = [0, 0]\n"),
            "a.toml:4: radio.rate_mbps: 7; expected one of 3, 4.5, 6, 9, 12, 18, 24, 27",
        ),
        (
            "duration = \"10s\"\n[radio]\nmodel = \"dual-slope\"\nsinr_db = 5\n[[rsu]]\n\
             id = \"r\"\nposition_m = [0, 0]\n",
            "a.toml:4: radio.sinr_db: means something beside errors = \"threshold\" only; expected \
             both or neither",
        ),
        (
            &format!("{DISK}errors = \"threshold\"\n"),
            "a.toml:4: radio.errors: a field of model log-distance, dual-slope; expected none, the \
             model is disk",
        ),
        (
            &format!("{HEAD}[radio]\nerrors = \"nits\"\n"),
            "a.toml:7: radio.errors: unknown variant `nits`, expected `nist` or `threshold`",
        ),
        // Names.
        (
            &format!("{HEAD}[[obu]]\nid = \"r\"\n"),
            "a.toml:7: obu.1.id: \"r\"; expected a name nothing else has",
        ),
        (
            &format!("{HEAD}[[obu]]\nid = \"obus\"\n"),
            "a.toml:7: obu.1.id: \"obus\"; expected another name than obus, rsus, everyone, nobody",
        ),
        (
            &format!("{HEAD}[[obu]]\nid = \"a b\"\n"),
            "a.toml:7: obu.1.id: \"a b\"; expected letters, digits, '-', '_' and '.'",
        ),
        (
            &format!("{HEAD}[[rsu]]\nid = \"s\"\nlan = \"raod\"\n[[lan]]\nid = \"road\"\n"),
            "a.toml:8: rsu.1.lan: \"raod\"; expected the id of a [[lan]]: road",
        ),
        (
            &format!("{HEAD}[[link]]\nfrom = \"r\"\nto = \"x\"\n"),
            "a.toml:8: link.0.to: \"x\"; expected obus, rsus or the id of a node: o, r",
        ),
        (
            &format!("{HEAD}[[link]]\nfrom = \"r\"\nto = \"o/2\"\n"),
            "a.toml:8: link.0.to: \"o/2\"; expected o",
        ),
        (
            &format!("{HEAD}[[flow]]\nfrom = \"o\"\nto = \"nobody\"\nframes_per_s = 1\n"),
            "a.toml:7: flow.0.from: \"o\"; expected the id of a [[client]]: there is none",
        ),
        // What goes with what.
        (
            "duration = \"10s\"\n[[obu]]\nid = \"o\"\n",
            "a.toml:1: rsu: none; expected one [[rsu]] or more: without it no OBU can have a route",
        ),
        (
            &format!("{HEAD}[radio]\nrange_m = 5\n"),
            "a.toml:7: radio.range_m: a field of model disk; expected none, the model is links",
        ),
        (
            &format!("{DISK}[[obu]]\nid = \"o\"\n"),
            "a.toml:4: obu.0.position_m: missing; model disk needs position_m or path_m",
        ),
        (
            &format!("{DISK}[[obu]]\nid = \"o\"\npath_m = [[0, 0], [1, 0]]\n"),
            "a.toml:4: obu.0.speed_kmh: missing; a vehicle with path_m needs it",
        ),
        (
            &format!("{DISK}[[obu]]\nid = \"o\"\nposition_m = [0, 0]\ncount = 3\n"),
            "a.toml:4: obu.0.gap_m: missing; a row of vehicles needs it",
        ),
        (
            &format!("{DISK}[[obu]]\nid = \"o\"\nposition_m = [0, 0]\nspeed_kmh = 3\n"),
            "a.toml:7: obu.0.speed_kmh: a vehicle that stands; expected path_m beside it",
        ),
        (
            &format!("{HEAD}[mobility]\nfile = \"x\"\n"),
            "a.toml:6: mobility: vehicles that move; expected a radio model other than links",
        ),
        (
            &format!(
                "{DISK}[[rsu]]\nid = \"r\"\nposition_m = [0, 0]\n[[obu]]\nid = \"o\"\n\
                 position_m = [9, 0]\n[[link]]\nfrom = \"r\"\nto = \"o\"\n"
            ),
            "a.toml:10: link.0: a link; expected none, model disk makes them from positions",
        ),
        (
            &format!("{HEAD}[[client]]\nid = \"c\"\n"),
            "a.toml:6: client.0.behind: missing; expected behind or lan",
        ),
        (
            &format!(
                "{HEAD}[[client]]\nid = \"c\"\nbehind = \"o\"\nspeaks = false\n[[flow]]\n\
                 from = \"c\"\nto = \"everyone\"\nframes_per_s = 1\n"
            ),
            "a.toml:11: flow.0.from: \"c\"; expected a client with speaks = true",
        ),
        (
            &format!(
                "{HEAD}[[client]]\nid = \"c\"\nbehind = \"o\"\n[[flow]]\nfrom = \"c\"\n\
                 to = \"everyone\"\nframes_per_s = 1\nstart = \"9s\"\nstop = \"8s\"\n"
            ),
            "a.toml:13: flow.0.start: 9s; expected a time before the flow ends, 8s",
        ),
        (
            &format!(
                "{HEAD}[[client]]\nid = \"c\"\nbehind = \"o\"\n[[flow]]\nfrom = \"c\"\n\
                 to = \"c\"\nframes_per_s = 1\n"
            ),
            "a.toml:11: flow.0.to: \"c\", a client alone; expected somebody else",
        ),
        (
            &format!("{HEAD}[[client]]\nid = \"c\"\nbehind = \"o\"\nshare = 0.5\n"),
            "a.toml:9: client.0.share: 0.5 of 1, which is nobody; expected a larger one",
        ),
        (
            &format!("{HEAD}[[fault]]\nat = \"1s\"\nwhat = \"cut\"\nnode = \"r\"\n"),
            "a.toml:6: fault.0.peer: missing; expected the node at the other end",
        ),
        (
            &format!(
                "{HEAD}[[fault]]\nat = \"1s\"\nwhat = \"crash\"\nnode = \"r\"\npeer = \"o\"\n"
            ),
            "a.toml:10: fault.0.peer: happens to one node; expected no peer",
        ),
        (
            &format!("{HEAD}[[fault]]\nat = \"1s\"\nwhat = \"restart\"\nnode = \"r\"\n"),
            "a.toml:6: fault.0.after: missing; expected how long the node is off, or stands still",
        ),
        (
            &format!("{HEAD}[[fault]]\nat = \"1s\"\nwhat = \"stall\"\nnode = \"r\"\n"),
            "a.toml:6: fault.0.after: missing; expected how long the node is off, or stands still",
        ),
        (
            &format!("{HEAD}[[fault]]\nat = \"1s\"\nwhat = \"crash\"\nnode = \"r\"\nloss = 0.5\n"),
            "a.toml:10: fault.0.loss: no new link; expected it with what = \"relink\" only",
        ),
        (
            &format!("{HEAD}[[fault]]\nat = \"10.1s\"\nwhat = \"crash\"\nnode = \"r\"\n"),
            "a.toml:7: fault.0.at: 10.1s; expected a time up to the duration, 10s",
        ),
        (
            &format!(
                "{HEAD}[[client]]\nid = \"c\"\nbehind = \"o\"\n[[flow]]\nfrom = \"c\"\n\
                 to = \"everyone\"\nframes_per_s = 1\nstart = \"10s\"\n"
            ),
            "a.toml:13: flow.0.start: 10s; expected a time before the end, 10s",
        ),
        // Files it names.
        (
            &format!("{DISK}[mobility]\nfile = \"none.csv\"\n"),
            "a.toml:5: mobility.file: none.csv: No such file or directory (os error 2); expected a \
             file of movements",
        ),
        (
            &format!("{DISK}[mobility]\nfile = \"ours.csv\"\nfrom = \"90s\"\n"),
            "a.toml:4: mobility: no vehicle in the window from from to to; expected at least one",
        ),
        (
            &format!(
                "{DISK}[mobility]\nfile = \"ours.csv\"\n[[client]]\nid = \"c\"\n\
                 behind = \"vehicles/7\"\n"
            ),
            "a.toml:8: client.0.behind: \"vehicles/7\"; expected a vehicle of the file of \
             movements",
        ),
    ] {
        let said = complaint(text);
        if said != expected {
            wrong.push(format!("{text}\nsays:     {said}\nexpected: {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn overrides_are_checked_like_the_file_and_named_in_errors() {
    let source = source(HEAD).unwrap();
    let with = |typed: &str| {
        let error = source.with(&[typed.parse::<Override>().unwrap()]).unwrap_err().to_string();
        error.split_once("a.toml with ").unwrap().1.to_owned()
    };
    assert_eq!(
        with("warm_up=20s"),
        "warm_up=20s: warm_up: 20s; expected less than the duration, 10s"
    );
    assert!(with("radio.rnage_m=5").starts_with("radio.rnage_m=5: radio.rnage_m: unknown field"));
    assert_eq!(with("rsu.3.id=x"), "rsu.3.id=x: rsu.3.id: rsu has 1 entries, counted from 0");
    assert_eq!(
        with("duration=1h30"),
        format!("duration=1h30: duration: \"1h30\"; expected {TIME}")
    );
    let changed = source.with(&["duration=20s".parse().unwrap(), "rsu.id=s".parse().unwrap()]);
    let changed = changed.unwrap();
    assert_eq!((changed.duration.0.as_secs(), changed.rsu[0].id.as_str()), (20, "s"));
}

/// A file of movements is named by who named it: the line of the scenario, or what was typed.
#[test]
fn a_missing_file_of_movements_is_named_by_who_asked_for_it() {
    let source = source(&format!("{DISK}[mobility]\nfile = \"ours.csv\"\n")).unwrap();
    let says = |typed: &[&str]| {
        let typed: Vec<Override> = typed.iter().map(|typed| typed.parse().unwrap()).collect();
        let error = Cast::of(&source, &source.with(&typed).unwrap(), 1).unwrap_err().to_string();
        error.replace(&format!("{}/tests/fixtures/", env!("CARGO_MANIFEST_DIR")), "")
    };
    let missing = "No such file or directory (os error 2); expected a file of movements";
    assert_eq!(
        says(&["duration=9s", "mobility.file=none.csv"]),
        format!(
            "a.toml with duration=9s mobility.file=none.csv: mobility.file: none.csv: {missing}"
        )
    );
    assert_eq!(
        says(&["duration=9s", "mobility={file=\"no.csv\"}"]).split(": mobility.file: ").nth(1),
        Some(format!("no.csv: {missing}").as_str())
    );
}

#[test]
fn rows_of_vehicles_keep_their_distance_at_both_ends() {
    let (_, cast) = cast(&format!(
        "{DISK}[[obu]]\nid = \"car\"\ncount = 3\ngap_m = 20\nspeed_kmh = 36\n\
         path_m = [[100, 0], [160, 0]]\n"
    ));
    let cars: Vec<&Member> = cast.nodes.iter().filter(|node| node.role == Role::Obu).collect();
    let names: Vec<&str> = cars.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["car/1", "car/2", "car/3"]);
    for (index, node) in cars.iter().enumerate() {
        let Placement::Way(track) = &node.place else { panic!("{node:?}") };
        let behind = 20.0 * f64::from(u32::try_from(index).unwrap());
        let x_at =
            |seconds: u64| track.position_at(Timestamp::from_millis(1000 * seconds)).unwrap().x_m;
        for (seconds, x_m) in [(0, 100.0), (3, 130.0), (6, 160.0), (10, 160.0)] {
            assert!((x_at(seconds) - (x_m - behind)).abs() < 1e-9, "{index} at {seconds}");
        }
    }
}

#[test]
fn vehicles_of_a_file_appear_and_leave_as_it_says() {
    let (_, cast) = cast(&format!(
        "{DISK}[mobility]\nfile = \"ours.csv\"\nfrom = \"2s\"\ncount = 2\npick = \"first\"\n\
         offset_m = [1000, 0]\n[[client]]\nid = \"c\"\nbehind = \"vehicles\"\nshare = 0.5\n"
    ));
    let names: Vec<&str> = cast.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["beside", "vehicles/0", "vehicles/1"]);
    assert_eq!(cast.nodes[2].appears(), Timestamp::from_millis(2000));
    let Placement::Way(track) = &cast.nodes[2].place else { panic!("not a way") };
    assert_eq!(track.position_at(Timestamp::from_millis(2000)), Some(Location::new(1098.4, 187.7)));
    assert_eq!(cast.clients.len(), 1);
    assert_eq!(cast.clients[0].home, Home::Behind(NodeIndex(2)));
}

#[test]
fn of_clients_that_send_to_each_other_none_sends_to_itself() {
    let (_, cast) = cast(&format!(
        "{}[[client]]\nid = \"c\"\nbehind = \"obus\"\n[[flow]]\nfrom = \"c\"\nto = \"c\"\n\
         frames_per_s = 1\n",
        HEAD.to_owned() + "count = 3\n"
    ));
    let ends: Vec<(usize, To)> = cast.flows.iter().map(|flow| (flow.from, flow.to)).collect();
    assert_eq!(ends, [(0, To::Client(1)), (1, To::Client(2)), (2, To::Client(0))]);
}

#[test]
fn flows_pair_their_ends_and_begin_when_both_are_there() {
    let (_, cast) = cast(
        "duration = \"10s\"\n[[lan]]\nid = \"l\"\n[[rsu]]\nid = \"r\"\nlan = \"l\"\n[[obu]]\n\
         id = \"o\"\ncount = 3\n[[client]]\nid = \"s\"\nlan = \"l\"\n[[client]]\nid = \"c\"\n\
         behind = \"obus\"\ncount = 2\n[[flow]]\nfrom = \"c\"\nto = \"s\"\nframes_per_s = 50\n\
         arrivals = \"even\"\n\
         [[flow]]\nfrom = \"s\"\nto = \"c\"\nframes_per_s = 50\nstart = \"5s\"\nstop = \"6s\"\n\
         arrivals = \"even\"\n\
         [[flow]]\nfrom = \"s\"\nto = \"everyone\"\nframes_per_s = 1\n",
    );
    assert_eq!(cast.of_role(Role::Obu).count(), 3);
    assert_eq!(cast.client_name(2), "c.2@o/1");
    let ends: Vec<(usize, To)> = cast.flows.iter().map(|flow| (flow.from, flow.to)).collect();
    let up: Vec<(usize, To)> = (1..7).map(|client| (client, To::Client(0))).collect();
    let down: Vec<(usize, To)> = (1..7).map(|client| (0, To::Client(client))).collect();
    assert_eq!(ends[..6], up);
    assert_eq!(ends[6..12], down);
    assert_eq!(ends[12], (0, To::Everyone));
    for flow in &cast.flows[..6] {
        assert_eq!(flow.every, Duration::from_millis(20));
        assert!((449..=450).contains(&flow.count()), "{flow:?}");
        let phase = flow.start.since(Timestamp::from_millis(1000));
        assert!(phase < flow.every);
    }
    // Frames of a Poisson process are drawn when the world runs, and as many as come.
    assert_eq!(cast.flows[12].arrivals, ArrivalsSpec::Poisson);
    assert_eq!(cast.flows[12].start, Timestamp::from_millis(1000));
    assert_eq!(cast.flows[12].stop, Timestamp::from_millis(10_000));
    assert!(cast.flows[6..12].iter().all(|flow| (49..=50).contains(&flow.count())));
}

/// Which vehicles take part, where only some do, is drawn from the seed.
#[test]
fn a_part_of_the_vehicles_is_drawn_from_the_seed() {
    let names = |fields: &str, seed| -> Vec<String> {
        let text = format!(
            "{HEAD_OF_DISK}[mobility]\nfile = \"../../../examples/scenarios/grid-180s.csv.gz\"\n\
             {fields}"
        )
        .replace("10s", "180s");
        let source = source(&text).unwrap();
        let cast = Cast::of(&source, &source.with(&[]).unwrap(), seed).unwrap();
        cast.of_role(Role::Obu).map(|node| cast.name(node).to_owned()).collect()
    };
    let all = names("", 1);
    assert_eq!(all.len(), 80);
    assert_eq!(names("", 2), all);
    let first = names("count = 20\npick = \"first\"\n", 1);
    assert_eq!(first, all[..20]);
    assert_eq!(names("count = 20\npick = \"first\"\n", 2), first);
    let (one, other) = (names("count = 20\n", 1), names("count = 20\n", 2));
    assert_eq!((one.len(), other.len()), (20, 20));
    assert_eq!(names("share = 0.25\n", 1), one);
    assert!(one != first && one != other, "{one:?}");
    // A smaller part of the same seed is a part of it.
    let fewer = names("count = 5\n", 1);
    assert!(fewer.len() == 5 && fewer.iter().all(|name| one.contains(name)), "{fewer:?}");
    // All have the same chance: over 200 seeds each takes part in a quarter of them, within four
    // standard deviations (6.1).
    let mut times = std::collections::BTreeMap::<String, u32>::new();
    for seed in 1..=200 {
        for name in names("count = 20\n", seed) {
            *times.entry(name).or_default() += 1;
        }
    }
    assert_eq!(times.len(), 80);
    assert!(times.values().all(|times| (25..=75).contains(times)), "{times:?}");
    assert_eq!(names("count = 500\n", 1), all);
}

/// Towns and motorways are vehicles like those of a file, others for each seed.
#[test]
fn towns_are_made_from_the_seed() {
    let cast = |fields: &str, seed| {
        let source = source(&format!("{HEAD_OF_DISK}[mobility]\n{fields}")).unwrap();
        Cast::of(&source, &source.with(&[]).unwrap(), seed).unwrap()
    };
    let at_once = |cast: &Cast| {
        let time = Timestamp::from_millis(5000);
        let there = cast.nodes.iter().filter(|node| match &node.place {
            Placement::Way(track) => track.position_at(time).is_some(),
            Placement::Nowhere | Placement::Stands(_) => false,
        });
        there.count()
    };
    let grid = "[mobility.grid]\nblocks = [2, 3]\nvehicles = 30\n";
    assert_eq!(at_once(&cast(grid, 1)), 30);
    assert_eq!(cast(grid, 1), cast(grid, 1));
    assert_ne!(cast(grid, 1), cast(grid, 2));
    let stops = "[mobility.grid]\nblocks = [2, 3]\nvehicles = 30\ncrossings = \"stops\"\n";
    assert_ne!(cast(grid, 1), cast(stops, 1));
    // 2 · 200 m · (2 · 4 + 3 · 3) of lane, and 6 · 1 km.
    assert_eq!(at_once(&cast("[mobility.grid]\nblocks = [2, 3]\ndensity_per_km = 5\n", 1)), 34);
    let motorway = "[mobility.motorway]\nlength_m = 1000\ndensity_per_km = 20\n";
    // In the second in which one leaves, another one follows it.
    let there = at_once(&cast(motorway, 1));
    assert!((115..=125).contains(&there), "{there}");
    assert_eq!(at_once(&cast(&format!("count = 7\n{grid}"), 1)), 7);
    let moved = cast(&format!("offset_m = [0, 5000]\n{grid}"), 1);
    let Placement::Way(track) = &moved.nodes[1].place else { panic!("not a way") };
    assert!(track.position_at(Timestamp::from_millis(1)).unwrap().y_m > 4990.0);
}

const HEAD_OF_DISK: &str = "duration = \"10s\"\nradio = { model = \"disk\" }\n\
    rsu = [{ id = \"beside\", position_m = [0, 50] }]\n";
