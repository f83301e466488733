//! How clients share connections: by how long their requests take, so that who answers quickly is not held up by who
//! does not. In: who wants to begin a request, who holds what, how long theirs took. Out: who may begin, who is next.
//!
//! A connection is held for as long as its request takes, so turns alone are not fair: a client that takes eight
//! seconds has, with as many turns, a thousand times as much as one that takes eight milliseconds. So clients are of
//! [classes](Class) by the time that theirs take, as measured, open requests included; and of the connections a part is
//! kept free for each class that is quicker ([`Shares`]). Within a class whoever holds least is next ([`Line`]).

mod line;
mod service;
mod shares;

pub use line::{Line, Ticket};
pub use service::{Age, Service};
pub use shares::{Grant, HostNumber, Shares};

/// How long the requests of a client take. The earlier ones come before the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// They end quickly. Nothing is counted of them: they may have every connection.
    Quick,
    /// Nobody knows yet.
    New,
    /// They keep a connection for a while.
    Middling,
    /// They keep a connection for long, or for ever.
    Slow,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 4] = [Class::Quick, Class::New, Class::Middling, Class::Slow];

    /// Those whose requests are counted.
    pub const COUNTED: [Class; 3] = [Class::New, Class::Middling, Class::Slow];
}

/// How many of these connections are kept for each class but the last: about a tenth in all, and never all of them.
fn kept(slots: u32) -> [u32; 3] {
    let all = if slots < 2 { 0 } else { (slots / 10).max(1) };
    let quick = all.div_ceil(3);
    let new = (all - quick).div_ceil(2);
    [quick, new, all - quick - new]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_kept_and_the_quick_come_first() {
        assert_eq!((kept(0), kept(1)), ([0; 3], [0; 3]));
        assert_eq!((kept(2), kept(4), kept(20)), ([1, 0, 0], [1, 0, 0], [1, 1, 0]));
        assert_eq!((kept(64), kept(1024)), ([2, 2, 2], [34, 34, 34]));
        for slots in 2..3_000 {
            let all: u32 = kept(slots).iter().sum();
            assert!(kept(slots)[0] > 0 && all < slots && all <= (slots / 10).max(1));
        }
    }
}
