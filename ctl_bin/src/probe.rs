//! `ping` and `traceroute`: a daemon asks over its radio, and this program says what came of it.

use std::path::Path;
use std::time::{Duration, Instant};

use control_socket::client::{ClientError, SocketClient};
use control_socket::message::{Ask, PingAsk, Topic, Topics};
use control_socket::{path, table};
use node_lib::control::ping::Echoed;
use node_lib::control::snapshot::{Attached, NodeRole, View};
use node_lib::messages::MAX_HOPS;
use node_lib::messages::control::echo::Verdict;
use node_lib::{Mac, NodeId};
use serde_json::{Value, json};

use crate::args::{CtlCommand, Output};
use crate::names::Names;
use crate::say::{Outcome, complain, print};
use crate::tell::Teller;

/// Hops of one after the other that say nothing before a trace ends.
const SILENT_MAX: u8 = 3;

/// What is wanted of the daemon.
pub(crate) struct Asked<'a> {
    target: &'a str,
    timeout: Duration,
    how: How,
}

enum How {
    Ping { count: u32, interval: Duration },
    Trace { queries: u32 },
}

impl<'a> Asked<'a> {
    /// Of the commands this file is for.
    pub(crate) fn of(command: &'a CtlCommand) -> Option<Self> {
        Some(match command {
            CtlCommand::Ping { target, count, interval, timeout } => {
                let how = How::Ping { count: *count, interval: *interval };
                Self { target, timeout: *timeout, how }
            }
            CtlCommand::Traceroute { target, queries, timeout } => {
                Self { target, timeout: *timeout, how: How::Trace { queries: *queries } }
            }
            _ => return None,
        })
    }
}

/// A daemon that asks for us.
struct Prober<'a> {
    names: &'a Names,
    output: Output,
    client: SocketClient,
    target: Mac,
    within_ms: u16,
    /// Who the daemon is, of its last answer.
    topics: Topics,
}

/// Asks, and says what came of it.
pub(crate) fn run(
    teller: &Teller<'_>,
    socket: &Path,
    asked: Asked<'_>,
) -> Result<Outcome, ClientError> {
    let (names, output) = (teller.names, teller.output);
    let target = match names.address(asked.target) {
        Ok(target) => target,
        Err(error) => {
            complain(&error);
            return Ok(Outcome::Usage);
        }
    };
    let client = SocketClient::connect(&path::read_write(socket))?;
    let within_ms = u16::try_from(asked.timeout.as_millis()).unwrap_or(u16::MAX);
    let topics = Topics::default();
    teller.head(&client.hello().name);
    let mut prober = Prober { names, output, client, target, within_ms, topics };
    match asked.how {
        How::Ping { count, interval } => prober.ping(count, interval),
        How::Trace { queries } => prober.trace(queries),
    }
}

