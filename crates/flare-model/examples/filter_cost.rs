//! What filters cost: a thousand different ones on one document of a kilobyte, which is taken apart once. Prints the
//! time per filter and change, by kind of expression and over all.
//!
//! `cargo run --release -p flare-model --example filter_cost`

#![allow(clippy::disallowed_methods, reason = "a measurement needs the machine's own time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flare_model::filter::{Filter, Inputs, Json, Purpose};
use flare_model::revision::Revision;

const FILTERS: usize = 1_000;
const CHANGES: u32 = 200;

/// A kind of expression: what it is about, and the `n`th of it.
type Kind = (&'static str, fn(usize) -> String);

fn kinds() -> Vec<Kind> {
    vec![
        ("a number", |n| format!("document.quantity > {n}")),
        ("two of three", |n| {
            format!("document.quantity > {n} && document.price < 100.5 || document.seller.country == 'C{n}'")
        }),
        ("one of many", |n| format!("document.seller.country in ['DE', 'AT', 'IT', 'FR', 'C{n}']")),
        ("a word in a list", |n| format!("'tag{n}' in document.tags")),
        ("a prefix", |n| {
            format!("document.name.startsWith('Aarau {n}') || document.field29.endsWith('{n}')")
        }),
        ("a pattern", |n| format!("document.description.matches('^[a-z ]+{n}$')")),
        ("a date", |n| {
            format!("timestamp(document.updatedAt) > timestamp('2024-01-01T00:00:00Z') + duration('{n}h')")
        }),
        ("has", |n| format!("has(document.seller.rating) && document.seller.rating.stars >= {}", n % 5)),
    ]
}

fn document() -> Json {
    let mut text = String::from(
        r#"{"quantity":7,"price":12.5,"name":"Aarau West","updatedAt":"2024-05-06T07:08:09Z","tags":["a","b","tag7"],
        "seller":{"country":"CH","rating":{"stars":4}},"description":"the quick brown fox jumps over the lazy dog""#,
    );
    for n in 0..30 {
        text.push_str(&format!(",\"field{n}\":\"value of {n}\""));
    }
    text.push('}');
    println!("a document of {} bytes", text.len());
    let text = Bytes::from(text);
    let mut rounds: Vec<Duration> = (0..1_000)
        .map(|_| {
            let begin = Instant::now();
            black_box(Json::new(black_box(text.clone())).expect("it is JSON"));
            begin.elapsed()
        })
        .collect();
    rounds.sort_unstable();
    println!("{:>20}: {:?} once per change", "taking it apart", rounds[rounds.len() / 2]);
    Json::new(text).expect("it is JSON")
}

/// The time of one evaluation: the median of many rounds over all filters, so that whatever else the machine does
/// meanwhile is left out.
fn measure(filters: &[Filter], document: &Json) -> Duration {
    let revision = Revision::Integer(1);
    let inputs = Inputs { document, revision: &revision, wildcards: &[], action: None, state: None };
    let mut rounds: Vec<Duration> = (0..CHANGES)
        .map(|_| {
            let begin = Instant::now();
            for filter in filters {
                let _ = black_box(filter.decide(black_box(&inputs)));
            }
            begin.elapsed()
        })
        .collect();
    rounds.sort_unstable();
    rounds[rounds.len() / 2] / filters.len() as u32
}

fn main() {
    let compile = |source: String| {
        Filter::compile(&source, Purpose::Membership, None).unwrap_or_else(|e| panic!("{source}: {e}"))
    };
    let document = document();
    let kinds = kinds();
    for (name, source) in &kinds {
        let filters: Vec<Filter> = (0..FILTERS).map(|n| compile(source(n))).collect();
        println!("{name:>20}: {:?}", measure(&filters, &document));
    }
    let mixed: Vec<Filter> = (0..FILTERS).map(|n| compile(kinds[n % kinds.len()].1(n))).collect();
    println!("{:>20}: {:?}", "all kinds, mixed", measure(&mixed, &document));
}
