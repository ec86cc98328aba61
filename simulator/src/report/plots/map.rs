//! Everybody at a moment: where they are, who hears whom, and who sends through whom.

use std::collections::BTreeMap;

use node_lib::NodeId;
use plotters::coord::Shift;
use plotters::prelude::*;
use sim::{Location, NodeIndex, Role, World};

use super::{BLUE_DARK, DrawError, Drawn, FONT, GREEN_DARK, GREY, ORANGE};
use crate::cast::{Cast, radio_mac};

/// Width and height in pixels; below comes the legend.
const SIDE: u32 = 1000;
const LEGEND_HEIGHT: u32 = 40;

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
pub(crate) fn places(cast: &Cast, world: &World) -> BTreeMap<NodeIndex, Location> {
    let count = cast.nodes.len();
    let on_circle = |index: usize| {
        let turn = std::f64::consts::TAU * index as f64 / count.max(1) as f64;
        Location::new(100.0 * turn.sin(), 100.0 * turn.cos())
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
fn frame(places: &BTreeMap<NodeIndex, Location>) -> (f64, f64, f64) {
    let edge = |of: fn(&Location) -> f64| {
        let values = places.values().map(of);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        if least <= most { (least, most) } else { (0.0, 0.0) }
    };
    let ((left, right), (bottom, top)) = (edge(|place| place.x_m), edge(|place| place.y_m));
    let half = ((right - left).max(top - bottom) / 2.0).max(50.0) * 1.1;
    (f64::midpoint(left, right), f64::midpoint(bottom, top), half)
}

fn draw_map<'a>(
    svg: &'a mut String,
    cast: &Cast,
    world: &World,
    places: &BTreeMap<NodeIndex, Location>,
) -> Drawn<'a> {
    let whole = SVGBackend::with_string(svg, (SIDE, SIDE + LEGEND_HEIGHT)).into_drawing_area();
    whole.fill(&WHITE)?;
    let (area, below) = whole.split_vertically(SIDE);
    draw_legend(&below)?;
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
    whole.present()
}

/// OBUs up to which their names are written.
const NAMED_MAX: usize = 30;

/// What lines and marks stand for, in a row. It lies beside the map, and hides nothing of it.
fn draw_legend<'a>(area: &DrawingArea<SVGBackend<'a>, Shift>) -> Drawn<'a> {
    let y = i32::try_from(LEGEND_HEIGHT / 2).unwrap_or_default();
    let (mut x, step) = (60, 155);
    for (name, mark) in [
        ("link", Mark::Line(GREY.stroke_width(1))),
        ("route", Mark::Line(BLUE_DARK.stroke_width(2))),
        ("OBU with a route", Mark::Dot(BLUE_DARK)),
        ("OBU without a route", Mark::Dot(ORANGE)),
        ("RSU", Mark::Square(GREEN_DARK)),
        ("RSU that is off", Mark::Square(GREY)),
    ] {
        match mark {
            Mark::Line(style) => {
                area.draw(&PathElement::new(vec![(x - 12, y), (x + 12, y)], style))?;
            }
            Mark::Dot(color) => area.draw(&Circle::new((x, y), 4, color.filled()))?,
            Mark::Square(color) => {
                let corners = [(x - 6, y - 6), (x + 6, y + 6)];
                area.draw(&Rectangle::new(corners, color.filled()))?;
            }
        }
        area.draw(&Text::new(name, (x + 18, y - 7), (FONT, 15).into_font()))?;
        x += step;
    }
    Ok(())
}

/// How something is drawn on the map.
enum Mark {
    Line(ShapeStyle),
    Dot(RGBColor),
    Square(RGBColor),
}
