//! `crawl`: one command that crawls until done or a limit (U1).
//!
//! It ends when nothing is in flight and the earliest wake-up lies beyond the patience. The first
//! signal stops it cleanly, the second one at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use tokio::net::TcpListener;

use super::address::{Announced, bind};
use super::arguments::{Common, CrawlArgs};
use super::failure::{Exit, Interrupted, WrongUse};
use super::output::Output;
use super::progress::CrawlProgress;
use super::report::{Ending, Report, places};
use super::seeds;
use super::settings::{self, Overrides};
use super::signals::Signals;
use crate::admin::Status;
use crate::config::{Config, Identity};
use crate::node::{Node, NodeOptions, Progress, Purpose};
use crate::protocol::discovery::{Seed, SeedResult};
use crate::types::Timestamp;
use crate::world::{Clock, TokioClock};

/// How often it is looked whether the crawl is over.
const POLL: Duration = Duration::from_millis(100);

/// Looks in a row that must find it over: actors are asked one after the other, and work that moved
/// from one that was not asked yet to one that was is seen at the next look.
const QUIET_POLLS: u32 = 3;

/// What is left may wait so long, at least.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a delay may end late, beyond what it is.
const SLACK: Duration = Duration::from_secs(5);

/// Seeds given to the node at once.
const BATCH: usize = 1000;

/// Batches under way: each waits until it is durable, one after the other would take long.
const BATCHES_AT_ONCE: usize = 8;

/// A clean stop takes no longer.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Refused seeds that are shown one by one.
const REFUSED_SHOWN_MAX: u64 = 20;

/// So many are not open at once, so it is said what is done meanwhile.
const MANY_SHARDS: u16 = 64;

/// What is to be crawled.
pub(super) struct Job {
    /// How.
    pub(super) config: Arc<Config>,
    /// From where.
    pub(super) seeds: Vec<Seed>,
    /// Where the admin interface is served, if it is.
    pub(super) listener: Option<TcpListener>,
    /// How long hosts are waited for.
    pub(super) patience: Duration,
}

/// `crawl`.
pub(super) async fn run(
    args: &CrawlArgs,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let config = configure(args, common)?;
    let seeds = seeds::gather(&args.urls, args.seeds.as_deref()).await?;
    if seeds.is_empty() && !config.data.dir.join("VERSION").is_file() {
        return Err(nothing_to_crawl(&config.data.dir).into());
    }
    let listener = match args.admin_listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let patience = args.patience.unwrap_or_else(|| patience(&config));
    let job = Job { config: Arc::new(config), seeds, listener, patience };
    let report = Box::pin(drive(job, output)).await?;
    report.print(output)?;
    Ok(report.exit())
}

/// The patience that nobody gave: a delay that is the crawl's own is no reason to give up.
fn patience(config: &Config) -> Duration {
    let politeness = config.politeness.for_everyone();
    let own = politeness.min_delay.max(politeness.per_domain_min_delay);
    PATIENCE.max(own.mul_f64(1.0 + politeness.jitter) + SLACK)
}

/// Lays the options over the configuration; refuses to crawl without a contact (R5).
fn configure(args: &CrawlArgs, common: &Common) -> anyhow::Result<Config> {
    let mut overrides = Overrides::default();
    if let Some(contact) = &args.contact {
        if !Identity::is_contact(contact) {
            return Err(no_contact(contact).into());
        }
        overrides.set(Identity::contact_key(contact), contact);
    }
    overrides.set_some("scope.mode", args.scope.as_ref());
    overrides.set_some("scope.max_pages", args.max_pages);
    overrides.set_some("scope.max_depth", args.max_depth);
    overrides.set_some("admin.listen", args.admin_listen);
    // A crawl has an end, and pages that fall due again would have none.
    overrides.set("recrawl.enabled", false);
    let config = settings::load_to_crawl(common.config.as_deref(), common, &overrides)?;
    config.crawlable()?;
    Ok(config)
}

fn no_contact(contact: &str) -> WrongUse {
    WrongUse(format!(
        "--contact: `{contact}` is no way to reach you; wanted a URL such as \
         https://example.org/crawler or a mail address such as you@example.org"
    ))
}

