//! Icons: a name comes in, an SVG to stand in the page goes out. `cargo xtask assets` fetches them; one more needs its
//! name in ui-assets/package.json and here.

use askama::filters::Safe;

macro_rules! icons {
    ($($name:literal)*) => {
        const ICONS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../ui-assets/vendor/icons/", $name, ".svg")))),*];
    };
}

icons! {
    "activity" "alert-triangle" "arrow-right" "bell" "check" "chevron-left" "chevron-right" "clock" "copy"
    "dashboard" "database" "device-desktop" "external-link" "eye" "file-text" "files" "filter" "flame"
    "git-compare" "heart-rate-monitor" "help-circle" "inbox" "info-circle" "key" "mail-x" "menu-2" "moon" "pencil"
    "player-pause" "player-play" "plus" "refresh" "rotate-clockwise" "search" "send" "server" "settings" "stack-2"
    "sun" "test-pipe" "trash" "users" "x"
}

/// The icon of that name. A name that does not exist shows nothing; the tests of the pages see to it that none is.
pub fn icon(name: &str) -> Safe<&'static str> {
    let found = ICONS.iter().find(|(known, _)| *known == name);
    debug_assert!(found.is_some(), "there is no icon {name}: add it to ui-assets/package.json and icons.rs");
    Safe(found.map_or("", |(_, svg)| *svg))
}
