//! In: a compiled expression and what it sees. Out: its value, or why there is none.
//!
//! Nothing here loops but over what is in the document or the expression, the depth is bounded by the parser,
//! and everything that grows with the document is paid for out of a budget: so an evaluation ends, soon.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use super::Inputs;
use super::functions;
use super::json::{Content, Odd};
use super::tree::{Const, Expr, Function, Kind, Order, Sum, Variable};
use super::value::{Comparison, Value, compare, equal};
use crate::revision::Revision;

/// What an evaluation may cost: an operation is one unit, and so are eight bytes of text. It takes a document
/// of two megabytes to spend it with one comparison; it is a few milliseconds at the worst.
pub(super) const BUDGET: usize = 250_000;

/// Why there is no value. Small and borrowed: `||` and `&&` often make one only to forget it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault<'a> {
    NoField(&'a str),
    NoIndex,
    NoOverload(&'static str, Kind, Option<Kind>),
    Overflow,
    DivisionByZero,
    NotBool(Kind),
    Conversion(&'static str, Kind),
    TooCostly,
    NoState,
    Odd(Odd),
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoField(name) => {
                let short: String = name.chars().take(64).collect();
                write!(f, "there is no field `{short}`")
            }
            Fault::NoIndex => f.write_str("there is no such element"),
            Fault::NoOverload(what, a, Some(b)) => {
                write!(f, "`{what}` does not take {} and {}", a.name(), b.name())
            }
            Fault::NoOverload(what, a, None) => write!(f, "`{what}` does not take {}", a.name()),
            Fault::Overflow => f.write_str("a number is out of range"),
            Fault::DivisionByZero => f.write_str("a division by zero"),
            Fault::NotBool(kind) => write!(f, "the result is {}, not bool", kind.name()),
            Fault::Conversion(to, from) => write!(f, "this {} is no {to}", from.name()),
            Fault::TooCostly => f.write_str("the document is too large for this expression"),
            Fault::NoState => f.write_str("what this client last got is not known"),
            Fault::Odd(odd) => odd.fmt(f),
        }
    }
}

/// What is left to spend.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn spend<'a>(&mut self, units: usize) -> Result<(), Fault<'a>> {
        self.0 = self.0.checked_sub(units).ok_or(Fault::TooCostly)?;
        Ok(())
    }
}

/// Evaluates to true or false.
pub(super) fn decide<'a>(expr: &'a Expr, inputs: &'a Inputs<'a>) -> Result<bool, Fault<'a>> {
    let mut run = Run { inputs, budget: Budget(BUDGET) };
    match run.value(expr)? {
        Value::Bool(result) => Ok(result),
        other => Err(Fault::NotBool(other.kind())),
    }
}

/// The value of a part of an expression.
pub(super) fn value<'a>(expr: &'a Expr, inputs: &'a Inputs<'a>) -> Result<Value<'a>, Fault<'a>> {
    Run { inputs, budget: Budget(BUDGET) }.value(expr)
}

pub(super) struct Run<'a> {
    inputs: &'a Inputs<'a>,
    pub(super) budget: Budget,
}

