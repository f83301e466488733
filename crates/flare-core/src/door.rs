//! In: the time and the chance of the machine. Out: a [`Clock`], and an [`Entropy`] that ids, secrets and every [`Chance`]
//! are drawn from, handed to whoever needs them.
//!
//! This is the only file that may ask the machine; everything else takes what it is handed, so that a test can hand in
//! another. Clocks are not trusted: durations are measured with [`Clock::monotonic`], and what [`Clock::now`] says is
//! only for what people read and for due times, which jump with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use flare_model::time::Timestamp;
use parking_lot::Mutex;
use rand::TryRng as _;
use rand::rngs::SysRng;

/// Names a file whose content, a signed number of milliseconds, is added to the wall clock. For tests of the real
/// binary with clocks that jump.
pub const OFFSET_FILE: &str = "FLARE_TEST_CLOCK_OFFSET_FILE";

/// How long an offset that was read is believed.
const OFFSET_AGE: Duration = Duration::from_millis(50);

/// What tells the time.
pub trait Clock: Send + Sync {
    /// The wall clock, which may jump either way.
    fn now(&self) -> Timestamp;
    /// The time since the process started, which only grows.
    fn monotonic(&self) -> Duration;
}

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
    offset: Option<Offset>,
}

#[derive(Debug)]
struct Offset {
    file: PathBuf,
    /// When the file was last read, and what it said.
    read: Mutex<(Duration, i64)>,
}

impl SystemClock {
    /// The clock of this process; its monotonic time begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    pub fn of_process() -> Self {
        let file = std::env::var_os(OFFSET_FILE).filter(|file| !file.is_empty()).map(PathBuf::from);
        let offset = file.map(|file| Offset {
            read: Mutex::new((Duration::ZERO, Offset::in_file(&file).unwrap_or(0))),
            file,
        });
        Self { start: Instant::now(), offset }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => saturating_millis(since),
            Err(before) => -saturating_millis(before.duration()),
        };
        let offset = self.offset.as_ref().map_or(0, |offset| offset.at(self.monotonic()));
        Timestamp::from_millis(millis.saturating_add(offset))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn monotonic(&self) -> Duration {
        Instant::now().saturating_duration_since(self.start)
    }
}

impl Offset {
    fn at(&self, monotonic: Duration) -> i64 {
        let mut read = self.read.lock();
        if monotonic.saturating_sub(read.0) >= OFFSET_AGE {
            // A file that is missing or half written leaves the clock where it was.
            *read = (monotonic, Self::in_file(&self.file).unwrap_or(read.1));
        }
        read.1
    }

    fn in_file(file: &PathBuf) -> Option<i64> {
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    }
}

fn saturating_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A source of numbers that look random and depend on the seed alone. For jitter, not for secrets.
///
/// It is SplitMix64, whose state is a counter: threads share it without a lock.
#[derive(Debug)]
pub struct Chance {
    state: AtomicU64,
}

impl Chance {
    /// A source that gives the same numbers for the same seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    /// A source that the machine seeds.
    pub fn of_machine() -> Self {
        let [seed, ..] = os_random();
        Self::from_seed(seed)
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn unit(&self) -> f64 {
        // The 53 bits that a double holds exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number of 64 bits.
    pub fn bits(&self) -> u64 {
        self.next()
    }

    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// What ids, secrets and chances are drawn from: the machine, or a seed, so that a simulation can be repeated. Clones draw
/// from the same source.
#[derive(Clone, Debug)]
pub struct Entropy {
    /// `None`: the machine's random source, the only one that nobody can guess.
    seeded: Option<Arc<Chance>>,
}

impl Entropy {
    /// The machine's random source.
    pub fn of_machine() -> Entropy {
        Entropy { seeded: None }
    }

    /// The same draws for the same seed. Whoever knows the seed knows every secret: for simulations only.
    pub fn from_seed(seed: u64) -> Entropy {
        Entropy { seeded: Some(Arc::new(Chance::from_seed(seed))) }
    }

    /// A new id such as `res_9w3kq0v7d1m5c2xj4f8t`, see [`fresh_id`].
    pub fn fresh_id(&self, prefix: &str) -> String {
        match &self.seeded {
            None => fresh_id(prefix),
            Some(chance) => id_of(prefix, [chance.bits(), chance.bits()]),
        }
    }

    /// Bytes that nobody may guess.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        match &self.seeded {
            None => random_bytes(),
            Some(chance) => std::array::from_fn(|_| chance.bits() as u8),
        }
    }

    /// A chance with a seed of its own.
    pub fn chance(&self) -> Chance {
        match &self.seeded {
            None => Chance::of_machine(),
            Some(chance) => Chance::from_seed(chance.bits()),
        }
    }
}

/// A new id such as `res_9w3kq0v7d1m5c2xj4f8t`: the prefix and 100 bits from the machine's random source, so that
/// ids of different nodes never meet.
pub fn fresh_id(prefix: &str) -> String {
    id_of(prefix, os_random())
}

fn id_of(prefix: &str, [high, low]: [u64; 2]) -> String {
    /// Digits and small letters without i, l, o and u, which are easily misread.
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bits = u128::from(high) << 64 | u128::from(low);
    let mut id = format!("{prefix}_");
    for _ in 0..20 {
        id.push(char::from(ALPHABET[(bits & 31) as usize]));
        bits >>= 5;
    }
    id
}

/// Bytes of the machine's random source, for what nobody may guess: secrets, keys, nonces.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).expect("without the machine's random source nothing is secret");
    bytes
}

