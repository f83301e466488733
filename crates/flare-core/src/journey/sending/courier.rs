//! Deliver, second half: one task per connection. It takes an attempt, sends it, settles it, takes the next.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use flare_model::sharing::Age;
use flare_model::time::Timestamp;
use flare_provider::bridge::Sent;
use flare_wire::{Request, Room};

use crate::bridges::Outlet;
use crate::journey::connection::{Broken, Connection, DialTurn};
use crate::journey::worker::hosts::TURN;
use crate::journey::worker::job::{Job, OpenAttempt, Summons};
use crate::journey::worker::moments::Lasted;
use crate::journey::worker::{Tools, Worker};
use crate::notification::Notification;
use crate::notification::change::Change;
use crate::notification::compiled::Compiled;
use crate::notification::ending::{Answer, Ending};
use crate::notification::host::{Destination, HostKey};
use crate::notification::outgoing::outgoing;
use crate::observe::Phases;

/// The way to a host.
#[derive(Default)]
pub struct Link {
    /// Once there is one.
    connection: Option<Connection>,
    /// The turn to open one; without it nobody is waited for.
    dial: Option<DialTurn>,
    /// How many bytes had gone over the connection before the last request.
    before: u64,
    /// The status of the answer to the last request, once its head is there.
    status: Option<u16>,
}

/// The life of a connection to one host, from the first attempt until it has been idle for long.
pub async fn courier(worker: Rc<RefCell<Worker>>, host: usize) {
    let (tools, key) = {
        let worker = worker.borrow();
        (worker.tools.clone(), worker.hosts[host].key.clone())
    };
    let summons = Rc::new(Summons::default());
    let mut link = Link::default();
    let turn = tools.clock.monotonic() + TURN;
    loop {
        // Before anything is taken: what has to wait for its turn to connect is not under way yet.
        if link.connection.is_none() && matches!(key, Destination::Host(_)) {
            link.dial = Some(tools.dialler.turn().await);
        }
        let job = worker.borrow_mut().next_job(host);
        match job {
            Some(mut job) => {
                if let Some(verdict) = job.too_old(|| tools.clock.now()) {
                    worker.borrow_mut().give_up_untried(job, verdict);
                    // There may be many: others have their turn in between.
                    tokio::task::yield_now().await;
                    continue;
                }
                let (began, since) = (tools.clock.now(), tools.clock.monotonic());
                let mut phases = Phases::begin(since);
                let request = |again: bool, now, room| {
                    // The connection that broke may have carried it: then it is not certain what the client has.
                    let state = job.notification.state.as_deref().filter(|_| !again);
                    job.notification.request(state, now, room)
                };
                let (share, age) = (job.share, job.age);
                let mut open = OpenAttempt { place: job.place, host, share, age };
                let timeout = job.notification.compiled.spec.timeout;
                let mut grows_old = |age| worker.borrow_mut().grows_old(&mut open, age);
                let patience = Patience { timeout, grows_old: &mut grows_old };
                let Notification { compiled, change, .. } = &job.notification;
                let told = Told { compiled, change, request };
                let delivery = deliver(&tools, &key, &mut link, patience, began, &mut phases, told);
                let mut ending = match tools.tenancy {
                    None => Some(delivery.await),
                    Some(_) => unless_cut(&worker, &job, delivery).await,
                };
                if let Some(ending) = &mut ending {
                    job.notification.compiled.echoes.conceal(ending);
                }
                (job.share, job.age) = (open.share, open.age);
                let now = tools.clock.monotonic();
                let lasted = Lasted { began, since, until: now };
                let Some(ending) = ending else {
                    link.connection = None;
                    worker.borrow_mut().cut_off(job, lasted);
                    continue;
                };
                let spans = phases.end(now);
                tools.desk.note(&job.notification, &ending, began, spans);
                if let (Some(_), Some(tracer)) = (job.notification.span, &tools.tracer) {
                    tracer.attempted(&job.notification, &ending, since, spans);
                }
                worker.borrow_mut().settle(job, &ending, lasted);
                if now >= turn && worker.borrow().hosts.busy_courier_should_leave(host) {
                    break;
                }
                if let (Ending::Answered(answer), Some(connection)) = (ending, &mut link.connection) {
                    connection.give_room(answer.into_room());
                }
            }
            None => {
                link.dial = None;
                if !wait_for_work(&worker, host, &summons, &tools, &mut link.connection).await {
                    break;
                }
            }
        }
    }
    drop(link);
    worker.borrow_mut().courier_left(host);
}

