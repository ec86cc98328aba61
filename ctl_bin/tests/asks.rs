//! What `v2xctl` asks of a daemon, on which of its sockets, and what it makes of the answer.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod daemon;

use control_socket::message::{
    Access, AnswerLine, Ask, Origin, PinAsk, Pinged, Recording, RefusalKind, SetAsk, Setting,
    Topic, Topics, Update,
};
use control_socket::record::{Change, Happened};
use daemon::{Daemon, refusal};
use node_lib::control::event::{Attachment, Cause, Event};
use node_lib::control::ping::Echoed;
use node_lib::control::snapshot::{
    KnownCandidate, KnownObu, KnownRoute, NodeRole, Obstacle, ObuStanding, RouteStanding, Snapshot,
    View,
};
use node_lib::messages::control::echo::Verdict;
use node_lib::{Mac, NodeId};
use serde_json::Value;

const TARGET: &str = "02:00:00:00:00:07";
const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

fn topics(role: NodeRole) -> Topics {
    let mut view = View::default();
    view.node = Snapshot::of(NodeId([2, 0, 0, 0, 0, 9]), role);
    (view.radio.is_up, view.tap.is_up) = (true, true);
    Topics { view: Some(view), role, ..Topics::default() }
}

#[test]
fn what_changes_something_is_asked_as_typed_on_the_read_write_socket_only() {
    let daemon = Daemon::of(topics(NodeRole::Rsu));
    let get = |topics: &[Topic]| Ask::Get(topics.to_vec());
    let set = SetAsk { name: "log".to_owned(), value: "debug".to_owned() };
    let (look, change) = (Access::ReadOnly, Access::ReadWrite);
    let pin = |vlan| Ask::PinClient(PinAsk { mac: MAC, vlan, obu: NodeId(MAC.0) });
    let lines: [(&[&str], Access, Ask); 18] = [
        (&["status"], look, get(&[Topic::View, Topic::Problems])),
        (&["why"], look, get(&[Topic::View, Topic::Changes])),
        (&["record"], look, get(&[Topic::Recording])),
        (&["config", "check"], look, Ask::Check),
        (&["log-level"], look, get(&[Topic::Log])),
        (&["clients", "flush", TARGET], change, Ask::FlushClients(Some(MAC))),
        (&["clients", "flush"], change, Ask::FlushClients(None)),
        (&["clients", "pin", TARGET, TARGET], change, pin(0)),
        (&["clients", "pin", "--vlan", "7", TARGET, TARGET], change, pin(7)),
        (&["clients", "unpin", TARGET], change, Ask::UnpinClients(Some(MAC))),
        (&["clients", "unpin"], change, Ask::UnpinClients(None)),
        (&["log-level", "debug"], change, Ask::SetLog("debug".to_owned())),
        (&["config", "set", "log", "debug"], change, Ask::Set(set)),
        (&["config", "reload"], change, Ask::Reload),
        (&["record", "start", "/tmp/x"], change, Ask::RecordStart(Some("/tmp/x".to_owned()))),
        (&["record", "start"], change, Ask::RecordStart(None)),
        (&["record", "stop"], change, Ask::RecordStop),
        (&["record", "mark", "a", "bump"], change, Ask::RecordMark("a bump".to_owned())),
    ];
    for (line, access, ask) in lines {
        daemon.run(line);
        let asked: Vec<_> = daemon.asked.try_iter().collect();
        assert_eq!(asked, [(access, ask)], "{line:?}");
    }
}

#[test]
fn what_a_daemon_refuses_and_what_it_does_not_have_is_code_1_with_the_reason() {
    let refuses = Daemon::new(|_| (Err(RefusalKind::Unable), Vec::new()));
    for line in [&["record", "stop"][..], &["status"], &["ping", TARGET]] {
        let (code, out, said) = refuses.run(line);
        assert_eq!((code, &*out), (1, ""), "{line:?}: {said}");
        assert!(said.contains("full moon"), "{said}");
    }
    let (changes, config) = (Some(Vec::new()), Some(Vec::new()));
    let daemon = Daemon::of(Topics { changes, config, ..topics(NodeRole::Obu) });
    for line in [&["why", "99"][..], &["config", "get", "nothing"]] {
        for form in ["table", "json"] {
            let (code, out, said) = daemon.run(&[&["-o", form], line].concat());
            assert_eq!((code, &*out), (1, ""), "{line:?} as {form}: {said}");
            assert!(said.contains(line[line.len() - 1]), "{said}");
        }
    }
}

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.to_owned(), values: vec![value.to_owned()], from: Origin::Default }
}

