//! `exclude`: what a daemon asks for no more (R5).

use clap::{ArgGroup, Args};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::arguments::{Common, Remote};
use super::client::{Client, Whereabouts};
use super::failure::{Exit, WrongUse};
use super::inspect::pages;
use super::output::Output;
use super::text::{Side, Table, relative};
use crate::types::Timestamp;
use crate::world::{Clock as _, TokioClock};

/// Ask no more for a host, a domain or what lies below a SURT prefix, from now on.
///
/// In force at once: what is under way is cut, nothing is granted. What is stored stays, unless
/// `--purge` removes it.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["rule", "list", "lift"])))]
pub(super) struct ExcludeArgs {
    /// `host:a.example`, `domain:a.example` or `surt:example,a)/path`
    #[arg(value_name = "RULE")]
    pub(super) rule: Option<String>,
    /// Why, for those who read the list
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["list", "lift"])]
    pub(super) reason: Option<String>,
    /// Until then, as 2026-12-24T18:00:00Z; for good if not given
    #[arg(long, value_name = "TIME", conflicts_with_all = ["list", "lift"])]
    pub(super) until: Option<String>,
    /// Remove what is stored of it as well: records, index lines, page records
    #[arg(long, conflicts_with_all = ["list", "lift", "until"])]
    pub(super) purge: bool,
    /// List the exclusions in force, and how far the removals are
    #[arg(long)]
    pub(super) list: bool,
    /// Ask again for what the exclusion with this id covered
    #[arg(long, value_name = "ID")]
    pub(super) lift: Option<String>,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// An exclusion as the daemon shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    id: String,
    rule: String,
    reason: Option<String>,
    until: Option<Timestamp>,
    purge: Option<Purge>,
}

/// How far the removal of what is stored is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Purge {
    state: String,
    records: u64,
    page_records: u64,
    unreadable: u64,
    failure: Option<String>,
}

impl Purge {
    fn told(&self) -> String {
        let mut told = match (self.state.as_str(), &self.failure) {
            ("waiting", _) => "waiting".to_owned(),
            (state, failure) => {
                let why = failure.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
                format!("{state}{why}: {} records, {} pages", self.records, self.page_records)
            }
        };
        if self.unreadable > 0 {
            told.push_str(&format!(", {} files not read to their end", self.unreadable));
        }
        told
    }
}

/// `exclude`.
pub(super) async fn run(
    args: &ExcludeArgs,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    if let Some(text) = &args.until
        && Timestamp::parse_rfc3339(text).is_none()
    {
        let why = format!("`{text}` is no time such as 2026-12-24T18:00:00Z");
        return Err(WrongUse(why).into());
    }
    let client = Whereabouts::of(common, &args.remote)?.daemon().await?;
    match (&args.rule, &args.lift) {
        (Some(rule), _) => make(rule, args, &client, output).await,
        (None, Some(id)) => lift(id, &client, output).await,
        (None, None) => list(&client, output).await,
    }
}

async fn make(
    rule: &str,
    args: &ExcludeArgs,
    client: &Client,
    output: &Output,
) -> anyhow::Result<Exit> {
    let mut body = Map::from_iter([("rule".to_owned(), json!(rule))]);
    body.extend(args.reason.as_ref().map(|reason| ("reason".to_owned(), json!(reason))));
    body.extend(args.until.as_ref().map(|until| ("until".to_owned(), json!(until))));
    body.extend(args.purge.then(|| ("purge".to_owned(), json!(true))));
    let answer = client.post(&["v1", "exclusions"], &Value::Object(body)).await?;
    if output.is_json() {
        output.json(&answer)?;
        return Ok(Exit::Done);
    }
    let made: Line = client.read(&answer)?;
    let until = made.until.map(|until| format!(" until {until}")).unwrap_or_default();
    output.line(&format!("{} is excluded{until}; lift it with --lift {}", made.rule, made.id));
    if args.purge {
        output.line("what is stored of it is being removed; --list says how far that is");
    }
    Ok(Exit::Done)
}

async fn lift(id: &str, client: &Client, output: &Output) -> anyhow::Result<Exit> {
    let answer = client.delete(&["v1", "exclusions", id]).await?;
    if output.is_json() {
        output.json(&answer)?;
    } else {
        let lifted: Line = client.read(&answer)?;
        output.line(&format!("{} is excluded no more", lifted.rule));
    }
    Ok(Exit::Done)
}

async fn list(client: &Client, output: &Output) -> anyhow::Result<Exit> {
    let page = pages(client, "exclusions", Vec::new(), usize::MAX).await?;
    if output.is_json() {
        output.json(&page)?;
        return Ok(Exit::Done);
    }
    if page.items.is_empty() {
        output.line("nothing is excluded");
        return Ok(Exit::Done);
    }
    let now = TokioClock::system().now();
    let columns = ["ID", "RULE", "UNTIL", "PURGE", "REASON"].map(|heading| (heading, Side::Left));
    let mut table = Table::with_heading(&columns);
    for item in &page.items {
        let line: Line = client.read(item)?;
        let until = line.until.map_or_else(String::new, |until| relative(until, now));
        let purge = line.purge.map(|purge| purge.told()).unwrap_or_default();
        table.row([line.id, line.rule, until, purge, line.reason.unwrap_or_default()]);
    }
    output.line(&table.render());
    Ok(Exit::Done)
}
