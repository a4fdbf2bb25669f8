//! What a worker sits in: the channel it takes jobs from and the slot that says what it has in
//! hand. The seat outlives the worker, so a death loses no job without a report.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_channel::Receiver;
use ractor::{ActorCell, SpawnErr};
use tokio::sync::watch;

/// A kind of worker that a pool can keep.
pub trait WorkerKind: Send + Sync + Sized + 'static {
    /// What comes over the channel.
    type Job: Send + 'static;
    /// What is remembered of a job in hand: enough to report that it was lost.
    type Held: Send + 'static;

    /// What to remember of a job.
    fn hold(job: &Self::Job) -> Self::Held;

    /// Starts a worker in this seat, linked to the pool.
    fn spawn(
        &self,
        seat: Seat<Self>,
        pool: ActorCell,
    ) -> impl Future<Output = Result<ActorCell, SpawnErr>> + Send;

    /// Reports a job to its owner: its worker is gone and will not answer for it.
    fn lost(&self, held: Self::Held, why: Loss);
}

/// Why a job was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its worker panicked over it.
    Died,
    /// The pool was told to stop at once.
    Killed,
}

/// What a worker has in hand, seen by worker and pool.
#[derive(Debug)]
pub(super) struct Slot<H>(Arc<Mutex<Option<H>>>);

impl<H> Slot<H> {
    pub(super) fn empty() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    pub(super) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    pub(super) fn put(&self, held: H) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    pub(super) fn take(&self) -> Option<H> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// One worker's place in its pool.
pub struct Seat<K: WorkerKind> {
    pub(super) jobs: Receiver<K::Job>,
    pub(super) leave: watch::Receiver<bool>,
    pub(super) slot: Slot<K::Held>,
}

impl<K: WorkerKind> Seat<K> {
    /// The next job, in hand from the moment it left the channel; `None` when there will be no
    /// more and the worker should stop.
    pub async fn next(&mut self) -> Option<K::Job> {
        let job = tokio::select! {
            biased;
            _ = self.leave.wait_for(|leave| *leave) => return None,
            job = self.jobs.recv() => job.ok()?,
        };
        self.slot.put(K::hold(&job));
        Some(job)
    }

    /// Notes how far the job in hand has come.
    pub fn note(&self, change: impl FnOnce(&mut K::Held)) {
        let mut slot = self.slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = slot.as_mut() {
            change(held);
        }
    }

    /// The job is out of hand: whoever gets it next answers for it. Called just before it is
    /// passed on, with no wait in between, so that it is reported once.
    pub fn release(&self) -> Option<K::Held> {
        self.slot.take()
    }
}
