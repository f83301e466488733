//! Notifications that wait for a sink go together. In: one notification each, of many who send at once. Out: for each what became
//! of it.
//!
//! There is no timer: while a call may begin, whatever waits goes with it, be it one; while none may, more come together. The
//! call is driven by those who wait for it, and ends when the last of them has left. A document is in one call at a time, also
//! when somebody stopped waiting for it and sends it again.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use flare_provider::bridge::{Outgoing, Sent, Sink};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::outlet::unanswered;

/// Calls of a sink at once. More would have each take fewer, and a broker would answer no sooner.
const CALLS: usize = 4;

/// A call of the sink, whose answers all who are in it wait for.
type Call = Shared<BoxFuture<'static, Arc<Vec<Sent>>>>;

/// Where somebody's notification is: the call, and its place there.
type Seat = (Call, usize);

/// A sink that takes several at once, and those who wait for it.
pub struct Gathering {
    sink: Arc<dyn Sink>,
    most: usize,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// Bound: one for each connection that may be open to the sink; those who left go when the next call begins.
    waiting: VecDeque<(Outgoing, oneshot::Sender<Seat>)>,
    /// Documents that are in a call. Bound: what the calls take.
    out: HashSet<Arc<str>>,
    calls: usize,
}

impl Gathering {
    /// For a sink that takes more than one.
    pub fn new(sink: Arc<dyn Sink>) -> Arc<Gathering> {
        let most = sink.most();
        Arc::new(Gathering { sink, most, line: Mutex::default() })
    }

    /// Sends one with others. `begun` is set once it is in a call.
    pub async fn send(self: &Arc<Self>, outgoing: Outgoing, begun: &mut bool) -> Sent {
        let (seat, seated) = oneshot::channel();
        self.line.lock().waiting.push_back((outgoing, seat));
        self.begin();
        let Ok((call, place)) = seated.await else { return unanswered() };
        *begun = true;
        let answers = call.await;
        answers.get(place).cloned().unwrap_or_else(unanswered)
    }

    /// Begins as many calls as may begin, with whatever waits.
    fn begin(self: &Arc<Self>) {
        while let Some((call, seats)) = self.next_call() {
            // Not under the lock: a call that nobody waits for any more ends here, and takes it.
            for (place, seat) in seats.into_iter().enumerate() {
                let _ = seat.send((call.clone(), place));
            }
        }
    }

    /// The next call with those who are in it, if one may begin and somebody waits.
    fn next_call(self: &Arc<Self>) -> Option<(Call, Vec<oneshot::Sender<Seat>>)> {
        let mut line = self.line.lock();
        if line.calls == CALLS {
            return None;
        }
        let chosen = line.choose(self.most);
        if chosen.is_empty() {
            return None;
        }
        line.calls += 1;
        let (batch, seats): (Vec<Outgoing>, Vec<_>) = chosen.into_iter().unzip();
        let documents = batch.iter().map(|outgoing| outgoing.document.clone()).collect();
        // It ends also if nobody ever drives it.
        let ends = Ends { gathering: self.clone(), documents };
        let sink = self.sink.clone();
        let call = async move {
            let answers = sink.send(batch).await;
            drop(ends);
            Arc::new(answers)
        };
        Some((call.boxed().shared(), seats))
    }
}

impl Line {
    /// Whatever waits, up to so many, each document once and none that is out.
    fn choose(&mut self, most: usize) -> Vec<(Outgoing, oneshot::Sender<Seat>)> {
        self.waiting.retain(|(_, seat)| !seat.is_closed());
        let (mut chosen, mut rest) = (Vec::new(), VecDeque::new());
        for (outgoing, seat) in self.waiting.drain(..) {
            if chosen.len() < most && self.out.insert(outgoing.document.clone()) {
                chosen.push((outgoing, seat));
            } else {
                rest.push_back((outgoing, seat));
            }
        }
        self.waiting = rest;
        chosen
    }
}

/// The end of a call, whether it was answered or left.
struct Ends {
    gathering: Arc<Gathering>,
    documents: Vec<Arc<str>>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        {
            let mut line = self.gathering.line.lock();
            line.calls -= 1;
            for document in &self.documents {
                line.out.remove(document);
            }
        }
        self.gathering.begin();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use bytes::Bytes;
    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    /// A sink that answers a call when it is let.
    struct Slow {
        calls: Mutex<Vec<Vec<Arc<str>>>>,
        open: Mutex<HashSet<Arc<str>>>,
        let_go: Semaphore,
    }

    impl Slow {
        fn sizes(&self) -> Vec<usize> {
            self.calls.lock().iter().map(Vec::len).collect()
        }
    }

    #[async_trait]
    impl Sink for Slow {
        fn most(&self) -> usize {
            3
        }

