//! `GET /v1/status`: what every actor says of itself, summed up; the command line shows the same.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse as _;
use futures::future::join_all;
use serde::{Deserialize, Serialize};

use super::health::FOUND_FOR;
use super::router::{Call, Handled};
use super::state::{AdminState, CrawlPhase, Silence};
use crate::protocol::archive::ArchiveView;
use crate::protocol::discovery::DiscoveryView;
use crate::protocol::output::OutputView;
use crate::protocol::pool::PoolView;
use crate::protocol::shard::{ParkedHost, ShardView};
use crate::protocol::{ArchiveMsg, DiscoveryMsg, OutputMsg, PoolMsg, ShardMsg};
use crate::telemetry::OutputFigures;
use crate::types::{Outcome, ShardId, Timestamp};

/// An actor that has not said how it stands by then makes the state degraded (A4).
const OBSERVE_DEADLINE: Duration = Duration::from_secs(2);

/// Parked hosts shown, over all shards.
const PARKED_MAX: usize = 100;

/// The whole node in one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Whether all is well.
    pub state: RunState,
    /// Why it is not running as it should, one sentence each.
    pub reasons: Vec<String>,
    /// When the node started.
    pub started_at: Timestamp,
    /// The version of the program.
    pub version: String,
    /// Exchanges ended in the life of the data, robots.txt left out.
    pub pages: u64,
    /// Over the last ten seconds; 0 at the first question.
    pub pages_per_second: f64,
    /// Bytes of bodies as received since the start.
    pub bytes: u64,
    /// URLs by state.
    pub urls: UrlFigures,
    /// Hosts by state.
    pub hosts: HostFigures,
    /// All exchanges ended since the start, by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// How late the most overdue host is (F9).
    pub lag_seconds: f64,
    /// What each output has got, and left out, since the start (R6).
    #[serde(default)]
    pub outputs: Vec<OutputFigures>,
    /// What waits, by stage.
    pub queues: BTreeMap<String, QueueFigures>,
    /// When a host may next be asked, or a deferred URL falls due.
    pub next_wake: Option<Timestamp>,
    /// Up to a hundred hosts that wait for long, with reason and time.
    pub parked: Vec<ParkedHost>,
}

/// Whether all is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// All is well.
    Running,
    /// An operator paused it.
    Paused,
    /// It is coming to its end.
    Draining,
    /// A part fails or does not answer; the reasons say which.
    Degraded,
}

/// URLs by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlFigures {
    /// Known.
    pub known: u64,
    /// In the queue, those in flight left out.
    pub queued: u64,
    /// Requests in flight, robots.txt included.
    pub in_flight: u64,
    /// Those of them that are for pages: with the queued ones and the other states they add up to
    /// the known ones that are not done.
    #[serde(default)]
    pub pages_in_flight: u64,
    /// Dead letters.
    pub dead: u64,
    /// With a later due time: retries and revisits.
    pub deferred: u64,
    /// Refused by robots rules until these change.
    pub sleeping: u64,
}

/// Hosts by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFigures {
    /// Known.
    pub known: u64,
    /// With an actor.
    pub resident: u64,
    /// With something queued whose time has come.
    pub ready: u64,
    /// With something queued whose clock runs.
    pub waiting: u64,
    /// Parked.
    pub parked: u64,
    /// With a request in flight. With those above and those that have nothing to do they add up to
    /// the known ones.
    #[serde(default)]
    pub in_flight: u64,
}

/// What waits in one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueFigures {
    /// Things that wait.
    pub waiting: u64,
    /// Things in hand.
    pub busy: u64,
    /// How many may wait; `None` where the stage before it is the bound.
    pub capacity: Option<u64>,
}

/// What the actors said when they were asked.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Every shard.
    pub(super) shards: Vec<(ShardId, Result<Box<ShardView>, Silence>)>,
    /// Every pool by name.
    pub(super) pools: Vec<(String, Result<PoolView, Silence>)>,
    /// Every archive.
    pub(super) archives: Vec<Result<ArchiveView, Silence>>,
    /// Every DiscoveryActor.
    pub(super) discovery: Vec<Result<DiscoveryView, Silence>>,
    /// The outputs that answered; one that is gone comes back with its shard.
    pub(super) outputs: Vec<(ShardId, OutputView)>,
}

