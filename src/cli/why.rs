//! `why`: why a URL was, will be or will not be fetched (B1).

use clap::{Args, ValueHint};

use super::arguments::{Common, Remote};
use super::client::{Source, Whereabouts};
use super::failure::Exit;
use super::offline::Offline;
use super::output::Output;
use super::text::{Side, Table, relative};
use crate::policy::why::{StepResult, Verdict, Why, no_url};
use crate::types::{CrawlUrl, Timestamp};
use crate::world::{Clock as _, TokioClock};

/// Say why a URL was, will be or will not be fetched.
#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// Any URL, known or not
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(super) url: String,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// `why`.
pub(super) async fn run(args: &WhyArgs, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let whereabouts = Whereabouts::of(common, &args.remote)?;
    let why: Why = match whereabouts.source().await? {
        Source::Daemon(client) => {
            let answer = client.get(&["v1", "why"], &[("url", args.url.clone())]).await?;
            client.read(&answer)?
        }
        Source::Directory(path) => match CrawlUrl::parse(&args.url) {
            Ok(url) => {
                let offline = Offline::open(&path, whereabouts.config()).await?;
                offline.why(&url).await?
            }
            Err(reason) => no_url(&args.url, &reason),
        },
    };
    match output.is_json() {
        true => output.json(&why)?,
        false => output.line(&sheet(&why, TokioClock::system().now())),
    }
    Ok(Exit::Done)
}

fn sheet(why: &Why, now: Timestamp) -> String {
    let mut head = Table::of_pairs();
    head.pair("url", &why.url);
    if let Some(form) = why.normalised.as_ref().filter(|form| **form != why.url) {
        head.pair("known as", form);
    }
    head.pair("verdict", verdict(why.verdict));
    head.pair("because", &why.reason);
    if let Some(at) = why.expected_at {
        head.pair("expected", relative(at, now));
    }
    let columns = [
        ("STEP", Side::Left),
        ("RESULT", Side::Left),
        ("RULE", Side::Left),
        ("VALUE", Side::Left),
        ("WHY", Side::Left),
    ];
    let mut steps = Table::with_heading(&columns);
    for step in &why.trace {
        let result = match step.result {
            StepResult::Pass => "pass",
            StepResult::Wait => "wait",
            StepResult::Refuse => "refuse",
        };
        steps.row([
            step.step.replace('_', " "),
            result.to_owned(),
            step.rule.clone().unwrap_or_default(),
            step.value.clone().unwrap_or_default(),
            step.reason.clone().unwrap_or_default(),
        ]);
    }
    format!("{}\n\n{}", head.render(), steps.render())
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fetched => "fetched",
        Verdict::Queued => "queued",
        Verdict::Waiting => "waiting",
        Verdict::Refused => "refused",
        Verdict::Dead => "dead",
        Verdict::Unknown => "unknown",
    }
}