/// How an attempt ended; nothing if its lane was cut meanwhile.
async fn unless_cut(
    worker: &Rc<RefCell<Worker>>,
    job: &Job,
    delivery: impl Future<Output = Ending>,
) -> Option<Ending> {
    let cuts = worker.borrow().cuts.clone();
    let cut = async {
        loop {
            let rung = cuts.notified();
            #[cfg(feature = "planted")]
            if flare_model::planted::Bug::AttemptNotCut.is_planted() {
                rung.await;
                continue;
            }
            if !worker.borrow().is_open(job) {
                return;
            }
            rung.await;
        }
    };
    tokio::select! {
        // In this order: what was handed to another host's courier may be cut before a byte of it goes out.
        biased;
        () = cut => None,
        ending = delivery => Some(ending),
    }
}

/// Whether to go on. Keeps an eye on the idle connection, so that one the client closes is not used again.
async fn wait_for_work(
    worker: &Rc<RefCell<Worker>>,
    host: usize,
    summons: &Rc<Summons>,
    tools: &Tools,
    connection: &mut Option<Connection>,
) -> bool {
    {
        let mut worker = worker.borrow_mut();
        if worker.stopping || worker.hosts.idle_courier_should_leave(host) {
            return false;
        }
        worker.hosts[host].idle.push(summons.clone());
    }
    let closed = async {
        match connection {
            Some(connection) => connection.closed().await,
            None => std::future::pending().await,
        }
    };
    let called = tokio::select! {
        biased;
        () = summons.called() => true,
        () = closed => false,
        () = tokio::time::sleep(tools.limits.idle_timeout) => false,
    };
    // Whoever takes it from the list calls it, and a call is kept: it may come from an earlier time, or just
    // now beside the end of the connection. In no case may it stay in the list while it is elsewhere.
    let idle = &mut worker.borrow_mut().hosts[host].idle;
    let before = idle.len();
    idle.retain(|waiting| !Rc::ptr_eq(waiting, summons));
    let taken = idle.len() == before;
    if !called {
        *connection = None;
    }
    (called || taken) && !summons.is_dismissed()
}

/// How long an answer is waited for, and who is told that it takes long.
pub struct Patience<'a> {
    /// Then it is given up.
    pub timeout: Duration,
    /// It has come to an age.
    pub grows_old: &'a mut dyn FnMut(Age),
}

impl Patience<'_> {
    /// Waits for the end of an attempt; nothing when that takes too long. One that ends before it is old takes one timer.
    async fn wait<T>(self, mut attempt: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let mut passed = Duration::ZERO;
        for age in [Age::Middling, Age::Slow] {
            let until = age.reached_after();
            if until >= self.timeout {
                break;
            }
            if let Ok(ended) = tokio::time::timeout(until - passed, attempt.as_mut()).await {
                return Some(ended);
            }
            (self.grows_old)(age);
            passed = until;
        }
        tokio::time::timeout(self.timeout - passed, attempt).await.ok()
    }
}

/// What a client is told.
pub struct Told<'a, R> {
    /// By which settings.
    pub compiled: &'a Compiled,
    /// Of which change.
    pub change: &'a Change,
    /// The request, of whether the first may have arrived, the time, and room for it.
    pub request: R,
}

