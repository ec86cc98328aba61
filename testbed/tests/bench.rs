//! The system bench in its quickest form: not what it measures, but that it measures everything,
//! and that what it measures against is comparable.

#![allow(clippy::indexing_slicing, reason = "test code: an index out of range is a failed test")]

#[path = "testbed/harness.rs"]
mod harness;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Area, ms};
use node_lib::Mac;
use testbed::bench::data_path::{BenchPlan, BenchVariant, FIGURES, command};
use testbed::probe::{FrameReceiver, NumberedFrame, send_frames};
use testbed::topology::line::{Carrier, LineTopology, Offload, RADIO, TAP};
use testbed::{Programs, PromiscuousSocket, arena, wait_until};

fn main() -> ExitCode {
    harness::main(&[Area {
        name: "bench",
        alone: &[
            ("every_figure_is_there_and_positive", every_figure_is_there_and_positive),
            ("the_ends_of_two_hops_do_not_hear_each_other", ends_do_not_hear_each_other),
            ("every_carrier_adds_as_much_to_a_frame", every_carrier_adds_as_much),
        ],
        together: &[],
    }])
}

fn every_figure_is_there_and_positive() -> Result<()> {
    let output = tempfile::TempDir::new_in(arena::scratch())?;
    let everything = [String::new()];
    command::run_plan(&BenchPlan::quick(), &everything, output.path())?;
    let read = |name| std::fs::read_to_string(output.path().join(name)).context(name);
    let all: serde_json::Value = serde_json::from_str(&read("bench.json")?)?;
    let variants = all["results"]["variants"].as_array().context("variants")?;
    ensure!(variants.len() >= 6, "{variants:?}");
    for chosen_only in ["one loop", "two threads"] {
        ensure!(variants.iter().any(|name| name == chosen_only), "no {chosen_only}");
        ensure!(BenchVariant::all(true).iter().all(|variant| variant.name() != chosen_only));
    }
    let (text, picture) = (read("bench.txt")?, read("bench.svg")?);
    let markdown = read("bench.md")?;
    let columns = variants.len() + 2;
    let wide = markdown.lines().filter(|line| line.matches('|').count() == columns);
    ensure!(wide.count() == FIGURES.len() + 2, "{markdown}");
    ensure!(text.contains("two threads against one loop"), "{text}");
    for variant in variants {
        let name = variant.as_str().context("name of a variant")?;
        let is_program = !name.starts_with("veth");
        for figure in &FIGURES {
            let is_of_programs = figure.key.starts_with("cpu") || figure.key == "resident";
            let is_of_relays = figure.key == "cpu_tcp_relay";
            let median = &all["medians"][name][figure.key]["spread"]["median"];
            if is_of_programs && !is_program || is_of_relays && !name.ends_with("2 hops") {
                ensure!(median.is_null(), "{name}: {} is {median}", figure.key);
            } else {
                let value = median.as_f64().with_context(|| format!("{name}: {}", figure.key))?;
                // Only what others did meanwhile may be nothing.
                let is_there = value > 0.0 || figure.key == "others";
                ensure!(is_there && value.is_finite(), "{name}: {} is {value}", figure.key);
            }
            ensure!(text.contains(figure.title.trim()), "no {} in the table", figure.title);
        }
        ensure!(picture.contains(name), "{name} is not in the picture");
    }
    let runs = all["results"]["runs"].as_array().context("runs")?;
    ensure!(runs.len() == variants.len(), "{} runs of {} variants", runs.len(), variants.len());
    let rsu = &all["results"]["full_rsu"];
    ensure!(rsu["vehicles"] == 20 && rsu["clients"] == 100, "{rsu}");
    ensure!(rsu["resident"].as_u64() >= Some(1 << 20), "{rsu}");
    Ok(())
}

fn ends_do_not_hear_each_other() -> Result<()> {
    let line = LineTopology::lay(2)?;
    let relay = line.relay.as_ref().context("a line of two hops has a relay")?;
    let from = line.vehicle.state(RADIO)?.mac;
    let to = [Mac::BROADCAST, line.road.state(RADIO)?.mac, relay.state(RADIO)?.mac];
    let frames: Vec<_> = (0..30)
        .zip(to.iter().cycle())
        .map(|(number, to)| NumberedFrame { to: *to, from, vlan: None, number, payload_len: 100 })
        .collect();
    let receivers = [FrameReceiver::start(relay, RADIO)?, FrameReceiver::start(&line.road, RADIO)?];
    send_frames(&line.vehicle, RADIO, &frames, ms(1))?;
    std::thread::sleep(ms(200));
    let [at_relay, at_road] = receivers.map(FrameReceiver::stop);
    let (at_relay, at_road) = (at_relay?, at_road?);
    ensure!(at_road.is_empty(), "the road side hears the vehicle: {at_road:?}");
    let for_relay = frames.iter().filter(|frame| frame.to != to[1]).count();
    ensure!(at_relay.len() >= for_relay, "the relay heard {} of {for_relay}", at_relay.len());
    Ok(())
}

/// Otherwise the two would not carry the same load.
fn every_carrier_adds_as_much() -> Result<()> {
    let programs = Programs::find()?;
    let logs = tempfile::TempDir::new_in(arena::scratch())?;
    let daemons = Carrier::Daemons { vehicle: Offload::Off, road: Offload::Off };
    let loops = [1, 2].map(|threads| Carrier::Loops { threads });
    for carrier in [Carrier::Naive, daemons].into_iter().chain(loops) {
        let mut line = LineTopology::lay(1)?;
        line.start(&programs, &carrier, logs.path())?;
        let (from, to) = (line.vehicle.state(TAP)?.mac, line.road.state(TAP)?.mac);
        let inner = NumberedFrame { to, from, vlan: None, number: 7, payload_len: 300 };
        let air = line.road.run(|| Ok(PromiscuousSocket::open(RADIO)?))?;
        let at_tap = FrameReceiver::start(&line.road, TAP)?;
        send_frames(&line.vehicle, TAP, std::slice::from_ref(&inner), ms(0))?;
        let mut buffer = [0; 2048];
        let carried = inner.emit();
        let outer = wait_until("the frame is on the radio", Duration::from_secs(5), || {
            let frame = air.recv(&mut buffer)?;
            Ok(frame.filter(|frame| frame.ends_with(&carried)).map(<[u8]>::len))
        })?;
        ensure!(outer == carried.len() + 14 + 22, "{carrier:?}: {outer} bytes on the radio");
        std::thread::sleep(ms(100));
        let arrived = at_tap.stop()?;
        ensure!(arrived == [inner], "{carrier:?}: {arrived:?}");
    }
    Ok(())
}
