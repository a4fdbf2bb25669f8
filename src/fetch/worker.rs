//! The FetchActor: one lease at a time, from the wait for its time to the hand-over (H1, I2).
//!
//! W-1 (I2): nothing is sent before the lease's `not_before`, nor before its address's clock says
//! go. W-2: whatever happens, the address hears once that the place is free, and the shard hears
//! once how it ended: from the archive, from here, or from the pool when the worker is lost.
//! W-3 (P4): a body is handed on only with a permit for the memory it takes. W-4 (R5): what an
//! exclusion covers is not sent, and cut where it is under way; nothing of it is kept.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, MessagingErr, SpawnErr};
use tokio::sync::watch;

use super::classify;
use super::settings::FetchSettings;
use crate::policy::exclusion::Exclusions;
use crate::protocol::archive::StoreJob;
use crate::protocol::shard::EndedReport;
use crate::protocol::{
    AddressMsg, ArchiveMsg, Credit, FetchJob, FetchMsg, Owners, Permit, Unheard, ask,
};
use crate::supervise::{Loss, Seat, WorkerKind};
use crate::types::{Completion, Lease, Outcome, Reason, Response, Timestamp};
use crate::world::{Clock, Exchange, ExchangeFailure, Exchanged};

/// The wait before an owner that was gone is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How often the owner of an address is asked: it restarts at once or not at all.
const DEPARTURE_ASKS: u32 = 5;
/// How often the archive is tried: opening a new file may take it a while.
const STORE_TRIES: u32 = 100;

/// What all workers share.
#[derive(Debug)]
pub struct FetchContext {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The network.
    pub exchange: Arc<dyn Exchange>,
    /// The newest settings.
    pub settings: watch::Receiver<Arc<FetchSettings>>,
    /// R5: the exclusions in force.
    pub exclusions: watch::Receiver<Arc<Exclusions>>,
    /// The archive that takes responses now; another after it had to be restarted.
    pub archive: watch::Receiver<ActorRef<ArchiveMsg>>,
    /// Who hears how an exchange ended.
    pub owners: Owners,
    /// Memory for bodies on their way from here to the parser, in KiB.
    pub bodies: Credit,
    /// What a body takes of them at least: so much that the credit is spent before the parsers'
    /// channel is full, and a page need not be read back from the archive.
    pub body_place_kib: u32,
}

/// The kind of worker that a pool of fetchers keeps.
#[derive(Debug)]
pub struct Fetchers {
    /// What all workers share.
    pub context: Arc<FetchContext>,
}

/// What is remembered of a job in hand.
#[derive(Debug)]
pub struct FetchHeld {
    job: FetchJob,
    stage: Stage,
}

/// How far a job has come: what the address and the shard still have to hear.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Waiting,
    Sent(Timestamp),
    Left { sent_at: Timestamp, ended_at: Timestamp },
}

/// One worker.
#[derive(Debug)]
pub struct FetchActor;

/// A worker's seat and what it works with.
pub struct FetchState {
    seat: Seat<Fetchers>,
    context: Arc<FetchContext>,
}

impl WorkerKind for Fetchers {
    type Job = FetchJob;
    type Held = FetchHeld;

    fn hold(job: &FetchJob) -> FetchHeld {
        FetchHeld { job: job.clone(), stage: Stage::Waiting }
    }

    async fn spawn(&self, seat: Seat<Self>, pool: ActorCell) -> Result<ActorCell, SpawnErr> {
        let state = FetchState { seat, context: Arc::clone(&self.context) };
        let (worker, _) = Actor::spawn_linked(None, FetchActor, state, pool).await?;
        Ok(worker.get_cell())
    }