impl<'a> Run<'a> {
    pub(super) fn value(&mut self, expr: &'a Expr) -> Result<Value<'a>, Fault<'a>> {
        self.budget.spend(1)?;
        match expr {
            Expr::Const(value) => Ok(constant(value)),
            Expr::Variable(variable) => self.variable(*variable),
            Expr::Wildcard(index) => match self.inputs.wildcards.get(*index) {
                Some((_, value)) => Ok(Value::Text(Cow::Borrowed(value))),
                None => Err(Fault::NoIndex),
            },
            Expr::Select(operand, field) => {
                let operand = self.value(operand)?;
                self.select(&operand, field)
            }
            Expr::Has(operand, field) => {
                let operand = self.value(operand)?;
                match self.select(&operand, field) {
                    // What cannot be looked at is there all the same.
                    Ok(_) | Err(Fault::Odd(_)) => Ok(Value::Bool(true)),
                    Err(Fault::NoField(_)) => Ok(Value::Bool(false)),
                    Err(fault) => Err(fault),
                }
            }
            Expr::Index(pair) => self.index(&pair.0, &pair.1),
            Expr::Not(operand) => match self.value(operand)? {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                other => Err(Fault::NoOverload("!", other.kind(), None)),
            },
            Expr::Negate(operand) => match self.value(operand)? {
                Value::Int(value) => value.checked_neg().map(Value::Int).ok_or(Fault::Overflow),
                Value::Double(value) => Ok(Value::Double(-value)),
                Value::Span(value) => Ok(Value::Span(-value)),
                other => Err(Fault::NoOverload("-", other.kind(), None)),
            },
            Expr::And(parts) => self.logic(parts, "&&", false),
            Expr::Or(parts) => self.logic(parts, "||", true),
            Expr::If(parts) => match self.value(&parts.0)? {
                Value::Bool(true) => self.value(&parts.1),
                Value::Bool(false) => self.value(&parts.2),
                other => Err(Fault::NoOverload("? :", other.kind(), None)),
            },
            Expr::Equal(pair) => self.equals(&pair.0, &pair.1).map(Value::Bool),
            Expr::NotEqual(pair) => self.equals(&pair.0, &pair.1).map(|equal| Value::Bool(!equal)),
            Expr::Compare(order, pair) => self.compare(*order, &pair.0, &pair.1),
            Expr::Arithmetic(sum, pair) => {
                let (a, b) = (self.value(&pair.0)?, self.value(&pair.1)?);
                self.arithmetic(*sum, a, b)
            }
            Expr::In(pair) => self.is_in(&pair.0, &pair.1),
            Expr::List(elements) => {
                let list: Result<Vec<_>, _> = elements.iter().map(|element| self.value(element)).collect();
                list.map(Value::List)
            }
            Expr::Call(function, arguments) => self.call(*function, arguments),
            Expr::Matches(text, pattern) => match self.value(text)? {
                Value::Text(text) => {
                    let cost = text.len().saturating_mul(pattern.cost_per_byte);
                    self.budget.spend(cost)?;
                    Ok(Value::Bool(pattern.regex.is_match(&text)))
                }
                other => Err(Fault::NoOverload("matches", other.kind(), None)),
            },
        }
    }

    fn variable(&mut self, variable: Variable) -> Result<Value<'a>, Fault<'a>> {
        Ok(match variable {
            Variable::Document => Value::of(self.inputs.document.root())?,
            Variable::Revision => match self.inputs.revision {
                Revision::Integer(number) => Value::Int(*number),
                Revision::Date(date) => Value::Text(Cow::Borrowed(date.text())),
            },
            Variable::Wildcards => Value::Wildcards(self.inputs.wildcards),
            Variable::Action => match self.inputs.action {
                Some(action) => Value::Text(Cow::Borrowed(action.as_str())),
                None => Value::Null,
            },
            Variable::State => match self.inputs.state {
                Some(state) => Value::of(state.root())?,
                None => return Err(Fault::NoState),
            },
        })
    }

    fn select(&mut self, operand: &Value<'a>, field: &'a str) -> Result<Value<'a>, Fault<'a>> {
        match operand {
            Value::Part(node) if matches!(node.content(), Content::Map(_)) => {
                if let Content::Map(fields) = node.content() {
                    self.budget.spend(fields as usize / 8)?;
                }
                node.field(field).map_or(Err(Fault::NoField(field)), Value::of)
            }
            Value::Wildcards(values) => {
                let found = values.iter().find(|(name, _)| *name == field);
                found.map(|(_, value)| Value::Text(Cow::Borrowed(*value))).ok_or(Fault::NoField(field))
            }
            other => Err(Fault::NoOverload(".", other.kind(), None)),
        }
    }

    fn index(&mut self, operand: &'a Expr, index: &'a Expr) -> Result<Value<'a>, Fault<'a>> {
        let (operand, index) = (self.value(operand)?, self.value(index)?);
        if let Value::Text(key) = &index {
            return match &operand {
                Value::Part(node) if matches!(node.content(), Content::Map(_)) => {
                    self.budget.spend(node.weight() / 8)?;
                    node.field(key).map_or(Err(Fault::NoIndex), Value::of)
                }
                Value::Wildcards(values) => {
                    let found = values.iter().find(|(name, _)| *name == &**key);
                    found.map(|(_, value)| Value::Text(Cow::Borrowed(*value))).ok_or(Fault::NoIndex)
                }
                other => Err(Fault::NoOverload("[]", other.kind(), Some(Kind::Text))),
            };
        }
        let place = match &index {
            Value::Int(place) => usize::try_from(*place).ok(),
            Value::Uint(place) => usize::try_from(*place).ok(),
            Value::Double(place) if place.fract() == 0.0 && (0.0..9e15).contains(place) => {
                Some(*place as usize)
            }
            other => return Err(Fault::NoOverload("[]", operand.kind(), Some(other.kind()))),
        };
        let place = place.ok_or(Fault::NoIndex)?;
        match operand {
            Value::List(mut elements) if place < elements.len() => Ok(elements.swap_remove(place)),
            Value::List(_) => Err(Fault::NoIndex),
            Value::Part(node) if matches!(node.content(), Content::List(_)) => {
                self.budget.spend(node.weight() / 8)?;
                node.elements().nth(place).map_or(Err(Fault::NoIndex), Value::of)
            }
            other => Err(Fault::NoOverload("[]", other.kind(), Some(index.kind()))),
        }
    }

