//! The origin: says all the time that documents change, to whichever node, and again to another until it is answered. So of each document
//! it is known what is true.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_promises::dice::Dice;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::node::{Said, send};
use crate::bench::now;

/// Documents of each resource.
const DOCUMENTS: u64 = 12;

/// How many say something at once: each of documents of its own.
const VOICES: u64 = 4;

/// How long an answer is waited for, before another node is asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is true: by resource and document the newest revision, unless it is deleted.
type Truth = BTreeMap<usize, BTreeMap<String, Option<i64>>>;

/// The origin, which speaks until it is told to be still.
pub struct Origin {
    truth: Arc<Mutex<Truth>>,
    still: watch::Sender<bool>,
    voices: JoinSet<u64>,
}

/// What it speaks about, and to whom.
#[derive(Clone)]
pub struct Audience {
    pub resources: usize,
    pub nodes: Vec<String>,
    /// Changes in a second.
    pub rate: u32,
}

/// The url of a resource's documents, but for the last part.
pub fn prefix(resource: usize) -> String {
    format!("http://origin.example/r{resource}")
}

impl Origin {
    /// Begins to speak.
    pub fn start(audience: &Audience, dice: &Dice) -> Origin {
        let (still, stop) = watch::channel(false);
        let truth: Arc<Mutex<Truth>> = Arc::default();
        let mut voices = JoinSet::new();
        for voice in 0..VOICES {
            let (audience, truth, stop) = (audience.clone(), truth.clone(), stop.clone());
            voices.spawn(speak(voice, audience, dice.fork(voice), truth, stop));
        }
        Origin { truth, still, voices }
    }

    /// Says no more; answers how many changes were accepted.
    pub async fn be_still(&mut self) -> u64 {
        let _ = self.still.send(true);
        let mut said = 0;
        while let Some(voice) = self.voices.join_next().await {
            said += voice.unwrap_or_default();
        }
        said
    }

    /// What is true of the documents of a resource.
    pub fn truth(&self, resource: usize) -> BTreeMap<String, i64> {
        let truth = self.truth.lock().expect("nobody panics with the truth in hand");
        let of = truth.get(&resource).into_iter().flatten();
        of.filter_map(|(url, revision)| Some((url.clone(), (*revision)?))).collect()
    }
}

async fn speak(
    voice: u64,
    audience: Audience,
    mut dice: Dice,
    truth: Arc<Mutex<Truth>>,
    mut stop: watch::Receiver<bool>,
) -> u64 {
    let pause = Duration::from_secs(1) * VOICES as u32 / audience.rate.max(1);
    let (mut revision, mut said) = (0, 0);
    loop {
        tokio::select! {
            _ = stop.wait_for(|still| *still) => return said,
            () = tokio::time::sleep(pause) => {}
        }
        let resource = dice.below(audience.resources as u64) as usize;
        let document = dice.below(DOCUMENTS / VOICES) * VOICES + voice;
        let url = format!("{}/{document}", prefix(resource));
        revision += 1;
        let body = format!(r#"{{"rev":{revision},"sentAtNs":{}}}"#, now().as_nanos());
        // A delete says of which revision it is: one that arrives late deletes nothing newer.
        let of = format!("flare-revision: {revision}\r\n");
        let deletes = dice.percent(4);
        let path = format!("/documents/{url}");
        let what = match deletes {
            true => Said { method: "DELETE", path: &path, headers: &of, body: "" },
            false => Said { method: "PUT", path: &path, headers: "", body: &body },
        };
        say(&audience, &mut dice, what).await;
        said += 1;
        let mut truth = truth.lock().expect("nobody panics with the truth in hand");
        truth.entry(resource).or_default().insert(url, (!deletes).then_some(revision));
    }
}

/// Says something to one node after the other until one takes it.
async fn say(audience: &Audience, dice: &mut Dice, said: Said<'_>) {
    loop {
        let node = dice.pick(&audience.nodes).clone();
        match send(&node, said, PATIENCE).await {
            Ok(answer) if answer.status == 202 => return,
            Ok(answer) if answer.status != 503 => {
                panic!("{} {} is answered {}: {}", said.method, said.path, answer.status, answer.json);
            }
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