fn nothing_to_crawl(data: &Path) -> WrongUse {
    let data = data.display();
    WrongUse(format!(
        "there is nothing to crawl: no seed was given and {data} knows no URL; give a URL, such as \
         `mehman crawl https://example.org/ --contact you@example.org`"
    ))
}

/// Crawls to the end.
pub(super) async fn drive(job: Job, output: &Output) -> anyhow::Result<Report> {
    let mut signals = Signals::listen().context("failed to listen for signals")?;
    let clock = TokioClock::system();
    let started = clock.now();
    let options =
        NodeOptions { config: Arc::clone(&job.config), purpose: Purpose::Crawl, reloader: None };
    if job.config.frontier.shards >= MANY_SHARDS {
        output.note(&format!("opening {} shards", job.config.frontier.shards));
    }
    let mut node = tokio::select! {
        biased;
        _ = signals.next() => return Err(Interrupted.into()),
        node = Node::start(options) => node.context("the crawler did not start")?,
    };
    let Job { config, seeds, listener, patience } = job;
    let base = node.status().await;
    let announced = listener.map(|listener| serve_admin(&mut node, listener, &config, output));
    // A failure from here on stops the crawler in order before it is told.
    let (announced, ready) = match announced.transpose() {
        Ok(announced) => (announced, Ok(())),
        Err(failure) => (None, Err(failure)),
    };
    let watched = async {
        ready?;
        let mut progress = CrawlProgress::new(output, clock.now());
        give(&node, seeds, &progress, &config.data.dir).await?;
        anyhow::Ok(watch(&node, patience, &clock, &mut progress).await)
    };
    let ended = tokio::select! {
        biased;
        _ = signals.next() => {
            output.note("stopping; once more stops at once");
            Ok(Ending::Interrupted)
        }
        ended = watched => ended,
    };
    let finish = async {
        let last = (node.progress().await, clock.now());
        let stopped = node.stop(STOP_LIMIT).await.context("the crawler did not stop in order");
        (last, stopped)
    };
    let ((last, looked_at), stopped) = tokio::select! {
        biased;
        _ = signals.next() => return Err(Interrupted.into()),
        finished = finish => finished,
    };
    announced.map_or(Ok(()), Announced::withdraw)?;
    let ended = ended?;
    let status = stopped?;
    Ok(Report {
        ended,
        status: since(&base, status),
        waiting: last.waiting,
        patience,
        goes_on: true,
        took: clock.now().since(started),
        at: looked_at,
        places: places(&config),
    })
}

fn serve_admin(
    node: &mut Node,
    listener: TcpListener,
    config: &Config,
    output: &Output,
) -> anyhow::Result<Announced> {
    let announced = Announced::announce(&listener, &config.data.dir, output)?;
    node.serve_admin(listener);
    Ok(announced)
}

/// Gives the seeds in batches; durable when it returns.
async fn give(
    node: &Node,
    seeds: Vec<Seed>,
    progress: &CrawlProgress<'_>,
    data: &Path,
) -> anyhow::Result<()> {
    let (mut refused, mut taken) = (0u64, 0u64);
    let mut rest = seeds.into_iter();
    let batches = std::iter::from_fn(|| {
        let batch: Vec<Seed> = rest.by_ref().take(BATCH).collect();
        (!batch.is_empty()).then(|| node.seed(batch))
    });
    let mut answered = stream::iter(batches).buffered(BATCHES_AT_ONCE);
    while let Some(answers) = answered.next().await {
        for answer in answers.context("the seeds were not taken")? {
            match answer.result {
                SeedResult::Accepted | SeedResult::Known => taken += 1,
                SeedResult::Refused => {
                    refused += 1;
                    if refused <= REFUSED_SHOWN_MAX {
                        let reason = answer.reason.unwrap_or_default();
                        progress.note(&format!("seed refused: {}: {reason}", answer.url));
                    }
                }
            }
        }
    }
    if refused > 0 && taken == 0 {
        return Err(WrongUse("every seed was refused, so there is nothing to crawl".into()).into());
    }
    if taken == 0 && node.status().await.urls.known == 0 {
        return Err(nothing_to_crawl(data).into());
    }
    Ok(())
}

