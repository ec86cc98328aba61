//! `v2xsim`: runs scenarios of vehicles and road-side units in virtual time.

mod args;
mod commands;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser as _;

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.command {
        Command::Run(run) => commands::run::run(run),
        Command::Check(check) => commands::check::check(check),
        Command::Map(map) => commands::map::map(map),
        Command::Page(page) => commands::page::page(page),
        Command::Links(links) => commands::links::links(links),
        Command::Protocols(protocols) => commands::protocols::protocols(protocols),
        Command::Sweep(sweep) => commands::sweep::sweep(sweep),
        Command::Compare(compare) => commands::sweep::compare(compare),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("v2xsim: {error:#}");
            ExitCode::from(commands::UNUSABLE)
        }
    }
}
