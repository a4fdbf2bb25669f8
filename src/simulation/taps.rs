//! What stands between the shards and the workers of a simulated node: leases are looked at as they
//! leave (I1), ends of exchanges are told twice, pages wait for their parser.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef};

use super::draw::{below, happens};
use super::faults::{Fault, Faults};
use super::inside::Inside;
use super::weather::standstill;
use super::world::{Kept, Life};
use crate::node::Taps;
use crate::protocol::shard::EndedReport;
use crate::protocol::{FetchJob, Owners, ParseJob, Permit, RoutesWatch, ShardMsg};
use crate::types::{Completion, Outcome, Reason};
use crate::world::Clock;

/// Ends told twice, of a thousand.
const DOUBLED: u64 = 80;
/// Bodies that do not ride along to the parser, of a thousand.
const READ_BACK: u64 = 100;
/// An end of an earlier life is told again within so many milliseconds of a new one.
const LATE_MS_MAX: u64 = 60_000;

/// Ends of exchanges that are told again in the next life.
pub(super) type Late = Mutex<Vec<Completion>>;

/// The taps of one life.
pub(super) fn taps(kept: &Kept, life: &Life) -> Taps {
    let between = Between {
        faults: kept.faults.clone(),
        inside: Arc::clone(&kept.inside),
        late: Arc::clone(&kept.late),
        truth: Arc::clone(&life.truth),
        clock: Arc::clone(&life.world.clock),
        routes: Arc::clone(&life.routes),
        life: life.number,
    };
    let parse = between.clone();
    Taps {
        fetch: Box::new(move |from, to| drop(tokio::spawn(between.pass_leases(from, to)))),
        parse: Box::new(move |from, to| drop(tokio::spawn(parse.pass_pages(from, to)))),
    }
}

/// Ends of exchanges of earlier lives, told to whoever has the shard now.
pub(super) fn tell_late(kept: &Kept, life: &Life, routes: &RoutesWatch) {
    let late = std::mem::take(&mut *kept.late.lock().unwrap_or_else(PoisonError::into_inner));
    for completion in late {
        let about = format_args!("late {} {}", life.number, completion.lease);
        let wait = Duration::from_millis(below(LATE_MS_MAX, kept.seed, about));
        let (truth, routes) = (Arc::clone(&life.truth), routes.clone());
        let faults = kept.faults.clone();
        tokio::spawn(async move {
            truth.sleep(wait).await;
            let shard = {
                let routes = routes.borrow();
                routes.route(&completion.url.host_key()).map(|route| route.shard.clone())
            };
            if let Some(shard) = shard {
                faults.count(Fault::Doubled);
                tell(&shard, completion);
            }
        });
    }
}

fn tell(shard: &ActorRef<ShardMsg>, completion: Completion) {
    let report = EndedReport { completion, response: None, permit: Permit::free() };
    // A shard that is gone needs to hear nothing twice.
    shard.send_message(ShardMsg::Ended(Box::new(report))).ok();
}

#[derive(Clone)]
struct Between {
    faults: Faults,
    inside: Arc<Inside>,
    late: Arc<Late>,
    truth: Arc<dyn Clock>,
    /// The node's.
    clock: Arc<dyn Clock>,
    /// Known once the node has started.
    routes: Arc<OnceLock<RoutesWatch>>,
    life: u64,
}

impl Between {
    async fn pass_leases(self, from: Receiver<FetchJob>, to: Sender<FetchJob>) {
        self.inside.set_credit(from.capacity());
        let mut relays = BTreeMap::new();
        while let Ok(mut job) = from.recv().await {
            self.inside.lease_left(&job.lease, self.life);
            if self.faults.has(Fault::Doubled) {
                job.shard = self.relay(&mut relays, job.shard).await;
            }
            if let Err(refused) = to.send(job).await {
                from.close();
                self.refuse(&refused.into_inner());
                while let Ok(job) = from.try_recv() {
                    self.refuse(&job);
                }
            }
        }
    }

    /// The pool is stopping: as it would say itself.
    fn refuse(&self, job: &FetchJob) {
        let (outcome, reason) = (Outcome::Cancelled, Reason::Stopping);
        tell(&job.shard, Completion::failed(&job.lease, self.clock.now(), outcome, reason));
    }