    /// W-2, for a worker that is gone. A request that may have been sent counts as sent.
    fn lost(&self, held: FetchHeld, why: Loss) {
        let reason = match why {
            Loss::Died => Reason::WorkerDied,
            Loss::Killed => Reason::Stopping,
        };
        let now = self.context.clock.now();
        let (sent_at, ended_at) = match held.stage {
            Stage::Waiting => (None, now),
            Stage::Sent(sent_at) => (Some(sent_at), now),
            Stage::Left { sent_at, ended_at } => (Some(sent_at), ended_at),
        };
        let outcome = Outcome::Cancelled;
        close(&held, ExchangeFailure { outcome, reason, sent_at, ended_at }, &self.context.owners);
    }
}

impl Actor for FetchActor {
    type Msg = FetchMsg;
    type State = FetchState;
    type Arguments = FetchState;

    async fn pre_start(
        &self,
        me: ActorRef<FetchMsg>,
        state: FetchState,
    ) -> Result<FetchState, ActorProcessingErr> {
        me.send_message(FetchMsg::Next)?;
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<FetchMsg>,
        msg: FetchMsg,
        state: &mut FetchState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            FetchMsg::Next => state.next(&me).await,
        }
        Ok(())
    }
}

impl FetchState {
    async fn next(&mut self, me: &ActorRef<FetchMsg>) {
        match self.seat.next().await {
            Some(job) => {
                Box::pin(self.serve(job)).await;
                // A worker that is being stopped needs no next job.
                me.send_message(FetchMsg::Next).ok();
            }
            None => me.stop(None),
        }
    }

    async fn serve(&self, job: FetchJob) {
        self.context.clock.step("fetch");
        let now = || self.context.clock.now();
        let unsent =
            |(outcome, reason)| ExchangeFailure { outcome, reason, sent_at: None, ended_at: now() };
        if let Err(why) = self.depart(&job).await {
            return self.end(unsent(why));
        }
        let settings = Arc::clone(&self.context.settings.borrow());
        let Some(request) = settings.request(&job.lease, now()) else {
            let address = "an address that was never pinned".to_owned();
            let reason = Reason::EgressRefused { address };
            return self.end(unsent((Outcome::EgressRefused, reason)));
        };
        let excluded = self.context.exclusions.borrow().refuses(&job.lease, now());
        if let Some(reason) = excluded {
            return self.end(unsent((Outcome::Cancelled, reason)));
        }
        let oversize = request.limits.oversize;
        let sent = now();
        self.seat.note(|held| held.stage = Stage::Sent(sent));
        let cut = |reason| ExchangeFailure {
            outcome: Outcome::Cancelled,
            reason,
            sent_at: Some(sent),
            ended_at: now(),
        };
        let exchanged = tokio::select! {
            biased;
            reason = self.excluded(&job.lease) => Err(cut(reason)),
            exchanged = self.context.exchange.exchange(request) => exchanged,
        };
        match exchanged {
            Err(failure) => self.end(failure),
            Ok(got) => {
                let (sent_at, ended_at) = (got.sent_at, got.ended_at);
                leave(&job, Some(ended_at));
                self.seat.note(|held| held.stage = Stage::Left { sent_at, ended_at });
                let max = settings.robots_bytes_max;
                let completion = classify::completion(&job.lease, &got, oversize, max);
                // Boxed when it is needed: every exchange would wait with room for it.
                Box::pin(self.hand_on(job, got, completion)).await;
            }
        }
    }

    /// W-4: waits until an exclusion covers the lease; for ever where none does.
    async fn excluded(&self, lease: &Lease) -> Reason {
        let mut exclusions = self.context.exclusions.clone();
        loop {
            let now = self.context.clock.now();
            let found = exclusions.borrow_and_update().refuses(lease, now);
            if let Some(reason) = found {
                return reason;
            }
            if exclusions.changed().await.is_err() {
                // Whoever makes exclusions is gone, so none comes.
                std::future::pending::<()>().await;
            }
        }
    }

