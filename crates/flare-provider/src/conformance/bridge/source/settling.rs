//! Behaviours of acknowledging, rejecting and keeping. What goes by positions acknowledges nothing, and is opened after the last
//! that was settled.

use std::time::Duration;

use super::super::SourceSite;
use super::super::fixture::*;

/// Not to another process either.
pub async fn what_was_acknowledged_never_comes_again(site: &dyn SourceSite) {
    site.put(numbered(10)).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.take(10).await;
    reader.settle(&taken).await.expect("it is settled");
    let mut reader = reader.reopen(site).await;
    site.put(texts(["marker"])).await;
    let rest = reader.rest(site, 1).await;
    assert_eq!(said(&rest), ["marker"]);
}

/// By another process, which knows nothing of it.
pub async fn what_was_not_acknowledged_comes_again_after_a_reopen(site: &dyn SourceSite) {
    site.put(numbered(10)).await;
    let mut reader = Reader::of(site).await;
    let first = reader.take(10).await;
    let mut reader = reader.reopen(site).await;
    let again = reader.take(10).await;
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    assert_eq!(sorted(said(&again)), sorted(said(&first)));
    reader.settle(&again).await.expect("it is settled");
}

/// The others come again, and those do not.
pub async fn a_part_of_a_batch_may_be_acknowledged(site: &dyn SourceSite) {
    site.put(numbered(6)).await;
    let mut reader = Reader::of(site).await;
    if !reader.acknowledges() {
        return;
    }
    let taken = reader.take(6).await;
    let (some, others): (Vec<_>, Vec<_>) = taken
        .into_iter()
        .partition(|message| text(message).parse::<u32>().is_ok_and(|number| number % 2 == 0));
    reader.settle(&some).await.expect("it is settled");
    let mut reader = reader.reopen(site).await;
    let mut rest = said(&reader.rest(site, others.len()).await);
    rest.sort();
    rest.dedup();
    let mut others = said(&others);
    others.sort();
    assert_eq!(others, rest);
}

/// As after an answer that was lost.
pub async fn acknowledging_twice_is_fine(site: &dyn SourceSite) {
    site.put(numbered(3)).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.take(3).await;
    for _ in 0..2 {
        reader.settle(&taken).await.expect("it is settled");
    }
    site.put(texts(["more"])).await;
    let more = reader.next(1).await;
    assert_eq!(said(&more), ["more"], "the stream is as it was");
}

/// While the stream is open.
pub async fn what_was_rejected_comes_again(site: &dyn SourceSite) {
    site.put(texts(["once more"])).await;
    let mut reader = Reader::of(site).await;
    if !reader.acknowledges() {
        return;
    }
    for _ in 0..2 {
        let taken = reader.next(1).await;
        assert_eq!(said(&taken), ["once more"]);
        reader.stream.reject(taken[0].receipt, Duration::ZERO).await.expect("it is rejected");
    }
    let taken = reader.next(1).await;
    reader.settle(&taken).await.expect("it is settled");
    assert_eq!(reader.rest(site, 0).await, []);
}

/// What is behind it comes.
pub async fn what_was_rejected_holds_nobody_up(site: &dyn SourceSite) {
    site.put(numbered(10)).await;
    let mut reader = Reader::of(site).await;
    if !reader.acknowledges() {
        return;
    }
    let mut others = 0;
    let began = stopwatch();
    while others < 9 {
        assert!(began() < PATIENCE, "{others} of nine came past the one that is rejected");
        for message in reader.next(3).await {
            if text(&message) == "0" {
                reader.stream.reject(message.receipt, LOOK).await.expect("it is rejected");
            } else {
                reader.settle(&[message]).await.expect("it is settled");
                others += 1;
            }
        }
    }
}

/// At the earliest after what was asked for.
pub async fn what_was_rejected_waits_where_that_is_possible(site: &dyn SourceSite) {
    if !site.can().delay {
        return;
    }
    site.put(texts(["later"])).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.next(1).await;
    let since = stopwatch();
    let delay = Duration::from_millis(1500);
    reader.stream.reject(taken[0].receipt, delay).await.expect("it is rejected");
    let again = reader.next(1).await;
    assert_eq!(said(&again), ["later"]);
    // Servers count in whole milliseconds, some from when they looked last.
    assert!(since() + Duration::from_millis(50) >= delay, "after {:?}", since());
}

/// From one on, over reopens and rejections.
pub async fn deliveries_are_counted_where_that_is_promised(site: &dyn SourceSite) {
    site.put(texts(["counted"])).await;
    let mut reader = Reader::of(site).await;
    let counts = reader.source.nature().counts_deliveries;
    for delivery in 1..=3 {
        let taken = reader.next(1).await;
        let said = taken[0].deliveries;
        // Whoever promises nothing may say what it knows.
        let right = if counts { said == Some(delivery) } else { said.is_none_or(|said| said == delivery) };
        assert!(right, "{said:?} at delivery {delivery}");
        if delivery == 1 || !reader.acknowledges() {
            reader = reader.reopen(site).await;
        } else {
            reader.stream.reject(taken[0].receipt, Duration::ZERO).await.expect("it is rejected");
        }
    }
}

/// For longer than any lease.
pub async fn what_is_kept_does_not_come_again(site: &dyn SourceSite) {
    site.put(texts(["kept"])).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.next(1).await;
    let lease = site.can().lease.unwrap_or(QUIET);
    let since = stopwatch();
    while since() < lease * 3 {
        reader.stream.keep().await.expect("it is kept");
        if reader.acknowledges() {
            let more = tokio::time::timeout(lease / 5, reader.stream.next(1)).await;
            assert!(more.is_err(), "after {:?}: {more:?}", since());
        } else {
            tokio::time::sleep(lease / 5).await;
        }
    }
    reader.settle(&taken).await.expect("it is settled");
    assert_eq!(reader.rest(site, 0).await, []);
}

/// Where there is a lease at all, as when whoever has it hangs.
pub async fn what_is_not_kept_comes_again(site: &dyn SourceSite) {
    if site.can().lease.is_none() {
        return;
    }
    site.put(texts(["not kept"])).await;
    let mut hanging = Reader::of(site).await;
    hanging.next(1).await;
    let mut other = Reader::of(site).await;
    let taken = other.next(1).await;
    assert_eq!(said(&taken), ["not kept"]);
    other.settle(&taken).await.expect("it is settled");
}
