//! What a queue has: messages by number, each free, given out to a stream, or waiting after it was rejected.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

/// A message as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What names the notification, of those that came from a sink.
    pub id: Option<String>,
    /// The name that the sink made of the document.
    pub key: Option<String>,
    /// Headers, of those that came from a sink.
    pub headers: Vec<(String, String)>,
    /// What it says.
    pub payload: Bytes,
}

impl Kept {
    pub(super) fn plain(payload: Bytes) -> Kept {
        Kept { id: None, key: None, headers: Vec::new(), payload }
    }
}

/// How a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Free,
    /// Rejected: not before this.
    Waits(Duration),
    /// A stream has it, until then unless it is kept.
    Out {
        stream: u64,
        until: Duration,
    },
}

struct Slot {
    kept: Kept,
    deliveries: u32,
    put_at: Duration,
    standing: Standing,
}

/// A queue. Bound: none; it is for tests and demonstrations.
pub(super) struct Queue {
    pub parts: Vec<Part>,
}

impl Queue {
    pub fn of(parts: Vec<Part>) -> Queue {
        Queue { parts }
    }

    pub fn part(&mut self, id: &str) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.id == id)
    }
}

/// A partition.
pub(super) struct Part {
    pub id: String,
    pub after: Vec<String>,
    pub ended: bool,
    slots: BTreeMap<u64, Slot>,
    next: u64,
    /// What was before this one is forgotten.
    oldest: u64,
}

/// What is given out.
pub(super) struct Given {
    pub number: u64,
    pub payload: Bytes,
    pub deliveries: u32,
}

impl Part {
    pub fn new(id: &str, after: Vec<String>) -> Part {
        Part { id: id.to_owned(), after, ended: false, slots: BTreeMap::new(), next: 1, oldest: 1 }
    }

    pub fn put(&mut self, kept: Kept, now: Duration) {
        let slot = Slot { kept, deliveries: 0, put_at: now, standing: Standing::Free };
        self.slots.insert(self.next, slot);
        self.next += 1;
    }

    pub fn contents(&self) -> impl Iterator<Item = Kept> {
        self.slots.values().map(|slot| slot.kept.clone())
    }

    pub fn forget(&mut self, messages: usize) {
        let Some(&first_kept) = self.slots.keys().nth(messages) else {
            self.slots.clear();
            self.oldest = self.next;
            return;
        };
        self.slots = self.slots.split_off(&first_kept);
        self.oldest = first_kept;
    }

    /// Whether it still has all that follows this number.
    pub fn follows(&self, after: u64) -> bool {
        after + 1 >= self.oldest
    }

    /// The number of the newest message that there was.
    pub fn newest(&self) -> u64 {
        self.next - 1
    }

    /// What follows a number, for those who read by positions.
    pub fn read(&self, after: u64, most: usize) -> Vec<Given> {
        let slots = self.slots.range(after + 1..).take(most);
        slots
            .map(|(number, slot)| Given {
                number: *number,
                payload: slot.kept.payload.clone(),
                deliveries: 1,
            })
            .collect()
    }

    /// Gives out to a stream what is free now, oldest first.
    pub fn take(&mut self, stream: u64, most: usize, now: Duration, until: Duration) -> Vec<Given> {
        let free = |slot: &Slot| match slot.standing {
            Standing::Free => true,
            Standing::Waits(due) | Standing::Out { until: due, .. } => due <= now,
        };
        let free = self.slots.iter_mut().filter(|(_, slot)| free(slot)).take(most);
        free.map(|(number, slot)| {
            slot.deliveries += 1;
            slot.standing = Standing::Out { stream, until };
            Given { number: *number, payload: slot.kept.payload.clone(), deliveries: slot.deliveries }
        })
        .collect()
    }

    /// When something is free that is not now.
    pub fn next_due(&self) -> Option<Duration> {
        let due = |slot: &Slot| match slot.standing {
            Standing::Free => None,
            Standing::Waits(due) | Standing::Out { until: due, .. } => Some(due),
        };
        self.slots.values().filter_map(due).min()
    }

    fn of(&mut self, stream: u64, number: u64) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&number)?;
        matches!(slot.standing, Standing::Out { stream: of, .. } if of == stream).then_some(slot)
    }

    /// Removes a message that this stream has.
    pub fn settle(&mut self, stream: u64, number: u64) {
        if self.of(stream, number).is_some() {
            self.slots.remove(&number);
        }
    }

    pub fn reject(&mut self, stream: u64, number: u64, due: Duration) {
        if let Some(slot) = self.of(stream, number) {
            slot.standing = Standing::Waits(due);
        }
    }

    /// What this stream has is its for longer.
    pub fn keep(&mut self, stream: u64, until: Duration) {
        for slot in self.slots.values_mut() {
            if matches!(slot.standing, Standing::Out { stream: of, .. } if of == stream) {
                slot.standing = Standing::Out { stream, until };
            }
        }
    }

    /// What this stream has is free.
    pub fn release(&mut self, stream: u64) {
        self.free(|of| of == stream)
    }

    pub fn release_all(&mut self) {
        self.free(|_| true)
    }

    fn free(&mut self, which: impl Fn(u64) -> bool) {
        for slot in self.slots.values_mut() {
            if matches!(slot.standing, Standing::Out { stream, .. } if which(stream)) {
                slot.standing = Standing::Free;
            }
        }
    }

    /// How many follow a number, and since when the oldest of them is there.
    pub fn behind(&self, after: u64) -> (u64, Option<Duration>) {
        let mut following = self.slots.range(after + 1..).map(|(_, slot)| slot.put_at);
        let oldest = following.next();
        (following.count() as u64 + u64::from(oldest.is_some()), oldest)
    }
}
