//! `main` of a test that runs in the arena, and what several tests need.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use testbed::arena::{self, Entered};

/// A test's name and what it does.
pub(crate) type Test = (&'static str, fn() -> Result<()>);

/// Enters the arena and runs the tests there, one at a time: they share two cores with nobody.
pub(crate) fn main(tests: &[Test]) -> ExitCode {
    match arena::enter() {
        Ok(Entered::Over(code)) => return code,
        Ok(Entered::Inside) => {}
        // Never skipped: a machine that cannot run these tests has not passed them.
        Err(error) => {
            eprintln!("these tests cannot run here: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trials = tests.iter().map(|(name, test)| {
        let test = *test;
        Trial::test(*name, move || test().map_err(|error| Failed::from(format!("{error:#}"))))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// `10 ms`, and so on.
pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
