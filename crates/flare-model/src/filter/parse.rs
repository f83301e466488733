//! In: the tokens of an expression and what it may see. Out: the compiled tree, or the first mistake.
//!
//! Names, functions, numbers of arguments and, as far as they are known, types are checked here, so that what
//! can only fail is refused when a subscription is created and not found out at midnight. Both the recursion
//! and the tree are bounded in depth, so neither this nor the evaluation can overflow the stack.

use super::lex::{Token, tokens};
use super::mistake::Mistake;
use super::pattern;
use super::tree::{Const, Declared, Expr, FUNCTIONS, Function, Kind, Order, Shape, Sum, TYPES, Variable};
use super::{MAX_NESTING, MAX_SOURCE, Purpose};

/// Words that CEL keeps for itself.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// Macros that loop over a list: an expression with them has no bound on what it costs.
const COMPREHENSIONS: [&str; 9] =
    ["all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap", "sortBy"];

/// A part of the tree and what is known of it.
struct Node {
    expr: Expr,
    kind: Kind,
    /// Where it begins.
    at: usize,
    /// How many operations stand inside each other.
    depth: usize,
}

/// What came out of parsing.
pub(super) struct Parsed {
    pub(super) expr: Expr,
    pub(super) mentions_state: bool,
    pub(super) mentions_wildcards: bool,
}

/// Compiles an expression.
pub(super) fn parse(source: &str, purpose: Purpose, wildcards: Option<&[String]>) -> Result<Parsed, Mistake> {
    if source.len() > MAX_SOURCE {
        let problem = format!("an expression has at most {MAX_SOURCE} bytes, this one has {}", source.len());
        return Err(Mistake::at(source, 0, problem));
    }
    let tokens = tokens(source)?;
    let mut parser = Parser {
        source,
        tokens,
        next: 0,
        nesting: 0,
        purpose,
        wildcards,
        mentions_state: false,
        mentions_wildcards: false,
    };
    if parser.peek() == &Token::End {
        return Err(parser.mistake(0, "is empty; leave the field out to filter nothing"));
    }
    let node = parser.expression()?;
    if parser.peek() != &Token::End {
        return Err(parser.unexpected("an operator, or the end"));
    }
    parser.expect(&node, &[Kind::Bool], "the result")?;
    let Parser { mentions_state, mentions_wildcards, .. } = parser;
    Ok(Parsed { expr: node.expr, mentions_state, mentions_wildcards })
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// How deep the recursion is.
    nesting: usize,
    purpose: Purpose,
    wildcards: Option<&'s [String]>,
    mentions_state: bool,
    mentions_wildcards: bool,
}

