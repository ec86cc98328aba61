//! Fast fading: the strength of one frame around its mean, [`Fading`].

use crate::dice::Luck;

/// How one frame's strength differs from the mean of its link.
#[derive(Clone, Debug, PartialEq)]
pub enum Fading {
    /// Not at all.
    Still,
    /// Nakagami: power is gamma distributed around its mean. `m` = 1 is Rayleigh, more is steadier.
    Nakagami(Shape),
}

/// Nakagami's *m* by distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Up to this many metres this *m*; in the order of metres.
    pub steps: Vec<(f64, f64)>,
    /// Beyond the last.
    pub beyond: f64,
}

impl Shape {
    /// The same at every distance.
    pub const fn constant(m: f64) -> Self {
        Self { steps: Vec::new(), beyond: m }
    }

    /// As measured between vehicles in a suburb: Cheng et al., IEEE JSAC 25(8), 2007, table IV,
    /// used by distance as Artery does (`VanetNakagamiFading.ned`). Below 0.5, as beyond 72 m, is
    /// worse than Rayleigh: they took off nothing but the mean by distance, so shadowing is in it.
    pub fn suburb() -> Self {
        let steps = vec![(4.7, 3.01), (11.7, 1.18), (28.9, 1.94), (71.6, 1.86), (177.3, 0.45)];
        Self { steps, beyond: 0.32 }
    }

    /// [`Shape::suburb`], but never below 1, Rayleigh: the worst that scattering alone makes of a
    /// frame. What is worse than that, as Cheng et al. measured beyond 72 m, is what stood in the
    /// way. So this is for a radio that has [`Shadowing`](crate::radio::Shadowing) as well, which
    /// would count twice otherwise.
    pub fn scatter() -> Self {
        let Self { steps, beyond } = Self::suburb();
        let steps = steps.into_iter().map(|(up_to, m)| (up_to, m.max(1.0))).collect();
        Self { steps, beyond: beyond.max(1.0) }
    }

    /// 1.5 below 80 m, 0.75 beyond: the simple form of Veins (`NakagamiFading.cc`).
    pub fn simple() -> Self {
        Self { steps: vec![(80.0, 1.5)], beyond: 0.75 }
    }

    /// *m* at this distance.
    pub fn at(&self, distance_m: f64) -> f64 {
        let step = self.steps.iter().find(|(up_to, _)| distance_m <= *up_to);
        step.map_or(self.beyond, |(_, m)| *m)
    }
}

impl Fading {
    /// A frame's power over the mean power of its link.
    pub(crate) fn draw(&self, distance_m: f64, luck: &mut Luck) -> f64 {
        match self {
            Self::Still => 1.0,
            Self::Nakagami(shape) => {
                let m = shape.at(distance_m);
                gamma(m, luck) / m
            }
        }
    }

    /// Probability that a frame is at least `ratio` times as strong as the mean.
    pub fn exceeds(&self, distance_m: f64, ratio: f64) -> f64 {
        match self {
            Self::Still => f64::from(u8::from(ratio <= 1.0)),
            Self::Nakagami(shape) => {
                let m = shape.at(distance_m);
                upper_gamma(m, m * ratio)
            }
        }
    }
}

/// A standard normal variate: the polar method of Marsaglia and Bray (SIAM Review 6(3), 1964).
pub(crate) fn normal(luck: &mut Luck) -> f64 {
    loop {
        let (x, y) = (2.0 * luck.unit() - 1.0, 2.0 * luck.unit() - 1.0);
        let square = x * x + y * y;
        if square < 1.0 && square > 0.0 {
            return x * (-2.0 * libm::log(square) / square).sqrt();
        }
    }
}

/// A gamma variate of this shape and scale 1: Marsaglia and Tsang, "A simple method for generating
/// gamma variables", ACM TOMS 26(3), 2000; below shape 1 by their remark γ(a) = γ(a + 1)·U^(1/a).
fn gamma(shape: f64, luck: &mut Luck) -> f64 {
    if shape < 1.0 {
        let power = libm::log(luck.unit()) / shape;
        return gamma(shape + 1.0, luck) * libm::exp(power);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(luck);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let u = luck.unit();
        let square = x * x;
        if u < 1.0 - 0.0331 * square * square
            || libm::log(u) < 0.5 * square + d * (1.0 - v + libm::log(v))
        {
            return d * v;
        }
    }
}

