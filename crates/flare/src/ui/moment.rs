//! Moments as pages show them: a time comes in, HTML goes out that says it in UTC, and that ui-assets/moving.js turns
//! into the reader's own zone. Without a script a page is as true, in UTC.

use std::fmt;

use askama::filters::HtmlSafe;
use flare_model::time::Timestamp;

use super::text;

/// A moment to the second.
#[derive(Clone, Copy)]
pub struct Moment(pub Timestamp);

/// How long ago, or how soon; the moment itself is what a pointer finds there.
#[derive(Clone, Copy)]
pub struct Ago {
    /// Seen from here.
    pub now: Timestamp,
    /// The moment.
    pub at: Timestamp,
}

/// Words with moments among them.
#[derive(Clone, Default)]
pub struct Words(String);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let utc = text::utc(self.0);
        write!(f, r#"<time datetime="{}" title="{utc}" data-moment>{utc}</time>"#, self.0)
    }
}

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (utc, ago) = (text::utc(self.at), text::ago(self.now, self.at));
        write!(f, r#"<time datetime="{}" title="{utc}">{ago}</time>"#, self.at)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Moment {}
impl HtmlSafe for Ago {}
impl HtmlSafe for Words {}

impl Words {
    /// A text, with the moments that are written in it as the API writes them.
    pub fn of(text: &str) -> Words {
        Words::default().text(text)
    }

    /// Adds a text.
    pub fn text(mut self, text: &str) -> Words {
        let mut rest = text;
        while let Some((before, at, after)) = first_moment(rest) {
            self = self.plain(before).moment(Moment(at));
            rest = after;
        }
        self.plain(rest)
    }

    /// Adds a moment.
    pub fn moment(mut self, moment: impl HtmlSafe) -> Words {
        self.0.push_str(&moment.to_string());
        self
    }

    fn plain(mut self, text: &str) -> Words {
        for c in text.chars() {
            match c {
                '<' => self.0.push_str("&#60;"),
                '>' => self.0.push_str("&#62;"),
                '&' => self.0.push_str("&#38;"),
                '"' => self.0.push_str("&#34;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }
}

/// What stands before the first moment of a text, the moment, and what stands after it.
fn first_moment(text: &str) -> Option<(&str, Timestamp, &str)> {
    /// `2026-01-01T12:00:00Z`, and with fractions of a second between the last two.
    const DATE: usize = 19;
    let mut from = 0;
    while let Some(t) = text[from..].find('T').map(|at| from + at) {
        from = t + 1;
        let Some(start) = t.checked_sub(10) else { continue };
        let Some(rest) = text.get(start + DATE..) else { continue };
        let fraction = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let end = start + DATE + fraction + 1;
        let Some(written) = text.get(start..end) else { continue };
        if let Ok(at) = written.parse()
            && written.ends_with('Z')
        {
            return Some((&text[..start], at, &text[end..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_within_a_text_are_found_and_the_rest_is_text() {
        let said =
            Words::of("due at 2026-01-01T12:00:00.250Z, or <later> (TEST, 2026-01-01T12) at T").to_string();
        let time = r#"<time datetime="2026-01-01T12:00:00.250Z" title="2026-01-01 12:00:00 UTC" data-moment>2026-01-01 12:00:00 UTC</time>"#;
        assert_eq!(said, format!("due at {time}, or &#60;later&#62; (TEST, 2026-01-01T12) at T"));
        assert_eq!(Words::of("").to_string(), "");
        assert!(Words::of("2026-01-01T12:00:00Z").to_string().starts_with("<time"));
        assert_eq!(Words::of("ÄÖ T12 äöüäöüäöüTäöüäöüäöü").to_string(), "ÄÖ T12 äöüäöüäöüTäöüäöüäöü");
    }

    #[test]
    fn a_moment_says_what_it_is_without_a_script_too() {
        let at: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let now: Timestamp = "2026-01-01T12:05:00Z".parse().unwrap();
        assert!(Moment(at).to_string().contains(">2026-01-01 12:00:00 UTC<"));
        let ago = Ago { now, at }.to_string();
        assert!(ago.contains(">5 min ago<") && ago.contains(r#"title="2026-01-01 12:00:00 UTC""#), "{ago}");
    }
}
