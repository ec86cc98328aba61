//! How much weaker a signal is after some metres: [`PathLoss`].

/// Mean loss by distance, before shadowing and fading.
///
/// All models agree with free space at one metre, [`REFERENCE_DB`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// Heard by everyone within the range and by nobody beyond. Inside it strength falls as in free
    /// space, which decides nothing but what is reported and who is captured.
    Disk {
        /// Metres.
        range_m: f64,
        /// Probability that a receiver in range misses a frame, 0 to 1.
        loss: f64,
    },
    /// One exponent for all distances.
    LogDistance {
        /// 2 is free space and the default of Veins (`PhyLayer80211p`, `SimplePathlossModel`).
        exponent: f64,
    },
    /// One exponent up to a break and another beyond: along a road the ray off the ground cancels
    /// the direct one.
    DualSlope {
        /// Metres to the break.
        break_m: f64,
        /// Up to it.
        near_exponent: f64,
        /// Beyond it.
        far_exponent: f64,
    },
}

/// Free-space loss over one metre at 5.9 GHz, 20·log₁₀(4π·1 m / 50.81 mm).
pub const REFERENCE_DB: f64 = 47.86;

impl PathLoss {
    /// Break at 100 m, exponents 2 and 4: Cheng et al., "Mobile vehicle-to-vehicle narrow-band
    /// channel measurement and characterization of the 5.9 GHz DSRC frequency band", IEEE JSAC
    /// 25(8), 2007, rounded as in Artery (`VanetNakagamiFading.ned`).
    pub const DUAL_SLOPE: Self =
        Self::DualSlope { break_m: 100.0, near_exponent: 2.0, far_exponent: 4.0 };

    /// Decibels lost over this distance; infinite beyond the range of a disk. Below one metre as at
    /// one metre.
    pub fn loss_db(self, distance_m: f64) -> f64 {
        let decades = |metres: f64| libm::log10(metres.max(1.0));
        match self {
            Self::Disk { range_m, .. } if distance_m > range_m => f64::INFINITY,
            Self::Disk { .. } => REFERENCE_DB + 20.0 * decades(distance_m),
            Self::LogDistance { exponent } => REFERENCE_DB + 10.0 * exponent * decades(distance_m),
            Self::DualSlope { break_m, near_exponent, far_exponent } => {
                let near = near_exponent * decades(distance_m.min(break_m));
                let far = far_exponent * decades(distance_m / break_m);
                REFERENCE_DB + 10.0 * (near + far)
            }
        }
    }

    /// The distance at which so much is lost, in metres.
    pub fn distance_m(self, loss_db: f64) -> f64 {
        let decades = (loss_db - REFERENCE_DB).max(0.0) / 10.0;
        match self {
            Self::Disk { range_m, .. } => range_m,
            Self::LogDistance { exponent } => libm::pow(10.0, decades / exponent),
            Self::DualSlope { break_m, near_exponent, far_exponent } => {
                let at_break = near_exponent * libm::log10(break_m.max(1.0));
                if decades <= at_break {
                    libm::pow(10.0, decades / near_exponent)
                } else {
                    break_m * libm::pow(10.0, (decades - at_break) / far_exponent)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.01
    }

    #[test]
    fn loses_what_the_formulas_say() {
        let free = PathLoss::LogDistance { exponent: 2.0 };
        assert!(is_near(free.loss_db(100.0), 87.86));
        assert!(is_near(free.loss_db(0.1), 47.86));
        let dual = PathLoss::DUAL_SLOPE;
        assert!(is_near(dual.loss_db(50.0), 47.86 + 33.98));
        // 40 dB for the first 100 m, 40·log₁₀ 3 for the next 200.
        assert!(is_near(dual.loss_db(300.0), 87.86 + 19.08));
        let disk = PathLoss::Disk { range_m: 300.0, loss: 0.0 };
        assert!(is_near(disk.loss_db(300.0), 97.40));
        assert_eq!(disk.loss_db(300.1), f64::INFINITY);
    }

    #[test]
    fn distance_undoes_loss() {
        for model in [PathLoss::DUAL_SLOPE, PathLoss::LogDistance { exponent: 2.7 }] {
            for distance in [1.0, 30.0, 99.0, 101.0, 700.0] {
                assert!(is_near(model.distance_m(model.loss_db(distance)), distance));
            }
        }
    }
}
