//! A map by document that takes room only while there is something in it: for what a lane keeps in trouble.

use std::collections::BTreeMap;

use flare_model::ids::Ordinal;

/// Values by document; most often none.
#[expect(clippy::box_collection, reason = "an empty map takes three words, and there are many lanes")]
pub struct Seldom<V>(Option<Box<BTreeMap<Ordinal, V>>>);

impl<V> Default for Seldom<V> {
    fn default() -> Self {
        Seldom(None)
    }
}

impl<V> Seldom<V> {
    /// None.
    pub const fn nothing() -> Seldom<V> {
        Seldom(None)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Puts a value in.
    pub fn insert(&mut self, ordinal: Ordinal, value: V) {
        self.0.get_or_insert_default().insert(ordinal, value);
    }

    /// A value.
    pub fn get(&self, ordinal: &Ordinal) -> Option<&V> {
        self.0.as_ref()?.get(ordinal)
    }

    /// Takes a value out.
    pub fn remove(&mut self, ordinal: &Ordinal) -> Option<V> {
        let map = self.0.as_mut()?;
        let value = map.remove(ordinal);
        if map.is_empty() {
            self.0 = None;
        }
        value
    }

    /// Forgets all but this one.
    pub fn keep_only(&mut self, ordinal: &Ordinal) {
        if let Some(value) = self.remove(ordinal) {
            self.clear();
            self.insert(*ordinal, value);
        } else {
            self.clear();
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_room_goes_with_the_last_value() {
        let mut seldom = Seldom::default();
        assert_eq!(seldom.remove(&Ordinal(1)), None);
        seldom.insert(Ordinal(1), 'a');
        seldom.insert(Ordinal(2), 'b');
        assert_eq!((seldom.get(&Ordinal(1)), seldom.get(&Ordinal(3))), (Some(&'a'), None));
        seldom.insert(Ordinal(3), 'c');
        seldom.keep_only(&Ordinal(2));
        assert_eq!((seldom.get(&Ordinal(1)), seldom.get(&Ordinal(2))), (None, Some(&'b')));
        seldom.insert(Ordinal(1), 'a');
        assert_eq!(seldom.remove(&Ordinal(2)), Some('b'));
        assert_eq!(
            (seldom.0.is_some(), seldom.remove(&Ordinal(1)), seldom.0.is_some()),
            (true, Some('a'), false)
        );
        assert_eq!(size_of::<Seldom<[u64; 9]>>(), size_of::<usize>());
    }
}
