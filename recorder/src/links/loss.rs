//! The loss of one direction of a link, from what was heard and what was not.

use std::collections::BTreeMap;

use super::Micros;

/// A row of misses less likely than this is a time without a link.
const CHANCE: f64 = 0.001;

/// Frames before and after a row of misses, from which it is judged.
const AROUND: usize = 20;

/// A direction of a link from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) at: Micros,
    pub(super) loss: f64,
}

/// The loss of a direction from when on, of what was heard and what was not.
pub(super) fn steps(samples: &[(Micros, bool)], slot: Micros) -> Vec<Step> {
    let outages = outages(samples);
    let is_out = |index: usize| outages.iter().any(|(from, to)| (*from..*to).contains(&index));
    let mut slots: BTreeMap<Micros, (u32, u32)> = BTreeMap::new();
    for (index, (at, is_heard)) in samples.iter().enumerate() {
        if !is_out(index) {
            let (all, missed) = slots.entry(at.div_euclid(slot)).or_default();
            *all += 1;
            *missed += u32::from(!is_heard);
        }
    }
    let loss_in = |at: Micros| {
        let number = at.div_euclid(slot);
        let here = slots.range(..=number).next_back().or_else(|| slots.range(number..).next());
        here.map_or(1.0, |(_, (all, missed))| f64::from(*missed) / f64::from(*all))
    };
    let half_way = |index: usize| -> Option<Micros> {
        let (before, _) = samples.get(index.checked_sub(1)?)?;
        let (after, _) = samples.get(index)?;
        Some(before.midpoint(*after))
    };
    let first = samples.first().map_or(0, |(at, _)| *at);
    let mut steps: Vec<Step> = Vec::new();
    for number in slots.keys() {
        let at = (number * slot).max(first);
        steps.push(Step { at, loss: loss_in(at) });
    }
    for (from, to) in outages {
        let begins = half_way(from).unwrap_or(first);
        // What began in it holds after it.
        steps.retain(|step| step.at < begins || half_way(to).is_some_and(|ends| step.at >= ends));
        steps.push(Step { at: begins, loss: 1.0 });
        if let Some(ends) = half_way(to) {
            let (next, _) = samples.get(to).copied().unwrap_or((ends, true));
            steps.push(Step { at: ends, loss: loss_in(next) });
        }
    }
    steps.sort_by_key(|step| step.at);
    steps
}

/// Rows of misses that chance does not explain, as ranges of samples.
fn outages(samples: &[(Micros, bool)]) -> Vec<(usize, usize)> {
    let mut rows = Vec::new();
    let mut from = 0;
    while from < samples.len() {
        if samples.get(from).is_some_and(|(_, is_heard)| *is_heard) {
            from += 1;
            continue;
        }
        let rest = samples.get(from..).unwrap_or_default();
        let to = from + rest.iter().take_while(|(_, is_heard)| !is_heard).count();
        let before = samples.get(from.saturating_sub(AROUND)..from).unwrap_or_default();
        let after = samples.get(to..(to + AROUND).min(samples.len())).unwrap_or_default();
        let around = before.iter().chain(after);
        let (all, missed) = around
            .fold((0, 0), |(all, missed), (_, is_heard)| (all + 1, missed + u32::from(!is_heard)));
        // As if half a frame more had been missed: nothing is never lost.
        let loss = (f64::from(missed) + 0.5) / f64::from(all + 1);
        let row = i32::try_from(to - from).unwrap_or(i32::MAX);
        if row >= 2 && loss.powi(row) < CHANCE {
            rows.push((from, to));
        }
        from = to;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Micros = 500_000;

    /// A frame every 100 ms, as a row of heard (`x`) and missed (`.`).
    fn samples(text: &str) -> Vec<(Micros, bool)> {
        (0..).zip(text.bytes()).map(|(n, byte)| (n * 100_000, byte == b'x')).collect()
    }

    fn losses(text: &str) -> Vec<(Micros, f64)> {
        let mut losses: Vec<(Micros, f64)> = Vec::new();
        for Step { at, loss } in steps(&samples(text), SLOT) {
            if losses.last().is_none_or(|(_, last)| *last != loss) {
                losses.push((at / 1000, loss));
            }
        }
        losses
    }

    #[test]
    fn a_row_of_misses_on_a_good_link_is_an_outage_with_its_own_edges() {
        let all = losses("xxxxxxxxxxxx......xxxxxxxxxxxx");
        assert_eq!(all, [(0, 0.0), (1150, 1.0), (1750, 0.0)]);
    }

    #[test]
    fn misses_by_chance_are_a_share_of_their_slot() {
        assert_eq!(losses("xxxxxx.xxx"), [(0, 0.0), (500, 0.2)]);
        // Every other frame is lost: four in a row are nothing special.
        assert_eq!(
            losses("x.x.xx....x.x.xx.x.x").iter().filter(|(_, loss)| *loss == 1.0).count(),
            0
        );
    }

    #[test]
    fn a_link_that_comes_late_or_ends_early_is_none_before_and_after() {
        assert_eq!(losses("......xxxxxxxxxxxx"), [(0, 1.0), (550, 0.0)]);
        assert_eq!(losses("xxxxxxxxxxxx......"), [(0, 0.0), (1150, 1.0)]);
    }

    #[test]
    fn all_that_was_missed_is_missed_again() {
        // However it is cut up, the mean is what was recorded.
        let text = "xx.xx...x.xxxx.xxxxxxxxxxxxx........xxxxxxxx.xxx.xxx.xx";
        let steps = steps(&samples(text), SLOT);
        let mut expected = 0.0;
        for (at, _) in samples(text) {
            let holds = steps.iter().rev().find(|step| step.at <= at).unwrap();
            expected += holds.loss;
        }
        let missed = text.bytes().filter(|byte| *byte == b'.').count() as f64;
        assert!((expected - missed).abs() < 2.0, "{expected} of {missed}");
    }
}
