//! How the clients of a host share its connections, as one thread has it: how long requests took, and how old open ones
//! are, comes in; who has its share of the connections, and who waits for it, goes out.

use std::time::Duration;

use flare_model::sharing::{Age, Class, HostNumber};

use crate::journey::permits::shares::WantedShare;
use crate::journey::subscriber::WaitsForShare;
use crate::journey::worker::Worker;
use crate::journey::worker::job::OpenAttempt;
use crate::journey::worker::queue::Part;
use crate::journey::worker::subscribers::Place;

impl Worker {
    /// The hosts of a subscription, each once.
    fn numbers(&self, place: Place) -> Vec<HostNumber> {
        let Some(subscriber) = self.subscribers.get(place) else { return Vec::new() };
        let mut numbers: Vec<_> = subscriber.hosts.iter().map(|host| self.hosts[*host].number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// A subscription sends to its hosts from now on, among others.
    pub(in crate::journey) fn join_hosts(&self, place: Place) {
        for host in self.numbers(place) {
            self.tools.caps.client_joins(host, self.subscribers[place].class);
        }
    }

    /// A subscription sends to its hosts no more, as far as this thread is concerned: it stands in no line there.
    pub(in crate::journey) fn quit_hosts(&mut self, place: Place) {
        self.return_share(place);
        self.wait_no_more(place);
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let (host, class) = (subscriber.host, subscriber.class);
        if std::mem::take(&mut subscriber.queued) {
            self.hosts[host].queue.leave(place);
        }
        for host in self.numbers(place) {
            self.tools.caps.client_quits(host, class);
        }
    }

    /// Stands in the queue of its host.
    pub(in crate::journey) fn stand_in_queue(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        subscriber.queued = true;
        let host = &mut self.hosts[subscriber.host];
        let part = match subscriber.class {
            _ if host.breaker.spares_the_innocent() && subscriber.is_innocent() => Part::Trusted,
            Class::Quick => Part::Quick,
            Class::New | Class::Middling | Class::Slow => Part::Patient,
        };
        host.queue.push(place, part);
    }

    /// Whether a request of a subscription may begin, by what the clients of its host share. Who is quick may always.
    /// If another one may, that is counted, and kept until it begins; if not, it waits in line.
    pub(in crate::journey) fn may_share(&mut self, place: Place) -> bool {
        let subscriber = &self.subscribers[place];
        let (class, held) = (subscriber.class, subscriber.in_flight);
        if class == Class::Quick || subscriber.share.is_some() {
            return true;
        }
        if subscriber.waits.is_some() {
            return false;
        }
        let caps = &self.tools.caps;
        let host = &mut self.hosts[subscriber.host];
        // It is looked at again when one ends or grows old.
        if held > 0 && !subscriber.service.is_measured() && held >= caps.first_requests(host.number, class) {
            return false;
        }
        let line = host.queue.line(class);
        let wanted = WantedShare { thread: self.thread, host: host.number, class, held };
        if line.is_empty() && caps.begin_share(wanted) {
            self.subscribers[place].share = Some(class);
            return true;
        }
        let ticket = line.stand(place, held);
        self.subscribers[place].waits = Some(WaitsForShare { class, ticket });
        self.tell_who_is_next(wanted);
        false
    }

    /// On this thread another one may be the next to have a share.
    fn tell_who_is_next(&mut self, wanted: WantedShare) {
        let Some(host) = self.hosts.of_number(wanted.host) else { return };
        match self.hosts[host].queue.line(wanted.class).least() {
            Some(held) => self.tools.caps.next_in_line(WantedShare { held, ..wanted }),
            None => self.tools.caps.leave_line(wanted.host, self.thread, wanted.class),
        }
    }

    /// A share that was not used after all goes to others.
    pub(in crate::journey) fn return_share(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        if let Some(class) = subscriber.share.take() {
            self.tools.caps.end_share(self.hosts[subscriber.host].number, class);
        }
    }

    /// Whoever stands in the queue of a host that is left alone keeps no share from others.
    pub(in crate::journey) fn return_shares_of(&mut self, host: usize) {
        let queued: Vec<Place> = self.hosts[host].queue.patient().collect();
        queued.into_iter().for_each(|place| self.return_share(place));
    }

    fn wait_no_more(&mut self, place: Place) {
        let thread = self.thread;
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let Some(WaitsForShare { class, ticket }) = subscriber.waits.take() else { return };
        let host = &mut self.hosts[subscriber.host];
        host.queue.line(class).leave(ticket);
        let wanted = WantedShare { thread, host: host.number, class, held: 0 };
        self.tell_who_is_next(wanted);
    }

    /// This thread was granted a share for whichever of its clients of this class is next; the others stand again.
    pub(in crate::journey) fn granted(&mut self, number: HostNumber, class: Class) {
        let thread = self.thread;
        let mut in_hand = true;
        while let Some(host) = self.hosts.of_number(number) {
            let line = self.hosts[host].queue.line(class);
            if !in_hand {
                let Some(held) = line.least() else { return };
                if !self.tools.caps.begin_share(WantedShare { thread, host: number, class, held }) {
                    return;
                }
                in_hand = true;
            }
            let Some(place) = self.hosts[host].queue.line(class).take_next() else { break };
            let Some(subscriber) = self.subscribers.get_mut(place) else { continue };
            (subscriber.waits, subscriber.share) = (None, Some(class));
            self.ready(place);
            let Some(subscriber) = self.subscribers.get_mut(place) else { break };
            // One that has nothing to take by now leaves it to the next.
            in_hand = !subscriber.queued && subscriber.share.take().is_some();
        }
        if in_hand {
            self.tools.caps.end_share(number, class);
        }
    }

    /// An attempt begins that goes to another host than the one whose share was taken for it.
    pub(in crate::journey) fn takes_its_share_along(&self, home: usize, host: usize, share: Option<Class>) {
        let (caps, Some(class)) = (&self.tools.caps, share) else { return };
        caps.share_ages(self.hosts[host].number, Class::Quick, class);
        caps.end_share(self.hosts[home].number, class);
    }

    /// An attempt that is open has come to an age: it counts as slow from now on, and its client does.
    pub(in crate::journey) fn grows_old(&mut self, open: &mut OpenAttempt, age: Age) {
        let (from, to) = (open.share.unwrap_or(Class::Quick), age.class());
        if to > from {
            self.tools.caps.share_ages(self.hosts[open.host].number, from, to);
            open.share = Some(to);
        }
        open.age = Some(age);
        if let Some(subscriber) = self.subscribers.get_mut(open.place) {
            subscriber.service.ages(age);
            self.reclassify(open.place);
            self.ready(open.place);
        }
    }

    /// An attempt has ended after so long.
    pub(in crate::journey) fn took(&mut self, place: Place, took: Duration) {
        if let Some(subscriber) = self.subscribers.get_mut(place) {
            subscriber.service.ended(took);
            self.reclassify(place);
        }
    }

    /// The class of a subscription may be another one, and so may be how much it holds.
    fn reclassify(&mut self, place: Place) {
        let thread = self.thread;
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let (class, before) = (subscriber.service.class(), subscriber.class);
        if class == before {
            let Some(waits) = &mut subscriber.waits else { return };
            let host = &mut self.hosts[subscriber.host];
            waits.ticket = host.queue.line(class).holds(waits.ticket, subscriber.in_flight);
            let wanted = WantedShare { thread, host: host.number, class, held: 0 };
            return self.tell_who_is_next(wanted);
        }
        subscriber.class = class;
        // It stands again where it belongs now, when it is looked at.
        self.wait_no_more(place);
        for host in self.numbers(place) {
            self.tools.caps.client_joins(host, class);
            self.tools.caps.client_quits(host, before);
        }
    }
}
