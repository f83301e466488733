//! Up to the first zero byte a Go layout, the rest a date: it is refused, or read the same each time.

use flare_model::layout::Layout;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (layout, value) = text.split_once('\0').unwrap_or((text, text));
    if let Ok(layout) = Layout::compile(layout) {
        assert_eq!(
            Layout::compile(layout.as_str()).map(|again| again.as_str().to_owned()),
            Ok(layout.as_str().to_owned())
        );
        let read = |value: &str| layout.parse(value).map_err(|error| error.to_string());
        assert_eq!(read(value), read(value));
    }
    let _ = flare_model::layout::rfc3339::parse(value);
}
