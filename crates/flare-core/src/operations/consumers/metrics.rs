//! Metrics of consumers: how many there are, and what became of the messages that this process read. No label has a value that users
//! choose.

use flare_model::consumer::Counted;

use crate::observe::metrics::{Family, Labelled, Samples};
use crate::operations::App;

impl App {
    /// What is known of consumers.
    pub(in crate::operations) fn consumer_metrics(&self) -> Vec<Family> {
        let labelled = |name: &'static str, label: &'static str, value: f64| Labelled {
            labels: vec![(name, label)],
            value,
        };
        let (mut paused, mut elsewhere) = (0, 0);
        let mut here = [("active", 0), ("preparing", 0), ("failing", 0), ("disabled", 0)];
        for consumer in self.registry.consumers() {
            if consumer.stored.paused_since.is_some() {
                paused += 1;
                continue;
            }
            let Some(board) = self.consuming.board(consumer.id()) else {
                elsewhere += 1;
                continue;
            };
            let word = board.now(self.clock.monotonic()).condition.as_str();
            here.iter_mut().filter(|(known, _)| *known == word).for_each(|(_, count)| *count += 1);
        }
        let all = here.into_iter().chain([("paused", paused), ("elsewhere", elsewhere)]);
        let by_status = all.map(|(status, count)| labelled("status", status, f64::from(count)));
        let Counted { accepted, unchanged, stale, rejected, .. } = self.consuming.counted();
        let outcomes =
            [("accepted", accepted), ("unchanged", unchanged), ("stale", stale), ("rejected", rejected)];
        let outcomes = outcomes.map(|(outcome, count)| labelled("outcome", outcome, count as f64));
        vec![
            Family {
                name: "flare_consumers",
                help: "Consumers, by how they fare; those that other nodes read are elsewhere.",
                samples: Samples::Gauge(by_status.collect()),
            },
            Family {
                name: "flare_consumer_messages_total",
                help: "Messages of consumers that this process read, by what became of them.",
                samples: Samples::Counter(outcomes.into()),
            },
        ]
    }
}
