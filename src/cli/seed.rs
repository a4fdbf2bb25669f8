//! `seed`: URLs to a daemon, in batches, each refusal with its place and reason.

use std::collections::VecDeque;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;

use super::arguments::{Common, SeedArgs};
use super::client::{Client, Whereabouts};
use super::failure::Exit;
use super::output::Output;
use super::progress::Bar;
use super::seeds::{self, BadSeed, Given, Place, SeedFile};
use super::text::{count, counted};
use crate::admin::SeedsAnswer;
use crate::protocol::discovery::{Seed, SeedResult};

/// Seeds that are sent at once: the daemon judges them in smaller batches, several side by side.
const BATCH: usize = 10_000;

/// Refusals that are kept for the JSON object.
const REFUSALS_MAX: usize = 10_000;

/// Refusals that are printed one by one.
const SHOWN_MAX: u64 = 100;

/// What became of all seeds.
#[derive(Debug, Default, Serialize)]
struct Tally {
    accepted: u64,
    known: u64,
    refused: u64,
    /// The first ten thousand refused ones.
    results: Vec<Refusal>,
}

/// A seed that was refused.
#[derive(Debug, Serialize)]
struct Refusal {
    url: String,
    result: SeedResult,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

/// `seed`. Fails when any seed was refused.
pub(super) async fn run(args: &SeedArgs, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let client = Whereabouts::of(common, &args.remote)?.daemon().await?;
    let mut sender = Sender { client: &client, output, batch: Vec::new(), tally: Tally::default() };
    for given in seeds::of_arguments(&args.urls) {
        sender.take(given).await?;
    }
    if let Some(path) = &args.file {
        let (mut lines, length) = SeedFile::open(path).await?;
        let bar = Bar::of_bytes(length, output);
        let failed = || format!("failed to read {}", path.display());
        while let Some(given) = lines.next().await.with_context(failed)? {
            let sent = sender.take(given).await?;
            if sent {
                bar.show(lines.bytes_read(), &sender.tally.told());
            }
        }
        sender.send().await?;
        bar.clear();
    }
    sender.send().await?;
    sender.finish()
}

struct Sender<'a> {
    client: &'a Client,
    output: &'a Output,
    batch: Vec<(Place, Seed)>,
    tally: Tally,
}

impl Sender<'_> {
    /// Takes a seed; true when a batch was sent with it.
    async fn take(&mut self, given: Given) -> anyhow::Result<bool> {
        match given.seed {
            Ok(seed) => self.batch.push((given.place, seed)),
            Err(BadSeed { text, reason }) => self.refuse(given.place, text, reason),
        }
        let full = self.batch.len() >= BATCH;
        if full {
            self.send().await?;
        }
        Ok(full)
    }

    /// Sends what is there; it is durable when this returns.
    async fn send(&mut self) -> anyhow::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let (places, seeds): (VecDeque<Place>, Vec<Seed>) = self.batch.drain(..).unzip();
        let answer = self.client.post(&["v1", "seeds"], &json!({ "urls": seeds })).await;
        let answer = answer.with_context(|| match self.tally.accepted + self.tally.known {
            0 => "no seed was taken".to_owned(),
            taken => format!(
                "stopped after {} were taken; send all again, those that are in are known then",
                counted(taken, "seed")
            ),
        })?;
        let answer: SeedsAnswer = self.client.read(&answer)?;
        self.tally.accepted += answer.accepted;
        self.tally.known += answer.known;
        for (place, result) in places.into_iter().zip(answer.results) {
            match result.result {
                SeedResult::Accepted | SeedResult::Known => {}
                SeedResult::Refused => {
                    self.refuse(place, result.url, result.reason.unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    fn refuse(&mut self, place: Place, url: String, reason: String) {
        self.tally.refused += 1;
        if self.tally.refused <= SHOWN_MAX {
            self.output.alert(&format!("refused {place}: {url}: {reason}"));
        }
        if self.tally.refused == SHOWN_MAX {
            self.output.alert("further refusals are only counted");
        }
        if self.tally.results.len() < REFUSALS_MAX {
            let (argument, line) = match place {
                Place::Argument(number) => (Some(number), None),
                Place::Line(number) => (None, Some(number)),
            };
            let result = SeedResult::Refused;
            self.tally.results.push(Refusal { url, result, reason, argument, line });
        }
    }

    fn finish(self) -> anyhow::Result<Exit> {
        if self.output.is_json() {
            self.output.json(&self.tally)?;
        } else {
            self.output.line(&self.tally.told());
        }
        Ok(if self.tally.refused == 0 { Exit::Done } else { Exit::Failed })
    }
}

impl Tally {
    fn told(&self) -> String {
        let (accepted, known) = (count(self.accepted), count(self.known));
        format!("{accepted} accepted, {known} known already, {} refused", count(self.refused))
    }
}
