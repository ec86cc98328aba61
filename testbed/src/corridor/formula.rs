//! A link trace from a formula: what is to be known of a corridor without a radio model.

use std::time::Duration;

use crate::medium::{LinkStep, LinkTrace};

/// Between two road-side units, in metres.
pub const SPACING_M: f64 = 300.0;
/// Time between two steps.
const STEP: Duration = Duration::from_millis(100);
/// Half of the frames are lost at this distance, in metres: neighbouring cells overlap by 100 m.
const HALF_LOST_AT_M: f64 = 200.0;
/// How gently loss grows with distance: from 12 % to 88 % over four times this, in metres.
const SOFTNESS_M: f64 = 20.0;
/// Where nobody hears the other, losses are whole.
const OUT_OF_RANGE: f64 = 0.995;
/// Time under way: a short frame at 6 Mbit/s.
const DELAY: Duration = Duration::from_micros(500);

/// The links of `obu1`, which drives at this speed past `rsu1`, `rsu2`, …, in a straight line from
/// the first metre to the last. `rsu1` stands at 0.
pub fn straight_line(rsus: usize, speed_kmh: f64, from_m: f64, to_m: f64) -> LinkTrace {
    let metres_per_step = speed_kmh / 3.6 * STEP.as_secs_f64();
    let mut steps = Vec::new();
    let mut last = vec![1.0; rsus];
    let mut position_m = from_m;
    for step in 0.. {
        if position_m > to_m {
            break;
        }
        for (n, last) in last.iter_mut().enumerate() {
            let loss = loss_at((position_m - SPACING_M * n as f64).abs());
            if loss == *last {
                continue;
            }
            *last = loss;
            let (rsu, obu) = (format!("rsu{}", n + 1), "obu1".to_owned());
            for (from, to) in [(rsu.clone(), obu.clone()), (obu, rsu)] {
                steps.push(LinkStep { time: STEP * step, from, to, loss, delay: DELAY });
            }
        }
        position_m += metres_per_step;
    }
    LinkTrace::new(steps)
}

fn loss_at(distance_m: f64) -> f64 {
    let loss = 1.0 / (1.0 + ((HALF_LOST_AT_M - distance_m) / SOFTNESS_M).exp());
    if loss > OUT_OF_RANGE { 1.0 } else { loss }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_overlap_and_end() {
        assert!(loss_at(0.0) < 0.001 && loss_at(150.0) < 0.1);
        assert!((0.49..0.51).contains(&loss_at(200.0)));
        assert_eq!(loss_at(310.0), 1.0);
    }

    #[test]
    fn a_trace_has_both_directions_of_every_road_side_unit_in_range() {
        let trace = straight_line(3, 90.0, 0.0, 600.0);
        assert_eq!(trace.radios(), ["obu1", "rsu1", "rsu2", "rsu3"]);
        assert_eq!(trace.end(), Duration::from_secs(24));
        let out_of_range = trace.steps().iter().filter(|step| step.loss == 1.0);
        // The vehicle leaves rsu1 and, at last, is beside rsu3; it never leaves that.
        assert_eq!(
            out_of_range.map(|step| step.from.as_str()).collect::<Vec<_>>(),
            ["rsu1", "obu1", "rsu2", "obu1"]
        );
    }
}
