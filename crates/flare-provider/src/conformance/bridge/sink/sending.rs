//! Behaviours of sending: what arrives, in which order, under which names, and what is refused.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::super::SinkSite;
use super::super::fixture::*;
use crate::bridge::{Outgoing, Sent};

/// With its id, its headers, its body and its key.
pub async fn what_was_delivered_arrives_once_as_it_was_sent(site: &dyn SinkSite) {
    let sink = site.sink().await;
    let sent = notification("order/1", 7);
    assert_eq!(send_one(&*sink, sent.clone()).await, Sent::Delivered);
    // Whatever comes twice is there before this.
    assert_eq!(send_one(&*sink, notification("order/2", 1)).await, Sent::Delivered);
    let arrived = until_arrived(site, 2).await;
    let mut of_it = arrived.into_iter().filter(|arrived| arrived.body == sent.body);
    let (Some(one), None) = (of_it.next(), of_it.next()) else { panic!("it did not arrive once") };
    let can = site.can();
    if can.ids {
        assert_eq!(one.id.as_deref(), Some(sent.id.as_str()));
    }
    if can.headers {
        for header in &sent.headers {
            assert!(one.headers.contains(header), "{header:?} is missing from {:?}", one.headers);
        }
    }
    if can.keys {
        assert!(one.key.is_some_and(|key| !key.is_empty()));
    }
}

/// Empty ones and large ones too.
pub async fn bodies_of_any_bytes_arrive_as_they_were_sent(site: &dyn SinkSite) {
    let sink = site.sink().await;
    let every: Vec<u8> = (0..=255).collect();
    let bodies = if site.can().text_only {
        texts(["\u{e9}\u{4e16}\u{1f600}".to_owned(), " ".to_owned(), "x".repeat(100_000)])
    } else {
        vec![Bytes::from(every), Bytes::new(), Bytes::from(vec![0; 100_000])]
    };
    for (number, body) in bodies.iter().enumerate() {
        let outgoing = Outgoing { body: body.clone(), ..notification("d", number) };
        assert_eq!(send_one(&*sink, outgoing).await, Sent::Delivered);
    }
    let arrived = until_arrived(site, bodies.len()).await;
    let arrived: BTreeSet<Bytes> = arrived.into_iter().map(|arrived| arrived.body).collect();
    assert_eq!(arrived, bodies.into_iter().collect());
}

/// As many answers as messages, in their order.
pub async fn a_full_batch_is_answered_one_by_one(site: &dyn SinkSite) {
    let sink = site.sink().await;
    let most = sink.most();
    let batch: Vec<_> = (0..most).map(|number| notification(&format!("d{number}"), 1)).collect();
    let sent = within(sink.send(batch.clone()), "the sink answers").await;
    assert_eq!(sent, vec![Sent::Delivered; most]);
    let arrived: BTreeSet<Bytes> = until_arrived(site, most).await.into_iter().map(|one| one.body).collect();
    assert_eq!(arrived, batch.into_iter().map(|one| one.body).collect());
    assert_eq!(within(sink.send(Vec::new()), "the sink answers").await, [], "none is fine");
}

/// Each call is answered before the next of that document is made.
pub async fn notifications_of_a_document_arrive_in_order_over_calls(site: &dyn SinkSite) {
    let sink = site.sink().await;
    let (documents, rounds) = (["a", "b", "c"], 20);
    for round in 0..rounds {
        let batch: Vec<_> = documents.iter().map(|document| notification(document, round)).collect();
        assert_eq!(within(sink.send(batch), "the sink answers").await, vec![Sent::Delivered; 3]);
    }
    let arrived = until_arrived(site, documents.len() * rounds).await;
    if !site.can().ordered {
        return;
    }
    for document in documents {
        let expected: Vec<Bytes> = (0..rounds).map(|round| notification(document, round).body).collect();
        let came = arrived.iter().map(|one| one.body.clone()).filter(|body| expected.contains(body));
        assert_eq!(came.collect::<Vec<_>>(), expected, "of {document}");
    }
}

