//! Pools through their mailbox, on paused time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use async_channel::Sender;
use ractor::SpawnErr;
use tokio::sync::Notify;

use super::*;
use crate::telemetry::Counter;
use crate::types::Timestamp;
use crate::world::TokioClock;

#[derive(Clone, Debug)]
enum Job {
    Serve(u32),
    Panic(u32),
    Block(u32, Arc<Notify>),
}

#[derive(Default)]
struct Seen {
    served: Mutex<Vec<u32>>,
    lost: Mutex<Vec<(u32, Loss)>>,
    spawned: AtomicU32,
    /// So many starts die before they take a job.
    stillborn: AtomicU32,
}

struct Kind(Arc<Seen>);

impl WorkerKind for Kind {
    type Job = Job;
    type Held = u32;

    fn hold(job: &Job) -> u32 {
        match job {
            Job::Serve(number) | Job::Panic(number) | Job::Block(number, _) => *number,
        }
    }

    async fn spawn(&self, seat: Seat<Self>, pool: ActorCell) -> Result<ActorCell, SpawnErr> {
        let state = (seat, Arc::clone(&self.0));
        let (worker, _) = Actor::spawn_linked(None, Worker, state, pool).await?;
        Ok(worker.get_cell())
    }

    fn lost(&self, held: u32, why: Loss) {
        self.0.lost.lock().unwrap().push((held, why));
    }
}

struct Worker;

impl Actor for Worker {
    type Msg = ();
    type State = (Seat<Kind>, Arc<Seen>);
    type Arguments = Self::State;

    async fn pre_start(
        &self,
        me: ActorRef<()>,
        state: Self::State,
    ) -> Result<Self::State, ActorProcessingErr> {
        state.1.spawned.fetch_add(1, Ordering::SeqCst);
        me.send_message(())?;
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<()>,
        (): (),
        (seat, seen): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let stillborn = &seen.stillborn;
        if stillborn.try_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
            panic!("stillborn");
        }
        match seat.next().await {
            None => me.stop(None),
            Some(job) => {
                match &job {
                    Job::Serve(_) => {}
                    Job::Panic(_) => panic!("poison"),
                    Job::Block(_, gate) => gate.notified().await,
                }
                seen.served.lock().unwrap().extend(seat.release());
                me.send_message(())?;
            }
        }
        Ok(())
    }
}

struct Rig {
    pool: ActorRef<PoolMsg>,
    jobs: Sender<Job>,
    seen: Arc<Seen>,
    metrics: Arc<Metrics>,
}

async fn rig(workers: u32, capacity: usize, stillborn: u32) -> Rig {
    let seen = Arc::new(Seen { stillborn: AtomicU32::new(stillborn), ..Seen::default() });
    let (jobs, receiver) = async_channel::bounded(capacity);
    let metrics = Arc::new(Metrics::new());
    let setup = PoolSetup {
        name: "test",
        kind: Arc::new(Kind(Arc::clone(&seen))),
        workers,
        jobs: receiver,
        clock: Arc::new(TokioClock::starting_at(Timestamp::from_secs(1_000_000))),
        metrics: Arc::clone(&metrics),
    };
    let (pool, _) = Actor::spawn(None, PoolActor::<Kind>::default(), setup).await.unwrap();
    Rig { pool, jobs, seen, metrics }
}

impl Rig {
    async fn view(&self) -> PoolView {
        settle().await;
        self.ask(PoolMsg::Observe).await
    }

    async fn ask<T: Send + 'static>(&self, question: impl FnOnce(Answer<T>) -> PoolMsg) -> T {
        let (answer, waiting) = Answer::channel();
        self.pool.send_message(question(answer)).unwrap();
        waiting.await.unwrap()
    }

    fn served(&self) -> Vec<u32> {
        self.seen.served.lock().unwrap().clone()
    }

    fn lost(&self) -> Vec<(u32, Loss)> {
        self.seen.lost.lock().unwrap().clone()
    }
}

