//! In: a JSON object and a path. Out: the text of the value at the path, the whole object having been
//! checked.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The value at `path`, or None where it leads nowhere. Text after the object is an error.
pub(super) fn value_at<'j>(text: &'j str, path: &[Box<str>]) -> Result<Option<&'j str>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let mut found = None;
    Find { path, found: &mut found }.deserialize(&mut json)?;
    json.end()?;
    Ok(found)
}

/// Goes one step of the path into a value, and leaves what it finds in `found`.
struct Find<'p, 'f, 'j> {
    path: &'p [Box<str>],
    found: &'f mut Option<&'j str>,
}

impl<'j> DeserializeSeed<'j> for Find<'_, '_, 'j> {
    type Value = ();

    fn deserialize<D: Deserializer<'j>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A value that is no object ends the path; it is read over.
impl<'j> Visitor<'j> for Find<'_, '_, 'j> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<(), A::Error> {
        let (key, rest) =
            self.path.split_first().expect("a path has a part, and the last is not looked into");
        while let Some(is_on_path) = map.next_key_seed(KeyIs(key))? {
            if !is_on_path {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            // A key that comes again replaces all that was found under it before.
            *self.found = None;
            if rest.is_empty() {
                *self.found = Some(map.next_value::<&RawValue>()?.get());
            } else {
                map.next_value_seed(Find { path: rest, found: self.found })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Compares a key without keeping it.
struct KeyIs<'p>(&'p str);

impl<'j> DeserializeSeed<'j> for KeyIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'j>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
