//! One level of a JSON text: an object or a list comes in, its members go out as the texts they are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object by their names.
pub type Members<'a> = BTreeMap<Cow<'a, str>, &'a str>;

/// What a JSON text is, as far as differences care.
pub enum Level<'a> {
    /// An object. `None` when a name comes twice: readers disagree on what that means.
    Object(Option<Members<'a>>),
    /// A list.
    List(Vec<&'a str>),
    /// Anything else.
    Plain,
}

/// Reads the first level of a JSON text, which was validated when it was accepted.
pub fn level(text: &str) -> Level<'_> {
    match text.as_bytes().first() {
        Some(b'{') => Level::Object(serde_json::from_str::<Object<'_>>(text).ok().map(|object| object.0)),
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(entries) => Level::List(entries.into_iter().map(RawValue::get).collect()),
            Err(_) => Level::Plain,
        },
        _ => Level::Plain,
    }
}

struct Object<'a>(Members<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'a>, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Object<'de>, M::Error> {
                let mut members = Members::new();
                while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    if members.insert(name.0, value.get()).is_some() {
                        return Err(de::Error::custom("a name comes twice"));
                    }
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name<'de>, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

/// Appends a name as a JSON string.
pub fn put_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a text can always be written"));
}