/// How tightly an operator binds; 0 for what is none.
fn strength(token: &Token) -> u8 {
    match token {
        Token::Sign("||") => 1,
        Token::Sign("&&") => 2,
        Token::Sign("==" | "!=" | "<" | "<=" | ">" | ">=") => 3,
        Token::Word(word) if word == "in" => 3,
        Token::Sign("+" | "-") => 4,
        Token::Sign("*" | "/" | "%") => 5,
        _ => 0,
    }
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    fn advance(&mut self) -> (usize, Token) {
        let taken = self.tokens[self.next].clone();
        // The last token is the end, and stays.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        taken
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        if found {
            self.advance();
        }
        found
    }

    fn need(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn mistake(&self, at: usize, problem: impl Into<String>) -> Mistake {
        Mistake::at(self.source, at, problem)
    }

    fn unexpected(&self, wanted: &str) -> Mistake {
        let found = match self.peek() {
            Token::End => "the expression ends".to_owned(),
            Token::Sign(sign) => format!("`{sign}` stands here"),
            Token::Word(word) => format!("`{word}` stands here"),
            Token::Text(_) => "a string stands here".to_owned(),
            Token::Int(_) | Token::Uint(_) | Token::Double(_) => "a number stands here".to_owned(),
        };
        self.mistake(self.at(), format!("{found} where {wanted} is expected"))
    }

    /// What is known of a part must be one of these kinds.
    fn expect(&self, node: &Node, kinds: &[Kind], what: &str) -> Result<(), Mistake> {
        if node.kind == Kind::Any || kinds.contains(&node.kind) {
            return Ok(());
        }
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let problem = format!("{what} must be {}, this is {}", names.join(" or "), node.kind.name());
        Err(self.mistake(node.at, problem))
    }

    fn node(&self, at: usize, expr: Expr, kind: Kind, inner: usize) -> Result<Node, Mistake> {
        let depth = inner + 1;
        if depth > MAX_NESTING { Err(self.too_deep(at)) } else { Ok(Node { expr, kind, at, depth }) }
    }

    fn too_deep(&self, at: usize) -> Mistake {
        self.mistake(at, format!("more than {MAX_NESTING} operations stand inside each other here"))
    }

    /// A whole expression: a conditional, or anything that binds tighter.
    fn expression(&mut self) -> Result<Node, Mistake> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.too_deep(self.at()));
        }
        let mut node = self.operators(1)?;
        if self.take("?") {
            self.expect(&node, &[Kind::Bool], "what stands before `?`")?;
            let then = self.operators(1)?;
            self.need(":")?;
            let other = self.expression()?;
            let kind = if then.kind == other.kind { then.kind } else { Kind::Any };
            let depth = node.depth.max(then.depth).max(other.depth);
            let expr = Expr::If(Box::new((node.expr, then.expr, other.expr)));
            node = self.node(node.at, expr, kind, depth)?;
        }
        self.nesting -= 1;
        Ok(node)
    }

    /// Operators that bind at least as tightly as `least`, from the left.
    fn operators(&mut self, least: u8) -> Result<Node, Mistake> {
        let mut left = self.unary()?;
        loop {
            let strength = strength(self.peek());
            if strength == 0 || strength < least {
                return Ok(left);
            }
            let (at, token) = self.advance();
            let right = self.operators(strength + 1)?;
            left = self.binary(at, &token, left, right)?;
        }
    }

    fn binary(&self, at: usize, token: &Token, left: Node, right: Node) -> Result<Node, Mistake> {
        let depth = left.depth.max(right.depth);
        let begin = left.at;
        let pair = |left: Node, right: Node| Box::new((left.expr, right.expr));
        let order = |order| (order, Kind::Bool);
        let (expr, kind) = match token {
            Token::Sign(sign @ ("&&" | "||")) => {
                self.expect(&left, &[Kind::Bool], &format!("what stands before `{sign}`"))?;
                self.expect(&right, &[Kind::Bool], &format!("what stands after `{sign}`"))?;
                // Flat, so a chain of any length adds one level.
                let (mut parts, depth) = match (left.expr, *sign) {
                    (Expr::And(parts), "&&") | (Expr::Or(parts), "||") => (parts, depth.max(1) - 1),
                    (other, _) => (vec![other], depth),
                };
                parts.push(right.expr);
                let depth = depth.max(right.depth);
                let expr = if *sign == "&&" { Expr::And(parts) } else { Expr::Or(parts) };
                return self.node(begin, expr, Kind::Bool, depth);
            }
            Token::Sign("==") => (Expr::Equal(pair(left, right)), Kind::Bool),
            Token::Sign("!=") => (Expr::NotEqual(pair(left, right)), Kind::Bool),
            Token::Sign(sign @ ("<" | "<=" | ">" | ">=")) => {
                self.comparable(at, &left, &right)?;
                let (order, kind) = match *sign {
                    "<" => order(Order::Less),
                    "<=" => order(Order::LessOrEqual),
                    ">" => order(Order::Greater),
                    _ => order(Order::GreaterOrEqual),
                };
                (Expr::Compare(order, pair(left, right)), kind)
            }
            Token::Word(_) => {
                self.expect(&right, &[Kind::List, Kind::Map], "what stands after `in`")?;
                (Expr::In(pair(left, right)), Kind::Bool)
            }
            Token::Sign(sign) => {
                let sum = match *sign {
                    "+" => Sum::Add,
                    "-" => Sum::Subtract,
                    "*" => Sum::Multiply,
                    "/" => Sum::Divide,
                    _ => Sum::Remainder,
                };
                let Some(kind) = sum_kind(sum, left.kind, right.kind) else {
                    let problem =
                        format!("`{sign}` does not take {} and {}", left.kind.name(), right.kind.name());
                    return Err(self.mistake(at, problem));
                };
                (Expr::Arithmetic(sum, pair(left, right)), kind)
            }
            _ => return Err(self.mistake(at, "is no operator")),
        };
        self.node(begin, expr, kind, depth)
    }

    fn comparable(&self, at: usize, left: &Node, right: &Node) -> Result<(), Mistake> {
        let (a, b) = (left.kind, right.kind);
        let ordered = |kind: Kind| {
            kind.is_number() || matches!(kind, Kind::Any | Kind::Bool | Kind::Text | Kind::Time | Kind::Span)
        };
        let same = a == b || a == Kind::Any || b == Kind::Any || a.is_number() && b.is_number();
        if ordered(a) && ordered(b) && same {
            return Ok(());
        }
        Err(self.mistake(at, format!("{} and {} have no order", a.name(), b.name())))
    }

    fn unary(&mut self) -> Result<Node, Mistake> {
        let at = self.at();
        let not = self.take("!");
        if !not && !self.take("-") {
            let operand = self.primary()?;
            return self.members(operand);
        }
        // The smallest integer has no positive counterpart.
        if !not && self.peek() == &Token::Int(1 << 63) {
            self.advance();
            let least = self.node(at, Expr::Const(Const::Int(i64::MIN)), Kind::Int, 0)?;
            return self.members(least);
        }
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.too_deep(at));
        }
        let operand = self.unary()?;
        self.nesting -= 1;
        if not {
            self.expect(&operand, &[Kind::Bool], "what stands after `!`")?;
            return self.node(at, Expr::Not(Box::new(operand.expr)), Kind::Bool, operand.depth);
        }
        self.expect(&operand, &[Kind::Int, Kind::Double, Kind::Span], "what stands after `-`")?;
        match operand.expr {
            Expr::Const(Const::Int(value)) if value > 0 => {
                self.node(at, Expr::Const(Const::Int(-value)), Kind::Int, 0)
            }
            Expr::Const(Const::Double(value)) => {
                self.node(at, Expr::Const(Const::Double(-value)), Kind::Double, 0)
            }
            expr => self.node(at, Expr::Negate(Box::new(expr)), operand.kind, operand.depth),
        }
    }

    /// What follows an operand: fields, indices, calls.
    fn members(&mut self, mut node: Node) -> Result<Node, Mistake> {
        loop {
            let at = self.at();
            if self.take(".?") || self.take("[?") {
                return Err(self.mistake(at, "optional fields are not available; ask with `has(...)`"));
            }
            if self.take("{") {
                return Err(self.mistake(at, "messages are not available"));
            }
            if self.take("[") {
                self.expect(&node, &[Kind::List, Kind::Map], "what is indexed")?;
                let index = self.expression()?;
                self.need("]")?;
                let depth = node.depth.max(index.depth);
                node =
                    self.node(node.at, Expr::Index(Box::new((node.expr, index.expr))), Kind::Any, depth)?;
            } else if self.take(".") {
                let at = self.at();
                let Token::Word(name) = self.peek().clone() else {
                    return Err(self.unexpected("the name of a field or function"));
                };
                self.advance();
                node = match self.take("(") {
                    true => self.member_call(at, &name, node)?,
                    false => self.select(at, name, node)?,
                };
            } else {
                return Ok(node);
            }
        }
    }

    fn select(&mut self, at: usize, field: String, operand: Node) -> Result<Node, Mistake> {
        self.expect(&operand, &[Kind::Map], "what has fields")?;
        if let (Expr::Variable(Variable::Wildcards), Some(names)) = (&operand.expr, self.wildcards) {
            let Some(index) = names.iter().position(|name| *name == field) else {
                let problem =
                    format!("`{field}` is no wildcard of this resource; there are: {}", names.join(", "));
                return Err(self.mistake(at, problem));
            };
            return self.node(operand.at, Expr::Wildcard(index), Kind::Text, 0);
        }
        let expr = Expr::Select(Box::new(operand.expr), field.into());
        self.node(operand.at, expr, Kind::Any, operand.depth)
    }

    fn arguments(&mut self) -> Result<Vec<Node>, Mistake> {
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.need(",")?;
            }
            arguments.push(self.expression()?);
        }
        Ok(arguments)
    }

    fn member_call(&mut self, at: usize, name: &str, receiver: Node) -> Result<Node, Mistake> {
        if COMPREHENSIONS.contains(&name) {
            let problem =
                format!("`{name}` loops over a list, which is not available; for membership use `in`");
            return Err(self.mistake(at, problem));
        }
        let mut arguments = self.arguments()?;
        arguments.insert(0, receiver);
        if name == "matches" {
            return self.matches(at, arguments);
        }
        self.call(at, name, Shape::Member, arguments)
    }

    fn call(&self, at: usize, name: &str, shape: Shape, arguments: Vec<Node>) -> Result<Node, Mistake> {
        let Some(Declared(_, function, takes, count, kind)) = FUNCTIONS.iter().find(|known| known.0 == name)
        else {
            return Err(self.mistake(at, format!("there is no function `{name}`")));
        };
        if *takes != Shape::Both && *takes != shape {
            let way = if shape == Shape::Member { format!("{name}(x)") } else { format!("x.{name}(...)") };
            return Err(self.mistake(at, format!("`{name}` is called as `{way}`")));
        }
        if arguments.len() != *count {
            let own = usize::from(shape == Shape::Member);
            let (wants, has) = (count - own, arguments.len().saturating_sub(own));
            return Err(self.mistake(at, format!("`{name}` takes {wants} arguments here, this has {has}")));
        }
        let what = format!("what `{name}` takes");
        for argument in &arguments {
            self.expect(argument, takes_kinds(*function), &what)?;
        }
        let begin = arguments.first().map_or(at, |first| first.at.min(at));
        let depth = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0);
        let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        self.node(begin, Expr::Call(*function, arguments), *kind, depth)
    }

    fn matches(&self, at: usize, mut arguments: Vec<Node>) -> Result<Node, Mistake> {
        let (Some(given), Some(text), None) = (arguments.pop(), arguments.pop(), arguments.pop()) else {
            return Err(self.mistake(at, "`matches` is called as `text.matches('pattern')`"));
        };
        self.expect(&text, &[Kind::Text], "what `matches` looks at")?;
        let Expr::Const(Const::Text(regex)) = &given.expr else {
            let problem = "the pattern must be written out as a string, so that it is compiled once";
            return Err(self.mistake(given.at, problem));
        };
        let compiled = pattern::compile(regex).map_err(|problem| self.mistake(given.at, problem))?;
        let expr = Expr::Matches(Box::new(text.expr), Box::new(compiled));
        self.node(text.at, expr, Kind::Bool, text.depth)
    }

    fn primary(&mut self) -> Result<Node, Mistake> {
        let (at, token) = (self.at(), self.peek().clone());
        if !matches!(token, Token::End | Token::Sign(_))
            || matches!(token, Token::Sign("(" | "[" | "{" | "."))
        {
            self.advance();
        }
        let constant = |value, kind| (Expr::Const(value), kind);
        let (expr, kind) = match token {
            Token::Int(number) => match i64::try_from(number) {
                Ok(number) => constant(Const::Int(number), Kind::Int),
                Err(_) => {
                    return Err(self.mistake(at, "is too large for an integer; write 1u for an unsigned one"));
                }
            },
            Token::Uint(number) => constant(Const::Uint(number), Kind::Uint),
            Token::Double(number) => constant(Const::Double(number), Kind::Double),
            Token::Text(text) => constant(Const::Text(text.into()), Kind::Text),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.need(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => return self.list(at),
            Token::Sign("{") => return Err(self.mistake(at, "maps cannot be written here")),
            Token::Sign(".") => return Err(self.mistake(at, "names have no leading dot here")),
            Token::Word(word) if self.take("(") => return self.global_call(at, &word),
            Token::Word(word) => self.name(at, &word)?,
            Token::Sign(_) | Token::End => return Err(self.unexpected("a value")),
        };
        self.node(at, expr, kind, 0)
    }

    fn list(&mut self, at: usize) -> Result<Node, Mistake> {
        let mut elements = Vec::new();
        let mut depth = 0;
        while !self.take("]") {
            if !elements.is_empty() {
                self.need(",")?;
                if self.take("]") {
                    break;
                }
            }
            let element = self.expression()?;
            depth = depth.max(element.depth);
            elements.push(element.expr);
        }
        self.node(at, Expr::List(elements), Kind::List, depth)
    }

    fn global_call(&mut self, at: usize, name: &str) -> Result<Node, Mistake> {
        let arguments = self.arguments()?;
        match name {
            "has" => {
                let mut arguments = arguments.into_iter();
                let only = (arguments.next(), arguments.next());
                match only {
                    (Some(Node { expr: Expr::Select(operand, field), depth, .. }), None) => {
                        self.node(at, Expr::Has(operand, field), Kind::Bool, depth)
                    }
                    (Some(Node { expr: Expr::Wildcard(_), .. }), None) => {
                        self.node(at, Expr::Const(Const::Bool(true)), Kind::Bool, 0)
                    }
                    _ => Err(self.mistake(at, "`has` takes a field, as in `has(document.price)`")),
                }
            }
            "matches" => self.matches(at, arguments),
            _ => self.call(at, name, Shape::Global, arguments),
        }
    }

    fn name(&mut self, at: usize, word: &str) -> Result<(Expr, Kind), Mistake> {
        let known = match word {
            "true" | "false" => return Ok((Expr::Const(Const::Bool(word == "true")), Kind::Bool)),
            "null" => return Ok((Expr::Const(Const::Null), Kind::Null)),
            "document" => Some((Variable::Document, Kind::Map)),
            "revision" => Some((Variable::Revision, Kind::Any)),
            "wildcards" => Some((Variable::Wildcards, Kind::Map)),
            "action" if self.purpose == Purpose::Telling => Some((Variable::Action, Kind::Text)),
            "state" if self.purpose == Purpose::Telling => Some((Variable::State, Kind::Any)),
            _ => None,
        };
        if let Some((variable, kind)) = known {
            self.mentions_state |= variable == Variable::State;
            self.mentions_wildcards |= variable == Variable::Wildcards;
            return Ok((Expr::Variable(variable), kind));
        }
        if let Some(named) = TYPES.iter().find(|kind| kind.name() == word) {
            return Ok((Expr::Const(Const::Type(*named)), Kind::Type));
        }
        let problem = match word {
            "action" | "state" => format!("`{word}` can be seen in `when` only"),
            _ if RESERVED.contains(&word) || word == "in" => format!("`{word}` is a reserved word"),
            _ => {
                let seen = self.purpose.variables().join(", ");
                format!("there is no `{word}`; an expression sees {seen}")
            }
        };
        Err(self.mistake(at, problem))
    }
}

