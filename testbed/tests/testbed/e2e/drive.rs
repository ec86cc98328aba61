//! A vehicle drives from one road-side unit to the next, as a link trace has it.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::medium::{self, MediumLinkStep, MediumLinkTrace};
use testbed::probe::PingStream;
use testbed::scenes::corridor::drive::Drive;
use testbed::scenes::corridor::report::Comparison;
use testbed::scenes::corridor::{Corridor, daemons, scenario, simulated};
use testbed::{ATTACHMENT_CHANGED, Quality, Testbed};

use super::look::{PROBE_EVERY, reaches};
use super::scene::PATIENCE;
use crate::beds::with_logs;
use crate::harness::ms;

/// Part of the corridor: two hand-overs at 130 km/h, with streams to eight clients, four of which
/// never speak, and from the other four; then the same in the simulator. `make corridor` drives all
/// of it.
pub(crate) fn corridor_hands_over_eight_clients() -> Result<()> {
    const SEEDS: u64 = 5;
    // Radios that try once hand over sooner than others: twice in these 20 s at every seed.
    let trace = scenario::links(130.0, 0.0, 720.0, 1)?;
    let corridor = Corridor { retries: 0, ..Corridor::new(trace) };
    let real = daemons::drive(&corridor, &mut |_, _| ())?;
    let simulated = (0..SEEDS).map(|n| simulated::drive(&corridor, corridor.seed + n));
    let comparison = Comparison { real, simulated: simulated.collect::<Result<_>>()? };
    println!("\n{}", comparison.text(&corridor));
    comparison.check(&corridor)?;
    let hand_overs = comparison.hand_overs();
    ensure!(hand_overs.len() >= 2, "{hand_overs:?}");
    Ok(())
}

/// Radios that try again hide for long what a link loses; by the signal a vehicle leaves it in
/// time. Its daemon does so where the simulated one does: how far apart frames come in tells that a
/// radio fades, and a mean over them would hide that.
pub(crate) fn a_link_that_fades_is_left_in_time_by_radios_that_try_again() -> Result<()> {
    const SEEDS: u64 = 5;
    let corridor = Corridor::new(scenario::links(130.0, 0.0, 600.0, 1)?);
    let causes = |drive: &Drive| {
        drive.hand_overs().iter().map(|hand_over| hand_over.cause.clone()).collect::<Vec<_>>()
    };
    for seed in 0..SEEDS {
        let simulated = simulated::drive(&corridor, corridor.seed + seed)?;
        ensure!(causes(&simulated) == ["predicted"; 2], "seed {seed}: {simulated:?}");
    }
    let real = daemons::drive(&corridor, &mut |_, _| ())?.drive;
    ensure!(causes(&real) == ["predicted"; 2], "{:?}", real.changes);
    ensure!(real.lost() == 0, "{} frames lost", real.lost());
    Ok(())
}

/// Two road-side units; the vehicle passes from one to the other within five seconds. Where its
/// radio tells the signal it changes before a frame is lost; where it does not, it changes when
/// frames are lost.
pub(crate) fn a_fading_link_is_left_in_time() -> Result<()> {
    let with = fading_drive(&fading_links())?;
    println!("    with signal: {with:?}");
    ensure!(with.causes == ["predicted"], "{with:?}");
    ensure!(with.lost == 0, "{with:?}");
    let without = fading_drive(&fading_links().without_signal())?;
    println!("    without: {without:?}");
    let noticed = |cause: &String| cause == "fading" || cause == "dead";
    ensure!(!without.causes.is_empty() && without.causes.iter().all(noticed), "{without:?}");
    ensure!(without.lost > 0, "{without:?}");
    Ok(())
}

/// One fades by 7.5 dB a second from −60 dBm, the other comes up as fast from −90. The mean of the
/// last two seconds tells 6 dB of difference after 3.4 s; from −93 dBm on, a second later, the
/// first loses frames, and all from −97.
fn fading_links() -> MediumLinkTrace {
    let mut steps = Vec::new();
    for tenths in 0..53_u32 {
        let fade = 0.75 * f64::from(tenths);
        let (fading, coming) = (-60.0 - fade, -90.0 + fade);
        let lost = ((-93.0 - fading) / 4.0).clamp(0.0, 1.0);
        for (rsu, dbm, loss) in [("rsu1", fading, lost), ("rsu2", coming, 0.0)] {
            for (from, to) in [(rsu, "obu1"), ("obu1", rsu)] {
                steps.push(MediumLinkStep {
                    time: ms(100) * tenths,
                    from: from.to_owned(),
                    to: to.to_owned(),
                    loss,
                    delay: Duration::ZERO,
                    signal: Some(medium::SignalStrength { dbm, sd_db: 1.0 }),
                });
            }
        }
    }
    MediumLinkTrace::new(steps)
}

#[derive(Debug)]
struct FadingDrive {
    causes: Vec<String>,
    lost: u64,
}

fn fading_drive(trace: &MediumLinkTrace) -> Result<FadingDrive> {
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let [rsu1, rsu2] = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let obu = bed.add_obu("obu1")?;
    if trace.tells_signal() {
        bed.tell_signal(&obu)?;
    }
    with_logs(bed, |bed| {
        // Found while there is no other to choose; then both, as they are when the drive begins.
        bed.connect(&rsu1, &obu)?;
        bed.start_all()?;
        reaches(&obu.host, &server, PATIENCE)?;
        bed.play(&trace.between(Duration::ZERO, Duration::ZERO), Quality::default())?;
        std::thread::sleep(ms(2500));
        ensure!(obu.sends_through(&rsu1)?, "it sends to {}", obu.attachment()?);
        let before = obu.events()?.len();
        let ping = PingStream::start(obu.ns(), server.v4, PROBE_EVERY)?;
        std::thread::sleep(ms(300));
        bed.play(trace, Quality::default())?;
        std::thread::sleep(trace.end() + ms(500));
        let report = ping.stop()?;
        ensure!(obu.sends_through(&rsu2)?, "it sends to {}", obu.attachment()?);
        let events = obu.events()?;
        let changes = events.iter().skip(before);
        let changes = changes.filter(|event| event.message() == ATTACHMENT_CHANGED);
        Ok(FadingDrive {
            causes: changes.map(|event| event.text("cause")).collect(),
            lost: report.lost,
        })
    })
}
