//! Who is around, and through whom to send: `neighbors`, `upstreams`, `routes`, `rsus`, `radio`.

use control_socket::health::why_not;
use node_lib::control::snapshot::{
    KnownCandidate, KnownNeighbour, KnownRoute, NodeRole, Obstacle, RouteStanding, View,
};

use crate::names::Names;
use crate::text::{UNKNOWN, decimals, known, percent, place, place_age, table};

pub(super) fn neighbors(names: &Names, view: &View) -> String {
    let rows = view.node.neighbours.iter().map(|neighbour| {
        let KnownNeighbour { id, mac, .. } = neighbour;
        let mark = match neighbour {
            _ if neighbour.is_upstream => "*",
            _ if neighbour.is_child => "<",
            // A table that says nothing of proofs is that of an RSU.
            KnownNeighbour { proven_ms: None, unanswered: Some(1..), .. } => "!",
            _ => "",
        };
        vec![
            mark.to_owned(),
            names.node(*id),
            mac.to_string(),
            neighbour.heard_ms.to_string(),
            percent(neighbour.loss_rx_ratio),
            percent(neighbour.loss_round_trip_ratio),
            decimals(neighbour.round_trip_us.map(|us| f64::from(us) / 1000.0), 1),
            decimals(neighbour.signal_dbm, 0),
            decimals(neighbour.signal_ahead_dbm, 0),
            known(neighbour.proven_ms),
            known(neighbour.unanswered),
            decimals(neighbour.link_cost, 2),
            known(neighbour.boot),
            place(neighbour.position.as_ref()),
            place_age(neighbour.position.as_ref()),
        ]
    });
    let header = [
        "",
        "node",
        "mac",
        "heard_ms",
        "loss_rx_%",
        "loss_rt_%",
        "rtt_ms",
        "signal_dbm",
        "ahead_dbm",
        "proven_ms",
        "unanswered",
        "cost",
        "boot",
        "position",
        "position_ms",
    ];
    table(&header, 3, rows.collect())
        + "* upstream, < sends through us, ! hears us not, for all we know\n"
}

/// `without_way`: neighbours that stand in none of the routes.
pub(super) fn upstreams<'a>(
    names: &Names,
    routes: &[KnownRoute],
    without_way: impl Iterator<Item = &'a KnownNeighbour>,
) -> String {
    let ways = routes.iter().flat_map(|route| {
        route.candidates.iter().map(move |candidate| way(names, route, candidate))
    });
    let rows: Vec<_> = ways.chain(without_way.map(|near| no_way(names, near))).collect();
    let header = [
        "",
        "rsu",
        "via",
        "state",
        "hops",
        "cost",
        "its",
        "link",
        "relay",
        "margin",
        "needed",
        "better_ms",
        "heard_%",
        "strain",
        "signal_dbm",
        "ahead_dbm",
        "heard_ms",
        "proven_ms",
    ];
    table(&header, 4, rows) + "* in use, + standby, ! not usable\n"
}

/// A row of `upstreams`.
fn way(names: &Names, route: &KnownRoute, candidate: &KnownCandidate) -> Vec<String> {
    let KnownCandidate { id, obstacles, .. } = candidate;
    let mark = match route.standing {
        _ if !obstacles.is_empty() => "!",
        RouteStanding::InUse if candidate.is_used => "*",
        RouteStanding::Standby if candidate.is_used => "+",
        _ => "",
    };
    vec![
        mark.to_owned(),
        names.node(route.rsu),
        names.node(*id),
        if obstacles.is_empty() { "usable".to_owned() } else { listed(obstacles) },
        candidate.hops.to_string(),
        format!("{:.2}", candidate.cost),
        format!("{:.2}", candidate.advertised_cost),
        format!("{:.2}", candidate.link_cost),
        format!("{:.2}", candidate.relay_cost),
        decimals(candidate.margin, 2),
        decimals(candidate.margin_needed, 2),
        known(candidate.better_for_ms),
        percent(candidate.heard_ratio),
        format!("{:.2}", candidate.strain_nat),
        decimals(candidate.signal_dbm, 0),
        decimals(candidate.signal_ahead_dbm, 0),
        candidate.heard_ms.to_string(),
        known(candidate.proven_ms),
    ]
}

/// A row of `upstreams`, of a neighbour that leads to no RSU.
fn no_way(names: &Names, near: &KnownNeighbour) -> Vec<String> {
    let unknown = || UNKNOWN.to_owned();
    vec![
        "!".to_owned(),
        unknown(),
        names.node(near.id),
        listed(&near.obstacles()),
        unknown(),
        unknown(),
        unknown(),
        decimals(near.link_cost, 2),
        unknown(),
        unknown(),
        unknown(),
        unknown(),
        percent(near.loss_rx_ratio.map(|lost| 1.0 - lost)),
        unknown(),
        decimals(near.signal_dbm, 0),
        decimals(near.signal_ahead_dbm, 0),
        near.heard_ms.to_string(),
        known(near.proven_ms),
    ]
}

