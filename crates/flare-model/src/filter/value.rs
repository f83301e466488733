//! Values while an expression runs, and what they are to each other: equal, ordered, or neither.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::json::{Content, Node};
use super::run::{Budget, Fault};
use super::tree::Kind;

/// One value. It borrows from the document and the expression; only what is computed is its own.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    /// A list or map within a document.
    Part(Node<'a>),
    /// A list that the expression wrote out.
    List(Vec<Value<'a>>),
    /// The wildcards, as a map.
    Wildcards(&'a [(&'a str, &'a str)]),
    /// Nanoseconds since 1970.
    Time(i128),
    /// Nanoseconds.
    Span(i128),
    Type(Kind),
}

impl<'a> Value<'a> {
    /// A value of a document, unless it is one that cannot be looked at.
    pub(super) fn of(node: Node<'a>) -> Result<Value<'a>, Fault<'a>> {
        Ok(match node.content() {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(value),
            Content::Int(value) => Value::Int(value),
            Content::Uint(value) => Value::Uint(value),
            Content::Double(value) => Value::Double(value),
            Content::Text(text) => Value::Text(Cow::Borrowed(text)),
            Content::List(_) | Content::Map(_) => Value::Part(node),
            Content::Odd(odd) => return Err(Fault::Odd(odd)),
        })
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Uint(_) => Kind::Uint,
            Value::Double(_) => Kind::Double,
            Value::Text(_) => Kind::Text,
            Value::Part(node) => match node.content() {
                Content::List(_) => Kind::List,
                _ => Kind::Map,
            },
            Value::List(_) => Kind::List,
            Value::Wildcards(_) => Kind::Map,
            Value::Time(_) => Kind::Time,
            Value::Span(_) => Kind::Span,
            Value::Type(_) => Kind::Type,
        }
    }

    /// What looking at all of it costs.
    pub(super) fn weight(&self) -> usize {
        match self {
            Value::Text(text) => text.len() / 8,
            Value::Part(node) => node.weight(),
            Value::List(elements) => elements.iter().map(Value::weight).sum::<usize>() + elements.len(),
            _ => 1,
        }
    }

    /// The elements of a list.
    fn elements(&self) -> Result<Option<Vec<Value<'a>>>, Fault<'a>> {
        match self {
            Value::List(elements) => Ok(Some(elements.clone())),
            Value::Part(node) if matches!(node.content(), Content::List(_)) => {
                node.elements().map(Value::of).collect::<Result<_, _>>().map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Whether two values are equal: numbers by their value, whatever their type; different types are different.
pub(super) fn equal<'a>(a: &Value<'a>, b: &Value<'a>, budget: &mut Budget) -> Result<bool, Fault<'a>> {
    budget.spend(1)?;
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => {
            if a.len() == b.len() {
                budget.spend(a.len() / 8)?;
            }
            a == b
        }
        (Value::Time(a), Value::Time(b)) | (Value::Span(a), Value::Span(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        _ if a.kind().is_number() => numbers(a, b) == Some(Ordering::Equal),
        (Value::Part(x), Value::Part(y)) if a.kind() == Kind::Map && b.kind() == Kind::Map => {
            return equal_maps(*x, *y, budget);
        }
        _ => match (a.elements()?, b.elements()?) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                budget.spend(a.len())?;
                for (a, b) in a.iter().zip(&b) {
                    if !equal(a, b, budget)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        },
    })
}

fn equal_maps<'a>(a: Node<'a>, b: Node<'a>, budget: &mut Budget) -> Result<bool, Fault<'a>> {
    let keys = |map: Node<'a>| {
        let texts = map.elements().map(|key| match key.content() {
            Content::Text(text) => Ok(text),
            Content::Odd(odd) => Err(Fault::Odd(odd)),
            _ => Ok(""),
        });
        texts.collect::<Result<std::collections::BTreeSet<_>, _>>()
    };
    // Sorting is a little more than linear, and a lookup is linear in the number of fields.
    budget.spend(a.weight() + b.weight())?;
    let (own, other) = (keys(a)?, keys(b)?);
    if own != other {
        return Ok(false);
    }
    budget.spend(own.len().saturating_mul(own.len()) / 4)?;
    for key in own {
        if let (Some(a), Some(b)) = (a.field(key), b.field(key))
            && !equal(&Value::of(a)?, &Value::of(b)?, budget)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How two values stand to each other.
pub(super) enum Comparison {
    Ordered(Ordering),
    /// One is not a number: neither is larger, nor are they equal.
    NotANumber,
    /// Values of these kinds have no order.
    Incomparable,
}

/// Which of two values is larger.
pub(super) fn compare(a: &Value, b: &Value) -> Comparison {
    let order = match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) | (Value::Span(a), Value::Span(b)) => Some(a.cmp(b)),
        _ => numbers(a, b),
    };
    match order {
        Some(order) => Comparison::Ordered(order),
        None if a.kind().is_number() && b.kind().is_number() => Comparison::NotANumber,
        None => Comparison::Incomparable,
    }
}

/// Exact across types: an integer that a double cannot hold is not rounded to it. `None` where one is no number, NaN
/// included.
fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    let whole = |value: &Value| match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => whole_and_double(whole(b)?, *a).map(Ordering::reverse),
        (a, Value::Double(b)) => whole_and_double(whole(a)?, *b),
        (a, b) => Some(whole(a)?.cmp(&whole(b)?)),
    }
}

fn whole_and_double(a: i128, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    // Integers of 64 bits are far within what this holds exactly, once the fraction is apart.
    let floor = b.floor();
    let bound = 2f64.powi(65);
    if floor >= bound {
        return Some(Ordering::Less);
    }
    if floor <= -bound {
        return Some(Ordering::Greater);
    }
    let order = a.cmp(&(floor as i128));
    Some(if order == Ordering::Equal && b > floor { Ordering::Less } else { order })
}