    /// `&&` and `||`: one part that decides does so, even if another has no value.
    fn logic(
        &mut self,
        parts: &'a [Expr],
        sign: &'static str,
        decides: bool,
    ) -> Result<Value<'a>, Fault<'a>> {
        let mut fault = None;
        for part in parts {
            match self.value(part) {
                Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => {}
                Ok(other) => {
                    fault.get_or_insert(Fault::NoOverload(sign, other.kind(), None));
                }
                Err(Fault::TooCostly) => return Err(Fault::TooCostly),
                Err(other) => {
                    fault.get_or_insert(other);
                }
            }
        }
        fault.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn equals(&mut self, a: &'a Expr, b: &'a Expr) -> Result<bool, Fault<'a>> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        equal(&a, &b, &mut self.budget)
    }

    fn compare(&mut self, order: Order, a: &'a Expr, b: &'a Expr) -> Result<Value<'a>, Fault<'a>> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        if let (Value::Text(a), Value::Text(b)) = (&a, &b) {
            self.budget.spend(a.len().min(b.len()) / 8)?;
        }
        let sign = match order {
            Order::Less => "<",
            Order::LessOrEqual => "<=",
            Order::Greater => ">",
            Order::GreaterOrEqual => ">=",
        };
        let found = match compare(&a, &b) {
            Comparison::Ordered(found) => found,
            Comparison::NotANumber => return Ok(Value::Bool(false)),
            Comparison::Incomparable => return Err(Fault::NoOverload(sign, a.kind(), Some(b.kind()))),
        };
        Ok(Value::Bool(match order {
            Order::Less => found == Ordering::Less,
            Order::LessOrEqual => found != Ordering::Greater,
            Order::Greater => found == Ordering::Greater,
            Order::GreaterOrEqual => found != Ordering::Less,
        }))
    }

    fn is_in(&mut self, value: &'a Expr, list: &'a Expr) -> Result<Value<'a>, Fault<'a>> {
        let value = self.value(value)?;
        // A list that is written out is not built first.
        if let Expr::List(elements) = list {
            for element in elements {
                let element = self.value(element)?;
                if equal(&value, &element, &mut self.budget)? {
                    return Ok(Value::Bool(true));
                }
            }
            return Ok(Value::Bool(false));
        }
        let found = match self.value(list)? {
            Value::List(elements) => self.any_equal(&value, elements.into_iter().map(Ok))?,
            Value::Part(node) => match (node.content(), &value) {
                (Content::List(_), _) => self.any_equal(&value, node.elements().map(Value::of))?,
                (Content::Map(_), Value::Text(key)) => {
                    self.budget.spend(node.weight() / 8)?;
                    node.field(key).is_some()
                }
                _ => false,
            },
            Value::Wildcards(values) => match &value {
                Value::Text(key) => values.iter().any(|(name, _)| *name == &**key),
                _ => false,
            },
            other => return Err(Fault::NoOverload("in", value.kind(), Some(other.kind()))),
        };
        Ok(Value::Bool(found))
    }

    /// Whether one of them is equal. One that cannot be looked at might be: it matters only where no other is.
    fn any_equal(
        &mut self,
        value: &Value<'a>,
        elements: impl Iterator<Item = Result<Value<'a>, Fault<'a>>>,
    ) -> Result<bool, Fault<'a>> {
        let mut fault = None;
        for element in elements {
            match element {
                Ok(element) if equal(value, &element, &mut self.budget)? => return Ok(true),
                Ok(_) => {}
                Err(odd) => fault = Some(odd),
            }
        }
        fault.map_or(Ok(false), Err)
    }

    /// As CEL has it, and one step further: JSON does not tell 10 from 10.0, so where an integer meets a double
    /// it is taken for one.
    fn arithmetic(&mut self, sum: Sum, a: Value<'a>, b: Value<'a>) -> Result<Value<'a>, Fault<'a>> {
        let sign = match sum {
            Sum::Add => "+",
            Sum::Subtract => "-",
            Sum::Multiply => "*",
            Sum::Divide => "/",
            Sum::Remainder => "%",
        };
        let wrong = Fault::NoOverload(sign, a.kind(), Some(b.kind()));
        match (a, b) {
            (Value::Int(a), Value::Int(b)) => whole(sum, a, b).map(Value::Int),
            (Value::Uint(a), Value::Uint(b)) => whole(sum, a, b).map(Value::Uint),
            (Value::Double(a), Value::Double(b)) => double(sum, a, b, wrong),
            (Value::Double(a), Value::Int(b)) => double(sum, a, b as f64, wrong),
            (Value::Double(a), Value::Uint(b)) => double(sum, a, b as f64, wrong),
            (Value::Int(a), Value::Double(b)) => double(sum, a as f64, b, wrong),
            (Value::Uint(a), Value::Double(b)) => double(sum, a as f64, b, wrong),
            (Value::Text(a), Value::Text(b)) if sum == Sum::Add => {
                self.budget.spend((a.len() + b.len()) / 8)?;
                Ok(Value::Text(Cow::Owned(format!("{a}{b}"))))
            }
            (a, b) if sum == Sum::Add && a.kind() == Kind::List && b.kind() == Kind::List => {
                self.budget.spend(a.weight() + b.weight())?;
                let mut list = functions::elements(a)?;
                list.extend(functions::elements(b)?);
                Ok(Value::List(list))
            }
            (a, b) => functions::dates(sum, &a, &b).unwrap_or(Err(wrong)),
        }
    }

    fn call(&mut self, function: Function, arguments: &'a [Expr]) -> Result<Value<'a>, Fault<'a>> {
        let [first, rest @ ..] = arguments else { return Err(Fault::NoIndex) };
        let first = self.value(first)?;
        self.budget.spend(first.weight())?;
        match rest {
            [] => functions::unary(function, first),
            [second, ..] => {
                let second = self.value(second)?;
                functions::on_texts(function, &first, &second)
            }
        }
    }
}