    /// W-1: waits for the lease's time, then for the address's clock.
    async fn depart(&self, job: &FetchJob) -> Result<(), (Outcome, Reason)> {
        let clock = &self.context.clock;
        let lease = &job.lease;
        let expired = Err((Outcome::Cancelled, Reason::LeaseExpired));
        if lease.not_before >= lease.expires_at {
            return expired;
        }
        clock.sleep_until(lease.not_before).await;
        if let Some(address) = lease.address {
            let go = self.departure(job, address).await?;
            clock.sleep_until(go).await;
        }
        if clock.now() >= lease.expires_at { expired } else { Ok(()) }
    }

    /// When the owner of the address lets the request go. An owner that is gone is asked again;
    /// where none comes back nothing is sent, since nobody knows when it may be.
    async fn departure(
        &self,
        job: &FetchJob,
        address: IpAddr,
    ) -> Result<Timestamp, (Outcome, Reason)> {
        for _ in 0..DEPARTURE_ASKS {
            let lease = job.lease.id;
            let departs = |answer| AddressMsg::Depart { address, lease, answer };
            if let Some(go) = ask(&job.address, departs).await {
                return Ok(go);
            }
            self.context.clock.sleep(ASK_AGAIN).await;
        }
        let until = self.context.clock.now();
        Err((Outcome::Cancelled, Reason::AddressClock { until }))
    }

    /// W-3: the response goes to the archive once there is memory for it.
    async fn hand_on(&self, job: FetchJob, got: Exchanged, completion: Completion) {
        let room = kibibytes(got.body.len()).max(self.context.body_place_kib);
        let permit = self.context.bodies.take(room).await;
        let response = response(Arc::clone(&job.lease), got);
        let shard = job.shard;
        let owners = &self.context.owners;
        let unheard = Unheard::of(&response, completion.retry_after, &shard, owners);
        let mut store = Box::new(StoreJob { response, completion, shard, permit, unheard });
        for _ in 0..STORE_TRIES {
            let archive = self.context.archive.borrow().clone();
            match archive.send_message(ArchiveMsg::Store(store)) {
                Ok(()) => {
                    // W-2: from here on the archive answers for it.
                    self.seat.release();
                    return;
                }
                Err(MessagingErr::SendErr(ArchiveMsg::Store(back))) => store = back,
                Err(_) => break,
            }
            self.context.clock.sleep(ASK_AGAIN).await;
        }
        // W-2: a response that is dropped tells its shard itself.
        self.seat.release();
    }

    /// W-2: the end of a job of which nothing is stored.
    fn end(&self, failure: ExchangeFailure) {
        if let Some(held) = self.seat.release() {
            close(&held, failure, &self.context.owners);
        }
    }
}

/// Tells the address, unless it has heard, and the shard.
fn close(held: &FetchHeld, failure: ExchangeFailure, owners: &Owners) {
    let FetchHeld { job, stage } = held;
    match stage {
        Stage::Waiting | Stage::Sent(_) => {
            leave(job, failure.sent_at.map(|_| failure.ended_at));
        }
        Stage::Left { .. } => {}
    }
    let completion = classify::failed(&job.lease, failure);
    let report = EndedReport { completion, response: None, permit: Permit::free() };
    owners.tell_end(&job.shard, report);
}

/// The place at the address is free again.
fn leave(job: &FetchJob, ended_at: Option<Timestamp>) {
    if let Some(address) = job.lease.address {
        let left = AddressMsg::Left { address, lease: job.lease.id, ended_at };
        // An owner that is gone counts every address as just visited when it is back.
        job.address.send_message(left).ok();
    }
}

fn response(lease: Arc<Lease>, got: Exchanged) -> Response {
    Response {
        lease,
        request_head: got.request_head,
        protocol: got.protocol,
        status: got.status,
        status_line: got.status_line,
        headers: got.headers,
        body: got.body,
        truncated: got.truncated,
        sent_at: got.sent_at,
        ended_at: got.ended_at,
        address: got.remote,
    }
}

/// Units of the body credit; an empty body counts too.
fn kibibytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests;
