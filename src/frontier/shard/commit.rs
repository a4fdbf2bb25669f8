//! The one writer (S-2): changes of many hosts gather while a write is under way, and go together.
//!
//! A batch is *written* when it can be read, and *durable* after the next flush. A flush is due
//! `data.flush_interval` after a write, at once (at most every 20 ms) where an asker waits for it
//! or a site asked for a wait (I3), and shortly before the first request whose lease waits for it:
//! leases are granted ahead, so that many of them share a flush.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorProcessingErr;
use tracing::{error, warn};

use super::recover::PAGES_ROW;
use super::state::{Closing, Shard, fault};
use crate::policy::change::Change;
use crate::protocol::Answer;
use crate::protocol::ParseJob;
use crate::protocol::ShardMsg;
use crate::protocol::shard::{AdmitAnswer, StoreFault, StoreReply};
use crate::storage::Batch;
use crate::telemetry::StoreFailed;
use crate::types::{EventSeq, HostOverrides, LeaseId, Timestamp, UrlId, UrlVersion};

/// Flushes of a shard are at least this far apart.
const FLUSHES_APART: Duration = Duration::from_millis(20);
/// A flush begins so long before what waits for it has to be durable, and as long again as the
/// last one took: a store far away needs more time than a disk.
const FLUSH_LEAD: Duration = Duration::from_millis(10);
/// A flush or a write that takes longer has failed.
const STORE_DEADLINE: Duration = Duration::from_secs(30);
/// After a failure of the store it is tried again after this.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What waits for a batch.
#[derive(Debug)]
pub(super) enum Then {
    /// Candidates are known.
    Admitted(Vec<(Answer<AdmitAnswer>, AdmitAnswer)>),
    /// A lease may leave.
    Dispatch(LeaseId),
    /// A page may be parsed.
    Parse(Box<ParseJob>),
    /// An output's offsets are in.
    Committed(Answer<()>, Vec<(UrlId, UrlVersion)>),
    /// What fell due is in the queues.
    DueMoved,
    /// A read may begin: it sees all that was decided before it was asked for.
    Read(Later),
    /// Dead letters are back in their queues.
    Requeued(Answer<Result<u64, String>>, u64),
    /// An order to the whole shard is durable.
    Obeyed(Answer<()>),
    /// Rows are cleared.
    Forgotten(Answer<u64>, u64),
    /// An operator's order is durable.
    Ordered(Answer<Option<HostOverrides>>, HostOverrides),
}

/// What the shard does later.
pub(super) struct Later(Box<dyn FnOnce(&mut Shard) + Send>);

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// Changes that have not been written, and who waits for them.
#[derive(Debug, Default)]
struct Group {
    changes: Vec<Change>,
    written: Vec<Then>,
    durable: Vec<Then>,
    /// The shard's pages so far, where they have changed.
    pages: Option<u64>,
    /// When it is to be durable; the flush interval later where nobody says.
    by: Option<Timestamp>,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.written.is_empty() && self.durable.is_empty()
    }
}

/// The state of the writer.
#[derive(Debug, Default)]
pub(super) struct Commit {
    next: Group,
    writing: Option<(Arc<Vec<Change>>, Group)>,
    /// The write under way has failed, and is tried again when its time comes.
    write_failed: bool,
    /// Written, not durable.
    unflushed: Vec<Then>,
    dirty: bool,
    /// Who waits for the flush under way, and the last event that it makes durable.
    flushing: Option<(Vec<Then>, EventSeq)>,
    flush_at: Option<Timestamp>,
    flush_began: Timestamp,
    flush_took: Duration,
    flushed_at: Timestamp,
    retry_at: Option<Timestamp>,
    pub(super) failure: Option<String>,
    pub(super) last_event: EventSeq,
    written_event: EventSeq,
}

impl Commit {
    /// A writer whose store ends with this event.
    pub(super) fn new(last_event: EventSeq) -> Self {
        Self { last_event, written_event: last_event, ..Self::default() }
    }

