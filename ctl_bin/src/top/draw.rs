//! What stands where on the screen. Made for 80 columns and 24 lines; more room shows more.

use control_socket::record::Change;
use node_lib::control::snapshot::{
    InterfaceState, KnownCandidate, NodeRole, RouteStanding, View, span_ms,
};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, Wrap};

use super::model::Model;
use crate::names::Names;
use crate::text::{UNKNOWN, decimals, known, percent, span, time};

/// The whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, names: &Names) {
    let [head, upstream, candidates, middle, changes, keys] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(2),
        Constraint::Min(5),
        Constraint::Length(7),
        Constraint::Length(6),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let Some(view) = &model.seen.topics.view else {
        // Why there is none says where.
        let waiting = || format!("{}: waiting for the daemon", model.seen.name);
        let why = model.seen.away.clone().unwrap_or_else(waiting);
        frame.render_widget(Paragraph::new(why).wrap(Wrap { trim: true }), head);
        frame.render_widget(keys_line(model), keys);
        return;
    };
    let [throughput, drops] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(middle);
    frame.render_widget(head_lines(model, view, names), head);
    frame.render_widget(upstream_lines(view, names), upstream);
    frame.render_widget(candidates_table(view, names, candidates), candidates);
    frame.render_widget(throughput_table(model), throughput);
    frame.render_widget(drops_table(model), drops);
    frame.render_widget(changes_table(model, names), changes);
    frame.render_widget(keys_line(model), keys);
}

fn head_lines<'a>(model: &Model, view: &View, names: &Names) -> Paragraph<'a> {
    let node = &view.node;
    let role = match node.role {
        NodeRole::Obu => "OBU",
        NodeRole::Rsu => "RSU",
        _ => "node",
    };
    let problems = model.seen.topics.problems.as_deref().unwrap_or_default();
    let (word, color) = match problems.first() {
        None => ("well", Color::Green),
        Some(problem) if problem.is_fatal => ("ill", Color::Red),
        Some(_) => ("well, with problems", Color::Yellow),
    };
    let first = Line::from(vec![
        Span::from(format!("{role} {} ({}): ", names.node(node.id), model.seen.name)),
        Span::from(word).style(Style::new().fg(color).bold()),
        Span::from(format!(", up {}, boot {}", span(view.uptime_ms), known(node.boot))),
    ]);
    let interface = |interface: &InterfaceState| {
        let state = if interface.is_up { "up" } else { "down" };
        format!("{} {state}, MTU {}", interface.name, known(interface.mtu_bytes))
    };
    let full = if view.is_radio_full { ", radio full" } else { "" };
    let second = format!("radio {}; tap {}{full}", interface(&view.radio), interface(&view.tap));
    let missed = model.seen.missed;
    let third = match (&model.seen.away, problems.first()) {
        (Some(why), _) => Line::from(why.clone()).red(),
        (None, Some(problem)) => Line::from(problem.text.clone()).fg(color),
        (None, None) if missed > 0 => Line::from(format!("{missed} changes were missed")).yellow(),
        (None, None) => Line::default(),
    };
    Paragraph::new(vec![first, Line::from(second), third])
}

fn upstream_lines<'a>(view: &View, names: &Names) -> Paragraph<'a> {
    let node = &view.node;
    let mut lines = Vec::new();
    match (&node.attached, node.role) {
        (Some(attached), _) => {
            let doubt = match (attached.is_unanswered, attached.is_doubted) {
                (true, _) => ", does not answer",
                (_, true) => ", in doubt",
                _ => "",
            };
            lines.push(Line::from(format!(
                "RSU {} via {}, {} hops, for {}, heard {} ago{doubt}",
                names.node(attached.rsu),
                names.node(attached.upstream),
                attached.hops,
                span(attached.since_ms),
                span(attached.heard_ms),
            )));
            let standby = node.standby.as_ref().map(|standby| names.node(standby.rsu));
            lines.push(Line::from(format!("standby {}", known(standby))));
        }
        (None, NodeRole::Rsu) => {
            let clients = node.clients.len();
            lines.push(Line::from(format!("{} OBUs, {clients} clients", node.obus.len())));
        }
        (None, _) => lines.push(Line::from("no upstream").red()),
    }
    Paragraph::new(lines)
}

