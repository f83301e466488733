//! The paths in a Rust file: its text comes in; what it imports, what it passes on and what it names otherwise goes out.
//! Comments, texts, visibilities and whatever is compiled for tests only are left out.

/// A path, by its segments.
pub type Path = Vec<String>;

/// What a file names.
#[derive(Debug, Default)]
pub struct Paths {
    /// What it imports and uses, and what it names where it is used.
    pub known: Vec<Path>,
    /// What it imports for others (`pub use`), whether it uses it itself or not.
    pub passed_on: Vec<Path>,
}

/// Reads a file.
pub fn read(text: &str) -> Paths {
    let tokens = without_tests(tokens(text));
    let mut paths = Paths::default();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            let end = at + tokens[at..].iter().position(|token| token == ";").unwrap_or(0);
            let public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
            for path in tree(&tokens[at + 1..end]) {
                let of_name = |name| tokens.iter().filter(|token| *token == name).count();
                let used = path.last().is_some_and(|name| of_name(name) > 1);
                paths.known.extend((!public || used).then(|| path.clone()));
                paths.passed_on.extend(public.then_some(path));
            }
            at = end;
        } else if ["crate", "self", "super"].contains(&tokens[at].as_str())
            && (at == 0 || tokens[at - 1] != "in")
        {
            let mut path = vec![tokens[at].clone()];
            while tokens.get(at + 1).is_some_and(|token| token == "::")
                && let Some(name) = tokens.get(at + 2).filter(|token| is_name(token))
            {
                path.push(name.clone());
                at += 2;
            }
            paths.known.extend((path.len() > 1).then_some(path));
        }
        at += 1;
    }
    paths
}

/// The paths of a `use`: `a::{b, c::d as e}` is `a::b` and `a::c::d`.
fn tree(tokens: &[String]) -> Vec<Path> {
    let Some(open) = tokens.iter().position(|token| token == "{") else {
        let names = tokens.iter().take_while(|token| *token != "as").filter(|token| is_name(token));
        return vec![names.cloned().collect()];
    };
    let prefix: Path = tokens[..open].iter().filter(|token| is_name(token)).cloned().collect();
    let (mut depth, mut part, mut parts) = (0, Vec::new(), Vec::new());
    for token in &tokens[open + 1..tokens.len() - 1] {
        depth += i32::from(token == "{") - i32::from(token == "}");
        if token == "," && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(token.clone());
        }
    }
    parts.push(part);
    let parts = parts.iter().filter(|part| !part.is_empty()).flat_map(|part| tree(part));
    parts
        .map(|path| prefix.iter().chain(path.iter().filter(|name| *name != "self")).cloned().collect())
        .collect()
}

/// Leaves out each item under `#[cfg(test)]`.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut left = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if tokens.get(at..at + TEST.len()).is_some_and(|next| next == TEST) {
            at = end_of_item(&tokens, at + TEST.len());
        } else {
            left.push(tokens[at].clone());
            at += 1;
        }
    }
    left
}

/// Behind the item that begins here: behind its block, or its semicolon if that comes first.
fn end_of_item(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return at + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::`, and every other sign by itself; texts and comments are gone.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(length) = literal(rest) {
            length
        } else if is_name(rest) {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let token = &rest[..length];
        if is_name(token) || token == "::" || token.len() == 1 && !first.is_whitespace() {
            tokens.push(token.to_owned());
        }
        rest = &rest[length..];
    }
    tokens
}

/// How long the text or character is that begins here, if one does. A lifetime is none.
fn literal(rest: &str) -> Option<usize> {
    let raw = rest.strip_prefix("br").or(rest.strip_prefix('r'));
    let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    if let Some(body) = raw.and_then(|raw| raw[hashes..].strip_prefix('"')) {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(rest.len() - body.len() + body.find(&end).unwrap_or(body.len()) + end.len());
    }
    let start = if rest.starts_with("b\"") { 2 } else { usize::from(rest.starts_with('"')) };
    if start > 0 {
        let mut escaped = false;
        let end = rest[start..].find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        return end.map(|end| start + end + 1);
    }
    let mut chars = rest.strip_prefix('\'')?.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        // What is escaped may be the quote itself.
        chars.next();
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 2);
    }
    chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 2)
}
