//! Icons: a name comes in, an SVG to stand in the page goes out. `cargo xtask assets` fetches them; one more needs its
//! name in ui-assets/package.json.

use std::collections::HashMap;
use std::sync::LazyLock;

use askama::filters::Safe;

/// A line each: the name, a blank, the SVG.
const LINES: &str = include_str!("../../ui-assets/vendor/icons.txt");

static ICONS: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| LINES.lines().filter_map(|line| line.split_once(' ')).collect());

/// The icon of that name. A name that does not exist shows nothing; the tests of the pages see to it that none is.
pub fn icon(name: &str) -> Safe<&'static str> {
    let found = ICONS.get(name);
    debug_assert!(found.is_some(), "there is no icon {name}: add it to ui-assets/package.json");
    Safe(found.copied().unwrap_or_default())
}
