//! Whatever is shown as a token, and whatever is said to create one: nothing but a token that Flare made passes for one, a wrong
//! letter of it is noticed, and a draft is refused with its field or fits its bounds.

use flare_model::access::{TokenDraft, TokenText, hash_of};

pub fn run(data: &[u8]) {
    if TokenText::is_one(data) {
        assert!(data.starts_with(b"flare_") && data.len() == 44);
    }
    let chance: [u8; 20] = std::array::from_fn(|at| data.get(at).copied().unwrap_or_default());
    let token = TokenText::of(chance);
    let text = token.reveal().as_bytes();
    assert!(TokenText::is_one(text));
    let (at, to) = match data {
        [at, to, ..] => (usize::from(*at) % text.len(), *to),
        _ => (0, 0),
    };
    let mut wrong = text.to_vec();
    wrong[at] = to;
    assert_eq!(TokenText::is_one(&wrong), wrong == text, "one wrong letter is noticed");
    assert_eq!(hash_of(&wrong) == hash_of(text), wrong == text);
    let Ok(draft) = serde_json::from_slice::<TokenDraft>(data) else { return };
    if draft.check().is_ok() {
        assert!(!draft.scopes.is_empty() && draft.name.chars().count() <= 100);
        assert!(!draft.name.contains(['\r', '\n', '\0']), "it goes into logs");
    }
}
