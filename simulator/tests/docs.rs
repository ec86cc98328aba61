//! Documentation that can be checked: figures come from commands that can be run again, and links
//! lead somewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every document, by its path.
fn documents() -> BTreeMap<PathBuf, String> {
    let in_docs = ["docs", "docs/howto"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let in_docs = in_docs.into_iter().flatten().map(|entry| entry.unwrap().path());
    let paths = in_docs.filter(|path| path.extension().is_some_and(|e| e == "md"));
    let at_the_root = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    let paths = paths.chain(at_the_root.map(|name| root().join(name)));
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Targets of links: what stands in parentheses behind brackets.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The anchors of a document's headings, as they are made where it is shown.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let headings = text.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        heading.chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn each_figure_comes_from_a_command_that_makes_it_again_and_is_named_where_it_is_used() {
    let list = Command::new("bash").arg(root().join("docs/figures.sh")).arg("--list").output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    let commands: BTreeMap<&str, &str> =
        list.lines().map(|line| line.split_once(' ').expect("name and command")).collect();

    let files = fs::read_dir(root().join("docs/figures")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    let files: BTreeMap<String, String> = files.collect();
    let made: BTreeSet<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(made, commands.keys().copied().collect(), "figures there are, and those listed");
    for (name, text) in &files {
        let command = text.lines().next().and_then(|line| line.strip_prefix("$ "));
        assert_eq!(command, commands.get(name.as_str()).copied(), "{name}: run docs/figures.sh");
        assert!(text.lines().count() > 1, "{name}: the command printed nothing");
    }

    let documents = documents();
    let named: BTreeSet<&str> = documents
        .values()
        .flat_map(|text| links(text))
        .filter_map(|target| target.strip_prefix("figures/")?.strip_suffix(".txt"))
        .collect();
    assert_eq!(named, made, "figures the documents name, and those there are");
}

#[test]
fn links_lead_to_a_file_and_a_heading_that_are_there() {
    let documents = documents();
    for (path, text) in &documents {
        for target in links(text).filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let to =
                to.canonicalize().unwrap_or_else(|e| panic!("{}: {target}: {e}", path.display()));
            let is_there = anchor.is_empty() || anchors(&documents[&to]).contains(anchor);
            assert!(is_there, "{}: no heading for {target}", path.display());
        }
    }
}

#[test]
fn the_program_of_the_how_to_is_the_example_that_is_tested() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let (page, example) = (read("docs/howto/own-radio.md"), read("examples/own_radio.rs"));
    let program = page.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```"));
    let (program, _) = program.expect("the page has a program");
    assert!(example.contains(program), "docs/howto/own-radio.md and examples/own_radio.rs differ");
}

/// Longest line of prose, in characters: as rustfmt has it for code.
const COLUMNS: usize = 100;

/// Files with one of these endings, those that are built left out.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "md") {
            found.push(path);
        }
    }
}

/// Tables, code and words that are longer cannot be wrapped.
#[test]
fn prose_is_no_wider_than_code() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let mut wide = Vec::new();
    for path in files {
        let is_document = path.extension().is_some_and(|e| e == "md");
        let text = fs::read_to_string(&path).unwrap();
        let mut is_code = false;
        for (line, number) in text.lines().zip(1..) {
            let comment = line.trim_start().strip_prefix("//");
            let prose = comment.map(|prose| prose.trim_start_matches(['/', '!']));
            let prose = if is_document { Some(line) } else { prose };
            let Some(prose) = prose else { continue };
            let prose = prose.trim();
            is_code ^= prose.starts_with("```");
            let can_wrap = !is_code && !prose.starts_with('|') && prose.contains(' ');
            if can_wrap && line.chars().count() > COLUMNS {
                wide.push(format!("{}:{number}", path.display()));
            }
        }
    }
    assert_eq!(wide, [""; 0]);
}
