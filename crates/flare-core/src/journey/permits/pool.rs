//! Permits: a cap that delivery threads share. Who wants one comes in; whether there is one for it, and which threads
//! are to be called, goes out. No bell is rung here.
//!
//! A thread that gets none stands in line, once. When one comes back, the first in line is called, and one is kept for
//! it until it [takes](Permits::take) it or [declines](Permits::decline): nobody who comes later overtakes it, but who
//! [has waited in another line](Permits::take_before_others). As long as nobody is in line, to take and to give back is
//! one atomic operation each.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};

use parking_lot::Mutex;

/// A number of permits. Every thread that takes one gives it back.
pub struct Permits {
    cap: AtomicU32,
    /// How many are out.
    out: AtomicU32,
    /// A bit for each thread in line: what `line` says, for a look without the lock.
    lined: AtomicU64,
    /// Those of them that are not called.
    uncalled: AtomicU64,
    /// A bit for each thread that may have one out that it does not use just now.
    idle: AtomicU64,
    /// Bound: each thread once.
    line: Mutex<VecDeque<usize>>,
}

/// Some delivery threads: those that are to be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "whoever is not called waits for ever"]
pub struct CalledThreads(u64);

impl CalledThreads {
    /// Their numbers.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |thread| self.0 & bit(*thread) != 0)
    }
}

fn bit(thread: usize) -> u64 {
    1 << thread
}

impl Permits {
    /// So many.
    pub fn new(cap: u32) -> Permits {
        Permits {
            cap: AtomicU32::new(cap),
            out: AtomicU32::new(0),
            lined: AtomicU64::new(0),
            uncalled: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            line: Mutex::default(),
        }
    }

    /// How many there are.
    pub fn cap(&self) -> u32 {
        self.cap.load(SeqCst)
    }

    /// How many are out.
    pub fn out(&self) -> u32 {
        self.out.load(SeqCst)
    }

    /// How many are neither out nor more than there are.
    fn free(&self) -> usize {
        self.cap().saturating_sub(self.out.load(SeqCst)) as usize
    }