fn titled(title: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).title(title)
}

fn table<'a>(title: &'a str, head: &[&'a str], rows: Vec<Row<'a>>, widths: &[u16]) -> Table<'a> {
    let widths = widths.iter().enumerate().map(|(index, width)| match index {
        0 => Constraint::Fill(1),
        _ => Constraint::Length(*width),
    });
    let head = Row::new(head.iter().map(|cell| Cell::from(*cell))).bold();
    Table::new(rows, widths).header(head).block(titled(title)).column_spacing(1)
}

fn candidates_table<'a>(view: &View, names: &Names, area: Rect) -> Table<'a> {
    if view.node.role == NodeRole::Rsu {
        let rows = view.node.obus.iter().map(|obu| {
            let via = obu.way.iter().flatten().map(|id| names.node(*id)).collect::<Vec<_>>();
            Row::new([
                names.node(obu.id),
                obu.standing.to_string(),
                via.join(", "),
                decimals(obu.round_trip_us.map(|us| f64::from(us) / 1000.0), 1),
            ])
        });
        let rows = rows.take(area.height.into()).collect();
        return table("vehicles", &["id", "standing", "way", "ms"], rows, &[0, 9, 34, 7]);
    }
    // Those of the RSU in use first.
    let mut routes: Vec<_> = view.node.routes.iter().collect();
    routes.sort_by_key(|route| route.standing != RouteStanding::InUse);
    let rows = routes.iter().flat_map(|route| {
        route.candidates.iter().map(|candidate| {
            let row = candidate_row(names, candidate, route.rsu);
            if candidate.is_used && route.standing == RouteStanding::InUse {
                row.bold()
            } else {
                row
            }
        })
    });
    let rows = rows.take(area.height.into()).collect();
    let head = ["candidate", "RSU", "hops", "cost", "heard%", "why not"];
    table("candidates", &head, rows, &[0, 17, 4, 6, 6, 16])
}

fn candidate_row<'a>(names: &Names, candidate: &KnownCandidate, rsu: node_lib::NodeId) -> Row<'a> {
    let why = candidate.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>();
    Row::new([
        names.node(candidate.id),
        names.node(rsu),
        candidate.hops.to_string(),
        format!("{:.2}", candidate.cost),
        percent(candidate.heard_ratio),
        if candidate.is_used { "in use".to_owned() } else { why.join(", ") },
    ])
}

fn throughput_table<'a>(model: &Model) -> Table<'a> {
    let rate = |name: &str| model.rates.of(name);
    let megabits = |name: &str| decimals(rate(name).map(|bytes| bytes * 8.0 / 1e6), 2);
    let frames = |name: &str| decimals(rate(name), 0);
    let rows = vec![
        Row::new(["radio in".into(), frames("radio.rx_frames"), megabits("radio.rx_bytes")]),
        Row::new(["radio out".into(), frames("radio.tx_frames"), megabits("radio.tx_bytes")]),
        Row::new(["from clients".into(), frames("tap.rx_frames"), megabits("tap.rx_bytes")]),
        Row::new(["to clients".into(), frames("tap.tx_frames"), megabits("tap.tx_bytes")]),
        Row::new(["relayed".into(), frames("node.relayed"), UNKNOWN.into()]),
    ];
    table("throughput", &["", "frames/s", "Mbit/s"], rows, &[0, 9, 8])
}

fn drops_table<'a>(model: &Model) -> Table<'a> {
    let drops = model.rates.drops();
    let rows = drops.into_iter().take(5).map(|(name, count, rate)| {
        let name = name.split_once('.').map_or(name, |(_, name)| name);
        Row::new([name.to_owned(), count.to_string(), decimals(rate, 1)])
    });
    table("drops", &["reason", "all", "/s"], rows.collect(), &[0, 10, 7])
}

