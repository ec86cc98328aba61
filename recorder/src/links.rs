//! Links from recordings: who heard how much of whom when in a drive that several nodes recorded
//! ([`Drive`]), as a scenario that `v2xsim` runs under these or other settings.
//!
//! A frame that one node sent and another heard is the same bytes in two recordings. From such
//! frames come, in this order:
//!
//! 1. how far the clocks of the two are apart: a frame takes the same time both ways (the rule of
//!    NTP), and the quickest of all tells most;
//! 2. for each broadcast, who heard it and who did not. Unicast frames say less, because a radio
//!    repeats them: they count for whoever broadcasts nothing for a while;
//! 3. the loss of each direction: a row of misses that chance does not explain is a time without a
//!    link, from half-way to the frame before to half-way to the frame after. Of all other frames
//!    it is the share that was missed, slot by slot.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Write};
use std::time::Duration;

use node_lib::Mac;
use node_lib::control::event::{Event, HandOver};
use node_lib::control::node::LinkEvent;

use crate::header::{Header, Role};
use crate::read::{Item, ReadError, Recording};
use crate::record::{Frame, What};
use crate::tap::SNAP_MIN;

/// Microseconds on the clock that all recordings share.
type Micros = i64;

/// A frame that took longer than this was heard by somebody else's clock.
const UNDER_WAY_MAX: Micros = 1_000_000;

/// How far before its sending a frame may seem to be heard, as clocks drift.
const AHEAD_MAX: Micros = 50_000;

/// What a frame takes where only one direction was heard.
const DELAY_US: Micros = 300;

/// Who broadcasts less often than this in a slot is judged by unicast frames as well.
const BROADCASTS_MIN: usize = 2;

/// A row of misses less likely than this is a time without a link.
const CHANCE: f64 = 0.001;

/// Frames before and after a row of misses, from which it is judged.
const AROUND: usize = 20;

/// Whoever starts so long after the drive began, or ends so long before its end, was not there.
const EDGE: Micros = 1_000_000;

/// Why recordings are no drive.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// One cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is nobody to hear.
    #[error("recordings of {0} nodes; expected those of two or more that drove at the same time")]
    Alone(usize),
    /// Nobody sends heartbeats.
    #[error("no recording of a road-side unit; expected one or more")]
    NoRsu,
    /// They were not there at the same time, or not in one place.
    #[error("nobody heard anybody: of no frame that one sent another has a copy")]
    Apart,
}

/// One life of one node, as it was recorded.
#[derive(Debug)]
struct Life {
    header: Header,
    /// From its clock to that of all.
    offset: Micros,
    began: Micros,
    ended: Micros,
    said_goodbye: bool,
    sent: Vec<Sent>,
    heard: HashMap<u64, VecDeque<Micros>>,
    signals: BTreeMap<Mac, Vec<(Micros, i8)>>,
    radio: Vec<(Micros, bool)>,
    hand_overs: Vec<(Micros, HandOver)>,
    /// What clients sent through it, and what they were sent.
    up: Traffic,
    down: Traffic,
    macs: Vec<Mac>,
}

/// Frames one way through a TAP.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    first: Micros,
    last: Micros,
    frames: u64,
    bytes: u64,
}