/// Side by side, over one sink.
pub async fn many_calls_at_once_are_answered_each_for_its_own(site: &dyn SinkSite) {
    let (sink, nowhere) = (site.sink().await, site.nowhere().await);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..32 {
        let (sink, nowhere) = (sink.clone(), nowhere.clone());
        calls.spawn(async move {
            let outgoing = notification(&format!("d{number}"), number);
            match number % 4 {
                0 => matches!(send_one(&*nowhere, outgoing).await, Sent::Refused(_)),
                _ => send_one(&*sink, outgoing).await == Sent::Delivered,
            }
        });
    }
    while let Some(right) = calls.join_next().await {
        assert!(right.expect("nobody panicked"), "a call was answered with another one's answer");
    }
    assert_eq!(until_arrived(site, 24).await.len(), 24);
}

/// For good: nobody tries again.
pub async fn what_leads_nowhere_is_refused(site: &dyn SinkSite) {
    let nowhere = site.nowhere().await;
    for number in 0..3 {
        let sent = send_one(&*nowhere, notification("d", number)).await;
        assert!(matches!(&sent, Sent::Refused(why) if !why.is_empty()), "{sent:?}");
    }
    assert_eq!(send_one(&*site.sink().await, notification("d", 4)).await, Sent::Delivered);
}

/// Of one batch.
pub async fn one_that_leads_nowhere_is_refused_and_the_others_arrive(site: &dyn SinkSite) {
    let (Some(named), Some(nowhere)) = (site.named().await, site.leads_nowhere()) else { return };
    let batch = vec![notification("a", 1), notification(&nowhere, 1), notification("b", 1)];
    let sent = within(named.send(batch), "the sink answers").await;
    assert!(matches!(sent.as_slice(), [Sent::Delivered, Sent::Refused(_), Sent::Delivered]), "{sent:?}");
    let arrived: BTreeSet<Bytes> = until_arrived(site, 2).await.into_iter().map(|one| one.body).collect();
    assert_eq!(arrived, ["a", "b"].map(|document| notification(document, 1).body).into());
}

/// Whatever signs a document's name has: two documents never have one name, and one document never two.
pub async fn names_made_of_documents_are_told_apart(site: &dyn SinkSite) {
    let Some(named) = site.named().await else { return };
    let documents = [
        "a.b",
        "a/b",
        "a b",
        "a_b",
        "a%b",
        "a%2Eb",
        "*",
        ">",
        "#",
        "a.>",
        "a.*",
        "\u{e9}",
        "a\tb",
        "a\r\nb",
        "$JS.x",
        "A.B",
        ".",
        "..",
        "https://shop.example/orders/1?x=1&y=\"2\"",
    ];
    for (number, document) in documents.iter().enumerate() {
        assert_eq!(
            send_one(&*named, notification(document, number)).await,
            Sent::Delivered,
            "of {document:?}"
        );
        assert_eq!(
            send_one(&*named, notification(document, 100 + number)).await,
            Sent::Delivered,
            "of {document:?}"
        );
    }
    let arrived = until_arrived(site, documents.len() * 2).await;
    assert_eq!(arrived.len(), documents.len() * 2);
    let mut keys = BTreeSet::new();
    for (number, document) in documents.iter().enumerate() {
        let bodies = [number, 100 + number].map(|number| notification(document, number).body);
        let of_it: BTreeSet<_> =
            arrived.iter().filter(|one| bodies.contains(&one.body)).map(|one| one.key.clone()).collect();
        assert_eq!(of_it.len(), 1, "{document:?} goes by one name: {of_it:?}");
        keys.extend(of_it);
    }
    assert_eq!(keys.len(), documents.len(), "{keys:?}");
}

/// At whatever moment it is dropped.
pub async fn a_dropped_call_leaves_the_sink_usable(site: &dyn SinkSite) {
    let sink = site.sink().await;
    for turn in 0..12_usize {
        let patience = Duration::from_micros((turn * turn * 30) as u64);
        let outgoing = notification("d", turn);
        // However it ends, the same is sent again, as after any doubt.
        let _ = tokio::time::timeout(patience, sink.send(vec![outgoing.clone()])).await;
        assert_eq!(send_one(&*sink, outgoing).await, Sent::Delivered);
    }
    let arrived = until_arrived(site, 12).await;
    for turn in 0..12 {
        assert!(arrived.iter().any(|one| one.body == notification("d", turn).body), "{turn} is missing");
    }
}
