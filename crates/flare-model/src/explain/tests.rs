//! A table of cases: evidence, and what is made of it.

use super::*;
use crate::document::Row;
use crate::duration::HumanDuration;
use crate::feed::{Action, Flight, Left, Note, Standing, State, Trouble};
use crate::ids::{Ordinal, Seq};
use crate::subscription::{PauseDraft, PausedBy};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn glimpse() -> Glimpse {
    Glimpse {
        held: true,
        doubt: false,
        doubted: false,
        unheard: false,
        dead: false,
        letter: None,
        noted: false,
        untold: false,
        note: None,
        open: None,
        again: false,
        waiting: None,
        unread: false,
        to_tell: true,
        sweep: None,
        to_sweep: false,
        since: None,
        life: 0,
        cursor: Seq(10),
        position: Seq(10),
    }
}

fn trouble(attempts: u32) -> Trouble {
    Trouble {
        attempts,
        first_attempt_at: at(1_000),
        last_attempt_at: at(5_000),
        action: Action::Update,
        status: Some(503),
        error: None,
        response: None,
        unheard: false,
        has: None,
        lent: None,
    }
}

fn waiting(replay: u64, trouble: Option<Trouble>) -> Option<Standing> {
    Some(Standing {
        ordinal: Ordinal(0),
        seq: Seq(7),
        doubt: false,
        state: State::Waiting { due: at(12_000) },
        replay,
        trouble: trouble.map(Box::new),
    })
}

/// A document that the client has.
fn evidence() -> Evidence {
    let resource = ResourceId::new("res_a");
    Evidence {
        now: at(10_000),
        url: "http://h/users/1".into(),
        resource: resource.clone(),
        owner: Some(Candidate { id: resource, endpoint: "http://h/users/{id}".into() }),
        fitting: Vec::new(),
        document: Some(Known {
            revision: Revision::Integer(3),
            row: Row { ordinal: Ordinal(0), seq: Seq(7), born: Seq(1), before: Seq(0), deleted: false },
            lane: 2,
            updated_at: at(4_000),
        }),
        filter: None,
        when: None,
        glimpse: Some(glimpse()),
        lately: Lately { has: Some("1".into()), ..Lately::default() },
        subscription: Settings {
            created_at: at(0),
            start: Start::Now,
            paused_since: None,
            pause: None,
            disabled: None,
            rate_limit: None,
            passive: false,
        },
        condition: Condition { in_flight: 1, room: 10, ..Condition::default() },
    }
}

/// A note of this kind about the newest change.
fn noted(evidence: &mut Evidence, left: Left) {
    let glimpse = evidence.glimpse.as_mut().unwrap();
    (glimpse.noted, glimpse.untold) = (true, !left.lags());
    let story = left.lags().then(|| Box::new(trouble(2)));
    glimpse.note = Some(Box::new(Note { ordinal: Ordinal(0), seq: Seq(7), left, story }));
}

fn considered(result: Result<bool, String>) -> Considered {
    let seen = vec![("document.stock".to_owned(), "49".to_owned())];
    Considered { expression: "document.stock < 10".into(), seen, result }
}

type Change = fn(&mut Evidence);

