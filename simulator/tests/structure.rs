//! The structure of the code: which way arrows between files go, how much each crate holds, how
//! long files and lines are, and what stands twice. `make structure` prints the figures, `make
//! structure AT=<commit>` those of another state.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::{env, fs};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, UseTree, Visibility};

/// No crate holds more of all lines of code.
const SHARE_MAX_PERCENT: usize = 30;

const COLUMNS_MAX: usize = 100;

/// A file that is longer holds more than one concept.
const LINES_MAX: usize = 700;

/// So many lines that are the same in two places are a pair of repeated lines.
const REPEATED_MIN: usize = 6;

/// The directory of another state of the sources. It is shown, and not judged.
const OTHER: &str = "STRUCTURE_OF";

type Module = Vec<String>;

fn root() -> PathBuf {
    match env::var_os(OTHER) {
        Some(other) => other.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned(),
    }
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
    files(directory, "rs")
}

/// Every file below whose name ends so, but what is built.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lines of code and comments that are too long, but rows of tables, which cannot be broken.
fn long_code(text: &str) -> usize {
    let is_long = |line: &&str| line.chars().count() > COLUMNS_MAX;
    let is_row = |line: &str| {
        let comment = line.trim_start().strip_prefix("//");
        comment.is_some_and(|rest| rest.trim_start_matches(['/', '!', ' ']).starts_with('|'))
    };
    text.lines().filter(is_long).filter(|line| !is_row(line)).count()
}

/// Lines of prose in a document that are too long: tables, blocks and words that are longer cannot
/// be broken.
fn long_prose(text: &str) -> usize {
    let mut is_block = false;
    let is_long = |line: &&str| {
        is_block ^= line.trim_start().starts_with("```");
        let can_break = !is_block && !line.starts_with('|') && line.trim().contains(' ');
        can_break && line.chars().count() > COLUMNS_MAX
    };
    text.lines().filter(is_long).count()
}

/// Lines of a file that count when it is compared: not blank, no comment, no `use`, and more than a
/// bracket; without what stands before them, and with their numbers.
fn compared(text: &str) -> Vec<(usize, &str)> {
    let numbered = text.lines().map(str::trim).zip(1..);
    let counts = |line: &str| {
        let is_word = line.chars().any(char::is_alphanumeric);
        is_word && !line.starts_with("//") && !line.starts_with("use ")
    };
    numbered.filter(|(line, _)| counts(line)).map(|(line, number)| (number, line)).collect()
}

/// Two places with the same lines: file and first line of each, and how many.
#[derive(Debug, PartialEq)]
struct Repeated {
    one: (usize, usize),
    other: (usize, usize),
    lines: usize,
}

/// Pairs of places in these texts that have at least [`REPEATED_MIN`] lines in common.
fn repeated(texts: &[String]) -> Vec<Repeated> {
    let files: Vec<_> = texts.iter().map(|text| compared(text)).collect();
    let mut places: HashMap<Vec<&str>, Vec<(usize, usize)>> = HashMap::new();
    for (file, lines) in files.iter().enumerate() {
        for (at, window) in lines.windows(REPEATED_MIN).enumerate() {
            let window = window.iter().map(|(_, line)| *line).collect();
            places.entry(window).or_default().push((file, at));
        }
    }
    let line = |(file, at): (usize, usize)| files[file].get(at).map(|(_, line)| *line);
    let mut found = Vec::new();
    for alike in places.values() {
        for (number, &one) in alike.iter().enumerate() {
            for &other in &alike[number + 1..] {
                // Where the lines before are the same too, the pair began earlier.
                let goes_back = one.1 > 0
                    && other.1 > 0
                    && line((one.0, one.1 - 1)) == line((other.0, other.1 - 1));
                let overlaps = one.0 == other.0 && other.1 < one.1 + REPEATED_MIN;
                if goes_back || overlaps {
                    continue;
                }
                let same = (0..).take_while(|further| {
                    let next = line((one.0, one.1 + further));
                    next.is_some() && next == line((other.0, other.1 + further))
                });
                let number = |(file, at): (usize, usize)| (file, files[file][at].0);
                let (one, other, lines) = (number(one), number(other), same.count());
                found.push(Repeated { one, other, lines });
            }
        }
    }
    found.sort_by_key(|pair| (std::cmp::Reverse(pair.lines), pair.one, pair.other));
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
    let mut in_circles = BTreeMap::new();
    for name in crates() {
        let texts = sources(&root().join(&name).join("src")).into_iter().map(read);
        lines.insert(name.clone(), texts.map(|text| text.lines().count()).sum::<usize>());
        let arrows = arrows(&name);
        in_circles.insert(name, circles(&arrows));
    }
    let all: usize = lines.values().sum();
    println!("crate            lines  share  circles");
    for (name, count) in &lines {
        let (share, circles) = (100 * count / all, in_circles[name].len());
        println!("{name:<15} {count:>6}  {share:>3} %  {circles:>7}");
    }
    println!("{:<15} {all:>6}  (`src`, tests in it included)", "all");
    let found: Vec<_> = in_circles.iter().filter(|(_, circles)| !circles.is_empty()).collect();
    println!("files in circles: {}", found.iter().flat_map(|(_, all)| *all).flatten().count());
    let (largest, most) = lines.iter().max_by_key(|(_, count)| **count).unwrap();
    let most = 100 * most / all;
    println!("largest share: {largest}, {most} %");
    if env::var_os(OTHER).is_none() {
        assert!(found.is_empty(), "files in circles: {found:#?}");
        assert!(most < SHARE_MAX_PERCENT, "{largest} has {most} % of all lines");
    }
}