fn changes_table<'a>(model: &Model, names: &Names) -> Table<'a> {
    let changes = model.seen.topics.changes.as_deref().unwrap_or_default();
    let row = |change: &Change| {
        let to = change.to.map_or_else(|| "none".to_owned(), |to| names.node(to.rsu));
        let via = change.to.map_or_else(String::new, |to| names.node(to.upstream));
        let cause = change.cost.map_or(change.cause, |cost| cost.cause).to_string();
        let gap = change.cost.map(|cost| span_ms(cost.gap));
        // Of the date the time of day.
        let at = time(change.at_unix_ms);
        let at = at.get(11..19).unwrap_or(&at).to_owned();
        Row::new([to, via, at, cause, known(gap), known(change.cost.map(|cost| cost.lost))])
    };
    let rows = changes.iter().rev().take(4).map(row).collect();
    let head = ["hand-over to RSU", "via", "at (UTC)", "cause", "gap ms", "lost"];
    table("hand-overs", &head, rows, &[0, 17, 8, 10, 6, 6])
}

fn keys_line<'a>(model: &Model) -> Line<'a> {
    let (place, of) = model.place;
    let another = if of > 1 { format!("   Tab: next ({}/{of})", place + 1) } else { String::new() };
    Line::from(format!("q: end{another}")).dim()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

    use control_socket::feed::News;
    use control_socket::message::Topics;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::watch::Seen;

    /// A vehicle between two road-side units, as a daemon would say it.
    fn vehicle() -> Topics {
        serde_json::from_str(include_str!("vehicle.json")).unwrap()
    }

    fn screen(model: &Model, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model, &Names::default())).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn model(topics: &Topics) -> Model {
        let mut seen = Seen { name: "obu0".to_owned(), ..Seen::default() };
        seen.take(News::Topics(Box::new(topics.clone())));
        let mut model = Model { seen, place: (0, 2), ..Model::default() };
        let mut view = topics.view.clone().unwrap();
        model.rates.note(&view);
        view.uptime_ms += 2000;
        for (name, count) in &mut view.counters.radio.0 {
            *count += if name == "rx_bytes" { 1_000_000 } else { 100 };
        }
        for (_, count) in &mut view.counters.node.0 {
            *count += 20;
        }
        model.rates.note(&view);
        model
    }

    #[test]
    fn all_of_it_fits_eighty_columns_and_twenty_four_lines() {
        let lines = screen(&model(&vehicle()), 80, 24);
        println!("{}", lines.join("\n"));
        let has = |words: &[&str]| {
            let found = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
            assert!(found, "{words:?} in\n{}", lines.join("\n"));
        };
        has(&["OBU 02:0b:00:00:00:01 (obu0): well, with problems", "up 12 min"]);
        has(&["frame too long"]);
        has(&["RSU 02:0a:00:00:00:01 via 02:0b:00:00:00:02, 2 hops, for 31 s"]);
        has(&["standby 02:0a:00:00:00:02"]);
        has(&["02:0b:00:00:00:02", "02:0a:00:00:00:01", "2.05", "100", "in use"]);
        has(&["02:0a:00:00:00:02", "1", "1.90", "90", "one-way"]);
        has(&["radio in", "50", "4.00"]);
        has(&["drop_hop_limit", "27", "10.0"]);
        has(&["02:0a:00:00:00:01", "dead", "172", "3"]);
        has(&["q: end", "Tab: next (1/2)"]);
        assert_eq!(lines.len(), 24);
    }

    #[test]
    fn it_is_drawn_in_whatever_room_there_is() {
        let model = model(&vehicle());
        for (width, height) in [(1, 1), (20, 5), (80, 10), (200, 60)] {
            let lines = screen(&model, width, height);
            assert_eq!(lines.len(), usize::from(height));
        }
        // More room shows more, and less shows the beginning.
        assert!(screen(&model, 200, 60).iter().any(|line| line.contains("hand-overs")));
    }

    #[test]
    fn a_daemon_that_is_away_says_why_and_what_was_known_stays() {
        let mut seen = Seen { name: "obu0".to_owned(), ..Seen::default() };
        let mut shown = Model { seen: seen.clone(), place: (0, 1), ..Model::default() };
        assert!(screen(&shown, 80, 24)[0].contains("waiting for the daemon"));
        seen.take(News::Topics(Box::new(vehicle())));
        let wait = std::time::Duration::from_millis(250);
        seen.take(News::Away("nobody answers".to_owned(), wait));
        shown.seen = seen;
        let lines = screen(&shown, 80, 24);
        assert!(lines[2].contains("nobody answers; next attempt in 250 ms"), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("02:0a:00:00:00:01")), "{lines:?}");
    }
}
