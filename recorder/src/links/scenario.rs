//! The scenario of a drive: its settings, nodes, clients, flows and faults.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use crate::header::{RecordingHeader, Role};

use super::life::Life;
use super::{Drive, Micros};

/// Whoever starts so long after the drive began, or ends so long before its end, was not there.
const EDGE: Micros = 1_000_000;

impl Drive {
    /// Writes the scenario, whose links are in a file of this name beside it.
    pub fn write_scenario(&self, links: &str, out: &mut impl Write) -> io::Result<()> {
        // Whole milliseconds, as it is written: nothing may come after it.
        let duration = (self.seconds(self.end).max(0.1) * 1000.0).ceil() / 1000.0;
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
        let mut seen: BTreeMap<String, (usize, &RecordingHeader)> = BTreeMap::new();
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
