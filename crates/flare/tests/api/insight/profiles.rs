//! Profiles of the running process: off by default, for administrators alone, and with what the threads really do in them.

use serde_json::json;

#[cfg(feature = "heap-profile")]
use crate::support::store_is_durable;
#[cfg(feature = "cpu-profile")]
use crate::support::until;
use crate::support::{Answer, Api, Setup};
#[cfg(any(feature = "cpu-profile", feature = "heap-profile"))]
use crate::{
    insight::pprof::{Decoded, Sample},
    support::{Receiver, Story},
};

const PROFILE: &str = "/debug/pprof/profile";
const HEAP: &str = "/debug/pprof/heap";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn on() -> Setup {
    Setup::default().with("FLARE_DEBUG_PROFILING", "true").with("FLARE_DEBUG_SAMPLE_RATE", "1000")
}

async fn get(api: Api, path: &str, headers: &[(&str, &str)]) -> Answer {
    api.send("GET", path, headers, "").await
}

#[tokio::test]
async fn they_are_off_unless_turned_on_and_the_answer_names_the_setting() {
    let flare = Setup::default().start().await;
    for path in [PROFILE, HEAP] {
        flare.api().get(path).await.refused(404, &["debug.profiling"]);
    }
    let flare = on().start().await;
    for (query, words) in [
        ("?seconds=0", &["seconds", "60", "debug.maximum-profile"][..]),
        ("?seconds=61", &["seconds", "60", "debug.maximum-profile"]),
        ("?seconds=many", &["seconds", "many"]),
        ("?format=png", &["format", "svg", "png"]),
        ("?second=1", &["second"]),
    ] {
        flare.api().get(&format!("{PROFILE}{query}")).await.refused(400, words);
    }
    for (query, words) in
        [("?format=png", &["format", "svg", "png"][..]), ("?seconds=1", &["seconds", "format"])]
    {
        flare.api().get(&format!("{HEAP}{query}")).await.refused(400, words);
    }
    for path in [PROFILE, HEAP] {
        flare.api().post(path, &json!({})).await.refused(405, &["POST"]);
    }
}

#[cfg(not(feature = "cpu-profile"))]
#[tokio::test]
async fn a_build_without_them_names_the_feature() {
    let flare = on().start().await;
    flare.api().get(PROFILE).await.refused(501, &["--features cpu-profile"]);
}

#[cfg(not(feature = "heap-profile"))]
#[tokio::test]
async fn a_build_without_those_of_the_heap_names_the_feature() {
    let flare = on().start().await;
    flare.api().get(HEAP).await.refused(501, &["--features heap-profile", "allocator"]);
}

#[tokio::test]
async fn with_a_token_nobody_gets_one_without_it() {
    let flare = on().with("FLARE_AUTH_OPERATOR_TOKEN", TOKEN).start().await;
    let profile = format!("{PROFILE}?seconds=1");
    for (path, built) in
        [(profile.as_str(), cfg!(feature = "cpu-profile")), (HEAP, cfg!(feature = "heap-profile"))]
    {
        let answer = get(flare.api(), path, &[]).await.refused(401, &["auth.operator-token", "Bearer"]);
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        let wrong = format!("Bearer {}", TOKEN.replace('0', "1"));
        get(flare.api(), path, &[("authorization", &wrong)]).await.refused(401, &["auth.operator-token"]);
        let admitted = if built { 200 } else { 501 };
        get(flare.api(), path, &[("authorization", &format!("Bearer {TOKEN}"))]).await.expect(admitted);
    }
    assert!(flare.logged(TOKEN).is_none());
    // Without a token, what a proxy forwards may come from anywhere.
    let flare = on().start().await;
    for path in [profile.as_str(), HEAP] {
        let forwarded = get(flare.api(), path, &[("x-forwarded-for", "203.0.113.9")]).await;
        forwarded.refused(403, &["auth.operator-token"]);
    }
}

#[cfg(feature = "cpu-profile")]
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_under_load_shows_what_the_delivery_threads_do() {
    let story = Story::with(on(), Receiver::start().await).await;
    for client in 0..8 {
        let url = story.receiver.url(&format!("/told/{client}"));
        story.subscribe(json!({"endpoint": {"url": url}})).await;
    }
    let api = story.api();
    let busy = async {
        for revision in 1.. {
            for document in 0..20 {
                story.put(document, revision).await;
            }
        }
    };
    let profiles = async {
        // Beside one that is being taken there is no other.
        let first = tokio::spawn(async move { api.get(&format!("{PROFILE}?seconds=4")).await });
        until("it is being taken", || async { story.flare.logged("a CPU profile is being taken") }).await;
        let refused = api.get(&format!("{PROFILE}?seconds=1&format=svg")).await;
        let refused = refused.refused(429, &["one at a time"]);
        assert!(!refused.header("retry-after").is_empty());
        let first = first.await.unwrap().expect(200);
        let svg = api.get(&format!("{PROFILE}?seconds=2&format=svg")).await.expect(200);
        let by_accept =
            get(api, &format!("{PROFILE}?seconds=1"), &[("accept", "text/html,*/*")]).await.expect(200);
        (first, svg, by_accept)
    };
    let (first, svg, by_accept) = tokio::select! {
        profiles = profiles => profiles,
        () = busy => unreachable!("it goes on"),
    };
    assert_eq!(first.header("content-type"), "application/octet-stream");
    let profile = Decoded::of(&first.body);
    assert_eq!(profile.sample_types, ["samples/count", "cpu/nanoseconds"]);
    let delivering: Vec<&Sample> =
        profile.samples.iter().filter(|s| s.thread.starts_with("flare-deliver")).collect();
    assert!(!delivering.is_empty(), "{:?}", profile.samples.iter().map(|s| &s.thread).collect::<Vec<_>>());
    assert!(
        delivering
            .iter()
            .any(|sample| sample.frames.iter().any(|frame| frame.contains("flare_core::journey"))),
        "{delivering:?}"
    );
    assert!(profile.samples.iter().all(|sample| sample.values[1] == sample.values[0] * 1_000_000));

    for picture in [svg, by_accept] {
        assert_eq!(picture.header("content-type"), "image/svg+xml");
        let text = String::from_utf8(picture.body.to_vec()).unwrap();
        assert!(
            text.starts_with("<?xml") && text.contains("<svg xmlns=\"http://www.w3.org/2000/svg\""),
            "{text}"
        );
        assert_eq!(text.matches("<g>").count(), text.matches("</title>").count());
        assert!(text.trim_end().ends_with("</svg>") && text.contains("samples in "), "{text}");
    }
}

