//! What is wrong with a producer, in the words of producers: a mistake of the subscription that it is stored as comes in, and
//! names the fields that its user wrote.

use crate::invalid::Invalid;

/// What subscriptions call a field, and what producers do. The first that fits counts.
const WORDS: [(&str, &str); 4] = [
    ("delivery.success", "target.success"),
    ("delivery.discard", "target.discard"),
    ("endpoint", "target"),
    ("data", "metadata"),
];

/// The same mistake of a producer.
pub fn in_words_of_producers(invalid: Invalid) -> Invalid {
    let Invalid { mut field, mut problem } = invalid;
    let begins = |text: &str, word: &str| {
        text.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if let Some((theirs, ours)) = WORDS.iter().find(|(theirs, _)| begins(&field, theirs)) {
        field.replace_range(..theirs.len(), ours);
    }
    // In sentences only whole paths are certain to be fields.
    for (theirs, ours) in [
        ("delivery.success", "target.success"),
        ("delivery.discard", "target.discard"),
        ("endpoint.", "target."),
        ("the resource's", "the consumer's"),
        ("this resource", "this consumer"),
    ] {
        problem = problem.replace(theirs, ours);
    }
    Invalid { field, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_called_as_they_were_written() {
        for (field, problem, said) in [
            (
                "endpoint.url",
                "is required, or endpoint.actions.create.url",
                "target.url: is required, or target.actions.create.url",
            ),
            ("endpoint", "x", "target: x"),
            ("endpoints", "x", "endpoints: x"),
            ("data.a", "x", "metadata.a: x"),
            (
                "delivery.discard",
                "200 is in delivery.success too",
                "target.discard: 200 is in target.success too",
            ),
            ("delivery.timeout", "x", "delivery.timeout: x"),
            (
                "shards",
                "must be at most the resource's lanes, 8",
                "shards: must be at most the consumer's lanes, 8",
            ),
        ] {
            assert_eq!(in_words_of_producers(Invalid::new(field, problem)).to_string(), said);
        }
    }
}
