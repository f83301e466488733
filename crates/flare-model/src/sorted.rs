//! A small sorted map: keys and values come in, and go out in the order of the keys.
//!
//! A tree asks for a node with its first entry and gives it back with its last: for a map that most often has one entry, and
//! then none, that is memory taken and given back with every entry. Here the first is in the map itself, and the others are in
//! one piece that stays. To put an entry in or take it out moves the shorter side of the others, which is as quick for a few
//! thousand of them.

use std::collections::VecDeque;

/// A sorted map for a few entries, which most often come in order and leave in about the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorted<K, V> {
    /// The entry with the lowest key.
    first: Option<(K, V)>,
    /// All others, by key; none without a first.
    others: VecDeque<(K, V)>,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Sorted<K, V> {
        Sorted::new()
    }
}

impl<K, V> Sorted<K, V> {
    /// An empty one.
    pub const fn new() -> Sorted<K, V> {
        Sorted { first: None, others: VecDeque::new() }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// All entries, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.first.iter().chain(&self.others).map(|(key, value)| (key, value))
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, by key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// All values, by key, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.first.iter_mut().chain(&mut self.others).map(|(_, value)| value)
    }

    /// Takes all entries out, by key. The room stays.
    pub fn drain(&mut self) -> impl Iterator<Item = (K, V)> + '_ {
        self.first.take().into_iter().chain(self.others.drain(..))
    }

    /// The entry with the lowest key.
    pub fn first(&self) -> Option<(&K, &V)> {
        self.first.as_ref().map(|(key, value)| (key, value))
    }
}

impl<K: Ord, V> Sorted<K, V> {
    /// Where among the others a key is, or would be.
    fn place(&self, key: &K) -> Result<usize, usize> {
        // Most come in order, behind all that are there.
        match self.others.back() {
            Some((last, _)) if last >= key => self.others.binary_search_by(|(known, _)| known.cmp(key)),
            _ => Err(self.others.len()),
        }
    }

    /// A value.
    pub fn get(&self, key: &K) -> Option<&V> {
        match &self.first {
            Some((first, value)) if first == key => Some(value),
            _ => self.place(key).ok().map(|at| &self.others[at].1),
        }
    }

    /// A value, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key);
        match &mut self.first {
            Some((first, value)) if first == key => Some(value),
            _ => place.ok().map(|at| &mut self.others[at].1),
        }
    }

    /// Whether there is an entry with this key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Puts an entry in. Answers the value that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        match &self.first {
            None => self.first = Some((key, value)),
            Some((first, _)) if key < *first => {
                let others = self.first.replace((key, value));
                others.into_iter().for_each(|other| self.others.push_front(other));
            }
            Some(_) => {
                let (Ok(at) | Err(at)) = self.place(&key);
                self.others.insert(at, (key, value));
            }
        }
        None
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let taken = match &self.first {
            Some((first, _)) if first == key => {
                let next = self.others.pop_front();
                std::mem::replace(&mut self.first, next)
            }
            _ => self.place(key).ok().and_then(|at| self.others.remove(at)),
        };
        taken.map(|(_, value)| value)
    }
}

impl<K: Ord, V> Extend<(K, V)> for Sorted<K, V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Sorted<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Sorted<K, V> {
        let mut sorted = Sorted::new();
        sorted.extend(entries);
        sorted
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_map_that_a_tree_is(steps in prop::collection::vec((0..3u8, 0..12u64, any::<u8>()), 0..200)) {
            let (mut sorted, mut tree) = (Sorted::new(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(sorted.insert(key, value), tree.insert(key, value)),
                    1 => prop_assert_eq!(sorted.remove(&key), tree.remove(&key)),
                    _ => {
                        let changed = |known: &mut u8| *known = known.wrapping_add(value);
                        prop_assert_eq!(sorted.get_mut(&key).map(changed), tree.get_mut(&key).map(changed));
                    }
                }
                prop_assert_eq!(sorted.get(&key), tree.get(&key));
                prop_assert_eq!(sorted.contains_key(&key), tree.contains_key(&key));
                prop_assert_eq!(sorted.first(), tree.first_key_value());
                prop_assert!(sorted.iter().eq(tree.iter()) && sorted.len() == tree.len());
            }
            prop_assert!(sorted.drain().eq(tree) && sorted.is_empty());
        }
    }

    #[test]
    fn it_keeps_its_room() {
        let mut sorted: Sorted<u64, u64> = (0..4).map(|key| (key, key)).collect();
        let room = sorted.others.capacity();
        assert!((0..4).all(|key| sorted.remove(&key) == Some(key)));
        assert_eq!((sorted.len(), sorted.others.capacity()), (0, room));
    }

    #[test]
    fn one_entry_takes_no_more_room() {
        let mut sorted = Sorted::new();
        (0..4_u64).for_each(|key| {
            sorted.insert(key, key);
            assert_eq!(sorted.remove(&key), Some(key));
        });
        assert_eq!(sorted.others.capacity(), 0);
    }
}
