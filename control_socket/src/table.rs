//! What there is to see, a table each, as one JSON object: [`TableKind`]. `v2xctl -o json` prints
//! it, and the HTTP endpoint answers with it.
//!
//! What a table is asked for in particular, a change or a setting, is found in one place for all
//! its forms, and refused there: [`TableKind::narrowed`].

use node_lib::control::snapshot::{KnownRoute, Snapshot, View, span_ms};
use serde_json::{Map, Value, json};

use crate::message::{Setting, Topic, Topics};
use crate::record::{Change, GAP_CLASSES_MS};
use crate::why::rule;

/// Version of the objects. Fields may be added within one.
pub const SCHEMA: u32 = 1;

/// What there is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind<'a> {
    /// Who it is, and whether it is well.
    Status,
    /// Nodes in radio range.
    Neighbors,
    /// Through whom each RSU could be reached: figures, and why not.
    Upstreams,
    /// The way in use to each RSU, or to each OBU.
    Routes,
    /// RSUs known, and why one is not used.
    Rsus,
    /// The radio: address, load, other EtherTypes.
    Radio,
    /// MAC addresses behind the TAP, and behind OBUs.
    Clients,
    /// OBUs an RSU knows.
    Obus,
    /// The tree of upstreams, as this node knows it.
    Tree,
    /// Changes of upstream: cause, gap, losses.
    Handovers,
    /// What decides now, or what decided at the change with this number.
    Why(Option<u64>),
    /// What happened.
    Events,
    /// All that is counted, or only what begins so.
    Stats(Option<&'a str>),
    /// Settings, and where each comes from; or only the one of this name, as a flag has it or a
    /// file.
    Config(Option<&'a str>),
    /// What is logged.
    LogLevel,
    /// Whether and where the node is recorded.
    Record,
}

/// Why a table cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotThere {
    /// The daemon left out what the table is made of.
    #[error("the daemon sent no view")]
    View,
    /// No change has this number.
    #[error("no change of upstream has the number {id}; expected one of: {known}")]
    Change {
        /// The number.
        id: u64,
        /// Those there are.
        known: String,
    },
    /// Nothing of this name is set.
    #[error("{0} is not set, or there is no such setting: v2xctl config shows all that are")]
    Setting(String),
}

