//! The corridor as the simulator has it: `examples/scenarios/corridor.toml`, with its radio model.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use simulator::cast::Cast;
use simulator::links;
use simulator::scenario::{Override, Source, Span};

use crate::medium::MediumLinkTrace;

const FILE: &str = "examples/scenarios/corridor.toml";
const TEXT: &str = include_str!("../../../../examples/scenarios/corridor.toml");
/// From the first road-side unit to the last, in metres.
const LENGTH_M: f64 = 1200.0;
/// Time between two looks at who hears whom, in milliseconds.
const STEP_MS: u64 = 100;

/// Who hears whom on the way from one metre to another at this speed.
pub fn links(speed_kmh: f64, from_m: f64, to_m: f64, seed: u64) -> Result<MediumLinkTrace> {
    let at = |metres: f64| {
        let seconds = metres.clamp(0.0, LENGTH_M) / (speed_kmh / 3.6);
        Duration::try_from_secs_f64(seconds).with_context(|| format!("speed {speed_kmh} km/h"))
    };
    let (start, end) = (at(from_m)?, at(to_m)?);
    let set = [
        Override::new("obu.speed_kmh", &speed_kmh.to_string()),
        Override::text("duration", &format!("{}ms", end.as_millis())),
    ];
    let source = Source::from_text(Path::new(FILE), TEXT.to_owned())?;
    let scenario = source.with(&set)?;
    let cast = Cast::of(&source, &scenario, seed)?;
    let mut table = Vec::new();
    links::write(&scenario, &cast, seed, Span::from_millis(STEP_MS), &mut table)?;
    Ok(MediumLinkTrace::read(&table[..])?.between(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vehicle_passes_one_road_side_unit_after_the_other() {
        let trace = links(90.0, 150.0, 450.0, 1).unwrap();
        assert_eq!(trace.end(), Duration::from_secs(12));
        assert_eq!(trace.radios(), ["car", "rsu1", "rsu2", "rsu3", "rsu4", "rsu5"]);
        let losses = |rsu: &str| {
            let steps = trace.steps().iter().filter(|step| step.from == "car" && step.to == rsu);
            steps.map(|step| step.loss).collect::<Vec<_>>()
        };
        // Beside rsu2 in the middle, as far from rsu1 at first as from rsu3 at last.
        let (first, second) = (losses("rsu1"), losses("rsu2"));
        // At 450 m the mean is −91.0 dBm, 1.1 dB above what half of the frames survive: with m =
        // 0.32 the gamma distribution has 0.68 below that. At 150 m it is −71.9 dBm, and m = 0.45:
        // 0.10.
        let ends = [first[0], *first.last().unwrap()];
        assert!(first.is_sorted(), "{first:?}");
        assert!((ends[0] - 0.10).abs() < 0.02 && (ends[1] - 0.68).abs() < 0.02, "{ends:?}");
        assert!(second.len() > 100 && second[second.len() / 2] < 0.01, "{second:?}");
    }
}
