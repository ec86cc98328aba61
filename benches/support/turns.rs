//! Forms timed in turns, so that a busy machine disturbs all of them alike.

use std::hint::black_box;
use std::time::Instant;

/// Criterion measures when cargo says `--bench`, and only tries each once in test mode.
pub(crate) fn is_measuring() -> bool {
    let measures = |arg: String| arg == "--bench";
    let tries = |arg: String| arg == "--test" || arg == "--list";
    std::env::args().any(measures) && !std::env::args().any(tries)
}

/// Nanoseconds per call, of all rounds. The best round is the one the machine disturbed least.
pub(crate) struct Times {
    pub(crate) median: f64,
    pub(crate) best: f64,
}

impl Times {
    fn of(mut rounds: Vec<f64>) -> Self {
        rounds.sort_by(f64::total_cmp);
        let at = |index: usize| rounds.get(index).copied().unwrap_or(f64::NAN);
        Self { median: at(rounds.len() / 2), best: at(0) }
    }
}

/// The times of each of `N` forms, whose `round` calls each in its turn.
pub(crate) fn in_turns<const N: usize>(
    rounds: usize,
    mut round: impl FnMut() -> [f64; N],
) -> [Times; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..rounds {
        for (all, one) in times.iter_mut().zip(round()) {
            all.push(one);
        }
    }
    times.map(Times::of)
}

/// Nanoseconds per call.
pub(crate) fn time<T>(calls: u32, mut work: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(work());
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}
