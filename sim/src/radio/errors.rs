//! Whether a frame survives noise and interference: [`ErrorModel`].

use std::sync::OnceLock;

use crate::radio::airtime::{CodeRate, DataRate, Modulation};
use crate::radio::power;

/// What the ratio of a frame to noise and interference does to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorModel {
    /// A frame of any length is received if the ratio never falls below
    /// [`Budget::sinr_db`](crate::radio::Budget), and lost if it ever does.
    Threshold,
    /// Bit by bit: each stretch of a frame with one ratio has its own rate of errors, header and
    /// payload apart. So long frames are lost more easily than short ones, and a disturbance costs
    /// what it lasts.
    ///
    /// The model of NIST as in ns-3: Pei and Henderson, "Validation of OFDM error rate model in
    /// ns-3", Boeing, 2010. White noise. Errors before decoding are by modulation
    /// ([`DataRate::symbol_errors`]). After soft decoding of the convolutional code of 802.11 (K =
    /// 7, generators 133 and 171) at most p ≤ 1/(2b) · Σ c_d · D^d per bit, D = √(4p(1 − p)), with
    /// b bits of data a step. Of *n* bits all survive with (1 − p)ⁿ.
    #[default]
    Nist,
}

/// A weight spectrum: bits in error, summed over all wrong paths at each distance from the right
/// one.
struct Spectrum {
    /// Bits of data a step of the (punctured) code.
    bits: u32,
    /// The least distance.
    first: u32,
    /// To the next.
    step: u32,
    weights: &'static [f64],
}

/// Frenger, Orten and Ottosson, "Multi-rate convolutional codes", Chalmers, report 21, 1998, tables
/// 3.1.1 and 3.1.2, as far as ns-3 takes them.
impl Spectrum {
    const HALF: Self = Self {
        bits: 1,
        first: 10,
        step: 2,
        weights: &[
            36.0,
            211.0,
            1404.0,
            11_633.0,
            77_433.0,
            502_690.0,
            3_322_763.0,
            21_292_910.0,
            134_365_911.0,
        ],
    };
    const TWO_THIRDS: Self = Self {
        bits: 2,
        first: 6,
        step: 1,
        weights: &[
            3.0,
            70.0,
            285.0,
            1276.0,
            6160.0,
            27_128.0,
            117_019.0,
            498_860.0,
            2_103_891.0,
            8_784_123.0,
        ],
    };
    const THREE_QUARTERS: Self = Self {
        bits: 3,
        first: 5,
        step: 1,
        weights: &[
            42.0,
            201.0,
            1492.0,
            10_469.0,
            62_935.0,
            379_644.0,
            2_253_373.0,
            13_073_811.0,
            75_152_755.0,
            428_005_675.0,
        ],
    };

    const fn of(code: CodeRate) -> &'static Self {
        match code {
            CodeRate::Half => &Self::HALF,
            CodeRate::TwoThirds => &Self::TWO_THIRDS,
            CodeRate::ThreeQuarters => &Self::THREE_QUARTERS,
        }
    }

    /// Probability, at most, that a decoded bit is wrong of which this share was before.
    fn errors(&self, before: f64) -> f64 {
        let d = (4.0 * before * (1.0 - before)).max(0.0).sqrt();
        let raise = |times: u32| (0..times).fold(1.0, |power, _| power * d);
        let step = raise(self.step);
        let sum = self.weights.iter().rev().fold(0.0, |sum, weight| sum * step + weight);
        (sum * raise(self.first) / f64::from(2 * self.bits)).min(1.0)
    }
}

impl DataRate {
    /// Share of bits that are wrong before decoding, at this ratio to noise within the channel
    /// (formulas 2 to 5 of Pei and Henderson; Proakis, "Digital communications", Gray coding).
    pub fn symbol_errors(self, snr: f64) -> f64 {
        let (share, divisor) = match self.modulation() {
            Modulation::Bpsk => (1.0, 1.0),
            Modulation::Qpsk => (1.0, 2.0),
            Modulation::Qam16 => (3.0 / 4.0, 10.0),
            Modulation::Qam64 => (7.0 / 12.0, 42.0),
        };
        share * 0.5 * libm::erfc((snr.max(0.0) / divisor).sqrt())
    }

    /// Share of bits that are wrong after decoding, at most.
    pub fn bit_errors(self, snr: f64) -> f64 {
        Spectrum::of(self.code_rate()).errors(self.symbol_errors(snr))
    }

    /// Probability that so many bits in a row survive at this ratio to noise.
    pub fn success(self, snr: f64, bits: f64) -> f64 {
        libm::exp(bits * self.log_success(snr))
    }

    /// Its logarithm for one bit; finite.
    pub(super) fn log_success(self, snr: f64) -> f64 {
        let Span { hopeless, certain, .. } = *self.span();
        if snr >= certain {
            0.0
        } else if snr <= hopeless {
            NEVER
        } else {
            libm::log1p(-self.bit_errors(snr)).max(NEVER)
        }
    }

