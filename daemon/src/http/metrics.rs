//! `/metrics`: what a [`View`] has, as Prometheus reads it. `docs/http.md` lists every name; names
//! and labels stay as they are.
//!
//! Counters of the node and of its interfaces are sorted into few names by direction, kind and
//! reason to drop, by how they are called: a new counter is there by itself.

use std::fmt;

use control_socket::message::Topics;
use control_socket::record::GapTally;
use node_lib::control::snapshot::{ClientPort, Counts, NodeRole, ObuStanding, View};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

pub(super) use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// All of it, of a daemon with this name.
pub(super) fn text(name: &str, topics: &Topics, gaps: GapTally) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape::of(name, topics, gaps)));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

/// A name, its kind, and a value for each set of labels.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    is_counter: bool,
    values: Vec<(Labels, f64)>,
}

type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
struct Scrape {
    families: Vec<Family>,
    gaps: GapTally,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Family { name, help, is_counter, values } in &self.families {
            let kind = if *is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, value) in values {
                let mut metric = metric.encode_family(labels)?;
                match (is_counter, whole(*value)) {
                    (true, Some(value)) => {
                        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)?
                    }
                    (true, None) => metric.encode_counter::<NoLabelSet, _, f64>(value, None)?,
                    (false, Some(value)) => metric.encode_gauge(&value)?,
                    (false, None) => metric.encode_gauge(value)?,
                }
            }
        }
        let help = "Time without a believed way at a change of upstream, once it was settled";
        let histogram = MetricType::Histogram;
        let name = "v2x_hand_over_gap_seconds";
        let mut metric = encoder.encode_descriptor(name, help, None, histogram)?;
        // The last one, of all that are longer, is added by the encoder.
        let below = self.gaps.classes().filter(|(most, _)| *most < u64::MAX);
        let buckets: Vec<_> = below.map(|(most, count)| (seconds(most), count)).collect();
        let (sum, count) = (seconds(self.gaps.sum_ms), self.gaps.count());
        metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

/// What has no fraction is written without one.
fn whole(value: f64) -> Option<u64> {
    // Above, not every whole number has a value of its own, and below none is lost.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && (0.0..EXACT_MAX).contains(&value)).then_some(value as u64)
}

#[expect(clippy::cast_precision_loss, reason = "2⁵³ ms are 285,000 years")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "beyond 2⁵³ nobody sees the last digit")]
fn number(count: u64) -> f64 {
    count as f64
}

fn size(count: usize) -> f64 {
    number(u64::try_from(count).unwrap_or(u64::MAX))
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

impl Scrape {
    fn of(name: &str, topics: &Topics, gaps: GapTally) -> Self {
        let empty = View::default();
        let view = topics.view.as_ref().unwrap_or(&empty);
        let mut families = Vec::new();
        node(name, topics, view, &mut families);
        position(topics, &mut families);
        around(view, &mut families);
        counters(view, &mut families);
        Self { families, gaps }
    }
}

fn gauge(name: &'static str, help: &'static str, values: Vec<(Labels, f64)>) -> Family {
    Family { name, help, is_counter: false, values }
}

fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, help, is_counter: true, values: Vec::new() }
}

fn plain(value: f64) -> Vec<(Labels, f64)> {
    vec![(Vec::new(), value)]
}