/// Shows progress until the crawl is over.
async fn watch(
    node: &Node,
    patience: Duration,
    clock: &impl Clock,
    shown: &mut CrawlProgress<'_>,
) -> Ending {
    let mut quiet = 0;
    loop {
        let found = node.progress().await;
        let now = clock.now();
        match over(&found, now, patience) {
            Some(ending) if quiet + 1 >= QUIET_POLLS => return ending,
            Some(_) => quiet += 1,
            None => quiet = 0,
        }
        if shown.is_due(now) {
            shown.show(&node.status().await, now);
        }
        clock.sleep(POLL).await;
    }
}

/// Whether nothing is left to do within the patience.
fn over(found: &Progress, now: Timestamp, patience: Duration) -> Option<Ending> {
    if found.busy || found.in_flight > 0 {
        None
    } else if found.page_cap_reached {
        Some(Ending::PageCap)
    } else {
        match found.next_wake {
            Some(at) if at <= now + patience => None,
            None if found.waiting.is_empty() => Some(Ending::Done),
            Some(_) | None => Some(Ending::Waiting),
        }
    }
}

/// The figures of this run: what was counted before it is taken off.
fn since(base: &Status, mut status: Status) -> Status {
    status.pages = status.pages.saturating_sub(base.pages);
    status.bytes = status.bytes.saturating_sub(base.bytes);
    for (outcome, number) in &mut status.outcomes {
        *number = number.saturating_sub(base.outcomes.get(outcome).copied().unwrap_or(0));
    }
    status.outcomes.retain(|_, number| *number > 0);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::shard::ParkedHost;
    use crate::types::HostKey;

    #[test]
    fn a_crawl_is_over_when_nothing_comes_within_the_patience() {
        let (now, patience) = (Timestamp::from_secs(100), Duration::from_secs(60));
        let idle = Progress::default();
        let parked = ParkedHost {
            host_key: HostKey::parse("http://a.test").unwrap(),
            reason: "paused by an operator".into(),
            until: None,
            queued: 1,
            needs_operator: true,
        };
        let at = |seconds| Some(Timestamp::from_secs(seconds));
        for (found, expected) in [
            (idle.clone(), Some(Ending::Done)),
            (Progress { in_flight: 1, ..idle.clone() }, None),
            (Progress { busy: true, ..idle.clone() }, None),
            (Progress { next_wake: at(50), ..idle.clone() }, None),
            (Progress { next_wake: at(160), ..idle.clone() }, None),
            (Progress { next_wake: at(161), ..idle.clone() }, Some(Ending::Waiting)),
            (Progress { waiting: vec![parked], ..idle.clone() }, Some(Ending::Waiting)),
            (
                Progress { next_wake: at(100), page_cap_reached: true, ..idle.clone() },
                Some(Ending::PageCap),
            ),
            (Progress { in_flight: 1, page_cap_reached: true, ..idle.clone() }, None),
        ] {
            assert_eq!(over(&found, now, patience), expected, "{found:?}");
        }
    }

    #[test]
    fn a_crawl_is_as_patient_as_its_own_delays_ask() {
        assert_eq!(patience(&Config::default()), PATIENCE);
        let slow = "[politeness]\nper_domain_min_delay = \"70s\"\n";
        let slow = Config::from_toml(slow, "test").unwrap();
        assert_eq!(patience(&slow), Duration::from_secs(82));
    }

    #[test]
    fn options_win_and_recrawl_is_off() {
        let args = CrawlArgs {
            urls: Vec::new(),
            contact: Some("me@example.org".into()),
            scope: Some("domain".into()),
            max_pages: Some(7),
            max_depth: Some(3),
            seeds: None,
            patience: None,
            admin_listen: None,
        };
        let common = Common { data: Some("there".into()), ..Common::default() };
        let config = configure(&args, &common).unwrap();
        assert_eq!(config.identity.contact_email.as_deref(), Some("me@example.org"));
        assert_eq!(config.scope.mode.as_str(), "domain");
        assert_eq!((config.scope.max_pages, config.scope.max_depth), (Some(7), 3));
        assert_eq!(config.data.dir, Path::new("there"));
        assert!(!config.recrawl.enabled);
        let args = CrawlArgs { contact: Some("me".into()), ..args };
        let refused = configure(&args, &common).unwrap_err().to_string();
        assert!(refused.starts_with("--contact: `me`"), "{refused}");
    }
}
