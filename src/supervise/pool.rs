//! The PoolActor: keeps n workers alive that pull from one bounded channel (A1).
//!
//! P-1: a job taken from the channel is served or reported as lost, once. P-2: a worker that dies
//! over a job comes back at once; one that dies without a job waits longer each time. P-3: after
//! `Drain` everything already accepted is served; after `Kill` everything is reported.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_channel::Receiver;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::watch;
use tracing::warn;

use super::seat::{Loss, Seat, Slot, WorkerKind};
use crate::protocol::pool::PoolView;
use crate::protocol::{Answer, PoolMsg};
use crate::telemetry::{Metrics, WorkerRestarted};
use crate::types::tally;
use crate::world::Clock;

/// The wait before a worker that died without a job is started again; doubled each time.
const RESTART_WAIT_FIRST: Duration = Duration::from_millis(100);
/// The longest such wait.
const RESTART_WAIT_MAX: Duration = Duration::from_secs(30);

/// Supervises the workers of one kind.
#[derive(Debug)]
pub struct PoolActor<K>(PhantomData<fn() -> K>);

/// What a pool is made of. Cloned for a restart of the pool itself: the channel outlives it.
pub struct PoolSetup<K: WorkerKind> {
    /// What it is called in log and routes.
    pub name: &'static str,
    /// Makes the workers and reports lost jobs.
    pub kind: Arc<K>,
    /// How many workers.
    pub workers: u32,
    /// Where the jobs come from; its bound is what pushes back on the stage before (P4).
    pub jobs: Receiver<K::Job>,
    /// For waits between restarts.
    pub clock: Arc<dyn Clock>,
    /// The node's.
    pub metrics: Arc<Metrics>,
}

impl<K: WorkerKind> Clone for PoolSetup<K> {
    fn clone(&self) -> Self {
        Self {
            name: self.name,
            kind: Arc::clone(&self.kind),
            workers: self.workers,
            jobs: self.jobs.clone(),
            clock: Arc::clone(&self.clock),
            metrics: Arc::clone(&self.metrics),
        }
    }
}

/// The chairs of a pool and who sits in them.
pub struct Pool<K: WorkerKind> {
    setup: PoolSetup<K>,
    chairs: BTreeMap<u32, Chair<K>>,
    next_chair: u32,
    phase: Phase,
    waiting: Vec<Answer<()>>,
    restarts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Draining,
    Killed,
}

struct Chair<K: WorkerKind> {
    worker: Option<ActorCell>,
    slot: Slot<K::Held>,
    leave: watch::Sender<bool>,
    /// Deaths in a row without a job in hand.
    failures: u32,
}

impl<K> Default for PoolActor<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: WorkerKind> Actor for PoolActor<K> {
    type Msg = PoolMsg;
    type State = Pool<K>;
    type Arguments = PoolSetup<K>;

    async fn pre_start(
        &self,
        me: ActorRef<PoolMsg>,
        setup: PoolSetup<K>,
    ) -> Result<Pool<K>, ActorProcessingErr> {
        let workers = setup.workers;
        let mut pool = Pool {
            setup,
            chairs: BTreeMap::new(),
            next_chair: 0,
            phase: Phase::Open,
            waiting: Vec::new(),
            restarts: 0,
        };
        pool.resize(&me, workers).await;
        Ok(pool)
    }