    /// Somebody who hears for the shard, and now and then repeats what he hears.
    async fn relay(
        &self,
        relays: &mut BTreeMap<ActorId, ActorRef<ShardMsg>>,
        shard: ActorRef<ShardMsg>,
    ) -> ActorRef<ShardMsg> {
        if let Some(relay) = relays.get(&shard.get_id()) {
            return relay.clone();
        }
        let listening = Listening { shard: shard.clone(), between: self.clone() };
        match Actor::spawn(None, Relay, listening).await {
            Ok((relay, _)) => {
                relays.insert(shard.get_id(), relay.clone());
                relay
            }
            Err(_) => shard,
        }
    }

    async fn pass_pages(self, from: Receiver<ParseJob>, to: Sender<ParseJob>) {
        while let Ok(mut job) = from.recv().await {
            if let Some(until) = standstill(&self.faults, "parsers", self.truth.now()) {
                self.faults.count(Fault::Parser);
                self.truth.sleep_until(until).await;
            }
            if self.is_read_back(&job) {
                job.response = None;
                job.permit = Permit::free();
            }
            if to.send(job).await.is_err() {
                // The rows stay, and are parsed in the next life.
                from.close();
            }
        }
    }

    /// The parser has to read the body back from the archive.
    fn is_read_back(&self, job: &ParseJob) -> bool {
        let about = format_args!("read back {} {}", job.row.url, job.row.version.0);
        self.faults.has(Fault::Parser) && happens(READ_BACK, self.faults.seed, about)
    }
}

/// Hears for a shard.
struct Relay;

struct Listening {
    shard: ActorRef<ShardMsg>,
    between: Between,
}

impl Actor for Relay {
    type Msg = ShardMsg;
    type State = Listening;
    type Arguments = Listening;

    async fn pre_start(
        &self,
        _me: ActorRef<ShardMsg>,
        listening: Listening,
    ) -> Result<Listening, ActorProcessingErr> {
        Ok(listening)
    }

    async fn handle(
        &self,
        _me: ActorRef<ShardMsg>,
        msg: ShardMsg,
        listening: &mut Listening,
    ) -> Result<(), ActorProcessingErr> {
        let mut again = None;
        if let ShardMsg::Ended(report) = &msg {
            again = listening.again(&report.completion);
        }
        match (msg, listening.between.routes.get()) {
            (ShardMsg::Ended(report), Some(routes)) => {
                let clock = Arc::clone(&listening.between.truth);
                Owners { routes: routes.clone(), clock }.tell_end(&listening.shard, *report);
            }
            // A shard that is gone needs nothing else.
            (msg, _) => drop(listening.shard.send_message(msg)),
        }
        if let Some(completion) = again {
            listening.repeat(completion);
        }
        Ok(())
    }
}

impl Listening {
    /// The same end, or another story of it, if it is to be told again.
    fn again(&self, completion: &Completion) -> Option<Completion> {
        let seed = self.between.faults.seed;
        let about = |what: &str| format!("doubled {} {what}", completion.lease);
        if !happens(DOUBLED, seed, about("at all")) {
            return None;
        }
        let mut again = completion.clone();
        if below(3, seed, about("story")) == 0 {
            again.outcome = Outcome::Cancelled;
            again.reason = Some(Reason::WorkerDied);
            again.archive = None;
        }
        Some(again)
    }

    /// Tells it at once, soon, long after, or in the next life.
    fn repeat(&self, completion: Completion) {
        let Between { faults, late, truth, .. } = &self.between;
        let about = |what: &str| format!("doubled {} {what}", completion.lease);
        let wait = match below(4, faults.seed, about("when")) {
            0 => Duration::ZERO,
            1 => Duration::from_millis(1 + below(5_000, faults.seed, about("soon"))),
            2 => Duration::from_secs(60 + below(3_600, faults.seed, about("long after"))),
            _ => return late.lock().unwrap_or_else(PoisonError::into_inner).push(completion),
        };
        faults.count(Fault::Doubled);
        if wait.is_zero() {
            return tell(&self.shard, completion);
        }
        let (shard, truth) = (self.shard.clone(), Arc::clone(truth));
        tokio::spawn(async move {
            truth.sleep(wait).await;
            tell(&shard, completion);
        });
    }
}
