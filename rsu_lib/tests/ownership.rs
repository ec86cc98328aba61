//! Who owns a client does not depend on the order in which claims arrive: late ones, doubled ones, from
//! before a restart, of two OBUs at once, on standby or not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod talk;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, Order};
use proptest::prelude::*;

use talk::{A, B, Said, Talk, id};

const CLIENTS: u8 = 3;

fn client(n: u8) -> Client {
    Client { vlan: 0, mac: Mac([2, 0, 0, 0, 1, n]) }
}

/// One thing an OBU does next.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Attaches here, or anew.
    Attach,
    /// Attaches elsewhere and waits here.
    StandBy,
    /// Says the same again, or with other clients.
    Repeat,
    /// Says goodbye.
    Leave,
    /// Starts anew: its boot count grows, its epochs begin again.
    Restart,
}

/// The life of one OBU as the RSU could hear it, and which clients are behind it at each step.
fn life(obu: Mac) -> impl Strategy<Value = Vec<Said>> {
    let next = prop_oneof![
        3 => Just(Next::Attach),
        2 => Just(Next::StandBy),
        2 => Just(Next::Repeat),
        1 => Just(Next::Leave),
        1 => Just(Next::Restart),
    ];
    prop::collection::vec((next, 0u8..1 << CLIENTS), 1..6).prop_map(move |steps| {
        let (mut order, mut epoch, mut standby) = (Order::new(1, 0), 0, true);
        let mut said = Vec::new();
        for (next, set) in steps {
            let mut goodbye = false;
            match next {
                Next::Attach => (epoch, standby) = (epoch + 1, false),
                Next::StandBy => (epoch, standby) = (epoch + 1, true),
                Next::Repeat => {}
                Next::Leave => goodbye = true,
                Next::Restart => {
                    (order, epoch, standby) = (Order::new(order.boot.0 + 1, 0), 1, false);
                }
            }
            order = order.next();
            let clients = (0..CLIENTS).filter(|n| set >> n & 1 == 1).map(client).collect();
            said.push(Said { obu, order, epoch, standby, clients, goodbye });
        }
        said
    })
}

/// Both lives, in any order, some of it twice.
fn arrivals() -> impl Strategy<Value = Vec<Said>> {
    (life(A), life(B), prop::collection::vec(any::<prop::sample::Index>(), 0..4))
        .prop_map(|(a, b, twice)| {
            let all = [a, b].concat();
            let again: Vec<_> = twice.iter().map(|index| index.get(&all).clone()).collect();
            [all, again].concat()
        })
        .prop_shuffle()
}

/// The rule itself: the last word of an OBU says where it is and who is behind it; of two that claim
/// one client the higher epoch has it.
fn owners(said: &[Said]) -> BTreeMap<Client, Mac> {
    let word = |said: &&Said| (said.order.boot, said.epoch, said.order.seq);
    let last = [A, B].map(|obu| said.iter().filter(|s| s.obu == obu).max_by_key(word).unwrap());
    let here: Vec<_> = last.iter().filter(|said| !said.standby && !said.goodbye).collect();
    let owner = |client: Client| {
        let claims = here.iter().filter(|said| said.clients.contains(&client));
        claims.min_by_key(|said| (Reverse(said.epoch), said.obu)).map(|said| said.obu)
    };
    (0..CLIENTS).map(client).filter_map(|client| Some((client, owner(client)?))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_highest_epoch_owns_in_every_order(said in arrivals()) {
        let mut t = Talk::new();
        for said in &said {
            t.say(said);
            t.pass(t.now + 1);
        }
        let mut found = BTreeMap::new();
        for obu in [A, B] {
            found.extend(t.rsu.clients_of(id(obu)).into_iter().map(|client| (client, obu)));
        }
        prop_assert_eq!(found, owners(&said));
    }
}
