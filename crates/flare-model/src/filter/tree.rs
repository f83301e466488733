//! A compiled expression: names are resolved, constants are values, patterns are compiled.

use regex::Regex;

/// One operation.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Const(Const),
    Variable(Variable),
    /// A wildcard of the resource, by position.
    Wildcard(usize),
    Select(Box<Expr>, Box<str>),
    /// `has(operand.field)`.
    Has(Box<Expr>, Box<str>),
    Index(Box<(Expr, Expr)>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    /// Two or more, flat: a long list of alternatives is not deep.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    If(Box<(Expr, Expr, Expr)>),
    Equal(Box<(Expr, Expr)>),
    NotEqual(Box<(Expr, Expr)>),
    Compare(Order, Box<(Expr, Expr)>),
    Arithmetic(Sum, Box<(Expr, Expr)>),
    In(Box<(Expr, Expr)>),
    List(Vec<Expr>),
    /// The receiver of a member call is the first argument.
    Call(Function, Vec<Expr>),
    Matches(Box<Expr>, Box<Pattern>),
}

/// A value that stands in the expression itself.
#[derive(Clone, Debug)]
pub(super) enum Const {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Type(Kind),
}

/// What an expression can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Document,
    Revision,
    Wildcards,
    Action,
    State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What kind of value: known before anything is evaluated, or `Any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    List,
    Map,
    Time,
    Span,
    Type,
}

impl Kind {
    /// As CEL calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Any => "dyn",
            Kind::Null => "null_type",
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Uint => "uint",
            Kind::Double => "double",
            Kind::Text => "string",
            Kind::List => "list",
            Kind::Map => "map",
            Kind::Time => "timestamp",
            Kind::Span => "duration",
            Kind::Type => "type",
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Uint | Kind::Double)
    }
}

/// What can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    LowerAscii,
    UpperAscii,
    ToInt,
    ToUint,
    ToDouble,
    ToText,
    ToBool,
    Type,
    Dyn,
    Timestamp,
    Duration,
    FullYear,
    Month,
    DayOfMonth,
    Date,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// How a function is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `f(x)`.
    Global,
    /// `x.f(...)`.
    Member,
    /// Either.
    Both,
}

/// A function: its name, how it is written, how many arguments it takes (the receiver counts), what it gives.
pub(super) struct Declared(
    pub(super) &'static str,
    pub(super) Function,
    pub(super) Shape,
    pub(super) usize,
    pub(super) Kind,
);

/// Every function there is, beside `has` and `matches`.
pub(super) const FUNCTIONS: [Declared; 25] = [
    Declared("size", Function::Size, Shape::Both, 1, Kind::Int),
    Declared("contains", Function::Contains, Shape::Member, 2, Kind::Bool),
    Declared("startsWith", Function::StartsWith, Shape::Member, 2, Kind::Bool),
    Declared("endsWith", Function::EndsWith, Shape::Member, 2, Kind::Bool),
    Declared("lowerAscii", Function::LowerAscii, Shape::Member, 1, Kind::Text),
    Declared("upperAscii", Function::UpperAscii, Shape::Member, 1, Kind::Text),
    Declared("int", Function::ToInt, Shape::Global, 1, Kind::Int),
    Declared("uint", Function::ToUint, Shape::Global, 1, Kind::Uint),
    Declared("double", Function::ToDouble, Shape::Global, 1, Kind::Double),
    Declared("string", Function::ToText, Shape::Global, 1, Kind::Text),
    Declared("bool", Function::ToBool, Shape::Global, 1, Kind::Bool),
    Declared("type", Function::Type, Shape::Global, 1, Kind::Type),
    Declared("dyn", Function::Dyn, Shape::Global, 1, Kind::Any),
    Declared("timestamp", Function::Timestamp, Shape::Global, 1, Kind::Time),
    Declared("duration", Function::Duration, Shape::Global, 1, Kind::Span),
    Declared("getFullYear", Function::FullYear, Shape::Member, 1, Kind::Int),
    Declared("getMonth", Function::Month, Shape::Member, 1, Kind::Int),
    Declared("getDayOfMonth", Function::DayOfMonth, Shape::Member, 1, Kind::Int),
    Declared("getDate", Function::Date, Shape::Member, 1, Kind::Int),
    Declared("getDayOfWeek", Function::DayOfWeek, Shape::Member, 1, Kind::Int),
    Declared("getDayOfYear", Function::DayOfYear, Shape::Member, 1, Kind::Int),
    Declared("getHours", Function::Hours, Shape::Member, 1, Kind::Int),
    Declared("getMinutes", Function::Minutes, Shape::Member, 1, Kind::Int),
    Declared("getSeconds", Function::Seconds, Shape::Member, 1, Kind::Int),
    Declared("getMilliseconds", Function::Milliseconds, Shape::Member, 1, Kind::Int),
];

/// The types that can be named, as in `type(document.id) == string`.
pub(super) const TYPES: [Kind; 9] = [
    Kind::Null,
    Kind::Bool,
    Kind::Int,
    Kind::Uint,
    Kind::Double,
    Kind::Text,
    Kind::List,
    Kind::Map,
    Kind::Type,
];

/// A regular expression that was compiled once.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    /// What looking at one byte costs at most, in units of an evaluation's budget.
    pub(super) cost_per_byte: usize,
}
