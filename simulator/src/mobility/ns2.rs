//! Movement files of ns-2, as its `setdest`, SUMO's `traceExporter.py` and BonnMotion write them.
//!
//! ```text
//! $node_(0) set X_ 87.7
//! $node_(0) set Y_ 1.6
//! $node_(0) set Z_ 0
//! $ns_ at 1.0 "$node_(0) setdest 72.73 1.6 14.97"
//! ```
//!
//! At the time named, the node leaves for a point at a speed in m/s, from wherever it is; there it
//! stays. All nodes are there from the beginning to the end. Comments (`#`) and the hop counts that
//! `setdest` appends (`$god_ …`) are passed over; lines may be in any order.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};

use node_lib::Timestamp;

use super::error::MobilityErrorKind;
use super::{Movement, Point, Vehicle, Waypoint, metres, seconds, time_of};

/// A node leaves for another place.
struct Order {
    time: Timestamp,
    to: Point,
    speed_mps: f64,
}

#[derive(Default)]
struct Node {
    x_m: Option<f64>,
    y_m: Option<f64>,
    orders: Vec<Order>,
    line: u64,
}

pub(super) fn read(file: impl Read) -> Result<Movement, MobilityErrorKind> {
    let mut nodes: BTreeMap<u64, Node> = BTreeMap::new();
    for (line, text) in (1..).zip(BufReader::new(file).lines()) {
        let text = text?;
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') || text.contains("$god_") {
            continue;
        }
        let wrong =
            |expected: &str| MobilityErrorKind::malformed(line, format!("\"{text}\""), expected);
        let words: Vec<&str> = text.split([' ', '\t', '"']).filter(|w| !w.is_empty()).collect();
        match *words.as_slice() {
            [node, "set", axis @ ("X_" | "Y_" | "Z_"), value] => {
                let number = node_number(node).ok_or_else(|| wrong(SET))?;
                let value = metres(value).ok_or_else(|| wrong("metres, a number"))?;
                let node = nodes.entry(number).or_default();
                node.line = line;
                match axis {
                    "X_" => node.x_m = Some(value),
                    "Y_" => node.y_m = Some(value),
                    _ => {}
                }
            }
            ["$ns_", "at", time, node, "setdest", x, y, speed] => {
                let number = node_number(node).ok_or_else(|| wrong(SETDEST))?;
                let time = seconds(time).ok_or_else(|| wrong("a time in seconds, 0 or more"))?;
                let x_m = metres(x).ok_or_else(|| wrong("x in metres, a number"))?;
                let y_m = metres(y).ok_or_else(|| wrong("y in metres, a number"))?;
                let speed_mps = metres(speed)
                    .filter(|speed| *speed >= 0.0)
                    .ok_or_else(|| wrong("a speed in m/s, 0 or more"))?;
                let node = nodes.entry(number).or_default();
                node.line = line;
                node.orders.push(Order { time, to: Point::new(x_m, y_m), speed_mps });
            }
            _ => return Err(wrong(&format!("{SET} or {SETDEST}"))),
        }
    }
    if nodes.is_empty() {
        return Err(MobilityErrorKind::Empty { expected: SET });
    }
    let vehicles: Result<Vec<_>, _> =
        nodes.into_iter().map(|(number, node)| vehicle(number, node)).collect();
    Ok(Movement { vehicles: vehicles? })
}

fn vehicle(number: u64, node: Node) -> Result<Vehicle, MobilityErrorKind> {
    let Node { x_m: Some(x_m), y_m: Some(y_m), mut orders, .. } = node else {
        let found = format!("node {number} has no place to start from");
        return Err(MobilityErrorKind::malformed(
            node.line,
            found,
            SET.to_owned() + " and the same for Y_",
        ));
    };
    orders.sort_by_key(|order| order.time);
    let mut vehicle = Vehicle {
        name: number.to_string(),
        way: vec![Waypoint { time: Timestamp::ZERO, at: Point::new(x_m, y_m) }],
        stays: true,
    };
    for order in orders {
        // Whatever it was doing ends here.
        let Some(at) = vehicle.position_at(order.time) else { continue };
        vehicle.way.retain(|waypoint| waypoint.time < order.time);
        vehicle.way.push(Waypoint { time: order.time, at });
        let leg_s = at.distance_m(order.to) / order.speed_mps;
        let arrival = time_of(leg_s).map(|leg| order.time + leg.since(Timestamp::ZERO));
        if let Some(time) = arrival.filter(|arrival| *arrival > order.time) {
            vehicle.way.push(Waypoint { time, at: order.to });
        }
    }
    Ok(vehicle)
}

/// The number in `$node_(7)`.
fn node_number(word: &str) -> Option<u64> {
    word.strip_prefix("$node_(")?.strip_suffix(')')?.parse().ok()
}

const SET: &str = "$node_(0) set X_ 12.5";
const SETDEST: &str = "$ns_ at 1.5 \"$node_(0) setdest 20 30 13.9\"";
