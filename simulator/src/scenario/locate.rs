//! Which line a field stands on, and which field stands at a place: [`Map`] of a TOML file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The fields of a file and where they are.
pub(super) struct Map<'a> {
    text: &'a str,
    /// Path of each field and its place, from its key to the end of its value.
    fields: Vec<(String, Range<usize>)>,
}

impl<'a> Map<'a> {
    /// `None` if it is no TOML.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let mut fields = Vec::new();
        list(DeTable::parse(text).ok()?.get_ref(), "", &mut fields);
        Some(Self { text, fields })
    }

    /// The line of this field; of the table it should be in, if it is not there.
    pub(super) fn line_of(&self, field: &str) -> usize {
        let mut path = field;
        loop {
            if let Some((_, range)) = self.fields.iter().find(|(name, _)| name == path) {
                return line_at(self.text, range.start);
            }
            match path.rsplit_once('.') {
                Some((table, _)) => path = table,
                None => return 1,
            }
        }
    }

    /// The innermost field around this place; empty outside of all.
    pub(super) fn field_at(&self, place: &Range<usize>) -> &str {
        self.innermost(place, |_| true)
    }

    /// The innermost field around this place that has fields itself; empty outside of all.
    pub(super) fn table_at(&self, place: &Range<usize>) -> &str {
        let has_fields = |name: &str| {
            let of_it =
                |other: &str| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
            self.fields.iter().any(|(other, _)| of_it(other))
        };
        self.innermost(place, has_fields)
    }

    fn innermost(&self, place: &Range<usize>, fits: impl Fn(&str) -> bool) -> &str {
        let is_around = |range: &Range<usize>| range.start <= place.start && place.end <= range.end;
        let around = self.fields.iter().filter(|(name, range)| is_around(range) && fits(name));
        around.max_by_key(|(name, _)| name.matches('.').count()).map_or("", |(name, _)| name)
    }
}

/// Line of a byte, from 1.
pub(super) fn line_at(text: &str, place: usize) -> usize {
    let before = text.as_bytes().get(..place).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

fn list(table: &DeTable<'_>, prefix: &str, fields: &mut Vec<(String, Range<usize>)>) {
    for (key, value) in table {
        let name = join(prefix, key.get_ref());
        let (key, span) = (key.span(), value.span());
        let start = if key.is_empty() { span.start } else { key.start.min(span.start) };
        fields.push((name.clone(), start..span.end.max(key.end)));
        descend(value.get_ref(), &name, fields);
    }
}

fn descend(value: &DeValue<'_>, name: &str, fields: &mut Vec<(String, Range<usize>)>) {
    match value {
        DeValue::Table(table) => list(table, name, fields),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let name = join(name, &index.to_string());
                fields.push((name.clone(), item.span()));
                descend(item.get_ref(), &name, fields);
            }
        }
        _ => {}
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "duration = \"1s\"\n\n[[rsu]]\nid = \"a\"\n[[rsu]]\nid = \"b\"\n\n[radio]\nloss = 2\n";

    #[test]
    fn finds_lines_by_field_and_fields_by_place() {
        let map = Map::of(TEXT).unwrap();
        assert_eq!(map.line_of("duration"), 1);
        assert_eq!(map.line_of("rsu.1.id"), 6);
        assert_eq!(map.line_of("rsu.1.lan"), 5);
        assert_eq!(map.line_of("radio.loss"), 9);
        assert_eq!(map.line_of("nothing"), 1);
        let place = TEXT.find("\"b\"").unwrap();
        assert_eq!(map.field_at(&(place..place + 3)), "rsu.1.id");
        let header = TEXT.rfind("[[rsu]]").unwrap();
        assert_eq!(map.table_at(&(header..header + 7)), "rsu.1");
        assert_eq!(map.field_at(&(0..TEXT.len())), "");
    }
}
