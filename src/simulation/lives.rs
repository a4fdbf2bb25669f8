//! The lives of a simulated node: started, crawling, killed at some moment, started again on what
//! had become durable, until all is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::audit;
use super::checkers::Seen;
use super::disk::Power;
use super::draw::below;
use super::faults::Fault;
use super::world::Kept;
use super::{SimulationError, settings};
use crate::config::Config;
use crate::node::{Node, NodeOptions, Purpose};
use crate::protocol::discovery::Seed;
use crate::types::Timestamp;
use crate::world::World;

/// How often the crawl is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// So many quiet looks in a row make an end: stages are asked one after the other.
const QUIET_LOOKS: u32 = 3;
/// Crashes of one run.
const CRASHES_MAX: u64 = 8;
/// No crash later than this: what is left then must still be done.
const CRASHES_UNTIL: Duration = Duration::from_secs(2 * 3600);
/// From here on every robots.txt that will ever answer has been asked for once more.
const SETTLED_AFTER: Duration = Duration::from_secs(150 * 60);
/// Longer than any wait of the simulated web and any delay between two tries.
const QUIET_FOR: Duration = Duration::from_secs(80 * 60);
/// How long a clean stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How a life ended.
enum Death {
    Crashed(Timestamp),
    Over { at: Timestamp, pages: u64, is_done: bool },
}

/// How a run ended.
pub(super) struct Over {
    pub(super) at: Timestamp,
    pub(super) lives: u64,
    pub(super) pages: u64,
    pub(super) is_done: bool,
}

/// When a life is cut short.
#[derive(Clone, Copy, Debug)]
struct CrashPlan {
    after: Seen,
    and_then: Duration,
}

/// Lives from `start` until all is done, at most until `deadline`.
pub(super) fn run(
    kept: &Kept,
    start: Timestamp,
    deadline: Timestamp,
) -> Result<Over, SimulationError> {
    let config = Arc::new(settings::config()?);
    let mut now = start;
    for life in 0.. {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(SimulationError::Runtime)?;
        let crash = plan_crash(kept, life, now.since(start));
        let span = Span { life, now, deadline, crash };
        let death = runtime.block_on(Box::pin(live(kept, Arc::clone(&config), span)))?;
        // With it all tasks of this life are gone, wherever they stood.
        drop(runtime);
        match death {
            Death::Crashed(at) => {
                kept.faults.count(Fault::Crash);
                kept.snapshots.crash(kept.seed ^ life);
                now = at + down(kept, life);
            }
            Death::Over { at, pages, is_done } => {
                return Ok(Over { at, lives: life + 1, pages, is_done });
            }
        }
    }
    Err(SimulationError::Endless)
}

/// One life's place in time.
struct Span {
    life: u64,
    now: Timestamp,
    deadline: Timestamp,
    crash: Option<CrashPlan>,
}

fn plan_crash(kept: &Kept, life: u64, age: Duration) -> Option<CrashPlan> {
    if !kept.faults.has(Fault::Crash) || life >= CRASHES_MAX || age >= CRASHES_UNTIL {
        return None;
    }
    let of = |what: &str, bound| below(bound, kept.seed, format_args!("crash {life} {what}"));
    // Most crashes come shortly after something that is on its way to the disk.
    let (requests, waits, millis) = match of("kind", 6) {
        0 => (0, 0, of("start", 400)),
        1 => (of("requests", 60), 0, of("later", 5_000)),
        2 | 3 => (0, 1 + of("waits", 3), 250 + of("after a wait", 1_000)),
        _ => (1 + of("requests", 60), 0, of("soon", 200)),
    };
    let seen = kept.history.seen();
    let after = Seen {
        requests: seen.requests + usize::try_from(requests).unwrap_or(0),
        waits: seen.waits + usize::try_from(waits).unwrap_or(0),
    };
    Some(CrashPlan { after, and_then: Duration::from_millis(millis) })
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

async fn live(kept: &Kept, config: Arc<Config>, span: Span) -> Result<Death, SimulationError> {
    let (world, power) = kept.world(span.life, span.now);
    kept.history.note(format_args!("{} life {}", span.now, span.life));
    let crash = crash(kept, &world, &power, span.crash);
    tokio::select! {
        biased;
        at = crash => Ok(Death::Crashed(at)),
        over = crawl(kept, &world, config, &span) => over,
    }
}

/// The power fails; what was under way stays as it is.
async fn crash(kept: &Kept, world: &World, power: &Power, plan: Option<CrashPlan>) -> Timestamp {
    let Some(plan) = plan else { return std::future::pending().await };
    kept.history.until_seen(plan.after).await;
    world.clock.sleep(plan.and_then).await;
    let now = world.clock.now();
    power.cut();
    kept.history.crash(now);
    now
}

/// A node that crawls until nothing is left to do, stops, and is looked at.
async fn crawl(
    kept: &Kept,
    world: &World,
    config: Arc<Config>,
    span: &Span,
) -> Result<Death, SimulationError> {
    let shards = config.frontier.shards;
    let options = NodeOptions { config, purpose: Purpose::Crawl, reloader: None };
    let node = Box::pin(Node::start_in(options, world.clone())).await?;
    let seeds = kept.web.seeds().iter().map(|url| Seed { url: url.clone(), ..Seed::default() });
    node.seed(seeds.collect()).await?;
    let is_done = watch(kept, &node, world, span.deadline).await;
    let pages = Box::pin(node.status()).await.pages;
    if let Err(error) = Box::pin(node.stop(STOP_LIMIT)).await {
        kept.history.violate(format_args!("the node did not stop cleanly: {error}"));
    }
    let at = world.clock.now();
    let found = audit::collect(world, shards).await?;
    audit::check(kept, &found, is_done).await;
    Ok(Death::Over { at, pages, is_done })
}

/// Until nothing is left to do, or nothing but sites that never say what they allow; false when the
/// time was over before.
async fn watch(kept: &Kept, node: &Node, world: &World, deadline: Timestamp) -> bool {
    let settled = kept.web.start + SETTLED_AFTER;
    let mut quiet = 0;
    loop {
        world.clock.sleep(LOOK_EVERY).await;
        let now = world.clock.now();
        let found = node.progress().await;
        let idle = !found.busy && found.in_flight == 0;
        let nothing_left = found.next_wake.is_none_or(|wake| wake > deadline);
        let last = kept.history.last_of_use().unwrap_or(kept.web.start);
        let only_hopeless = now > settled && now.since(last) > QUIET_FOR;
        quiet = if idle && (nothing_left || only_hopeless) { quiet + 1 } else { 0 };
        if quiet >= QUIET_LOOKS {
            return true;
        }
        if now >= deadline {
            return false;
        }
    }
}

/// What was injected, by name.
pub(super) fn injected(kept: &Kept) -> BTreeMap<String, u64> {
    let injected = kept.faults.injected();
    injected.into_iter().map(|(fault, times)| (fault.to_string(), times)).collect()
}
