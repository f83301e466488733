//! Up to the first zero byte the field of a change, then its format, the rest a document or the text of a `Flare-Revision` header:
//! a revision comes out that is itself when it is written and read again, or a refusal.

use flare_model::change::ChangeSpec;

pub fn run(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let text =
        |part: Option<&[u8]>| part.and_then(|part| std::str::from_utf8(part).ok()).unwrap_or("").to_owned();
    let (field, format) = (text(parts.next()), text(parts.next()));
    let rest = parts.next().unwrap_or_default();
    let spec = ChangeSpec { field, format: Some(format).filter(|format| !format.is_empty()) };
    let Ok(reader) = spec.compile() else { return };
    if let Ok(revision) = reader.read(rest) {
        let header = revision.to_string();
        assert!(!header.contains(['\r', '\n', '\0']), "{header:?}");
        let (value, nanos, text) = revision.to_parts();
        assert_eq!(flare_model::revision::Revision::from_parts(value, nanos, text), revision);
    }
    if let Ok(text) = std::str::from_utf8(rest) {
        let _ = reader.read_revision_text(text);
    }
}