fn read(file: PathBuf) -> String {
    fs::read_to_string(file).unwrap()
}

#[test]
fn lines_are_short_in_code_and_in_documents() {
    let mut long = Vec::new();
    for (ending, count) in [("rs", long_code as fn(&str) -> usize), ("md", long_prose)] {
        let before = long.len();
        for file in files(&root(), ending) {
            let count = count(&read(file.clone()));
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            long.extend((count > 0).then_some((name, count)));
        }
        let count: usize = long[before..].iter().map(|(_, count)| count).sum();
        println!("lines over {COLUMNS_MAX} columns, *.{ending}, tables apart: {count}");
    }
    if env::var_os(OTHER).is_none() {
        assert!(long.is_empty(), "{long:#?}");
    }
}

/// Files of code that are too long, and how many lines they have.
fn long_files(below: &Path) -> Vec<(String, usize)> {
    let length = |file: PathBuf| {
        let name = file.strip_prefix(below).unwrap().display().to_string();
        (name, read(file).lines().count())
    };
    let all = files(below, "rs").into_iter().map(length);
    all.filter(|(_, lines)| *lines > LINES_MAX).collect()
}

#[test]
fn no_file_of_code_is_too_long() {
    let long = long_files(&root());
    println!("files of code over {LINES_MAX} lines: {}", long.len());
    if env::var_os(OTHER).is_none() {
        assert!(long.is_empty(), "each a second concept, which gets a file of its own: {long:#?}");
    }
    let planted = tempfile::tempdir().unwrap();
    for (name, lines) in [("just.rs", LINES_MAX), ("long.rs", LINES_MAX + 1)] {
        fs::write(planted.path().join(name), "\n".repeat(lines)).unwrap();
    }
    assert_eq!(long_files(planted.path()), [("long.rs".to_owned(), LINES_MAX + 1)]);
}

/// Who may use a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    /// Its own module.
    Within,
    /// Others of its crate.
    Beside,
    /// Whoever links the crate.
    Outside,
}

impl Seen {
    fn of(visibility: &Visibility) -> Self {
        match visibility {
            Visibility::Public(_) => Self::Outside,
            Visibility::Restricted(_) => Self::Beside,
            Visibility::Inherited => Self::Within,
        }
    }
}

/// Names of the types of these items, tests apart, that are seen at least so far.
fn types(items: &[Item], from: Seen) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        let (visibility, name, attributes) = match item {
            Item::Struct(item) => (&item.vis, &item.ident, &item.attrs),
            Item::Enum(item) => (&item.vis, &item.ident, &item.attrs),
            Item::Trait(item) => (&item.vis, &item.ident, &item.attrs),
            Item::Type(item) => (&item.vis, &item.ident, &item.attrs),
            Item::Mod(ItemMod { content: Some((_, items)), attrs, .. }) if !is_test(attrs) => {
                names.extend(types(items, from));
                continue;
            }
            _ => continue,
        };
        if Seen::of(visibility) >= from && !is_test(attributes) {
            names.push(name.to_string());
        }
    }
    names
}

/// Types of a library that are seen at least so far: their names, and where they stand.
fn homes(library: &str, from: Seen) -> BTreeMap<String, Vec<String>> {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources(&root().join(library).join("src")) {
        let place = file.strip_prefix(root()).unwrap().display().to_string();
        let parsed = syn::parse_file(&read(file)).unwrap();
        let items = if is_test(&parsed.attrs) { Vec::new() } else { parsed.items };
        for name in types(&items, from) {
            homes.entry(name).or_default().push(place.clone());
        }
    }
    homes
}

