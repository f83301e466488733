//! What happened lately, for plots: samples come in, one after the other, points of a span go out.
//!
//! Bound: as configured (`history`); by default 600 points of 1 second (10 minutes), 720 of 10 seconds (2 hours) and 720
//! of 2 minutes (a day), which is about 600 KB. When full: the oldest point goes. It begins with the process and ends with
//! it; whoever wants more has Prometheus scrape `/metrics`.

pub mod point;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use flare_model::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::count::Totals;
use super::gauges::Gauges;
use crate::door::Clock;
use point::Point;

/// How far apart points are, and how long they are kept; from the finest to the coarsest.
pub type Sizes = [(Duration, Duration); 3];

/// What is known at one time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// By the monotonic clock.
    pub at: Duration,
    /// All that was counted until then.
    pub totals: Totals,
    /// How everything stood then.
    pub gauges: Gauges,
    /// When that was looked at, which with very many subscriptions is not every time.
    pub census_at: Duration,
}

/// Points of a span of time, the oldest first.
#[derive(Clone, Debug)]
pub struct Series {
    /// How far apart they are. There are gaps where the process was too busy, or stopped.
    pub step: Duration,
    /// Each tells of the time before it.
    pub points: Vec<Point>,
}

/// The history of this process.
pub struct History {
    clock: Arc<dyn Clock>,
    sizes: Sizes,
    rings: Mutex<Vec<Ring>>,
    latest: watch::Sender<Option<Arc<Sample>>>,
}

struct Ring {
    step: Duration,
    keep: usize,
    /// How far samples may be off and still belong to a step.
    slack: Duration,
    points: VecDeque<Kept>,
    /// The sample at the end of the newest point.
    since: Option<Sample>,
    /// The worst gauges after it.
    worst: Gauges,
}

struct Kept {
    /// By the monotonic clock: what the wall clock says now decides what the time was then, so that a plot is never
    /// torn by a clock that jumped.
    at: Duration,
    point: Point,
}

impl History {
    /// An empty one.
    pub fn new(clock: Arc<dyn Clock>, sizes: Sizes) -> History {
        let slack = sizes[0].0 / 2;
        let ring = |(step, span): (Duration, Duration)| Ring {
            step,
            keep: usize::try_from(span.as_nanos().div_ceil(step.as_nanos().max(1))).unwrap_or(usize::MAX),
            slack,
            points: VecDeque::new(),
            since: None,
            worst: Gauges::default(),
        };
        History { clock, sizes, rings: Mutex::new(sizes.map(ring).into()), latest: watch::Sender::new(None) }
    }

    /// How far apart samples are.
    pub fn sample(&self) -> Duration {
        self.sizes[0].0
    }

    /// How far back it goes at most.
    pub fn longest(&self) -> Duration {
        self.sizes[2].1
    }

    /// The newest point, unless it is an old one.
    pub fn newest(&self) -> Option<Point> {
        self.last(self.sample() * 3).points.pop()
    }

    /// Takes a sample in. Whoever watches is told.
    pub fn note(&self, sample: Sample) {
        self.rings.lock().iter_mut().for_each(|ring| ring.note(&sample));
        self.latest.send_replace(Some(Arc::new(sample)));
    }