    fn take_out(&self) -> bool {
        let more = |out| (out < self.cap()).then_some(out + 1);
        self.out.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// Takes one. False: there is none for this thread now; it stands in line, and is called when it may try again.
    pub fn take(&self, thread: usize) -> bool {
        if self.lined.load(SeqCst) == 0 && self.take_out() {
            return true;
        }
        let mut line = self.line.lock();
        let ahead = self.place(&mut line, thread);
        self.take_or_wait(&mut line, thread, self.free() > ahead)
    }

    /// The same, and one that is kept for a thread that was called counts as free. For who has waited in another line
    /// for its turn to have one of each: whoever is overtaken keeps its place.
    pub fn take_before_others(&self, thread: usize) -> bool {
        let mut line = self.line.lock();
        self.place(&mut line, thread);
        self.take_or_wait(&mut line, thread, true)
    }

    /// Stands in line behind the others there, if there are so many that there is none for this thread. False: it may
    /// [take](Permits::take) one, or wait elsewhere before it does.
    pub fn stand_behind_others(&self, thread: usize) -> bool {
        if self.lined.load(SeqCst) & !bit(thread) == 0 {
            return false;
        }
        let mut line = self.line.lock();
        let is_new = !line.contains(&thread);
        if self.free() > self.place(&mut line, thread) {
            if is_new {
                self.strike(&mut line, thread);
            }
            return false;
        }
        self.uncalled.fetch_or(bit(thread), SeqCst);
        true
    }

    /// Gives some back.
    pub fn give(&self, count: u32) -> CalledThreads {
        self.out.fetch_sub(count, SeqCst);
        self.call()
    }

    /// Puts some out that were begun before they were counted here, whether there is room for them or not.
    pub fn count_in(&self, count: u32) {
        self.out.fetch_add(count, SeqCst);
    }

    /// There are so many from now on. If more are out, they come back in their time.
    pub fn resize(&self, cap: u32) -> CalledThreads {
        self.cap.store(cap, SeqCst);
        self.call()
    }

    /// A thread that was called, and took none, leaves the line. One that is not called stays.
    pub fn decline(&self, thread: usize) -> CalledThreads {
        if self.is_called(thread) { self.leave(thread) } else { CalledThreads::default() }
    }

    /// Whether a thread was called, and neither took one nor declined since.
    pub fn is_called(&self, thread: usize) -> bool {
        self.lined.load(SeqCst) & !self.uncalled.load(SeqCst) & bit(thread) != 0
    }

    /// A thread wants none any more.
    pub fn leave(&self, thread: usize) -> CalledThreads {
        let mut line = self.line.lock();
        self.strike(&mut line, thread);
        self.call_first(&line)
    }

    /// Whether a thread waits that was not called.
    pub fn is_wanted(&self) -> bool {
        self.uncalled.load(SeqCst) != 0
    }

    /// Whether another thread waits that was not called.
    pub fn is_wanted_elsewhere(&self, thread: usize) -> bool {
        self.uncalled.load(SeqCst) & !bit(thread) != 0
    }

    /// How many other threads wait that were not called.
    pub fn waiting_elsewhere(&self, thread: usize) -> u32 {
        (self.uncalled.load(SeqCst) & !bit(thread)).count_ones()
    }

    /// A thread has one out that it does not use just now. Whoever waits from now on finds it among
    /// [those with idle ones](Permits::idle_elsewhere); for who waits already, ask after this.
    pub fn idles(&self, thread: usize) {
        if self.idle.load(SeqCst) & bit(thread) == 0 {
            self.idle.fetch_or(bit(thread), SeqCst);
        }
    }

    /// A thread uses all that it has.
    pub fn idles_no_more(&self, thread: usize) {
        self.idle.fetch_and(!bit(thread), SeqCst);
    }

    /// The other threads that may have one out that they do not use.
    pub fn idle_elsewhere(&self, thread: usize) -> CalledThreads {
        CalledThreads(self.idle.load(SeqCst) & !bit(thread))
    }

    /// How many are ahead of a thread in line, in which it stands from now on if it did not.
    fn place(&self, line: &mut VecDeque<usize>, thread: usize) -> usize {
        line.iter().position(|other| *other == thread).unwrap_or_else(|| {
            line.push_back(thread);
            // Whoever gives one back from here on sees that somebody is in line, and waits for its lock. What is free
            // is asked for only after this.
            self.lined.fetch_or(bit(thread), SeqCst);
            line.len() - 1
        })
    }

    /// A thread in line takes one if it may and there is one, and leaves the line; or it is to be called.
    fn take_or_wait(&self, line: &mut VecDeque<usize>, thread: usize, may: bool) -> bool {
        if may && self.take_out() {
            self.strike(line, thread);
            return true;
        }
        self.uncalled.fetch_or(bit(thread), SeqCst);
        false
    }

    fn strike(&self, line: &mut VecDeque<usize>, thread: usize) {
        line.retain(|other| *other != thread);
        self.lined.fetch_and(!bit(thread), SeqCst);
        self.uncalled.fetch_and(!bit(thread), SeqCst);
    }

    fn call(&self) -> CalledThreads {
        if self.lined.load(SeqCst) == 0 {
            return CalledThreads::default();
        }
        self.call_first(&self.line.lock())
    }

    /// Calls as many of the first in line as there are free ones.
    fn call_first(&self, line: &VecDeque<usize>) -> CalledThreads {
        let first = line.iter().take(self.free()).fold(0, |all, thread| all | bit(*thread));
        let called = first & self.uncalled.load(SeqCst);
        self.uncalled.fetch_and(!called, SeqCst);
        CalledThreads(called)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc;

    #[test]
    fn one_that_comes_back_is_kept_for_the_first_in_line() {
        let permits = Permits::new(1);
        assert!(permits.take(0));
        assert!(!permits.take(1) && !permits.take(2) && !permits.take(1));
        assert!(permits.is_wanted() && permits.is_wanted_elsewhere(0));
        assert_eq!(permits.give(1).iter().collect::<Vec<_>>(), [1]);
        assert!(!permits.take(0), "whoever had it stands behind those who waited");
        assert!(!permits.take(2), "it was not called");
        assert!(permits.take(1));
        assert_eq!(permits.give(1).iter().collect::<Vec<_>>(), [2]);
        assert_eq!(permits.decline(1), CalledThreads::default(), "it is not in line");
        assert_eq!(permits.decline(2).iter().collect::<Vec<_>>(), [0]);
        assert!(permits.take(0));
        assert!(!permits.is_wanted());
    }

    #[test]
    fn a_cap_that_is_raised_calls_and_one_that_is_lowered_waits() {
        let permits = Permits::new(2);
        assert!(permits.take(0) && permits.take(1) && !permits.take(2) && !permits.take(3));
        assert_eq!(permits.resize(1), CalledThreads::default());
        assert_eq!(permits.give(1), CalledThreads::default(), "one too many was out");
        assert_eq!(permits.resize(3).iter().collect::<Vec<_>>(), [2, 3]);
        assert!(permits.take(3) && permits.take(2));
    }

    #[test]
    fn whoever_is_overtaken_keeps_its_place() {
        let permits = Permits::new(1);
        assert!(permits.take(0) && !permits.take(1) && !permits.take(2) && !permits.take_before_others(3));
        assert_eq!(permits.give(1).iter().collect::<Vec<_>>(), [1]);
        assert!(permits.take_before_others(3), "it is kept, and not out");
        assert!(!permits.take(1));
        assert_eq!(permits.give(1).iter().collect::<Vec<_>>(), [1]);
        assert!(permits.take(1) && permits.is_wanted_elsewhere(1));
    }

    #[test]
    fn one_stands_behind_others_only_if_there_are_others_and_too_few_permits() {
        let permits = Permits::new(1);
        assert!(permits.take(0) && !permits.stand_behind_others(1), "nobody is in line");
        assert!(!permits.take(1) && permits.stand_behind_others(2));
        assert_eq!(permits.give(1).iter().collect::<Vec<_>>(), [1]);
        assert!(!permits.stand_behind_others(1), "it is the first");
        assert_eq!(permits.decline(1).iter().collect::<Vec<_>>(), [2]);
        assert_eq!(permits.resize(2), CalledThreads::default());
        assert!(!permits.stand_behind_others(3), "there is one for each");
        assert!(permits.take(2) && permits.take(3) && permits.lined.load(SeqCst) == 0);
    }

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Take(usize),
        Overtake(usize),
        StandBehind(usize),
        Give(usize),
        Answer { thread: usize, takes: bool },
        Leave(usize),
        Resize(u32),
    }

    impl Act {
        /// Any of them, by chance.
        fn any(dice: &mut impl FnMut(u64) -> u64) -> Act {
            let thread = dice(4) as usize;
            match dice(16) {
                0..=3 => Act::Take(thread),
                4..=7 => Act::Give(thread),
                8..=11 => Act::Answer { thread, takes: dice(2) == 0 },
                12 => Act::Leave(thread),
                13 => Act::Overtake(thread),
                14 => Act::StandBehind(thread),
                _ => Act::Resize(dice(5) as u32),
            }
        }
    }

    /// What four threads know of themselves.
    #[derive(Default)]
    struct World {
        held: [u32; 4],
        waits: [bool; 4],
        called: [bool; 4],
    }

    impl World {
        fn took(&mut self, thread: usize, took: bool) {
            self.held[thread] += u32::from(took);
            (self.waits[thread], self.called[thread]) = (!took, false);
        }

        fn hears(&mut self, called: CalledThreads) {
            for thread in called.iter() {
                assert!(self.waits[thread] && !self.called[thread], "only those who wait, and once");
                self.called[thread] = true;
            }
        }

        fn act(&mut self, permits: &Permits, act: Act) {
            match act {
                Act::Take(thread) => self.took(thread, permits.take(thread)),
                Act::Overtake(thread) => self.took(thread, permits.take_before_others(thread)),
                Act::StandBehind(thread) => {
                    if permits.stand_behind_others(thread) {
                        (self.waits[thread], self.called[thread]) = (true, false);
                    }
                }
                Act::Give(thread) if self.held[thread] > 0 => {
                    self.held[thread] -= 1;
                    self.hears(permits.give(1));
                }
                Act::Give(_) => {}
                Act::Answer { thread, takes: true } if self.called[thread] => {
                    self.took(thread, permits.take(thread));
                }
                Act::Answer { thread, .. } => {
                    if self.called[thread] {
                        (self.waits[thread], self.called[thread]) = (false, false);
                    }
                    self.hears(permits.decline(thread));
                }
                Act::Leave(thread) => {
                    (self.waits[thread], self.called[thread]) = (false, false);
                    self.hears(permits.leave(thread));
                }
                Act::Resize(cap) => self.hears(permits.resize(cap)),
            }
        }

        /// Never over the cap, unless it was lowered; none lost; and while one is free, somebody who waits is called.
        fn is_sound(&self, permits: &Permits, before: u32) {
            let out: u32 = self.held.iter().sum();
            assert_eq!(out, permits.out.load(SeqCst));
            assert!(out <= permits.cap() || out <= before, "{out} of {}", permits.cap());
            let wait = self.waits.iter().any(|waits| *waits);
            assert!(permits.free() == 0 || !wait || self.called.iter().any(|called| *called));
            assert_eq!(permits.is_wanted(), (0..4).any(|thread| self.waits[thread] && !self.called[thread]));
        }
    }

    #[test]
    fn the_cap_holds_none_is_lost_and_whoever_waits_is_called_in_the_end() {
        for seed in 1..3_000u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut dice = |sides: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % sides
            };
            let (permits, mut world) = (Permits::new(2), World::default());
            for _ in 0..80 {
                let before: u32 = world.held.iter().sum();
                world.act(&permits, Act::any(&mut dice));
                world.is_sound(&permits, before);
            }
            world.act(&permits, Act::Resize(1));
            for thread in 0..4 {
                (0..world.held[thread]).for_each(|_| world.act(&permits, Act::Give(thread)));
            }
            while world.waits.iter().any(|waits| *waits) {
                let called = (0..4).find(|thread| world.called[*thread]);
                let thread = called.unwrap_or_else(|| panic!("seed {seed}: nobody who waits is called"));
                // One that was called when there were more gets none, and is called again when it is the first.
                world.act(&permits, Act::Answer { thread, takes: true });
                world.act(&permits, Act::Give(thread));
            }
            assert_eq!(permits.out.load(SeqCst), 0);
        }
    }

    #[test]
    fn threads_that_take_and_give_at_the_same_time_all_get_their_turns() {
        const ROUNDS: usize = 3_000;
        let permits = Arc::new(Permits::new(2));
        let open = Arc::new(AtomicU32::new(0));
        let (bells, heard): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel()).unzip();
        let workers = heard.into_iter().enumerate().map(|(thread, heard)| {
            let (permits, open, bells) = (permits.clone(), open.clone(), bells.clone());
            std::thread::spawn(move || {
                let call = |called: CalledThreads| {
                    called.iter().for_each(|other| bells[other].send(()).expect("it listens to the end"));
                };
                for _ in 0..ROUNDS {
                    while !permits.take(thread) {
                        heard
                            .recv_timeout(std::time::Duration::from_secs(20))
                            .expect("it waits and is called");
                    }
                    assert!(open.fetch_add(1, SeqCst) < 2, "more than there are");
                    open.fetch_sub(1, SeqCst);
                    call(permits.give(1));
                }
                call(permits.decline(thread));
                heard
            })
        });
        // Whoever is done listens as long as others may call.
        let heard: Vec<_> = workers.collect::<Vec<_>>().into_iter().map(|worker| worker.join()).collect();
        assert!(heard.iter().all(Result::is_ok));
        assert_eq!((permits.out.load(SeqCst), permits.lined.load(SeqCst)), (0, 0));
    }
}