/// Whoever links these meets their types side by side.
#[test]
fn no_library_has_two_public_types_of_one_name() {
    let there_is = |name: &&str| root().join(name).join("src").is_dir();
    let libraries = ["node_lib", "obu_lib", "rsu_lib", "sim", "control_socket"];
    assert!(libraries.iter().all(there_is) || env::var_os(OTHER).is_some());
    for name in libraries.into_iter().filter(there_is) {
        let mut homes = homes(name, Seen::Outside);
        homes.retain(|_, places| places.len() > 1);
        println!("public types of one name in {name}: {}", homes.len());
        if env::var_os(OTHER).is_none() {
            assert!(homes.is_empty(), "{name}: {homes:#?}");
        }
    }
}

/// A crate, which of its types count, and the libraries whose public types its reader meets beside
/// them.
const VIEWS: [(&str, Seen, &[&str]); 11] = [
    ("node_lib", Seen::Beside, &[]),
    ("obu_lib", Seen::Within, &["node_lib"]),
    ("rsu_lib", Seen::Within, &["node_lib"]),
    ("sim", Seen::Beside, &["node_lib"]),
    ("control_socket", Seen::Within, &["node_lib"]),
    ("capi", Seen::Within, &["node_lib"]),
    ("recorder", Seen::Beside, &["node_lib"]),
    ("daemon", Seen::Beside, &["node_lib", "control_socket"]),
    ("ctl_bin", Seen::Beside, &["node_lib", "control_socket"]),
    (
        "simulator",
        Seen::Beside,
        &["node_lib", "obu_lib", "rsu_lib", "sim", "control_socket", "web_page"],
    ),
    ("testbed", Seen::Beside, &["node_lib", "obu_lib", "rsu_lib", "sim", "simulator"]),
];

/// Who reads one of these crates meets its types beside the public ones of the libraries it is made
/// of. Of the small ones and of the roles each type counts, also one of a single file; of the
/// others each that several files share. Two libraries that never meet may have types of one name:
/// both roles have `Settings`, and who uses them says whose.
#[test]
fn no_two_types_of_one_name_are_in_one_crates_view() {
    let there_is = |name: &str| root().join(name).join("src").is_dir();
    assert!(homes("node_lib", Seen::Outside).len() > 100);
    for (name, from, libraries) in VIEWS.into_iter().filter(|(name, ..)| there_is(name)) {
        let mut view = homes(name, from);
        assert!(!view.is_empty(), "{name}");
        for library in libraries.iter().filter(|library| there_is(library)) {
            for (name, places) in homes(library, Seen::Outside) {
                view.entry(name).and_modify(|own| own.extend(places));
            }
        }
        view.retain(|_, places| places.len() > 1);
        println!("types of one name in the view of {name}: {}", view.len());
        if env::var_os(OTHER).is_none() {
            assert!(view.is_empty(), "{name}: {view:#?}");
        }
    }
}

/// What the tests above look with tells who sees a type, and leaves those of tests out.
#[test]
fn types_are_found_by_who_sees_them() {
    let text = "struct A; pub(super) enum B {} pub(crate) trait C {} pub type D = u8; mod m { pub \
                struct E; } #[cfg(test)] mod tests { pub struct F; } #[cfg(test)] struct G;";
    let items = syn::parse_file(text).unwrap().items;
    assert_eq!(types(&items, Seen::Within), ["A", "B", "C", "D", "E"]);
    assert_eq!(types(&items, Seen::Beside), ["B", "C", "D", "E"]);
    assert_eq!(types(&items, Seen::Outside), ["D", "E"]);
}

/// Where Ethernet headers and VLAN tags are read and written.
const ETHERNET: &str = "node_lib/src/messages/ethernet.rs";

/// EtherTypes of tags and of the protocols in them.
const ETHERTYPES: [u16; 6] = [0x8100, 0x88a8, 0x0800, 0x0806, 0x8035, 0x86dd];

/// Whether this text, tests in it apart, has the number of such an EtherType, or an array that
/// begins with its two bytes.
fn names_an_ethertype(text: &str) -> bool {
    let code = text.split("#[cfg(test)]").next().unwrap().to_lowercase().replace('_', "");
    ETHERTYPES.iter().any(|ethertype| {
        let [high, low] = ethertype.to_be_bytes();
        let mut forms = vec![format!("{ethertype:#06x}"), format!("[{high:#04x}, {low:#04x}")];
        forms.extend((low == 0).then(|| format!("[{high:#04x}, 0")));
        // The two bytes of IPv4 begin other arrays as well.
        forms.truncate(if *ethertype == 0x0800 { 1 } else { forms.len() });
        forms.iter().any(|form| code.contains(form))
    })
}

