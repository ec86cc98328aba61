//! A map for a few entries that are looked up with every frame: [`Table`].

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

/// Tables are looked through for old entries this often.
pub const TIDY_EVERY: Duration = Duration::from_secs(1);

/// Entries by key, in the order of keys.
///
/// Looked up dozens of times for every frame heard, and seldom added to: so the keys lie side by
/// side, to be searched without touching anything else, and the values do as well.
#[derive(Clone)]
pub struct Table<K, V> {
    keys: Vec<K>,
    /// In the order of `keys`.
    values: Vec<V>,
    /// Where among many a key was last found. Frames come in bursts: the next is mostly of the
    /// same.
    last: Cell<usize>,
}

/// Up to so many keys are compared one after the other, which takes a processor less time than to
/// guess wrong which half to look at.
const FEW: usize = 16;

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Table<K, V> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { keys: Vec::new(), values: Vec::new(), last: Cell::new(0) }
    }

    /// Entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// There is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }

    /// All values.
    #[inline]
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.values.iter()
    }

    /// All values.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, V> {
        self.values.iter_mut()
    }

    /// All entries.
    #[inline]
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.keys.iter().zip(&self.values)
    }

    /// All entries.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.keys.iter().zip(&mut self.values)
    }

    /// Forgets those of which this is not true.
    pub fn retain(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
        let mut kept = 0;
        for place in 0..self.keys.len() {
            let entry = self.keys.get(place).zip(self.values.get(place));
            if entry.is_some_and(|(key, value)| is_kept(key, value)) {
                if kept < place {
                    self.keys.swap(kept, place);
                    self.values.swap(kept, place);
                }
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.values.truncate(kept);
    }
}

impl<K: Ord, V> Table<K, V> {
    #[inline]
    fn place(&self, key: &K) -> Option<usize> {
        if self.keys.len() <= FEW {
            return self.keys.iter().position(|known| known == key);
        }
        let last = self.last.get();
        if self.keys.get(last) == Some(key) { Some(last) } else { self.search(key) }
    }

    fn search(&self, key: &K) -> Option<usize> {
        let place = self.keys.binary_search(key).ok()?;
        self.last.set(place);
        Some(place)
    }

    /// The value of this key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(self.place(key)?)
    }

    /// The value of this key.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key)?;
        self.values.get_mut(place)
    }

    /// Whether there is an entry of this key.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_some()
    }

    /// Adds an entry, or gives a key another value. Returns the value it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        self.add(key, value);
        None
    }

    fn add(&mut self, key: K, value: V) -> usize {
        let place = self.keys.partition_point(|known| *known < key);
        self.keys.insert(place, key);
        self.values.insert(place, value);
        place
    }

    /// The value of this key, which is added if there is none.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let place = self.place(&key).unwrap_or_else(|| self.add(key, value()));
        #[allow(clippy::indexing_slicing, reason = "found or put there just now")]
        &mut self.values[place]
    }

    /// Forgets one entry. Returns the value it had.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.place(key)?;
        self.keys.remove(place);
        Some(self.values.remove(place))
    }
}

/// Entries of a [`Table`].
pub type Iter<'a, K, V> = std::iter::Zip<std::slice::Iter<'a, K>, std::slice::Iter<'a, V>>;

/// Entries of a [`Table`], whose values may change.
pub type IterMut<'a, K, V> = std::iter::Zip<std::slice::Iter<'a, K>, std::slice::IterMut<'a, V>>;

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut Table<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u32),
        Remove(u8),
        Change(u8, u32),
        RetainAbove(u32),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0..40_u8;
        prop_oneof![
            40 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
            10 => key.clone().prop_map(Step::Remove),
            10 => (key, any::<u32>()).prop_map(|(key, value)| Step::Change(key, value)),
            2 => any::<u32>().prop_map(|least| Step::RetainAbove(least / 2)),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_of_the_standard_library_does(
            steps in proptest::collection::vec(step(), 0..120),
        ) {
            let (mut table, mut map) = (Table::new(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        prop_assert_eq!(table.insert(key, value), map.insert(key, value));
                    }
                    Step::Remove(key) => prop_assert_eq!(table.remove(&key), map.remove(&key)),
                    Step::Change(key, to) => {
                        let known = table.get_mut(&key).map(|value| std::mem::replace(value, to));
                        let expected = map.get_mut(&key).map(|value| std::mem::replace(value, to));
                        prop_assert_eq!(known, expected);
                    }
                    Step::RetainAbove(least) => {
                        table.retain(|_, value| *value > least);
                        map.retain(|_, value| *value > least);
                    }
                    Step::Clear => {
                        table.clear();
                        map.clear();
                    }
                }
                prop_assert_eq!(table.len(), map.len());
                prop_assert!(table.iter().eq(map.iter()) && table.values().eq(map.values()));
                prop_assert!((0..40).all(|key| table.get(&key) == map.get(&key)));
            }
            prop_assert_eq!(format!("{table:?}"), format!("{map:?}"));
        }
    }
}
