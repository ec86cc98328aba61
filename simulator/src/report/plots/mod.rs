//! Pictures, as SVG: a map at a moment, how long hand-overs cut clients off, and airtime over time.

mod compare;
pub(crate) mod map;

use std::io;
use std::path::Path;

use plotters::prelude::*;

use crate::measure::{AirtimeShares, HandOverRecord, Record};
use compare::Panel;
pub use map::map;

/// A picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct DrawError(String);

impl DrawError {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl From<DrawError> for io::Error {
    fn from(error: DrawError) -> Self {
        Self::other(error)
    }
}

/// The runs of one variant.
pub struct Series {
    /// What was changed for it; empty if there is only one.
    pub name: String,
    /// Runs that finished.
    pub records: Vec<Record>,
}

/// Writes `gaps.svg` and `airtime.svg` into a directory, which is made if it is not there. Several
/// variants have a colour and a marker each.
///
/// # Errors
/// A file cannot be written.
pub fn write(directory: &Path, series: &[Series]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let (gaps, airtime) = match series {
        [one] => (gaps(&one.records)?, airtime(&one.records)?),
        _ => (compare_gaps(series)?, compare_airtime(series)?),
    };
    std::fs::write(directory.join("gaps.svg"), gaps)?;
    std::fs::write(directory.join("airtime.svg"), airtime)
}

const SIZE: (u32, u32) = (960, 540);
const FONT: &str = "sans-serif";
/// Blue, green and orange that are told apart by every eye (Okabe and Ito 2008).
const BLUE_DARK: RGBColor = RGBColor(0, 114, 178);
const GREEN_DARK: RGBColor = RGBColor(0, 158, 115);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(200, 200, 200);

type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// How many hand-overs cut clients off for how long: with every loss, and with those only that
/// another route would have saved.
///
/// # Errors
/// The picture cannot be drawn.
pub fn gaps(records: &[Record]) -> Result<String, DrawError> {
    let hand_overs = || records.iter().flat_map(|record| &record.hand_overs);
    let all: Vec<f64> = hand_overs().filter_map(|hand_over| hand_over.gap_ms).collect();
    let beyond: Vec<f64> =
        hand_overs().filter_map(|hand_over| hand_over.gap_by_routing_ms).collect();
    let mut svg = String::new();
    draw_gaps(&mut svg, &all, &beyond).map_err(DrawError::of)?;
    Ok(svg)
}

/// Bars in the histogram.
const BARS: u32 = 40;

fn draw_gaps<'a>(svg: &'a mut String, all: &[f64], beyond: &[f64]) -> Drawn<'a> {
    let longest = all.iter().copied().fold(1.0, f64::max);
    // A round number of milliseconds per bar.
    let width = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
        .into_iter()
        .find(|width| width * f64::from(BARS) > longest)
        .unwrap_or(1000.0);
    let sorted = |values: &[f64]| {
        let mut bars = vec![0_u32; BARS as usize];
        for value in values {
            let place = (value / width).clamp(0.0, f64::from(BARS - 1));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            if let Some(bar) = bars.get_mut(place as usize) {
                *bar += 1;
            }
        }
        bars
    };
    let (all_bars, beyond_bars) = (sorted(all), sorted(beyond));
    let highest = all_bars.iter().chain(&beyond_bars).copied().max().unwrap_or(0).max(1);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("Longest gap around each of {} hand-overs", all.len()), (FONT, 20))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..width * f64::from(BARS), 0_u32..highest + highest / 10 + 1)?;
    chart.configure_mesh().disable_x_mesh().x_desc("gap (ms)").y_desc("hand-overs").draw()?;
    for (bars, color, part, name) in [
        (all_bars, BLUE_DARK, 0.0, "all losses"),
        (beyond_bars, ORANGE, 0.5, "losses another route would have saved"),
    ] {
        let boxes = (0..).zip(bars).filter(|(_, count)| *count > 0).map(|(place, count)| {
            let left = (f64::from(place) + part) * width;
            Rectangle::new([(left, 0), (left + 0.45 * width, count)], color.filled())
        });
        chart.draw_series(boxes)?.label(name).legend(swatch(color));
    }
    draw_legend(&mut chart)?;
    area.present()
}