fn constant(value: &Const) -> Value<'_> {
    match value {
        Const::Null => Value::Null,
        Const::Bool(value) => Value::Bool(*value),
        Const::Int(value) => Value::Int(*value),
        Const::Uint(value) => Value::Uint(*value),
        Const::Double(value) => Value::Double(*value),
        Const::Text(text) => Value::Text(Cow::Borrowed(text)),
        Const::Type(kind) => Value::Type(*kind),
    }
}

/// What integers of both kinds can do.
trait Whole: Copy + Default + PartialEq {
    fn sum(sum: Sum, a: Self, b: Self) -> Option<Self>;
}

macro_rules! whole {
    ($type:ty) => {
        impl Whole for $type {
            fn sum(sum: Sum, a: $type, b: $type) -> Option<$type> {
                match sum {
                    Sum::Add => a.checked_add(b),
                    Sum::Subtract => a.checked_sub(b),
                    Sum::Multiply => a.checked_mul(b),
                    Sum::Divide => a.checked_div(b),
                    Sum::Remainder => a.checked_rem(b),
                }
            }
        }
    };
}

whole!(i64);
whole!(u64);

fn whole<'a, T: Whole>(sum: Sum, a: T, b: T) -> Result<T, Fault<'a>> {
    if matches!(sum, Sum::Divide | Sum::Remainder) && b == T::default() {
        return Err(Fault::DivisionByZero);
    }
    T::sum(sum, a, b).ok_or(Fault::Overflow)
}

fn double<'a>(sum: Sum, a: f64, b: f64, wrong: Fault<'a>) -> Result<Value<'a>, Fault<'a>> {
    Ok(Value::Double(match sum {
        Sum::Add => a + b,
        Sum::Subtract => a - b,
        Sum::Multiply => a * b,
        Sum::Divide => a / b,
        Sum::Remainder => return Err(wrong),
    }))
}