fn os_random() -> [u64; 2] {
    let next = || SysRng.try_next_u64().expect("without the machine's random source no id would be unique");
    [next(), next()]
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<(i64, Duration)>);

impl ManualClock {
    /// Lets time pass on both clocks.
    pub fn advance(&self, by: Duration) {
        let mut time = self.0.lock();
        *time = (time.0 + saturating_millis(by), time.1 + by);
    }

    /// Sets the wall clock, as an operator might.
    pub fn jump_to(&self, now: Timestamp) {
        self.0.lock().0 = now.millis();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.lock().0)
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_never_goes_back() {
        let clock = SystemClock { start: SystemClock::of_process().start, offset: None };
        let first = clock.monotonic();
        assert!(clock.monotonic() >= first);
        assert!(clock.now().millis() > 1_700_000_000_000);
    }

    #[test]
    fn an_offset_is_read_again_only_after_its_age() {
        let file = std::env::temp_dir().join(format!("flare-offset-{}", std::process::id()));
        let offset = Offset { file: file.clone(), read: Mutex::new((Duration::ZERO, 7)) };
        std::fs::write(&file, " -3600000\n").unwrap();
        assert_eq!(offset.at(OFFSET_AGE / 2), 7);
        assert_eq!(offset.at(OFFSET_AGE), -3_600_000);
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(offset.at(OFFSET_AGE * 2), -3_600_000, "a half written file changes nothing");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(offset.at(OFFSET_AGE * 3), -3_600_000, "nor does a missing one");
    }

    #[test]
    fn chance_depends_on_the_seed_alone_and_stays_within_its_bounds() {
        let (one, same, other) = (Chance::from_seed(0), Chance::from_seed(0), Chance::from_seed(1));
        assert_eq!(
            Chance::from_seed(0).next(),
            0xe220_a839_7b1d_cdaf,
            "the published first number of SplitMix64"
        );
        let numbers: Vec<f64> = (0..1000).map(|_| one.unit()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(numbers.iter().all(|number| *number == same.unit()));
        assert!(numbers.iter().any(|number| *number != other.unit()));
        let mean = numbers.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }

    #[test]
    fn fresh_ids_are_long_lower_case_and_different() {
        let id = fresh_id("res");
        assert_eq!(id.len(), "res_".len() + 20);
        assert!(
            id.strip_prefix("res_")
                .unwrap()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        );
        let ids: std::collections::BTreeSet<_> = (0..1000).map(|_| fresh_id("res")).collect();
        assert_eq!(ids.len(), 1000);
        assert_ne!(Chance::of_machine().next(), Chance::of_machine().next());
    }

    #[test]
    fn what_is_drawn_from_a_seed_is_the_same_again() {
        let draw = |entropy: Entropy| {
            let other = entropy.clone();
            (entropy.fresh_id("res"), other.bytes::<24>(), other.chance().bits(), entropy.fresh_id("res"))
        };
        let (first, again) = (draw(Entropy::from_seed(7)), draw(Entropy::from_seed(7)));
        assert_eq!(first, again);
        assert_ne!(first.0, first.3, "clones draw from one source, which goes on");
        assert_ne!(draw(Entropy::of_machine()), draw(Entropy::of_machine()));
    }

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let clock = ManualClock::default();
        clock.advance(Duration::from_secs(5));
        assert_eq!((clock.now().millis(), clock.monotonic()), (5_000, Duration::from_secs(5)));
        clock.jump_to(Timestamp::from_millis(-1));
        assert_eq!((clock.now().millis(), clock.monotonic()), (-1, Duration::from_secs(5)));
    }
}
