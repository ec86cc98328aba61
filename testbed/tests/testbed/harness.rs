//! `main` of a test that runs in the arena, and what several tests need.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use testbed::LOGS;
use testbed::arena::{self, Entered};

/// A test's name and what it does.
pub(crate) type Test = (&'static str, fn() -> Result<()>);

/// Tests of one file. Their names begin with the area's.
pub(crate) struct Area {
    pub(crate) name: &'static str,
    /// Those that load the machine or measure what a loaded one would change: one at a time.
    pub(crate) alone: &'static [Test],
    /// Those that wait most of the time.
    pub(crate) together: &'static [Test],
}

/// Tests that run at once, of those that may. Each takes about a tenth of a core.
const TOGETHER: usize = 4;

/// Set for a test that runs in a process of its own.
const IS_ONE: &str = "V2X_TESTBED_ONE_TEST";

/// Runs first the tests that may run together, several at a time, then the others, each alone. Each
/// is in an arena of its own. One that is called by its whole name runs in this process.
pub(crate) fn main(areas: &[Area]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let of_all = |choose: fn(&Area) -> &'static [Test]| {
        let tests = areas.iter().flat_map(move |area| {
            choose(area).iter().map(|&(name, test)| (format!("{}::{name}", area.name), test))
        });
        tests.collect::<Vec<_>>()
    };
    let (together, alone) = (of_all(|area| area.together), of_all(|area| area.alone));
    let is_one = std::env::var_os(IS_ONE).is_some();
    let trials = if is_one || arguments.list || arguments.exact {
        if is_one {
            // Else a test would outlive a runner that is killed.
            set_pdeathsig(Signal::SIGKILL).expect("prctl");
        }
        match arena::enter() {
            Ok(Entered::Over(code)) => return code,
            Ok(Entered::Inside) => {}
            Err(error) => return cannot_run(&error),
        }
        arguments.test_threads = Some(1);
        together.into_iter().chain(alone).map(|(name, test)| trial(name, test)).collect()
    } else {
        if let Err(error) = arena::check() {
            return cannot_run(&error);
        }
        arguments.test_threads = Some(TOGETHER);
        let nocapture = arguments.nocapture;
        let beside = together.into_iter().map(|(name, _)| {
            trial(name.clone(), move || {
                let _others = ALONE.read().unwrap_or_else(PoisonError::into_inner);
                in_its_own_process(&name, nocapture)
            })
        });
        let alone = alone.into_iter().map(|(name, _)| {
            trial(name.clone(), move || {
                let _nobody = ALONE.write().unwrap_or_else(PoisonError::into_inner);
                in_its_own_process(&name, nocapture)
            })
        });
        beside.chain(alone).collect()
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Held by all that run beside others, or by one that runs alone.
static ALONE: RwLock<()> = RwLock::new(());

fn trial(name: String, test: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    Trial::test(name, || test().map_err(|error| Failed::from(format!("{error:#}"))))
}

/// Never skipped: a machine that cannot run these tests has not passed them.
fn cannot_run(error: &anyhow::Error) -> ExitCode {
    eprintln!("these tests cannot run here: {error:#}");
    ExitCode::FAILURE
}

/// Runs one test of this program in an arena of its own. What it says is shown if it fails.
fn in_its_own_process(name: &str, shows: bool) -> Result<()> {
    let mut run = Command::new(std::env::current_exe()?);
    run.args(["--exact", name]).env(IS_ONE, "1").stdin(Stdio::null());
    // Nodes of two tests have the same names, and would write into the same files.
    if let Some(logs) = std::env::var_os(LOGS) {
        run.env(LOGS, Path::new(&logs).join(name));
    }
    if shows {
        run.arg("--nocapture").stdout(Stdio::inherit()).stderr(Stdio::inherit());
    }
    let output = run.output().context("start this program again")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}\n{said}{complained}", output.status);
    ensure!(shows || said.contains("1 passed"), "it did not run:\n{said}");
    Ok(())
}

/// `10 ms`, and so on.
pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