#[test]
fn a_setting_is_found_by_its_flag_and_by_its_name_in_a_file() {
    let config = Some(vec![setting("hello-history", "10"), setting("log", "info")]);
    let daemon = Daemon::of(Topics { config, ..topics(NodeRole::Obu) });
    for (name, value) in [("log", "info"), ("hello-history", "10"), ("hello_history", "10")] {
        let (code, out, said) = daemon.run(&["config", "get", name]);
        assert_eq!((code, out.lines().count()), (0, 2), "{name}: {out}{said}");
        assert!(out.contains(value), "{name}: {out}");
        let (_, out, said) = daemon.run(&["-o", "json", "config", "get", name]);
        let read: Value = serde_json::from_str(&out).unwrap();
        let settings = read["config"].as_array().unwrap();
        assert_eq!((settings.len(), &settings[0]["values"][0]), (1, &value.into()), "{out}{said}");
    }
}

fn happened(number: u64) -> Topics {
    let event = Event::ObuDetached { obu: NodeId([2; 6]) };
    let events = Some(vec![Happened { number, at_unix_ms: 0, event }]);
    Topics { at_unix_ms: 1, events, ..Topics::default() }
}

fn update(missed: Option<u64>, topics: Topics) -> String {
    let update = Update { update: 1, missed, topics: Box::new(topics) };
    serde_json::to_string(&update).unwrap()
}

#[test]
fn events_are_printed_as_they_come_and_a_gap_among_them() {
    let more = vec![update(None, happened(1)), update(Some(3), Topics::default())];
    let daemon = Daemon::new(move |_| (Ok(happened(0)), more.clone()));
    let (code, out, said) = daemon.run(&["events"]);
    assert_eq!(code, 3, "{said}");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[1].contains(" 1  ") && lines[2].starts_with("3 events were missed"), "{out}");
    let (_, out, _) = daemon.run(&["events", "-o", "json"]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["missed"], &last["daemon"]), (&3.into(), &"obu0".into()), "{out}");
}

#[test]
fn of_several_daemons_each_line_of_what_happens_says_whose_it_is() {
    let end = AnswerLine { id: 1, ok: None, error: Some(refusal(RefusalKind::Invalid)) };
    let end = serde_json::to_string(&end).unwrap();
    let more = vec![update(Some(3), Topics::default()), update(None, happened(4)), end];
    let names = ["obu0", "rsu0"];
    let [one, other] = names.map(|name| {
        let more = more.clone();
        Daemon::named(name, move |_| (Ok(happened(0)), more.clone()))
    });
    let both = ["-s", other.socket.to_str().unwrap(), "events"];
    for how in [&[][..], &["-w=0.1"]] {
        let (_, out, said) = one.run(&[&both, how].concat());
        for name in names {
            let start = format!("{name}: ");
            let lines: Vec<_> = out.lines().filter_map(|line| line.strip_prefix(&start)).collect();
            assert_eq!(lines.len(), 3, "{how:?}: {out}{said}");
            assert!(lines.contains(&"3 events were missed"), "{how:?}: {out}");
        }
        assert_eq!(out.lines().count(), 6, "{how:?}: {out}");
        let (_, out, said) = one.run(&[&both, how, &["-o", "json"]].concat());
        let lines: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for name in names {
            let missed = lines.iter().filter(|line| line["daemon"] == name && line["missed"] == 3);
            assert_eq!(missed.count(), 1, "{how:?}: {out}{said}");
        }
    }
}

#[test]
fn of_several_daemons_each_ping_stands_below_a_name() {
    let (one, other) = (in_a_row(2), in_a_row(2));
    let line = ["-s", other.socket.to_str().unwrap(), "ping", "-c", "1", TARGET];
    let (_, out, said) = one.run(&line);
    assert_eq!(out.lines().filter(|line| *line == "obu0:").count(), 2, "{out}{said}");
}

