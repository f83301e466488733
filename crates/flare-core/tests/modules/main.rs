//! Knowledge goes one way. In: the source of this crate. Out: which modules know each other, by their `use` lines and
//! paths, which none may: neither the modules of the crate, nor the rooms and files of the journey.
//!
//! And nothing is larger than a reader can take in (`size`), in the whole workspace.
//!
//! What is compiled for tests only is left out: tests may look wherever they like.

mod graph;
mod paths;
mod size;
mod source;

use std::path::Path;

use graph::Graph;
use source::Crate;

/// Folders whose parts, files and folders alike, may not know each other, nor those of the folders in them.
const ONE_WAY: [&str; 2] = ["journey", "notification"];

/// The cycles of a crate, each as it is told.
fn cycles(source: &Crate) -> Vec<String> {
    let knowledge = source.knowledge();
    let mut cycles = Vec::new();
    for folder in source.folders() {
        let held = folder.is_empty() || ONE_WAY.contains(&folder[0].as_str());
        if !held {
            continue;
        }
        let mut graph = Graph::default();
        for (knows, known) in &knowledge {
            if let (Some(knows), Some(known)) = (part_of(folder, knows), part_of(folder, known)) {
                graph.add(knows, known);
            }
        }
        let place = if folder.is_empty() { "src".to_owned() } else { folder.join("/") };
        cycles.extend(graph.cycle().map(|cycle| format!("{place}: {}", cycle.join(" → "))));
    }
    cycles
}

/// The part of a folder that a module is, or is in; `None` when it is elsewhere.
fn part_of<'a>(folder: &[String], module: &'a [String]) -> Option<&'a str> {
    let within = module.strip_prefix(folder)?;
    // What all parts of the crate stand in is `lib.rs`, which only lists them.
    let whole = if folder.is_empty() { None } else { Some("mod.rs") };
    within.first().map(String::as_str).or(whole)
}

#[test]
fn no_module_knows_one_that_knows_it() {
    let source = Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(source.knowledge().len() > 200, "the source was read");
    assert_eq!(cycles(&source), Vec::<String>::new());
}

#[test]
fn a_cycle_that_is_planted_is_named() {
    let plant = |files: &[(&str, &str)]| cycles(&Crate::of(files.iter().copied()));
    let plain =
        [("config/mod.rs", ""), ("journey/mod.rs", "mod a; mod b;"), ("journey/b.rs", "pub struct B;")];
    let with = |file, text| plant(&[&plain[..], &[(file, text)]].concat());
    assert_eq!(with("journey/a/mod.rs", "use super::b::B;"), Vec::<String>::new());
    // Between modules of the crate.
    let knows =
        [("vault.rs", "use crate::config::Config;"), ("config/mod.rs", "const K: usize = crate::vault::K;")];
    assert_eq!(plant(&knows), ["src: config → vault → config"]);
    // Between a file and its room, where names go through what a room passes on.
    let through = [
        ("journey/mod.rs", "pub use a::inner::A;"),
        ("journey/a/mod.rs", "pub mod inner;"),
        ("journey/a/inner.rs", "use crate::{journey::b::{self, B}, other};"),
        ("journey/b.rs", "fn f(a: super::A) {}"),
    ];
    assert_eq!(plant(&through), ["journey: a → b → a"]);
    // Between files of one room.
    let files = [
        ("journey/mod.rs", "mod a;"),
        ("journey/a/mod.rs", "use one::One;"),
        ("journey/a/one.rs", "use super::two::Two;"),
        ("journey/a/two.rs", "impl crate::journey::a::Mod {}"),
    ];
    assert_eq!(plant(&files), ["journey/a: mod.rs → one → two → mod.rs"]);
    // What is in a comment, a text, a visibility or a test is no knowledge.
    let apart = r##"
        //! See [`crate::journey::a`].
        pub(in crate::journey) const NOTE: &str = r#"use crate::journey::a;"#; // use crate::journey::a;
        #[cfg(test)]
        mod tests { use crate::journey::a; fn f<'a>(c: char) { let _ = '{'; } }
        #[cfg(test)]
        use crate::journey::a::A;
    "##;
    assert_eq!(plant(&[("journey/a.rs", "use super::b::B;"), ("journey/b.rs", apart)]), Vec::<String>::new());
}
