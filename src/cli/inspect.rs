//! `hosts`, `host`, `urls`, `dead`: questions to a daemon, or to the data when no daemon has it;
//! and `status`, `pause`, `resume`, which only a daemon answers.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::arguments::{
    Common, DeadCommand, Extent, HostArgs, HostsArgs, Remote, RetryArgs, SwitchArgs, UrlsArgs,
};
use super::client::{Client, ClientError, Source, Whereabouts};
use super::failure::{Exit, WrongUse};
use super::offline::{HostWish, Offline};
use super::output::Output;
use super::shapes::Page;
use super::sheets;
use crate::admin::{HostState, LetterItem, Status, UrlState};
use crate::types::CrawlUrl;
use crate::world::{Clock as _, TokioClock};

/// Items of a list that a daemon is asked for at once.
const PAGE: usize = 1000;

/// `status`.
pub(super) async fn status(
    remote: &Remote,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let client = Whereabouts::of(common, remote)?.daemon()?;
    let answer = client.get(&["v1", "status"], &[]).await?;
    if output.is_json() {
        output.json(&answer)?;
    } else {
        let status: Status = client.read(&answer)?;
        output.line(&sheets::status(&status, TokioClock::system().now()));
    }
    Ok(Exit::Done)
}

/// `hosts`.
pub(super) async fn hosts(
    args: &HostsArgs,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let whereabouts = Whereabouts::of(common, &args.remote)?;
    let domain = args.domain.as_ref().map(|domain| domain.to_ascii_lowercase());
    let max = args.extent.max();
    let page = match whereabouts.source().await? {
        Source::Daemon(client) => {
            let mut query = Vec::new();
            query.extend(args.state.clone().map(|state| ("state", state)));
            query.extend(domain.map(|domain| ("domain", domain)));
            pages(&client, "hosts", query, max).await?
        }
        Source::Directory(path) => {
            let offline = offline(&path, &whereabouts)?;
            let wanted = HostWish { state: args.state.as_deref(), domain };
            listed(offline.hosts(&wanted, max.saturating_add(1)).await?, max)?
        }
    };
    show_list(&page, args.extent, output, sheets::hosts)
}

/// `host`.
pub(super) async fn host(
    args: &HostArgs,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let whereabouts = Whereabouts::of(common, &args.remote)?;
    let found = match whereabouts.source().await? {
        Source::Daemon(client) => known(client.get(&["v1", "hosts", &args.key], &[]).await)?,
        Source::Directory(path) => {
            let found = offline(&path, &whereabouts)?.host(&args.key).await?;
            found.map(|detail| serde_json::to_value(HostState::from(detail))).transpose()?
        }
    };
    let found = found.with_context(|| format!("the host `{}` is not known", args.key))?;
    show_one(&found, output, sheets::host)
}

/// `urls`.
pub(super) async fn urls(
    args: &UrlsArgs,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let url = CrawlUrl::parse(&args.url)
        .map_err(|reason| WrongUse(format!("`{}` cannot be a known URL: {reason}", args.url)))?;
    let whereabouts = Whereabouts::of(common, &args.remote)?;
    let found = match whereabouts.source().await? {
        Source::Daemon(client) => {
            known(client.get(&["v1", "urls"], &[("url", url.to_string())]).await)?
        }
        Source::Directory(path) => {
            let found = offline(&path, &whereabouts)?.url(&url).await?;
            found.map(|view| serde_json::to_value(UrlState::from(view))).transpose()?
        }
    };
    let found = found.with_context(|| format!("the URL `{url}` is not known"))?;
    show_one(&found, output, sheets::url)
}

/// `pause` and `resume`.
pub(super) async fn switch(
    order: &str,
    args: &SwitchArgs,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let client = Whereabouts::of(common, &args.remote)?.daemon()?;
    let body = args.host.as_ref().map_or_else(|| json!({}), |host| json!({ "host": host }));
    let answer = client.post(&["v1", order], &body).await?;
    if output.is_json() {
        output.json(&answer)?;
    } else {
        let whom = answer.get("host_key").and_then(Value::as_str).unwrap_or("the crawl");
        output.line(&format!("{whom} is {order}d"));
    }
    Ok(Exit::Done)
}