    async fn handle(
        &self,
        me: ActorRef<PoolMsg>,
        msg: PoolMsg,
        pool: &mut Pool<K>,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            PoolMsg::Resize(workers) => pool.resize(&me, workers).await,
            PoolMsg::Reseat(chair) => pool.reseat(&me, chair).await,
            PoolMsg::Drain(answer) => pool.drain(answer),
            PoolMsg::Kill(answer) => pool.kill(answer),
            PoolMsg::Observe(answer) => answer.send(pool.view()),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<PoolMsg>,
        event: SupervisionEvent,
        pool: &mut Pool<K>,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(worker, why) => {
                pool.gone(&me, worker.get_id(), &why.to_string()).await;
            }
            SupervisionEvent::ActorTerminated(worker, _, why) => {
                let why = why.as_deref().unwrap_or("stopped");
                pool.gone(&me, worker.get_id(), why).await;
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl<K: WorkerKind> Pool<K> {
    /// More chairs, or fewer: idle workers leave first, busy ones after their job.
    async fn resize(&mut self, me: &ActorRef<PoolMsg>, workers: u32) {
        if self.phase != Phase::Open {
            return;
        }
        let staying = self.chairs.values().filter(|chair| !chair.is_leaving()).count();
        let staying = tally(staying);
        self.send_away(staying.saturating_sub(workers));
        for _ in staying..workers {
            let number = self.next_chair;
            self.next_chair += 1;
            self.chairs.insert(number, Chair::empty());
            self.reseat(me, number).await;
        }
    }

    fn send_away(&mut self, count: u32) {
        let staying = self.chairs.iter().rev().filter(|(_, chair)| !chair.is_leaving());
        let (busy, idle): (Vec<_>, Vec<_>) =
            staying.map(|(number, chair)| (*number, chair.slot.is_taken())).partition(|at| at.1);
        let leaving = idle.into_iter().chain(busy).map(|(number, _)| number);
        for number in leaving.take(usize::try_from(count).unwrap_or(usize::MAX)) {
            let Some(chair) = self.chairs.get_mut(&number) else { continue };
            chair.leave.send_replace(true);
            if chair.worker.is_none() {
                self.chairs.remove(&number);
            }
        }
    }

    /// Starts a worker in a vacant chair; where that fails it is tried again later (P-2).
    async fn reseat(&mut self, me: &ActorRef<PoolMsg>, number: u32) {
        let ended = self.has_ended();
        let Some(chair) = self.chairs.get_mut(&number) else { return };
        if chair.worker.is_some() {
            return;
        }
        if ended {
            self.chairs.remove(&number);
            self.answer_if_empty();
            return;
        }
        let seat = Seat {
            jobs: self.setup.jobs.clone(),
            leave: chair.leave.subscribe(),
            slot: chair.slot.share(),
        };
        match self.setup.kind.spawn(seat, me.get_cell()).await {
            Ok(worker) => chair.worker = Some(worker),
            Err(why) => {
                warn!(%why, "worker failed to start");
                chair.failures = chair.failures.saturating_add(1);
                self.reseat_later(me, number);
            }
        }
    }

    fn reseat_later(&self, me: &ActorRef<PoolMsg>, number: u32) {
        let failures = self.chairs.get(&number).map_or(1, |chair| chair.failures);
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let wait = RESTART_WAIT_FIRST.saturating_mul(doubled).min(RESTART_WAIT_MAX);
        let (clock, me) = (Arc::clone(&self.setup.clock), me.clone());
        tokio::spawn(async move {
            clock.sleep(wait).await;
            // The pool may have ended meanwhile; then nobody is missed.
            me.send_message(PoolMsg::Reseat(number)).ok();
        });
    }

    /// A worker is gone, whatever the way: what it had in hand is reported, and where there is
    /// still work for its chair another takes it.
    async fn gone(&mut self, me: &ActorRef<PoolMsg>, worker: ActorId, why: &str) {
        let found = self.chairs.iter_mut().find(|(_, chair)| chair.holds(worker));
        let Some((&number, chair)) = found else { return };
        chair.worker = None;
        let held = chair.slot.take();
        chair.failures = if held.is_some() { 0 } else { chair.failures.saturating_add(1) };
        let (leaving, failed_idle) = (chair.is_leaving(), held.is_none());
        if let Some(held) = held {
            self.setup.kind.lost(held, self.loss());
        }
        if leaving || self.has_ended() {
            self.chairs.remove(&number);
            self.answer_if_empty();
            return;
        }
        self.restarts += 1;
        WorkerRestarted { pool: self.setup.name, why }.emit(&self.setup.metrics);
        if failed_idle {
            self.reseat_later(me, number);
        } else {
            self.reseat(me, number).await;
        }
    }

    /// P-3: no more jobs are accepted; those that were are served.
    fn drain(&mut self, answer: Answer<()>) {
        self.setup.jobs.close();
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
        }
        self.waiting.push(answer);
        if self.has_ended() {
            self.chairs.retain(|_, chair| chair.worker.is_some());
        }
        self.answer_if_empty();
    }

    /// P-3: every worker is stopped where it stands; its job is reported when it is gone, so that
    /// a worker that was about to finish does not answer as well.
    fn kill(&mut self, answer: Answer<()>) {
        self.setup.jobs.close();
        self.phase = Phase::Killed;
        self.waiting.push(answer);
        while let Ok(job) = self.setup.jobs.try_recv() {
            self.setup.kind.lost(K::hold(&job), Loss::Killed);
        }
        self.chairs.retain(|_, chair| chair.worker.is_some());
        for worker in self.chairs.values().filter_map(|chair| chair.worker.as_ref()) {
            worker.kill();
        }
        self.answer_if_empty();
    }

    fn answer_if_empty(&mut self) {
        if self.chairs.is_empty() {
            self.waiting.drain(..).for_each(|answer| answer.send(()));
        }
    }

    fn has_ended(&self) -> bool {
        match self.phase {
            // Closed while open: whoever sends jobs is gone.
            Phase::Open | Phase::Draining => {
                self.setup.jobs.is_closed() && self.setup.jobs.is_empty()
            }
            Phase::Killed => true,
        }
    }

    fn loss(&self) -> Loss {
        match self.phase {
            Phase::Open | Phase::Draining => Loss::Died,
            Phase::Killed => Loss::Killed,
        }
    }

    fn view(&self) -> PoolView {
        let chairs = || self.chairs.values();
        PoolView {
            workers: tally(chairs().filter(|chair| chair.worker.is_some()).count()),
            busy: tally(chairs().filter(|chair| chair.slot.is_taken()).count()),
            waiting: tally(self.setup.jobs.len()),
            capacity: tally(self.setup.jobs.capacity().unwrap_or(usize::MAX)),
            restarts: self.restarts,
        }
    }
}

impl<K: WorkerKind> Chair<K> {
    fn empty() -> Self {
        let (leave, _) = watch::channel(false);
        Self { worker: None, slot: Slot::empty(), leave, failures: 0 }
    }

    fn is_leaving(&self) -> bool {
        *self.leave.borrow()
    }

    fn holds(&self, worker: ActorId) -> bool {
        self.worker.as_ref().is_some_and(|cell| cell.get_id() == worker)
    }
}

#[cfg(test)]
mod tests;
