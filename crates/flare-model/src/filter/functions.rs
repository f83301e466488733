//! The functions of expressions: a value or two in, a value out.

use std::borrow::Cow;

use super::json::Content;
use super::run::Fault;
use super::tree::{Function, Kind, Sum};
use super::value::Value;
use crate::layout::{civil, rfc3339};

const NANOS: i128 = 1_000_000_000;

/// The years 1 to 9999, and durations as long as all of them: what CEL allows.
const FIRST: i128 = -62_135_596_800 * NANOS;
const LAST: i128 = 253_402_300_800 * NANOS - 1;
const LONGEST: i128 = 315_576_000_000 * NANOS;

/// The elements of a list, whoever wrote it.
pub(super) fn elements(list: Value<'_>) -> Result<Vec<Value<'_>>, Fault<'_>> {
    match list {
        Value::List(elements) => Ok(elements),
        Value::Part(node) => node.elements().map(Value::of).collect(),
        _ => Ok(Vec::new()),
    }
}

/// Functions of a text and another.
pub(super) fn on_texts<'a>(function: Function, a: &Value<'a>, b: &Value<'a>) -> Result<Value<'a>, Fault<'a>> {
    let name = match function {
        Function::Contains => "contains",
        Function::StartsWith => "startsWith",
        _ => "endsWith",
    };
    let (Value::Text(text), Value::Text(part)) = (a, b) else {
        return Err(Fault::NoOverload(name, a.kind(), Some(b.kind())));
    };
    Ok(Value::Bool(match function {
        Function::Contains => text.contains(&**part),
        Function::StartsWith => text.starts_with(&**part),
        _ => text.ends_with(&**part),
    }))
}

/// Functions of one value.
pub(super) fn unary<'a>(function: Function, value: Value<'a>) -> Result<Value<'a>, Fault<'a>> {
    let kind = value.kind();
    match function {
        Function::Size => size(&value),
        Function::LowerAscii | Function::UpperAscii => match value {
            Value::Text(text) => {
                let mut text = text.into_owned();
                match function {
                    Function::LowerAscii => text.make_ascii_lowercase(),
                    _ => text.make_ascii_uppercase(),
                }
                Ok(Value::Text(Cow::Owned(text)))
            }
            _ => Err(Fault::NoOverload("lowerAscii", kind, None)),
        },
        Function::ToInt => to_int(&value).ok_or(Fault::Conversion("int", kind)),
        Function::ToUint => to_uint(&value).ok_or(Fault::Conversion("uint", kind)),
        Function::ToDouble => to_double(&value).ok_or(Fault::Conversion("double", kind)),
        Function::ToText => to_text(value),
        Function::ToBool => match &value {
            Value::Bool(_) => Ok(value),
            Value::Text(text) => match &**text {
                "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
                "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
                _ => Err(Fault::Conversion("bool", kind)),
            },
            _ => Err(Fault::Conversion("bool", kind)),
        },
        Function::Type => Ok(Value::Type(kind)),
        Function::Dyn => Ok(value),
        Function::Timestamp => {
            let nanos = match &value {
                Value::Time(nanos) => Some(*nanos),
                Value::Int(seconds) => Some(i128::from(*seconds) * NANOS),
                Value::Text(text) => rfc3339::parse(text)
                    .ok()
                    .map(|instant| i128::from(instant.seconds) * NANOS + i128::from(instant.nanos)),
                _ => None,
            };
            time(nanos.ok_or(Fault::Conversion("timestamp", kind))?)
        }
        Function::Duration => {
            let nanos = match &value {
                Value::Span(nanos) => Some(*nanos),
                Value::Text(text) => duration(text),
                _ => None,
            };
            span(nanos.ok_or(Fault::Conversion("duration", kind))?)
        }
        _ => part_of(function, &value),
    }
}

fn size<'a>(value: &Value<'a>) -> Result<Value<'a>, Fault<'a>> {
    let size = match value {
        Value::Text(text) => text.chars().count(),
        Value::List(elements) => elements.len(),
        Value::Wildcards(values) => values.len(),
        Value::Part(node) => match node.content() {
            Content::List(len) => len as usize,
            Content::Map(_) => node.fields(),
            _ => 0,
        },
        other => return Err(Fault::NoOverload("size", other.kind(), None)),
    };
    Ok(Value::Int(size as i64))
}

fn to_int<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    let number = match value {
        Value::Int(value) => Some(*value),
        Value::Uint(value) => i64::try_from(*value).ok(),
        // Beyond this a double is no integer any more, or not one of 64 bits.
        Value::Double(value) if value.abs() < 9_223_372_036_854_775_807.0 => Some(*value as i64),
        Value::Text(text) => text.parse().ok(),
        Value::Time(nanos) => i64::try_from(nanos.div_euclid(NANOS)).ok(),
        _ => None,
    };
    number.map(Value::Int)
}

fn to_uint<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    let number = match value {
        Value::Uint(value) => Some(*value),
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::Double(value) if (0.0..18_446_744_073_709_551_615.0).contains(value) => Some(*value as u64),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    number.map(Value::Uint)
}

