//! In: the text of a configuration file. Out: a value and a line for each known key, and a problem for every other.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize as _;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::load::Given;
use super::problem::{Origin, Problem, nearest};
use super::setting::Raw;

/// Reads a file. A file that is not TOML gives one problem and no value.
pub fn read(path: &Path, text: &str, keys: &[String], problems: &mut Vec<Problem>) -> Vec<Given> {
    // Editors of some systems put a mark before the first character; it carries no meaning.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match DeTable::parse(text) {
        Ok(table) => {
            let sections: BTreeSet<&str> = keys.iter().flat_map(|key| prefixes(key)).collect();
            let mut reader = Reader { path, text, keys, sections, given: Vec::new(), problems };
            reader.table("", table.into_inner());
            reader.given
        }
        Err(error) => {
            let line = line_at(text, error.span().map_or(0, |span| span.start));
            let origin = Origin::File { path: path.to_owned(), line };
            problems.push(Problem::Syntax { origin, message: error.message().to_owned() });
            Vec::new()
        }
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    keys: &'a [String],
    sections: BTreeSet<&'a str>,
    given: Vec<Given>,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn table(&mut self, path: &str, table: DeTable<'_>) {
        // The reader sorts by name; problems are easier to go through in the order of the file.
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let origin =
                Origin::File { path: self.path.to_owned(), line: line_at(self.text, name.span().start) };
            let key = join(path, name.get_ref());
            if self.keys.contains(&key) {
                match toml::Value::deserialize(ValueDeserializer::from(value)) {
                    Ok(value) => self.given.push(Given { key, raw: Raw::Toml(value), origin }),
                    // Numbers beyond 64 bits are TOML and yet cannot be held.
                    Err(error) => {
                        let message = format!("{key}: {}", error.message());
                        self.problems.push(Problem::Syntax { origin, message });
                    }
                }
            } else if !self.sections.contains(key.as_str()) {
                let known = self.keys.iter().map(String::as_str).chain(self.sections.iter().copied());
                self.problems.push(Problem::Unknown { nearest: nearest(&key, known), name: key, origin });
            } else if let DeValue::Table(inner) = value.into_inner() {
                self.table(&key, inner);
            } else {
                self.problems
                    .push(Problem::Syntax { origin, message: format!("{key} is a section, not a key") });
            }
        }
    }
}

/// The sections that a key lies in, outermost first.
fn prefixes(key: &str) -> impl Iterator<Item = &str> {
    key.match_indices('.').map(|(end, _)| &key[..end])
}

/// The dotted name of a key of the file. A part that needs quotes keeps them, so that `"log.level" = 1` is not taken
/// for `log.level`.
fn join(path: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let name = if bare { name.to_owned() } else { format!("{name:?}") };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Vec<String>, Vec<String>) {
        let keys = ["log.level", "http.server.addr", "http.server.body-limit"].map(str::to_owned);
        let mut problems = Vec::new();
        let given = read(Path::new("flare.toml"), text, &keys, &mut problems);
        let given = given.into_iter().map(|given| format!("{} {}", given.origin, given.key)).collect();
        (given, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn keys_are_found_with_their_lines_however_the_tables_are_written() {
        let (given, problems) = read_text("log.level = 'x'\n\n[http]\nserver = { addr = 'y' }\n");
        assert_eq!(given, ["flare.toml:1 log.level", "flare.toml:4 http.server.addr"]);
        assert!(problems.is_empty(), "{problems:?}");
        let (given, _) = read_text("\u{feff}# a\n[http.server]\n\n# b\nbody-limit = 1\n");
        assert_eq!(given, ["flare.toml:5 http.server.body-limit"]);
    }

    #[test]
    fn an_unknown_key_names_file_line_and_the_nearest_known_key() {
        let (_, problems) = read_text("[http.server]\nadress = 'x'\nbody_limit = 1\n");
        assert_eq!(
            problems,
            [
                "flare.toml:2: unknown key http.server.adress; did you mean http.server.addr?",
                "flare.toml:3: unknown key http.server.body_limit; did you mean http.server.body-limit?",
            ]
        );
    }

    #[test]
    fn an_unknown_section_is_reported_once_even_when_it_is_empty() {
        let (_, problems) = read_text("[htpp.server]\naddr = 'x'\nbody-limit = 1\n[wether]\n");
        assert_eq!(
            problems,
            ["flare.toml:1: unknown key htpp; did you mean http?", "flare.toml:4: unknown key wether"]
        );
    }

    #[test]
    fn a_quoted_name_with_a_dot_is_not_the_key_of_that_name() {
        let (given, problems) = read_text("\"log.level\" = 'info'\n");
        assert!(given.is_empty());
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn a_value_where_a_section_belongs_is_a_problem() {
        let (_, problems) = read_text("http = 3\n");
        assert_eq!(problems, ["flare.toml:1: http is a section, not a key"]);
    }

    #[test]
    fn a_number_that_cannot_be_held_is_a_problem_of_its_key() {
        let (given, problems) = read_text("[http.server]\nbody-limit = 99999999999999999999\n");
        assert!(given.is_empty());
        assert!(problems[0].starts_with("flare.toml:2: http.server.body-limit: "), "{problems:?}");
    }

    #[test]
    fn what_is_not_toml_names_the_line() {
        let (given, problems) = read_text("[log]\nlevel = \n");
        assert!(given.is_empty());
        assert!(problems[0].starts_with("flare.toml:2: "), "{problems:?}");
        let (_, problems) = read_text("[log]\nlevel = 'a'\nlevel = 'b'\n");
        assert!(problems[0].starts_with("flare.toml:3: duplicate key"), "{problems:?}");
    }
}
