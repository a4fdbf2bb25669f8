//! The lives of a simulated node: started, crawling, killed at some step or stopped, started again
//! on what had become durable, until all is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::audit;
use super::checkers::Seen;
use super::clock::moved;
use super::draw::below;
use super::faults::{FAULTS_FOR, Fault};
use super::power::{Power, Step};
use super::taps;
use super::weather::trouble_since;
use super::world::{Kept, Life};
use super::{SimulationError, settings};
use crate::config::Config;
use crate::node::{Node, NodeOptions, Purpose};
use crate::protocol::discovery::Seed;
use crate::protocol::{ShardMsg, ask};
use crate::types::Timestamp;

/// Longer than any wait of the simulated web and any delay between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(3 * 3600);
/// How often the crawl is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often at least what is inside is looked at, in milliseconds.
const LOOK_INSIDE_MS: u64 = 120_000;
/// So many quiet looks in a row make an end: stages are asked one after the other.
const QUIET_LOOKS: u32 = 3;
/// Lives that are cut short in one run.
const CUT_MAX: u64 = 10;
/// Starts that fail because the store does, one after the other; each takes a moment.
const FAILED_STARTS_MAX: u64 = 200;
/// From here on every robots.txt that will ever answer has been asked for once more.
const SETTLED_AFTER: Duration = Duration::from_secs(90 * 60);
/// How long a clean stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Seeds that are not taken are given again after this.
const SEED_AGAIN: Duration = Duration::from_secs(5);

/// How a life ended.
enum Death {
    /// The power failed.
    Crashed(Timestamp),
    /// It was stopped before all was done.
    Stopped(Timestamp),
    /// It did not come to life: its store cannot be opened.
    Stillborn(Timestamp),
    /// All is done, or the time is over.
    Over { at: Timestamp, pages: u64, is_done: bool },
}

/// How a run ended.
pub(super) struct Over {
    pub(super) at: Timestamp,
    pub(super) lives: u64,
    pub(super) pages: u64,
    pub(super) is_done: bool,
}

/// What is to become of a life.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It may live to the end.
    Live,
    /// The power fails at this step of this kind.
    Fail(Step, u64),
    /// The power fails so long after this was seen.
    FailAfter(Seen, Duration),
    /// It is stopped after this time.
    Stop(Duration),
}

/// Lives from `start` until all is done, at most until `deadline`.
pub(super) fn run(
    kept: &Kept,
    start: Timestamp,
    deadline: Timestamp,
) -> Result<Over, SimulationError> {
    let config = Arc::new(settings::config()?);
    let (mut now, mut ahead_ms) = (start, 0);
    let (mut cut, mut stillborn) = (0, 0);
    for number in 0.. {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(SimulationError::Runtime)?;
        let fate = if cut < CUT_MAX { fate(kept, number, now.since(start)) } else { Fate::Live };
        let death = runtime.block_on(Box::pin(async {
            let life = kept.life(number, now, fate.power());
            if life.ahead_ms != ahead_ms {
                kept.faults.count(Fault::Clock);
                kept.history.clock_was_set(now, ahead_ms, life.ahead_ms);
            }
            ahead_ms = life.ahead_ms;
            live(kept, Arc::clone(&config), &life, fate, deadline).await
        }));
        // With it all tasks of this life are gone, wherever they stood.
        drop(runtime);
        now = match death? {
            Death::Crashed(at) => {
                kept.faults.count(Fault::Crash);
                kept.snapshots.crash(kept.seed ^ number);
                cut += 1;
                at + down(kept, number)
            }
            Death::Stopped(at) => {
                cut += 1;
                at + down(kept, number)
            }
            Death::Stillborn(at) if stillborn < FAILED_STARTS_MAX => {
                stillborn += 1;
                at + Duration::from_secs(1) + down(kept, number)
            }
            Death::Stillborn(_) => return Err(SimulationError::Endless),
            Death::Over { at, pages, is_done } => {
                return Ok(Over { at, lives: number + 1, pages, is_done });
            }
        };
    }
    Err(SimulationError::Endless)
}