fn listed(obstacles: &[Obstacle]) -> String {
    obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) fn routes(names: &Names, view: &View) -> String {
    if view.node.role == NodeRole::Rsu {
        let rows = view.node.obus.iter().map(|obu| {
            let hops = obu.way.as_ref().map(|way| way.len() + 1);
            let way = obu.way.as_ref().map(|way| {
                let relays: Vec<_> = way.iter().map(|relay| names.node(*relay)).collect();
                if relays.is_empty() { "direct".to_owned() } else { relays.join(" > ") }
            });
            vec![names.node(obu.id), way.unwrap_or_else(|| "no way".to_owned()), known(hops)]
        });
        return table(&["obu", "way", "hops"], 2, rows.collect());
    }
    let rows = view.node.routes.iter().map(|route| {
        vec![
            names.node(route.rsu),
            route.upstream.map_or_else(|| UNKNOWN.to_owned(), |via| names.node(via)),
            route.standing.to_string(),
            known(route.hops),
            route.heard_ms.to_string(),
            route.seq.to_string(),
        ]
    });
    table(&["rsu", "via", "standing", "hops", "heard_ms", "seq"], 3, rows.collect())
}

pub(super) fn rsus(names: &Names, view: &View) -> String {
    let node = &view.node;
    if node.role == NodeRole::Rsu {
        return format!("this is an RSU: {}\n", names.node(node.id));
    }
    let rows = node.routes.iter().map(|route| {
        let why = match route.standing {
            RouteStanding::Quiet | RouteStanding::NoUpstream => {
                let text = why_not(route);
                text.split_once(": ").map_or(text.clone(), |(_, why)| why.to_owned())
            }
            // The standing says it.
            _ => UNKNOWN.to_owned(),
        };
        vec![
            names.node(route.rsu),
            route.standing.to_string(),
            why,
            known(route.hops),
            route.heard_ms.to_string(),
            route.interval_ms.to_string(),
            route.obus.to_string(),
            route.boot.to_string(),
            route.seq.to_string(),
            known(route.shunned_for_ms),
            if route.is_contested { "yes" } else { "no" }.to_owned(),
            place(route.position.as_ref()),
            place_age(route.position.as_ref()),
        ]
    });
    let header = [
        "rsu",
        "standing",
        "why",
        "hops",
        "heard_ms",
        "interval_ms",
        "obus",
        "boot",
        "seq",
        "shunned_ms",
        "contested",
        "position",
        "position_ms",
    ];
    table(&header, 3, rows.collect())
}

pub(super) fn radio(names: &Names, view: &View) -> String {
    let (radio, air) = (&view.radio, view.node.air.as_ref());
    let counters = &view.counters.radio;
    let count = |name: &str| known(counters.get(name));
    let ethertypes: Vec<_> = view.other_ethertypes.iter().map(|e| format!("{e:#06x}")).collect();
    let rows = [
        ("interface", radio.name.clone()),
        ("state", if radio.is_up { "up" } else { "down" }.to_owned()),
        ("mac", known(radio.mac)),
        ("mtu_bytes", known(radio.mtu_bytes)),
        ("ethertype", known(air.map(|air| format!("{:#06x}", air.ethertype)))),
        (
            "other_ethertypes",
            if ethertypes.is_empty() { UNKNOWN.to_owned() } else { ethertypes.join(", ") },
        ),
        ("obus", known(air.and_then(|air| air.obus))),
        ("heartbeats_per_s", decimals(air.and_then(|air| air.heartbeats_per_s), 0)),
        ("is_full", known(air.and_then(|air| air.is_full))),
        ("interval_ms", known(air.and_then(|air| air.interval_ms))),
        ("busy_percent", known(air.and_then(|air| air.busy_percent))),
        ("frames_wait", view.is_radio_full.to_string()),
        ("rx_frames", count("rx_frames")),
        ("tx_frames", count("tx_frames")),
        ("rx_foreign", count("rx_foreign")),
        ("rx_oversize", count("rx_oversize")),
        ("tx_full", count("tx_full")),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        text += &format!("{name:<18}{value}\n");
    }
    if let Some(likely) = &view.alone {
        text += &format!("nobody has been heard: {likely}\n");
    }
    let told = view.node.neighbours.iter().filter_map(|n| Some((n.id, n.signal_dbm?)));
    for (id, dbm) in told {
        text += &format!("signal of {}: {dbm:.0} dBm\n", names.node(id));
    }
    text
}