fn node(name: &str, topics: &Topics, view: &View, families: &mut Vec<Family>) {
    let node = &view.node;
    let role = match node.role {
        NodeRole::Obu => "obu",
        NodeRole::Rsu => "rsu",
        _ => "other",
    };
    let labels = vec![
        ("node", node.id.to_string()),
        ("role", role.to_owned()),
        ("name", name.to_owned()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let problems: &[_] = topics.problems.as_deref().unwrap_or_default();
    let is_healthy = !problems.iter().any(|problem| problem.is_fatal);
    let mut kinds: Vec<_> = problems.iter().map(|problem| problem.kind.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    families.extend([
        gauge("v2x_node_info", "Who it is; always 1", vec![(labels, 1.0)]),
        gauge("v2x_uptime_seconds", "Since the loop began", plain(seconds(view.uptime_ms))),
        gauge(
            "v2x_boot_count",
            "Starts of this node, or the time of day of this one",
            node.boot.map(|boot| plain(f64::from(boot))).unwrap_or_default(),
        ),
        gauge("v2x_healthy", "1: no problem keeps everything back", plain(flag(is_healthy))),
        gauge(
            "v2x_problem",
            "1 for each kind of problem there is now",
            kinds.into_iter().map(|kind| (vec![("kind", kind)], 1.0)).collect(),
        ),
        gauge(
            "v2x_interface_up",
            "1: what is sent there can arrive",
            [("radio", &view.radio), ("tap", &view.tap)]
                .map(|(device, interface)| {
                    (vec![("device", device.to_owned())], flag(interface.is_up))
                })
                .into(),
        ),
        gauge("v2x_radio_full", "1: frames wait for the radio", plain(flag(view.is_radio_full))),
    ]);
}

/// Nothing has a value where nobody was asked, and places none while it is not known.
fn position(topics: &Topics, families: &mut Vec<Family>) {
    let position = topics.position.as_ref();
    let fix = position.and_then(|position| position.fix.as_ref());
    let maybe = |value: Option<f64>| value.map(plain).unwrap_or_default();
    let reports = counter("v2x_position_reports", "Reports of a position, or that there is no fix");
    let bad = counter("v2x_position_bad_lines", "Lines of the source that were dropped");
    families.extend([
        gauge(
            "v2x_position_known",
            "1: it is known where the node is",
            maybe(position.map(|_| flag(fix.is_some()))),
        ),
        gauge(
            "v2x_position_latitude_degrees",
            "North is positive",
            maybe(fix.map(|fix| fix.latitude_deg)),
        ),
        gauge(
            "v2x_position_longitude_degrees",
            "East is positive",
            maybe(fix.map(|fix| fix.longitude_deg)),
        ),
        gauge(
            "v2x_position_accuracy_meters",
            "Estimated horizontal error",
            maybe(fix.and_then(|fix| fix.accuracy_m)),
        ),
        gauge(
            "v2x_position_age_seconds",
            "Since the last fix came",
            maybe(position.and_then(|position| position.age_ms).map(seconds)),
        ),
        Family { values: maybe(position.map(|position| number(position.reports))), ..reports },
        Family { values: maybe(position.map(|position| number(position.bad_lines))), ..bad },
    ]);
}

fn around(view: &View, families: &mut Vec<Family>) {
    let node = &view.node;
    let clients = [("tap", ClientPort::Tap), ("obu", ClientPort::Obu)].map(|(name, port)| {
        let count = node.clients.iter().filter(|client| client.port == port).count();
        (vec![("port", name.to_owned())], size(count))
    });
    let standings = [ObuStanding::Attached, ObuStanding::Standby, ObuStanding::Gone];
    let obus = standings.map(|standing| {
        let count = node.obus.iter().filter(|obu| obu.standing == standing).count();
        (vec![("standing", standing.to_string())], size(count))
    });
    families.extend([
        gauge("v2x_neighbours", "Nodes in radio range", plain(size(node.neighbours.len()))),
        gauge("v2x_clients", "MAC addresses known, by where they are", clients.into()),
    ]);
    if node.role == NodeRole::Rsu {
        families.push(gauge("v2x_obus", "OBUs this RSU knows", obus.into()));
    }
    if node.role != NodeRole::Obu {
        return;
    }
    let used = node.routes.iter().flat_map(|route| {
        route
            .candidates
            .iter()
            .filter(|candidate| candidate.is_used)
            .map(move |candidate| (route, candidate))
    });
    let attached = node.attached.as_ref();
    let used = attached.and_then(|attached| {
        used.into_iter().find(|(route, _)| route.rsu == attached.rsu).map(|(_, used)| used)
    });
    let usable = node.routes.iter().flat_map(|route| &route.candidates);
    let usable = usable.filter(|candidate| candidate.obstacles.is_empty()).count();
    let maybe = |value: Option<f64>| value.map(plain).unwrap_or_default();
    families.extend([
        gauge(
            "v2x_children",
            "Neighbours that send through this OBU",
            plain(size(node.children.len())),
        ),
        gauge("v2x_rsus", "RSUs this OBU knows", plain(size(node.routes.len()))),
        gauge(
            "v2x_candidates_usable",
            "Neighbours that could be upstream now, over all RSUs",
            plain(size(usable)),
        ),
        gauge("v2x_attached", "1: this OBU has an upstream", plain(flag(attached.is_some()))),
        gauge(
            "v2x_attached_acknowledged",
            "1: the RSU has acknowledged all clients",
            maybe(attached.map(|attached| flag(attached.is_acknowledged))),
        ),
        gauge(
            "v2x_attached_hops",
            "Radio hops to the RSU",
            maybe(attached.map(|attached| f64::from(attached.hops))),
        ),
        gauge(
            "v2x_upstream_cost",
            "Expected transmissions to the RSU",
            maybe(used.map(|used| used.cost)),
        ),
        gauge(
            "v2x_upstream_signal_dbm",
            "How strong the upstream comes in, where the radio tells",
            maybe(used.and_then(|used| used.signal_dbm)),
        ),
    ]);
}

/// Sorts counters by how they are called.
fn counters(view: &View, families: &mut Vec<Family>) {
    let groups = &view.counters;
    let mut sent = counter("v2x_control_sent", "Control frames sent, by message");
    let mut received = counter("v2x_control_received", "Control frames heard, by message");
    let mut frames = counter("v2x_control_frames", "Control frames on the radio");
    let mut bytes = counter("v2x_control_bytes", "Bytes in them, Ethernet header included");
    let mut data = counter("v2x_data_frames", "Data frames passed on, by way");
    let mut drops = counter("v2x_drops", "Frames the node dropped, by reason");
    let mut other = counter("v2x_node_events", "Whatever else the node counts");
    let mut gap =
        counter("v2x_gap_seconds", "Time without a believed way, all hand-overs together");
    let mut longest = gauge("v2x_gap_longest_seconds", "The longest of them", Vec::new());
    for (name, count) in &groups.node.0 {
        let (name, count) = (name.as_ref(), number(*count));
        let labelled = |label, value: &str| (vec![(label, value.to_owned())], count);
        match name {
            "ctl_tx_frames" => frames.values.push(labelled("direction", "tx")),
            "ctl_rx_frames" => frames.values.push(labelled("direction", "rx")),
            "ctl_rx_bytes" => bytes.values.push(labelled("direction", "rx")),
            "ctl_tx_bytes" => bytes.values.push(labelled("direction", "tx")),
            "tap_to_wire" => data.values.push(labelled("way", "tap-to-radio")),
            "wire_to_tap" => data.values.push(labelled("way", "radio-to-tap")),
            "relayed" => data.values.push(labelled("way", "relayed")),
            "flood_relayed" => data.values.push(labelled("way", "flood-relayed")),
            "gap_sum_us" => gap.values = plain(count / 1e6),
            "gap_max_us" => longest.values = plain(count / 1e6),
            // Parts of clients' frames.
            "fragments_tx" | "fragments_rx" => other.values.push(labelled("kind", name)),
            _ => match (name.rsplit_once('_'), name.strip_prefix("drop_")) {
                (Some((message, "tx")), _) => sent.values.push(labelled("kind", message)),
                (Some((message, "rx")), _) => received.values.push(labelled("kind", message)),
                (_, Some(reason)) => drops.values.push(labelled("reason", reason)),
                _ => other.values.push(labelled("kind", name)),
            },
        }
    }
    families.extend([sent, received, frames, bytes, data, drops, other, gap, longest]);
    let mut frames = counter("v2x_device_frames", "Frames of an interface");
    let mut bytes = counter("v2x_device_bytes", "Bytes in them");
    let mut drops =
        counter("v2x_device_drops", "Frames an interface dropped, by direction and reason");
    let mut other = counter("v2x_device_events", "Whatever else an interface counts");
    for (device, Counts(counts)) in [("radio", &groups.radio), ("tap", &groups.tap)] {
        for (name, count) in counts {
            let device = ("device", device.to_owned());
            let (direction, what) = name.split_once('_').unwrap_or(("", name));
            let directed = ("direction", direction.to_owned());
            let count = number(*count);
            match what {
                "frames" => frames.values.push((vec![device, directed], count)),
                "bytes" => bytes.values.push((vec![device, directed], count)),
                _ if is_drop(name) => {
                    let reason = ("reason", what.replace("kernel_drops", "kernel"));
                    drops.values.push((vec![device, directed, reason], count));
                }
                _ => other.values.push((vec![device, ("kind", name.to_string())], count)),
            }
        }
    }
    families.extend([frames, bytes, drops, other]);
    let mut runtime = counter(
        "v2x_runtime_events",
        "Bundles, waiting for the radio, looking for answers, signal",
    );
    let of_loop = groups.iter().filter(|(group, _)| !matches!(*group, "node" | "radio" | "tap"));
    for (group, Counts(counts)) in of_loop {
        for (name, count) in counts {
            let labels = vec![("group", group.to_owned()), ("kind", name.to_string())];
            runtime.values.push((labels, number(*count)));
        }
    }
    families.push(runtime);
}

/// A counter of a device that counts frames dropped.
fn is_drop(name: &str) -> bool {
    matches!(
        name,
        "rx_foreign"
            | "rx_tagged"
            | "rx_own"
            | "rx_oversize"
            | "rx_kernel_drops"
            | "rx_malformed"
            | "tx_down"
            | "tx_full"
            | "tx_oversize"
            | "tx_short"
            | "tx_errors"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

    use std::collections::BTreeSet;

    use control_socket::health::HealthProblem;
    use control_socket::position::{Fix, PositionReport, PositionState};
    use node_lib::NodeId;
    use node_lib::control::counters::Counters;
    use node_lib::control::snapshot::{Attached, Groups, Snapshot};
    use node_lib::{Mac, device};

    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/http.md");

    fn view(role: NodeRole) -> View {
        let mut view = View::default();
        let id = NodeId([2, 0, 0, 0, 0, 9]);
        view.node = Snapshot::of(id, role);
        view.node.boot = Some(7);
        let mut groups = Groups::default();
        groups.node = Counters {
            drop_no_route: 3,
            probe_tx: 5,
            answer_rx: 4,
            fragments_tx: 6,
            gap_sum_us: 170_500,
            ..Counters::default()
        }
        .iter()
        .collect();
        groups.radio = device::DeviceCounters::default().iter().collect();
        groups.bundles = [("tx_bundles", 4)].into_iter().collect();
        view.counters = groups;
        view
    }

    fn scraped(role: NodeRole) -> String {
        let mut view = view(role);
        if role == NodeRole::Obu {
            let id = view.node.id;
            view.node.attached = Some(Attached {
                rsu: id,
                upstream: id,
                upstream_mac: Mac(id.0),
                hops: 2,
                since_ms: 1,
                heard_ms: 1,
                mtu_bytes: 1500,
                is_acknowledged: true,
                is_unanswered: false,
                is_doubted: false,
            });
        }
        let problem = HealthProblem {
            kind: "no-lan".to_owned(),
            text: String::new(),
            cure: String::new(),
            is_fatal: true,
            noticed: None,
        };
        let topics =
            Topics { view: Some(view), problems: Some(vec![problem]), ..Topics::default() };
        let mut gaps = GapTally::default();
        for gap in [0, 170, 5000] {
            gaps.note(gap);
        }
        text("obu0", &topics, gaps).unwrap()
    }

    #[test]
    fn values_have_the_names_that_are_promised() {
        let text = scraped(NodeRole::Obu);
        for line in [
            "v2x_node_info{node=\"02:00:00:00:00:09\",role=\"obu\",name=\"obu0\",\
             version=\"0.1.0\"} 1",
            "v2x_healthy 0",
            "v2x_problem{kind=\"no-lan\"} 1",
            "v2x_attached_hops 2",
            "v2x_drops_total{reason=\"no_route\"} 3",
            "v2x_control_sent_total{kind=\"probe\"} 5",
            "v2x_control_received_total{kind=\"answer\"} 4",
            "v2x_node_events_total{kind=\"fragments_tx\"} 6",
            "v2x_gap_seconds_total 0.1705",
            "v2x_device_drops_total{device=\"radio\",direction=\"rx\",reason=\"kernel\"} 0",
            "v2x_device_frames_total{device=\"radio\",direction=\"tx\"} 0",
            "v2x_runtime_events_total{group=\"bundles\",kind=\"tx_bundles\"} 4",
            "v2x_hand_over_gap_seconds_bucket{le=\"0\"} 1",
            "v2x_hand_over_gap_seconds_bucket{le=\"0.2\"} 2",
            "v2x_hand_over_gap_seconds_bucket{le=\"1\"} 2",
            "v2x_hand_over_gap_seconds_bucket{le=\"+Inf\"} 3",
            "v2x_hand_over_gap_seconds_sum 5.17",
            "v2x_hand_over_gap_seconds_count 3",
        ] {
            assert!(text.lines().any(|said| said == line), "{line} is not in:\n{text}");
        }
    }

    #[test]
    fn a_place_has_values_only_while_it_is_known() {
        let fix = Fix { latitude_deg: -33.9, longitude_deg: 151.0, ..Fix::default() };
        let known = PositionReport {
            state: PositionState::Known,
            fix: Some(fix),
            age_ms: Some(250),
            reports: 7,
            bad_lines: 2,
            ..PositionReport::default()
        };
        let lost = PositionReport {
            state: PositionState::TooOld,
            fix: None,
            age_ms: Some(5001),
            ..known.clone()
        };
        let values = |position: Option<PositionReport>| {
            let topics = Topics { position, ..Topics::default() };
            let text = text("obu0", &topics, GapTally::default()).unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix("v2x_position_"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            values(Some(known)),
            [
                "known 1",
                "latitude_degrees -33.9",
                "longitude_degrees 151",
                "age_seconds 0.25",
                "reports_total 7",
                "bad_lines_total 2"
            ]
        );
        assert_eq!(
            values(Some(lost)),
            ["known 0", "age_seconds 5.001", "reports_total 7", "bad_lines_total 2"]
        );
        assert_eq!(values(None), [""; 0]);
    }

    /// Every name has its line in the document, with its kind, and no other has.
    #[test]
    fn the_document_lists_every_metric_and_no_other() {
        let mut told = BTreeSet::new();
        for role in [NodeRole::Obu, NodeRole::Rsu] {
            for line in scraped(role).lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
                let (name, kind) = line.split_once(' ').unwrap();
                told.insert((name.to_owned(), kind.to_owned()));
            }
        }
        let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `v2x_"));
        let listed: BTreeSet<_> = rows
            .map(|row| {
                let cells: Vec<_> = row.split('|').map(str::trim).collect();
                (format!("v2x_{}", cells[0].trim_end_matches('`')), cells[1].to_owned())
            })
            .collect();
        assert_eq!(told, listed);
    }

    /// Nothing that a node or its interfaces count is left out.
    #[test]
    fn every_counter_is_told() {
        let view = view(NodeRole::Obu);
        let scrape = Scrape::of(
            "obu0",
            &Topics { view: Some(view.clone()), ..Topics::default() },
            GapTally::default(),
        );
        let counted = |name: &str| {
            let told = scrape.families.iter().filter(|family| family.name.starts_with(name));
            told.map(|family| family.values.len()).sum::<usize>()
        };
        let of_node = ["v2x_control_", "v2x_data_", "v2x_drops", "v2x_node_events", "v2x_gap_"];
        let told: usize = of_node.iter().map(|name| counted(name)).sum();
        assert_eq!(told, view.counters.node.0.len());
        assert_eq!(counted("v2x_device_"), view.counters.radio.0.len());
        let reasons = scrape.families.iter().find(|family| family.name == "v2x_drops").unwrap();
        let drops = view.counters.node.0.iter().filter(|(name, _)| name.starts_with("drop_"));
        assert_eq!(reasons.values.len(), drops.count());
    }
}
