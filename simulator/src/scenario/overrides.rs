//! Fields changed from the command line: [`Override`].

use std::fmt;
use std::str::FromStr;

use toml::{Table, Value};

/// `key=value`: this field becomes that.
///
/// A key is a path such as `radio.range_m`. In a list (`[[rsu]]`, `[[obu]]` …) a number or an `id`
/// names one entry (`obu.0.speed_kmh`, `obu.car.speed_kmh`); without it all entries change
/// (`obu.speed_kmh`). A value is TOML; what is no TOML is text, so quotes may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// Path of the field.
    pub key: String,
    /// As typed.
    pub text: String,
    value: Value,
}

/// What was typed is no override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\"; expected key=value, such as radio.range_m=300")]
pub struct ParseOverrideError(String);

impl Override {
    /// This field becomes that.
    pub fn new(key: &str, text: &str) -> Self {
        let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok();
        let value = parsed.and_then(|mut table| (table.len() == 1).then(|| table.remove("value")));
        let value = value.flatten().unwrap_or_else(|| Value::String(text.to_owned()));
        Self { key: key.to_owned(), text: text.to_owned(), value }
    }

    /// This field becomes this text, even if it looks like something else.
    pub fn text(key: &str, text: &str) -> Self {
        let value = Value::String(text.to_owned());
        Self { key: key.to_owned(), text: text.to_owned(), value }
    }

    /// Changes the table. `Err` says what is in the way.
    pub(super) fn apply(&self, table: &mut Table) -> Result<(), String> {
        let path: Vec<&str> = self.key.split('.').collect();
        set(table, &path, &self.value)
    }
}

/// Several values for one field: `key=a,b,c`. Commas in brackets or quotes do not separate.
pub fn parse_variants(text: &str) -> Result<Vec<Override>, ParseOverrideError> {
    let error = || ParseOverrideError(text.to_owned());
    let (key, values) = text.split_once('=').ok_or_else(error)?;
    let mut variants = Vec::new();
    let (mut depth, mut quoted, mut value) = (0_u32, false, String::new());
    for letter in values.chars() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                variants.push(std::mem::take(&mut value));
                continue;
            }
            _ => {}
        }
        value.push(letter);
    }
    variants.push(value);
    if key.trim().is_empty() || variants.iter().any(|value| value.trim().is_empty()) {
        return Err(error());
    }
    Ok(variants.iter().map(|value| Override::new(key.trim(), value.trim())).collect())
}

impl FromStr for Override {
    type Err = ParseOverrideError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok(Self::new(key.trim(), value.trim())),
            _ => Err(ParseOverrideError(text.to_owned())),
        }
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.text)
    }
}

fn set(table: &mut Table, path: &[&str], value: &Value) -> Result<(), String> {
    match path {
        [] => Ok(()),
        [last] => {
            table.insert((*last).to_owned(), value.clone());
            Ok(())
        }
        [first, rest @ ..] => {
            let empty = || Value::Table(Table::new());
            match table.entry((*first).to_owned()).or_insert_with(empty) {
                Value::Table(inner) => set(inner, rest, value),
                Value::Array(items) => set_in_list(first, items, rest, value),
                _ => Err(format!("{first} has no fields")),
            }
        }
    }
}

fn set_in_list(
    list: &str,
    items: &mut [Value],
    path: &[&str],
    value: &Value,
) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    let ids: Vec<Option<String>> =
        items.iter().map(|item| Some(item.as_table()?.get("id")?.as_str()?.to_owned())).collect();
    let chosen =
        first.parse().ok().or_else(|| ids.iter().position(|id| id.as_deref() == Some(*first)));
    let (chosen, path) = match chosen {
        Some(index) if index >= items.len() => {
            return Err(format!("{list} has {} entries, counted from 0", items.len()));
        }
        Some(index) if rest.is_empty() => {
            if let Some(item) = items.get_mut(index) {
                *item = value.clone();
            }
            return Ok(());
        }
        Some(index) => (index..index + 1, rest),
        None => (0..items.len(), path),
    };
    for item in items.get_mut(chosen).into_iter().flatten() {
        match item {
            Value::Table(inner) => set(inner, path, value)?,
            _ => return Err(format!("an entry of {list} has no fields")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, by: &str) -> Result<String, String> {
        let mut table: Table = toml::from_str(text).unwrap();
        by.parse::<Override>().unwrap().apply(&mut table)?;
        Ok(toml::to_string(&table).unwrap())
    }

    #[test]
    fn reaches_tables_and_entries_of_lists_by_number_name_or_all() {
        assert_eq!(changed("", "radio.range_m=300").unwrap(), "[radio]\nrange_m = 300\n");
        assert_eq!(changed("duration = \"1s\"", "duration=2s").unwrap(), "duration = \"2s\"\n");
        let obus = "[[obu]]\nid = \"a\"\n[[obu]]\nid = \"b\"\n";
        let speeds = |by: &str| changed(obus, by).unwrap().matches("speed = 5").count();
        assert_eq!((speeds("obu.speed=5"), speeds("obu.1.speed=5")), (2, 1));
        assert!(changed(obus, "obu.b.speed=5").unwrap().ends_with("id = \"b\"\nspeed = 5\n"));
        let beyond = changed(obus, "obu.2.speed=5").unwrap_err();
        assert_eq!(beyond, "obu has 2 entries, counted from 0");
        assert_eq!(changed("a = 1", "a.b=2").unwrap_err(), "a has no fields");
    }

    #[test]
    fn variants_are_separated_by_commas_outside_of_brackets() {
        let texts = |text: &str| -> Vec<String> {
            parse_variants(text).unwrap().into_iter().map(|variant| variant.text).collect()
        };
        assert_eq!(texts("obu.speed_kmh=50,90,130"), ["50", "90", "130"]);
        assert_eq!(texts("a=[1,2],\"b,c\""), ["[1,2]", "\"b,c\""]);
        for wrong in ["a", "=1", "a=", "a=1,,2"] {
            assert!(parse_variants(wrong).is_err(), "{wrong}");
        }
        assert!("a".parse::<Override>().is_err());
    }
}