        async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent> {
            let documents: Vec<Arc<str>> = batch.iter().map(|one| one.document.clone()).collect();
            for document in &documents {
                assert!(self.open.lock().insert(document.clone()), "{document} is in a call already");
            }
            let _closes = Closes(self, documents.clone());
            self.calls.lock().push(documents);
            self.let_go.acquire().await.expect("nobody closes it").forget();
            batch.iter().map(|one| Sent::Refused(one.id.clone())).collect()
        }
    }

    struct Closes<'a>(&'a Slow, Vec<Arc<str>>);

    impl Drop for Closes<'_> {
        fn drop(&mut self) {
            for document in &self.1 {
                self.0.open.lock().remove(document);
            }
        }
    }

    fn slow() -> (Arc<Slow>, Arc<Gathering>) {
        let slow = Slow { calls: Mutex::default(), open: Mutex::default(), let_go: Semaphore::new(0) };
        let slow = Arc::new(slow);
        (slow.clone(), Gathering::new(slow))
    }

    fn outgoing(number: usize) -> Outgoing {
        Outgoing {
            id: format!("id {number}"),
            document: format!("document {number}").into(),
            revision: "1".to_owned(),
            headers: Vec::new(),
            content_type: None,
            body: Bytes::new(),
        }
    }

    async fn send(gathering: &Arc<Gathering>, number: usize) -> (Sent, bool) {
        let mut begun = false;
        let sent = gathering.send(outgoing(number), &mut begun).await;
        (sent, begun)
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_waits_goes_together_and_everybody_hears_of_its_own() {
        let (slow, gathering) = slow();
        let all = join_all((0..12).map(|number| send(&gathering, number)));
        let letting = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(slow.sizes(), [1, 1, 1, 1], "the first do not wait for others");
            slow.let_go.add_permits(100);
        };
        let (answers, ()) = tokio::join!(all, letting);
        for (number, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer, (Sent::Refused(format!("id {number}")), true));
        }
        assert_eq!(slow.sizes(), [1, 1, 1, 1, 3, 3, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_leaves_the_others_their_answers() {
        let (slow, gathering) = slow();
        let busy = join_all((0..CALLS).map(|number| send(&gathering, number)));
        let others = async {
            let mut begun = false;
            let impatient = gathering.send(outgoing(90), &mut begun);
            let left = tokio::time::timeout(Duration::from_millis(1), impatient).await;
            assert!(left.is_err() && !begun, "it was in no call, and is in none later");
            let (a, b) = (send(&gathering, 10), send(&gathering, 11));
            let letting = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                slow.let_go.add_permits(100);
            };
            let ((a, _), (b, _), ()) = tokio::join!(a, b, letting);
            assert_eq!((a, b), (Sent::Refused("id 10".into()), Sent::Refused("id 11".into())));
        };
        tokio::join!(busy, others);
        assert!(slow.calls.lock().iter().flatten().all(|document| &**document != "document 90"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_that_is_sent_again_waits_for_the_call_it_was_in() {
        let (slow, gathering) = slow();
        // Two in one call, of which one stops waiting: the call goes on for the other.
        let busy: Vec<_> = (0..CALLS).map(|number| send(&gathering, number)).collect();
        let story = async {
            let mut begun = false;
            let leaving = gathering.send(outgoing(50), &mut begun);
            let staying = send(&gathering, 51);
            let all = async { tokio::join!(tokio::time::timeout(Duration::from_secs(2), leaving), staying) };
            let letting = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                slow.let_go.add_permits(CALLS);
                tokio::time::sleep(Duration::from_secs(2)).await;
                // The one that left sends again, while the call with it is still open: the sink would notice.
                let again = send(&gathering, 50);
                let last = async {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    slow.let_go.add_permits(100);
                };
                tokio::join!(again, last).0
            };
            let ((left, stayed), again) = tokio::join!(all, letting);
            assert!(left.is_err() && begun, "whoever left after the call began does not know");
            assert_eq!(stayed.0, Sent::Refused("id 51".into()));
            assert_eq!(again.0, Sent::Refused("id 50".into()));
        };
        tokio::join!(join_all(busy), story);
        assert_eq!(slow.sizes(), [1, 1, 1, 1, 2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_nobody_waits_for_make_room() {
        let (slow, gathering) = slow();
        for round in 0..3 {
            let all = join_all((0..10).map(|number| send(&gathering, number)));
            assert!(tokio::time::timeout(Duration::from_secs(1), all).await.is_err(), "{round}");
        }
        slow.let_go.add_permits(100);
        assert_eq!(send(&gathering, 1).await, (Sent::Refused("id 1".into()), true));
        assert!(slow.open.lock().is_empty());
    }
}
