//! Pictures, as SVG: a map at a moment, how long hand-overs cut clients off, and airtime over time.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use node_lib::NodeId;
use node_lib::sim::{NodeIndex, Position, Role, World};
use plotters::prelude::*;

use crate::cast::{Cast, radio_mac};
use crate::measure::{Airtime, Record};

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

/// Writes `gaps.svg` and `airtime.svg` into a directory, which is made if it is not there.
///
/// # Errors
/// A file cannot be written.
pub fn write(directory: &Path, records: &[Record]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("gaps.svg"), gaps(records)?)?;
    std::fs::write(directory.join("airtime.svg"), airtime(records)?)
}

const SIZE: (u32, u32) = (960, 540);
const MAP_SIZE: (u32, u32) = (1000, 1000);
const FONT: &str = "sans-serif";
/// Blue, green and orange that are told apart by every eye (Okabe and Ito 2008).
const BLUE_DARK: RGBColor = RGBColor(0, 114, 178);
const GREEN_DARK: RGBColor = RGBColor(0, 158, 115);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(200, 200, 200);

/// Everybody at a moment: links in grey, routes in blue, RSUs as squares, OBUs as dots, which are
/// orange without a route.
///
/// Nodes without a place stand on a circle.
///
/// # Errors
/// The picture cannot be drawn.
pub fn map(cast: &Cast, world: &World) -> Result<String, DrawError> {
    let places = places(cast, world);
    let mut svg = String::new();
    draw_map(&mut svg, cast, world, &places).map_err(DrawError::of)?;
    Ok(svg)
}

/// Where those are drawn who are there.
fn places(cast: &Cast, world: &World) -> BTreeMap<NodeIndex, Position> {
    let count = cast.nodes.len();
    let on_circle = |index: usize| {
        let turn = std::f64::consts::TAU * index as f64 / count.max(1) as f64;
        Position::new(100.0 * turn.sin(), 100.0 * turn.cos())
    };
    let has_places = world.radio().is_some();
    let place = |index| {
        let node = NodeIndex(index);
        let position = world.position(node);
        let position = if has_places { position } else { position.or(Some(on_circle(index))) };
        Some((node, position?))
    };
    (0..count).filter_map(place).collect()
}

/// Around all places, with room, and as wide as high.
fn frame(places: &BTreeMap<NodeIndex, Position>) -> (f64, f64, f64) {
    let edge = |of: fn(&Position) -> f64| {
        let values = places.values().map(of);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        if least <= most { (least, most) } else { (0.0, 0.0) }
    };
    let ((left, right), (bottom, top)) = (edge(|place| place.x_m), edge(|place| place.y_m));
    let half = ((right - left).max(top - bottom) / 2.0).max(50.0) * 1.1;
    (f64::midpoint(left, right), f64::midpoint(bottom, top), half)
}

type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn draw_map<'a>(
    svg: &'a mut String,
    cast: &Cast,
    world: &World,
    places: &BTreeMap<NodeIndex, Position>,
) -> Drawn<'a> {
    let area = SVGBackend::with_string(svg, MAP_SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (x, y, half) = frame(places);
    let caption = format!("{:.1} s", world.now().as_micros() as f64 / 1e6);
    let mut chart = ChartBuilder::on(&area)
        .caption(caption, (FONT, 20))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(50)
        .build_cartesian_2d(x - half..x + half, y - half..y + half)?;
    chart.configure_mesh().disable_mesh().x_desc("m").y_desc("m").draw()?;
    let at = |node: NodeIndex| places.get(&node).map(|place| (place.x_m, place.y_m));
    let line = |a: NodeIndex, b: NodeIndex, style: ShapeStyle| {
        Some(PathElement::new(vec![at(a)?, at(b)?], style))
    };
    let graph = world.graph();
    let links =
        graph.edges().filter_map(|(a, b)| line(NodeIndex(a), NodeIndex(b), GREY.stroke_width(1)));
    chart.draw_series(links)?;
    let ids: BTreeMap<NodeId, NodeIndex> =
        (0..cast.nodes.len()).map(|n| (NodeId::from(radio_mac(n)), NodeIndex(n))).collect();
    let routes = cast.of_role(Role::Obu).filter_map(|obu| {
        let upstream = ids.get(&world.attachment(obu)?.upstream)?;
        line(obu, *upstream, BLUE_DARK.stroke_width(2))
    });
    chart.draw_series(routes)?;
    let dots = cast.of_role(Role::Obu).filter_map(|obu| {
        let color = if world.attachment(obu).is_some() { BLUE_DARK } else { ORANGE };
        world.node(obu)?;
        Some(Circle::new(at(obu)?, 4, color.filled()))
    });
    chart.draw_series(dots)?;
    let squares = cast.of_role(Role::Rsu).filter_map(|rsu| {
        let color = if world.node(rsu).is_some() { GREEN_DARK } else { GREY };
        Some(
            EmptyElement::at(at(rsu)?)
                + Rectangle::new([(-6, -6), (6, 6)], color.filled())
                + Text::new(cast.name(rsu).to_owned(), (9, -7), (FONT, 15).into_font()),
        )
    });
    chart.draw_series(squares)?;
    // Names of many vehicles would hide the map.
    if cast.of_role(Role::Obu).count() <= NAMED_MAX {
        let names = cast.of_role(Role::Obu).filter_map(|obu| {
            world.node(obu)?;
            let text = Text::new(cast.name(obu).to_owned(), (7, 3), (FONT, 13).into_font());
            Some(EmptyElement::at(at(obu)?) + text)
        });
        chart.draw_series(names)?;
    }
    area.present()
}

/// OBUs up to which their names are written.
const NAMED_MAX: usize = 30;

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
    let lines = |share: fn(Airtime) -> f64| -> Vec<Vec<(f64, f64)>> {
        let line = |record: &Record| {
            let seconds = record.control.seconds.iter();
            seconds
                .filter_map(|second| Some((second.time_s, 100.0 * share(second.airtime?))))
                .collect()
        };
        records.iter().take(LINES_MAX).map(line).collect()
    };
    let series = [
        ("mean over receivers", BLUE_DARK, lines(|airtime| airtime.mean.control)),
        ("at the fullest receiver", ORANGE, lines(|airtime| airtime.worst.control)),
    ];
    let mut svg = String::new();
    draw_airtime(&mut svg, &series).map_err(DrawError::of)?;
    Ok(svg)
}

/// Runs drawn; more would be a grey area.
const LINES_MAX: usize = 20;

type Series = (&'static str, RGBColor, Vec<Vec<(f64, f64)>>);

fn draw_airtime<'a>(svg: &'a mut String, series: &[Series]) -> Drawn<'a> {
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
