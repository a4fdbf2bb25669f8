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
use crate::types::{CrawlUrl, DeadLetter, HostKey, tally};
use crate::world::{Clock as _, TokioClock};

/// Items of a list that a daemon is asked for at once.
const PAGE: usize = 1000;

/// Hosts of the same name that are named beside one that is not known.
const NEAR_SHOWN_MAX: usize = 5;

/// `status`.
pub(super) async fn status(
    remote: &Remote,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let client = Whereabouts::of(common, remote)?.daemon().await?;
    let answer = client.get(&["v1", "status"], &[]).await?;
    if output.is_json() {
        output.json(&answer)?;
    } else {
        let status: Status = client.read(&answer)?;
        output.line(&sheets::status(
            &status,
            &client.place().to_string(),
            TokioClock::system().now(),
        ));
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
            let offline = offline(&path, &whereabouts).await?;
            let wanted = HostWish { state: args.state.as_deref(), domain };
            let found = offline.hosts(&wanted, max.saturating_add(1)).await?;
            listed(found, max, |(shard, id, _)| format!("{shard}-{id}"), |(_, _, line)| line)?
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
        Source::Daemon(client) => {
            match known(client.get(&["v1", "hosts", &args.key], &[]).await)? {
                Some(found) => found,
                None => {
                    let query = domain_of(&args.key).map(|domain| ("domain", domain));
                    let query: Vec<_> = query.into_iter().collect();
                    // Only a hint: without an answer the host is not known all the same.
                    let near = pages(&client, "hosts", query, PAGE).await.ok();
                    let near = near.map(|page| page.items).unwrap_or_default();
                    let keys = near.iter().filter_map(|item| item.get("host_key")?.as_str());
                    return Err(unknown_host(&args.key, keys.filter_map(HostKey::parse)));
                }
            }
        }
        Source::Directory(path) => {
            let offline = offline(&path, &whereabouts).await?;
            match offline.host(&args.key).await? {
                Some(found) => serde_json::to_value(HostState::from(found))?,
                None => {
                    let wanted = HostWish { state: None, domain: domain_of(&args.key) };
                    let near = offline.hosts(&wanted, PAGE).await?;
                    let keys = near.into_iter().map(|(_, _, line)| line.host_key);
                    return Err(unknown_host(&args.key, keys));
                }
            }
        }
    };
    show_one(&found, output, sheets::host)
}

/// The key of a host by its key or its bare name.
fn key_of(text: &str) -> Option<HostKey> {
    let key = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    HostKey::parse(&key)
}

fn domain_of(text: &str) -> Option<String> {
    key_of(text).map(|key| key.domain().to_owned())
}

/// Names what is known of the same name: a port is easily forgotten.
fn unknown_host(text: &str, near: impl Iterator<Item = HostKey>) -> anyhow::Error {
    let wanted = key_of(text);
    let same = near.filter(|key| wanted.as_ref().is_some_and(|wanted| wanted.host() == key.host()));
    let same: Vec<String> = same.take(NEAR_SHOWN_MAX).map(|key| key.to_string()).collect();
    let told = format!("the host `{text}` is not known; a port other than 80 or 443 is part of it");
    match same.is_empty() {
        true => anyhow::Error::msg(told),
        false => anyhow::anyhow!("{told}; of this name are known: {}", same.join(", ")),
    }
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
            let offline = offline(&path, &whereabouts).await?;
            let found = offline.url(&url).await?;
            found
                .map(|view| serde_json::to_value(UrlState::new(view, offline.now())))
                .transpose()?
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
    let client = Whereabouts::of(common, &args.remote)?.daemon().await?;
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
            let letters = offline(&path, &whereabouts).await?.dead(max.saturating_add(1)).await?;
            let cursor = |(shard, letter): &(_, DeadLetter)| format!("{shard}-{}", letter.entry.id);
            listed(letters, max, cursor, |(_, letter)| LetterItem::from(letter))?
        }
    };
    show_list(&page, extent, output, sheets::letters)
}

async fn dead_retry(args: &RetryArgs, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let client = Whereabouts::of(common, &args.remote)?.daemon().await?;
    let body = match &args.host {
        Some(host) => json!({ "host": host }),
        None if args.all => json!({ "all": true }),
        None => json!({ "urls": args.urls }),
    };
    let answer = client.post(&["v1", "dead-letters", "retry"], &body).await?;
    let requeued = answer.get("requeued").and_then(Value::as_u64).unwrap_or(0);
    if output.is_json() {
        output.json(&answer)?;
    } else {
        output.line(&format!("{} put back", super::text::counted(requeued, "URL")));
    }
    let named = u64::from(tally(args.urls.len()));
    if requeued >= named {
        return Ok(Exit::Done);
    }
    let what = match named {
        1 => "the URL is no dead letter".to_owned(),
        _ => format!("{} of the {named} URLs are no dead letters", named - requeued),
    };
    output.alert(&format!("{what}; `mehman dead list` shows those there are"));
    Ok(Exit::Failed)
}

async fn offline(path: &Path, whereabouts: &Whereabouts) -> anyhow::Result<Offline> {
    Offline::open(path, whereabouts.config()).await
}

/// Follows `next` until there are enough.
pub(super) async fn pages(
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

/// A list from the data: one more than wanted says that there are more, and the last one shown
/// where they begin, as a daemon says it.
fn listed<T, L: serde::Serialize>(
    mut items: Vec<T>,
    max: usize,
    cursor: impl Fn(&T) -> String,
    line: impl Fn(T) -> L,
) -> anyhow::Result<Page> {
    let more = items.len() > max;
    items.truncate(max);
    let next = items.last().filter(|_| more).map(cursor);
    let values: Result<Vec<Value>, _> =
        items.into_iter().map(|item| serde_json::to_value(line(item))).collect();
    Ok(Page { items: values?, next })
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