/// Asks every shard, pool, archive and DiscoveryActor at once and sums up.
///
/// Takes at most two seconds: who does not answer by then makes the state degraded.
pub async fn collect(state: &AdminState) -> Status {
    let survey = survey(state).await;
    sum_up(state, &survey)
}

/// `GET /v1/status`.
pub(super) async fn show(call: Call) -> Handled {
    Ok(Json(collect(&call.state).await).into_response())
}

/// Asks everybody at once.
pub(super) async fn survey(state: &AdminState) -> Survey {
    let shards = state.shards().into_iter().map(async |(shard, mailbox)| {
        let view = match mailbox {
            Some(mailbox) => state.ask(&mailbox, OBSERVE_DEADLINE, ShardMsg::Observe).await,
            None => Err(Silence::Gone),
        };
        (shard, view)
    });
    let pools = state.pools().into_iter().map(async |(name, pool)| {
        (name.to_owned(), state.ask(&pool, OBSERVE_DEADLINE, PoolMsg::Observe).await)
    });
    let archives = state
        .archive()
        .into_iter()
        .map(async |archive| state.ask(&archive, OBSERVE_DEADLINE, ArchiveMsg::Observe).await);
    let discovery = state.discovery().into_iter().map(async |discovery| {
        state.ask(&discovery, OBSERVE_DEADLINE, DiscoveryMsg::Observe).await
    });
    let outputs = state.outputs().into_iter().map(async |(shard, output)| {
        let view = state.ask(&output, OBSERVE_DEADLINE, OutputMsg::Observe).await;
        Some((shard, view.ok()?))
    });
    let (shards, pools, archives, discovery, outputs) = futures::join!(
        join_all(shards),
        join_all(pools),
        join_all(archives),
        join_all(discovery),
        join_all(outputs)
    );
    let outputs = outputs.into_iter().flatten().collect();
    Survey { shards, pools, archives, discovery, outputs }
}

/// Why the node is degraded, found within the last second; whoever asks meanwhile waits for the
/// same answer.
pub(super) async fn reasons(state: &AdminState) -> Vec<String> {
    let mut found = state.shared.found.lock().await;
    let now = state.clock.now();
    if let Some((_, reasons)) = found.as_ref().filter(|(at, _)| now.since(*at) < FOUND_FOR) {
        return reasons.clone();
    }
    let reasons = faults(&survey(state).await);
    *found = Some((state.clock.now(), reasons.clone()));
    reasons
}

/// Makes the shape of docs/interface.md of what was heard.
pub(super) fn sum_up(state: &AdminState, survey: &Survey) -> Status {
    let phase = *state.phase.borrow();
    let reasons = faults(survey);
    let total = total(survey);
    let whole = survey.shards.iter().all(|(_, view)| view.is_ok());
    // Half a sum is no sample: the rate would dip and then leap.
    let rate = if whole { state.shared.rate(state.clock.now(), total.pages) } else { 0.0 };
    Status {
        state: run_state(phase, &total, &reasons),
        reasons,
        started_at: state.started_at,
        version: state.settings.version.clone(),
        pages: total.pages,
        pages_per_second: rate,
        bytes: total.bytes,
        urls: UrlFigures {
            known: total.urls.known,
            queued: total.queued(),
            in_flight: u64::from(total.in_flight),
            pages_in_flight: u64::from(total.pages_in_flight),
            dead: total.urls.dead,
            deferred: total.urls.deferred,
            sleeping: total.urls.sleeping,
        },
        hosts: HostFigures {
            known: total.hosts_known,
            resident: u64::from(total.hosts_resident),
            ready: u64::from(total.hosts_ready),
            waiting: u64::from(total.hosts_waiting),
            parked: u64::from(total.hosts_parked),
            in_flight: u64::from(total.hosts_in_flight),
        },
        outputs: state.metrics.outputs(),
        queues: queues(survey, &total),
        outcomes: total.outcomes,
        lag_seconds: total.lag_seconds,
        next_wake: total.next_wake,
        parked: total.parked,
    }
}

fn run_state(phase: CrawlPhase, total: &ShardView, reasons: &[String]) -> RunState {
    let paused = total.paused || phase == CrawlPhase::Paused;
    if phase == CrawlPhase::Draining {
        RunState::Draining
    } else if !reasons.is_empty() {
        RunState::Degraded
    } else if paused {
        RunState::Paused
    } else {
        RunState::Running
    }
}