    /// The points of the last so long, from the finest ring that reaches back that far; of a longer time than is kept,
    /// all there are of the coarsest.
    pub fn last(&self, span: Duration) -> Series {
        let (now, monotonic) = (self.clock.now(), self.clock.monotonic());
        let rings = self.rings.lock();
        let reaching = rings.iter().find(|ring| ring.step * ring.keep as u32 >= span);
        let Some(ring) = reaching.or(rings.last()) else { unreachable!("there are rings") };
        let ago = |kept: &Kept| monotonic.saturating_sub(kept.at);
        let points = ring.points.iter().filter(|kept| ago(kept) <= span);
        let then = |kept| {
            let ago = i64::try_from(ago(kept).as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(now.millis().saturating_sub(ago))
        };
        let points = points.map(|kept| Point { at: then(kept), ..kept.point.clone() });
        Series { step: ring.step, points: points.collect() }
    }

    /// The newest sample, once there is one.
    pub fn latest(&self) -> Option<Arc<Sample>> {
        self.latest.borrow().clone()
    }

    /// The newest sample, once there is one, and every one as it comes: `changed().await` waits for the next.
    pub fn watch(&self) -> watch::Receiver<Option<Arc<Sample>>> {
        self.latest.subscribe()
    }
}

impl Ring {
    fn note(&mut self, sample: &Sample) {
        self.worst.worst(&sample.gauges);
        let Some(since) = &self.since else {
            self.since = Some(sample.clone());
            return;
        };
        // Samples come a little early or late; a ring must not lose a step by that.
        if sample.at.saturating_sub(since.at) + self.slack < self.step {
            return;
        }
        let gauges = std::mem::take(&mut self.worst);
        let point = Point::between(since, sample, gauges);
        self.points.push_back(Kept { at: sample.at, point });
        if self.points.len() > self.keep {
            self.points.pop_front();
        }
        self.since = Some(sample.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HistoryConfig;
    use crate::door::ManualClock;
    use crate::observe::count::Counts;
    use flare_model::document::Outcome;

    struct World {
        clock: Arc<ManualClock>,
        counts: Counts,
        history: History,
    }

    impl World {
        fn new() -> World {
            World::with(HistoryConfig::default())
        }

        fn with(config: HistoryConfig) -> World {
            let clock = Arc::new(ManualClock::default());
            let history = History::new(clock.clone(), config.sizes());
            World { clock, counts: Counts::new(1), history }
        }

        /// So many changes in one second, at the end of which the backlog is this.
        fn second(&self, changes: u64, backlog: u64) {
            (0..changes).for_each(|_| self.counts.origin.answered(Outcome::Updated));
            self.clock.advance(self.history.sample());
            let gauges = Gauges { backlog, ..Gauges::default() };
            let at = self.clock.monotonic();
            self.history.note(Sample { at, totals: self.counts.read(), gauges, census_at: at });
        }
    }

    #[test]
    fn each_second_is_a_point_of_its_own() {
        let world = World::new();
        for (changes, backlog) in [(0, 0), (3, 7), (5, 2)] {
            world.second(changes, backlog);
        }
        let series = world.history.last(Duration::from_secs(60));
        assert_eq!(series.step, Duration::from_secs(1));
        let seen: Vec<_> = series.points.iter().map(|point| (point.accepted, point.gauges.backlog)).collect();
        assert_eq!(seen, [(3.0, 7), (5.0, 2)], "the first sample has nothing before it to compare with");
        assert_eq!(world.history.watch().borrow().as_ref().unwrap().gauges.backlog, 2);
    }

    #[test]
    fn a_longer_span_has_coarser_points_with_the_same_sums_and_the_worst_gauges() {
        let world = World::new();
        world.second(0, 0);
        for second in 0..7200_u64 {
            world.second(2, u64::from(second == 3605) * 99);
        }
        for (span, step, most) in [(600, 1, 600), (3600, 10, 360), (86_400, 120, 60), (864_000, 120, 60)] {
            let series = world.history.last(Duration::from_secs(span));
            assert_eq!(series.step, Duration::from_secs(step), "{span} s");
            assert!(
                (most - 1..=most + 1).contains(&series.points.len()),
                "{span} s: {}",
                series.points.len()
            );
            assert!(series.points.iter().all(|point| (point.accepted - 2.0).abs() < 1e-9), "{span} s");
        }
        let hour = world.history.last(Duration::from_secs(3600));
        assert_eq!(hour.points.iter().map(|point| point.gauges.backlog).max(), Some(99));
        let day = world.history.last(Duration::from_secs(86_400));
        assert_eq!(day.points.iter().filter(|point| point.gauges.backlog == 99).count(), 1);
    }

    #[test]
    fn nothing_grows_without_bound_and_a_jumping_clock_tears_nothing() {
        let world = World::new();
        for second in 0..2000 {
            world.second(1, 0);
            if second == 1500 {
                world.clock.jump_to(Timestamp::from_millis(-1_000_000));
            }
        }
        let series = world.history.last(Duration::from_secs(600));
        assert_eq!(series.points.len(), 600);
        assert!(world.history.rings.lock().iter().all(|ring| ring.points.len() <= ring.keep));
        let gaps = series.points.windows(2).map(|pair| pair[1].at.millis() - pair[0].at.millis());
        assert!(gaps.into_iter().all(|gap| gap == 1000));
    }

    #[test]
    fn how_fine_and_how_long_is_as_configured() {
        let seconds = Duration::from_secs;
        let world = World::with(HistoryConfig {
            fine_step: seconds(2),
            fine: seconds(10),
            medium_step: seconds(4),
            medium: seconds(40),
            coarse_step: seconds(20),
            coarse: seconds(100),
        });
        (0..200).for_each(|_| world.second(4, 0));
        for (span, step, points) in [(10, 2, 5), (40, 4, 10), (100, 20, 5), (1000, 20, 5)] {
            let series = world.history.last(seconds(span));
            assert_eq!((series.step, series.points.len()), (seconds(step), points), "{span} s");
            assert!(series.points.iter().all(|point| (point.accepted - 2.0).abs() < 1e-9), "{span} s");
        }
        assert_eq!(world.history.longest(), seconds(100));
    }

    #[tokio::test]
    async fn who_watches_is_told_of_every_sample() {
        let world = World::new();
        let mut watch = world.history.watch();
        world.second(0, 5);
        watch.changed().await.unwrap();
        assert_eq!(watch.borrow_and_update().as_ref().unwrap().gauges.backlog, 5);
    }
}
