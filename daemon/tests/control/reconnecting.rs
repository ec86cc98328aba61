//! A client that stays: through connections that break, and daemons that start again.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use control_socket::client::ClientError;
use control_socket::feed::{Backoff, Feed, News};
use control_socket::message::Topic;

use crate::scene::{PATIENCE, runs, runs_in};

/// Hands bytes to the socket behind it, and ends each connection after so many.
struct Cutter {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Cutter {
    fn before(socket: PathBuf, path: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for (number, near) in listener.incoming().enumerate() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (mut near, mut far) = (near.unwrap(), UnixStream::connect(&socket).unwrap());
                let (mut near_in, mut far_out) =
                    (near.try_clone().unwrap(), far.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut near_in, &mut far_out);
                    // Or else who still reads there would wait for ever.
                    let _ = far_out.shutdown(Shutdown::Both);
                });
                // From the middle of the greeting, over the answer, to some way into the updates.
                let most = 40 + number as u64 * 7919 % 64_000;
                let _ = std::io::copy(&mut (&mut far).take(most), &mut near);
                let _ = near.shutdown(Shutdown::Both);
                let _ = far.shutdown(Shutdown::Both);
            }
        });
        Self { path, is_over, thread: Some(thread) }
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = UnixStream::connect(&self.path);
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn over_many_reconnects_nothing_is_missed_or_doubled_or_the_gap_is_told() {
    // `make long` asks for a thousand.
    let reconnects = std::env::var("V2X_RECONNECTS");
    let reconnects: u64 = reconnects.map_or(100, |number| number.parse().unwrap());
    let scene = runs();
    let cutter = Cutter::before(scene.path(), scene.directory.path().join("cut.sock"));
    let (least, most) = (Duration::from_micros(100), Duration::from_millis(2));
    let mut feed = Feed::with_backoff(cutter.path.clone(), Backoff::new(least, most));
    let listeners: Vec<_> =
        (0..50).map(|n| feed.subscribe(&[[Topic::Events, Topic::Changes][n % 2]])).collect();
    // As much as the daemon keeps, so that its answers are long.
    let mut sent = 600;
    (0..sent).for_each(|n| scene.happens(0, n as u8));
    let (mut told, mut missed) = (0, 0);
    // The number that comes next, unless a gap is told.
    let mut next = None;
    let mut take = |feed: &Feed, news: News| match news {
        News::Gap(missing) => {
            missed += missing.unwrap();
            *next.as_mut().unwrap() += missing.unwrap();
        }
        News::Topics(topics) => {
            assert_eq!(feed.wanted().is_for(listeners[0], &topics), topics.events.is_some());
            for happened in topics.events.into_iter().flatten() {
                // What was before it listened is not missed.
                let next = next.get_or_insert(happened.number);
                assert_eq!(happened.number, *next, "twice, out of order, or a gap that is hidden");
                *next += 1;
                told += 1;
            }
        }
        News::Restarted => panic!("it is the same daemon"),
        News::Connected(_) | News::Away(..) => {}
    };
    let mut has_been_busy = false;
    while feed.connections() < reconnects {
        for _ in 0..3 {
            scene.happens(0, sent as u8);
            sent += 1;
        }
        // Several connections can come and go between two looks at their number.
        if !has_been_busy && feed.connections() >= reconnects / 2 {
            has_been_busy = true;
            // So much happens while nobody listens that the daemon cannot have kept it.
            (0..2000).for_each(|n| scene.happens(0, n as u8));
            sent += 2000;
        }
        while let Some(news) = feed.next(Duration::from_millis(1)).unwrap() {
            take(&feed, news);
        }
    }
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until
        && let Some(news) = feed.next(Duration::from_secs(1)).unwrap()
    {
        take(&feed, news);
    }
    assert_eq!(next, Some(sent), "the last one came");
    assert!(missed > 0 && told > missed / 4, "{told} told, {missed} in gaps");
    println!("{told} told, {missed} in gaps, {} connections", feed.connections());
}

#[test]
fn a_daemon_that_starts_again_is_told_of_and_waited_for() {
    let mut scene = runs();
    let (least, most) = (Duration::from_millis(1), Duration::from_millis(5));
    let mut feed = Feed::with_backoff(scene.path(), Backoff::new(least, most));
    feed.subscribe(&[Topic::Events]);
    let kinds = |feed: &mut Feed, until: &str| {
        let mut kinds = Vec::new();
        while kinds.last().map(String::as_str) != Some(until) {
            let news = feed.next(Duration::from_secs(10)).unwrap().unwrap();
            kinds.push(format!("{news:?}").split(['(', ' ']).next().unwrap().to_owned());
        }
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(&mut feed, "Topics"), ["Connected", "Topics"]);
    scene.stop();
    assert_eq!(kinds(&mut feed, "Away"), ["Away"]);
    let again = runs_in(Rc::clone(&scene.directory));
    again.happens(0, 1);
    let said = kinds(&mut feed, "Topics");
    assert!(said.ends_with(&["Restarted", "Connected", "Topics"].map(str::to_owned)), "{said:?}");
    // What cannot get better is an error.
    let file = scene.directory.path().join("file");
    let listener = UnixListener::bind(&file).unwrap();
    let foreign = std::thread::spawn(move || writeln!(listener.accept().unwrap().0, "hello"));
    assert!(matches!(Feed::new(file).next(PATIENCE), Err(ClientError::Foreign { .. })));
    foreign.join().unwrap().unwrap();
}
