//! The structure of the code: which way arrows between files go, and how much each crate holds.
//! `make structure` prints the figures.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, UseTree, Visibility};

/// No crate holds more of all lines of code.
const SHARE_MAX_PERCENT: usize = 30;

const COLUMNS_MAX: usize = 100;

type Module = Vec<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The crates of the workspace with a `src`, by directory.
fn crates() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let names = members.split('"').skip(1).step_by(2).map(str::to_owned);
    names.filter(|name| root().join(name).join("src").is_dir()).collect()
}

/// Every source file below.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The module a file holds, from the root of its crate on.
fn module(file: &Path, src: &Path) -> Module {
    let mut parts: Module = file
        .strip_prefix(src)
        .unwrap()
        .with_extension("")
        .iter()
        .map(|part| part.to_str().unwrap().to_owned())
        .collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// Paths a file names outside its tests, and those it hands on to others (`pub use`).
#[derive(Default)]
struct Names {
    module: Module,
    named: Vec<Module>,
    handed_on: BTreeMap<String, Module>,
    depth: usize,
}

impl Names {
    /// `path` from the root of the crate on, if it leads anywhere within it.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let mut at = self.module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            // `super`, taken below; or a child of this module or something from elsewhere: told
            // apart by whoever looks it up.
            _ => {}
        }
        while rest.first().is_some_and(|part| part == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        at.extend(rest.iter().cloned());
        Some(at)
    }

    fn note(&mut self, path: &[String], is_handed_on: bool, alias: Option<String>) {
        let Some(absolute) = self.absolute(path) else { return };
        if is_handed_on {
            let name = alias.or_else(|| path.last().cloned()).unwrap();
            self.handed_on.insert(name, absolute);
        } else {
            self.named.push(absolute);
        }
    }

    fn tree(&mut self, tree: &UseTree, before: &[String], is_handed_on: bool) {
        let mut path = before.to_vec();
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&part.tree, &path, is_handed_on);
            }
            UseTree::Name(name) if name.ident == "self" => self.note(&path, is_handed_on, None),
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.note(&path, is_handed_on, None);
            }
            UseTree::Rename(rename) => {
                path.push(rename.ident.to_string());
                self.note(&path, is_handed_on, Some(rename.rename.to_string()));
            }
            UseTree::Glob(_) => self.note(&path, false, None),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, &path, is_handed_on);
                }
            }
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        is_cfg && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'a> Visit<'a> for Names {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        // A module within the file: `super` in it is the file's own.
        if item.content.is_some() {
            self.depth += 1;
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
            self.depth -= 1;
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        let is_handed_on = self.depth == 0 && !matches!(item.vis, Visibility::Inherited);
        self.tree(&item.tree, &[], is_handed_on);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if matches!(parts[0].as_str(), "crate" | "super" | "self") && parts.len() > 1 {
            self.note(&parts, false, None);
        }
        visit::visit_path(self, path);
    }
}

/// The file that defines what `path` leads to, through everything that hands it on.
fn home(path: &[String], files: &BTreeMap<Module, Names>) -> Option<Module> {
    let mut path = path.to_vec();
    // Names handed on from hand to hand come to an end.
    for _ in 0..8 {
        let at = (0..=path.len()).rev().find(|end| files.contains_key(&path[..*end]))?;
        let holder = path[..at].to_vec();
        match path.get(at).and_then(|name| files[&holder].handed_on.get(name)) {
            Some(target) => {
                let rest = path.split_off(at + 1);
                path = [target.clone(), rest].concat();
            }
            None => return Some(holder),
        }
    }
    None
}

