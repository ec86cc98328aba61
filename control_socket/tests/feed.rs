//! A client that stays, against a daemon that says what a test wants said.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use control_socket::client::ClientError;
use control_socket::feed::{Backoff, Feed, News};
use control_socket::message::{
    Access, AnswerLine, Ask, Hello, Refusal, RefusalKind, RequestLine, Topic, Topics, Update,
    VERSION,
};
use control_socket::record::{Change, Happened};
use node_lib::NodeId;
use node_lib::control::event::{Attachment, Cause, Event, HandOver};

const PATIENCE: Duration = Duration::from_secs(10);

/// A connection: what the daemon says, and whether it stays when all is said.
type Connection = (Vec<String>, bool);

/// A daemon that takes these connections, one after the other; and what it is asked.
fn daemon(path: &Path, connections: Vec<Connection>) -> Receiver<RequestLine> {
    let listener = UnixListener::bind(path).unwrap();
    let (asked, asks) = channel();
    std::thread::spawn(move || {
        for (says, stays) in connections {
            let (mut stream, _) = listener.accept().unwrap();
            for (number, piece) in says.iter().enumerate() {
                if number > 0 {
                    // Longer than the client waits at a time.
                    std::thread::sleep(Duration::from_millis(20));
                }
                // Who has heard enough may be gone.
                let _ = stream.write_all(piece.as_bytes());
            }
            if !stays {
                let _ = stream.shutdown(Shutdown::Write);
            }
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let _ = asked.send(serde_json::from_str(&line).unwrap());
            }
        }
    });
    asks
}

fn feed(path: &Path, topics: &[Topic]) -> Feed {
    let (least, most) = (Duration::from_micros(100), Duration::from_millis(2));
    let mut feed = Feed::with_backoff(path.to_owned(), Backoff::new(least, most));
    feed.subscribe(topics);
    feed
}

fn hello(started_unix_ms: u64) -> String {
    let (version, name) = ("0.1.0".to_owned(), "obu0".to_owned());
    let access = Access::ReadOnly;
    line(&Hello { v2x_control: VERSION, version, name, pid: 7, started_unix_ms, access })
}

fn line(what: &impl serde::Serialize) -> String {
    serde_json::to_string(what).unwrap() + "\n"
}

fn answer(topics: Topics) -> String {
    line(&AnswerLine { id: 1, ok: Some(Box::new(topics)), error: None })
}

fn update(missed: Option<u64>, topics: Topics) -> String {
    line(&Update { update: 1, missed, topics: Box::new(topics) })
}

fn refused(id: u64, kind: RefusalKind) -> String {
    line(&AnswerLine { id, ok: None, error: Some(Refusal { kind, text: "no".to_owned() }) })
}

fn place() -> Attachment {
    let rsu = NodeId([2; 6]);
    Attachment { rsu, upstream: rsu, hops: 1 }
}

fn events(numbers: std::ops::Range<u64>) -> Topics {
    let event = Event::ObuDetached { obu: NodeId([2; 6]) };
    let event = |number| Happened { number, at_unix_ms: 0, event: event.clone() };
    Topics { events: Some(numbers.map(event).collect()), ..Topics::default() }
}

fn with_change(topics: Topics, number: u64, is_over: bool) -> Topics {
    let (from, to, cause) = (Some(place()), Some(place()), Cause::Dead);
    let cost = is_over.then(|| HandOver {
        from: place(),
        to,
        cause,
        is_settled: true,
        gap: Duration::from_millis(100),
        lost: 0,
        at_risk: 0,
        doubled: 0,
        sent_twice: 0,
    });
    let (at_unix_ms, silence_ms, routes) = (0, 0, Vec::new());
    let change = Change { number, at_unix_ms, from, to, cause, silence_ms, cost, routes };
    Topics { changes: Some(vec![change]), ..topics }
}

/// Everything told until there are so many topics, in a word or two each.
fn told(feed: &mut Feed, topics: usize) -> Vec<String> {
    let (mut told, mut left) = (Vec::new(), topics);
    while left > 0 {
        let news = feed.next(PATIENCE).unwrap();
        told.push(match news.unwrap_or_else(|| panic!("nothing more after {told:?}")) {
            News::Topics(topics) => {
                left -= 1;
                let events = topics.events.map(|all| all.iter().map(|e| e.number).collect());
                let changes = topics.changes.map(|all| {
                    all.iter().map(|c| (c.number, c.cost.is_some())).collect::<Vec<_>>()
                });
                let events: Option<Vec<_>> = events;
                format!("events {events:?} changes {changes:?}")
            }
            News::Gap(gap) => format!("gap {gap:?}"),
            News::Connected(_) => "connected".to_owned(),
            News::Away(..) => "away".to_owned(),
            News::Restarted => "restarted".to_owned(),
        });
    }
    told
}