#[test]
fn every_verdict_has_its_case_and_its_words() {
    let cases: &[(Verdict, Change, &[&str])] = &[
        (
            Verdict::Delivered,
            |_| {},
            &[
                "belongs to resource res_a",
                "at revision 3, change 7 of lane 2",
                "has the newest",
                "cursor is at 10",
            ],
        ),
        (
            Verdict::NoMatch,
            |e| (e.owner, e.document, e.glimpse) = (None, None, None),
            &["no resource's endpoint fits"],
        ),
        (
            Verdict::NoMatch,
            |e| e.owner.as_mut().unwrap().id = ResourceId::new("res_b"),
            &["belongs to resource res_b", "hears nothing"],
        ),
        (Verdict::Unknown, |e| (e.document, e.glimpse) = (None, None), &["does not know this document"]),
        (
            Verdict::InFlight,
            |e| {
                e.glimpse.as_mut().unwrap().open =
                    Some(Flight { seq: Seq(7), action: Action::Update, replay: 4 })
            },
            &["in flight: update, change 7, for replay rpl_4"],
        ),
        (
            Verdict::Waiting,
            |e| e.glimpse.as_mut().unwrap().waiting = waiting(0, Some(trouble(3))),
            &["3 attempts failed", "answered 503", "due in 2s"],
        ),
        (
            Verdict::Waiting,
            |e| e.glimpse.as_mut().unwrap().waiting = waiting(5, None),
            &["replay rpl_5 asks for it"],
        ),
        (
            Verdict::InFlight,
            |e| {
                let g = e.glimpse.as_mut().unwrap();
                g.open = Some(Flight { seq: Seq(7), action: Action::Update, replay: 0 });
                g.waiting = waiting(0, Some(trouble(2)));
                g.waiting.as_mut().unwrap().state = State::Leased { until: at(13_000) };
            },
            &["on a lease that ends in 3s, attempt 2"],
        ),
        (Verdict::Waiting, |e| e.glimpse.as_mut().unwrap().again = true, &["decided again"]),
        (
            Verdict::Waiting,
            |e| {
                let g = e.glimpse.as_mut().unwrap();
                (g.unread, g.position, g.cursor) = (true, Seq(5), Seq(5));
            },
            &["read up to change 5", "yet to come to 7"],
        ),
        (
            Verdict::Paused,
            |e| {
                e.glimpse.as_mut().unwrap().waiting = waiting(0, None);
                e.subscription.paused_since = Some(at(9));
            },
            &["is paused"],
        ),
        (
            Verdict::Paused,
            |e| {
                e.glimpse.as_mut().unwrap().waiting = waiting(0, None);
                e.subscription.paused_since = Some(at(9));
                let draft = PauseDraft { reason: Some("their migration".into()) };
                e.subscription.pause = draft.pause(PausedBy::Api).ok().map(Box::new);
            },
            &["is paused through the API: their migration"],
        ),
        (
            Verdict::Disabled,
            |e| {
                e.glimpse.as_mut().unwrap().waiting = waiting(0, None);
                e.subscription.disabled =
                    Some(Disabled { since: at(9), reason: "410".into(), start_over: false });
            },
            &["disabled: 410"],
        ),
        (Verdict::Delivered, |e| e.subscription.paused_since = Some(at(9)), &["is paused"]),
        (
            Verdict::GaveUp,
            |e| {
                let g = e.glimpse.as_mut().unwrap();
                g.dead = true;
                g.letter = waiting(0, Some(trouble(50))).map(Box::new);
            },
            &["50 attempts failed", "dead letter"],
        ),
        (Verdict::InDoubt, |e| e.glimpse.as_mut().unwrap().doubt = true, &["is unknown"]),
        (
            Verdict::InDoubt,
            |e| {
                noted(e, Left::Dropped);
                e.glimpse.as_mut().unwrap().doubt = true;
                e.document.as_mut().unwrap().row.deleted = true;
            },
            &["is unknown", "the delete was given up after 2 attempts", "its dead letter was dropped"],
        ),
        (
            Verdict::NotHeld,
            |e| e.glimpse.as_mut().unwrap().held = false,
            &["does not have it", "why is not kept"],
        ),
        (
            Verdict::Discarded,
            |e| noted(e, Left::Discarded),
            &["has revision 1 of 3, revision 3 was discarded with 503 at 1970-01-01T00:00:05"],
        ),
        (
            Verdict::Discarded,
            |e| {
                noted(e, Left::Discarded);
                e.glimpse.as_mut().unwrap().held = false;
            },
            &["has nothing of it, revision 3 was discarded with 503"],
        ),
        (
            Verdict::Discarded,
            |e| {
                noted(e, Left::Discarded);
                e.document.as_mut().unwrap().row.deleted = true;
            },
            &["has revision 1 of a deleted document, the delete was discarded with 503"],
        ),
        (
            Verdict::Dropped,
            |e| noted(e, Left::Dropped),
            &["was given up after 2 attempts, the last answered 503", "its dead letter was dropped"],
        ),
        (
            Verdict::HeldBack,
            |e| {
                noted(e, Left::HeldBack);
                e.when = Some(considered(Ok(false)));
            },
            &["`document.stock < 10`, document.stock is 49: false", "`when` holds it back"],
        ),
        (
            Verdict::Waiting,
            |e| {
                e.glimpse.as_mut().unwrap().waiting = waiting(0, None);
                e.subscription.passive = true;
                e.condition.room = 0;
            },
            &["the subscription is passive", "until its client asks"],
        ),
        (
            Verdict::Waiting,
            |e| {
                e.glimpse.as_mut().unwrap().waiting = waiting(0, None);
                let slow = Some(60);
                e.condition.in_line =
                    Some(InLine { host: Some("http://c:80".into()), open: 64, most: 64, slow });
            },
            &["waits for a connection to host http://c:80: 64 of 64 in use, 60 by slow clients"],
        ),
        (
            Verdict::NotHeld,
            |e| {
                e.glimpse.as_mut().unwrap().held = false;
                e.subscription.created_at = at(4_001);
            },
            &["not changed since the subscription was created"],
        ),
        (
            Verdict::NotHeld,
            |e| {
                let g = e.glimpse.as_mut().unwrap();
                (g.held, g.to_tell) = (false, false);
                e.document.as_mut().unwrap().row.deleted = true;
            },
            &["deleted at revision 3", "which is right"],
        ),
    ];
    for (expected, change, words) in cases {
        let mut evidence = evidence();
        change(&mut evidence);
        let explained = explain(&evidence);
        assert_eq!(explained.verdict, *expected, "{:#?}", explained.facts);
        let all: String = explained.facts.iter().map(|fact| format!("{}\n", fact.detail)).collect();
        for word in *words {
            assert!(all.contains(word), "`{word}` is not in:\n{all}");
        }
    }
}

