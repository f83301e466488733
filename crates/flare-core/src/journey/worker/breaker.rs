//! Whether a host is to be tried: how attempts there ended comes in, a permit comes out. Pure.
//!
//! Only silence counts (no connection, no answer in time): whoever answers is alive, whatever it answers, and one
//! client that answers 500 must not keep its neighbours on the same host from their notifications. Nor does one that is
//! not answered, if another one was meanwhile: then it is the client that hangs, and not the host.

use std::time::Duration;

/// When a breaker opens and for how long.
#[derive(Clone, Copy, Debug)]
pub struct BreakerSettings {
    /// So many attempts in a row without an answer open it; 0: never.
    pub failures: u32,
    /// How long it stays open the first time; each probe that fails doubles it.
    pub pause: Duration,
    /// The longest it stays open between two probes.
    pub longest: Duration,
}

/// The breaker of one host. Times are monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Breaker {
    silent: u32,
    /// When the last answer was heard.
    answered_at: Duration,
    /// The last one that was not answered could not even connect.
    unreachable: bool,
    open: Option<OpenBreaker>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct OpenBreaker {
    /// Until when nothing is sent.
    until: Duration,
    /// How long the next pause is.
    pause: Duration,
    /// From here on the time has not been made up to what waits.
    since: Duration,
    /// The one attempt that finds out is under way.
    probing: bool,
}

/// An attempt that ended without an answer.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// When it began.
    pub since: Duration,
    /// When it ended.
    pub until: Duration,
    /// Whether something was sent: then there is a host, and perhaps it is this client alone who hears nothing.
    pub reached: bool,
    /// Whether it was to find out.
    pub probe: bool,
}

/// Whether an attempt may begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Permit {
    /// As many as there is room for.
    Free,
    /// One, to find out.
    Probe,
    /// None before this time; `None`: a probe is under way and will tell.
    Wait(Option<Duration>),
}

impl Breaker {
    /// Whether an attempt may begin now.
    pub fn permit(&self, now: Duration) -> Permit {
        match &self.open {
            None => Permit::Free,
            Some(open) if open.probing => Permit::Wait(None),
            Some(open) if now < open.until => Permit::Wait(Some(open.until)),
            Some(_) => Permit::Probe,
        }
    }

    /// Whether everything goes through, which is nearly always so.
    pub fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    /// Whether somebody may ask all the same who has had no failure of its own: the host was reached, and those who got
    /// no answer from it may be the only ones.
    pub fn spares_the_innocent(&self) -> bool {
        self.open.is_some() && !self.unreachable
    }

    /// Until when nothing is sent, while it is open.
    pub fn open_until(&self) -> Option<Duration> {
        self.open.map(|open| open.until)
    }

    /// The probe has begun.
    pub fn probe(&mut self) {
        if let Some(open) = &mut self.open {
            open.probing = true;
        }
    }

    /// The probe was not sent after all: another one may be.
    pub fn leave_off(&mut self) {
        if let Some(open) = &mut self.open {
            open.probing = false;
        }
    }

    /// Something was answered. Returns how long nothing was sent that is not made up for yet, if it was open.
    pub fn answered(&mut self, now: Duration) -> Option<Duration> {
        (self.silent, self.answered_at, self.unreachable) = (0, now, false);
        self.open.take().map(|open| now.saturating_sub(open.since))
    }

