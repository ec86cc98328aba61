//! Writes the manual pages and completions of the daemons and tools into a folder, from the flags
//! that they have.
//!
//! A program of its own, run when a package is made, so that the others carry nothing of it.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

// The definitions themselves: these are programs, and nobody can link them.
#[path = "../../ctl_bin/src/args.rs"]
#[allow(dead_code, reason = "only what was typed counts here, not what it means")]
mod ctl;
#[path = "../../obu_bin/src/args.rs"]
#[allow(dead_code, reason = "only what was typed counts here, not what it means")]
mod obu;
#[path = "../../rsu_bin/src/args.rs"]
#[allow(dead_code, reason = "only what was typed counts here, not what it means")]
mod rsu;

/// Section of the manual: daemons. Tools are in the first.
const SECTION: &str = "8";

/// The daemons, with their flags and variables.
fn daemons() -> [(&'static str, Command); 2] {
    [
        ("obu", daemon::args::command::<obu::Args>(daemon::OBU)),
        ("rsu", daemon::args::command::<rsu::Args>(daemon::RSU)),
    ]
}

/// What looks inside them, and at what they recorded.
fn tools() -> [(&'static str, Command); 2] {
    [("v2xctl", ctl::Args::command()), ("v2xtrace", recorder::cli::Args::command())]
}

/// The manual page of a daemon.
fn manual(command: &Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).section(SECTION).render(&mut page)?;
    Ok(page)
}

/// Completions of a program, by the name of the file.
fn completions(name: &str, command: &Command) -> [(String, Vec<u8>); 3] {
    [
        (Shell::Bash, format!("{name}.bash")),
        (Shell::Zsh, format!("_{name}")),
        (Shell::Fish, format!("{name}.fish")),
    ]
    .map(|(shell, file)| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), name, &mut script);
        (file, script)
    })
}

fn write(directory: &Path) -> anyhow::Result<()> {
    let named = || directory.display().to_string();
    fs::create_dir_all(directory).with_context(named)?;
    let mut files = Vec::new();
    for (name, command) in daemons() {
        files.push((format!("{name}.{SECTION}"), manual(&command)?));
        files.extend(completions(name, &command));
    }
    for (name, command) in tools() {
        files.extend(completions(name, &command));
        // A page for the tool, and one for each of its commands.
        clap_mangen::generate_to(command, directory).with_context(named)?;
    }
    for (file, content) in files {
        let path = directory.join(file);
        fs::write(&path, content).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1);
    let (Some(directory), None) = (words.next(), words.next()) else {
        eprintln!("pages: expected one word, the folder to write to");
        return ExitCode::from(2);
    };
    match write(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pages: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::config::{self, File};

    #[test]
    fn every_flag_stands_in_every_page_and_its_variable_in_the_manual() {
        for (name, command) in daemons() {
            let manual = (format!("{name}.8"), manual(&command).unwrap());
            for (file, content) in completions(name, &command).iter().chain([&manual]) {
                // The manual writes each hyphen so that nobody breaks the line there.
                let text = String::from_utf8_lossy(content).replace("\\-", "-");
                for arg in command.get_arguments() {
                    let flag = arg.get_long().unwrap();
                    // Fish names flags without their hyphens.
                    let is_there =
                        text.contains(&format!("--{flag}")) || text.contains(&format!("-l {flag}"));
                    assert!(is_there, "{file} lacks --{flag}");
                    let variable = arg.get_env().unwrap().to_string_lossy();
                    let needs = file.ends_with(".8");
                    assert!(!needs || text.contains(&*variable), "{file} lacks {variable}");
                }
            }
        }
    }

    #[test]
    fn every_command_of_a_tool_has_a_page_with_its_flags() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        for (name, command) in tools() {
            let page = |name: &str| {
                let path = directory.path().join(format!("{name}.1"));
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}.1: {error}"))
            };
            let first = page(name);
            for sub in command.get_subcommands() {
                let of_sub = format!("{name}-{}", sub.get_name());
                assert!(first.contains(&of_sub.replace('-', "\\-")), "{name}.1 lacks {of_sub}");
                let text = page(&of_sub).replace("\\-", "-");
                for flag in sub.get_arguments().filter_map(|arg| arg.get_long()) {
                    assert!(text.contains(&format!("--{flag}")), "{of_sub} lacks --{flag}");
                }
            }
        }
    }

    #[test]
    fn every_setting_stands_in_the_example_and_is_taken() {
        for ((name, command), file) in daemons().into_iter().zip(["car", "road"]) {
            let path = format!("{}/etc/{file}.toml.example", env!("CARGO_MANIFEST_DIR"));
            File::read(Path::new(&path), &command).unwrap_or_else(|faults| panic!("{faults:?}"));
            let text = fs::read_to_string(&path).unwrap();
            // What is commented out is an example too; a comment in words has a space behind the
            // sign.
            let all: String = text
                .lines()
                .map(|line| {
                    line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line)
                })
                .map(|line| format!("{line}\n"))
                .collect();
            let directory = tempfile::tempdir().unwrap();
            let whole = directory.path().join("all.toml");
            fs::write(&whole, &all).unwrap();
            let read =
                File::read(&whole, &command).unwrap_or_else(|faults| panic!("{path}: {faults:?}"));
            for arg in config::settings(&command) {
                let key = arg.get_id().as_str();
                assert!(
                    read.place(key).is_some(),
                    "--{} of {name} has no key in packaging/etc/{file}.toml.example: add a line \
                     with {key}, or, if it is no setting, its name to NOT_SETTINGS in \
                     daemon/src/config.rs",
                    arg.get_long().unwrap_or_default()
                );
            }
        }
    }

    #[test]
    fn the_example_of_the_document_is_taken() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operating.md");
        let document = fs::read_to_string(document).unwrap();
        let example = document.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("car.toml");
        fs::write(&path, example).unwrap();
        let [(_, obu), _] = daemons();
        let file = File::read(&path, &obu).unwrap_or_else(|faults| panic!("{faults:?}"));
        assert!(file.place("bind").is_some() && file.place("log").is_some());
    }
}
