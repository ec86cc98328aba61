//! What a vehicle makes of damaged frames, a thousand a second: real ones of its own town with a
//! few bytes changed, half of them under their true sender's address.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::Mac;
use node_lib::control::event::Event;
use sim::topology::Graph;
use sim::{Dice, Fault, Link, NodeIndex, Role};

use super::script::{Script, forger};
use crate::common::{Town, Wrong, at, broken, ms, radio, run_all, scribble, seeds, wrong};

/// R – A – X – Y, and the forger is heard by X, two hops away.
const A: NodeIndex = NodeIndex(1);
const X: NodeIndex = NodeIndex(2);
const Y: NodeIndex = NodeIndex(3);
const FORGER: usize = 4;

const FRAMES: u32 = 10_000;

/// What is on the air of such a town, in which something happens, by kind.
fn overheard(seed: u64) -> BTreeMap<u8, Vec<Vec<u8>>> {
    let mut town = Town::in_world(
        Town::world_of_first_starts(seed),
        &Graph::chain(4),
        &[0],
        Link::lossy(0.05),
    );
    town.world.keep_air();
    for node in [A, X, Y] {
        town.up(node, at(500), ms(20), 100);
        town.down(node, at(500), ms(20), 100);
    }
    town.world.at(at(1500), Fault::Restart(A, ms(300)));
    town.world.at(at(2500), Fault::Shutdown(Y));
    town.world.run_until(at(3000)).unwrap();
    let mut kinds = BTreeMap::<u8, Vec<Vec<u8>>>::new();
    // Data that is sent again is delivered again in time: without keys nobody can tell, and no
    // route changes.
    let is_data = |code: u8| matches!(code, 8..=10 | 12);
    for sent in town.world.air().iter().filter(|sent| !is_data(sent.frame[14] & 0x0f)) {
        kinds.entry(sent.frame[14] & 0x0f).or_default().push(sent.frame.clone());
    }
    kinds
}

/// Changes up to three places, and in half of all frames the sender.
fn damage(frame: &mut [u8], dice: &mut Dice) {
    if dice.chance(0.9) {
        let to = if dice.chance(0.5) { radio(X.0) } else { Mac::BROADCAST };
        frame[..6].copy_from_slice(&to.0);
    }
    scribble(
        frame,
        50,
        dice,
        |byte, random, dice| {
            if dice.chance(0.5) { random } else { byte ^ 1 << (random & 7) }
        },
    );
}

fn script(seed: u64) -> Script {
    let kinds: Vec<Vec<Vec<u8>>> = overheard(seed).into_values().collect();
    let mut dice = Dice::new(seed, 4);
    (0..FRAMES)
        .map(|n| {
            let kind = dice.pick(&kinds).unwrap();
            let mut frame = dice.pick(kind).unwrap().clone();
            damage(&mut frame, &mut dice);
            (at(3000) + ms(u64::from(n)), frame)
        })
        .collect()
}

/// Changes of upstream at all three vehicles together, of 10,000 frames. Measured are 11 to 56,
/// over 60 seeds: each takes a second witness, or a silence, and comes back once. There were 2,525
/// when one frame was enough.
const CHANGES_MAX: usize = 80;

/// After the last damaged frame the way up is there again within so long: a later count of the RSU
/// is doubted when it has been silent for three intervals, and two heartbeats confirm the true one.
/// (In 8 of 1,000 towns, none of those run here, it takes longer, in two a frame comes twice, and
/// in one it goes in a circle. In one the vehicle was with an RSU that does not exist, whose
/// interval was damaged as well: 3 of those were 3.4 s.)
const UP_AFTER: Duration = ms(1500);
/// The way down, where the RSU may have to hear the vehicle's next reply, which comes within 1.25
/// s.
const DOWN_AFTER: Duration = ms(1500);

#[test]
fn damaged_frames_change_few_routes_and_none_for_long() {
    let test = "damaged_frames_change_few_routes_and_none_for_long";
    let found = run_all(test, seeds(8), |seed| -> Result<_, Wrong> {
        let world = Town::world_of_first_starts(seed);
        let mut town = Town::in_world(world, &Graph::chain(4), &[0], Link::CLEAN);
        let bad =
            town.world.add_node(Role::Obu, radio(FORGER), forger(radio(FORGER), script(seed)));
        town.world.let_forge(bad);
        town.world.link_one_way(bad, X, Link::CLEAN);
        let last = at(3000) + ms(u64::from(FRAMES));
        let (count, after) = (1150, 200);
        let end = last + DOWN_AFTER + ms(10) * after + ms(500);
        let flows = [A, X, Y].map(|n| {
            (n, town.up(n, at(2000), ms(10), count), town.down(n, at(2000), ms(10), count))
        });
        let later = [A, X, Y].map(|n| {
            let up = town.up(n, last + UP_AFTER, ms(10), after);
            (n, up, town.down(n, last + DOWN_AFTER, ms(10), after))
        });
        town.world.run_until(end).map_err(broken)?;
        let mut changes = BTreeMap::<(NodeIndex, &str), usize>::new();
        for (time, node, event) in town.world.events() {
            if let Event::UpstreamChanged { cause, .. } = event
                && *time >= at(3000)
            {
                *changes.entry((*node, cause.as_str())).or_default() += 1;
            }
        }
        let lost = flows.map(|(n, up, down)| {
            2 * count as usize - town.arrived_up(up) - town.arrived_down(down, n)
        });
        for (n, up, down) in later {
            let arrived = (town.arrived_up(up), town.arrived_down(down, n));
            if arrived != (after as usize, after as usize) {
                let what = format!("{n:?}, long after it: {arrived:?} of {after} up and down");
                return Err(wrong(&town, what));
            }
        }
        let changes_in_all = changes.values().sum::<usize>();
        if changes_in_all > CHANGES_MAX {
            return Err(wrong(&town, format!("{changes_in_all} changes of upstream: {changes:?}")));
        }
        println!("seed {seed}: {changes:?}, lost {lost:?} of {}", 2 * count);
        Ok(changes_in_all)
    });
    println!("changes of upstream: {found:?}");
}