#[cfg(feature = "cpu-profile")]
#[tokio::test(flavor = "multi_thread")]
async fn one_who_hangs_up_leaves_room_for_the_next() {
    let flare = on().start().await;
    let api = flare.api();
    let asked = tokio::spawn(async move { api.get(&format!("{PROFILE}?seconds=60")).await });
    until("it is being taken", || async { flare.logged("a CPU profile is being taken") }).await;
    asked.abort();
    until("the next one is taken", || async {
        let answer = api.get(&format!("{PROFILE}?seconds=1")).await;
        (answer.status == 200).then_some(())
    })
    .await;
}

/// The bytes that are held by stacks with this in one of their functions.
#[cfg(feature = "heap-profile")]
fn held(profile: &Decoded, function: &str) -> u64 {
    let through = |sample: &&Sample| sample.frames.iter().any(|frame| frame.contains(function));
    profile.samples.iter().filter(through).map(|sample| sample.values[1]).sum()
}

#[cfg(feature = "heap-profile")]
#[tokio::test(flavor = "multi_thread")]
async fn a_heap_profile_has_as_many_bytes_as_are_held_and_the_functions_that_took_them() {
    const SUBSCRIPTIONS: usize = 100;
    const BYTES: usize = 30_000;
    let scratch = tempfile::tempdir().unwrap();
    // One in 4 KB is noted, so that what this small node holds is in it for certain.
    let setup = on()
        .with("MALLOC_CONF", "lg_prof_sample:12")
        .with("TMPDIR", scratch.path().to_str().expect("a plain path"));
    let story = Story::with(setup, Receiver::start().await).await;
    let api = story.api();
    let take = || async {
        let answer = api.get(HEAP).await.expect(200);
        assert_eq!(answer.header("content-type"), "application/octet-stream");
        Decoded::of(&answer.body)
    };
    let before = take().await;
    for client in 0..SUBSCRIPTIONS {
        let url = story.receiver.url(&format!("/told/{client}"));
        story.subscribe(json!({"endpoint": {"url": url}, "data": {"note": "x".repeat(BYTES)}})).await;
    }
    let after = take().await;
    assert_eq!(after.sample_types, ["inuse_objects/count", "inuse_space/bytes"]);
    assert!(after.samples.iter().all(|sample| !sample.frames.is_empty() && sample.values[0] > 0));
    for allocator in ["_rjem_", "__rust_alloc", "tikv_jemallocator"] {
        assert_eq!(held(&after, allocator), 0, "{allocator} is in every stack, and tells nothing");
    }
    // Every subscription's note is somewhere in memory.
    let more = held(&after, "flare_core::").saturating_sub(held(&before, "flare_core::"));
    assert!(more > (SUBSCRIPTIONS * BYTES) as u64 * 8 / 10, "{more} bytes more");
    // What C's libraries take is in it, too.
    assert_eq!(held(&after, "sqlite3") > 0, store_is_durable());
    let threads: Vec<&str> = after.samples.iter().map(|sample| sample.thread.as_str()).collect();
    assert!(threads.iter().any(|thread| thread.starts_with("flare-")), "{threads:?}");

    let svg = api.get(&format!("{HEAP}?format=svg")).await.expect(200);
    let by_accept = get(api, HEAP, &[("accept", "text/html,*/*")]).await.expect(200);
    for picture in [svg, by_accept] {
        assert_eq!(picture.header("content-type"), "image/svg+xml");
        let text = String::from_utf8(picture.body.to_vec()).unwrap();
        assert!(text.contains("all that is held: ") && text.contains("flare::"), "{text}");
    }
    let left: Vec<_> =
        std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(feature = "heap-profile")]
#[tokio::test]
async fn an_allocator_that_was_told_to_note_nothing_is_no_reason_not_to_start() {
    let flare = on().with("MALLOC_CONF", "prof:false").start().await;
    flare.api().get(HEAP).await.refused(503, &["MALLOC_CONF=prof:true", ".cargo/config.toml"]);
    assert!(flare.logged("there will be no heap profiles").is_some());
}

#[cfg(all(feature = "cpu-profile", feature = "heap-profile"))]
#[tokio::test(flavor = "multi_thread")]
async fn beside_one_of_the_processor_there_is_none_of_the_heap() {
    let flare = on().start().await;
    let api = flare.api();
    let asked = tokio::spawn(async move { api.get(&format!("{PROFILE}?seconds=60")).await });
    until("it is being taken", || async { flare.logged("a CPU profile is being taken") }).await;
    api.get(HEAP).await.refused(429, &["one at a time"]);
    asked.abort();
    until("the heap's turn has come", || async { (api.get(HEAP).await.status == 200).then_some(()) }).await;
}
