//! Keys: lanes, ordinals and urls come in, the integers under which SQLite keeps them go out. All are stored, so
//! none of these functions may ever change.

use flare_model::ids::{FeedId, url_hash};

/// How many bits of a place are the ordinal or the seq: a thousand billion of each in every lane.
pub(crate) const BITS: u32 = 40;

/// The largest ordinal or seq that a place can hold.
pub(crate) const LAST: u64 = (1 << BITS) - 1;

/// The largest id that a lane can have.
pub(crate) const LAST_LANE: i64 = (1 << (63 - BITS)) - 1;

/// A lane's id and an ordinal or seq in one key, which sorts by both. What is beyond the last is the last.
pub(crate) fn place(lane: i64, number: u64) -> i64 {
    lane << BITS | number.min(LAST) as i64
}

/// The ordinal or seq of a place.
pub(crate) fn number(place: i64) -> u64 {
    place as u64 & LAST
}

/// The key of a feed: lane first, so that the feeds which a change moves lie side by side. `None` for a
/// subscription that the catalog cannot have given out.
pub(crate) fn feed_key(feed: FeedId) -> Option<i64> {
    (feed.subscription.0 <= LAST).then(|| place(i64::from(feed.lane), feed.subscription.0))
}

/// Under which number a url is looked for. Urls that differ only in their last two characters are neighbours:
/// origins count their documents, and then a hundred new ones share a page instead of taking a hundred.
pub(crate) fn url_key(url: &str) -> i64 {
    let mut ends = url.char_indices().rev();
    let last = ends.next().map_or('\0', |(_, character)| character);
    let (cut, before) = ends.next().unwrap_or((0, '\0'));
    let family = url_hash(&url[..cut]) >> 40;
    let member = (before as u64 & 0xff) << 8 | (last as u64 & 0xff);
    (family << 40 | member << 24 | url_hash(url) >> 40) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::ids::SubscriptionNumber;

    #[test]
    fn places_sort_by_lane_and_then_by_number() {
        let places = [place(1, 0), place(1, 5), place(1, LAST), place(2, 0), place(LAST_LANE, LAST)];
        assert!(places.is_sorted_by(|one, two| one < two));
        assert_eq!(places.map(number), [0, 5, LAST, 0, LAST]);
        assert_eq!(place(1, u64::MAX), place(1, LAST), "a number from another log stays in its lane");
    }

    #[test]
    fn feeds_of_the_same_lane_are_neighbours() {
        let key =
            |subscription, lane| feed_key(FeedId { subscription: SubscriptionNumber(subscription), lane });
        assert_eq!(key(78, 3), key(77, 3).map(|key| key + 1));
        assert!(key(u64::from(u32::MAX), 3) < key(1, 4));
        assert_eq!(key(1 << 40, 0), None, "the catalog never gives that out");
    }

    #[test]
    fn counted_urls_are_neighbours_and_stored_keys_never_change() {
        let key = |number: u32| url_key(&format!("http://api.company.com/users/{number}"));
        assert_eq!(key(1200) >> 40, key(1299) >> 40);
        assert_ne!(key(1200) >> 40, key(1300) >> 40);
        assert_ne!(key(1200), key(1201));
        assert_eq!(key(1200), 7_948_997_585_303_283_258);
        for odd in ["", "a", "ab", "ß", "aß\u{1F525}"] {
            assert_ne!(url_key(odd), url_key("http://h/1"), "{odd}");
        }
    }
}
