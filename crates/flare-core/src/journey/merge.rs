//! What several delivery threads say of one subscription, put together.

use flare_model::pace::Throttle;

/// What several threads say of one subscription, as one answer.
pub trait Merge {
    /// Both as one.
    fn merge(self, other: Self) -> Self;
}

impl Merge for () {
    fn merge(self, (): ()) {}
}

impl Merge for bool {
    /// Only what all say yes to is a yes.
    fn merge(self, other: bool) -> bool {
        self && other
    }
}

impl Merge for Throttle {
    /// Each thread asks one thing at a time.
    fn merge(self, other: Throttle) -> Throttle {
        let next = self.next.into_iter().chain(other.next).min();
        Throttle { since: self.since.min(other.since), next }
    }
}

impl Merge for usize {
    fn merge(self, other: usize) -> usize {
        self + other
    }
}

impl<T> Merge for Vec<T> {
    fn merge(mut self, other: Vec<T>) -> Vec<T> {
        self.extend(other);
        self
    }
}

impl<T: Merge> Merge for Option<T> {
    fn merge(self, other: Option<T>) -> Option<T> {
        match (self, other) {
            (Some(one), Some(other)) => Some(one.merge(other)),
            (one, other) => one.or(other),
        }
    }
}