/// What a function takes, in every place.
fn takes_kinds(function: Function) -> &'static [Kind] {
    const NUMBER_OR_TEXT: &[Kind] = &[Kind::Int, Kind::Uint, Kind::Double, Kind::Text, Kind::Time];
    match function {
        Function::Size => &[Kind::Text, Kind::List, Kind::Map],
        Function::Contains
        | Function::StartsWith
        | Function::EndsWith
        | Function::LowerAscii
        | Function::UpperAscii => &[Kind::Text],
        Function::ToInt | Function::ToUint | Function::ToDouble => NUMBER_OR_TEXT,
        Function::ToText => {
            &[Kind::Int, Kind::Uint, Kind::Double, Kind::Text, Kind::Bool, Kind::Time, Kind::Span]
        }
        Function::ToBool => &[Kind::Bool, Kind::Text],
        Function::Type | Function::Dyn => &[
            Kind::Null,
            Kind::Bool,
            Kind::Int,
            Kind::Uint,
            Kind::Double,
            Kind::Text,
            Kind::List,
            Kind::Map,
            Kind::Time,
            Kind::Span,
            Kind::Type,
        ],
        Function::Timestamp => &[Kind::Text, Kind::Int, Kind::Time],
        Function::Duration => &[Kind::Text, Kind::Span],
        Function::Hours | Function::Minutes | Function::Seconds | Function::Milliseconds => {
            &[Kind::Time, Kind::Span]
        }
        Function::FullYear
        | Function::Month
        | Function::DayOfMonth
        | Function::Date
        | Function::DayOfWeek
        | Function::DayOfYear => &[Kind::Time],
    }
}

