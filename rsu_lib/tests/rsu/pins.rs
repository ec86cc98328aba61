//! Clients that an operator has put behind a vehicle: whatever is heard, frames for them go there,
//! as long as the vehicle is here.

use node_lib::control::node::Node;
use node_lib::control::pin::Pin;
use node_lib::control::snapshot::{self, ClientPort, Pinned};
use node_lib::messages::control::announcement::Client;
use node_lib::messages::data::Destination;
use node_lib::{Mac, NodeId};

use crate::talk::{A, B, CAMERA, RELAY, SERVER, SIGN, Talk, US, id};

const ELSEWHERE: NodeId = NodeId([2, 0, 0, 0, 0, 0x77]);

fn pin(t: &mut Talk, client: Mac, obu: NodeId) -> usize {
    let pin = Pin::Put { client: Client { vlan: 0, mac: client }, obu };
    let pinned = t.rsu.pin_clients(t.at(), pin, &mut t.out).unwrap();
    t.collect();
    pinned
}

fn unpin(t: &mut Talk, client: Mac) -> usize {
    let pinned = t.rsu.pin_clients(t.at(), Pin::Take(Some(client)), &mut t.out).unwrap();
    t.collect();
    pinned
}

/// To whom, and for which OBU, a frame from the LAN for this client goes.
fn goes_to(t: &mut Talk, client: Mac) -> Vec<(Mac, NodeId)> {
    t.clear();
    t.tap(SERVER, client);
    let one = |(to, destination): (_, Destination<'_>)| match destination {
        Destination::Node { id, .. } => (to, id),
        Destination::All { .. } => (to, NodeId::NONE),
    };
    t.sent_down().into_iter().map(one).collect()
}

/// A reverse ARP of this client went to the LAN.
fn tells_the_lan_of(t: &Talk, client: Mac) -> bool {
    t.taps.iter().any(|frame| frame[6..14] == [&client.0[..], &[0x80, 0x35]].concat())
}

fn shown(t: &Talk, client: Mac) -> snapshot::KnownClient {
    let clients = t.rsu.snapshot(t.at()).clients;
    clients.into_iter().find(|known| known.mac == client).unwrap()
}

#[test]
fn a_client_nobody_ever_heard_is_reached_where_it_is_pinned_and_the_lan_is_told() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.announce(B, B, 1, &[]);
    t.clear();
    assert_eq!(pin(&mut t, CAMERA, id(A)), 1);
    t.pass(t.now + 100);
    assert!(tells_the_lan_of(&t, CAMERA));
    assert_eq!(goes_to(&mut t, CAMERA), [(A, id(A))]);
    assert_eq!(pin(&mut t, CAMERA, id(A)), 0, "it is there already");
    let known = shown(&t, CAMERA);
    assert_eq!((known.port, known.obu, known.heard_ms), (ClientPort::Obu, Some(id(A)), None));
    assert_eq!(known.pinned, Some(Pinned { obu: id(A), is_in_effect: true }));
}

#[test]
fn nothing_that_is_heard_or_announced_moves_a_pinned_client_and_all_of_it_is_counted() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.announce(B, B, 1, &[]);
    pin(&mut t, CAMERA, id(A));
    let held = |t: &Talk| t.rsu.counters().pins_held;
    // In its name from another vehicle, from the LAN, and by a word.
    t.up(B, CAMERA, SERVER);
    assert_eq!(held(&t), 1);
    t.tap(CAMERA, SERVER);
    assert_eq!(held(&t), 2);
    t.announce(B, B, 2, &[CAMERA]);
    assert_eq!(held(&t), 3);
    assert_eq!(goes_to(&mut t, CAMERA), [(A, id(A))]);
    // And from where it is.
    t.up(A, CAMERA, SERVER);
    assert_eq!(held(&t), 3);
    // Other clients are as they were.
    t.up(B, SIGN, SERVER);
    assert_eq!(goes_to(&mut t, SIGN), [(B, id(B))]);
    assert_eq!((held(&t), shown(&t, SIGN).pinned), (3, None));
}

#[test]
fn what_is_sent_in_its_name_is_carried_all_the_same() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[CAMERA]);
    t.announce(B, B, 1, &[]);
    t.tap(SERVER, SERVER);
    pin(&mut t, CAMERA, id(A));
    t.clear();
    t.up(B, CAMERA, SERVER);
    assert_eq!(t.taps.len(), 1, "as a switch forwards what comes to the wrong port");
}

#[test]
fn a_pinned_client_is_found_by_whatever_way_its_vehicle_is() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    pin(&mut t, CAMERA, id(A));
    t.relay(RELAY, US);
    t.announce(A, RELAY, 2, &[]);
    assert_eq!(goes_to(&mut t, CAMERA), [(RELAY, id(A))]);
}

#[test]
fn while_its_vehicle_is_elsewhere_a_pinned_client_is_where_it_is_heard() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.announce(B, B, 1, &[]);
    pin(&mut t, CAMERA, id(A));
    // It has gone to another RSU on the LAN, from which its client is heard.
    t.reply(A, 1, &[], true);
    t.pass(t.now + 2000);
    t.announce(B, B, 1, &[]);
    t.tap(CAMERA, SERVER);
    assert_eq!(t.rsu.counters().pins_held, 0);
    t.clear();
    t.up(B, SERVER, CAMERA);
    assert_eq!((t.taps.len(), t.sent_down()), (1, vec![]), "it goes to the LAN, and not down");
    let known = shown(&t, CAMERA);
    assert_eq!((known.port, known.obu), (ClientPort::Tap, None));
    assert_eq!(known.pinned, Some(Pinned { obu: id(A), is_in_effect: false }));
    // It comes back, and has the client at once; the LAN is told.
    t.clear();
    t.announce(A, A, 2, &[]);
    t.pass(t.now + 100);
    assert!(tells_the_lan_of(&t, CAMERA));
    assert_eq!(goes_to(&mut t, CAMERA), [(A, id(A))]);
}

#[test]
fn a_pin_may_wait_for_its_vehicle() {
    let mut t = Talk::new();
    t.announce(B, B, 1, &[]);
    assert_eq!(pin(&mut t, CAMERA, ELSEWHERE), 1);
    t.up(B, CAMERA, SERVER);
    assert_eq!(goes_to(&mut t, CAMERA), [(B, id(B))]);
    assert_eq!(t.rsu.counters().pins_held, 0);
}

#[test]
fn who_is_unpinned_is_where_it_is_heard_next() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.announce(B, B, 1, &[]);
    pin(&mut t, CAMERA, id(A));
    assert_eq!((unpin(&mut t, SIGN), unpin(&mut t, CAMERA)), (0, 1));
    t.up(B, CAMERA, SERVER);
    assert_eq!(goes_to(&mut t, CAMERA), [(B, id(B))]);
    assert_eq!(t.rsu.counters().pins_held, 0);
}

#[test]
fn to_forget_clients_takes_no_pin_off() {
    let mut t = Talk::new();
    t.announce(A, A, 1, &[]);
    t.announce(B, B, 1, &[]);
    pin(&mut t, CAMERA, id(A));
    t.up(A, CAMERA, SERVER);
    t.rsu.forget_clients(t.at(), None, &mut t.out);
    assert_eq!(goes_to(&mut t, CAMERA), [(A, id(A))]);
    // Nor does age.
    t.pass(t.now + 1000);
    for second in 2..=400 {
        t.pass(second * 1000);
        t.reply(A, 1, &[], false);
    }
    assert_eq!(goes_to(&mut t, CAMERA), [(A, id(A))]);
}
