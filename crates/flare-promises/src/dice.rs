//! Numbers that look random and follow from the seed alone. Whoever needs some of its own takes a fork: what it draws
//! does not depend on how often others drew.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Another source, of its own for each label.
    pub fn fork(&self, label: u64) -> Dice {
        let mut other = Dice(self.0 ^ label.wrapping_add(1).wrapping_mul(0xd605_bbb5_8c8a_bcfd));
        other.next();
        other
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `sides`.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.next() % sides.max(1)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// One of these words.
    pub fn word(&mut self, from: &[&'static str]) -> &'static str {
        self.pick::<&str>(from)
    }

    /// One of these, by weight: a name and how often it comes.
    pub fn weighted<T: Copy>(&mut self, from: &[(T, u64)]) -> T {
        let mut left = self.below(from.iter().map(|(_, weight)| weight).sum());
        for (what, weight) in from {
            if left < *weight {
                return *what;
            }
            left -= weight;
        }
        from[0].0
    }
}