/// `dead list` and `dead retry`.
pub(super) async fn dead(
    command: &DeadCommand,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    match command {
        DeadCommand::List { extent, remote } => dead_list(*extent, remote, common, output).await,
        DeadCommand::Retry(args) => dead_retry(args, common, output).await,
    }
}

async fn dead_list(
    extent: Extent,
    remote: &Remote,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let whereabouts = Whereabouts::of(common, remote)?;
    let max = extent.max();
    let page = match whereabouts.source().await? {
        Source::Daemon(client) => pages(&client, "dead-letters", Vec::new(), max).await?,
        Source::Directory(path) => {
            let letters = offline(&path, &whereabouts)?.dead(max.saturating_add(1)).await?;
            listed(letters.into_iter().map(LetterItem::from).collect(), max)?
        }
    };
    show_list(&page, extent, output, sheets::letters)
}

async fn dead_retry(args: &RetryArgs, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let client = Whereabouts::of(common, &args.remote)?.daemon()?;
    let body = match &args.host {
        Some(host) => json!({ "host": host }),
        None if args.all => json!({ "all": true }),
        None => json!({ "urls": args.urls }),
    };
    let answer = client.post(&["v1", "dead-letters", "retry"], &body).await?;
    if output.is_json() {
        output.json(&answer)?;
    } else {
        let requeued = answer.get("requeued").and_then(Value::as_u64).unwrap_or(0);
        output.line(&format!("{} put back", super::text::counted(requeued, "URL")));
    }
    Ok(Exit::Done)
}

fn offline(path: &Path, whereabouts: &Whereabouts) -> anyhow::Result<Offline> {
    Offline::open(path, whereabouts.config())
}

/// Follows `next` until there are enough.
async fn pages(
    client: &Client,
    list: &str,
    query: Vec<(&str, String)>,
    max: usize,
) -> anyhow::Result<Page> {
    let mut all = Page { items: Vec::new(), next: None };
    loop {
        let mut query = query.clone();
        query.push(("limit", PAGE.min(max - all.items.len()).to_string()));
        query.extend(all.next.take().map(|cursor| ("cursor", cursor)));
        let page: Page = client.read(&client.get(&["v1", list], &query).await?)?;
        all.items.extend(page.items);
        all.next = page.next;
        if all.next.is_none() || all.items.len() >= max {
            return Ok(all);
        }
    }
}

/// A list from the data: one more than wanted says that there are more.
fn listed<T: serde::Serialize>(mut items: Vec<T>, max: usize) -> anyhow::Result<Page> {
    let more = items.len() > max;
    items.truncate(max);
    let values: Result<Vec<Value>, _> = items.into_iter().map(serde_json::to_value).collect();
    Ok(Page { items: values?, next: more.then(|| "more".to_owned()) })
}

fn show_list(
    page: &Page,
    extent: Extent,
    output: &Output,
    sheet: fn(&[Value], crate::types::Timestamp) -> serde_json::Result<String>,
) -> anyhow::Result<Exit> {
    if output.is_json() {
        output.json(page)?;
        return Ok(Exit::Done);
    }
    output.line(&sheet(&page.items, TokioClock::system().now())?);
    if page.next.is_some() {
        output.note(&format!("the first {} are shown; --all shows all", extent.limit));
    }
    Ok(Exit::Done)
}

fn show_one(
    found: &Value,
    output: &Output,
    sheet: fn(&Value, crate::types::Timestamp) -> serde_json::Result<String>,
) -> anyhow::Result<Exit> {
    if output.is_json() {
        output.json(found)?;
    } else {
        output.line(&sheet(found, TokioClock::system().now())?);
    }
    Ok(Exit::Done)
}

/// Takes "not known" for an answer.
fn known(answer: Result<Value, ClientError>) -> Result<Option<Value>, ClientError> {
    match answer {
        Err(ClientError::Refused(problem)) if problem.status == 404 => Ok(None),
        answer => answer.map(Some),
    }
}
