//! Ten per cent random loss: routes stay, and as much arrives as the links let through.
//!
//! `V2X_SIM_RUNS` for more seeds than the 300 of every run.

use std::collections::BTreeMap;

use sim::topology::Graph;
use sim::{Link, NodeIndex};

use crate::common::{Town, Wrong, at, broken, ms, run_all, seeds, wrong};

const LOSS: f64 = 0.1;
const MINUTES: u64 = 10;

const A: NodeIndex = NodeIndex(1);
const X: NodeIndex = NodeIndex(2);

/// Of frames sent once a fifth is lost, of frames tried eight times one in 400,000; a way may still
/// be lost for a moment, because heartbeats are sent once.
#[test]
fn radios_that_try_again_lose_hardly_any_unicast_frame() {
    let test = "radios_that_try_again_lose_hardly_any_unicast_frame";
    run_all(test, seeds(20), |seed| {
        let arrived = |retries| {
            let mut town = Town::new(seed, &Graph::chain(2), &[0], Link::lossy(0.2));
            town.world.try_again(retries);
            let up = town.up(NodeIndex(1), at(1000), ms(5), 1000);
            town.world.run_until(at(7000)).map_err(broken)?;
            Ok::<_, Wrong>(town.arrived_up(up))
        };
        let (once, often) = (arrived(0)?, arrived(7)?);
        if once > 850 || often < 990 {
            let town = Town::new(seed, &Graph::chain(2), &[0], Link::CLEAN);
            return Err(wrong(&town, format!("{once} and {often} of 1000 arrived")));
        }
        Ok(())
    });
}

#[test]
fn ten_minutes_at_ten_per_cent_loss_are_calm() {
    let done = run_all("ten_minutes_at_ten_per_cent_loss_are_calm", seeds(300), |seed| {
        // X has two ways of equal length.
        let mut town = Town::new(seed, &Graph::ring(4), &[0], Link::lossy(LOSS));
        let frames = u32::try_from(MINUTES * 60 * 10).unwrap();
        let calm = at(5000);
        let far = town.up(X, calm, ms(100), frames);
        let far_down = town.down(X, calm + ms(30), ms(100), frames);
        let near = town.up(A, calm + ms(50), ms(100), frames);
        town.world.run_until(calm).map_err(broken)?;
        town.world.run_for(ms(MINUTES * 60 * 1000 + 100)).map_err(broken)?;
        let share = |arrived: usize| arrived as f64 / f64::from(frames);
        let shares = [
            share(town.arrived_up(near)),
            share(town.arrived_up(far)),
            share(town.arrived_down(far_down, X)),
        ];
        let changes = town.changes(calm);
        let of_x = changes.iter().filter(|(_, node, _)| *node == X).count();
        let mut causes = BTreeMap::new();
        for (_, node, cause) in changes {
            *causes.entry((node, cause.as_str())).or_insert(0) += 1;
        }
        Ok((shares, of_x, causes, town.world.repeats()))
    });
    let runs = done.len();
    let mean = |n: usize| done.iter().map(|(shares, ..)| shares[n]).sum::<f64>() / runs as f64;
    let minutes = runs as u64 * MINUTES;
    let of_x: usize = done.iter().map(|(_, of_x, ..)| of_x).sum();
    let mut causes = BTreeMap::new();
    for (_, _, more, _) in &done {
        for (key, count) in more {
            *causes.entry(*key).or_insert(0) += count;
        }
    }
    println!("{runs} seeds of {MINUTES} min at {} % loss per hop", LOSS * 100.0);
    println!(
        "arrived: {:.2} % over one hop, {:.2} % over two, {:.2} % over two downward",
        mean(0) * 100.0,
        mean(1) * 100.0,
        mean(2) * 100.0
    );
    println!("changes of X, with two equal ways: {of_x} in {minutes} node-minutes");
    println!("changes by node and cause, {minutes} minutes each: {causes:?}");
    println!("repeats: {}", done.iter().map(|(.., repeats)| repeats).sum::<u64>());
    assert!(mean(0) >= 1.0 - LOSS - 0.02);
    assert!(mean(1) >= (1.0 - LOSS).powi(2) - 0.02);
    assert!(mean(2) >= (1.0 - LOSS).powi(2) - 0.02);
    assert!(of_x as u64 * 50 <= minutes, "{of_x} changes of X in {minutes} node-minutes");
    let all: usize = causes.values().sum();
    assert!(all as u64 * 50 <= minutes * 3, "{all} changes in {} node-minutes", minutes * 3);
}
