//! Subscriptions: what there is, what is new, and those that do not read.

use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

use control_socket::message::{Ask, Topic};

use crate::scene::{ID, event, line, raw, runs};

#[test]
fn a_subscriber_gets_what_there_is_and_then_what_is_new() {
    let scene = runs();
    scene.happens(2, 7);
    let mut client = scene.client();
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        // What happened must have come to the one who keeps it.
        let known = client.ask(Ask::Get(vec![Topic::Changes])).unwrap().changes.unwrap();
        if !known.is_empty() || Instant::now() > until {
            break;
        }
    }
    let wanted = vec![Topic::Events, Topic::Changes];
    let before = client.ask(Ask::Subscribe(wanted)).unwrap();
    let changes = before.changes.unwrap();
    assert_eq!((changes.len(), changes[0].number, changes[0].silence_ms), (1, 0, 7));
    assert_eq!(before.events.unwrap()[0].event, event(2, 7));
    scene.happens(0, 9);
    let update = client.next_update().unwrap();
    let events = update.topics.events.unwrap();
    assert_eq!((events[0].number, &events[0].event), (1, &event(0, 9)));
    assert_eq!((update.missed, update.topics.changes, update.topics.node), (None, None, ID));
}

#[test]
fn what_a_change_cost_is_told_with_the_change() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    writeln!(client.get_mut(), "{{\"id\":2,\"subscribe\":[\"changes\"]}}").unwrap();
    assert_eq!(line(&mut client)["ok"]["changes"], serde_json::json!([]));
    scene.happens(2, 7);
    scene.happens(3, 7);
    let costs = [(); 2].map(|()| {
        let update = line(&mut client);
        let change = &update["changes"][0];
        assert_eq!(change["number"], 0, "{update}");
        change["cost"]["lost"].as_u64()
    });
    assert_eq!(costs, [None, Some(1)]);
}

#[test]
fn a_subscription_is_replaced_by_one_of_its_id_and_ends_when_its_client_says_so() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    let mut say = |what: &str| {
        writeln!(client.get_mut(), "{what}").unwrap();
        line(&mut client)
    };
    for id in [2, 3, 3, 4] {
        let answer = say(&format!("{{\"id\":{id},\"subscribe\":[\"events\"]}}"));
        assert_eq!(answer["ok"]["events"], serde_json::json!([]), "{answer}");
    }
    say("{\"id\":9,\"unsubscribe\":2}");
    (0..2).for_each(|n| scene.happens(0, n));
    let told = [(); 4].map(|()| {
        let update = line(&mut client);
        (update["update"].as_u64().unwrap(), update["events"][0]["number"].as_u64().unwrap())
    });
    assert_eq!(told, [(3, 0), (4, 0), (3, 1), (4, 1)]);
}

#[test]
fn the_view_is_told_whole_again_and_again() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    writeln!(client.get_mut(), "{{\"id\":2,\"subscribe\":[\"view\"]}}").unwrap();
    let told = [(); 3].map(|()| line(&mut client));
    let first = told[0]["ok"]["view"]["uptime_ms"].as_u64().unwrap();
    let uptimes = [1, 2].map(|n| told[n]["view"]["uptime_ms"].as_u64().unwrap());
    assert!(first < uptimes[0] && uptimes[0] < uptimes[1], "{first} {uptimes:?}");
    assert!(told.iter().all(|told| told["problems"].is_null()), "{told:?}");
}

#[test]
fn a_client_that_takes_nothing_is_left() {
    let scene = runs();
    let mut lazy = raw(&scene.path());
    line(&mut lazy);
    writeln!(lazy.get_mut(), "{{\"id\":2,\"subscribe\":[\"events\"]}}").unwrap();
    // More than fits into the socket.
    for n in 0..5_000 {
        scene.happens(0, n as u8);
        if n % 64 == 63 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // Longer than a daemon waits; then what fits into the socket is there, and no more.
    std::thread::sleep(Duration::from_secs(7));
    let mut lines = 0;
    let mut text = String::new();
    while lazy.read_line(&mut text).is_ok_and(|len| len > 0) {
        lines += 1;
        text.clear();
        assert!(lines < 5_000, "it goes on and on");
    }
    let last = lazy.into_inner().write(b"{\"id\":3,\"get\":[]}\n");
    assert!(last.is_err(), "nobody is there any more, after {lines} lines");
}

#[test]
fn a_fault_becomes_a_problem_that_subscribers_are_told() {
    let scene = runs();
    let mut client = scene.client();
    let before = client.ask(Ask::Subscribe(vec![Topic::Problems])).unwrap();
    assert_eq!(before.problems, Some(vec![]));
    scene.happens(1, 5);
    let problems = client.next_update().unwrap().topics.problems.unwrap();
    assert_eq!(problems[0].kind, "another-node-uses-our-node-id");
    assert!(problems[0].text.contains("02:00:00:00:00:05"), "{problems:?}");
    assert!(problems[0].cure.contains("--node-id"), "{problems:?}");
    // It is noticed again, and by now is older: both are no news.
    scene.happens(1, 6);
    client.ask(Ask::Subscribe(vec![Topic::View])).unwrap();
    for _ in 0..3 {
        let told = client.next_update().unwrap().topics;
        assert!(told.view.is_some() && told.problems.is_none(), "{:?}", told.problems);
    }
    let now = client.ask(Ask::Get(vec![Topic::Problems])).unwrap().problems.unwrap();
    assert_eq!(now[0].noticed.map(|noticed| noticed.times), Some(2));
}

#[test]
fn who_does_not_read_costs_no_frame_and_hears_of_its_gap() {
    let scene = runs();
    let mut lazy = scene.client();
    lazy.ask(Ask::Subscribe(vec![Topic::Events])).unwrap();
    // More than fits into the socket and all queues.
    let sent = 20_000;
    for n in 0..sent {
        scene.happens(0, n as u8);
        if n % 64 == 63 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // The others are served meanwhile.
    scene.client().ask(Ask::Get(vec![Topic::View])).unwrap();
    let (mut told, mut missed) = (0, 0);
    let mut last = 0;
    while last + 1 < sent {
        let update = lazy.next_update().unwrap();
        missed += update.missed.unwrap_or(0);
        for happened in update.topics.events.into_iter().flatten() {
            told += 1;
            last = happened.number;
        }
    }
    assert!(missed > 0, "it read too fast for this test: {told}");
    assert!(told <= sent && last < sent);
}