impl TableKind<'_> {
    /// All of them, with what decides now.
    pub const ALL: [Self; 16] = [
        Self::Status,
        Self::Neighbors,
        Self::Upstreams,
        Self::Routes,
        Self::Rsus,
        Self::Radio,
        Self::Clients,
        Self::Obus,
        Self::Tree,
        Self::Handovers,
        Self::Why(None),
        Self::Events,
        Self::Stats(None),
        Self::Config(None),
        Self::LogLevel,
        Self::Record,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Neighbors => "neighbors",
            Self::Upstreams => "upstreams",
            Self::Routes => "routes",
            Self::Rsus => "rsus",
            Self::Radio => "radio",
            Self::Clients => "clients",
            Self::Obus => "obus",
            Self::Tree => "tree",
            Self::Handovers => "handovers",
            Self::Why(_) => "why",
            Self::Events => "events",
            Self::Stats(_) => "stats",
            Self::Config(_) => "config",
            Self::LogLevel => "log-level",
            Self::Record => "record",
        }
    }

    /// What of a daemon it is made of.
    pub const fn topics(self) -> &'static [Topic] {
        match self {
            Self::Status => &[Topic::View, Topic::Problems],
            Self::Handovers => &[Topic::Changes],
            Self::Why(_) => &[Topic::View, Topic::Changes],
            Self::Events => &[Topic::Events],
            Self::Config(_) => &[Topic::Config],
            Self::LogLevel => &[Topic::Log],
            Self::Record => &[Topic::Recording],
            _ => &[Topic::View],
        }
    }

    /// Of what the daemon said, what this table shows. Every form of it is made from that, so none
    /// shows more than another.
    ///
    /// # Errors
    /// What was asked for is not there.
    pub fn narrowed(self, mut topics: Topics) -> Result<Topics, NotThere> {
        if self.topics().contains(&Topic::View) && topics.view.is_none() {
            return Err(NotThere::View);
        }
        match self {
            Self::Why(Some(id)) => topics.changes = Some(vec![change(&topics, id)?]),
            Self::Stats(Some(prefix)) => {
                if let Some(view) = &mut topics.view {
                    view.counters.retain(|name| name.starts_with(prefix));
                }
            }
            Self::Config(Some(name)) => topics.config = Some(vec![setting(&topics, name)?]),
            _ => {}
        }
        Ok(topics)
    }

    /// The object, of a daemon with this name. `topics`: as [narrowed](Self::narrowed).
    pub fn json(self, daemon: &str, topics: &Topics) -> Value {
        object(daemon, topics, self.fields(topics))
    }

    fn fields(self, topics: &Topics) -> Value {
        let empty = View::default();
        let view = topics.view.as_ref().unwrap_or(&empty);
        let node = &view.node;
        match self {
            Self::Status => status(topics, view),
            Self::Neighbors => json!({ "neighbours": node.neighbours }),
            Self::Upstreams => {
                json!({ "routes": node.routes, "without_way": without_way(node) })
            }
            Self::Rsus => json!({ "routes": node.routes }),
            Self::Routes => json!({
                "routes": node.routes.iter().map(without_candidates).collect::<Vec<_>>(),
                "obus": node.obus,
            }),
            Self::Radio => json!({
                "air": node.air,
                "radio": view.radio,
                "is_radio_full": view.is_radio_full,
                "alone": view.alone,
                "other_ethertypes": view.other_ethertypes,
                "counters": { "radio": view.counters.radio, "signal": view.counters.signal },
            }),
            Self::Clients => json!({ "clients": node.clients }),
            Self::Obus => json!({ "obus": node.obus }),
            Self::Tree => json!({
                "obus": node.obus, "children": node.children, "attached": node.attached,
            }),
            Self::Handovers => hand_overs(topics),
            Self::Why(None) => {
                let last = topics.changes.iter().flatten().next_back();
                json!({
                    "attached": node.attached,
                    "change": last.map(without_routes),
                    "rule": last.map(rule),
                    "routes": node.routes,
                    "without_way": without_way(node),
                })
            }
            Self::Why(Some(_)) => {
                let change = topics.changes.iter().flatten().next();
                json!({ "change": change, "rule": change.map(rule) })
            }
            Self::Events => json!({ "events": topics.events }),
            Self::Stats(_) => json!({ "counters": view.counters }),
            Self::Config(_) => json!({ "config": topics.config }),
            Self::LogLevel => json!({ "log": topics.log }),
            Self::Record => json!({ "recording": topics.recording }),
        }
    }
}

/// These fields, after those that every object has.
pub fn object(daemon: &str, topics: &Topics, fields: Value) -> Value {
    let mut object = Map::new();
    for (name, value) in [
        ("schema", json!(SCHEMA)),
        ("daemon", json!(daemon)),
        ("node", json!(topics.node)),
        ("role", json!(topics.role)),
        ("at_unix_ms", json!(topics.at_unix_ms)),
    ] {
        object.insert(name.to_owned(), value);
    }
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    Value::Object(object)
}

fn change(topics: &Topics, id: u64) -> Result<Change, NotThere> {
    let all = topics.changes.as_deref().unwrap_or_default();
    all.iter().find(|change| change.number == id).cloned().ok_or_else(|| {
        let numbers: Vec<_> = all.iter().map(|change| change.number.to_string()).collect();
        let known =
            if numbers.is_empty() { "there are none".to_owned() } else { numbers.join(", ") };
        NotThere::Change { id, known }
    })
}

/// A file writes the dashes of a flag as underscores.
fn setting(topics: &Topics, name: &str) -> Result<Setting, NotThere> {
    let flag = name.replace('_', "-");
    let mut all = topics.config.iter().flatten();
    let meant = all.find(|setting| setting.name == flag).cloned();
    meant.ok_or_else(|| NotThere::Setting(name.to_owned()))
}

fn status(topics: &Topics, view: &View) -> Value {
    let node = &view.node;
    let is_healthy = !topics.problems.iter().flatten().any(|problem| problem.is_fatal);
    json!({
        "is_healthy": is_healthy,
        "problems": topics.problems,
        "boot": node.boot,
        "uptime_ms": view.uptime_ms,
        "attached": node.attached,
        "standby": node.standby,
        "waits_for": node.waits_for,
        "radio": view.radio,
        "tap": view.tap,
        "air": node.air,
        "position": topics.position,
        "neighbours": node.neighbours.len(),
        "rsus": node.routes.len(),
        "obus": node.obus.len(),
        "clients": node.clients.len(),
    })
}

