//! In: a compiled expression and what it sees. Out: the values that it mentions, in words, for people who ask why.

use super::Inputs;
use super::json::Content;
use super::run::{self, Fault};
use super::tree::{Const, Expr, Variable};
use super::value::Value;

/// So many values are told at most, and so much of each.
const VALUES: usize = 8;
const LETTERS: usize = 64;

/// The values that an expression mentions, each with how it is written there.
pub(super) fn seen(expr: &Expr, inputs: &Inputs<'_>) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    collect(expr, inputs, &mut paths);
    let mut seen: Vec<(String, String)> = Vec::new();
    for (path, expr) in paths {
        if seen.len() < VALUES && seen.iter().all(|(known, _)| *known != path) {
            seen.push((path, told(expr, inputs)));
        }
    }
    seen
}

fn collect<'e>(expr: &'e Expr, inputs: &Inputs<'_>, paths: &mut Vec<(String, &'e Expr)>) {
    let whole = matches!(expr, Expr::Variable(Variable::Document | Variable::State | Variable::Wildcards));
    if let Some(path) = path(expr, inputs) {
        // A whole document tells nobody anything.
        if !whole {
            paths.push((path, expr));
        }
        return;
    }
    match expr {
        Expr::Const(_) | Expr::Variable(_) | Expr::Wildcard(_) => {}
        Expr::Select(operand, _) | Expr::Not(operand) | Expr::Negate(operand) | Expr::Matches(operand, _) => {
            collect(operand, inputs, paths);
        }
        Expr::Has(operand, field) => match path(operand, inputs) {
            Some(operand) => paths.push((format!("has({operand}.{field})"), expr)),
            None => collect(operand, inputs, paths),
        },
        Expr::And(parts) | Expr::Or(parts) | Expr::List(parts) | Expr::Call(_, parts) => {
            parts.iter().for_each(|part| collect(part, inputs, paths));
        }
        Expr::If(parts) => {
            [&parts.0, &parts.1, &parts.2].into_iter().for_each(|part| collect(part, inputs, paths));
        }
        Expr::Index(pair)
        | Expr::Equal(pair)
        | Expr::NotEqual(pair)
        | Expr::Compare(_, pair)
        | Expr::Arithmetic(_, pair)
        | Expr::In(pair) => [&pair.0, &pair.1].into_iter().for_each(|part| collect(part, inputs, paths)),
    }
}

/// How something that is only looked up is written.
fn path(expr: &Expr, inputs: &Inputs<'_>) -> Option<String> {
    Some(match expr {
        Expr::Variable(Variable::Document) => "document".to_owned(),
        Expr::Variable(Variable::State) => "state".to_owned(),
        Expr::Variable(Variable::Wildcards) => "wildcards".to_owned(),
        Expr::Variable(Variable::Revision) => "revision".to_owned(),
        Expr::Variable(Variable::Action) => "action".to_owned(),
        Expr::Wildcard(index) => format!("wildcards.{}", inputs.wildcards.get(*index)?.0),
        Expr::Select(operand, field) => format!("{}.{field}", path(operand, inputs)?),
        Expr::Index(pair) => match &pair.1 {
            Expr::Const(Const::Int(index)) => format!("{}[{index}]", path(&pair.0, inputs)?),
            Expr::Const(Const::Text(name)) => format!("{}[\"{name}\"]", path(&pair.0, inputs)?),
            _ => return None,
        },
        _ => return None,
    })
}

fn told(expr: &Expr, inputs: &Inputs<'_>) -> String {
    match run::value(expr, inputs) {
        Ok(value) => words(&value),
        Err(Fault::NoField(_) | Fault::NoIndex) => "missing".to_owned(),
        Err(Fault::NoState) => "not known".to_owned(),
        Err(fault) => format!("unreadable ({fault})"),
    }
}

fn words(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Text(text) => {
            let short: String = text.chars().take(LETTERS).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            format!("\"{short}{more}\"")
        }
        Value::Part(node) => match node.content() {
            Content::List(_) => "a list".to_owned(),
            _ => "an object".to_owned(),
        },
        Value::List(_) => "a list".to_owned(),
        Value::Wildcards(_) => "an object".to_owned(),
        Value::Time(_) | Value::Span(_) | Value::Type(_) => "computed".to_owned(),
    }
}