impl Fate {
    fn power(self) -> Power {
        match self {
            Self::Fail(step, nth) => Power::new(Some((step, nth))),
            Self::Live | Self::FailAfter(..) | Self::Stop(_) => Power::new(None),
        }
    }
}

/// Most crashes come at a step or shortly after something that is on its way to the disk. A clock
/// that was set is read at the next start only, so lives end for it as well.
fn fate(kept: &Kept, life: u64, age: Duration) -> Fate {
    let (crashes, stops) = (kept.faults.has(Fault::Crash), kept.faults.has(Fault::Clock));
    if !(crashes || stops) || age >= FAULTS_FOR {
        return Fate::Live;
    }
    let of = |what: &str, bound| below(bound, kept.seed, format_args!("crash {life} {what}"));
    let kind = if crashes { of("kind", 10) } else { 9 };
    let (requests, waits, millis) = match kind {
        0 => (0, 0, of("start", 400)),
        1 => (of("requests", 60), 0, of("later", 5_000)),
        2 | 3 => (0, 1 + of("waits", 3), 250 + of("after a wait", 1_000)),
        4..=8 => {
            let place = of("step", u64::try_from(Step::ALL.len()).unwrap_or(1));
            let (step, most) = Step::ALL[usize::try_from(place).unwrap_or(0)];
            return Fate::Fail(step, 1 + of("steps", most));
        }
        _ => return Fate::Stop(Duration::from_secs(20 + of("stop", 1_500))),
    };
    let seen = kept.history.seen();
    let after = Seen {
        requests: seen.requests + usize::try_from(requests).unwrap_or(0),
        waits: seen.waits + usize::try_from(waits).unwrap_or(0),
    };
    Fate::FailAfter(after, Duration::from_millis(millis))
}

/// How long the node is down: often shorter than any delay.
fn down(kept: &Kept, life: u64) -> Duration {
    let of = |what: &str, bound| below(bound, kept.seed, format_args!("down {life} {what}"));
    Duration::from_millis(match of("kind", 3) {
        0 => of("blink", 500),
        1 => of("short", 8_000),
        _ => of("long", 90_000),
    })
}

async fn live(
    kept: &Kept,
    config: Arc<Config>,
    life: &Life,
    fate: Fate,
    deadline: Timestamp,
) -> Result<Death, SimulationError> {
    let now = life.truth.now();
    kept.history.note(format_args!("{now} life {} {} ms ahead", life.number, life.ahead_ms));
    tokio::select! {
        biased;
        at = crash(kept, life, fate) => Ok(Death::Crashed(at)),
        over = crawl(kept, life, config, fate, deadline) => over,
    }
}

/// The power fails; what was under way stays as it is.
async fn crash(kept: &Kept, life: &Life, fate: Fate) -> Timestamp {
    match fate {
        Fate::Live | Fate::Fail(..) | Fate::Stop(_) => life.power.gone().await,
        Fate::FailAfter(seen, and_then) => {
            kept.history.until_seen(seen).await;
            life.truth.sleep(and_then).await;
            life.power.cut();
        }
    }
    let now = life.truth.now();
    kept.history.crash(now, trouble_since(&kept.faults, now));
    now
}

/// A node that crawls until nothing is left to do, stops, and is looked at.
async fn crawl(
    kept: &Kept,
    life: &Life,
    config: Arc<Config>,
    fate: Fate,
    deadline: Timestamp,
) -> Result<Death, SimulationError> {
    let shards = config.frontier.shards;
    let options = NodeOptions { config, purpose: Purpose::Crawl, reloader: None };
    let world = life.world.clone();
    let taps = Some(taps::taps(kept, life));
    let node = match Box::pin(Node::start_tapped(options, world, taps)).await {
        Ok(node) => node,
        Err(error) => {
            let now = life.truth.now();
            if !kept.faults.may_hinder(now) {
                return Err(error.into());
            }
            kept.history.note(format_args!("{now} not started: {error}"));
            return Ok(Death::Stillborn(now));
        }
    };
    let routes = life.routes.get_or_init(|| node.routes());
    taps::tell_late(kept, life, routes);
    let is_done = tokio::select! {
        biased;
        () = stop_time(life, fate) => None,
        is_done = watch(kept, &node, life, deadline) => Some(is_done),
    };
    let pages = Box::pin(node.status()).await.pages;
    if let Err(error) = Box::pin(node.stop(STOP_LIMIT)).await {
        let now = life.truth.now();
        kept.history.note(format_args!("{now} not stopped cleanly: {error}"));
        if !kept.faults.may_hinder(now) {
            kept.history.violate(format_args!("the node did not stop cleanly: {error}"));
        }
    }
    let at = life.truth.now();
    let Some(is_done) = is_done else { return Ok(Death::Stopped(at)) };
    let found = audit::collect(&life.world, shards).await?;
    audit::check(kept, &found, is_done).await;
    Ok(Death::Over { at, pages, is_done })
}