    /// When the writer wants the clock.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        // After a failure nothing is tried before its time, whatever else is due.
        self.retry_at.or_else(|| self.flush_at.filter(|_| self.flushing.is_none()))
    }

    /// Nothing is on its way, and nobody waits.
    pub(super) fn is_settled(&self) -> bool {
        let durable = self.flushing.is_none() && self.unflushed.is_empty();
        self.next.is_empty() && self.writing.is_none() && durable
    }

    /// Whatever was decided can be read.
    fn is_written(&self) -> bool {
        self.next.changes.is_empty() && self.writing.is_none()
    }

    /// Whatever was written is durable.
    fn is_durable(&self) -> bool {
        !self.dirty && self.flushing.is_none()
    }

    /// The next batch says how many pages the shard has, once for all that end in it.
    pub(super) fn count_pages(&mut self, pages: u64) {
        self.next.pages = Some(pages);
    }

    /// Changes that are not durable.
    pub(super) fn waiting(&self) -> usize {
        let writing = self.writing.as_ref().map_or(0, |(changes, _)| changes.len());
        let flushing = self.flushing.as_ref().map_or(0, |(waiting, _)| waiting.len());
        self.next.changes.len() + writing + self.unflushed.len() + flushing
    }
}

impl Shard {
    /// Into the next batch.
    pub(super) fn put(&mut self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            self.note_touched(&change);
            self.commit.next.changes.push(change);
        }
    }

    /// The next batch is to be durable soon.
    pub(super) fn hurry(&mut self) {
        self.durable_by(self.now());
    }

    /// The next batch is to be durable at that time.
    pub(super) fn durable_by(&mut self, at: Timestamp) {
        let by = &mut self.commit.next.by;
        *by = Some(by.map_or(at, |found| found.min(at)));
    }

    /// Done when the next batch is written.
    pub(super) fn when_written(&mut self, then: Then) {
        self.commit.next.written.push(then);
    }

    /// Begins a read that must see all that was decided so far: at once, or when it is written.
    pub(super) fn once_written(&mut self, read: impl FnOnce(&mut Self) + Send + 'static) {
        if self.commit.is_written() {
            read(self);
        } else {
            self.when_written(Then::Read(Later(Box::new(read))));
        }
    }

    /// Done when the next batch is durable.
    pub(super) fn when_durable(&mut self, then: Then) {
        self.commit.next.durable.push(then);
    }

    /// Writes and flushes what is due.
    pub(super) fn go_on_writing(&mut self) {
        let now = self.now();
        if self.commit.retry_at.is_some_and(|at| at > now) {
            return;
        }
        self.commit.retry_at = None;
        if std::mem::take(&mut self.commit.write_failed)
            && let Some((changes, _)) = &self.commit.writing
        {
            let changes = Arc::clone(changes);
            self.write(changes);
        }
        while self.commit.writing.is_none() && !self.commit.next.is_empty() {
            let mut group = std::mem::take(&mut self.commit.next);
            let pages = group.pages.take().and_then(|pages| postcard::to_stdvec(&pages).ok());
            group.changes.extend(pages.map(|row| Change::PutMeta(PAGES_ROW, row)));
            if group.changes.is_empty() {
                self.group_written(group);
                continue;
            }
            let changes = Arc::new(std::mem::take(&mut group.changes));
            self.commit.writing = Some((Arc::clone(&changes), group));
            self.write(changes);
        }
        let due = self.commit.flush_at.is_some_and(|at| at <= now);
        if due && self.commit.flushing.is_none() {
            self.commit.flush_at = None;
            self.commit.flush_began = now;
            let waiting = std::mem::take(&mut self.commit.unflushed);
            self.commit.flushing = Some((waiting, self.commit.written_event));
            self.commit.dirty = false;
            self.flush();
        }
    }

    fn write(&self, changes: Arc<Vec<Change>>) {
        self.run(Duration::ZERO, |store| async move {
            let mut batch = Batch::new();
            for change in changes.iter() {
                batch.push(change);
            }
            let written = store.write(batch).await;
            let last = written.map(|written| written.events.map(|(_, last)| last));
            ShardMsg::Store(StoreReply::Written(last.map_err(fault)))
        });
    }

    fn flush(&self) {
        self.run(Duration::ZERO, |store| async move {
            let flushed = store.flush(STORE_DEADLINE).await;
            ShardMsg::Store(StoreReply::Flushed(flushed.map_err(fault)))
        });
    }

    /// The batch is in, or is tried again.
    pub(super) fn written(
        &mut self,
        result: Result<Option<EventSeq>, StoreFault>,
    ) -> Result<(), ActorProcessingErr> {
        match result {
            Ok(last) => {
                self.commit.failure = None;
                if let Some(last) = last {
                    self.commit.written_event = last;
                }
                if let Some((_, group)) = self.commit.writing.take() {
                    self.commit.dirty = true;
                    self.group_written(group);
                }
                Ok(())
            }
            Err(failure) => {
                self.commit.write_failed = true;
                self.store_failed(failure)
            }
        }
    }

    /// A group can be read; who waits for more waits on, unless all is durable already.
    fn group_written(&mut self, group: Group) {
        let Group { written, durable, by, .. } = group;
        written.into_iter().for_each(|then| self.then(then));
        if self.commit.is_durable() {
            return durable.into_iter().for_each(|then| self.then(then));
        }
        self.schedule_flush(by);
        self.commit.unflushed.extend(durable);
    }

    /// What is written is made durable now: the shard is closing.
    pub(super) fn flush_now(&mut self) {
        if self.commit.dirty {
            self.commit.flush_at = Some(self.now());
        }
    }

    /// The next flush is in time for `by`, not too soon after the last, and never later than the
    /// interval. Nothing waits once the shard is closing.
    fn schedule_flush(&mut self, by: Option<Timestamp>) {
        let now = self.now();
        let lead = FLUSH_LEAD + self.commit.flush_took;
        let wanted = match self.closing {
            Closing::No => by.map(|by| by - lead),
            Closing::Settling(..) | Closing::Closed => Some(now),
        };
        let soonest = self.commit.flushed_at + FLUSHES_APART;
        let latest = now + self.settings().flush_interval;
        let at = wanted.map_or(latest, |at| at.max(soonest).min(latest));
        self.commit.flush_at = Some(self.commit.flush_at.map_or(at, |found| found.min(at)));
    }

    /// What waited is durable, or is flushed again.
    pub(super) fn flushed(
        &mut self,
        result: Result<(), StoreFault>,
    ) -> Result<(), ActorProcessingErr> {
        let (waiting, last_event) = self.commit.flushing.take().unwrap_or_default();
        match result {
            Ok(()) => {
                self.commit.failure = None;
                self.commit.flushed_at = self.now();
                self.commit.flush_took = self.commit.flushed_at.since(self.commit.flush_began);
                self.commit.last_event = self.commit.last_event.max(last_event);
                waiting.into_iter().for_each(|then| self.then(then));
                Ok(())
            }
            Err(failure) => {
                self.commit.unflushed.splice(0..0, waiting);
                self.commit.dirty = true;
                self.commit.flush_at = Some(self.now() + RETRY_AFTER);
                self.store_failed(failure)
            }
        }
    }

    /// A4: a clear state, no loss, and another try; a fenced owner stops at once (I1).
    pub(super) fn store_failed(&mut self, failure: StoreFault) -> Result<(), ActorProcessingErr> {
        match failure {
            StoreFault::Fenced => {
                error!(shard = self.id.0, "another owner has opened the shard");
                Err("the shard was opened by another owner".into())
            }
            StoreFault::Failed(why) => {
                StoreFailed { shard: self.id, why: &why }.emit(&self.metrics);
                self.commit.failure = Some(why);
                self.commit.retry_at = Some(self.now() + RETRY_AFTER);
                Ok(())
            }
        }
    }

    /// A read failed: it is tried again after a while. A fenced owner stops at once (I1).
    pub(super) fn read_failed(&mut self, failure: &StoreFault) -> Result<(), ActorProcessingErr> {
        match failure {
            StoreFault::Fenced => self.store_failed(StoreFault::Fenced),
            StoreFault::Failed(why) => {
                warn!(shard = self.id.0, why, "store cannot be read, tried again");
                self.unreadable = Some(why.clone());
                Ok(())
            }
        }
    }

    fn then(&mut self, then: Then) {
        match then {
            Then::Admitted(answers) => {
                answers.into_iter().for_each(|(port, answer)| port.send(answer));
            }
            Then::Dispatch(lease) => self.dispatch(lease),
            Then::Parse(job) => self.hand_to_parser(*job),
            Then::Committed(answer, keys) => {
                self.forget_dropped(keys);
                answer.send(());
            }
            Then::DueMoved => self.due_reading = false,
            Then::Read(Later(read)) => read(self),
            Then::Requeued(answer, count) => answer.send(Ok(count)),
            Then::Ordered(answer, overrides) => answer.send(Some(overrides)),
            Then::Forgotten(answer, urls) => answer.send(urls),
            Then::Obeyed(answer) => answer.send(()),
        }
    }
}
