//! Names for addresses: `MAC name`, one a line, as in a hosts file.

use std::collections::BTreeMap;
use std::path::Path;

use node_lib::{Mac, NodeId};

/// Looked at unless another file is named.
const DEFAULT: &str = "/etc/v2x/names";

/// What nodes and clients are called.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<Mac, String>);

impl Names {
    /// Reads the file that was named, or else the default one if there is one.
    pub(crate) fn read(named: Option<&Path>) -> Result<Self, String> {
        let path = named.unwrap_or(Path::new(DEFAULT));
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(|error| format!("{}: {error}", path.display())),
            Err(_) if named.is_none() => Ok(Self::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut names = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let at = |error: String| format!("line {}: {error}", number + 1);
            let Some((mac, name)) = line.split_once(char::is_whitespace) else {
                return Err(at("expected an address and a name".to_owned()));
            };
            names.insert(mac.parse().map_err(|error| at(format!("{error}")))?, name.trim().into());
        }
        Ok(Self(names))
    }

    /// The address somebody means: itself, or one that has this name. The error says what was
    /// expected.
    pub(crate) fn address(&self, text: &str) -> Result<Mac, String> {
        if let Ok(mac) = text.parse() {
            return Ok(mac);
        }
        let mut meant = self.0.iter().filter(|(_, name)| *name == text).map(|(mac, _)| *mac);
        match (meant.next(), meant.next()) {
            (Some(mac), None) => Ok(mac),
            (Some(one), Some(other)) => {
                Err(format!("{text} is the name of {one} and of {other}: expected one of these"))
            }
            (None, _) => Err(format!(
                "{text}: expected six hexadecimal bytes such as 02:00:00:00:00:01, or a name that \
                 stands in the names file (--names, {DEFAULT})"
            )),
        }
    }

    /// The name of a client, or its address.
    pub(crate) fn mac(&self, mac: Mac) -> String {
        self.0.get(&mac).cloned().unwrap_or_else(|| mac.to_string())
    }

    /// The name of a node, or its id.
    pub(crate) fn node(&self, id: NodeId) -> String {
        self.mac(Mac(id.0))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn a_name_stands_for_its_address() {
        let names =
            Names::parse("# ours\n02:00:00:00:00:01  rsu north # by the bridge\n\n").unwrap();
        assert_eq!(names.node(NodeId([2, 0, 0, 0, 0, 1])), "rsu north");
        assert_eq!(names.mac(Mac([2, 0, 0, 0, 0, 2])), "02:00:00:00:00:02");
        assert_eq!(names.address("rsu north"), Ok(Mac([2, 0, 0, 0, 0, 1])));
        assert_eq!(names.address("02:00:00:00:00:07"), Ok(Mac([2, 0, 0, 0, 0, 7])));
        assert!(names.address("south").unwrap_err().contains("expected six"));
        let twins = Names::parse("02:00:00:00:00:01 a\n02:00:00:00:00:02 a").unwrap();
        assert!(twins.address("a").unwrap_err().contains("02:00:00:00:00:02"));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let said = Names::parse("02:00:00:00:00:01 a\n02:00 b").unwrap_err();
        assert!(said.starts_with("line 2:") && said.contains("six hexadecimal bytes"), "{said}");
        assert!(Names::parse("02:00:00:00:00:01").unwrap_err().contains("a name"));
    }
}
