//! [`Findings`]: everything that keeps a daemon from starting, each with where the setting it is
//! about was said.

use std::collections::BTreeMap;

use crate::exit::{Failure, Failures};

/// Where each setting was said, by key: `--bridge`, `OBU_BRIDGE` or `car.toml:3: bridge`. What
/// nobody said has no place.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<String, String>);

impl FromIterator<(String, String)> for Places {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(places: T) -> Self {
        Self(places.into_iter().collect())
    }
}

/// What was found wrong so far.
#[derive(Debug)]
pub struct Findings<'a> {
    places: &'a Places,
    failures: Vec<Failure>,
    /// Keys of settings that are wrong.
    wrong: Vec<String>,
}

impl<'a> Findings<'a> {
    /// Nothing yet, of settings that were said in these places.
    pub fn new(places: &'a Places) -> Self {
        Self { places, failures: Vec::new(), wrong: Vec::new() }
    }

    /// What a look at the setting of this key gave, or none, and then what is wrong is kept.
    pub fn about<T>(&mut self, key: &str, found: Result<T, impl Into<Failure>>) -> Option<T> {
        let place = self.places.0.get(key).cloned();
        let found = self.keep(found.map_err(|failure| match (place, failure.into()) {
            (Some(place), Failure { kind, error }) => Failure::new(kind, error.context(place)),
            (None, failure) => failure,
        }));
        if found.is_none() {
            self.wrong.push(key.to_owned());
        }
        found
    }

    /// The same for what is about no one setting.
    pub fn keep<T>(&mut self, found: Result<T, impl Into<Failure>>) -> Option<T> {
        found.map_err(|failure| self.failures.push(failure.into())).ok()
    }

    /// Whether something is wrong with the setting of this key, so that what depends on it need not
    /// be looked at.
    pub fn has(&self, key: &str) -> bool {
        self.wrong.iter().any(|wrong| wrong == key)
    }

    /// What all the looks together gave, if nothing was wrong.
    pub fn end<T>(self, found: Option<T>) -> Result<T, Failures> {
        match found {
            Some(found) if self.failures.is_empty() => Ok(found),
            _ => Err(Failures(self.failures)),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::exit::FailureKind;

    #[test]
    fn all_that_is_wrong_is_said_with_its_place() {
        let places = Places::from_iter([("mtu".to_owned(), "car.toml:3: mtu".to_owned())]);
        let mut findings = Findings::new(&places);
        let wrong =
            |text: &'static str| Err::<(), _>(Failure::new(FailureKind::Usage, anyhow!(text)));
        assert_eq!(findings.about("mtu", Ok::<_, Failure>(7)), Some(7));
        assert_eq!(findings.about("mtu", wrong("too small")), None);
        assert_eq!(findings.about("tap_name", wrong("busy")), None);
        assert!(findings.has("mtu") && findings.has("tap_name") && !findings.has("bind"));
        assert_eq!(findings.keep(wrong("no right")), None);
        let Failures(failures) = findings.end(Some(())).unwrap_err();
        let said: Vec<_> = failures.iter().map(|failure| format!("{:#}", failure.error)).collect();
        assert_eq!(said, ["car.toml:3: mtu: too small", "busy", "no right"]);
        assert_eq!(Findings::new(&places).end(Some(7)).ok(), Some(7));
    }
}
