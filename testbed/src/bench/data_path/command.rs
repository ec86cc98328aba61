//! `testbed bench`: all rounds, with a table, a picture and every single run in a file.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::json;

use super::machine::Machine;
use super::measure::BenchPlan;
use super::results::{BenchResults, FIGURES};
use super::{Progress, chart, table};
use crate::arena;
use crate::screen::Screen;

/// What is measured, and where the results go.
#[derive(Args, Debug)]
pub struct DataPathOptions {
    /// How often everything is measured, in turns
    #[arg(long, default_value_t = 7,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    rounds: usize,
    /// Only variants whose name has this in it, such as "1 hop"; several times for any of several.
    /// "one loop" and "two threads" are measured only when asked for
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Directory for bench.txt, bench.md, bench.json and bench.svg; by default target/bench
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Measures inside the arena, and writes the results.
pub fn run(options: &DataPathOptions) -> Result<()> {
    let output = options.output.clone().map_or_else(default_output, Ok)?;
    run_plan(&BenchPlan::full(options.rounds), &options.only, &output)
}

/// Measures as much as this plan says, with the variants [chosen](super::BenchVariant::chosen) by
/// `only`, and writes the results to a directory.
pub fn run_plan(plan: &BenchPlan, only: &[String], output: &Path) -> Result<()> {
    let start = Instant::now();
    std::fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    let machine = Machine::look();
    let screen = Screen::new();
    screen.title("The data path against the kernel's cable and a naive relay, in turns");
    screen.dim(
        "Real programs in private namespaces over plain veth. Leave the machine alone meanwhile.",
    );
    let logs = tempfile::TempDir::new_in(arena::scratch())?;
    let results = super::run(plan, only, logs.path(), &mut |progress| match progress {
        Progress::Round => screen.step(&format!("round of {}", plan.rounds)),
        Progress::Run(run) => screen.plain(&table::line(run)),
        Progress::FullRsu => screen.dim("A road-side unit learns as many clients as it can."),
    })?;
    let text = table::all(&machine, &results);
    screen.text(&format!("\n{text}"));
    write(output, &machine, &results, &text)?;
    let took = start.elapsed().as_secs();
    screen.dim(&format!("{took} s. All runs are in {}, with a picture.", output.display()));
    Ok(())
}

/// Writes the files.
fn write(output: &Path, machine: &Machine, results: &BenchResults, text: &str) -> Result<()> {
    let medians = results.variants.iter().map(|variant| {
        let figures = FIGURES.iter().filter_map(|figure| {
            let spread = results.spread(*variant, figure)?;
            Some((figure.key.to_owned(), json!({ "unit": figure.unit, "spread": spread })))
        });
        (variant.name(), figures.collect::<serde_json::Map<_, _>>().into())
    });
    let all = json!({
        "machine": machine,
        "results": results,
        "medians": medians.collect::<serde_json::Map<_, _>>(),
    });
    let put = |name: &str, content: String| {
        let path = output.join(name);
        std::fs::write(&path, content).with_context(|| path.display().to_string())
    };
    put("bench.json", serde_json::to_string_pretty(&all)?)?;
    put("bench.txt", text.to_owned())?;
    put("bench.md", table::markdown(results))?;
    put("bench.svg", chart::draw(results)?)
}

/// Beside the directory of the programs, which is one of cargo's.
fn default_output() -> Result<PathBuf> {
    let program = std::env::current_exe().context("path of this program")?;
    let target = program.parent().and_then(Path::parent).context("directory of this program")?;
    Ok(target.join("bench"))
}