fn to_double<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    let number = match value {
        Value::Double(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    number.map(Value::Double)
}

fn to_text(value: Value<'_>) -> Result<Value<'_>, Fault<'_>> {
    let text = match value {
        Value::Text(_) => return Ok(value),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Time(nanos) => date_text(nanos),
        Value::Span(nanos) => {
            let sign = if nanos < 0 { "-" } else { "" };
            let nanos = nanos.unsigned_abs();
            format!("{sign}{}{}s", nanos / NANOS.unsigned_abs(), fraction(nanos % NANOS.unsigned_abs()))
        }
        other => return Err(Fault::Conversion("string", other.kind())),
    };
    Ok(Value::Text(Cow::Owned(text)))
}

/// RFC 3339 in UTC, with as much of a fraction as there is.
fn date_text(nanos: i128) -> String {
    let seconds = nanos.div_euclid(NANOS) as i64;
    let civil::Civil { year, month, day } = civil::civil_from_days(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let fraction = fraction(nanos.rem_euclid(NANOS).unsigned_abs());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The part of a second, with its point; nothing for a whole one.
fn fraction(nanos: u128) -> String {
    if nanos == 0 { String::new() } else { format!(".{nanos:09}").trim_end_matches('0').to_owned() }
}

/// `1h30m`, `-1.5s`, `300ms`: numbers with units, the largest first or not.
fn duration(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    if rest == "0" {
        return Some(0);
    }
    // No duration that is in range needs more.
    if rest.is_empty() || rest.len() > 128 {
        return None;
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let units = [
            ("ns", 1),
            ("us", 1_000),
            ("ms", 1_000_000),
            ("h", 3_600 * NANOS),
            ("m", 60 * NANOS),
            ("s", NANOS),
        ];
        let (unit, factor) = units.into_iter().find(|(unit, _)| tail.starts_with(unit))?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(factor)?)?;
        // Finer than a nanosecond there is nothing.
        let mut place = factor;
        for digit in fraction.bytes().take(15) {
            place /= 10;
            nanos = nanos.checked_add(place * i128::from(digit - b'0'))?;
        }
        rest = &tail[unit.len()..];
    }
    Some(sign * nanos)
}

fn time<'a>(nanos: i128) -> Result<Value<'a>, Fault<'a>> {
    if (FIRST..=LAST).contains(&nanos) { Ok(Value::Time(nanos)) } else { Err(Fault::Overflow) }
}

fn span<'a>(nanos: i128) -> Result<Value<'a>, Fault<'a>> {
    if (-LONGEST..=LONGEST).contains(&nanos) { Ok(Value::Span(nanos)) } else { Err(Fault::Overflow) }
}

/// Arithmetic of dates and durations; both are far from the ends of what holds them. `None` for other kinds.
pub(super) fn dates<'a>(sum: Sum, a: &Value<'a>, b: &Value<'a>) -> Option<Result<Value<'a>, Fault<'a>>> {
    Some(match (sum, a, b) {
        (Sum::Add, Value::Time(a), Value::Span(b)) | (Sum::Add, Value::Span(a), Value::Time(b)) => {
            time(a + b)
        }
        (Sum::Subtract, Value::Time(a), Value::Span(b)) => time(a - b),
        (Sum::Subtract, Value::Time(a), Value::Time(b)) => span(a - b),
        (Sum::Add, Value::Span(a), Value::Span(b)) => span(a + b),
        (Sum::Subtract, Value::Span(a), Value::Span(b)) => span(a - b),
        _ => return None,
    })
}

/// A part of a date, in UTC, or the whole of a duration in a unit.
fn part_of<'a>(function: Function, value: &Value<'a>) -> Result<Value<'a>, Fault<'a>> {
    let nanos = match (function, value) {
        (Function::Hours, Value::Span(nanos)) => return Ok(Value::Int((nanos / NANOS / 3_600) as i64)),
        (Function::Minutes, Value::Span(nanos)) => return Ok(Value::Int((nanos / NANOS / 60) as i64)),
        (Function::Seconds, Value::Span(nanos)) => return Ok(Value::Int((nanos / NANOS) as i64)),
        (Function::Milliseconds, Value::Span(nanos)) => {
            return Ok(Value::Int((nanos / (NANOS / 1000) % 1000) as i64));
        }
        (_, Value::Time(nanos)) => *nanos,
        (_, other) => return Err(Fault::NoOverload("get...", other.kind(), None)),
    };
    let seconds = nanos.div_euclid(NANOS) as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let date = civil::civil_from_days(days);
    let first = civil::days_from_civil(civil::Civil { month: 1, day: 1, ..date });
    Ok(Value::Int(match function {
        Function::FullYear => date.year,
        Function::Month => i64::from(date.month) - 1,
        Function::DayOfMonth => i64::from(date.day) - 1,
        Function::Date => i64::from(date.day),
        // 1970 began on a Thursday.
        Function::DayOfWeek => (days + 4).rem_euclid(7),
        Function::DayOfYear => days - first,
        Function::Hours => second / 3_600,
        Function::Minutes => second / 60 % 60,
        Function::Seconds => second % 60,
        Function::Milliseconds => (nanos.rem_euclid(NANOS) / 1_000_000) as i64,
        _ => return Err(Fault::NoOverload("get...", Kind::Time, None)),
    }))
}