/// Arrows from file to file within one crate: what the first takes from the second.
fn arrows(directory: &str) -> BTreeSet<(Module, Module)> {
    let src = root().join(directory).join("src");
    let files: BTreeMap<Module, Names> = sources(&src)
        .into_iter()
        // A program over the library of the same crate: nothing takes anything from it.
        .filter(|file| {
            let is_main = file.ends_with("src/main.rs") && src.join("lib.rs").exists();
            !is_main && !file.strip_prefix(&src).unwrap().starts_with("bin")
        })
        .map(|file| {
            let module = module(&file, &src);
            let mut names = Names { module: module.clone(), ..Names::default() };
            let text = fs::read_to_string(&file).unwrap();
            names.visit_file(&syn::parse_file(&text).unwrap());
            (module, names)
        })
        .collect();
    let mut arrows = BTreeSet::new();
    for (from, names) in &files {
        for path in &names.named {
            match home(path, &files) {
                // A type whose methods stand in several files is at home in their parent: a module
                // and its parts are one room. So is the root of a crate, which hands on.
                Some(to) if !from.starts_with(&to) => {
                    arrows.insert((from.clone(), to));
                }
                _ => {}
            }
        }
    }
    arrows
}

/// Files that take from each other in a circle.
fn circles(arrows: &BTreeSet<(Module, Module)>) -> Vec<Vec<String>> {
    let shown: Vec<_> = arrows.iter().map(|(from, to)| (from.join("::"), to.join("::"))).collect();
    let graph: DiGraphMap<&str, ()> =
        shown.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let several = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
    several.map(|circle| circle.into_iter().map(str::to_owned).collect()).collect()
}

#[test]
fn no_files_take_from_each_other_in_a_circle_and_no_crate_is_the_whole_house() {
    let mut lines = BTreeMap::new();
    let mut long = BTreeMap::new();
    let mut in_circles = BTreeMap::new();
    for name in crates() {
        let mut texts = Vec::new();
        for file in sources(&root().join(&name).join("src")) {
            texts.push(fs::read_to_string(file).unwrap());
        }
        let of = |text: &String| text.lines().count();
        lines.insert(name.clone(), texts.iter().map(of).sum::<usize>());
        let of =
            |text: &String| text.lines().filter(|line| line.chars().count() > COLUMNS_MAX).count();
        long.insert(name.clone(), texts.iter().map(of).sum::<usize>());
        let arrows = arrows(&name);
        in_circles.insert(name, circles(&arrows));
    }
    let all: usize = lines.values().sum();
    println!("crate            lines  share  over {COLUMNS_MAX} columns  circles");
    for (name, count) in &lines {
        let (share, long, circles) = (100 * count / all, long[name], in_circles[name].len());
        println!("{name:<15} {count:>6}  {share:>3} %  {long:>16}  {circles:>7}");
    }
    println!("{:<15} {all:>6}", "all");
    let found: Vec<_> = in_circles.iter().filter(|(_, circles)| !circles.is_empty()).collect();
    assert!(found.is_empty(), "files in circles: {found:#?}");
    let (largest, most) = lines.iter().max_by_key(|(_, count)| **count).unwrap();
    let most = 100 * most / all;
    assert!(most < SHARE_MAX_PERCENT, "{largest} has {most} % of all lines");
}

/// What the test above looks with finds a circle where there is one.
#[test]
fn arrows_are_followed_through_names_handed_on() {
    let file = |module: &str, text: &str| {
        let module: Module =
            module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut names = Names { module: module.clone(), ..Names::default() };
        names.visit_file(&syn::parse_file(text).unwrap());
        (module, names)
    };
    let files: BTreeMap<_, _> = [
        file("", "mod a; mod b;"),
        file("a", "mod inner; pub use inner::Thing;"),
        file("a::inner", "use crate::b::{self, B as _}; #[cfg(test)] mod tests { use crate::c; }"),
        file("b", "fn f() -> crate::a::Thing { todo!() } mod own { use super::super::a; }"),
    ]
    .into();
    let to = |from: &str| {
        let from: Module = from.split("::").map(str::to_owned).collect();
        let homes = files[&from].named.iter().filter_map(|path| home(path, &files));
        homes.map(|module| module.join("::")).collect::<Vec<_>>()
    };
    assert_eq!(to("a::inner"), ["b", "b"]);
    assert_eq!(to("b"), ["a::inner", "a"]);
}