    /// Probability that a frame of so many bytes, from MAC header to checksum, is received at this
    /// ratio to noise, its PHY header included.
    pub fn frame_success(self, snr: f64, mac_len: u64) -> f64 {
        let header = Self::LOWEST.log_success(snr) * SIGNAL_BITS;
        let success =
            libm::exp(header + self.log_success(snr) * Self::payload_bits(mac_len) as f64);
        if success < HARDLY_EVER { 0.0 } else { success }
    }

    /// Ratios in dB at which so many tenths of frames of [`REFERENCE_LEN`] are received: 1, 3, 5, 7
    /// and 9.
    pub(super) fn levels_db(self) -> &'static [f64; LEVELS] {
        &self.span().levels_db
    }

    fn span(self) -> &'static Span {
        static SPANS: OnceLock<[Span; DataRate::ALL.len()]> = OnceLock::new();
        let spans = SPANS.get_or_init(|| DataRate::ALL.map(Span::of));
        // In the order of ALL, which is that of the variants.
        spans.get(self as usize).unwrap_or(&spans[0])
    }
}

/// Where a rate fails and where it does not.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Up to this ratio no frame survives.
    hopeless: f64,
    /// From this ratio on every frame does.
    certain: f64,
    levels_db: [f64; LEVELS],
}

impl Span {
    fn of(rate: DataRate) -> Self {
        let where_errors_are = |asked: f64| power(bisect(|db| rate.bit_errors(power(db)) < asked));
        let bits = DataRate::payload_bits(REFERENCE_LEN) as f64;
        let at = |share: f64| {
            bisect(|db| libm::exp(bits * libm::log1p(-rate.bit_errors(power(db)))) > share)
        };
        Self {
            hopeless: where_errors_are(HOPELESS),
            certain: where_errors_are(CERTAIN),
            levels_db: [0.1, 0.3, 0.5, 0.7, 0.9].map(at),
        }
    }
}

