//! Every threat of SECURITY.md names a test that is there.

use std::path::Path;

#[test]
fn every_threat_has_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let table = text.split("## Threats").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).skip(2).collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 4 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
        let mut named = 0;
        for link in cells[3].split("](").collect::<Vec<_>>().windows(2) {
            let name = link[0].rsplit_once('[').expect("a link").1;
            let file = link[1].split(')').next().expect("where it leads");
            let source =
                std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            let there = match file.ends_with(".mjs") {
                true => source.contains(&format!("test('{name}'")),
                false => is_a_test(&source, name),
            };
            assert!(there, "{file} has no test `{name}`");
            named += 1;
        }
        assert!(named > 0, "no test shows this: {row}");
    }
}

/// Whether a function of this name is marked as a test.
fn is_a_test(source: &str, name: &str) -> bool {
    let Some(place) = source.find(&format!("fn {name}(")) else { return false };
    let before: Vec<&str> = source[..place].lines().rev().take(3).collect();
    before.iter().any(|line| line.contains("#[test]") || line.contains("#[tokio::test"))
}

#[test]
fn what_is_no_test_is_not_taken_for_one() {
    assert!(is_a_test("#[tokio::test(flavor = \"x\")]\nasync fn a_thing() {", "a_thing"));
    assert!(is_a_test("}\n\n#[test]\nfn a_thing() {", "a_thing"));
    assert!(!is_a_test("fn a_thing() {", "a_thing") && !is_a_test("#[test]\nfn another() {", "a_thing"));
}
