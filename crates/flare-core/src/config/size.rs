//! In: a number of bytes as people write it ("4MB", "64KiB", 1024). Out: a [`ByteSize`], and back to its shortest text.

use std::fmt;

use super::setting::{Setting, Unfit};

/// Units by name, larger first, the powers of 1024 before those of 1000 so that a round binary size shows as one.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// A number of bytes. `KB`, `MB` and `GB` are powers of 1000; `KiB`, `MiB` and `GiB` are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    /// So many bytes.
    pub const fn bytes(count: u64) -> Self {
        Self(count)
    }

    /// So many thousand bytes.
    pub const fn kb(count: u64) -> Self {
        Self(count * 1_000)
    }

    /// So many million bytes.
    pub const fn mb(count: u64) -> Self {
        Self(count * 1_000_000)
    }

    /// So many thousand million bytes.
    pub const fn gb(count: u64) -> Self {
        Self(count * 1_000_000_000)
    }

    /// The number of bytes as a length in memory; a size beyond the address space is the largest there is.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = UNITS
            .iter()
            .find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit))
            .unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

impl Setting for ByteSize {
    const FORM: &'static str = "a size in bytes";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        parse(text.trim()).ok_or(Unfit::Form)
    }

    fn from_toml(value: &toml::Value) -> Result<Self, Unfit> {
        match value {
            toml::Value::Integer(count) => u64::try_from(*count).map(Self).map_err(|_| Unfit::Form),
            other => other.as_str().map_or(Err(Unfit::Form), Self::from_text),
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.to_string().into()
    }
}

/// Reads a whole number with an optional unit. The case of the letters says nothing: "64kb" is "64KB".
fn parse(text: &str) -> Option<ByteSize> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, name) = text.split_at(end);
    let name = name.trim_start();
    let unit =
        if name.is_empty() { 1 } else { UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1 };
    number.parse::<u64>().ok()?.checked_mul(unit).map(ByteSize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_decimal_and_binary_units_and_as_plain_numbers() {
        let cases = [
            ("4MB", 4_000_000),
            ("64KiB", 65_536),
            ("64 kb", 64_000),
            ("1GiB", 1_073_741_824),
            ("2GB", 2_000_000_000),
            ("17", 17),
            ("17B", 17),
            ("0", 0),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse(text), Some(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MB", "-1", "1.5MB", "4M", "4 apples", "99999999999GB", "4MB4"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert!(ByteSize::from_toml(&toml::Value::Integer(-1)).is_err());
        assert!(ByteSize::from_toml(&toml::Value::Float(1.5)).is_err());
    }

    #[test]
    fn a_shown_size_reads_back() {
        for (bytes, shown) in
            [(1_000_000, "1MB"), (65_536, "64KiB"), (1_500, "1500B"), (0, "0B"), (1 << 30, "1GiB")]
        {
            assert_eq!(ByteSize(bytes).to_string(), shown);
            assert_eq!(parse(shown), Some(ByteSize(bytes)));
        }
    }
}