#[test]
fn ethernet_is_read_and_written_in_one_place() {
    let all = crates().into_iter().flat_map(|name| sources(&root().join(name).join("src")));
    let named = all.filter(|file| names_an_ethertype(&read(file.clone())));
    let named: Vec<_> =
        named.map(|file| file.strip_prefix(root()).unwrap().display().to_string()).collect();
    if env::var_os(OTHER).is_none() {
        assert_eq!(named, [ETHERNET]);
    }
    for text in ["== 0x8100", "0x88_A8", "&[0x81, 0]", "[0x81, 0x00, 5]", "[0x86, 0xdd]"] {
        assert!(names_an_ethertype(text), "{text}");
    }
    assert!(!names_an_ethertype("0x88b5; #[cfg(test)] 0x8100"));
}

/// Modules of this file that are missing in the table at its head, if it has one of modules.
fn missing_in_table(text: &str) -> Vec<String> {
    let head = text.lines().take_while(|line| line.starts_with("//!"));
    let mut table = head.skip_while(|line| !line.starts_with("//! | module |")).peekable();
    if table.peek().is_none() {
        return Vec::new();
    }
    let words: BTreeSet<&str> =
        table.flat_map(|row| row.split(['`', '@'])).map(|word| word.trim()).collect();
    let is_module = |line: &&str| !line.starts_with([' ', '/']) && line.ends_with(';');
    let declared = text.lines().filter(is_module).filter_map(|line| {
        let (before, name) = line.split_once("mod ")?;
        (before.is_empty() || before.starts_with("pub")).then(|| name.trim_end_matches(';'))
    });
    declared.filter(|name| !words.contains(name)).map(str::to_owned).collect()
}

#[test]
fn a_table_of_modules_names_every_module() {
    let mut tables = 0;
    for file in crates().iter().flat_map(|name| sources(&root().join(name).join("src"))) {
        let text = fs::read_to_string(&file).unwrap();
        tables += usize::from(text.contains("//! | module |"));
        let missing = missing_in_table(&text);
        if env::var_os(OTHER).is_none() {
            assert_eq!(missing, [""; 0], "{}", file.display());
        }
    }
    assert!(tables > 4 || env::var_os(OTHER).is_some(), "{tables} tables");
    let text = "//! | module | what |\n//! | [`a`], `b` | … |\nmod a;\npub mod b;\nmod c;\n";
    assert_eq!(missing_in_table(text), ["c"]);
}

/// Counted, not forbidden: the same lines may say different things.
#[test]
fn repeated_lines_are_counted() {
    let of = |parts: &[&str]| -> Vec<PathBuf> {
        let places = crates().into_iter().flat_map(|name| {
            parts.iter().map(move |part| root().join(&name).join(part)).collect::<Vec<_>>()
        });
        places.filter(|place| place.is_dir()).flat_map(|place| sources(&place)).collect()
    };
    for parts in [&["src"][..], &["src", "tests"]] {
        let files = of(parts);
        let texts: Vec<_> = files.iter().cloned().map(read).collect();
        let pairs = repeated(&texts);
        let parts = parts.join(" and ");
        println!("pairs of {REPEATED_MIN} repeated lines and more in {parts}: {}", pairs.len());
        for Repeated { one, other, lines } in pairs.iter().take(5) {
            let [one, other] = [one, other].map(|(file, line)| {
                format!("{}:{line}", files[*file].strip_prefix(root()).unwrap().display())
            });
            println!("  {lines:>3} lines  {one} ~ {other}");
        }
    }
}

/// What the tests above look with finds what it should.
#[test]
fn long_and_repeated_lines_are_found() {
    let (short, long) = ("x ".repeat(50), "x ".repeat(51));
    let text = format!("{short}\n{long}\n    //! | {long} |\n// {long}\n");
    assert_eq!(long_code(&text), 2);
    let text =
        format!("{short}\n{long}\n| {long} |\n```\n{long}\n```\n{long}\n{}\n", "x".repeat(200));
    assert_eq!(long_prose(&text), 2);

    let block =
        |from: usize| -> String { (from..from + 7).map(|n| format!("  f({n});\n")).collect() };
    let one = format!("use a;\nlet a;\n{}}}\n// b\n{}", block(0), block(7));
    let other = format!("let b;\n\n{}\nlet c;\n", block(1));
    let repeats = Repeated { one: (0, 4), other: (1, 3), lines: 7 };
    assert_eq!(repeated(&[one, other.clone()]), [repeats]);
    let twice = Repeated { one: (0, 1), other: (0, 13), lines: 9 };
    assert_eq!(repeated(&[format!("{other}\n{other}")]), [twice]);
    assert_eq!(repeated(&[block(0), block(3)]), []);
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