/// What there was to choose from stays out: `why` has it.
fn hand_overs(topics: &Topics) -> Value {
    let changes = topics.changes.as_deref().unwrap_or_default();
    let classes = gap_classes(changes).into_iter().map(|(most, count)| {
        json!({ "gap_ms_max": Some(most).filter(|most| *most < u64::MAX), "count": count })
    });
    json!({
        "changes": changes.iter().map(without_routes).collect::<Vec<_>>(),
        "histogram": classes.collect::<Vec<_>>(),
    })
}

/// How many gaps are in each of the [classes](GAP_CLASSES_MS).
pub fn gap_classes(changes: &[Change]) -> Vec<(u64, usize)> {
    let gaps: Vec<_> =
        changes.iter().filter_map(|change| change.cost.map(|cost| span_ms(cost.gap))).collect();
    let mut below = 0;
    let class = |most: &u64| {
        let so_far = gaps.iter().filter(|gap| *gap <= most).count();
        let here = so_far - below;
        below = so_far;
        (*most, here)
    };
    GAP_CLASSES_MS.iter().map(class).collect()
}

/// Neighbours that stand in no route, and why.
fn without_way(node: &Snapshot) -> Vec<Value> {
    let all = node.without_way();
    all.map(|neighbour| {
        json!({
            "id": neighbour.id,
            "mac": neighbour.mac,
            "obstacles": neighbour.obstacles(),
            "link_cost": neighbour.link_cost,
            "heard_ms": neighbour.heard_ms,
            "proven_ms": neighbour.proven_ms,
        })
    })
    .collect()
}

fn without_routes(change: &Change) -> Value {
    without(json!(change), "routes")
}

fn without_candidates(route: &KnownRoute) -> Value {
    without(json!(route), "candidates")
}

fn without(mut object: Value, field: &str) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.remove(field);
    }
    object
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use node_lib::control::snapshot::WaitsFor;

    use super::*;

    #[test]
    fn every_table_says_whose_it_is_and_has_its_own_name() {
        let topics = Topics { at_unix_ms: 7, view: Some(View::default()), ..Topics::default() };
        let mut names = Vec::new();
        for table in TableKind::ALL {
            let object = table.json("obu0", &topics);
            assert_eq!((&object["schema"], &object["daemon"]), (&json!(1), &json!("obu0")));
            assert_eq!(object["at_unix_ms"], 7, "{table:?}");
            assert!(object.as_object().is_some_and(|fields| fields.len() > 5), "{table:?}");
            names.push(table.name());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TableKind::ALL.len());
    }

    #[test]
    fn what_is_not_there_is_refused_and_what_is_there_is_named() {
        let view = Some(View::default());
        let topics = || Topics { view: view.clone(), ..Topics::default() };
        let refused = |table: TableKind<'_>| table.narrowed(topics()).map_err(|e| e.to_string());
        let said = refused(TableKind::Why(Some(7))).unwrap_err();
        assert!(said.contains("number 7") && said.contains("there are none"), "{said}");
        let said = refused(TableKind::Config(Some("speed"))).unwrap_err();
        assert!(said.starts_with("speed is not set"), "{said}");
        assert_eq!(TableKind::Status.narrowed(Topics::default()), Err(NotThere::View));
        for table in TableKind::ALL {
            assert_eq!(refused(table), Ok(topics()), "{table:?}: all of it");
        }
    }

    #[test]
    fn the_status_says_what_the_node_waits_for() {
        let mut view = View::default();
        view.node.waits_for = Some(WaitsFor { in_ms: 12, reason: "send a heartbeat".into() });
        let topics = Topics { view: Some(view), ..Topics::default() };
        let object = TableKind::Status.json("rsu0", &topics);
        assert_eq!(object["waits_for"], json!({ "in_ms": 12, "reason": "send a heartbeat" }));
        assert_eq!(TableKind::Status.json("rsu0", &Topics::default())["waits_for"], Value::Null);
    }
}
