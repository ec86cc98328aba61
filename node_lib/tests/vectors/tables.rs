//! Reads the field tables of `docs/wire-format.md` and of the sources. Tests share them.

use node_lib::messages::Kind;

/// A row of a field table: offset, bytes, name. Bytes are not a number where the field repeats.
pub(crate) type Row = (String, String, String);

/// A file of the repository, from the folder of this crate on.
pub(crate) fn source(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    std::fs::read_to_string(format!("{root}{path}"))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The section of the document about one kind, from its heading to the next.
pub(crate) fn section(document: &str, kind: Kind) -> (String, String) {
    let start = format!("## {} ", kind.name());
    let mut lines = document.lines().skip_while(|line| !line.starts_with(&start));
    let heading = lines.next().unwrap_or_else(|| panic!("no section {start}"));
    let text: Vec<_> = lines.take_while(|line| !line.starts_with("## ")).collect();
    (heading.to_owned(), text.join("\n"))
}
