//! Who is behind a node: `clients`, `obus`, `tree`.

use node_lib::NodeId;
use node_lib::control::snapshot::{ClientPort, KnownObu, NodeRole, ObuStanding, Pinned, View};

use crate::names::Names;
use crate::text::{UNKNOWN, decimals, known, place, place_age, table};

pub(super) fn clients(names: &Names, view: &View) -> String {
    let rows = view.node.clients.iter().map(|client| {
        let port = match (client.port, client.obu) {
            (ClientPort::Obu, Some(obu)) => names.node(obu),
            _ => "tap".to_owned(),
        };
        vec![
            names.mac(client.mac),
            client.vlan.to_string(),
            port,
            match client.pinned {
                Some(Pinned { is_in_effect: true, .. }) => "pinned".to_owned(),
                Some(Pinned { obu, .. }) => format!("pinned to {}, not here", names.node(obu)),
                None if client.is_held => "held".to_owned(),
                None => UNKNOWN.to_owned(),
            },
            known(client.heard_ms),
            known(client.age_ms),
            known(client.since_ms),
        ]
    });
    table(&["mac", "vlan", "port", "state", "heard_ms", "age_ms", "since_ms"], 4, rows.collect())
}

pub(super) fn obus(names: &Names, view: &View) -> String {
    if view.node.role != NodeRole::Rsu {
        return "this is no RSU: only those know OBUs; see neighbors, and tree\n".to_owned();
    }
    let rows = view.node.obus.iter().map(|obu| {
        vec![
            names.node(obu.id),
            obu.standing.to_string(),
            names.node(obu.upstream),
            known(obu.way.as_ref().map(|way| way.len() + 1)),
            format!("{}{}", obu.clients, if obu.is_complete { "" } else { "?" }),
            obu.heard_ms.to_string(),
            decimals(obu.round_trip_us.map(|us| f64::from(us) / 1000.0), 1),
            obu.boot.to_string(),
            obu.epoch.to_string(),
            if obu.is_contested { "yes" } else { "no" }.to_owned(),
            place(obu.position.as_ref()),
            place_age(obu.position.as_ref()),
        ]
    });
    let header = [
        "obu",
        "standing",
        "upstream",
        "hops",
        "clients",
        "heard_ms",
        "rtt_ms",
        "boot",
        "epoch",
        "contested",
        "position",
        "position_ms",
    ];
    table(&header, 3, rows.collect())
}

pub(super) fn tree(names: &Names, view: &View) -> String {
    let node = &view.node;
    let mut text = String::new();
    if node.role == NodeRole::Rsu {
        text += &format!("{} (this RSU)\n", names.node(node.id));
        let mut left: Vec<&KnownObu> =
            node.obus.iter().filter(|obu| obu.standing != ObuStanding::Gone).collect();
        branch(names, node.id, 1, &mut left, &mut text);
        for obu in left {
            text += &format!("? {}, behind {}\n", names.node(obu.id), names.node(obu.upstream));
        }
        return text;
    }
    let mut depth = 0;
    let mut line = |depth: usize, what: String| text += &format!("{}{what}\n", "  ".repeat(depth));
    if let Some(attached) = &node.attached {
        line(depth, format!("{} (RSU)", names.node(attached.rsu)));
        depth += 1;
        if attached.upstream != attached.rsu {
            let between = usize::from(attached.hops).saturating_sub(2);
            if between > 0 {
                line(depth, format!("… {between} more"));
                depth += 1;
            }
            line(depth, names.node(attached.upstream));
            depth += 1;
        }
    } else {
        line(depth, UNKNOWN.to_owned());
        depth += 1;
    }
    line(depth, format!("{} (this OBU)", names.node(node.id)));
    for child in &node.children {
        line(depth + 1, names.node(child.id));
    }
    text
}

/// Those whose upstream is `of`, and all below them. Whoever has been written is taken out of
/// `left`, so it ends.
fn branch(names: &Names, of: NodeId, depth: usize, left: &mut Vec<&KnownObu>, text: &mut String) {
    let (here, rest): (Vec<_>, Vec<_>) = left.iter().partition(|obu| obu.upstream == of);
    *left = rest;
    for obu in here {
        let (indent, name) = ("  ".repeat(depth), names.node(obu.id));
        *text += &format!("{indent}{name}  {}, {} clients\n", obu.standing, obu.clients);
        branch(names, obu.id, depth + 1, left, text);
    }
}
