//! The mark of what Flare made: the name of the cluster comes in; tags go out, and whether others' tags have it.

use std::collections::BTreeMap;

const OWNER: &str = "flare-owner";

const CONSUMER: &str = "flare-consumer";

/// The mark of a cluster.
pub struct Mark {
    owner: String,
}

impl Mark {
    pub fn new(owner: &str) -> Mark {
        Mark { owner: value(owner) }
    }

    /// What is made for a consumer carries these.
    pub fn tags(&self, consumer: &str) -> BTreeMap<&'static str, String> {
        BTreeMap::from([(OWNER, self.owner.clone()), (CONSUMER, value(consumer))])
    }

    /// Whether something with this tag was made by this cluster.
    pub fn is(&self, name: &str, value: &str) -> bool {
        name == OWNER && value == self.owner
    }
}

/// As the services take it: letters, digits, blanks and `_.:/=+-@`, 256 at the most. Names that differ only in what is left
/// out would be taken for one, so they get a hash behind them.
fn value(text: &str) -> String {
    let fits = |letter: char| letter.is_alphanumeric() || " _.:/=+-@".contains(letter);
    if !text.is_empty() && text.len() <= 256 && text.chars().all(fits) {
        return text.to_owned();
    }
    let kept: String = text.chars().filter(|letter| fits(*letter)).take(64).collect();
    format!("{kept}-{}", &crate::transport::hash(text.as_bytes())[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_owner_has_the_same_mark() {
        let owners = ["flare", "Flare", "fl*re", "fl?re", "", &"x".repeat(300), &"x".repeat(301)];
        for one in owners {
            for other in owners {
                let tags = Mark::new(one).tags("con_1");
                let marked = tags.iter().any(|(name, value)| Mark::new(other).is(name, value));
                assert_eq!(marked, one == other, "{one} {other}");
            }
        }
        assert!(!Mark::new("flare").is(CONSUMER, "flare"));
    }
}