/// One attempt: one request, built at the time it is given, and a second one only if the connection turned out to be
/// closed already; it is told whether the first may have arrived.
pub async fn deliver(
    tools: &Tools,
    to: &Destination,
    link: &mut Link,
    patience: Patience<'_>,
    began: Timestamp,
    phases: &mut Phases,
    told: Told<'_, impl Fn(bool, Timestamp, Room) -> Request>,
) -> Ending {
    let (mut sent, timeout) = (false, patience.timeout);
    link.status = None;
    let ended = {
        let attempt = async {
            match to {
                Destination::Host(host) => {
                    exchange(tools, host, link, began, phases, told.request, &mut sent).await
                }
                Destination::Sink(outlet) => {
                    Ok(hand_over(tools, outlet, began, phases, told, &mut sent).await)
                }
            }
        };
        patience.wait(pin!(attempt)).await
    };
    match ended {
        Some(Ok(ending)) => ending,
        Some(Err(broken)) => {
            link.connection = None;
            let timed_out = matches!(&broken, Broken::Connect(e) if e.kind() == std::io::ErrorKind::TimedOut);
            Ending::Failed { status: None, error: broken.to_string(), sent, timed_out }
        }
        None => {
            sent |= link.connection.take().is_some_and(|opened| opened.written() > link.before);
            let limit = flare_model::duration::HumanDuration(timeout);
            let error = match link.status {
                Some(_) => format!("the body did not end within {limit}"),
                None => format!("no answer within {limit}"),
            };
            Ending::Failed { status: link.status, error, sent, timed_out: true }
        }
    }
}

async fn exchange(
    tools: &Tools,
    host: &HostKey,
    link: &mut Link,
    began: Timestamp,
    phases: &mut Phases,
    request: impl Fn(bool, Timestamp, Room) -> Request,
    sent: &mut bool,
) -> Result<Ending, Broken> {
    let mut now = began;
    let Link { connection, dial, before, status } = link;
    loop {
        let opened = match connection {
            Some(opened) => opened,
            None => {
                let dialled = tokio::time::timeout(tools.limits.connect_timeout, tools.dialler.dial(host));
                let timed_out = || std::io::Error::from(std::io::ErrorKind::TimedOut);
                let since = tools.clock.monotonic();
                let turn = dial.take().unwrap_or_else(DialTurn::free);
                let opened = turn.open(dialled).await.map_err(|_| Broken::Connect(timed_out()))??;
                phases.connected(since, tools.clock.monotonic());
                // It is signed at the time it goes out, and connecting may have taken long.
                now = tools.clock.now();
                connection.insert(opened)
            }
        };
        *before = opened.written();
        let reused = opened.uses() > 0;
        let request = request(*sent, now, opened.take_room());
        tools.desk.counts.sent.add(request.body().len() as u64);
        *status = None;
        let head = |answered| {
            *status = Some(answered);
            phases.answered(tools.clock.monotonic());
        };
        match opened.exchange(request, tools.read_limits, head).await {
            Ok((answer, usable)) => {
                if !usable {
                    *connection = None;
                }
                return Ok(Ending::Answered(Answer::new(answer, *sent)));
            }
            Err(broken) => {
                *sent |= opened.written() > *before;
                *connection = None;
                // The client closed an idle connection just as it was used: no failure, a new one is opened.
                if !(reused && broken.closed_silently()) {
                    return Err(broken.into());
                }
            }
        }
    }
}

/// One attempt towards a sink, which has the connection itself.
async fn hand_over(
    tools: &Tools,
    outlet: &Outlet,
    began: Timestamp,
    phases: &mut Phases,
    told: Told<'_, impl Fn(bool, Timestamp, Room) -> Request>,
    sent: &mut bool,
) -> Ending {
    let request = (told.request)(false, began, Room::default());
    tools.desk.counts.sent.add(request.body().len() as u64);
    let answer = outlet.send(outgoing(&request, told.compiled, told.change), sent).await;
    phases.answered(tools.clock.monotonic());
    let failed = |error, sent| Ending::Failed { status: None, error, sent, timed_out: false };
    match answer {
        Sent::Delivered => Ending::Taken,
        Sent::Refused(why) => Ending::Refused(why),
        Sent::Failed(why) => failed(why, false),
        Sent::Unknown(why) => failed(why, true),
    }
}
