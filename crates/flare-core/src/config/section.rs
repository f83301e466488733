//! In: a struct written with `section!`, one line per key with its type, default and bounds. Out: the struct, its
//! `Default`, and a walk over its keys.
//!
//! Loading, showing, the known names, the environment variables and the test of the default file all follow from
//! that walk, so a key is written in one place and cannot be forgotten in another.

use std::ops::RangeInclusive;

use super::setting::{Raw, Setting, Unfit};

/// A group of keys.
pub trait Section {
    /// Calls `visit` with the full dotted name and the place of each key, in the order of the declaration.
    fn walk(&mut self, path: &str, visit: &mut Visit<'_>);
}

/// What a walk calls for each key.
pub type Visit<'a> = dyn FnMut(&str, &mut dyn Slot) + 'a;

/// The place of one key's value, whatever its type.
pub trait Slot {
    /// Takes a value from outside. An unfit one changes nothing; the error says what was expected instead.
    fn read(&mut self, raw: &Raw) -> Result<(), String>;
    /// The present value as it is shown to people; secrets redacted.
    fn shown(&self) -> toml::Value;
    /// Whether the value must not be repeated in messages.
    fn is_secret(&self) -> bool;
    /// The bounds in words, such as `from "1s" to "1h"`, where the key has any.
    fn bounds(&self) -> Option<String>;
}

/// A value together with the bounds declared beside it.
pub struct Bounded<'a, T> {
    /// Where the value lives in the configuration.
    pub value: &'a mut T,
    /// The values that are allowed, both ends included.
    pub bounds: Option<RangeInclusive<T>>,
}

impl<T: Setting> Slot for Bounded<'_, T> {
    fn read(&mut self, raw: &Raw) -> Result<(), String> {
        let read = match raw {
            Raw::Text(text) => T::from_text(text),
            Raw::Toml(value) => T::from_toml(value),
        };
        let within = |value: &T| self.bounds.as_ref().is_none_or(|bounds| bounds.contains(value));
        let because = match read {
            Ok(value) if within(&value) => {
                *self.value = value;
                return Ok(());
            }
            Ok(_) | Err(Unfit::Form) => String::new(),
            Err(Unfit::Because(why)) => format!(" ({why})"),
        };
        let bounds = self.bounds().map(|bounds| format!(" {bounds}")).unwrap_or_default();
        // The present value is a default or was accepted before, so it is an example that fits the bounds too.
        let example = T::EXAMPLE.map_or_else(|| self.shown().to_string(), str::to_owned);
        Err(format!("expected {}{bounds}, for example {example}{because}", T::FORM))
    }

    fn shown(&self) -> toml::Value {
        self.value.to_toml()
    }

    fn is_secret(&self) -> bool {
        T::SECRET
    }

    fn bounds(&self) -> Option<String> {
        self.bounds
            .as_ref()
            .map(|bounds| format!("from {} to {}", bounds.start().to_toml(), bounds.end().to_toml()))
    }
}

/// The dotted name of a field, in the kebab case of the file.
pub fn join(path: &str, field: &str) -> String {
    let field = field.replace('_', "-");
    if path.is_empty() { field } else { format!("{path}.{field}") }
}

/// Declares a section. `name: Type = default;` is a key, `name: Type = default, in low..=high;` a key with bounds, and
/// `name: Type;` a section inside this one.
macro_rules! section {
    ($(#[$about:meta])* $name:ident {
        $($(#[$note:meta])* $field:ident: $kind:ty $(= $default:expr $(, in $bounds:expr)?)?;)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$note])* pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: section!(@default $kind $(, $default)?),)* }
            }
        }

        impl $crate::config::section::Section for $name {
            fn walk(&mut self, path: &str, visit: &mut $crate::config::section::Visit<'_>) {
                $(
                    let key = $crate::config::section::join(path, stringify!($field));
                    section!(@walk self.$field, &key, visit $(, $default $(, $bounds)?)?);
                )*
            }
        }
    };
    (@default $kind:ty) => { <$kind>::default() };
    (@default $kind:ty, $default:expr) => { $default };
    (@walk $place:expr, $key:expr, $visit:expr) => {
        $crate::config::section::Section::walk(&mut $place, $key, $visit)
    };
    (@walk $place:expr, $key:expr, $visit:expr, $default:expr) => {
        $visit($key, &mut $crate::config::section::Bounded { value: &mut $place, bounds: None })
    };
    (@walk $place:expr, $key:expr, $visit:expr, $default:expr, $bounds:expr) => {
        $visit($key, &mut $crate::config::section::Bounded { value: &mut $place, bounds: Some($bounds) })
    };
}
pub(super) use section;
