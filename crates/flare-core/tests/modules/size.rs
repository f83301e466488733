//! How large things are, in the whole workspace: folders by their files, functions by their lines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More files than this are not looked through at a glance.
const FILES: usize = 20;

/// More lines than this are not one step.
const LINES: usize = 80;

/// Folders that nobody writes by hand.
const MADE: [&str; 3] = ["target", "node_modules", ".git"];

/// Records of decisions: one a decision, by number and none taken away, so that they only become more.
const RECORDS: &str = "docs/adr";

/// Folders with too many files, and functions with too many lines, each as it is told.
pub fn too_large(workspace: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![workspace.to_owned()];
    let (mut sources, mut tests) = (Vec::new(), BTreeSet::new());
    while let Some(folder) = folders.pop() {
        let mut files = 0;
        for entry in std::fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry of it").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend((!MADE.contains(&name.as_str())).then_some(path));
                continue;
            }
            files += 1;
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a file of the workspace");
                tests.extend(test_modules(&path, &text));
                sources.push((path, text));
            }
        }
        if files > FILES && !folder.ends_with(RECORDS) {
            found.push(format!("{} has {files} files", folder.display()));
        }
    }
    let is_test = |path: &Path| path.ancestors().any(|part| tests.contains(part) || part.ends_with("tests"));
    for (path, text) in sources.iter().filter(|(path, _)| !is_test(path)) {
        for (name, lines) in long_functions(text) {
            found.push(format!("{}: `{name}` has {lines} lines", path.display()));
        }
    }
    found
}

/// The files and folders of the modules that a file declares for tests only.
fn test_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let stem = path.file_stem().unwrap_or_default();
    let folder = path.parent().expect("a file is in a folder");
    let whole = stem == "mod" || stem == "lib" || stem == "main";
    let within = if whole { folder.to_owned() } else { folder.join(stem) };
    let mut modules = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            continue;
        }
        for line in lines.by_ref() {
            if let Some(name) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
                modules.push(folder.join(name));
            }
            if let Some((_, name)) = line.strip_suffix(';').and_then(|line| line.split_once("mod ")) {
                modules.extend([within.join(name), within.join(format!("{name}.rs"))]);
            }
            if !line.starts_with('#') {
                break;
            }
        }
    }
    modules
}

/// Functions with too many lines, as far as a file is not for tests. Source is formatted: a function ends where a brace
/// stands as far to the left as it does.
fn long_functions(text: &str) -> Vec<(String, usize)> {
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines: Vec<&str> = text[..end].lines().collect();
    let mut long = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some(name) = function(line.trim_start()) else { continue };
        let closes = |line: &&str| {
            **line == format!("{indent}}}")
                || line.ends_with(';') && line.starts_with(indent) && !line[indent.len()..].starts_with(' ')
        };
        let count = lines[at..].iter().position(closes).map_or(0, |last| last + 1);
        long.extend((count > LINES).then(|| (name.to_owned(), count)));
    }
    long
}

/// The name of the function that a line begins, if it does.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let words = ["pub", "pub(super)", "pub(crate)", "async", "const", "unsafe", "extern"];
    let only = |word: &str| words.contains(&word) || word.starts_with("pub(in") || word.ends_with(')');
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    before.split_whitespace().all(only).then_some(name).filter(|name| !name.is_empty())
}

#[test]
fn no_folder_and_no_function_is_larger_than_a_reader_can_take_in() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert_eq!(too_large(&workspace), Vec::<String>::new());
}

#[test]
fn what_is_too_large_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let long = |name: &str| {
        format!(
            "impl A {{\n    pub async fn {name}(\n    ) {{\n{}    }}\n}}\n",
            "        a();\n".repeat(LINES)
        )
    };
    std::fs::write(folder.path().join("lib.rs"), format!("{}#[cfg(test)]\nmod check;\n", long("long")))
        .expect("written");
    std::fs::write(folder.path().join("check.rs"), long("of_a_test")).expect("written");
    let found = too_large(folder.path());
    assert!(found.len() == 1 && found[0].ends_with("lib.rs: `long` has 83 lines"), "{found:?}");
    (0..FILES).for_each(|n| std::fs::write(folder.path().join(n.to_string()), "").expect("written"));
    assert!(too_large(folder.path())[0].ends_with("has 22 files"));
}
