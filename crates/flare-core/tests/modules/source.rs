//! The modules of a crate and what each knows: files come in, pairs of modules go out. A name that a module passes on is
//! followed to where it is from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::paths::{self, Paths};

/// A module, by its path within the crate.
pub type Module = Vec<String>;

/// A crate's modules, by their files.
pub struct Crate {
    modules: BTreeMap<Module, Paths>,
    folders: BTreeSet<Module>,
}

impl Crate {
    /// Reads all that is in a folder of sources.
    pub fn read(src: &Path) -> Crate {
        let mut files = Vec::new();
        let mut folders = vec![src.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder of the source") {
                let path = entry.expect("an entry of it").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let name = path.strip_prefix(src).expect("it is in the source").display().to_string();
                    files.push((name, std::fs::read_to_string(&path).expect("a file of the source")));
                }
            }
        }
        Crate::of(files.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    }

    /// These files, by their names within the source; a later one takes the place of an earlier one.
    pub fn of<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Crate {
        let mut modules = BTreeMap::new();
        let mut folders = BTreeSet::from([Module::new()]);
        // A file that is only there for tests: its name says so, or it is in the room for that.
        let tests =
            |name: &str| name.contains("testing/") || name.contains("fixture") || name.ends_with("_tests.rs");
        for (name, text) in files.filter(|(name, _)| !tests(name)) {
            let name = name.strip_suffix(".rs").unwrap_or(name);
            let mut module: Module = name.split('/').map(str::to_owned).collect();
            folders.insert(module[..module.len() - 1].to_vec());
            if module.last().is_some_and(|last| last == "mod" || last == "lib") {
                module.pop();
            }
            modules.insert(module, paths::read(text));
        }
        Crate { modules, folders }
    }

    /// The folders of modules, the source itself first.
    pub fn folders(&self) -> impl Iterator<Item = &Module> {
        self.folders.iter()
    }

    /// Pairs of modules of which the first knows the second.
    pub fn knowledge(&self) -> BTreeSet<(&Module, &Module)> {
        let mut knowledge = BTreeSet::new();
        for (module, paths) in &self.modules {
            let known = paths.known.iter().filter_map(|path| self.find(module, path, 0));
            knowledge.extend(known.filter(|known| *known != module).map(|known| (module, known)));
        }
        knowledge
    }

    /// The module in which a path of another module ends; `None` for what is not of this crate.
    fn find(&self, within: &Module, path: &[String], followed: usize) -> Option<&Module> {
        let mut start = within.clone();
        let mut names = path;
        match names.first()?.as_str() {
            "crate" => {
                start.clear();
                names = &names[1..];
            }
            "self" => names = &names[1..],
            "super" => {
                while names.first().is_some_and(|name| name == "super") {
                    start.pop();
                    names = &names[1..];
                }
            }
            child => {
                start.push(child.to_owned());
                self.modules.get(&start)?;
                names = &names[1..];
            }
        }
        let mut rest = names.iter();
        let mut next = rest.next();
        while let Some(name) = next {
            start.push(name.clone());
            if !self.modules.contains_key(&start) {
                start.pop();
                break;
            }
            next = rest.next();
        }
        let (module, paths) = self.modules.get_key_value(&start)?;
        let passed_on = next.and_then(|name| paths.passed_on.iter().find(|path| path.last() == Some(name)));
        match passed_on {
            // A module that passes a name on to itself would be an error of the compiler; so this ends.
            Some(path) if followed < 8 => self.find(module, path, followed + 1),
            _ => Some(module),
        }
    }
}
