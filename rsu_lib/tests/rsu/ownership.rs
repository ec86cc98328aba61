//! Who owns a client: of what one OBU says the last word counts, in whatever order its words
//! arrive, late and doubled ones; of two OBUs that announce one client the one that has done so for
//! longest, whatever their epochs are.

use std::collections::BTreeMap;

use node_lib::messages::control::announcement::Client;
use node_lib::{Mac, Order};
use proptest::prelude::*;

use crate::talk::{A, B, Said, Talk, id};

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
}

/// The life of one OBU as the RSU could hear it, and which clients are behind it at each step. It
/// has been attached so many times before.
fn life(obu: Mac, before: u32) -> impl Strategy<Value = Vec<Said>> {
    let next = prop_oneof![
        3 => Just(Next::Attach),
        2 => Just(Next::StandBy),
        2 => Just(Next::Repeat),
        1 => Just(Next::Leave),
    ];
    prop::collection::vec((next, 0u8..1 << CLIENTS), 1..6).prop_map(move |steps| {
        let (mut order, mut epoch, mut standby) = (Order::new(1, 0), before, true);
        let mut said = Vec::new();
        for (next, set) in steps {
            let mut goodbye = false;
            match next {
                Next::Attach => (epoch, standby) = (epoch + 1, false),
                Next::StandBy => (epoch, standby) = (epoch + 1, true),
                Next::Repeat => {}
                Next::Leave => goodbye = true,
            }
            order = order.next();
            let clients = (0..CLIENTS).filter(|n| set >> n & 1 == 1).map(client).collect();
            said.push(Said { obu, order, epoch, standby, clients, goodbye });
        }
        said
    })
}

/// One life, in any order, some of it twice.
fn arrivals() -> impl Strategy<Value = Vec<Said>> {
    (life(A, 0), prop::collection::vec(any::<prop::sample::Index>(), 0..4))
        .prop_map(|(all, twice)| {
            let again: Vec<_> = twice.iter().map(|index| index.get(&all).clone()).collect();
            [all, again].concat()
        })
        .prop_shuffle()
}

/// Two lives, each in its order, one beside the other.
fn lives(a: u32, b: u32) -> impl Strategy<Value = Vec<Said>> {
    (life(A, a), life(B, b), any::<u16>()).prop_map(|(a, b, turns)| {
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        let mut all = Vec::new();
        for turn in (0..16).cycle() {
            let next = if turns >> turn & 1 == 0 { a.next() } else { b.next() };
            match next {
                Some(said) => all.push(said),
                None => break,
            }
        }
        all.extend(a);
        all.extend(b);
        all
    })
}

/// The rule itself, for words in the order in which they were said: of those who are here and name
/// a client, the one that has named it for longest without a break has it.
fn owners(said: &[Said]) -> BTreeMap<Client, Mac> {
    let mut naming = BTreeMap::<Client, Vec<Mac>>::new();
    let mut is_here = BTreeMap::new();
    for said in said {
        is_here.insert(said.obu, !said.standby && !said.goodbye);
        // A goodbye names nobody, and takes nothing back.
        for n in (0..CLIENTS).filter(|_| !said.goodbye) {
            let queue = naming.entry(client(n)).or_default();
            if !said.clients.contains(&client(n)) {
                queue.retain(|obu| *obu != said.obu);
            } else if !queue.contains(&said.obu) {
                queue.push(said.obu);
            }
        }
    }
    let first = |queue: &Vec<Mac>| queue.iter().copied().find(|obu| is_here[obu]);
    naming.iter().filter_map(|(client, queue)| Some((*client, first(queue)?))).collect()
}

fn found(said: &[Said]) -> BTreeMap<Client, Mac> {
    let mut t = Talk::new();
    for said in said {
        t.say(said);
        t.pass(t.now + 1);
    }
    let clients = |obu| t.rsu.clients_of(id(obu)).into_iter().map(move |client| (client, obu));
    [A, B].into_iter().flat_map(clients).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_last_word_of_an_obu_counts_in_every_order(said in arrivals()) {
        let last = said.iter().max_by_key(|said| (said.epoch, said.order.seq)).unwrap();
        prop_assert_eq!(found(&said), owners(std::slice::from_ref(last)));
    }

    #[test]
    fn who_has_announced_a_client_for_longest_has_it_whatever_the_epochs(
        said in prop_oneof![lives(0, 0), lives(200, 3), lives(3, 200)],
    ) {
        prop_assert_eq!(found(&said), owners(&said));
    }
}