impl Traffic {
    fn note(&mut self, at: Micros, frame: &Frame<'_>) {
        if self.frames == 0 {
            self.first = at;
        }
        self.last = at;
        self.frames += 1;
        self.bytes += u64::from(frame.len);
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Micros,
    hash: u64,
    /// `None`: everybody.
    to: Option<Mac>,
}

/// Whoever recorded it kept so much of it; the numbers that tell it from others are among that.
fn hash(frame: &Frame<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u32(frame.len);
    hasher.write(frame.bytes.get(..SNAP_MIN as usize).unwrap_or(&frame.bytes));
    hasher.finish()
}

fn mac_at(frame: &Frame<'_>, at: usize) -> Option<Mac> {
    frame.bytes.get(at..at + 6)?.try_into().ok().map(Mac)
}

impl Life {
    fn read(recording: &Recording) -> Result<Option<Self>, ReadError> {
        let header = recording.header().clone();
        let base = Micros::try_from(header.began_unix_ns / 1000).unwrap_or(0);
        let mut life = Self {
            offset: 0,
            began: Micros::MAX,
            ended: Micros::MIN,
            said_goodbye: false,
            sent: Vec::new(),
            heard: HashMap::new(),
            signals: BTreeMap::new(),
            radio: Vec::new(),
            hand_overs: Vec::new(),
            up: Traffic::default(),
            down: Traffic::default(),
            macs: vec![Mac(header.radio_mac)],
            header,
        };
        recording.read(|item| {
            let Item::Record(record) = item else { return Ok::<_, ReadError>(true) };
            let at = base + Micros::try_from(record.at.as_micros()).unwrap_or(0);
            life.began = life.began.min(at);
            life.ended = life.ended.max(at);
            match &record.what {
                What::ToRadio(frame) => {
                    let to = mac_at(frame, 0).filter(|mac| mac.is_unicast());
                    life.sent.push(Sent { at, hash: hash(frame), to });
                }
                What::FromTap(frame) | What::FromTapLate(frame) => life.up.note(at, frame),
                What::ToTap(frame) => life.down.note(at, frame),
                What::FromRadio(frame) => {
                    life.heard.entry(hash(frame)).or_default().push_back(at);
                }
                What::Signal { from, dbm } => {
                    life.signals.entry(*from).or_default().push((at, *dbm));
                }
                What::Link(LinkEvent::Up) => life.radio.push((at, true)),
                What::Link(LinkEvent::Down) => life.radio.push((at, false)),
                What::Link(LinkEvent::AddressChanged(mac)) => life.macs.push(*mac),
                What::Shutdown => life.said_goodbye = true,
                What::Event(Event::HandOver(done)) => life.hand_overs.push((at, *done)),
                _ => {}
            }
            Ok(true)
        })?;
        Ok((life.began <= life.ended).then_some(life))
    }

    fn shift(&mut self, by: Micros) {
        self.offset += by;
        self.began += by;
        self.ended += by;
        self.sent.iter_mut().for_each(|sent| sent.at += by);
        self.heard.values_mut().flatten().for_each(|at| *at += by);
        self.signals.values_mut().flatten().for_each(|(at, _)| *at += by);
        self.radio.iter_mut().for_each(|(at, _)| *at += by);
        self.hand_overs.iter_mut().for_each(|(at, _)| *at += by);
        for traffic in [&mut self.up, &mut self.down] {
            (traffic.first, traffic.last) = (traffic.first + by, traffic.last + by);
        }
    }

    /// The least time from its sending to the hearing of a frame that was sent once and heard once,
    /// each by the clock of its own node.
    fn quickest(&self, hearer: &Self) -> Option<Micros> {
        let mut times: HashMap<u64, u32> = HashMap::new();
        for sent in &self.sent {
            *times.entry(sent.hash).or_default() += 1;
        }
        let once = self.sent.iter().filter(|sent| times.get(&sent.hash) == Some(&1));
        let both = once.filter_map(|sent| {
            let heard = hearer.heard.get(&sent.hash)?;
            (heard.len() == 1).then(|| heard.front().map(|at| at - sent.at)).flatten()
        });
        both.min()
    }

    fn name(&self) -> String {
        let id: String = self.header.id.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{id}", self.header.role.as_str())
    }
}

/// A direction of a link from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    at: Micros,
    loss: f64,
}

/// Mean and standard deviation, in dBm and dB.
type Signal = (f64, f64);

/// A drive, put together from what its nodes recorded.
#[derive(Debug)]
pub struct Drive {
    lives: Vec<Life>,
    /// When it began.
    start: Micros,
    end: Micros,
    slot: Micros,
}

/// What was found, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Nodes.
    pub nodes: usize,
    /// Directions of links.
    pub directions: usize,
    /// Broadcasts that somebody might have heard, once for each who might.
    pub frames: u64,
    /// Of those, heard.
    pub heard: u64,
    /// Hand-overs that vehicles wrote down.
    pub hand_overs: usize,
    /// How far each node's clock had to be moved, by name, in microseconds.
    pub clocks: Vec<(String, Micros)>,
}