async fn stop_time(life: &Life, fate: Fate) {
    match fate {
        Fate::Stop(after) => life.truth.sleep(after).await,
        Fate::Live | Fate::Fail(..) | Fate::FailAfter(..) => std::future::pending().await,
    }
}

/// Gives the seeds, and again while nobody takes them.
async fn seed(kept: &Kept, node: &Node, life: &Life) {
    loop {
        let seeds = kept.web.seeds().iter().map(|url| Seed { url: url.clone(), ..Seed::default() });
        if node.seed(seeds.collect()).await.is_ok() {
            return;
        }
        life.truth.sleep(SEED_AGAIN).await;
    }
}

/// Until nothing is left to do, or nothing but sites that never say what they allow; false when the
/// time was over before.
async fn watch(kept: &Kept, node: &Node, life: &Life, deadline: Timestamp) -> bool {
    seed(kept, node, life).await;
    let routes = node.routes();
    let (mut quiet, mut look_inside_at) = (0, life.truth.now());
    loop {
        life.truth.sleep(LOOK_EVERY).await;
        let now = life.truth.now();
        if now >= look_inside_at {
            let about = format_args!("look inside {}", now.as_millis());
            look_inside_at = now + Duration::from_millis(below(LOOK_INSIDE_MS, kept.seed, about));
            let routes = Arc::clone(&routes.borrow());
            kept.inside.look(&routes, life.number).await;
        }
        quiet = if is_done(kept, node, life, deadline).await { quiet + 1 } else { 0 };
        if quiet >= QUIET_LOOKS {
            return true;
        }
        if now >= deadline {
            return false;
        }
    }
}

async fn is_done(kept: &Kept, node: &Node, life: &Life, deadline: Timestamp) -> bool {
    let found = node.progress().await;
    let age = life.truth.now().since(kept.web.start);
    if found.busy || found.in_flight > 0 || age < FAULTS_FOR {
        return false;
    }
    // What is due soon after the deadline was cut off by it, and is not done.
    let far = deadline.max(life.truth.now() + LONGEST_WAIT);
    let over = moved(far, life.ahead_ms);
    found.next_wake.is_none_or(|wake| wake > over)
        || (age > SETTLED_AFTER && only_hopeless(kept, node).await)
}

/// No site has anything left that will ever be asked for.
async fn only_hopeless(kept: &Kept, node: &Node) -> bool {
    let hopeful = kept
        .web
        .sites()
        .filter(|site| site.stays_reachable() && kept.history.rules_served(&site.key).is_some());
    let routes = Arc::clone(&node.routes().borrow());
    for site in hopeful {
        let Some(route) = routes.route(&site.key) else { return false };
        let look_up = |answer| ShardMsg::LookUpHost(site.key.clone(), answer);
        match ask(&route.shard, look_up).await {
            Some(Ok(Some(host))) if host.urls.queued + host.urls.deferred > 0 => return false,
            Some(Ok(Some(_) | None)) => {}
            Some(Err(_)) | None => return false,
        }
    }
    true
}

/// What was injected, by name.
pub(super) fn injected(kept: &Kept) -> BTreeMap<String, u64> {
    let injected = kept.faults.injected();
    injected.into_iter().map(|(fault, times)| (fault.to_string(), times)).collect()
}
