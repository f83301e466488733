//! The planned times of a retry policy, before it is saved.

use serde_json::{Value, json};

use crate::support::{Flare, Story};

#[tokio::test]
async fn the_plan_of_a_policy_is_shown_with_its_end() {
    let flare = Flare::start().await;
    let policy = json!({"quantity": 4, "interval": "10s", "ratio": 3, "immediate": 1});
    for body in [policy.clone(), json!({"retry": policy})] {
        let plan = flare.api().post("/retry/simulate", &body).await.expect(200).json();
        let after: Vec<&str> =
            plan["attempts"].as_array().unwrap().iter().map(|a| a["after"].as_str().unwrap()).collect();
        assert_eq!(after, ["0s", "0s", "10s", "40s"], "{plan}");
        let last = &plan["attempts"][3];
        assert_eq!(
            (&last["attempt"], &last["earliest"], &last["latest"]),
            (&4.into(), &"36s".into(), &"44s".into())
        );
        assert_eq!(
            (&plan["givesUp"]["attempt"], &plan["givesUp"]["reason"]),
            (&4.into(), &"quantity".into())
        );
        assert_eq!(plan["more"], false);
        // A document whose policy ends before the fifth failure does not begin the throttle by itself.
        assert_eq!(
            (&plan["throttle"]["fromAttempt"], &plan["throttle"]["longestGap"]),
            (&Value::Null, &"10s".into())
        );
        let detail = plan["throttle"]["detail"].as_str().unwrap();
        assert!(detail.contains("one request at a time") && detail.contains("several documents"), "{detail}");
    }
    let usual = flare.api().send("POST", "/retry/simulate", &[], "").await.expect(200).json();
    assert_eq!(usual["attempts"].as_array().unwrap().len(), 50, "the default policy");
    assert_eq!(usual["throttle"]["fromAttempt"], 6);
    let many = json!({"quantity": 4_000_000_000_u32, "interval": "1ms", "maxInterval": "1ms"});
    let many = flare.api().post("/retry/simulate", &many).await.expect(200).json();
    assert_eq!((many["attempts"].as_array().unwrap().len(), &many["more"]), (1000, &true.into()));
}

#[tokio::test]
async fn mistakes_are_named_as_in_a_subscription() {
    let story = Story::begin().await;
    for retry in [
        json!({"quantity": 0}),
        json!({"ttl": "0s"}),
        json!({"interval": "0s"}),
        json!({"interval": "10s", "maxInterval": "1s"}),
        json!({"ratio": 0.5}),
        json!({"ratio": "x"}),
        json!({"quantty": 1}),
        json!({"interval": "soon"}),
        json!({"progression": "wild"}),
        json!({"quantity": -1}),
        json!([1]),
        json!("x"),
    ] {
        let subscription =
            json!({"endpoint": {"url": story.receiver.url("/told")}, "delivery": {"retry": retry}});
        let created = story.api().post(&story.subscriptions(), &subscription).await.expect(400).json();
        let simulated = story.api().post("/retry/simulate", &retry).await.expect(400).json();
        assert_eq!(without_place(&created), without_place(&simulated), "{retry}");
        assert!(without_place(&simulated).contains("delivery.retry"), "{simulated}");
    }
    story.api().send("POST", "/retry/simulate", &[], "{").await.refused(400, &[]);
    story.api().get("/retry/simulate").await.refused(405, &["GET"]);
}

/// The detail, but for the line and column of the text that was sent.
fn without_place(error: &Value) -> String {
    let detail = error["error"]["detail"].as_str().unwrap();
    detail.split(" at line ").next().unwrap().to_owned()
}
