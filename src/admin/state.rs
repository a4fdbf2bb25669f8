//! What the admin interface needs from the node that builds it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::ActorRef;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use super::asks::PageReader;
use super::auth::Token;
use crate::protocol::{
    Answer, ArchiveMsg, Credit, DiscoveryMsg, OutputMsg, PoolMsg, RootMsg, RoutesWatch, ShardMsg,
    ask,
};
use crate::telemetry::Metrics;
use crate::types::{ExclusionRecord, IpNetwork, PurgeRecord, ShardId, Timestamp};
use crate::world::Clock;

/// Requests that carry seeds at once: each may hold a whole body in memory (I8).
const SEEDING_MAX: u32 = 4;

/// Stored pages read at once: each is in memory whole (I8).
const READING_MAX: u32 = 4;

/// The span over which `pages_per_second` is taken.
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// Samples kept for the rate, however often it is asked for.
const RATE_SAMPLES_MAX: usize = 64;

/// Everything the admin interface may ask or tell.
#[derive(Clone, Debug)]
pub struct AdminState {
    /// Where the shards live.
    pub routes: RoutesWatch,
    /// The tree of actors.
    pub root: ActorRef<RootMsg>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// When the node started.
    pub started_at: Timestamp,
    /// What does not change while the node runs.
    pub settings: Arc<AdminSettings>,
    /// What nobody's state holds.
    pub metrics: Arc<Metrics>,
    /// Orders to the node.
    pub control: mpsc::Sender<Control>,
    /// Whether the crawl goes on.
    pub phase: watch::Receiver<CrawlPhase>,
    /// Pages that were stored.
    pub pages: PageReader,
    /// What the requests share; [`AdminShared::default`].
    pub shared: Arc<AdminShared>,
}

/// Values of the configuration that the admin interface shows or obeys.
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// Where it listens; decides whether a token is needed.
    pub listen: SocketAddr,
    /// Who may.
    pub token: Option<Token>,
    /// The product token.
    pub product: String,
    /// The version of the program.
    pub version: String,
    /// The page about the crawl.
    pub contact_url: Option<String>,
    /// Whom to write to.
    pub contact_email: Option<String>,
    /// As it is sent.
    pub user_agent: String,
    /// Where requests come from, where that is configured.
    pub addresses: Vec<IpNetwork>,
    /// The name of this node in its cluster.
    pub node: String,
}

/// An order to the node.
#[derive(Debug)]
pub enum Control {
    /// Grant nothing more.
    Pause(Answer<()>),
    /// Grant again.
    Resume(Answer<()>),
    /// Grant nothing for good, let what is in flight end, then stop; answered when it has begun.
    Drain(Answer<()>),
    /// Ask no more for what this covers, and remove what is stored where that is wanted (R5);
    /// answered when durable, as it counts, with the order to remove.
    Exclude(Box<ExclusionRecord>, bool, Answer<Result<WithPurge, Refused>>),
    /// The exclusion of this id is gone; answered likewise, `None` where there is none.
    Lift(String, Answer<Result<Option<WithPurge>, Refused>>),
    /// The exclusions in force, by id.
    Exclusions(Answer<Vec<ListedExclusion>>),
    /// Read the configuration again; the errors are its faults, one sentence each.
    Reload(Answer<Result<ReloadReport, Vec<String>>>),
}

/// An exclusion, and the order to remove what is stored that goes with it.
pub type WithPurge = (ExclusionRecord, Option<PurgeRecord>);

/// Why an order was not obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not go with what is under way.
    Conflict(String),
    /// Not every shard has it durable.
    Unavailable(String),
}

/// An exclusion in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedExclusion {
    /// What it is.
    pub record: ExclusionRecord,
    /// How far the removal of what is stored is, if that was ordered.
    pub purge: Option<PurgeStanding>,
}

/// How far a purge is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeStanding {
    /// The order.
    pub record: PurgeRecord,
    /// It is being carried out.
    pub is_running: bool,
    /// Why it does not get on, if it does not.
    pub failure: Option<String>,
}

impl PurgeStanding {
    /// One that waits or is done.
    pub fn of(record: &PurgeRecord) -> Self {
        Self { record: record.clone(), is_running: false, failure: None }
    }

    /// One that is being carried out.
    pub fn running(record: &PurgeRecord) -> Self {
        Self { is_running: true, ..Self::of(record) }
    }
}

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Keys that changed and are in force.
    pub applied: Vec<String>,
    /// Keys that changed and wait for a restart.
    pub needs_restart: Vec<String>,
}

/// Whether the crawl goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrawlPhase {
    /// It does.
    #[default]
    Running,
    /// An operator paused it.
    Paused,
    /// It is coming to its end.
    Draining,
}

/// What the requests share: bounds, and the samples of a rate.
#[derive(Debug)]
pub struct AdminShared {
    /// See [`SEEDING_MAX`].
    pub(super) seeding: Credit,
    /// See [`READING_MAX`].
    pub(super) reading: Credit,
    /// Why the node is degraded, and when that was found.
    pub(super) found: tokio::sync::Mutex<Option<(Timestamp, Vec<String>)>>,
    rate: Mutex<VecDeque<(Timestamp, u64)>>,
}

