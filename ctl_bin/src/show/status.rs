//! `status`: who it is, and whether it is well.

use anstyle::{AnsiColor, Style};
use control_socket::health::Problem;
use control_socket::message::Topics;
use node_lib::control::snapshot::{Port, Role, View};

use crate::names::Names;
use crate::text::{known, span};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();

pub(super) fn table(names: &Names, daemon: &str, topics: &Topics, view: &View) -> String {
    let node = &view.node;
    let problems: &[Problem] = topics.problems.as_deref().unwrap_or_default();
    let role = match node.role {
        Role::Obu => "OBU",
        Role::Rsu => "RSU",
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
    } else if node.role == Role::Obu {
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
        text += &format!(
            "  {what:<9} {} {state}, MAC {}, MTU {}{more}\n",
            interface.name,
            known(interface.mac),
            known(interface.mtu_bytes)
        );
    }
    let behind = node.clients.iter().filter(|client| client.port == Port::Tap).count();
    text += &format!(
        "  around    {} neighbours, {} RSUs, {} OBUs, {} clients ({behind} on the TAP)\n",
        node.neighbours.len(),
        node.routes.len(),
        node.obus.len(),
        node.clients.len()
    );
    for problem in problems {
        let style = if problem.is_fatal { BAD } else { WARN };
        text += &format!("{style}problem{style:#}: {}\n  cure: {}\n", problem.text, problem.cure);
    }
    text
}
