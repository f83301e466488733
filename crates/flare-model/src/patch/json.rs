//! JSON Patch: a list of operations, each with the path of what it changes.

use std::fmt::Write as _;

use super::DEEPEST;
use super::members::{Level, Members, level, put_text};

/// The operations between two documents; below the deepest level, values are replaced whole.
pub fn between(from: &str, to: &str) -> Option<String> {
    let (Level::Object(Some(from)), Level::Object(Some(to))) = (level(from.trim()), level(to.trim())) else {
        return None;
    };
    let mut writing = Writing { out: String::from("["), path: String::new() };
    writing.object(&from, &to, DEEPEST);
    writing.out.push(']');
    Some(writing.out)
}

struct Writing {
    out: String,
    /// The pointer to where we are.
    path: String,
}

impl Writing {
    /// One operation on what the path leads to.
    fn operation(&mut self, name: &str, value: Option<&str>) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        self.out.push_str("{\"op\":\"");
        self.out.push_str(name);
        self.out.push_str("\",\"path\":");
        put_text(&mut self.out, &self.path);
        if let Some(value) = value {
            self.out.push_str(",\"value\":");
            self.out.push_str(value);
        }
        self.out.push('}');
    }

    /// Goes one step down, does something there, and comes back.
    fn at(&mut self, step: impl std::fmt::Display, act: impl FnOnce(&mut Writing)) {
        let length = self.path.len();
        let step = step.to_string().replace('~', "~0").replace('/', "~1");
        let _ = write!(self.path, "/{step}");
        act(self);
        self.path.truncate(length);
    }

    fn value(&mut self, before: &str, after: &str, depth: usize) {
        if before == after {
            return;
        }
        match (depth, level(before), level(after)) {
            (1.., Level::Object(Some(before)), Level::Object(Some(after))) => {
                self.object(&before, &after, depth - 1);
            }
            (1.., Level::List(before), Level::List(after)) => self.list(&before, &after, depth - 1),
            _ => self.operation("replace", Some(after)),
        }
    }

    fn object(&mut self, from: &Members<'_>, to: &Members<'_>, depth: usize) {
        for gone in from.keys().filter(|name| !to.contains_key(*name)) {
            self.at(gone, |here| here.operation("remove", None));
        }
        for (name, after) in to {
            self.at(name, |here| match from.get(name) {
                Some(before) => here.value(before, after, depth),
                None => here.operation("add", Some(after)),
            });
        }
    }

    /// What is the same at both ends stays; in between, entries are changed in place, then removed from the back or
    /// added, so that no index moves before it is used.
    fn list(&mut self, from: &[&str], to: &[&str], depth: usize) {
        let shorter = from.len().min(to.len());
        let head = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let tail = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        let tail = tail.min(shorter - head);
        let (before, after) = (&from[head..from.len() - tail], &to[head..to.len() - tail]);
        let common = before.len().min(after.len());
        for index in 0..common {
            self.at(head + index, |here| here.value(before[index], after[index], depth));
        }
        for index in (common..before.len()).rev() {
            self.at(head + index, |here| here.operation("remove", None));
        }
        for (index, added) in after.iter().enumerate().skip(common) {
            self.at(head + index, |here| here.operation("add", Some(added)));
        }
    }
}