    /// An attempt ended without an answer; `jitter` is from 0 to below 1. Returns as [`Breaker::answered`] does when
    /// it was a probe.
    pub fn silence(
        &mut self,
        silence: &Silence,
        settings: &BreakerSettings,
        jitter: f64,
    ) -> Option<Duration> {
        let now = silence.until;
        if silence.reached && self.answered_at > silence.since {
            return None;
        }
        self.unreachable = !silence.reached;
        self.silent = self.silent.saturating_add(1);
        match &mut self.open {
            // One that had begun before the breaker opened, or beside the probe, tells nothing new.
            Some(open) if !(open.probing && silence.probe) => None,
            Some(open) => {
                let waited = now.saturating_sub(open.since);
                let spread = open.pause.mul_f64(0.9 + 0.2 * jitter);
                *open = OpenBreaker {
                    until: now + spread,
                    pause: (open.pause * 2).min(settings.longest),
                    since: now,
                    probing: false,
                };
                Some(waited)
            }
            None => {
                if settings.failures > 0 && self.silent >= settings.failures {
                    let spread = settings.pause.mul_f64(0.9 + 0.2 * jitter);
                    let pause = (settings.pause * 2).min(settings.longest);
                    self.open = Some(OpenBreaker { until: now + spread, pause, since: now, probing: false });
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: BreakerSettings =
        BreakerSettings { failures: 3, pause: Duration::from_secs(1), longest: Duration::from_secs(4) };

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Could not connect.
    fn refused(at: u64) -> Silence {
        Silence { since: secs(at), until: secs(at), reached: false, probe: false }
    }

    fn probed(at: u64) -> Silence {
        Silence { probe: true, ..refused(at) }
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            assert_eq!(breaker.permit(secs(10)), Permit::Free);
            assert_eq!(breaker.silence(&refused(10), &SETTINGS, 0.5), None);
        }
        breaker
    }

    #[test]
    fn silence_in_a_row_opens_it_and_an_answer_between_does_not() {
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            breaker.silence(&refused(10), &SETTINGS, 0.5);
            breaker.silence(&refused(10), &SETTINGS, 0.5);
            assert_eq!(breaker.answered(secs(10)), None);
        }
        assert!(breaker.is_closed());
        assert_eq!(opened().permit(secs(10)), Permit::Wait(Some(secs(11))));
    }

    #[test]
    fn one_probe_at_a_time_finds_out_after_pauses_that_grow() {
        let mut breaker = opened();
        let (mut now, mut pauses) = (secs(10), Vec::new());
        for _ in 0..5 {
            let Permit::Wait(Some(until)) = breaker.permit(now) else { panic!("it is open") };
            pauses.push((until - now).as_secs());
            now = until;
            assert_eq!(breaker.permit(now), Permit::Probe);
            breaker.probe();
            assert_eq!(breaker.permit(now), Permit::Wait(None));
            breaker.silence(&Silence { until: now, ..probed(0) }, &SETTINGS, 0.5);
        }
        assert_eq!(pauses, [1, 2, 4, 4, 4]);
    }

    #[test]
    fn the_time_it_was_open_is_told_once() {
        let mut breaker = opened();
        breaker.probe();
        assert_eq!(breaker.silence(&probed(12), &SETTINGS, 0.5), Some(secs(2)));
        breaker.probe();
        assert_eq!(breaker.answered(secs(15)), Some(secs(3)));
        assert_eq!(breaker.permit(secs(15)), Permit::Free);
        assert_eq!(breaker.answered(secs(20)), None);
    }

    #[test]
    fn attempts_from_before_it_opened_change_nothing() {
        let mut breaker = opened();
        let before = breaker.permit(secs(10));
        assert_eq!(breaker.silence(&refused(10), &SETTINGS, 0.5), None);
        assert_eq!(breaker.permit(secs(10)), before);
    }

    #[test]
    fn it_can_be_switched_off() {
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            breaker.silence(&refused(1), &BreakerSettings { failures: 0, ..SETTINGS }, 0.5);
        }
        assert!(breaker.is_closed());
    }

    #[test]
    fn clients_that_hang_are_judged_each_for_itself_while_another_one_is_answered() {
        let mut breaker = Breaker::default();
        let hangs =
            |since, until| Silence { since: secs(since), until: secs(until), reached: true, probe: false };
        for since in 0..20 {
            breaker.answered(secs(since + 5));
            breaker.silence(&hangs(since, since + 30), &SETTINGS, 0.5);
        }
        assert!(breaker.is_closed(), "somebody got an answer meanwhile");
        for since in 60..63 {
            breaker.silence(&hangs(since, since + 30), &SETTINGS, 0.5);
        }
        assert!(!breaker.is_closed() && breaker.spares_the_innocent(), "nobody did");
        breaker.silence(&refused(93), &SETTINGS, 0.5);
        assert!(!breaker.spares_the_innocent(), "it is not even there");
    }

    #[test]
    fn who_asks_beside_the_probe_is_not_taken_for_it() {
        let mut breaker = opened();
        breaker.probe();
        assert_eq!(breaker.silence(&refused(12), &SETTINGS, 0.5), None);
        assert_eq!(breaker.permit(secs(12)), Permit::Wait(None), "the probe is still under way");
        assert!(breaker.silence(&probed(13), &SETTINGS, 0.5).is_some());
    }
}
