//! `testbed`: demo, corridor and system bench, and the radio medium the testbed runs as a process
//! of its own.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use testbed::arena::{self, Entered};

#[derive(Parser)]
#[command(version, about)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show discovery, multi-hop traffic and fail-over with real daemons, in under a minute
    Demo(testbed::scenes::demo::DemoOptions),
    /// Drive past road-side units with a vehicle full of clients, and compare with the simulator
    Corridor(testbed::scenes::corridor::command::CorridorOptions),
    /// Measure the data path against the kernel's own cable and a naive relay
    Bench(testbed::bench::data_path::command::DataPathOptions),
    /// Measure the data path with the recorder on and off, or with the daemons of another build, in
    /// short turns
    Compare(testbed::bench::data_path::compare::CompareOptions),
    /// Measure round trips on an idle line, on a quiet machine or beside programs that want all
    /// its processors
    Latency(testbed::bench::data_path::latency::LatencyOptions),
    /// Load the data path in every way there is, and check every byte
    Soak(testbed::endurance::soak::command::SoakOptions),
    /// Let everything go wrong that does in a long life, and see what holds
    Days(testbed::endurance::days::command::DaysOptions),
    /// End living daemons and start them again, after seconds and after minutes, in many towns at
    /// once
    Restarts(testbed::endurance::restarts::command::RestartsOptions),
    /// Measure what hosts with an MTU of 1500 get through radios of 1500
    Mtu(testbed::bench::mtu::MtuOptions),
    /// Measure what the HTTP endpoint costs, beside a bare handler and on the way of packets
    Http(testbed::bench::http::HttpOptions),
    /// Look at the web page of living daemons in headless Chromium, and take pictures of it
    Page(testbed::scenes::page::PageOptions),
    /// Say whether this machine can run the testbed, and what is missing
    Check,
    /// Keep an arena with a medium in it until interrupted
    #[command(hide = true)]
    Hold,
    /// Carry frames between the radios in this namespace, told by JSON on standard input
    #[command(hide = true)]
    Medium {
        /// Seed of everything random
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("testbed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    match Args::parse().command {
        Command::Medium { seed } => testbed::medium::serve(seed)?,
        Command::Check => {
            arena::check()?;
            println!("This machine can run the testbed.");
        }
        Command::Hold => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => {
                let _medium = testbed::medium::MediumProcess::start(&std::env::current_exe()?, 1)?;
                println!("holding");
                loop {
                    std::thread::park();
                }
            }
        },
        Command::Corridor(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::scenes::corridor::command::run(&options)?,
        },
        Command::Bench(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::bench::data_path::command::run(&options)?,
        },
        Command::Compare(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::bench::data_path::compare::run(&options)?,
        },
        Command::Latency(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::bench::data_path::latency::run(&options)?,
        },
        Command::Soak(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::endurance::soak::command::run(&options)?,
        },
        Command::Days(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::endurance::days::command::run(&options)?,
        },
        Command::Restarts(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::endurance::restarts::command::run(&options)?,
        },
        Command::Mtu(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::bench::mtu::run(&options)?,
        },
        Command::Http(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::bench::http::run(&options)?,
        },
        Command::Page(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::scenes::page::run(&options)?,
        },
        Command::Demo(options) => match arena::enter()? {
            Entered::Over(code) => return Ok(code),
            Entered::Inside => testbed::scenes::demo::run(options)?,
        },
    }
    Ok(ExitCode::SUCCESS)
}
