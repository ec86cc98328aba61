//! The fuzz targets on the stable toolchain: the vectors of the wire format, changed at random from
//! a seed that is printed. `FUZZ_RUNS` and `FUZZ_SEED` for more, and for others.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use std::panic::catch_unwind;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

#[path = "../../node_lib/tests/vectors/read.rs"]
mod read;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |value| value.parse().unwrap())
}

/// Runs a target on inputs made from the vectors; the first that fails is shown as it is.
fn run(target: fn(&[u8]), make: impl Fn(&mut Pcg64Mcg, &[Vec<u8>]) -> Vec<u8>) {
    let (runs, seed) = (number("FUZZ_RUNS", 20_000), number("FUZZ_SEED", 1));
    let vectors: Vec<Vec<u8>> = read::all().into_iter().map(|vector| vector.frame).collect();
    assert!(vectors.len() > 20, "the vectors are there");
    let mut dice = Pcg64Mcg::seed_from_u64(seed);
    for run in 0..runs {
        let input = make(&mut dice, &vectors);
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(catch_unwind(|| target(&input)).is_ok(), "run {run} of seed {seed}: {hex}");
    }
}

fn below(dice: &mut Pcg64Mcg, limit: usize) -> usize {
    usize::try_from(dice.next_u64() % u64::try_from(limit.max(1)).unwrap()).unwrap()
}

/// One vector with up to four bytes changed, cut, or grown by the end of another.
fn changed(dice: &mut Pcg64Mcg, vectors: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = vectors[below(dice, vectors.len())].clone();
    for _ in 0..below(dice, 5) {
        let at = below(dice, frame.len());
        if let Some(byte) = frame.get_mut(at) {
            *byte = match below(dice, 3) {
                0 => *byte ^ (1 << below(dice, 8)),
                1 => [0, 1, 0x7f, 0x80, 0xff][below(dice, 5)],
                _ => dice.next_u64().to_le_bytes()[0],
            };
        }
    }
    match below(dice, 6) {
        0 => frame.truncate(below(dice, frame.len() + 1)),
        1 => {
            let other = &vectors[below(dice, vectors.len())];
            frame.extend_from_slice(&other[below(dice, other.len())..]);
        }
        _ => {}
    }
    frame
}

#[test]
fn any_frame_is_refused_or_read_and_said_again() {
    run(fuzz::messages, changed);
}

#[test]
fn nodes_take_any_frames_in_any_order() {
    run(fuzz::nodes, |dice, vectors| {
        let mut script = Vec::new();
        for _ in 0..below(dice, 8) {
            let frame = changed(dice, vectors);
            let len = frame.len().min(255);
            let [what, after, ..] = dice.next_u64().to_le_bytes();
            script.extend([what, after, u8::try_from(len).unwrap()]);
            script.extend(&frame[..len]);
        }
        script
    });
}
