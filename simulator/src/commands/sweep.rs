//! `v2xsim sweep`: many places, towns, radios and loads, held against goals.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use simulator::measure::Suite;
use simulator::report;
use simulator::scenario::Source;
use simulator::sweep::figures::Figure;
use simulator::sweep::kinds::{changes, rows};
use simulator::sweep::results::{Results, SceneResult};
use simulator::sweep::scene::{KINDS, Plan, WARM_UP_S};
use simulator::sweep::shrink::shrink;
use simulator::sweep::town::Town;
use simulator::sweep::{Scene, SceneKind, Sweep};

use super::outcome::{exit_code, quoted};
use super::stop::Stop;
use super::{jobs, mobility};
use crate::args::{CompareArgs, SweepArgs};

/// Scenes of each kind, and seconds of each, in a whole sweep and in a quick one.
const WHOLE: (u32, u32) = (48, 60);
const QUICK: (u32, u32) = (6, 30);

pub(crate) fn sweep(args: &SweepArgs) -> Result<ExitCode> {
    let stop = Stop::on_signals().context("SIGINT and SIGTERM cannot be handled")?;
    // Beside it are files that differ in their ending.
    let is_json = args.out.extension().is_some_and(|ending| ending == "json");
    ensure!(is_json, "--out {}: expected a name that ends in .json", args.out.display());
    let plan = plan(args)?;
    let scenes = plan.scenes();
    let (set, flag) = (args.set.as_slice(), stop.flag());
    let (suite, jobs) = (args.nodes, jobs(args.jobs));
    let sweep = Sweep { scenes: &scenes, set, suite, jobs, stop: &flag };
    // Mistakes are known before results of an earlier sweep are replaced, and what cannot be
    // written before an hour has passed.
    sweep.check()?;
    say_where_vehicles_are_few(&plan);
    let directory = args.out.with_extension("scenes");
    write_scenes(&directory, &scenes)?;
    let results = Results {
        command: command(args),
        seed: plan.seed,
        measured_s: plan.measured_s,
        planned: scenes.len(),
        scenes: Vec::new(),
    };
    let context = || args.out.display().to_string();
    results.write(&args.out).with_context(context)?;
    let began = Instant::now();
    let kept = Mutex::new((results, Ok(())));
    let ended = sweep.run(|result: SceneResult| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (results, written) = &mut *kept;
        results.add(result.clone());
        // The first error counts.
        if written.is_ok() {
            *written = results.write(&args.out);
        }
        show_progress(&result, results, began);
    });
    let (results, written) = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let csv = args.out.with_extension("csv");
    // One that cannot be written takes no other with it.
    let written = [
        ended.map_err(Into::into),
        written.with_context(context),
        results.write_csv(&csv).with_context(|| csv.display().to_string()),
        show(args, &results, &directory),
        shrink_broken(args, &scenes, &results, &directory, &flag),
    ];
    let is_broken = results.scenes.iter().any(|scene| scene.broken.is_some());
    let code = exit_code(&stop, "scene", results.planned, results.scenes.len(), is_broken);
    written.into_iter().collect::<Result<()>>()?;
    Ok(code)
}

fn plan(args: &SweepArgs) -> Result<Plan> {
    let (scenes, measured_s) = if args.quick { QUICK } else { WHOLE };
    let measured = args.measured.map_or(Duration::from_secs(measured_s.into()), |span| span.0);
    let whole_seconds = u32::try_from(measured.as_secs()).ok();
    let measured_s = whole_seconds
        .filter(|seconds| measured.subsec_nanos() == 0 && (1..=3600).contains(seconds))
        .with_context(|| {
            let measured = args.measured.unwrap_or_default();
            format!("--measured {measured}: expected whole seconds, from 1s to 1h")
        })?;
    for part in &args.kind {
        let is_there = KINDS.into_iter().any(|kind| slug(kind).contains(part.as_str()));
        ensure!(is_there, "--kind {part}: no such kind; expected some of {}", kinds_in_words());
    }
    let span = Duration::from_secs((measured_s + WARM_UP_S).into());
    let mut towns = Town::made(args.seed, span);
    if let Some(file) = &args.file {
        let source = Source::open(file)?;
        let set = args.mobility.as_deref().map(mobility).transpose()?;
        let scenario = source.with(set.as_slice())?;
        // First, so that it has one scene more where scenes do not divide by towns.
        towns.insert(0, Town::of_scenario(&source, &scenario, args.seed, span)?);
    }
    let wanted = |kind: &SceneKind| {
        let name = slug(*kind);
        args.kind.is_empty() || args.kind.iter().any(|part| name.contains(part.as_str()))
    };
    Ok(Plan {
        towns: towns.into_iter().map(Arc::new).collect(),
        kinds: KINDS.into_iter().filter(wanted).collect(),
        scenes: args.scenes.unwrap_or(scenes),
        seed: args.seed,
        measured_s,
    })
}

/// As `--kind` has it.
fn slug(kind: SceneKind) -> String {
    kind.to_string().replace(", ", "-")
}

fn kinds_in_words() -> String {
    KINDS.map(slug).join(", ")
}

/// A town with few vehicles has no more of them because a kind of scene wants more.
fn say_where_vehicles_are_few(plan: &Plan) {
    let most = plan.kinds.iter().map(|kind| kind.vehicles).max().unwrap_or_default();
    // A tenth less is about as many.
    let few = plan.towns.iter().filter(|town| town.at_once < 0.9 * f64::from(most));
    for Town { name, at_once, .. } in few.map(AsRef::as_ref) {
        eprintln!("{name}: {at_once:.0} vehicles at once; scenes that want more have all of them");
    }
}