#[test]
fn facts_come_in_the_order_in_which_flare_looks() {
    let mut evidence = evidence();
    evidence.glimpse.as_mut().unwrap().waiting = waiting(0, Some(trouble(6)));
    evidence.subscription.paused_since = Some(at(1));
    let interval = HumanDuration(Duration::from_secs(1));
    evidence.subscription.rate_limit = Some(RateLimit { quantity: 5, interval, burst: None });
    evidence.condition = Condition {
        in_flight: 1,
        room: 1,
        failures: 6,
        fares: Fares { failing_since: Some(at(2)), failed_at: Some(at(5)), well_at: Some(at(1)) },
        throttle: Some(Throttle { since: at(3), next: Some(at(20_000)) }),
        silent_host: Some(("http://c:81".into(), Duration::from_millis(2_500))),
        rests_for: Duration::from_secs(9),
        rate_wait: Duration::from_millis(40),
        sweeping: true,
        in_line: None,
    };
    let facts = explain(&evidence).facts;
    let kinds: Vec<Kind> = facts.iter().map(|fact| fact.fact).collect();
    use Kind::*;
    assert_eq!(
        kinds,
        [
            Pattern, Revision, Standing, Standing, Attempt, Attempt, Pause, Breaker, Breaker, Rate, Rate,
            Rate, Rate
        ]
    );
    let words = |kind: Kind| -> String {
        facts.iter().filter(|fact| fact.fact == kind).map(|fact| fact.detail.as_str()).collect()
    };
    assert!(words(Breaker).contains("http://c:81 does not answer") && words(Breaker).contains("in 2.5s"));
    assert!(words(Rate).contains("too much") && words(Rate).contains("in 9s"), "{}", words(Rate));
    assert!(
        words(Breaker).contains("6 attempts")
            && words(Breaker).contains(&format!("one request at a time since {}", at(3)))
            && words(Breaker).contains(&format!("the next at {}", at(20_000))),
        "{}",
        words(Breaker)
    );
    assert!(words(Rate).contains("5 in 1s") && words(Rate).contains("in 40ms"), "{}", words(Rate));
    assert!(facts.iter().any(|fact| fact.detail.contains("waits for one of them to end")));
    assert_eq!(facts[1].at, Some(at(4_000)));
    assert_eq!(facts[5].at, Some(at(12_000)), "when the next attempt is due");
}