impl Drive {
    /// Puts recordings together, each of one life of a node.
    pub fn of(recordings: &[Recording], slot: Duration) -> Result<Self, DriveError> {
        let mut lives = Vec::new();
        for recording in recordings {
            lives.extend(Life::read(recording)?);
        }
        let mut ids: Vec<_> = lives.iter().map(|life| life.header.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < 2 {
            return Err(DriveError::Alone(ids.len()));
        }
        if !lives.iter().any(|life| life.header.role == Role::Rsu) {
            return Err(DriveError::NoRsu);
        }
        // The order in which tables name them: road-side units first.
        lives.sort_by_key(|life| (life.header.role != Role::Rsu, life.header.id, life.began));
        align(&mut lives)?;
        let start = lives.iter().map(|life| life.began).min().unwrap_or(0);
        let end = lives.iter().map(|life| life.ended).max().unwrap_or(0);
        let slot = Micros::try_from(slot.as_micros()).unwrap_or(Micros::MAX).max(1);
        Ok(Self { lives, start, end, slot })
    }

    fn seconds(&self, at: Micros) -> f64 {
        (at - self.start).max(0) as f64 / 1e6
    }

    /// Writes who heard how much of whom when, as a table that `v2xsim` and the testbed replay.
    pub fn write_links(&self, out: &mut impl Write) -> io::Result<Found> {
        writeln!(out, "time_s,from,to,loss,delay_us,signal_dbm,signal_sd_db")?;
        let mut found = Found {
            nodes: self.names().len(),
            directions: 0,
            frames: 0,
            heard: 0,
            hand_overs: self.lives.iter().map(|life| life.hand_overs.len()).sum(),
            clocks: self.lives.iter().map(|life| (life.name(), life.offset)).collect(),
        };
        // A node with several lives is one node: what holds, and since when, of each pair of names.
        let mut rows: BTreeMap<(String, String), Vec<(Micros, String)>> = BTreeMap::new();
        for from in &self.lives {
            for to in self.lives.iter().filter(|to| to.header.id != from.header.id) {
                let samples = self.samples(from, to);
                if samples.iter().all(|(_, is_heard)| !is_heard) {
                    continue;
                }
                found.frames += samples.len() as u64;
                found.heard += samples.iter().filter(|(_, is_heard)| *is_heard).count() as u64;
                let delay = self.delay(from, to);
                let all = rows.entry((from.name(), to.name())).or_default();
                for (at, loss, signal) in self.with_signal(from, to, &steps(&samples, self.slot)) {
                    let (mean, deviation) = signal.map_or_else(Default::default, |(mean, sd)| {
                        (format!("{mean:.1}"), format!("{sd:.1}"))
                    });
                    all.push((at, format!("{loss:.4},{delay},{mean},{deviation}")));
                }
            }
        }
        let mut lines = Vec::new();
        found.directions = rows.len();
        for ((from, to), mut steps) in rows {
            steps.sort_by_key(|(at, _)| *at);
            let mut last: Option<(Micros, String)> = None;
            for (at, what) in steps {
                let is_news =
                    last.as_ref().is_none_or(|(then, known)| *then < at && *known != what);
                if is_news {
                    lines.push((at, format!("{from},{to},{what}")));
                    last = Some((at, what));
                }
            }
        }
        lines.sort();
        for (at, line) in lines {
            writeln!(out, "{:.6},{line}", self.seconds(at))?;
        }
        Ok(found)
    }

    /// What the one sent while the other was there, and whether that heard it.
    fn samples(&self, from: &Life, to: &Life) -> Vec<(Micros, bool)> {
        let mut heard = to.heard.clone();
        let mut of = |wanted: &dyn Fn(&Sent) -> bool| -> Vec<(Micros, bool)> {
            let there = |sent: &&Sent| (to.began..=to.ended).contains(&sent.at) && wanted(sent);
            let sent = from.sent.iter().filter(there);
            sent.map(|sent| (sent.at, take(&mut heard, sent))).collect()
        };
        let broadcasts = of(&|sent| sent.to.is_none());
        let unicasts = of(&|sent| sent.to.is_some_and(|mac| to.macs.contains(&mac)));
        // Where it broadcasts nothing, and only there, it is known by what it said to this one.
        let mut all = broadcasts;
        let mut per_slot: BTreeMap<Micros, usize> = BTreeMap::new();
        for (at, _) in &all {
            *per_slot.entry(at / self.slot).or_default() += 1;
        }
        let is_silent =
            |at: &Micros| per_slot.get(&(at / self.slot)).is_none_or(|n| *n < BROADCASTS_MIN);
        all.extend(unicasts.into_iter().filter(|(at, _)| is_silent(at)));
        all.sort_unstable();
        all
    }

    /// What a frame takes from the one to the other.
    fn delay(&self, from: &Life, to: &Life) -> Micros {
        from.quickest(to).unwrap_or(DELAY_US).max(0)
    }

    /// Steps, with mean and deviation of how strong frames came in from each on.
    fn with_signal(
        &self,
        from: &Life,
        to: &Life,
        steps: &[Step],
    ) -> Vec<(Micros, f64, Option<Signal>)> {
        let mut signals: Vec<(Micros, f64)> = Vec::new();
        for mac in &from.macs {
            let told = to.signals.get(mac).into_iter().flatten();
            signals.extend(told.map(|(at, dbm)| (*at, f64::from(*dbm))));
        }
        if signals.is_empty() {
            return steps.iter().map(|step| (step.at, step.loss, None)).collect();
        }
        signals.sort_by_key(|(at, _)| *at);
        // A slot with a signal begins a step of its own.
        let mut slots: BTreeMap<Micros, Vec<f64>> = BTreeMap::new();
        for (at, dbm) in signals {
            slots.entry(at - at.rem_euclid(self.slot)).or_default().push(dbm);
        }
        let mut times: Vec<Micros> = steps.iter().map(|step| step.at).collect();
        let first = times.first().copied().unwrap_or(self.start);
        times.extend(slots.keys().map(|at| (*at).max(first)));
        times.sort_unstable();
        times.dedup();
        let loss_at = |at: Micros| {
            let before = steps.partition_point(|step| step.at <= at);
            before.checked_sub(1).and_then(|index| steps.get(index)).map_or(1.0, |step| step.loss)
        };
        let signal_at = |at: Micros| {
            let (_, all) = slots.range(..=at).next_back().or_else(|| slots.iter().next())?;
            let n = all.len() as f64;
            let mean = all.iter().sum::<f64>() / n;
            let variance = all.iter().map(|dbm| (dbm - mean).powi(2)).sum::<f64>() / n;
            Some((mean, variance.sqrt()))
        };
        times.into_iter().map(|at| (at, loss_at(at), signal_at(at))).collect()
    }

    /// Names of nodes, each with its role, road-side units first.
    fn names(&self) -> Vec<(String, Role)> {
        let mut names: Vec<_> =
            self.lives.iter().map(|life| (life.name(), life.header.role)).collect();
        names.dedup();
        names
    }

    /// Writes the scenario, whose links are in a file of this name beside it.
    pub fn write_scenario(&self, links: &str, out: &mut impl Write) -> io::Result<()> {
        let duration = self.seconds(self.end).max(0.1);
        let warm_up = (duration / 4.0).min(2.0);
        let names = self.names();
        writeln!(out, "about = \"a drive that {} nodes recorded\"", names.len())?;
        writeln!(out, "duration = \"{duration:.3}s\"\nwarm_up = \"{warm_up:.3}s\"\n")?;
        writeln!(out, "[radio]\nmodel = \"links\"\ntrace = \"{links}\"\n")?;
        for role in [Role::Rsu, Role::Obu] {
            self.write_settings(role, out)?;
        }
        writeln!(out, "[[lan]]\nid = \"lan\"\n")?;
        for (name, role) in &names {
            match role {
                Role::Rsu => writeln!(out, "[[rsu]]\nid = \"{name}\"\nlan = \"lan\"\n")?,
                Role::Obu => writeln!(out, "[[obu]]\nid = \"{name}\"\n")?,
            }
        }
        writeln!(out, "[[client]]\nid = \"server\"\nlan = \"lan\"\n")?;
        for (name, _) in names.iter().filter(|(_, role)| *role == Role::Obu) {
            writeln!(out, "[[client]]\nid = \"rider-{name}\"\nbehind = \"{name}\"\n")?;
        }
        self.write_flows(warm_up, duration, out)?;
        for (at, what, node) in self.faults() {
            let at = self.seconds(at).min(duration);
            writeln!(out, "[[fault]]\nat = \"{at:.6}s\"\nwhat = \"{what}\"\nnode = \"{node}\"\n")?;
        }
        for life in &self.lives {
            for (at, done) in &life.hand_overs {
                let (at, gap) = (self.seconds(*at), done.gap.as_secs_f64());
                writeln!(out, "[[recorded]]\nobu = \"{}\"\nat = \"{at:.6}s\"", life.name())?;
                writeln!(out, "cause = \"{}\"\ngap = \"{gap:.6}s\"\n", done.cause.as_str())?;
            }
        }
        Ok(())
    }

    /// As many frames each way as each life of each vehicle carried, from the first to the last, at
    /// even times: a busy vehicle watches its upstream more closely than an idle one.
    fn write_flows(&self, warm_up: f64, end: f64, out: &mut impl Write) -> io::Result<()> {
        for life in self.lives.iter().filter(|life| life.header.role == Role::Obu) {
            let name = life.name();
            let rider = format!("rider-{name}");
            for (way, from, to, traffic) in
                [("up", &*rider, "server", life.up), ("down", "server", &*rider, life.down)]
            {
                let span = self.seconds(traffic.last) - self.seconds(traffic.first);
                let (start, stop) =
                    (self.seconds(traffic.first).max(warm_up), self.seconds(traffic.last).min(end));
                if traffic.frames < 2 || span <= 0.0 || stop - start < 0.01 {
                    continue;
                }
                let rate = ((traffic.frames - 1) as f64 / span).clamp(0.01, 10_000.0);
                let size = (traffic.bytes / traffic.frames).clamp(60, 1514);
                writeln!(out, "[[flow]]\nid = \"{way} {name}\"\nfrom = \"{from}\"\nto = \"{to}\"")?;
                writeln!(
                    out,
                    "frames_per_s = {rate:.3}\narrivals = \"even\"\nsize_bytes = {size}"
                )?;
                writeln!(out, "start = \"{start:.6}s\"\nstop = \"{stop:.6}s\"\n")?;
            }
        }
        Ok(())
    }

    /// The settings that most of a role had, as far as a scenario has them.
    fn write_settings(&self, role: Role, out: &mut impl Write) -> io::Result<()> {
        let mut seen: BTreeMap<String, (usize, &Header)> = BTreeMap::new();
        for life in self.lives.iter().filter(|life| life.header.role == role) {
            seen.entry(life.header.settings.to_string()).or_insert((0, &life.header)).0 += 1;
        }
        let Some((_, header)) = seen.values().max_by_key(|(count, _)| *count) else {
            return Ok(());
        };
        let settings = &header.settings;
        writeln!(out, "[settings.{}]\nradio_mtu = {}", role.as_str(), header.radio_mtu.min(1500))?;
        for name in ["ethertype", "hello_history", "cached_candidates", "group_rate"] {
            if let Some(value) = settings.get(name).and_then(serde_json::Value::as_u64) {
                writeln!(out, "{name} = {value}")?;
            }
        }
        if let Some(period) = settings.get("hello_periodicity")
            && let Ok(period) = serde_json::from_value::<Duration>(period.clone())
        {
            writeln!(out, "hello_periodicity = \"{}us\"", period.as_micros())?;
        }
        if let Some(policy) = settings.get("policy").and_then(serde_json::Value::as_object) {
            writeln!(out, "\n[settings.{}.policy]", role.as_str())?;
            for (name, value) in policy {
                match value {
                    serde_json::Value::Bool(is_on) => writeln!(out, "{name} = {is_on}")?,
                    serde_json::Value::String(word) => {
                        writeln!(out, "{name} = \"{}\"", word.to_lowercase())?;
                    }
                    _ => {}
                }
            }
        }
        writeln!(out)
    }

    /// Who came, went, and lost its radio, in the order of time.
    fn faults(&self) -> Vec<(Micros, &'static str, String)> {
        let mut faults = Vec::new();
        for (index, life) in self.lives.iter().enumerate() {
            let is_same =
                |other: Option<&Life>| other.is_some_and(|o| o.header.id == life.header.id);
            let before = index.checked_sub(1).and_then(|index| self.lives.get(index));
            if is_same(before) {
                faults.push((life.began, "start", life.name()));
            } else if life.began - self.start > EDGE {
                // All are there at the beginning of a scenario.
                faults.push((self.start, "crash", life.name()));
                faults.push((life.began, "start", life.name()));
            }
            if is_same(self.lives.get(index + 1)) || self.end - life.ended > EDGE {
                let what = if life.said_goodbye { "shutdown" } else { "crash" };
                // Told to stop it goes on for a while, and says goodbye at the beginning of it.
                faults.push((life.ended, what, life.name()));
            }
            for (at, is_up) in &life.radio {
                faults.push((*at, if *is_up { "radio-up" } else { "radio-down" }, life.name()));
            }
        }
        faults.sort();
        faults
    }
}

/// Moves all clocks to that of the first node, as far as they heard each other.
fn align(lives: &mut [Life]) -> Result<(), DriveError> {
    let mut waiting: Vec<usize> = (1..lives.len()).collect();
    let mut known = VecDeque::from([0]);
    let mut has_any = false;
    while let Some(index) = known.pop_front() {
        let mut rest = Vec::new();
        for other in std::mem::take(&mut waiting) {
            let (Some(one), Some(two)) = (lives.get(index), lives.get(other)) else { continue };
            let by = match (one.quickest(two), two.quickest(one)) {
                // What the one's clock is behind is added one way, and missing the other.
                (Some(there), Some(back)) => Some((back - there) / 2),
                (Some(there), None) => Some(DELAY_US - there),
                (None, Some(back)) => Some(back - DELAY_US),
                (None, None) => None,
            };
            match (by, lives.get_mut(other)) {
                (Some(by), Some(life)) => {
                    life.shift(by);
                    known.push_back(other);
                    has_any = true;
                }
                _ => rest.push(other),
            }
        }
        waiting = rest;
        // Whoever heard nobody of these has heard others: their clocks are as they say.
        if known.is_empty() && !waiting.is_empty() {
            known.push_back(waiting.remove(0));
        }
    }
    if has_any { Ok(()) } else { Err(DriveError::Apart) }
}

/// Whether this frame was heard; each hearing is of one frame.
fn take(heard: &mut HashMap<u64, VecDeque<Micros>>, sent: &Sent) -> bool {
    let Some(times) = heard.get_mut(&sent.hash) else { return false };
    let fits = |at: &Micros| (-AHEAD_MAX..=UNDER_WAY_MAX).contains(&(at - sent.at));
    match times.iter().position(fits) {
        Some(index) => times.remove(index).is_some(),
        None => false,
    }
}

/// The loss of a direction from when on, of what was heard and what was not.
fn steps(samples: &[(Micros, bool)], slot: Micros) -> Vec<Step> {
    let outages = outages(samples);
    let is_out = |index: usize| outages.iter().any(|(from, to)| (*from..*to).contains(&index));
    let mut slots: BTreeMap<Micros, (u32, u32)> = BTreeMap::new();
    for (index, (at, is_heard)) in samples.iter().enumerate() {
        if !is_out(index) {
            let (all, missed) = slots.entry(at.div_euclid(slot)).or_default();
            *all += 1;
            *missed += u32::from(!is_heard);
        }
    }
    let loss_in = |at: Micros| {
        let number = at.div_euclid(slot);
        let here = slots.range(..=number).next_back().or_else(|| slots.range(number..).next());
        here.map_or(1.0, |(_, (all, missed))| f64::from(*missed) / f64::from(*all))
    };
    let half_way = |index: usize| -> Option<Micros> {
        let (before, _) = samples.get(index.checked_sub(1)?)?;
        let (after, _) = samples.get(index)?;
        Some(before.midpoint(*after))
    };
    let first = samples.first().map_or(0, |(at, _)| *at);
    let mut steps: Vec<Step> = Vec::new();
    for number in slots.keys() {
        let at = (number * slot).max(first);
        steps.push(Step { at, loss: loss_in(at) });
    }
    for (from, to) in outages {
        let begins = half_way(from).unwrap_or(first);
        // What began in it holds after it.
        steps.retain(|step| step.at < begins || half_way(to).is_some_and(|ends| step.at >= ends));
        steps.push(Step { at: begins, loss: 1.0 });
        if let Some(ends) = half_way(to) {
            let (next, _) = samples.get(to).copied().unwrap_or((ends, true));
            steps.push(Step { at: ends, loss: loss_in(next) });
        }
    }
    steps.sort_by_key(|step| step.at);
    steps
}

/// Rows of misses that chance does not explain, as ranges of samples.
fn outages(samples: &[(Micros, bool)]) -> Vec<(usize, usize)> {
    let mut rows = Vec::new();
    let mut from = 0;
    while from < samples.len() {
        if samples.get(from).is_some_and(|(_, is_heard)| *is_heard) {
            from += 1;
            continue;
        }
        let rest = samples.get(from..).unwrap_or_default();
        let to = from + rest.iter().take_while(|(_, is_heard)| !is_heard).count();
        let before = samples.get(from.saturating_sub(AROUND)..from).unwrap_or_default();
        let after = samples.get(to..(to + AROUND).min(samples.len())).unwrap_or_default();
        let around = before.iter().chain(after);
        let (all, missed) = around
            .fold((0, 0), |(all, missed), (_, is_heard)| (all + 1, missed + u32::from(!is_heard)));
        // As if half a frame more had been missed: nothing is never lost.
        let loss = (f64::from(missed) + 0.5) / f64::from(all + 1);
        let row = i32::try_from(to - from).unwrap_or(i32::MAX);
        if row >= 2 && loss.powi(row) < CHANCE {
            rows.push((from, to));
        }
        from = to;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Micros = 500_000;

    /// A frame every 100 ms, as a row of heard (`x`) and missed (`.`).
    fn samples(text: &str) -> Vec<(Micros, bool)> {
        (0..).zip(text.bytes()).map(|(n, byte)| (n * 100_000, byte == b'x')).collect()
    }

    fn losses(text: &str) -> Vec<(Micros, f64)> {
        let mut losses: Vec<(Micros, f64)> = Vec::new();
        for Step { at, loss } in steps(&samples(text), SLOT) {
            if losses.last().is_none_or(|(_, last)| *last != loss) {
                losses.push((at / 1000, loss));
            }
        }
        losses
    }

    #[test]
    fn a_row_of_misses_on_a_good_link_is_an_outage_with_its_own_edges() {
        let all = losses("xxxxxxxxxxxx......xxxxxxxxxxxx");
        assert_eq!(all, [(0, 0.0), (1150, 1.0), (1750, 0.0)]);
    }

    #[test]
    fn misses_by_chance_are_a_share_of_their_slot() {
        assert_eq!(losses("xxxxxx.xxx"), [(0, 0.0), (500, 0.2)]);
        // Every other frame is lost: four in a row are nothing special.
        assert_eq!(
            losses("x.x.xx....x.x.xx.x.x").iter().filter(|(_, loss)| *loss == 1.0).count(),
            0
        );
    }

    #[test]
    fn a_link_that_comes_late_or_ends_early_is_none_before_and_after() {
        assert_eq!(losses("......xxxxxxxxxxxx"), [(0, 1.0), (550, 0.0)]);
        assert_eq!(losses("xxxxxxxxxxxx......"), [(0, 0.0), (1150, 1.0)]);
    }

    #[test]
    fn all_that_was_missed_is_missed_again() {
        // However it is cut up, the mean is what was recorded.
        let text = "xx.xx...x.xxxx.xxxxxxxxxxxxx........xxxxxxxx.xxx.xxx.xx";
        let steps = steps(&samples(text), SLOT);
        let mut expected = 0.0;
        for (at, _) in samples(text) {
            let holds = steps.iter().rev().find(|step| step.at <= at).unwrap();
            expected += holds.loss;
        }
        let missed = text.bytes().filter(|byte| *byte == b'.').count() as f64;
        assert!((expected - missed).abs() < 2.0, "{expected} of {missed}");
    }
}
