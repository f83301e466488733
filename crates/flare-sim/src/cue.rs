//! Cues: whoever waits for something to happen for the n-th time from now is woken at that very moment. So a crash meets
//! what is rare: an answer that is read and not recorded, a record that is written and not heard of.

use std::sync::Arc;

use tokio::sync::Notify;

/// Something that happens again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A notification begins, by a request or a lease.
    Begins,
    /// Flare knows how one ended.
    Ends,
    /// Records are asked to be written.
    Records,
    /// Changes are asked to be written.
    Commits,
}

/// What is waited for, by one at a time.
#[derive(Default)]
pub struct Cue {
    awaited: Option<(Moment, u64)>,
    bell: Arc<Notify>,
    /// The node to which it happened last.
    pub by: usize,
}

impl Cue {
    /// From now on this is waited for, once it has happened so many times before. Answers what rings then.
    pub fn wait(&mut self, moment: Moment, before: u64) -> Arc<Notify> {
        (self.awaited, self.bell) = (Some((moment, before)), Arc::default());
        self.bell.clone()
    }

    /// It happens to a node.
    pub fn comes(&mut self, moment: Moment, node: usize) {
        match &mut self.awaited {
            Some((awaited, before)) if *awaited == moment && *before > 0 => *before -= 1,
            Some((awaited, _)) if *awaited == moment => {
                (self.awaited, self.by) = (None, node);
                self.bell.notify_one();
            }
            _ => {}
        }
    }
}
