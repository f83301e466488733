//! Clients that wait for the same: who comes with how much it holds comes in; the next one goes out.

use std::collections::BTreeMap;

/// Whoever holds least is the next, and among those who hold as much whoever has waited longest. Who holds nothing is so
/// overtaken by nobody who comes later. Bound: each client once, for whoever keeps its [`Ticket`].
#[derive(Debug)]
pub struct Line<K> {
    waiting: BTreeMap<Ticket, K>,
    next: u64,
}

/// A place in a [`Line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    held: u32,
    number: u64,
}

impl<K> Default for Line<K> {
    fn default() -> Line<K> {
        Line { waiting: BTreeMap::new(), next: 0 }
    }
}

impl<K> Line<K> {
    /// Somebody who holds so many waits from now on.
    #[must_use = "it leaves the line by its ticket"]
    pub fn stand(&mut self, who: K, held: u32) -> Ticket {
        let ticket = Ticket { held, number: self.next };
        self.next += 1;
        self.waiting.insert(ticket, who);
        ticket
    }

    /// Somebody who waits holds so many by now.
    pub fn holds(&mut self, ticket: Ticket, held: u32) -> Ticket {
        let Some(who) = self.waiting.remove(&ticket) else { return ticket };
        let ticket = Ticket { held, ..ticket };
        self.waiting.insert(ticket, who);
        ticket
    }

    /// Somebody waits no more.
    pub fn leave(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// The next one, who waits no more.
    pub fn take_next(&mut self) -> Option<K> {
        self.waiting.pop_first().map(|(_, who)| who)
    }

    /// How many the next one holds, if there is one.
    pub fn least(&self) -> Option<u32> {
        self.waiting.first_key_value().map(|(ticket, _)| ticket.held)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_least_is_the_next_and_then_who_has_waited_longest() {
        let mut line = Line::default();
        let [a, b, c, d] = [('a', 2), ('b', 0), ('c', 1), ('d', 0)].map(|(who, held)| line.stand(who, held));
        assert_eq!((line.least(), line.len()), (Some(0), 4));
        assert_eq!(line.take_next(), Some('b'));
        let a = line.holds(a, 0);
        assert_eq!(line.take_next(), Some('a'), "it has waited longer than d");
        line.leave(d);
        assert_eq!((line.take_next(), line.take_next(), line.is_empty()), (Some('c'), None, true));
        [a, b, c, d].into_iter().for_each(|gone| line.leave(gone));
    }
}
