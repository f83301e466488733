//! Delivery on request: "send up to so many now" comes in; while it lasts the subscription is served like an active
//! one; how it went goes out.

use tokio::sync::oneshot;

use crate::journey::subscriber::Standstill;
use crate::journey::subscriber::passive::drive::{Drive, DriveOrder, Driven};
use crate::journey::subscriber::passive::refused::AskRefused;
use crate::journey::worker::Worker;
use crate::journey::worker::alarms::Alarm;
use crate::journey::worker::breaker::Permit;
use crate::journey::worker::subscribers::Place;

impl Worker {
    pub(super) fn begin_drive(
        &mut self,
        place: Option<Place>,
        order: DriveOrder,
        reply: oneshot::Sender<Result<Driven, AskRefused>>,
    ) {
        let until = self.tools.clock.monotonic() + self.tools.limits.passive.maximum_wait;
        let Some(place) = place else {
            let _ = reply.send(Err(AskRefused::Gone));
            return;
        };
        let subscriber = &mut self.subscribers[place];
        let stands = subscriber.standstill != Standstill::None;
        let refused = match &subscriber.passive {
            None => Some(AskRefused::Active),
            Some(_) if stands => Some(AskRefused::Standing),
            Some(passive) if passive.drive.is_some() => Some(AskRefused::Driving),
            Some(_) => None,
        };
        let (Some(passive), None) = (&mut subscriber.passive, refused) else {
            let _ = reply.send(Err(refused.unwrap_or(AskRefused::Active)));
            return;
        };
        passive.drive = Some(Drive::new(order, until, reply));
        self.alarms.set(until, Alarm::Wake(place));
        self.look_at_the_ends(place);
        self.ready(place);
    }

    pub(super) fn halt_drive(&mut self, place: Place) {
        if let Some(drive) = self.passive(place).and_then(|passive| passive.drive.as_mut()) {
            drive.halt();
        }
        self.drive_may_end(place);
    }

    /// Ends the delivery on request if there is nothing left to do for it.
    pub fn drive_may_end(&mut self, place: Place) {
        let now = self.tools.clock.monotonic();
        let stopping = self.stopping;
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let (stands, host) = (subscriber.stands(), subscriber.host);
        let Some(drive) = subscriber.passive.as_mut().and_then(|passive| passive.drive.as_mut()) else {
            return;
        };
        if stands || stopping || drive.is_over(now) {
            drive.halt();
        }
        let (quiet, halted) = (drive.is_quiet(), drive.is_halted());
        // A host that is left alone for now is not waited for either.
        let alone = matches!(self.hosts[host].breaker.permit(now), Permit::Wait(_));
        if quiet && (halted || alone || self.is_idle(place)) {
            self.end_drive(place);
        }
    }

    pub(super) fn end_drive(&mut self, place: Place) {
        let Some(drive) = self.passive(place).and_then(|passive| passive.drive.take()) else { return };
        let remaining = self.lagging(place).documents;
        drive.end(remaining);
        self.rest_marks(place);
    }
}