#[test]
fn the_less_specific_endpoints_are_named() {
    let mut evidence = evidence();
    evidence.fitting = vec![Candidate { id: ResourceId::new("res_c"), endpoint: "http://h/{a}/{b}".into() }];
    let detail = explain(&evidence).facts.remove(0).detail;
    assert!(detail.contains("most specific") && detail.contains("res_c (http://h/{a}/{b})"), "{detail}");
}

#[test]
fn one_line_says_why() {
    let evidence = evidence();
    let known = evidence.document.as_ref().unwrap();
    let settings = &evidence.subscription;
    let line = |change: fn(&mut Glimpse)| {
        let mut glimpse = glimpse();
        change(&mut glimpse);
        let (filter, when, has) = (None, None, Some("1"));
        let condition = &Condition::default();
        why(&Gist { known, glimpse: &glimpse, settings, filter, when, has, condition })
    };
    assert_eq!(line(|_| {}), "delivered");
    assert!(
        line(|g| g.waiting = waiting(0, Some(trouble(2))))
            .starts_with("waiting for retry at 1970-01-01T00:00:12")
    );
    assert!(line(|g| g.waiting = waiting(9, None)).contains("rpl_9"));
    assert!(line(|g| (g.unread, g.position) = (true, Seq(4))).contains("3 changes"));
    assert!(line(|g| g.dead = true).contains("dead letter"));
}

#[test]
fn what_the_filter_excludes_is_filtered_unless_the_client_has_it() {
    let excluded = |held: bool, unread: bool| {
        let to_tell = held;
        let glimpse = Glimpse { held, unread, to_tell, ..glimpse() };
        explain(&Evidence { filter: Some(considered(Ok(false))), glimpse: Some(glimpse), ..evidence() })
    };
    for unread in [false, true] {
        let explanation = excluded(false, unread);
        assert_eq!(explanation.verdict, Verdict::Filtered);
        let fact =
            explanation.facts.iter().find(|fact| fact.fact == Kind::Filter).expect("a fact of the filter");
        assert!(fact.detail.contains("excludes"), "{}", fact.detail);
        assert!(
            fact.detail.contains("`document.stock < 10`, document.stock is 49: false"),
            "{}",
            fact.detail
        );
        assert!(explanation.facts.iter().all(|fact| !fact.detail.contains("dropped")), "nobody dropped it");
    }
    assert_eq!(excluded(true, true).verdict, Verdict::Waiting, "it is about to be told that it left");
    let mut unclear = Evidence { filter: Some(considered(Err("no such field".into()))), ..evidence() };
    assert_eq!(explain(&unclear).verdict, Verdict::Delivered, "it was told before the filter could not say");
    noted(&mut unclear, Left::Unclear);
    assert_eq!(explain(&unclear).verdict, Verdict::Filtered);
}

#[test]
fn an_answer_is_no_lost_outcome() {
    let mut evidence = evidence();
    let glimpse = evidence.glimpse.as_mut().unwrap();
    (glimpse.held, glimpse.doubt, glimpse.doubted) = (false, true, true);
    glimpse.waiting = waiting(0, Some(Trouble { action: Action::Create, ..trouble(1) }));
    let told = |evidence: &Evidence| {
        let facts = explain(evidence).facts;
        facts
            .into_iter()
            .filter(|fact| fact.fact == Kind::Standing)
            .map(|fact| fact.detail)
            .collect::<String>()
    };
    assert!(told(&evidence).contains("unknown: it answered 503 to the create"), "{}", told(&evidence));
    let lost = Trouble { action: Action::Create, status: None, unheard: true, ..trouble(1) };
    evidence.glimpse.as_mut().unwrap().waiting = waiting(0, Some(lost));
    assert!(told(&evidence).contains("a create was sent and not answered"), "{}", told(&evidence));
}