/// Everything that is not as it should be.
fn faults(survey: &Survey) -> Vec<String> {
    let mut reasons = Vec::new();
    for (shard, view) in &survey.shards {
        match view {
            Ok(view) => {
                reasons.extend(view.degraded.iter().map(|why| format!("shard {shard}: {why}")));
            }
            Err(silence) => reasons.push(format!("shard {shard} {}", silence.words())),
        }
    }
    for (name, pool) in &survey.pools {
        if let Err(silence) = pool {
            reasons.push(format!("the {name} pool {}", silence.words()));
        }
    }
    for (number, archive) in survey.archives.iter().enumerate() {
        match archive {
            Ok(view) => {
                reasons.extend(view.failure.iter().map(|why| format!("archive {number}: {why}")));
            }
            Err(silence) => reasons.push(format!("archive {number} {}", silence.words())),
        }
    }
    for (shard, output) in &survey.outputs {
        reasons.extend(output.failure.iter().map(|why| format!("outputs of shard {shard}: {why}")));
    }
    for (number, actor) in survey.discovery.iter().enumerate() {
        if let Err(silence) = actor {
            reasons.push(format!("discovery {number} {}", silence.words()));
        }
    }
    reasons
}

/// The sum of all shards that answered.
pub(super) fn total(survey: &Survey) -> ShardView {
    let mut sum = ShardView::default();
    let mut paused = true;
    for view in survey.shards.iter().filter_map(|(_, view)| view.as_deref().ok()) {
        paused &= view.paused;
        sum.urls.known += view.urls.known;
        sum.urls.queued += view.urls.queued;
        sum.urls.deferred += view.urls.deferred;
        sum.urls.sleeping += view.urls.sleeping;
        sum.urls.dead += view.urls.dead;
        sum.in_flight += view.in_flight;
        sum.pages_in_flight += view.pages_in_flight;
        sum.hosts_known += view.hosts_known;
        sum.hosts_resident += view.hosts_resident;
        sum.hosts_ready += view.hosts_ready;
        sum.hosts_waiting += view.hosts_waiting;
        sum.hosts_parked += view.hosts_parked;
        sum.hosts_in_flight += view.hosts_in_flight;
        sum.pages += view.pages;
        sum.bytes += view.bytes;
        for (outcome, count) in &view.outcomes {
            *sum.outcomes.entry(*outcome).or_default() += count;
        }
        sum.next_wake = earlier(sum.next_wake, view.next_wake);
        sum.admitting += view.admitting;
        sum.parsing += view.parsing;
        sum.unwritten += view.unwritten;
        sum.lag_seconds = sum.lag_seconds.max(view.lag_seconds);
        sum.repeated += view.repeated;
        sum.restarts += view.restarts;
        sum.violations += view.violations;
        let free = PARKED_MAX.saturating_sub(sum.parked.len());
        sum.parked.extend(view.parked.iter().take(free).cloned());
        sum.last_event += view.last_event;
    }
    sum.paused = paused && survey.shards.iter().any(|(_, view)| view.is_ok());
    sum
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

fn queues(survey: &Survey, total: &ShardView) -> BTreeMap<String, QueueFigures> {
    // Credit bounds these, elsewhere: they have no capacity of their own.
    let on_credit =
        |waiting: u32| QueueFigures { waiting: waiting.into(), busy: 0, capacity: None };
    let mut queues = BTreeMap::from([
        ("admission".to_owned(), on_credit(total.admitting)),
        ("to_parse".to_owned(), on_credit(total.parsing)),
        ("store".to_owned(), on_credit(total.unwritten)),
    ]);
    let archives = survey.archives.iter().filter_map(|view| view.as_ref().ok());
    queues.insert("archive".to_owned(), on_credit(archives.map(|view| view.waiting).sum()));
    let discovery = survey.discovery.iter().filter_map(|view| view.as_ref().ok());
    queues.insert("discovery".to_owned(), on_credit(discovery.map(|view| view.waiting).sum()));
    for (name, pool) in &survey.pools {
        if let Ok(view) = pool {
            let figures = QueueFigures {
                waiting: view.waiting.into(),
                busy: view.busy.into(),
                capacity: Some(view.capacity.into()),
            };
            queues.insert(name.clone(), figures);
        }
    }
    queues
}
