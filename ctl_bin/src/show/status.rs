//! `status`: who it is, and whether it is well.

use anstyle::{AnsiColor, Style};
use control_socket::health::HealthProblem;
use control_socket::message::Topics;
use control_socket::position::{Fix, PositionReport};
use node_lib::control::snapshot::{ClientPort, NodeRole, View};

use crate::names::Names;
use crate::text::{known, span};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();

pub(super) fn table(names: &Names, daemon: &str, topics: &Topics, view: &View) -> String {
    let node = &view.node;
    let problems: &[HealthProblem] = topics.problems.as_deref().unwrap_or_default();
    let role = match node.role {
        NodeRole::Obu => "OBU",
        NodeRole::Rsu => "RSU",
        _ => "node",
    };
    let (style, word) = match problems.first() {
        None => (GOOD, "well"),
        Some(problem) if problem.is_fatal => (BAD, "ill"),
        Some(_) => (WARN, "well, with problems"),
    };
    let mut text = format!(
        "{role} {} ({daemon}): {style}{word}{style:#}, up {}, boot {}\n",
        names.node(node.id),
        span(view.uptime_ms),
        known(node.boot)
    );
    if let Some(attached) = &node.attached {
        let way = if attached.upstream == attached.rsu {
            "heard directly".to_owned()
        } else {
            format!("via {}", names.node(attached.upstream))
        };
        text += &format!(
            "  attached  RSU {}, {way}, {} hops, for {}, heard {} ago{}\n",
            names.node(attached.rsu),
            attached.hops,
            span(attached.since_ms),
            span(attached.heard_ms),
            if attached.is_acknowledged { "" } else { ", clients not acknowledged" }
        );
    } else if node.role == NodeRole::Obu {
        text += "  attached  to no RSU\n";
    }
    if let Some(standby) = &node.standby {
        let word = if standby.is_acknowledged { "expects us" } else { "is being told" };
        text += &format!("  standby   RSU {}, {word}\n", names.node(standby.rsu));
    }
    let ethertype = node.air.as_ref().map(|air| format!("{:#06x}", air.ethertype));
    for (what, interface, more) in [
        ("radio", &view.radio, format!(", EtherType {}", known(ethertype))),
        ("tap", &view.tap, String::new()),
    ] {
        let state = if interface.is_up { "up" } else { "down" };
        // The loop does not know that of its TAP.
        let mac = interface.mac.map_or_else(String::new, |mac| format!(", MAC {mac}"));
        text += &format!(
            "  {what:<9} {} {state}{mac}, MTU {}{more}\n",
            interface.name,
            known(interface.mtu_bytes)
        );
    }
    if let Some(position) = &topics.position {
        text += &format!("  position  {}\n", place(position));
    }
    let behind = node.clients.iter().filter(|client| client.port == ClientPort::Tap).count();
    text += &format!(
        "  around    {} neighbours, {} RSUs, {} OBUs, {} clients ({behind} on the TAP)\n",
        node.neighbours.len(),
        node.routes.len(),
        node.obus.len(),
        node.clients.len()
    );
    for problem in problems {
        let style = if problem.is_fatal { BAD } else { WARN };
        // How often and when last goes on while it is watched, and is told no more.
        let since = problem.noticed.map(|noticed| {
            let ago = topics.at_unix_ms.saturating_sub(noticed.since_unix_ms);
            format!("; first noticed {} ago", span(ago))
        });
        let since = since.unwrap_or_default();
        text += &format!(
            "{style}problem{style:#}: {}{since}\n  cure: {}\n",
            problem.text, problem.cure
        );
    }
    text
}

/// Where it is, or why that is not known.
fn place(position: &PositionReport) -> String {
    let PositionReport { source, state, fix, age_ms, fault, .. } = position;
    let age = age_ms.map(|age| format!(", {} old", span(age))).unwrap_or_default();
    let fault = fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default();
    match fix {
        Some(fix) => format!("{}{age} ({source}{fault})", known_place(fix)),
        None => format!("not known: {state}{age} ({source}{fault})"),
    }
}

fn known_place(fix: &Fix) -> String {
    // Seven decimals are a centimetre.
    let mut text = format!("{:.7}, {:.7}", fix.latitude_deg, fix.longitude_deg);
    for (figure, decimals, before, after) in [
        (fix.accuracy_m, 1, " ± ", " m"),
        (fix.altitude_hae_m, 1, ", ", " m high (WGS 84)"),
        (fix.altitude_msl_m, 1, ", ", " m above the sea"),
        (fix.speed_mps, 1, ", ", " m/s"),
        (fix.track_deg, 0, " towards ", "°"),
    ] {
        if let Some(figure) = figure {
            text += &format!("{before}{figure:.decimals$}{after}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use control_socket::position::PositionState;

    use super::*;

    fn said(position: Option<PositionReport>) -> String {
        let topics = Topics { position, ..Topics::default() };
        let text = table(&Names::default(), "obu0", &topics, &View::default());
        text.lines().filter(|line| line.starts_with("  position")).collect()
    }

    #[test]
    fn a_place_is_told_with_its_age_or_why_it_is_not_known() {
        let source = "gpsd://127.0.0.1:2947".to_owned();
        let fix = Fix {
            latitude_deg: 48.137_154,
            longitude_deg: -11.5,
            altitude_msl_m: Some(519.06),
            speed_mps: Some(13.9),
            track_deg: Some(87.25),
            accuracy_m: Some(3.2),
            ..Fix::default()
        };
        let (state, age_ms) = (PositionState::Known, Some(250));
        let position =
            PositionReport { source, state, fix: Some(fix), age_ms, ..PositionReport::default() };
        assert_eq!(
            said(Some(position.clone())),
            "  position  48.1371540, -11.5000000 ± 3.2 m, 519.1 m above the sea, 13.9 m/s towards \
             87°, 250 ms old (gpsd://127.0.0.1:2947)"
        );
        let state = PositionState::TooOld;
        let fault = Some("it closed the connection".to_owned());
        let lost =
            PositionReport { state, fix: None, age_ms: Some(12_000), fault, ..position.clone() };
        assert_eq!(
            said(Some(lost)),
            "  position  not known: the last fix is too old, 12 s old (gpsd://127.0.0.1:2947: it \
             closed the connection)"
        );
        let source = "fixed".to_owned();
        let fixed = PositionReport {
            source,
            state: PositionState::Known,
            fix: Some(Fix::default()),
            ..PositionReport::default()
        };
        assert_eq!(said(Some(fixed)), "  position  0.0000000, 0.0000000 (fixed)");
        assert_eq!(said(None), "", "nobody was asked");
    }
}
