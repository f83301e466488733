//! The layouts that Go's `time` package names, under the same names.

/// `Thu Feb  4 21:00:57 2010`
pub const ANSIC: &str = "Mon Jan _2 15:04:05 2006";
/// `Thu Feb  4 21:00:57 PST 2010`
pub const UNIX_DATE: &str = "Mon Jan _2 15:04:05 MST 2006";
/// `Thu Feb 04 21:00:57 -0800 2010`
pub const RUBY_DATE: &str = "Mon Jan 02 15:04:05 -0700 2006";
/// `04 Feb 10 21:00 PST`
pub const RFC822: &str = "02 Jan 06 15:04 MST";
/// `04 Feb 10 21:00 -0800`
pub const RFC822Z: &str = "02 Jan 06 15:04 -0700";
/// `Thursday, 04-Feb-10 21:00:57 PST`
pub const RFC850: &str = "Monday, 02-Jan-06 15:04:05 MST";
/// `Thu, 04 Feb 2010 21:00:57 PST`
pub const RFC1123: &str = "Mon, 02 Jan 2006 15:04:05 MST";
/// `Thu, 04 Feb 2010 21:00:57 -0800`
pub const RFC1123Z: &str = "Mon, 02 Jan 2006 15:04:05 -0700";
/// `2010-02-04T21:00:57-08:00`
pub const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
/// `2010-02-04T21:00:57.012345678-08:00`
pub const RFC3339_NANO: &str = "2006-01-02T15:04:05.999999999Z07:00";
/// `9:00PM`
pub const KITCHEN: &str = "3:04PM";
/// `Feb  4 21:00:57`
pub const STAMP: &str = "Jan _2 15:04:05";
/// `Feb  4 21:00:57.012`
pub const STAMP_MILLI: &str = "Jan _2 15:04:05.000";
/// `Feb  4 21:00:57.012345`
pub const STAMP_MICRO: &str = "Jan _2 15:04:05.000000";
/// `Feb  4 21:00:57.012345678`
pub const STAMP_NANO: &str = "Jan _2 15:04:05.000000000";
/// `2010-02-04 21:00:57`
pub const DATE_TIME: &str = "2006-01-02 15:04:05";
/// `2010-02-04`
pub const DATE_ONLY: &str = "2006-01-02";
/// `21:00:57`
pub const TIME_ONLY: &str = "15:04:05";

/// What Go calls them, and what each is.
const NAMES: [(&str, &str); 18] = [
    ("ANSIC", ANSIC),
    ("UnixDate", UNIX_DATE),
    ("RubyDate", RUBY_DATE),
    ("RFC822", RFC822),
    ("RFC822Z", RFC822Z),
    ("RFC850", RFC850),
    ("RFC1123", RFC1123),
    ("RFC1123Z", RFC1123Z),
    ("RFC3339", RFC3339),
    ("RFC3339Nano", RFC3339_NANO),
    ("Kitchen", KITCHEN),
    ("Stamp", STAMP),
    ("StampMilli", STAMP_MILLI),
    ("StampMicro", STAMP_MICRO),
    ("StampNano", STAMP_NANO),
    ("DateTime", DATE_TIME),
    ("DateOnly", DATE_ONLY),
    ("TimeOnly", TIME_ONLY),
];

/// The layout that a word names: people write `RFC3339`, `rfc 3339` or `time.RFC3339` where the layout itself belongs.
pub fn named(word: &str) -> Option<&'static str> {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let word = plain(word.strip_prefix("time.").unwrap_or(word));
    let word = if word == "iso8601" { "rfc3339".to_owned() } else { word };
    NAMES.iter().find(|(name, _)| plain(name) == word).map(|(_, layout)| *layout)
}