impl Prober<'_> {
    fn ask(&mut self, hop_limit: u8) -> Result<Option<Echoed>, ClientError> {
        let (target, within_ms) = (self.target, self.within_ms);
        let topics = self.client.ask(Ask::Ping(PingAsk { target, hop_limit, within_ms }))?;
        let answer = topics.pinged.clone().and_then(|pinged| pinged.answer);
        self.topics = topics;
        Ok(answer)
    }

    fn ping(&mut self, count: u32, interval: Duration) -> Result<Outcome, ClientError> {
        let mut times_us = Vec::new();
        let mut last = None;
        for number in 1..=count {
            let begun = Instant::now();
            let answer = self.ask(MAX_HOPS)?;
            if let Some(echoed) = answer.as_ref().filter(|echoed| is_reached(echoed.verdict)) {
                times_us.push(echoed.round_trip_us);
            }
            let said = match &answer {
                Some(echoed) => self.one_answer(number, echoed),
                None => format!("{number}: no answer within {} ms\n", self.within_ms),
            };
            self.say(&said, json!({ "number": number, "answer": answer }));
            last = answer;
            if number < count {
                std::thread::sleep(interval.saturating_sub(begun.elapsed()));
            }
        }
        let answered = u32::try_from(times_us.len()).unwrap_or(u32::MAX);
        let mut said = format!("{count} asked, {answered} answered");
        if let (Some(least), Some(most)) = (times_us.iter().min(), times_us.iter().max()) {
            let mean = times_us.iter().sum::<u64>() / u64::from(answered.max(1));
            let [least, mean, most] = [*least, mean, *most].map(millis);
            said += &format!(", {least} / {mean} / {most} ms (least, mean, most)");
        }
        said += "\n";
        let why = if answered < count { Some(self.reason(last.as_ref())?) } else { None };
        if let Some(why) = &why {
            said += &format!("likely reason: {why}\n");
        }
        self.say(&said, json!({ "asked": count, "answered": answered, "reason": why }));
        Ok(if answered > 0 { Outcome::Done } else { Outcome::Unhealthy })
    }

    fn one_answer(&self, number: u32, echoed: &Echoed) -> String {
        let by = self.node(last_of(echoed));
        let hops = echoed.path.len().saturating_sub(1);
        let said = self.verdict(echoed);
        format!("{number}: {by}, {hops} hops, {} ms{said}\n", millis(echoed.round_trip_us))
    }

    /// Hop by hop, as far as somebody answers.
    fn trace(&mut self, queries: u32) -> Result<Outcome, ClientError> {
        let name = self.names.mac(self.target);
        if self.output == Output::Table {
            print(&format!("to {name}, at most {MAX_HOPS} hops\n"));
        }
        let (mut silent, mut last) = (0, None);
        for hop_limit in 1..=MAX_HOPS {
            let (mut times, mut seen) = (Vec::new(), None);
            for _ in 0..queries {
                let answer = self.ask(hop_limit)?;
                times.push(answer.as_ref().map(|echoed| echoed.round_trip_us));
                seen = answer.or(seen);
            }
            let by = seen.as_ref().map(last_of);
            let cells = times.iter().map(|time| time.map_or("*".to_owned(), millis));
            let cells = cells.collect::<Vec<_>>().join("  ");
            let who = by.map_or_else(|| "*".to_owned(), |by| self.node(by));
            let verdict = seen.as_ref().map_or(String::new(), |echoed| self.verdict(echoed));
            let said = format!("{hop_limit:>2}  {who}  {cells} ms{verdict}\n");
            self.say(
                &said,
                json!({
                    "hop": hop_limit, "by": by, "round_trips_us": times, "answer": seen,
                }),
            );
            silent = if seen.is_some() { 0 } else { silent + 1 };
            let is_end = seen.as_ref().is_some_and(|echoed| echoed.verdict != Verdict::HopLimit);
            last = seen.or(last);
            if is_end || silent >= SILENT_MAX {
                break;
            }
        }
        if last.as_ref().is_some_and(|echoed| silent == 0 && is_reached(echoed.verdict)) {
            return Ok(Outcome::Done);
        }
        let why = self.reason(last.as_ref().filter(|_| silent == 0))?;
        self.say(&format!("not reached; likely reason: {why}\n"), json!({ "reason": why }));
        Ok(Outcome::Unhealthy)
    }

    /// Why the target was not reached, as far as the daemon and the nodes on the way can tell.
    fn reason(&mut self, last: Option<&Echoed>) -> Result<String, ClientError> {
        if let Some(echoed) = last.filter(|echoed| !is_reached(echoed.verdict)) {
            let by = last_of(echoed);
            let who = if Some(by) == echoed.path.first().copied() {
                "this node".to_owned()
            } else {
                self.node(by)
            };
            return Ok(match echoed.verdict {
                Verdict::NoRoute => format!(
                    "{who} has no way on; v2xctl upstreams there, or v2xctl obus at the RSU, says \
                     why"
                ),
                Verdict::Unknown => format!(
                    "{who} knows no such node or client: it has not spoken lately, or is elsewhere"
                ),
                _ => format!("the way is longer than {MAX_HOPS} hops, or goes round; last {who}"),
            });
        }
        let view = self.client.ask(Ask::Get(vec![Topic::View]))?.view.unwrap_or_default();
        if let Some(why) = here(&view) {
            return Ok(why);
        }
        // As far as the questions come.
        let mut reached: Option<Echoed> = None;
        for hop_limit in 1..=MAX_HOPS {
            match self.ask(hop_limit)? {
                Some(echoed) if echoed.verdict == Verdict::HopLimit => reached = Some(echoed),
                Some(echoed) if is_reached(echoed.verdict) => {
                    return Ok(
                        "single questions or answers got lost: v2xctl neighbors shows what \
                               each link loses"
                            .to_owned(),
                    );
                }
                Some(echoed) => return self.reason(Some(&echoed)),
                None => break,
            }
        }
        Ok(match reached {
            Some(echoed) => format!(
                "{} answers, and whoever comes after it does not: it is out of range or \
                 overloaded, does not know echoes (an older version), or answers more than 20 a \
                 second",
                self.node(last_of(&echoed))
            ),
            None if view.node.role == NodeRole::Rsu => {
                "the first relay or the OBU itself does not answer: v2xctl obus shows when it was \
                 last heard"
                    .to_owned()
            }
            None => {
                "the upstream does not answer: out of range, an older version, or more than 20 \
                     questions a second"
                    .to_owned()
            }
        })
    }

    fn node(&self, id: NodeId) -> String {
        self.names.node(id)
    }

    fn verdict(&self, echoed: &Echoed) -> String {
        match echoed.verdict {
            Verdict::Reached | Verdict::HopLimit => String::new(),
            Verdict::Client => format!("  ({} is its client)", self.names.mac(self.target)),
            Verdict::NoRoute => "  no way on".to_owned(),
            Verdict::Unknown => "  knows no such node or client".to_owned(),
        }
    }

    fn say(&self, text: &str, fields: Value) {
        let name = &self.client.hello().name;
        print(&match self.output {
            Output::Table => text.to_owned(),
            Output::Json => format!("{}\n", table::object(name, &self.topics, fields)),
        });
    }
}

/// What this node knows to be wrong with its own way.
fn here(view: &View) -> Option<String> {
    let node = &view.node;
    if !view.radio.is_up {
        return Some(format!("the radio {} is down or gone", view.radio.name));
    }
    match (&node.attached, node.role) {
        (None, NodeRole::Obu) => {
            Some("this node has no upstream: v2xctl upstreams says why".to_owned())
        }
        (Some(Attached { is_unanswered: true, rsu, .. }), _) => {
            Some(format!("the RSU {rsu} does not answer what we say"))
        }
        (Some(Attached { is_doubted: true, upstream, .. }), _) => {
            Some(format!("the upstream {upstream} has just fallen silent"))
        }
        _ if view.is_radio_full => Some("our radio is full: frames wait or are dropped".to_owned()),
        _ => None,
    }
}

fn is_reached(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Reached | Verdict::Client)
}

fn last_of(echoed: &Echoed) -> NodeId {
    echoed.path.last().copied().unwrap_or(NodeId::NONE)
}

fn millis(us: u64) -> String {
    format!("{}.{:03}", us / 1000, us % 1000)
}
