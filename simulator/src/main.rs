//! `v2xsim`: runs scenarios of vehicles and road-side units in virtual time.

mod args;
mod commands;

use std::process::ExitCode;

use args::{Args, SimCommand};
use clap::Parser as _;

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.command {
        SimCommand::Run(run) => commands::run::run(run),
        SimCommand::Check(check) => commands::check::check(check),
        SimCommand::Map(map) => commands::map::map(map),
        SimCommand::Page(page) => commands::page::page(page),
        SimCommand::Links(links) => commands::links::links(links),
        SimCommand::Protocols(protocols) => commands::protocols::protocols(protocols),
        SimCommand::Sweep(sweep) => commands::sweep::sweep(sweep),
        SimCommand::Compare(compare) => commands::sweep::compare(compare),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("v2xsim: {error:#}");
            ExitCode::from(commands::UNUSABLE)
        }
    }
}