impl Default for AdminShared {
    fn default() -> Self {
        Self {
            seeding: Credit::new(SEEDING_MAX),
            reading: Credit::new(READING_MAX),
            found: tokio::sync::Mutex::new(None),
            rate: Mutex::new(VecDeque::new()),
        }
    }
}

impl AdminShared {
    /// Takes a sample of a count and says how fast it grew, per second, over the last ten seconds;
    /// over longer where nobody asked meanwhile, 0 at the first sample.
    pub(super) fn rate(&self, at: Timestamp, count: u64) -> f64 {
        // A sample is two numbers: whoever panicked while holding the lock left none half written.
        let mut samples = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.back().is_some_and(|(_, last)| *last > count) {
            samples.clear();
        }
        let horizon = at - RATE_WINDOW;
        while samples.get(1).is_some_and(|(second, _)| *second <= horizon)
            || samples.len() >= RATE_SAMPLES_MAX
        {
            samples.pop_front();
        }
        let oldest = samples.front().copied();
        if samples.back().is_none_or(|(last, _)| *last < at) {
            samples.push_back((at, count));
        }
        let Some((since, from)) = oldest else { return 0.0 };
        let span = at.since(since).as_secs_f64();
        let grown = u32::try_from(count.saturating_sub(from)).unwrap_or(u32::MAX);
        if span > 0.0 { f64::from(grown) / span } else { 0.0 }
    }
}

/// Why an actor gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It is gone, or dropped the question.
    Gone,
    /// It did not answer in time.
    Late,
}

impl Silence {
    /// For sentences: `shard 3 …`.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Gone => "is not there",
            Self::Late => "does not answer in time",
        }
    }
}

impl AdminState {
    /// Where seeds go.
    pub(super) fn discovery(&self) -> Option<ActorRef<DiscoveryMsg>> {
        self.routes.borrow().discovery.clone()
    }

    /// The pools with their names: `fetch`, `parse`.
    pub(super) fn pools(&self) -> Vec<(&'static str, ActorRef<PoolMsg>)> {
        self.routes.borrow().pools.clone()
    }

    /// The archive.
    pub(super) fn archive(&self) -> Option<ActorRef<ArchiveMsg>> {
        self.routes.borrow().archive.clone()
    }

    /// Asks an actor and waits for its answer, at most until the deadline.
    pub(super) async fn ask<M: ractor::Message, T: Send + 'static>(
        &self,
        actor: &ActorRef<M>,
        deadline: Duration,
        question: impl FnOnce(Answer<T>) -> M,
    ) -> Result<T, Silence> {
        self.within(deadline, ask(actor, question)).await?.ok_or(Silence::Gone)
    }

    /// Asks the node.
    pub(super) async fn order<T: Send + 'static>(
        &self,
        deadline: Duration,
        order: impl FnOnce(Answer<T>) -> Control,
    ) -> Result<T, Silence> {
        let (port, answer) = Answer::channel();
        let sent = self.within(deadline, self.control.send(order(port))).await?;
        sent.map_err(|_closed| Silence::Gone)?;
        self.within(deadline, answer).await?.map_err(|_dropped| Silence::Gone)
    }

    /// Waits for something, at most until the deadline.
    pub(super) async fn within<T>(
        &self,
        deadline: Duration,
        waited: impl Future<Output = T>,
    ) -> Result<T, Silence> {
        tokio::select! {
            biased;
            came = waited => Ok(came),
            () = self.clock.sleep(deadline) => Err(Silence::Late),
        }
    }

    /// The outputs of the shards that are up.
    pub(super) fn outputs(&self) -> Vec<(ShardId, ActorRef<OutputMsg>)> {
        let routes = Arc::clone(&self.routes.borrow());
        let numbers = (0..=u16::MAX).map(ShardId).zip(&routes.shards);
        numbers.filter_map(|(shard, route)| Some((shard, route.as_ref()?.output.clone()))).collect()
    }

    /// Every shard by number, with its mailbox where it is up.
    pub(super) fn shards(&self) -> Vec<(ShardId, Option<ActorRef<ShardMsg>>)> {
        let routes = Arc::clone(&self.routes.borrow());
        let numbers = (0..=u16::MAX).map(ShardId);
        let mailboxes = routes.shards.iter();
        numbers
            .zip(mailboxes.map(|route| route.as_ref().map(|route| route.shard.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(1_000 + seconds)
    }

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds() {
        let shared = AdminShared::default();
        assert!(shared.rate(at(0), 100).abs() < 1e-9);
        assert!((shared.rate(at(5), 150) - 10.0).abs() < 1e-9);
        assert!((shared.rate(at(10), 200) - 10.0).abs() < 1e-9);
        assert!((shared.rate(at(20), 200) - 0.0).abs() < 1e-9);
    }

    #[test]
    fn a_count_that_began_anew_gives_no_rate() {
        let shared = AdminShared::default();
        shared.rate(at(0), 100);
        assert!(shared.rate(at(5), 3).abs() < 1e-9);
        assert!((shared.rate(at(10), 8) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn samples_have_a_bound() {
        let shared = AdminShared::default();
        for milli in 0..1_000 {
            shared.rate(Timestamp::from_millis(milli), 1);
        }
        assert!(shared.rate.lock().unwrap().len() <= RATE_SAMPLES_MAX);
    }
}
