//! From a file to a checked [`Scenario`].

use std::path::{Path, PathBuf};

use toml::Table;

use super::error::{ScenarioError, ScenarioProblem};
use super::locate::{Map, line_at};
use super::{Override, Scenario, check};

/// A scenario file that was read and is in order by itself; fields may still be changed.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or has fields or values that cannot be.
    pub fn open(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScenarioError::Read { file: path.to_owned(), source })?;
        Self::from_text(path, text)
    }

    /// Takes the text of a file. Other files it names are looked for beside `path`.
    ///
    /// # Errors
    /// It is no TOML, or has fields or values that cannot be.
    pub fn from_text(path: &Path, text: String) -> Result<Self, ScenarioError> {
        let source = Self { path: path.to_owned(), text };
        source.parse(&source.text, true)?;
        Ok(source)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The scenario with these fields changed.
    ///
    /// # Errors
    /// A field cannot be changed, or what comes out cannot be.
    pub fn with(&self, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        if overrides.is_empty() {
            return self.parse(&self.text, true);
        }
        let file = self.name_with(overrides);
        let wrong = |field: &str, what: String| ScenarioError::Wrong {
            file: file.clone(),
            problems: vec![ScenarioProblem { line: None, field: field.to_owned(), what }],
        };
        let mut table: Table =
            toml::from_str(&self.text).map_err(|error| wrong("", error.message().to_owned()))?;
        for change in overrides {
            change.apply(&mut table).map_err(|what| wrong(&change.key, what))?;
        }
        let text = toml::to_string(&table).map_err(|error| wrong("", error.to_string()))?;
        let scenario = self.parse(&text, false).map_err(|error| match error {
            ScenarioError::Wrong { problems, .. } => ScenarioError::Wrong { file, problems },
            other => other,
        })?;
        Ok(Scenario { changes: overrides.to_vec(), ..scenario })
    }

    /// A file named in the scenario.
    pub fn beside(&self, file: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(file)
    }

    /// A complaint about a field of a scenario, where the file has it; by what was typed, if that
    /// changed the field.
    pub(crate) fn wrong(&self, scenario: &Scenario, field: String, what: String) -> ScenarioError {
        let of = |key: &str| key.split('.').next().unwrap_or_default().to_owned();
        let is_typed = scenario.changes.iter().any(|change| of(&change.key) == of(&field));
        let (file, line) = if is_typed {
            (self.name_with(&scenario.changes), None)
        } else {
            (self.path.display().to_string(), Map::of(&self.text).map(|map| map.line_of(&field)))
        };
        ScenarioError::Wrong { file, problems: vec![ScenarioProblem { line, field, what }] }
    }

    /// The file, and what was typed.
    fn name_with(&self, overrides: &[Override]) -> String {
        let typed: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        format!("{} with {}", self.path.display(), typed.join(" "))
    }

    fn parse(&self, text: &str, has_lines: bool) -> Result<Scenario, ScenarioError> {
        let wrong =
            |problems| ScenarioError::Wrong { file: self.path.display().to_string(), problems };
        let map = Map::of(text);
        let scenario: Scenario = toml::from_str(text).map_err(|error| {
            let place = error.span();
            wrong(vec![ScenarioProblem {
                line: place.as_ref().filter(|_| has_lines).map(|place| line_at(text, place.start)),
                field: match (&map, &place) {
                    // What is missing has no place of its own.
                    (Some(map), Some(place)) if error.message().starts_with("missing field") => {
                        map.table_at(place).to_owned()
                    }
                    (Some(map), Some(place)) => map.field_at(place).to_owned(),
                    _ => String::new(),
                },
                what: error.message().replace('\n', "; "),
            }])
        })?;
        let problems: Vec<ScenarioProblem> = check::problems(&scenario)
            .into_iter()
            .map(|(field, what)| {
                let line = map.as_ref().filter(|_| has_lines).map(|map| map.line_of(&field));
                ScenarioProblem { line, field, what }
            })
            .collect();
        if problems.is_empty() { Ok(scenario) } else { Err(wrong(problems)) }
    }
}