/// How full the channel was with control frames, second by second: mean over receivers and the
/// fullest, a line each for each run.
///
/// # Errors
/// The picture cannot be drawn.
pub fn airtime(records: &[Record]) -> Result<String, DrawError> {
    let lines = |share| airtime_lines(records, share, LINES_MAX);
    let series = [
        ("mean over receivers", BLUE_DARK, lines(MEAN)),
        ("at the fullest receiver", ORANGE, lines(WORST)),
    ];
    let mut svg = String::new();
    draw_airtime(&mut svg, &series).map_err(DrawError::of)?;
    Ok(svg)
}

/// Runs drawn; more would be a grey area.
const LINES_MAX: usize = 20;

/// A line through these points.
type Line = Vec<(f64, f64)>;

const MEAN: fn(AirtimeShares) -> f64 = |airtime| airtime.mean.control;
const WORST: fn(AirtimeShares) -> f64 = |airtime| airtime.worst.control;

/// A line for each run, up to so many: seconds and percent.
fn airtime_lines(records: &[Record], share: fn(AirtimeShares) -> f64, most: usize) -> Vec<Line> {
    let line = |record: &Record| -> Line {
        let seconds = record.control.seconds.iter();
        seconds.filter_map(|second| Some((second.time_s, 100.0 * share(second.airtime?)))).collect()
    };
    records.iter().take(most).map(line).collect()
}

fn compare_airtime(series: &[Series]) -> Result<String, DrawError> {
    let most = (LINES_MAX / series.len().max(1)).max(1);
    let panel = |title, share| Panel {
        title,
        x: "time (s)",
        y: "share of time (%)",
        lines: series.iter().map(|one| airtime_lines(&one.records, share, most)).collect(),
    };
    let panels = [panel("mean over receivers", MEAN), panel("at the fullest receiver", WORST)];
    compare::draw("Airtime of control frames", &names(series), &panels)
}

fn compare_gaps(series: &[Series]) -> Result<String, DrawError> {
    let panel = |title, gap: fn(&HandOverRecord) -> Option<f64>| Panel {
        title,
        x: "gap (ms)",
        y: "hand-overs with at most this gap (%)",
        lines: series.iter().map(|one| vec![cumulative(&one.records, gap)]).collect(),
    };
    let panels = [
        panel("all losses", |hand_over| hand_over.gap_ms),
        panel("losses another route would have saved", |hand_over| hand_over.gap_by_routing_ms),
    ];
    compare::draw("Longest gap around each hand-over", &names(series), &panels)
}

fn names(series: &[Series]) -> Vec<&str> {
    series.iter().map(|one| one.name.as_str()).collect()
}

/// Steps from 0 to 100 %, over values that were measured.
fn cumulative(records: &[Record], gap: fn(&HandOverRecord) -> Option<f64>) -> Line {
    let hand_overs = records.iter().flat_map(|record| &record.hand_overs);
    let mut gaps: Vec<f64> = hand_overs.filter_map(gap).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let share = |count: usize| 100.0 * count as f64 / gaps.len() as f64;
    let step = |(before, gap): (usize, &f64)| [(*gap, share(before)), (*gap, share(before + 1))];
    gaps.iter().enumerate().flat_map(step).collect()
}

/// A name, a colour, and lines.
type Coloured = (&'static str, RGBColor, Vec<Line>);

fn draw_airtime<'a>(svg: &'a mut String, series: &[Coloured]) -> Drawn<'a> {
    let points = || series.iter().flat_map(|(.., lines)| lines).flatten();
    let end = points().map(|(time, _)| *time).fold(1.0, f64::max);
    let highest = points().map(|(_, value)| *value).fold(0.0, f64::max);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Airtime of control frames", (FONT, 20))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, 0.0..(highest * 1.1).max(0.1))?;
    chart.configure_mesh().x_desc("time (s)").y_desc("share of time (%)").draw()?;
    for (name, color, lines) in series {
        for (index, line) in lines.iter().enumerate() {
            let drawn = chart.draw_series(LineSeries::new(line.iter().copied(), color.mix(0.7)))?;
            if index == 0 {
                drawn.label(*name).legend(swatch(*color));
            }
        }
    }
    draw_legend(&mut chart)?;
    area.present()
}

/// What stands for a series in the legend.
fn swatch(color: RGBColor) -> impl Fn((i32, i32)) -> Rectangle<(i32, i32)> {
    move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], color.filled())
}

fn draw_legend<'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, C>,
) -> Drawn<'a> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(GREY)
        .draw()
}
