//! In: the url of a document of the demo's shop. Out: a [`Thing`], and its url again.

use std::fmt;

use serde_json::{Value, json};

/// The shop's API. Nobody calls it: urls are names. `.example` is reserved, so it is nobody's.
const SHOP: &str = "http://api.shop.example";

/// What the shop has documents of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// What somebody has bought.
    Order,
    /// What can be bought.
    Product,
    /// What somebody may buy.
    Cart,
}

/// One document of the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thing {
    /// Of what kind.
    pub kind: Kind,
    /// Which of them.
    pub number: u32,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Order, Kind::Product, Kind::Cart];

    /// The word for one of them.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Order => "order",
            Kind::Product => "product",
            Kind::Cart => "cart",
        }
    }

    /// The resource of these documents, as the API wants it.
    pub fn resource(self) -> Value {
        json!({"endpoint": format!("{SHOP}/{}s/{{id}}", self.word()), "change": {"field": "version"}})
    }
}

impl Thing {
    /// The url of the document.
    pub fn url(self) -> String {
        format!("{SHOP}/{}s/{}", self.kind.word(), self.number)
    }

    /// Which document has this url, if the shop's.
    pub fn of_url(url: &str) -> Option<Thing> {
        let (kind, number) = url.strip_prefix(SHOP)?.strip_prefix('/')?.split_once('/')?;
        let kind = Kind::ALL.into_iter().find(|known| kind.strip_suffix('s') == Some(known.word()))?;
        Some(Thing { kind, number: number.parse().ok()? })
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_found_by_its_url_and_nothing_else_is() {
        for kind in Kind::ALL {
            let thing = Thing { kind, number: 7 };
            assert_eq!(Thing::of_url(&thing.url()), Some(thing));
        }
        for url in
            ["http://api.shop.example/orders/x", "http://api.shop.example/kings/1", "http://h/orders/1"]
        {
            assert_eq!(Thing::of_url(url), None, "{url}");
        }
    }
}