#[test]
fn events_that_are_watched_are_printed_once_and_a_refusal_ends_it() {
    let end = AnswerLine { id: 1, ok: None, error: Some(refusal(RefusalKind::Invalid)) };
    let more = vec![
        update(None, Topics::default()),
        update(None, happened(1)),
        update(None, happened(5)),
        serde_json::to_string(&end).unwrap(),
    ];
    let daemon = Daemon::new(move |_| (Ok(happened(0)), more.clone()));
    let (code, out, said) = daemon.run(&["events", "-w=0.1"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("full moon"), "{said}");
    let count = |what: &str| out.lines().filter(|line| line.contains(what)).count();
    let counts = [" 0  ", " 1  ", " 5  ", "3 events were missed"].map(count);
    assert_eq!(counts, [1, 1, 1, 1], "{out}");
}

/// Answers a question as nodes in a row would: the target is so many hops away.
fn in_a_row(hops: u8) -> Daemon {
    Daemon::new(move |ask| {
        let pinged = match ask {
            Ask::Ping(ask) => {
                let far = ask.hop_limit.min(hops);
                let verdict = if far == hops { Verdict::Reached } else { Verdict::HopLimit };
                let path = (0..=far).map(|n| NodeId([2, 0, 0, 0, 1, n])).collect();
                let answer = Echoed { nonce: 1, verdict, path, round_trip_us: 1234 };
                Some(Pinged { answer: Some(answer) })
            }
            _ => None,
        };
        (Ok(Topics { pinged, ..topics(NodeRole::Rsu) }), Vec::new())
    })
}

fn hop_limits(daemon: &Daemon) -> Vec<u8> {
    let limit = |(access, ask)| match ask {
        Ask::Ping(ask) => {
            assert_eq!((access, ask.target), (Access::ReadWrite, MAC));
            Some(ask.hop_limit)
        }
        _ => None,
    };
    daemon.asked.try_iter().filter_map(limit).collect()
}

#[test]
fn a_trace_asks_hop_by_hop_until_the_target_and_gives_up_after_three_that_are_silent() {
    let daemon = in_a_row(2);
    let (code, out, said) = daemon.run(&["traceroute", "-q", "2", TARGET]);
    assert_eq!((code, &*said), (0, ""), "{out}");
    assert_eq!(hop_limits(&daemon), [1, 1, 2, 2], "{out}");
    assert!(out.contains(" 2  02:00:00:00:01:02  1.234  1.234 ms"), "{out}");
    let silent = Topics { pinged: Some(Pinged { answer: None }), ..topics(NodeRole::Rsu) };
    let daemon = Daemon::of(silent);
    let (code, out, said) = daemon.run(&["traceroute", "-q", "1", TARGET]);
    assert_eq!((code, &*said), (4, ""), "{out}");
    // And once more for the likely reason.
    assert_eq!(hop_limits(&daemon), [1, 2, 3, 1], "{out}");
    assert!(out.contains("likely reason"), "{out}");
}

#[test]
fn a_ping_says_by_its_code_whether_anybody_answered() {
    let daemon = in_a_row(2);
    let (code, out, said) = daemon.run(&["ping", "-c", "2", "-i", "0.1", TARGET]);
    assert_eq!((code, &*said), (0, ""), "{out}");
    assert!(out.contains("2 hops, 1.234 ms") && out.contains("2 asked, 2 answered"), "{out}");
    let silent = Topics { pinged: Some(Pinged { answer: None }), ..topics(NodeRole::Rsu) };
    let (code, out, said) = Daemon::of(silent).run(&["ping", "-c", "1", TARGET]);
    assert_eq!((code, &*said), (4, ""), "{out}");
    assert!(out.contains("1 asked, 0 answered") && out.contains("likely reason"), "{out}");
}

#[test]
fn a_recording_is_said_to_be_replayable_only_from_the_start_of_the_node() {
    for (is_on, is_from_start, expected) in [
        (true, true, "on, since the start of the node: can be replayed"),
        (true, false, "on, begun while the node ran: cannot be replayed"),
        (false, true, "off"),
    ] {
        let directory = Some("/var/lib/v2x".to_owned());
        let counters = [("records", 8), ("lost", 2)].into_iter().collect();
        let recording = Some(Recording { is_on, directory, is_from_start, counters });
        let daemon = Daemon::of(Topics { recording, ..Topics::default() });
        let (_, out, said) = daemon.run(&["record"]);
        assert_eq!(out.lines().next(), Some(expected), "{out}{said}");
        assert!(out.contains("8 records") && out.contains("2 records lost"), "{out}");
    }
}

#[test]
fn counters_are_those_that_begin_so() {
    let mut topics = topics(NodeRole::Rsu);
    let counts = [("drop_hop_limit", 3), ("drop_no_route", 0), ("relayed", 10)];
    topics.view.as_mut().unwrap().counters.node = counts.into_iter().collect();
    let daemon = Daemon::of(topics);
    let words = |line: &[&str]| {
        let (_, out, _) = daemon.run(line);
        counts.map(|(name, _)| out.contains(name))
    };
    assert_eq!(words(&["stats"]), [true, false, true]);
    assert_eq!(words(&["stats", "drop_"]), [true, false, false]);
    assert_eq!(words(&["stats", "drop_", "--zero"]), [true, true, false]);
    // To a program what is absent is not known, so zeros are there.
    assert_eq!(words(&["-o", "json", "stats"]), [true, true, true]);
    assert_eq!(words(&["-o", "json", "stats", "drop_"]), [true, true, false]);
}

#[test]
fn what_decided_is_told_in_both_forms() {
    let rsu = NodeId([2, 0, 0, 0, 0, 1]);
    let change = Change {
        number: 4,
        at_unix_ms: 0,
        from: None,
        to: Some(Attachment { rsu, upstream: rsu, hops: 1 }),
        cause: Cause::Dead,
        silence_ms: 230,
        cost: None,
        routes: Vec::new(),
    };
    let daemon = Daemon::of(Topics { changes: Some(vec![change]), ..topics(NodeRole::Obu) });
    for line in [&["why"][..], &["why", "4"]] {
        let (_, table, said) = daemon.run(line);
        let (_, out, _) = daemon.run(&[&["-o", "json"], line].concat());
        let read: Value = serde_json::from_str(&out).unwrap();
        let rule = read["rule"].as_str().unwrap();
        assert!(table.contains(rule) && rule.contains("silent for 230 ms"), "{table}{said}{out}");
        let change = &read["change"];
        assert_eq!((&change["number"], &change["cause"]), (&4.into(), &"dead".into()), "{out}");
    }
}

#[test]
fn an_obu_whose_way_is_not_known_stands_in_the_tree_all_the_same() {
    let id = |n| NodeId([2, 0, 0, 0, 2, n]);
    let obu = |n, upstream| KnownObu {
        id: id(n),
        standing: ObuStanding::Attached,
        upstream,
        mac: None,
        way: None,
        heard_ms: 1,
        boot: 1,
        epoch: 1,
        clients: 2,
        is_complete: true,
        round_trip_us: None,
        is_contested: false,
        position: None,
    };
    let mut topics = topics(NodeRole::Rsu);
    let node = &mut topics.view.as_mut().unwrap().node;
    node.obus = vec![obu(1, node.id), obu(2, id(1)), obu(3, id(77))];
    let (_, out, said) = Daemon::of(topics).run(&["tree"]);
    let expected = "\
02:00:00:00:00:09 (this RSU)
  02:00:00:00:02:01  attached, 2 clients
    02:00:00:00:02:02  attached, 2 clients
? 02:00:00:00:02:03, behind 02:00:00:00:02:4d
";
    assert_eq!(out, expected, "{said}");
}

#[test]
fn upstreams_are_marked_as_what_they_are_to_us() {
    let candidate = |n, is_used, obstacles| KnownCandidate {
        id: NodeId([2, 0, 0, 0, 3, n]),
        mac: Mac([2, 0, 0, 0, 3, n]),
        is_used,
        obstacles,
        hops: 1,
        cost: 1.0,
        advertised_cost: 0.0,
        link_cost: 1.0,
        relay_cost: 0.0,
        margin: None,
        margin_needed: None,
        better_for_ms: None,
        heard_ms: 1,
        proven_ms: None,
        heard_ratio: None,
        strain_nat: 0.0,
        signal_dbm: None,
        signal_ahead_dbm: None,
        via: None,
        children: 0,
        mtu_bytes: 1500,
    };
    let route = |standing, candidates| KnownRoute {
        rsu: NodeId([2, 0, 0, 0, 4, 1]),
        standing,
        upstream: None,
        hops: None,
        heard_ms: 1,
        boot: 1,
        seq: 1,
        interval_ms: 100,
        obus: 1,
        quiet_for_ms: None,
        shunned_for_ms: None,
        is_contested: false,
        position: None,
        candidates,
    };
    let mut topics = topics(NodeRole::Obu);
    topics.view.as_mut().unwrap().node.routes = vec![
        route(
            RouteStanding::InUse,
            vec![
                candidate(1, true, Vec::new()),
                candidate(2, false, Vec::new()),
                candidate(3, true, vec![Obstacle::OneWay]),
            ],
        ),
        route(RouteStanding::Standby, vec![candidate(4, true, Vec::new())]),
    ];
    let (_, out, said) = Daemon::of(topics).run(&["upstreams"]);
    let marks: Vec<_> = out.lines().skip(1).take(4).map(|line| &line[..1]).collect();
    assert_eq!(marks, ["*", " ", "!", "+"], "{out}{said}");
}
