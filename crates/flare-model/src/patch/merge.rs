//! JSON Merge Patch. Null means "remove" in it, so that a null which is to be set cannot be said.

use super::DEEPEST;
use super::members::{Level, Members, level, put_text};

/// The patch between two objects, if it can be said.
pub fn between(from: &str, to: &str) -> Option<String> {
    let (Level::Object(Some(from)), Level::Object(Some(to))) = (level(from.trim()), level(to.trim())) else {
        return None;
    };
    let mut out = String::new();
    object(&from, &to, DEEPEST, &mut out)?;
    Some(out)
}

/// Writes what turns one object into the other. `None` when that cannot be said.
fn object(from: &Members<'_>, to: &Members<'_>, depth: usize, out: &mut String) -> Option<()> {
    out.push('{');
    let mut first = true;
    let mut name = |out: &mut String, name: &str| {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        put_text(out, name);
        out.push(':');
    };
    for gone in from.keys().filter(|name| !to.contains_key(*name)) {
        name(out, gone);
        out.push_str("null");
    }
    for (member, after) in to {
        let before = from.get(member);
        if before == Some(after) {
            continue;
        }
        name(out, member);
        match (before.map(|before| level(before)), level(after)) {
            (_, Level::Object(None)) | (Some(Level::Object(None)), _) => return None,
            // An object in a patch is merged into the one that is there, so only the difference is right.
            (Some(Level::Object(Some(before))), Level::Object(Some(after))) => {
                object(&before, &after, depth.checked_sub(1)?, out)?;
            }
            _ if sets_null(after, depth)? => return None,
            _ => out.push_str(after),
        }
    }
    out.push('}');
    Some(())
}

/// Whether setting this value would have to set a null: within lists it can. `None` when it is too deep to tell.
fn sets_null(value: &str, depth: usize) -> Option<bool> {
    match level(value) {
        Level::Plain => Some(value == "null"),
        Level::List(_) => Some(false),
        Level::Object(members) => {
            let depth = depth.checked_sub(1)?;
            for value in members?.values() {
                if sets_null(value, depth)? {
                    return Some(true);
                }
            }
            Some(false)
        }
    }
}