/// Regularised upper incomplete gamma function Q(a, x): a series below a + 1, a continued fraction
/// above (Abramowitz and Stegun 6.5.29 and 6.5.31).
fn upper_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let scale = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if scale == 0.0 {
        return f64::from(u8::from(x < a));
    }
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..TERMS_MAX {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * PRECISION {
                break;
            }
        }
        return (1.0 - sum * scale).clamp(0.0, 1.0);
    }
    // Lentz's way through the fraction.
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut product = d;
    for i in 1..TERMS_MAX {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        product *= d * c;
        if (d * c - 1.0).abs() < PRECISION {
            break;
        }
    }
    (scale * product).clamp(0.0, 1.0)
}

/// Enough for shapes up to about a hundred.
const TERMS_MAX: u32 = 200;

const PRECISION: f64 = 1e-10;

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 40_000;

    fn draws(fading: &Fading, distance_m: f64) -> Vec<f64> {
        let one = |event| fading.draw(distance_m, &mut Luck::new(11, 1, 2, u64::from(event)));
        (0..DRAWS).map(one).collect()
    }

    #[test]
    fn closed_forms_come_out() {
        // Rayleigh: Q(1, x) = exp(−x). m = 1/2: Q(1/2, x) = erfc(√x). m = 2: (1 + x)·exp(−x).
        for x in [0.01, 0.3, 1.0, 2.5, 8.0] {
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{x}: {a} and {b}");
            near(upper_gamma(1.0, x), libm::exp(-x));
            near(upper_gamma(0.5, x), libm::erfc(x.sqrt()));
            near(upper_gamma(2.0, x), (1.0 + x) * libm::exp(-x));
        }
    }

    #[test]
    fn nakagami_keeps_the_mean_and_has_the_outage_of_its_closed_form() {
        for m in [0.32, 0.45, 0.75, 1.0, 1.86, 3.01, 20.0] {
            let fading = Fading::Nakagami(Shape::constant(m));
            let draws = draws(&fading, 1.0);
            let mean = draws.iter().sum::<f64>() / f64::from(DRAWS);
            // The mean of DRAWS varies by √(1/m / DRAWS); five of those.
            assert!((mean - 1.0).abs() < 5.0 * (1.0 / m / f64::from(DRAWS)).sqrt(), "{m}: {mean}");
            for ratio in [0.1, 0.5, 1.0, 2.0] {
                let share = draws.iter().filter(|draw| **draw >= ratio).count() as f64;
                let (share, asked) = (share / f64::from(DRAWS), fading.exceeds(1.0, ratio));
                assert!((share - asked).abs() < 0.0125, "{m}, {ratio}: {share} for {asked}");
            }
        }
    }

    #[test]
    fn a_normal_variate_has_mean_0_and_variance_1() {
        let draws: Vec<f64> =
            (0..DRAWS).map(|n| normal(&mut Luck::new(5, 0, 1, u64::from(n)))).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(DRAWS);
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(DRAWS);
        assert!(mean.abs() < 0.025, "{mean}");
        assert!((variance - 1.0).abs() < 0.04, "{variance}");
    }

    #[test]
    fn shapes_by_distance_are_those_of_the_paper() {
        let suburb = Shape::suburb();
        let at = [1.0, 4.7, 4.8, 20.0, 50.0, 100.0, 177.3, 177.4, 900.0].map(|d| suburb.at(d));
        assert_eq!(at, [3.01, 3.01, 1.18, 1.94, 1.86, 0.45, 0.45, 0.32, 0.32]);
        assert_eq!([79.0, 81.0].map(|d| Shape::simple().at(d)), [1.5, 0.75]);
        assert_eq!([20.0, 72.0, 900.0].map(|d| Shape::scatter().at(d)), [1.94, 1.0, 1.0]);
    }
}
