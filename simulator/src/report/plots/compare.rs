//! Several variants in one picture: panels side by side, in which each variant has its colour and
//! its marker, and a legend below.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{DrawError, Drawn, FONT, Line};

/// One of two pictures side by side.
pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    /// Of each variant.
    pub(super) lines: Vec<Vec<Line>>,
}

/// Draws panels side by side. `names` are those of the variants.
pub(super) fn draw(
    caption: &str,
    names: &[&str],
    panels: &[Panel; 2],
) -> Result<String, DrawError> {
    let caption = match names.len() {
        ..=VARIANTS_MAX => caption.to_owned(),
        all => format!("{caption}, the first {VARIANTS_MAX} of {all} variants"),
    };
    let names = names.get(..VARIANTS_MAX).unwrap_or(names);
    let mut svg = String::new();
    draw_all(&mut svg, &caption, names, panels).map_err(DrawError::of)?;
    Ok(svg)
}

/// Colours that are told apart by every eye (Okabe and Ito 2008), but for yellow, which white
/// hides.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// Markers, as corners around a point in pixels: square, triangle, diamond, hexagon.
const MARKERS: [&[(i32, i32)]; 4] = [
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -5), (5, 4), (-5, 4)],
    &[(0, -6), (6, 0), (0, 6), (-6, 0)],
    &[(-5, 0), (-2, -5), (2, -5), (5, 0), (2, 5), (-2, 5)],
];

/// As many as have looks of their own: the numbers of colours and markers have no common divisor.
const VARIANTS_MAX: usize = COLORS.len() * MARKERS.len();

/// Colour and marker of a variant.
fn look(variant: usize) -> (RGBColor, &'static [(i32, i32)]) {
    let color = COLORS.get(variant % COLORS.len()).copied().unwrap_or(BLACK);
    (color, MARKERS.get(variant % MARKERS.len()).copied().unwrap_or_default())
}

const WIDTH: u32 = 1280;
const PANELS_HEIGHT: u32 = 540;
/// Of one line of the legend.
const ROW_HEIGHT: u32 = 22;
/// Markers on one line.
const MARKS: usize = 10;

fn draw_all<'a>(
    svg: &'a mut String,
    caption: &str,
    names: &[&str],
    panels: &[Panel; 2],
) -> Drawn<'a> {
    let rows = u32::try_from(names.len()).unwrap_or_default() + 1;
    let whole = SVGBackend::with_string(svg, (WIDTH, PANELS_HEIGHT + ROW_HEIGHT * rows));
    let whole = whole.into_drawing_area();
    whole.fill(&WHITE)?;
    let (above, below) = whole.split_vertically(PANELS_HEIGHT);
    let above = above.titled(caption, (FONT, 20))?;
    for (area, panel) in above.split_evenly((1, 2)).iter().zip(panels) {
        draw_panel(area, panel, names.len())?;
    }
    draw_legend(&below, names)?;
    whole.present()
}

fn draw_panel<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    panel: &Panel,
    variants: usize,
) -> Drawn<'a> {
    let drawn = || panel.lines.iter().take(variants).enumerate();
    let points = || drawn().flat_map(|(_, lines)| lines).flatten();
    let end = points().map(|(x, _)| *x).fold(1.0, f64::max);
    let highest = points().map(|(_, y)| *y).fold(0.1, f64::max);
    let title = match points().next() {
        Some(_) => panel.title.to_owned(),
        None => format!("{}: not measured", panel.title),
    };
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end * 1.02, 0.0..highest * 1.05)?;
    chart.configure_mesh().x_desc(panel.x).y_desc(panel.y).draw()?;
    for (variant, lines) in drawn() {
        let (color, marker) = look(variant);
        for line in lines {
            chart.draw_series(LineSeries::new(line.iter().copied(), color.mix(0.8)))?;
            // Each begins elsewhere, so that lines that lie on each other are seen.
            let every = line.len().div_ceil(MARKS).max(1);
            let marks = line.iter().skip(variant * every / variants.max(1)).step_by(every);
            let mark = |at: &(f64, f64)| {
                EmptyElement::at(*at) + Polygon::new(marker.to_vec(), color.filled())
            };
            chart.draw_series(marks.map(mark))?;
        }
    }
    Ok(())
}

fn draw_legend<'a>(area: &DrawingArea<SVGBackend<'a>, Shift>, names: &[&str]) -> Drawn<'a> {
    let row = i32::try_from(ROW_HEIGHT).unwrap_or_default();
    for ((variant, name), y) in
        names.iter().enumerate().zip((0..).map(|index| row * index + row / 2))
    {
        let (color, marker) = look(variant);
        let x = 80;
        area.draw(&PathElement::new(vec![(x - 20, y), (x + 20, y)], color))?;
        let corners: Vec<(i32, i32)> = marker.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        area.draw(&Polygon::new(corners, color.filled()))?;
        area.draw(&Text::new((*name).to_owned(), (x + 30, y - 7), (FONT, 15).into_font()))?;
    }
    Ok(())
}