/// Lets every task that can run do so; on paused time the millisecond passes only when all wait.
async fn settle() {
    TokioClock::starting_at(Timestamp::EPOCH).sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_comes_back_and_its_job_is_reported_once() {
    let rig = rig(1, 8, 0).await;
    for job in [Job::Serve(1), Job::Panic(2), Job::Serve(3), Job::Panic(4), Job::Serve(5)] {
        rig.jobs.send(job).await.unwrap();
    }
    let view = rig.view().await;
    assert_eq!(rig.served(), [1, 3, 5]);
    assert_eq!(rig.lost(), [(2, Loss::Died), (4, Loss::Died)]);
    assert_eq!((view.workers, view.busy, view.restarts), (1, 0, 2));
    assert_eq!(rig.metrics.count(Counter::WorkersRestarted), 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_at_its_start_waits_longer_each_time() {
    let rig = rig(1, 8, 4).await;
    rig.jobs.send(Job::Serve(1)).await.unwrap();
    settle().await;
    assert_eq!(rig.seen.spawned.load(Ordering::SeqCst), 1);
    let clock = TokioClock::starting_at(Timestamp::EPOCH);
    clock.sleep(Duration::from_millis(800)).await;
    assert_eq!(rig.seen.spawned.load(Ordering::SeqCst), 4, "after 0, 100, 300 and 700 ms");
    assert!(rig.served().is_empty());
    clock.sleep(Duration::from_millis(800)).await;
    assert_eq!(rig.served(), [1]);
    assert!(rig.lost().is_empty(), "no job was in hand");
}

#[tokio::test(start_paused = true)]
async fn drain_serves_what_was_accepted_and_answers_when_the_last_has_stopped() {
    let rig = rig(2, 8, 0).await;
    let gate = Arc::new(Notify::new());
    for number in [1, 2] {
        rig.jobs.send(Job::Block(number, Arc::clone(&gate))).await.unwrap();
    }
    rig.jobs.send(Job::Panic(3)).await.unwrap();
    rig.jobs.send(Job::Serve(4)).await.unwrap();
    settle().await;
    let (answer, mut waiting) = Answer::channel();
    rig.pool.send_message(PoolMsg::Drain(answer)).unwrap();
    settle().await;
    assert!(rig.jobs.send(Job::Serve(5)).await.is_err(), "nothing more is accepted");
    assert!(waiting.try_recv().is_err());
    gate.notify_one();
    settle().await;
    assert!(waiting.try_recv().is_err(), "one is still at work");
    gate.notify_one();
    waiting.await.unwrap();
    let mut served = rig.served();
    served.sort_unstable();
    assert_eq!(served, [1, 2, 4]);
    assert_eq!(rig.lost(), [(3, Loss::Died)]);
    assert_eq!(rig.view().await.workers, 0);
    rig.ask(PoolMsg::Drain).await;
}

#[tokio::test(start_paused = true)]
async fn kill_stops_at_once_and_reports_every_job() {
    let rig = rig(2, 8, 0).await;
    let gate = Arc::new(Notify::new());
    for number in 1..=5 {
        rig.jobs.send(Job::Block(number, Arc::clone(&gate))).await.unwrap();
    }
    assert_eq!(rig.view().await.busy, 2);
    rig.ask(PoolMsg::Kill).await;
    gate.notify_waiters();
    let mut lost = rig.lost();
    lost.sort_unstable_by_key(|job| job.0);
    assert_eq!(lost, [1, 2, 3, 4, 5].map(|number| (number, Loss::Killed)));
    assert!(rig.served().is_empty());
    assert_eq!(rig.view().await, PoolView { capacity: 8, ..PoolView::default() });
}

#[tokio::test(start_paused = true)]
async fn a_pool_grows_and_shrinks_while_it_works() {
    let rig = rig(1, 8, 0).await;
    let gate = Arc::new(Notify::new());
    rig.jobs.send(Job::Block(1, Arc::clone(&gate))).await.unwrap();
    assert_eq!(rig.view().await.workers, 1);
    rig.pool.send_message(PoolMsg::Resize(4)).unwrap();
    rig.jobs.send(Job::Block(2, Arc::clone(&gate))).await.unwrap();
    let view = rig.view().await;
    assert_eq!((view.workers, view.busy), (4, 2));
    rig.pool.send_message(PoolMsg::Resize(1)).unwrap();
    assert_eq!(rig.view().await.workers, 2, "idle ones leave at once, busy ones after their job");
    gate.notify_waiters();
    assert_eq!(rig.view().await.workers, 1);
    assert_eq!(rig.served().len(), 2);
    rig.jobs.send(Job::Serve(3)).await.unwrap();
    let view = rig.view().await;
    assert_eq!((rig.served().len(), view.restarts), (3, 0));
    assert!(rig.lost().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_channel_pushes_back() {
    let rig = rig(1, 2, 0).await;
    let gate = Arc::new(Notify::new());
    rig.jobs.send(Job::Block(1, Arc::clone(&gate))).await.unwrap();
    settle().await;
    rig.jobs.send(Job::Serve(2)).await.unwrap();
    rig.jobs.send(Job::Serve(3)).await.unwrap();
    assert!(rig.jobs.try_send(Job::Serve(4)).is_err());
    let view = rig.view().await;
    assert_eq!((view.waiting, view.capacity), (2, 2));
    gate.notify_one();
    rig.jobs.send(Job::Serve(4)).await.unwrap();
    settle().await;
    assert_eq!(rig.served(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn workers_leave_when_nobody_can_send_jobs_any_more() {
    let mut rig = rig(2, 2, 0).await;
    rig.jobs.send(Job::Serve(1)).await.unwrap();
    let (jobs, _) = async_channel::bounded(1);
    drop(std::mem::replace(&mut rig.jobs, jobs));
    assert_eq!(rig.view().await.workers, 0);
    assert_eq!(rig.served(), [1]);
}
