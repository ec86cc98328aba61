//! What it costs a client to subscribe to everything again after a reconnect: one line that is kept
//! for all its listeners, against a line made anew for each, as bytes and through a socket.
//!
//! `cargo bench -p control_socket --bench subscriptions`

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use control_socket::feed::Wanted;
use control_socket::message::{Ask, Request, Topic};
use criterion::{Criterion, criterion_group, criterion_main};

const LISTENERS: u64 = 50;

fn topics_of(listener: u64) -> Vec<Topic> {
    let number = usize::try_from(listener).unwrap_or_default();
    [number, number / Topic::ALL.len()]
        .iter()
        .filter_map(|n| Topic::ALL.get(n % Topic::ALL.len()).copied())
        .collect()
}

fn wanted() -> Wanted {
    let mut wanted = Wanted::default();
    for listener in 0..LISTENERS {
        wanted.add(&topics_of(listener));
    }
    wanted
}

/// The line of one listener.
fn made(id: u64, topics: &[Topic]) -> Vec<u8> {
    let ask = Ask::Subscribe(topics.to_vec());
    let mut line = serde_json::to_vec(&Request { id, ask }).expect("words and numbers");
    line.push(b'\n');
    line
}

fn subscribe(c: &mut Criterion) {
    let wanted = wanted();
    let all: Vec<_> = (0..LISTENERS).map(|listener| (listener, topics_of(listener))).collect();
    let mut group = c.benchmark_group("subscriptions/bytes");
    let mut out = Vec::with_capacity(16 << 10);
    group.bench_function("one_kept", |b| {
        b.iter(|| {
            out.clear();
            out.extend_from_slice(black_box(&wanted).line());
            black_box(&out);
        });
    });
    group.bench_function("fifty_made", |b| {
        b.iter(|| {
            out.clear();
            for (id, topics) in black_box(&all) {
                out.extend_from_slice(&made(*id, topics));
            }
            black_box(&out);
        });
    });
    group.finish();

    let (mut near, mut far) = UnixStream::pair().expect("a pair of sockets");
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while far.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    let mut group = c.benchmark_group("subscriptions/socket");
    group.bench_function("one_kept", |b| {
        b.iter(|| near.write_all(black_box(&wanted).line()).expect("somebody reads"));
    });
    group.bench_function("fifty_made", |b| {
        b.iter(|| {
            for (id, topics) in black_box(&all) {
                near.write_all(&made(*id, topics)).expect("somebody reads");
            }
        });
    });
    group.finish();
    drop(near);
    reader.join().expect("the reader");
}

criterion_group!(benches, subscribe);
criterion_main!(benches);