#[test]
fn who_comes_and_who_goes_is_said_to_the_daemon_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sock");
    let asks = daemon(&path, vec![(vec![hello(1)], true)]);
    let mut feed = feed(&path, &[Topic::Events]);
    assert!(matches!(feed.next(PATIENCE), Ok(Some(News::Connected(_)))));
    let asked = || asks.recv_timeout(PATIENCE).unwrap().ask;
    assert_eq!(asked(), Ask::Subscribe(vec![Topic::Events]));
    let another = feed.subscribe(&[Topic::Log, Topic::Events]);
    assert_eq!(feed.next(Duration::from_millis(1)).unwrap(), None);
    assert_eq!(asked(), Ask::Subscribe(vec![Topic::Events, Topic::Log]));
    feed.unsubscribe(another);
    assert_eq!(feed.next(Duration::from_millis(1)).unwrap(), None);
    assert_eq!(asked(), Ask::Subscribe(vec![Topic::Events]));
}

#[test]
fn the_same_one_line_subscribes_again_after_each_reconnect() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sock");
    let connection = || (vec![hello(1) + &answer(events(0..1))], false);
    let asks = daemon(&path, vec![connection(), connection(), connection()]);
    let mut feed = feed(&path, &[Topic::Events]);
    let _fifty: Vec<_> = (0..50).map(|n| feed.subscribe(&[Topic::ALL[n % 7]])).collect();
    told(&mut feed, 3);
    // What the last one is asked is there before it ends.
    while !matches!(feed.next(PATIENCE), Ok(Some(News::Away(..)))) {}
    drop(feed);
    let first = asks.recv_timeout(PATIENCE).unwrap();
    assert_eq!(first.ask, Ask::Subscribe(Topic::ALL.to_vec()));
    let rest: Vec<_> = asks.iter().collect();
    assert_eq!(rest, [first.clone(), first], "one for each connection");
}

#[test]
fn what_comes_again_after_a_reconnect_is_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sock");
    let before = || with_change(events(7..9), 3, false);
    let over = || update(None, with_change(Topics::default(), 3, true));
    let first = vec![hello(1) + &answer(before())];
    let second =
        vec![hello(1) + &answer(before()) + &over() + &over() + &update(None, events(9..10))];
    let _asks = daemon(&path, vec![(first, false), (second, true)]);
    assert_eq!(
        told(&mut feed(&path, &[Topic::Events, Topic::Changes]), 4),
        [
            "connected",
            "events Some([7, 8]) changes Some([(3, false)])",
            "away",
            "connected",
            // How things are now: nothing new.
            "events Some([]) changes Some([])",
            "events None changes Some([(3, true)])",
            "events Some([9]) changes None",
        ]
    );
}

#[test]
fn the_numbers_of_a_daemon_that_starts_again_begin_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sock");
    let first = vec![hello(1) + &answer(with_change(events(7..9), 3, false))];
    let second = vec![hello(2) + &answer(with_change(events(2..5), 3, false))];
    let _asks = daemon(&path, vec![(first, false), (second, true)]);
    assert_eq!(
        told(&mut feed(&path, &[Topic::Events, Topic::Changes]), 2)[2..],
        [
            "away",
            "restarted",
            "connected",
            // All that happened to it happened while we listened, or tried to.
            "gap Some(2)",
            "events Some([2, 3, 4]) changes Some([(3, false)])",
        ]
    );
}

#[test]
fn a_gap_of_changes_alone_is_told_and_nobody_knows_how_long_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sock");
    let now = answer(with_change(Topics::default(), 3, true));
    let next = update(None, with_change(Topics::default(), 9, false));
    let says = vec![hello(1) + &now + &update(Some(5), Topics::default()) + &next];
    let _asks = daemon(&path, vec![(says, true)]);
    assert_eq!(
        told(&mut feed(&path, &[Topic::Changes]), 2),
        [
            "connected",
            "events None changes Some([(3, true)])",
            "gap None",
            "events None changes Some([(9, false)])",
        ]
    );
}

#[test]
fn a_daemon_with_no_place_is_tried_again_and_one_that_refuses_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sock");
    let full = (vec![refused(0, RefusalKind::TooMany)], false);
    let ends = (vec![hello(1) + &refused(1, RefusalKind::Stopped)], false);
    let never = (vec![hello(1) + &answer(events(0..1)) + &refused(1, RefusalKind::Invalid)], false);
    let _asks = daemon(&path, vec![full, ends, never]);
    let mut feed = feed(&path, &[Topic::Events]);
    let said = told(&mut feed, 1);
    let expected = ["away", "connected", "away", "connected", "events Some([0]) changes None"];
    assert_eq!(said, expected);
    match feed.next(PATIENCE) {
        Err(ClientError::Refused { refusal, .. }) => assert_eq!(refusal.kind, RefusalKind::Invalid),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_that_comes_in_pieces_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.sock");
    let whole = answer(events(3..5));
    let (begin, end) = whole.split_at(whole.len() / 2);
    let _asks = daemon(&path, vec![(vec![hello(1), begin.to_owned(), end.to_owned()], true)]);
    let mut feed = feed(&path, &[Topic::Events]);
    // Nobody waits for long at a time, and what has come stays.
    let mut news = (0..10_000).filter_map(|_| feed.next(Duration::from_millis(1)).unwrap());
    assert!(matches!(news.next(), Some(News::Connected(_))));
    match news.next() {
        Some(News::Topics(topics)) => assert_eq!(topics.events, events(3..5).events),
        other => panic!("{other:?}"),
    }
}
