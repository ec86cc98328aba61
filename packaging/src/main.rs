//! Writes the manual pages and completions of the daemons into a folder, from the flags that the daemons have.
//!
//! A program of its own, run when a package is made, so that the daemons carry nothing of it.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

// The definitions themselves: the daemons are programs, and nobody can link them.
#[path = "../../obu_bin/src/args.rs"]
#[allow(dead_code, reason = "only what was typed counts here, not what it means")]
mod obu;
#[path = "../../rsu_bin/src/args.rs"]
#[allow(dead_code, reason = "only what was typed counts here, not what it means")]
mod rsu;

/// Section of the manual: daemons.
const SECTION: &str = "8";

/// The programs, with their flags and variables.
fn programs() -> [(&'static str, Command); 2] {
    [
        ("obu", daemon::args::command::<obu::Args>(daemon::OBU)),
        ("rsu", daemon::args::command::<rsu::Args>(daemon::RSU)),
    ]
}

/// Every file about a program, by name.
fn pages(name: &str, command: &Command) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).section(SECTION).render(&mut page)?;
    let shells = [
        (Shell::Bash, format!("{name}.bash")),
        (Shell::Zsh, format!("_{name}")),
        (Shell::Fish, format!("{name}.fish")),
    ];
    let mut files = vec![(format!("{name}.{SECTION}"), page)];
    files.extend(shells.into_iter().map(|(shell, file)| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), name, &mut script);
        (file, script)
    }));
    Ok(files)
}

fn write(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    for (name, command) in programs() {
        for (file, content) in pages(name, &command)? {
            let path = directory.join(file);
            fs::write(&path, content).with_context(|| path.display().to_string())?;
        }
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

    #[test]
    fn every_flag_stands_in_every_page_and_its_variable_in_the_manual() {
        for (name, command) in programs() {
            let files = pages(name, &command).unwrap();
            assert_eq!(files.len(), 4);
            for (file, content) in &files {
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
    fn examples_name_variables_there_are_with_values_that_are_taken() {
        for ((name, command), file) in programs().into_iter().zip(["car", "road"]) {
            let path = format!("{}/etc/{file}.env.example", env!("CARGO_MANIFEST_DIR"));
            let text = fs::read_to_string(path).unwrap();
            let mut line = vec![name.to_owned()];
            // What is commented out is an example too; a comment in words has a space behind the sign.
            for setting in text.lines().map(|line| line.trim_start_matches('#')) {
                let Some((variable, value)) = setting.split_once('=') else { continue };
                let arg = command.get_arguments().find(|arg| arg.get_env().unwrap() == variable);
                let arg =
                    arg.unwrap_or_else(|| panic!("{file}: no flag has the variable {variable}"));
                line.extend([format!("--{}", arg.get_long().unwrap()), value.to_owned()]);
            }
            assert!(line.len() > 5, "{line:?}");
            command.try_get_matches_from(line).unwrap();
        }
    }
}
