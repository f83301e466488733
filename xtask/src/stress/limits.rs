//! The configuration of a run, drawn from its seed: limits so small that every one of them is met.

use super::dice::Dice;

/// What the node is started with.
pub struct Limits {
    /// By their names in the environment.
    pub variables: Vec<(&'static str, String)>,
    /// The same after the first restart: limits may be lowered below what stored subscriptions have.
    pub lowered: Vec<(&'static str, String)>,
    /// Whether that is so.
    pub lowers: bool,
    /// Deleted documents and old revisions are forgotten within seconds, and feeds that are in the way disabled.
    pub forgets: bool,
    /// Even revisions that nobody has got yet are forgotten.
    pub forgets_revisions: bool,
    /// How many lanes resources have, by the slot they are in.
    pub lanes: Vec<u64>,
}

impl Limits {
    pub fn draw(dice: &mut Dice) -> Limits {
        let mut variables = Vec::new();
        let mut put = |name: &'static str, value: &str| variables.push((name, value.to_owned()));
        put("FLARE_DELIVERY_THREADS", dice.word(&["1", "2", "3", "4"]));
        put("FLARE_DELIVERY_RECORD_INTERVAL", dice.word(&["0s", "0s", "1ms", "20ms", "100ms"]));
        put("FLARE_DELIVERY_WINDOW", dice.word(&["1", "2", "4", "16", "4096"]));
        put("FLARE_DELIVERY_WAITING_LIMIT", dice.word(&["1", "2", "4", "16", "1024"]));
        put("FLARE_DELIVERY_ISSUE_BLOCK", dice.word(&["1", "2", "8", "64", "4096"]));
        put("FLARE_DELIVERY_PAGE_ROWS", dice.word(&["1", "2", "7", "256"]));
        put("FLARE_DELIVERY_PAGE_BYTES", dice.word(&["64KB", "1MB"]));
        put("FLARE_DELIVERY_TAIL_BYTES", dice.word(&["64KB", "64KB", "32MB"]));
        put("FLARE_DELIVERY_STATE_BYTES", dice.word(&["64KB", "16MB"]));
        put("FLARE_DELIVERY_STATE_LIMIT", dice.word(&["1KB", "256KB", "256KB"]));
        put("FLARE_PROVIDER_EMBEDDED_COMMIT_BYTES", dice.word(&["64KB", "4MB"]));
        put("FLARE_DELIVERY_BREAKER_FAILURES", dice.word(&["0", "2", "10"]));
        put("FLARE_DELIVERY_BREAKER_PAUSE", "10ms");
        put("FLARE_DELIVERY_BREAKER_LONGEST_PAUSE", dice.word(&["20ms", "200ms"]));
        put("FLARE_DELIVERY_PASSIVE_WAITERS", dice.word(&["1", "64"]));
        put("FLARE_DELIVERY_PASSIVE_MAXIMUM_QUANTITY", dice.word(&["10", "1000"]));
        // A due time that is read from disk after the clock was set is cut to the longest lease where clients pull.
        put("FLARE_DELIVERY_PASSIVE_MAXIMUM_LEASE", "1s");
        put("FLARE_DELIVERY_PASSIVE_DEFAULT_LEASE", "1s");
        put("FLARE_HTTP_SERVER_THREADS", dice.word(&["1", "2"]));
        let connections = dice.word(&["1", "2", "8", "1024"]);
        put("FLARE_HTTP_CLIENT_CONNECTIONS", connections);
        put("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", if connections == "1024" { "64" } else { "1" });
        let forgets = dice.percent(20);
        if forgets {
            put("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s");
            put("FLARE_DOMAIN_RETENTION_FEED", dice.word(&["2s", "720h"]));
        }
        let forgets_revisions = forgets && dice.percent(50);
        if forgets_revisions {
            put("FLARE_DOMAIN_RETENTION_HISTORY", dice.word(&["1s", "168h"]));
            put("FLARE_DOMAIN_RETENTION_REVISIONS", dice.word(&["1", "5"]));
        }
        let mut lowered = variables.clone();
        let lowers = dice.percent(30);
        if lowers {
            lowered.push(("FLARE_DELIVERY_MAXIMUM_CONCURRENCY", "2".into()));
            lowered.push(("FLARE_DELIVERY_DEFAULT_CONCURRENCY", "1".into()));
            lowered.push(("FLARE_DELIVERY_MAXIMUM_TIMEOUT", "400ms".into()));
            lowered.push(("FLARE_DELIVERY_DEFAULT_TIMEOUT", "400ms".into()));
        }
        let lanes = (0..2).map(|_| *dice.pick(&[1, 1, 2, 8, 8, 64, 256])).collect();
        Limits { variables, lowered, lowers, forgets, forgets_revisions, lanes }
    }
}