/// What comes out of arithmetic, `None` if it cannot work.
fn sum_kind(sum: Sum, a: Kind, b: Kind) -> Option<Kind> {
    use Kind::{Any, Double, Int, List, Span, Text, Time, Uint};
    match (sum, a, b) {
        (_, Any, other) | (_, other, Any) => match other {
            Any | Int | Uint | Double => Some(Any),
            Text | List if sum == Sum::Add => Some(other),
            Time | Span if matches!(sum, Sum::Add | Sum::Subtract) => Some(Any),
            _ => None,
        },
        (Sum::Remainder, Int, Int) => Some(Int),
        (Sum::Remainder, Uint, Uint) => Some(Uint),
        (Sum::Remainder, _, _) => None,
        (_, Int, Int) => Some(Int),
        (_, Uint, Uint) => Some(Uint),
        (_, Double, Int | Uint | Double) | (_, Int | Uint, Double) => Some(Double),
        (Sum::Add, Text, Text) => Some(Text),
        (Sum::Add, List, List) => Some(List),
        (Sum::Add, Time, Span) | (Sum::Add, Span, Time) | (Sum::Subtract, Time, Span) => Some(Time),
        (Sum::Add | Sum::Subtract, Span, Span) | (Sum::Subtract, Time, Time) => Some(Span),
        _ => None,
    }
}
