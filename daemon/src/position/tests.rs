//! The thread that reads, beside a gpsd on the loopback interface that does what the test says, and
//! with files.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use control_socket::position::PositionState;
use node_lib::runtime::command::{Commands as _, Remote};
use node_lib::runtime::inside::{self, Attended};
use node_lib::runtime::request::Request;

use super::*;

/// A test that waits for so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

const VERSION: &str =
    r#"{"class":"VERSION","release":"3.25","rev":"3.25","proto_major":3,"proto_minor":15}"#;

fn report(latitude: f64) -> String {
    format!(r#"{{"class":"TPV","device":"/dev/ttyACM0","mode":3,"lat":{latitude},"lon":11.5}}"#)
}

/// A source that is read.
struct Scene {
    whereabouts: Whereabouts,
    shared: std::sync::Weak<Shared>,
    reading: Option<Reading>,
    node: Attended<Remote>,
}

/// Reads this source; tries again soon.
fn reads(source: &str, silence: Duration) -> Scene {
    let source: PositionSource = source.parse().unwrap();
    let tracker = Mutex::new(Tracker::new(&source));
    let shared = Shared {
        source: source.to_string(),
        clock: Clock::start(),
        tracker,
        node: OnceLock::new(),
    };
    let ms = Duration::from_millis;
    let waits = Waits { retry: (ms(10), ms(40)), silence, look: ms(10), ..Waits::DEFAULT };
    let file = file_of(&source).unwrap();
    let locator = Locator { source, file, shared: Arc::new(shared), waits };
    let (whereabouts, shared) = (locator.whereabouts(), Arc::downgrade(&locator.shared));
    let (node, inside) = inside::attend(Remote::new());
    let reading = Some(locator.start(inside).unwrap());
    Scene { whereabouts, shared, reading, node }
}

impl Scene {
    /// Waits until this is so.
    fn until(&self, accept: impl Fn(&PositionReport) -> bool) -> PositionReport {
        let until = Instant::now() + PATIENCE;
        loop {
            let position = self.whereabouts.position();
            if accept(&position) {
                return position;
            }
            assert!(Instant::now() < until, "{position:?}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn until_at(&self, latitude: f64) -> PositionReport {
        self.until(|p| p.fix.as_ref().is_some_and(|fix| fix.latitude_deg == latitude))
    }

    /// What the node is told next: its latitude, and whether it stays there.
    fn told(&mut self) -> Option<(f64, bool)> {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(request) = self.node.poll_request(&mut context) {
                let Request::Position(located) = request else { panic!("{request:?}") };
                return located.map(|located| (located.at.latitude_deg(), located.is_fixed));
            }
            assert!(Instant::now() < until, "the node is not told");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The thread lets go of what it shares when it ends.
    fn ends(mut self) {
        self.reading = None;
        let shared = self.shared.clone();
        drop(self);
        let until = Instant::now() + PATIENCE;
        while shared.strong_count() > 0 {
            assert!(Instant::now() < until, "it goes on");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Takes clients of a gpsd, and hands out each once it has asked for reports.
fn gpsd(listener: TcpListener) -> Receiver<TcpStream> {
    let (clients, taken) = channel();
    thread::spawn(move || {
        for client in listener.incoming().take(64) {
            let mut client = client.unwrap();
            client.write_all(format!("{VERSION}\r\n").as_bytes()).unwrap();
            let mut asked = String::new();
            BufReader::new(&client).read_line(&mut asked).unwrap();
            assert_eq!(asked, "?WATCH={\"enable\":true,\"json\":true};\n");
            if clients.send(client).is_err() {
                return;
            }
        }
    });
    taken
}

fn listens() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("gpsd://{}", listener.local_addr().unwrap());
    (listener, source)
}

fn say(client: &mut TcpStream, text: &str) {
    client.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_gpsd_is_followed_over_its_restarts() {
    let (listener, source) = listens();
    let address = listener.local_addr().unwrap();
    // Nobody is there yet.
    drop(listener);
    let scene = reads(&source, PATIENCE);
    let position = scene.until(|position| position.fault.is_some());
    assert_eq!((position.state, position.source), (PositionState::Waiting, source));
    let clients = gpsd(TcpListener::bind(address).unwrap());
    let mut client = clients.recv_timeout(PATIENCE).unwrap();
    say(&mut client, &format!("{}\r\n", report(48.1)));
    let position = scene.until_at(48.1);
    assert_eq!((position.fault, position.reports), (None, 1));
    // In pieces, with something bad between, and something without end.
    let (first, second) = (report(48.2), report(48.3));
    let (head, tail) = first.split_at(20);
    say(&mut client, head);
    say(&mut client, &format!("{tail}\nrubbish\n{}\n{second}\n", "x".repeat(lines::LINE_MAX + 1)));
    let position = scene.until_at(48.3);
    assert_eq!((position.reports, position.bad_lines), (3, 2));
    say(&mut client, "{\"class\":\"TPV\",\"device\":\"/dev/ttyACM0\",\"mode\":1}\n");
    scene.until(|position| position.state == PositionState::NoFix);
    // It goes, and comes back, three times.
    for round in 0..3 {
        drop(client);
        client = clients.recv_timeout(PATIENCE).unwrap();
        let latitude = 50.0 + f64::from(round);
        say(&mut client, &format!("{}\n", report(latitude)));
        assert_eq!(scene.until_at(latitude).fault, None);
    }
    scene.ends();
}

#[test]
fn the_node_is_told_of_each_fix_and_of_none() {
    let mut scene = reads("48.1,11.5", PATIENCE);
    assert_eq!(scene.told(), Some((48.1, true)));
    scene.ends();
    let (listener, source) = listens();
    let clients = gpsd(listener);
    let mut scene = reads(&source, PATIENCE);
    let mut client = clients.recv_timeout(PATIENCE).unwrap();
    let none = "{\"class\":\"TPV\",\"device\":\"/dev/ttyACM0\",\"mode\":1}\n";
    say(&mut client, &format!("{none}{}\nrubbish\n{}\n{none}", report(48.2), report(48.3)));
    assert_eq!(
        [scene.told(), scene.told(), scene.told()],
        [Some((48.2, false)), Some((48.3, false)), None]
    );
    scene.ends();
}

#[test]
fn a_gpsd_that_says_nothing_is_tried_anew() {
    let (listener, source) = listens();
    let clients = gpsd(listener);
    let scene = reads(&source, Duration::from_millis(50));
    let _silent = clients.recv_timeout(PATIENCE).unwrap();
    let _again = clients.recv_timeout(PATIENCE).unwrap();
    scene.until(|position| {
        position.fault.as_ref().is_some_and(|fault| fault.contains("says nothing for 0.05 s"))
    });
    scene.ends();
}

#[test]
fn a_server_that_is_no_gpsd_gives_no_position() {
    let (listener, source) = listens();
    let serving = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        say(&mut client, &"HTTP/1.1 400 Bad Request\r\n".repeat(3));
    });
    let scene = reads(&source, PATIENCE);
    let position = scene.until(|position| position.bad_lines == 3 && position.fault.is_some());
    assert_eq!((position.state, position.reports), (PositionState::Waiting, 0));
    serving.join().unwrap();
    scene.ends();
}

fn file(text: &str) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let source = format!("file:{}", file.path().display());
    (file, source)
}

fn timed(second: u64, latitude: f64) -> String {
    let time = format!(r#"mode":3,"time":"2020-01-01T00:{:02}:{:02}Z","#, second / 60, second % 60);
    report(latitude).replace(r#"mode":3,"#, &time)
}

#[test]
fn a_file_is_played_once_at_its_own_pace() {
    // What follows at once, and what follows an hour later.
    let lines = [VERSION.to_owned(), timed(0, 1.0), timed(0, 2.0), "rubbish".to_owned()];
    let late = timed(3599, 3.0);
    let (_file, source) = file(&format!("{}\r\n\n{late}", lines.join("\n")));
    let scene = reads(&source, PATIENCE);
    let position = scene.until(|position| position.bad_lines == 1);
    assert_eq!((position.reports, position.fault), (2, None), "the last waits for its time");
    assert_eq!(position.fix.unwrap().latitude_deg, 2.0);
    // It is not waited for.
    scene.ends();
    let (_file, source) = file(&format!("{}\n{}", timed(7, 4.0), timed(3, 5.0)));
    let scene = reads(&source, PATIENCE);
    let position = scene.until(|position| position.fault.is_some());
    assert_eq!(position.fault.as_deref(), Some("the file has ended"));
    assert_eq!((position.reports, position.fix.unwrap().latitude_deg), (2, 5.0));
    scene.ends();
}

#[test]
fn a_file_that_cannot_be_played_is_refused_with_what_was_expected() {
    let refused = |source: &str| {
        let source: PositionSource = source.parse().unwrap();
        format!("{:#}", file_of(&source).unwrap_err().error)
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    assert!(refused(&format!("file:{path}/gone")).contains("No such file"));
    assert!(refused(&format!("file:{path}")).contains("expected a file"));
    for text in ["", "rubbish\n", VERSION, r#"{"class":"TPV","mode":7}"#] {
        let (_file, source) = file(text);
        let said = refused(&source);
        assert!(said.contains(&source) && said.contains("gpspipe -w"), "{text}: {said}");
    }
    let (_file, source) = file(&format!("{VERSION}\n{}", report(1.0)));
    assert!(file_of(&source.parse().unwrap()).unwrap().is_some());
}
