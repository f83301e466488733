//! Who knows whom, and whether somebody knows himself by way of others.

use std::collections::{BTreeMap, BTreeSet};

/// Names, and the names that each knows.
#[derive(Default)]
pub struct Graph<'a> {
    edges: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Graph<'a> {
    /// One knows another.
    pub fn add(&mut self, knows: &'a str, known: &'a str) {
        if knows != known {
            self.edges.entry(knows).or_default().insert(known);
        }
    }

    /// The shortest way from a name back to itself, if there is one.
    pub fn cycle(&self) -> Option<Vec<&'a str>> {
        let ways = self.edges.keys().filter_map(|name| self.way_back(name));
        ways.min_by_key(Vec::len)
    }

    fn way_back(&self, from: &'a str) -> Option<Vec<&'a str>> {
        let mut ways = std::collections::VecDeque::from([vec![from]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            let last = way.last()?;
            for next in self.edges.get(last).into_iter().flatten() {
                let longer: Vec<_> = way.iter().copied().chain([*next]).collect();
                if *next == from {
                    return Some(longer);
                }
                if seen.insert(*next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }
}
