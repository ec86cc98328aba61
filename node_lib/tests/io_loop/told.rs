//! What comes to the node from beside the loop: signal strength, and its clients.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::time::Duration;

use node_lib::Mac;
use node_lib::device::signal::reports::WAITING_MAX;
use node_lib::device::signal::{Reports, Sample};
use node_lib::messages::control::announcement::Client;
use node_lib::runtime::Exit;
use node_lib::runtime::clients::ClientFile;
use node_lib::runtime::command::{Command, Remote};
use node_lib::start::clients::Remembered;

use crate::bench::{Bench, put};
use crate::devices::{MeasuredLinks, ScriptedLinks};
use crate::script::{Call, Script};

#[test]
fn what_is_measured_beside_the_loop_reaches_the_node() {
    let (tell, told) = mpsc::channel();
    let mut node = Script::new(|_, _| {});
    node.on_signal = Some(tell);
    let mut bench = Bench::new();
    let mut links = MeasuredLinks(Reports::default());
    let (reports, remote) = (links.0.clone(), Remote::new());
    let stop = remote.clone();
    let driver = std::thread::spawn(move || {
        let from = |n| Mac([2, 0, 0, 0, 0, n]);
        let heard = |n| (0..n).for_each(|_| told.recv().unwrap());
        // As many as there is room for: the loop takes them all although it is rung once.
        reports.add((0..WAITING_MAX).map(|_| Sample { from: from(6), dbm: -70 }));
        heard(WAITING_MAX);
        reports.add([Sample { from: from(7), dbm: -71 }]);
        heard(1);
        stop.send(Command::Stop);
    });
    bench.run_until(&mut node, &mut links, remote);
    driver.join().unwrap();
    let told = node.calls.borrow();
    let told: Vec<_> = told.iter().filter(|call| matches!(call, Call::Signal(..))).collect();
    assert_eq!(told.len(), WAITING_MAX + 1);
    assert_eq!(told[WAITING_MAX], &Call::Signal(Mac([2, 0, 0, 0, 0, 7]), -71));
}

/// Who is known of an earlier start comes before anything else, what the bridge tells when it does,
/// and at the end all are written down for the next start.
#[test]
fn clients_are_told_and_noted() {
    let directory = tempfile::tempdir().unwrap();
    let file = ClientFile::beside(&directory.path().join("boots"));
    let nth = |n| Remembered {
        client: Client { vlan: 0, mac: Mac([2, 0, 0, 0, 0, n]) },
        silent_for: Duration::from_secs(n.into()),
    };
    let mut node = Script::new(|_, _| {});
    node.clients = vec![nth(1), nth(2)];
    let mut bench = Bench::new();
    put(&mut bench.air, &[0; 60]);
    let mut links = ScriptedLinks::new([]);
    links.clients = VecDeque::from([vec![nth(2)]]);
    bench.remembered = vec![nth(1)];
    bench.client_file = Some(file.clone());
    let stop = Remote::new();
    stop.send(Command::Stop);
    assert_eq!(bench.run_until(&mut node, &mut links, stop), Exit::Clean);
    let told = [Call::Clients(vec![nth(1)]), Call::Clients(vec![nth(2)])];
    assert_eq!(node.calls.borrow()[..2], told);
    let noted: Vec<_> = file.read().unwrap().iter().map(|known| known.client).collect();
    assert_eq!(noted, [nth(1).client, nth(2).client]);
}
