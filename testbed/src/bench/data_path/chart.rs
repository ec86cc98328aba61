//! The medians as bars, with the least and the most, one panel for each of the main figures.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::results::{BenchFigure, BenchResults, FIGURES};
use super::variant::BenchVariant;
use crate::topology::line::Offload;

const SIZE: (u32, u32) = (1200, 900);
const PANELS: (usize, usize) = (3, 3);
/// The figures drawn.
const DRAWN: [&str; 9] = [
    "tcp_1",
    "tcp_4",
    "udp_64",
    "udp_1400",
    "idle_p50",
    "loaded_p99",
    "cpu_tcp",
    "cpu_udp_64",
    "resident",
];
const FONT: &str = "sans-serif";
/// Told apart by every eye (Okabe and Ito 2008).
const BLUE_DARK: RGBColor = RGBColor(0, 114, 178);
const BLUE_LIGHT: RGBColor = RGBColor(86, 180, 233);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const GREY_DARK: RGBColor = RGBColor(130, 130, 130);

/// An SVG of everything.
pub(super) fn draw(results: &BenchResults) -> Result<String> {
    let mut svg = String::new();
    draw_panels(&mut svg, results).map_err(|error| anyhow!("cannot draw: {error}"))?;
    Ok(svg)
}

type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn draw_panels<'a>(svg: &'a mut String, results: &BenchResults) -> Drawn<'a> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let figures = DRAWN.iter().filter_map(|key| FIGURES.iter().find(|figure| figure.key == *key));
    for (panel, figure) in area.split_evenly(PANELS).iter().zip(figures) {
        draw_panel(panel, results, figure)?;
    }
    area.present()
}

/// Bars from top to bottom in the order of the variants, named at the left.
fn draw_panel<'a>(
    panel: &DrawingArea<SVGBackend<'a>, Shift>,
    results: &BenchResults,
    figure: &BenchFigure,
) -> Drawn<'a> {
    let bars: Vec<_> = results
        .variants
        .iter()
        .filter_map(|variant| Some((*variant, results.spread(*variant, figure)?)))
        .collect();
    let most = bars.iter().map(|(_, spread)| spread.max).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let better = if figure.is_cost { "less is better" } else { "more is better" };
    let caption = format!("{} ({}), {better}", figure.title, figure.unit);
    let count = bars.len() as f64;
    let digits = if most < 10.0 { 1 } else { 0 };
    let mut chart = ChartBuilder::on(panel)
        .caption(caption, (FONT, 13))
        .margin(8)
        .x_label_area_size(22)
        .y_label_area_size(125)
        .build_cartesian_2d(0.0..most * 1.15, count..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .y_labels(0)
        .x_labels(5)
        .x_label_formatter(&|value| format!("{value:.digits$}"))
        .draw()?;
    for (row, (variant, spread)) in bars.iter().enumerate() {
        let top = row as f64;
        let middle = top + 0.5;
        let bar = [(0.0, top + 0.15), (spread.median, top + 0.85)];
        let range = vec![(spread.min, middle), (spread.max, middle)];
        let median = format!("{:.*}", figure.decimals, spread.median);
        let name = Text::new(variant.name(), (-120, -5), (FONT, 12).into_font());
        chart.draw_series([Rectangle::new(bar, color(*variant).filled())])?;
        chart.draw_series([PathElement::new(range, BLACK.stroke_width(1))])?;
        chart.draw_series([EmptyElement::at((0.0, middle)) + name])?;
        let value = Text::new(median, (4, -5), (FONT, 12).into_font());
        chart.draw_series([EmptyElement::at((spread.max, middle)) + value])?;
    }
    Ok(())
}

fn color(variant: BenchVariant) -> RGBColor {
    match variant {
        BenchVariant::Veth | BenchVariant::VethPlain => GREY_DARK,
        BenchVariant::Naive { .. } => ORANGE,
        BenchVariant::Ours { offload: Offload::Off, .. } => BLUE_LIGHT,
        BenchVariant::Ours { offload: Offload::On, .. } => BLUE_DARK,
        BenchVariant::Loops { .. } => GREEN,
    }
}