/// Each as a file that `v2xsim run` takes.
fn write_scenes(directory: &Path, scenes: &[Scene]) -> Result<()> {
    let context = |path: &Path| path.display().to_string();
    fs::create_dir_all(directory).with_context(|| context(directory))?;
    for scene in scenes {
        let path = directory.join(scene.file_name());
        fs::write(&path, scene.text()).with_context(|| context(&path))?;
    }
    Ok(())
}

fn command(args: &SweepArgs) -> String {
    let mut words = vec!["v2xsim sweep".to_owned()];
    let path = |path: &PathBuf| quoted(&path.display().to_string());
    words.extend(args.file.as_ref().map(path));
    words.extend(args.mobility.as_ref().map(|file| format!("--mobility {}", path(file))));
    if args.quick {
        words.push("--quick".to_owned());
    }
    words.extend(args.scenes.map(|scenes| format!("--scenes {scenes}")));
    words.extend(args.measured.map(|span| format!("--measured {span}")));
    words.extend(args.kind.iter().map(|kind| format!("--kind {}", quoted(kind))));
    words.push(format!("--seed {}", args.seed));
    words.extend(more_words(args));
    words.join(" ")
}

/// What `v2xsim run` of a scene needs as well.
fn more_words(args: &SweepArgs) -> impl Iterator<Item = String> {
    let nodes =
        (args.nodes != Suite::default()).then(|| format!("--nodes {}", args.nodes.as_str()));
    let set = args.set.iter().map(|change| format!("--set {}", quoted(&change.to_string())));
    nodes.into_iter().chain(set)
}

fn show_progress(result: &SceneResult, results: &Results, began: Instant) {
    let (done, planned) = (results.scenes.len(), results.planned);
    let left_s = began.elapsed().as_secs_f64() / done.max(1) as f64 * (planned - done) as f64;
    let text = |figure: Figure| {
        result.figure(figure).map_or_else(|| "–".to_owned(), |value| figure.text(value))
    };
    let broken = match &result.broken {
        Some(broken) => format!(", {} broken {} times", broken.rule, broken.breaches),
        None => String::new(),
    };
    eprintln!(
        "{done}/{planned}, {left_s:.0} s left: {}: routed {}, control {}, lost {}{broken}",
        result.name,
        text(Figure::Routed),
        text(Figure::ControlMean),
        text(Figure::Lost),
    );
}

fn show(args: &SweepArgs, results: &Results, directory: &Path) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let rows = rows(&results.scenes);
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", report::sweep::kinds(&rows))?;
    write!(out, "{}", report::sweep::verdicts(&rows))?;
    let missed: Vec<_> = rows.iter().filter(|row| row.is_met() == Some(false)).collect();
    if !missed.is_empty() {
        writeln!(out, "the worst scenes again:")?;
    }
    for row in missed {
        let command = again(directory, &row.worst_scene, args);
        writeln!(out, "  {command}  # {}: {}", row.figure.name(), row.figure.text(row.worst))?;
    }
    Ok(())
}

/// Makes one scene small for each rule that was broken: that with the fewest vehicles.
fn shrink_broken(
    args: &SweepArgs,
    scenes: &[Scene],
    results: &Results,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<()> {
    let mut by_rule: BTreeMap<&str, (&Scene, f64)> = BTreeMap::new();
    // Made small is what ships.
    let of_ours = results.scenes.iter().filter(|_| args.nodes == Suite::Daemons);
    for result in of_ours {
        let scene = scenes.iter().find(|scene| scene.name() == result.name);
        let Some((scene, broken)) = scene.zip(result.broken.as_ref()) else { continue };
        let least = by_rule.entry(&broken.rule).or_insert((scene, broken.time_s));
        if scene.kind.vehicles < least.0.kind.vehicles {
            *least = (scene, broken.time_s);
        }
    }
    for (rule, (scene, time_s)) in by_rule {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        eprintln!("{rule} is broken in {}; making that small", scene.name());
        let small = shrink(scene, rule, time_s, &args.set, stop);
        let name = format!("{}.small", scene.name());
        let path = directory.join(format!("{name}.toml"));
        fs::write(&path, small.text()).with_context(|| path.display().to_string())?;
        let (vehicles, seconds) = (small.kind.vehicles, WARM_UP_S + small.measured_s);
        let mut out = std::io::stdout().lock();
        writeln!(out, "{rule} with {vehicles} vehicles, {seconds} s:")?;
        writeln!(out, "  {}", again(directory, &name, args))?;
    }
    Ok(())
}

/// The command that runs a scene again.
fn again(directory: &Path, name: &str, args: &SweepArgs) -> String {
    let file = directory.join(format!("{name}.toml"));
    let mut words = vec![format!("v2xsim run {}", quoted(&file.display().to_string()))];
    words.extend(more_words(args));
    words.join(" ")
}

pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let read = |path: &PathBuf| Results::read(path).with_context(|| path.display().to_string());
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let made_from = |results: &Results| (results.seed, results.measured_s);
    ensure!(
        made_from(&before) == made_from(&after),
        "{} has seed {} and measures {} s of each scene, {} has {} and {} s; expected the same \
         scenes",
        args.before.display(),
        before.seed,
        before.measured_s,
        args.after.display(),
        after.seed,
        after.measured_s,
    );
    let changes = changes(&before, &after);
    ensure!(
        !changes.is_empty(),
        "{} and {} have no scene in common; expected the same towns and kinds",
        args.before.display(),
        args.after.display()
    );
    let mut out = std::io::stdout().lock();
    writeln!(out, "before: {}\nafter:  {}", before.command, after.command)?;
    writeln!(out, "{}", report::sweep::changes(&changes))?;
    Ok(ExitCode::SUCCESS)
}