/// Where between −10 and 40 dB something begins to hold.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut below, mut above) = (-10.0, 40.0);
    for _ in 0..40 {
        let middle = (below + above) / 2.0;
        if holds(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above
}

/// Levels by which the edge of reception is described.
pub(super) const LEVELS: usize = 5;

/// Bytes from MAC header to checksum of the frame that "received" means where no frame is named:
/// about what 200 bytes of a client come to on the air.
pub const REFERENCE_LEN: u64 = 260;

/// Bits of the SIGNAL field, the header of a frame (17.3.4).
pub(super) const SIGNAL_BITS: f64 = 24.0;

/// Of ten bits one is wrong: of the shortest frame, an acknowledgement, less than one in a million
/// survives. And the bit error rate of which the longest frame notices nothing.
const HOPELESS: f64 = 0.1;
const CERTAIN: f64 = 1e-12;

/// A logarithm that makes an end of any frame.
const NEVER: f64 = -1e3;

/// Less is never.
const HARDLY_EVER: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// What ns-3 checks of its own model (`src/wifi/test/wifi-error-rate-models-test.cc`, from the
    /// programme of the paper): dB, and the share of 16,000 bits in a row that survive. Its rates
    /// are those of 20 MHz, ours half of them.
    #[test]
    fn success_is_what_the_paper_has() {
        use DataRate::{Mbps3, Mbps4_5, Mbps6, Mbps9, Mbps12, Mbps18, Mbps24, Mbps27};
        for (rate, db, asked, within) in [
            (Mbps3, 2.5, 2.04e-10, 1e-10),
            (Mbps3, 3.0, 0.020, 0.001),
            (Mbps3, 4.0, 0.885, 0.001),
            (Mbps3, 5.0, 0.997, 0.001),
            (Mbps4_5, 6.0, 0.097, 0.001),
            (Mbps4_5, 7.0, 0.918, 0.001),
            (Mbps4_5, 8.0, 0.998, 0.001),
            (Mbps6, 6.0, 0.0174, 0.001),
            (Mbps6, 7.0, 0.881, 0.001),
            (Mbps6, 8.0, 0.997, 0.001),
            (Mbps6, 9.0, 0.999, 0.001),
            (Mbps9, 8.5, 2.85e-6, 1e-6),
            (Mbps9, 9.5, 0.623, 0.001),
            (Mbps9, 10.5, 0.985, 0.001),
            (Mbps12, 12.0, 2.22e-7, 1e-7),
            (Mbps12, 13.0, 0.495, 0.001),
            (Mbps12, 14.0, 0.974, 0.001),
            (Mbps18, 15.5, 0.012, 0.001),
            (Mbps18, 16.5, 0.818, 0.001),
            (Mbps18, 17.5, 0.993, 0.001),
            (Mbps24, 20.0, 1.3e-4, 1e-4),
            (Mbps24, 21.0, 0.649, 0.001),
            (Mbps24, 22.0, 0.983, 0.001),
            (Mbps27, 21.0, 5.44e-8, 1e-8),
            (Mbps27, 22.0, 0.410, 0.001),
            (Mbps27, 23.0, 0.958, 0.001),
        ] {
            let found = rate.success(power(db), 16_000.0);
            assert!((found - asked).abs() <= within, "{rate:?}, {db} dB: {found} for {asked}");
        }
    }

    /// The spectra once more, from nothing but the code's generators and the puncturing of 802.11
    /// (17.3.5.6). They are of all paths that leave the state of zeros and come back to it, by
    /// distance, each weighted with the ones in its data. A step is one period of the puncturing.
    #[test]
    fn spectra_come_out_of_the_code() {
        for (spectrum, kept) in [
            (Spectrum::HALF, &[[true, true]][..]),
            (Spectrum::TWO_THIRDS, &[[true, true], [true, false]]),
            (Spectrum::THREE_QUARTERS, &[[true, true], [true, false], [false, true]]),
        ] {
            let last = spectrum.first + spectrum.step * (spectrum.weights.len() as u32 - 1);
            let found = weights_of_paths(kept, last as usize);
            let asked: BTreeMap<usize, f64> = (spectrum.first as usize..)
                .step_by(spectrum.step as usize)
                .zip(spectrum.weights.iter().copied())
                .collect();
            assert_eq!(found, asked);
        }
    }

    fn weights_of_paths(kept: &[[bool; 2]], last: usize) -> BTreeMap<usize, f64> {
        // Where a state leads with these data, and what that adds to the distance.
        let step = |mut state: usize, data: usize| {
            let mut distance = 0;
            for (at, sent) in kept.iter().enumerate() {
                let register = (data >> at & 1) << 6 | state;
                let out = [0o133, 0o171].map(|taps: usize| (register & taps).count_ones() % 2);
                let sent = out.iter().zip(sent).filter(|(_, sent)| **sent);
                distance += sent.map(|(bit, _)| *bit as usize).sum::<usize>();
                state = register >> 1;
            }
            (state, distance)
        };
        // By state and distance: paths there, and ones in their data.
        let none = || vec![vec![(0.0, 0.0); last + 1]; 64];
        let mut here = none();
        here[0][0] = (1.0, 0.0);
        let mut weights = vec![0.0; last + 1];
        // No path within these distances is longer: every circle costs something.
        for at in 0..200 {
            let mut next = none();
            for (state, here) in here.iter().enumerate() {
                for (distance, &(paths, ones)) in here.iter().enumerate() {
                    // The first step leaves the state of zeros.
                    for data in usize::from(at == 0)..1 << kept.len() {
                        let (to, more) = step(state, data);
                        if paths > 0.0 && distance + more <= last {
                            let (all, sum) = &mut next[to][distance + more];
                            *all += paths;
                            *sum += ones + paths * f64::from(data.count_ones());
                        }
                    }
                }
            }
            for (weight, (_, ones)) in weights.iter_mut().zip(&next[0]) {
                *weight += ones;
            }
            next[0].fill((0.0, 0.0));
            here = next;
        }
        weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0).collect()
    }

    /// BPSK: ½·erfc(√snr). QPSK is the same at half the ratio per bit, so 3 dB later.
    #[test]
    fn errors_before_decoding_have_their_closed_forms() {
        for snr in [0.5_f64, 1.0, 3.0, 8.0] {
            let bpsk = DataRate::Mbps3.symbol_errors(snr);
            assert!((bpsk - 0.5 * libm::erfc(snr.sqrt())).abs() < 1e-15);
            assert_eq!(DataRate::Mbps6.symbol_errors(2.0 * snr), bpsk);
        }
        // Without a signal half of all bits are wrong, with BPSK.
        assert_eq!(DataRate::Mbps3.symbol_errors(0.0), 0.5);
    }

    #[test]
    fn shortcuts_at_both_ends_change_nothing() {
        for rate in DataRate::ALL {
            for db in -100..300 {
                let snr = power(f64::from(db) / 10.0);
                let exact = libm::exp(16_000.0 * libm::log1p(-rate.bit_errors(snr)));
                let found = rate.success(snr, 16_000.0);
                assert!((found - exact).abs() < 1e-6, "{rate:?}, {db}: {found} for {exact}");
            }
            let shares = rate.levels_db().map(|db| rate.frame_success(power(db), REFERENCE_LEN));
            for (share, asked) in shares.into_iter().zip([0.1, 0.3, 0.5, 0.7, 0.9]) {
                assert!((share - asked).abs() < 0.01, "{rate:?}: {share} for {asked}");
            }
        }
    }

    #[test]
    fn a_long_frame_is_lost_more_easily_than_a_short_one() {
        let at_7_db = [86, 260, 1538].map(|len| DataRate::Mbps6.frame_success(power(6.5), len));
        assert!(at_7_db.is_sorted_by(|short, long| short > long), "{at_7_db:?}");
        assert!(at_7_db[0] > 0.9 && at_7_db[2] < 0.6, "{at_7_db:?}");
    }
}
