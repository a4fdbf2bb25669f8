//! What moves between a host's queue, the due index, the sleepers and the dead letters.

use std::collections::BTreeMap;

use ractor::ActorId;

use super::commit::Then;
use super::recover::add;
use super::state::{Move, MoveKind, Shard, fault};
use crate::policy::change::Change;
use crate::policy::normalise;
use crate::policy::window::{WindowRequest, WindowRows};
use crate::protocol::shard::{DeadSelection, DueRead, StoreFault, StoreReply};
use crate::protocol::{Answer, HostMsg, ShardMsg};
use crate::types::{DeadLetter, HostCounts, HostId, QueueEntry, UrlId, UrlVersion};

/// Entries that fall due together are moved in parts of this many.
const DUE_AT_ONCE: usize = 1000;
/// Dead letters looked at for one retry.
const DEAD_AT_ONCE: usize = 10_000;
/// Sleepers judged again at once.
const SLEEPERS_AT_ONCE: usize = 1000;

impl Shard {
    /// Rows of a host's queue (F10). W-1: the read sees all that was put into the queue before.
    pub(super) fn read_window(&mut self, host: HostId, request: WindowRequest) {
        let Some(resident) = self.residents.get(&host) else { return };
        let actor = resident.actor.get_id();
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let rows = store.queue_windows(host, &request).await;
                let rows = rows.map(Box::new).map_err(fault);
                ShardMsg::Store(StoreReply::WindowRead(host, actor, Box::new(request), rows))
            });
        });
    }

    /// The rows are here; an actor that failed meanwhile has no use for them.
    pub(super) fn window_read(
        &mut self,
        host: HostId,
        actor: ActorId,
        request: Box<WindowRequest>,
        read: Result<Box<WindowRows>, StoreFault>,
    ) {
        if self.actors.get(&actor) != Some(&host) {
            return;
        }
        match read {
            Ok(rows) => self.tell(host, HostMsg::WindowLoaded(request, rows)),
            Err(_) => self.read_window(host, *request),
        }
    }

    /// Retries and revisits whose time has come (F8, C1).
    pub(super) fn read_due(&mut self) {
        let now = self.now();
        if self.due_reading || self.draining || self.next_due.is_none_or(|at| at > now) {
            return;
        }
        self.due_reading = true;
        self.late_due = None;
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let read = async {
                    let end = now + std::time::Duration::from_millis(1);
                    let entries = store.due_before(end, DUE_AT_ONCE).await?;
                    let next = match entries.len() {
                        DUE_AT_ONCE => Some(now),
                        _ => store.next_due_after(end).await?,
                    };
                    Ok(DueRead { entries, next })
                };
                ShardMsg::Store(StoreReply::DueRead(read.await.map_err(fault)))
            });
        });
    }

    pub(super) fn due_read(&mut self, read: Result<DueRead, StoreFault>) {
        self.due_reading = false;
        let Ok(read) = read else { return };
        self.next_due = [read.next, self.late_due].into_iter().flatten().min();
        let mut moves: BTreeMap<HostId, Move> = BTreeMap::new();
        for (due, entry) in read.entries {
            let id = entry.id;
            let found = moves.entry(id.host).or_insert_with(Move::due);
            found.changes.push(Change::Undefer { due, id });
            found.changes.push(Change::Enqueue(Box::new(entry.clone())));
            found.entries.push(entry);
        }
        // Rows stay in the index until their host is awake, so the next read waits for all (F8).
        self.due_moves = moves.len();
        self.due_reading = self.due_moves > 0;
        moves.into_iter().for_each(|(host, part)| self.move_entries(host, part));
    }

    /// Entries of a host change their place, with its counts, in one batch; one at rest is woken.
    pub(super) fn move_entries(&mut self, host: HostId, part: Move) {
        let Some(resident) = self.residents.get_mut(&host) else {
            self.wake(host).moves.push(part);
            return;
        };
        for counts in [&mut resident.counts, &mut self.totals.counts] {
            part.count(counts);
        }
        let counts = resident.counts;
        self.put(part.changes);
        self.put([Change::PutCounts(host, counts)]);
        if !part.entries.is_empty() {
            self.tell(host, HostMsg::Admitted(part.entries));
        }
        if part.kind == MoveKind::Due {
            self.due_moved();
        }
    }

    /// One host has taken what fell due; after the last, and its write, the index is read again.
    pub(super) fn due_moved(&mut self) {
        self.due_moves = self.due_moves.saturating_sub(1);
        if self.due_moves == 0 {
            self.when_written(Then::DueMoved);
        }
    }

    /// F8: dead letters go back into their queues.
    pub(super) fn retry_dead(
        &mut self,
        selection: DeadSelection,
        answer: Answer<Result<u64, String>>,
    ) {
        self.retries.push_back((selection, answer));
    }

    /// One retry at a time, so that none sees letters that another one has taken (I5).
    pub(super) fn go_on_retrying(&mut self) {
        if self.retrying {
            return;
        }
        if let Some((selection, answer)) = self.retries.pop_front() {
            self.retrying = true;
            self.once_written(|shard| shard.read_dead(selection, answer));
        }
    }

    fn read_dead(&self, selection: DeadSelection, answer: Answer<Result<u64, String>>) {
        let wanted: Option<Vec<String>> = match &selection {
            DeadSelection::Urls(urls) => {
                Some(urls.iter().map(|url| normalise::recognised(url).into_owned()).collect())
            }
            DeadSelection::Host(_) | DeadSelection::All => None,
        };
        self.read(|store| async move {
            let read = store.dead(None, DEAD_AT_ONCE).await.map(|letters| {
                let chosen = letters.into_iter().filter(|letter| match (&selection, &wanted) {
                    (DeadSelection::Host(host), _) => letter.entry.url.host_key() == *host,
                    (DeadSelection::Urls(_), Some(wanted)) => {
                        wanted.contains(&normalise::recognised(&letter.entry.url).into_owned())
                    }
                    (DeadSelection::All | DeadSelection::Urls(_), _) => true,
                });
                chosen.collect()
            });
            ShardMsg::Store(StoreReply::DeadRead(read.map_err(fault), answer))
        });
    }

    pub(super) fn dead_read(
        &mut self,
        read: Result<Vec<DeadLetter>, StoreFault>,
        answer: Answer<Result<u64, String>>,
    ) {
        self.retrying = false;
        let letters = match read {
            Ok(letters) => letters,
            Err(failure) => return answer.send(Err(format!("{failure:?}"))),
        };
        let count = u64::try_from(letters.len()).unwrap_or(0);
        let now = self.now();
        let mut moved: BTreeMap<HostId, u64> = BTreeMap::new();
        for letter in letters {
            let mut entry = letter.entry;
            entry.attempts = 0;
            // A version of its own: the events of the old one have been given (F6).
            entry.version = UrlVersion(entry.version.0.saturating_add(1));
            *moved.entry(entry.id.host).or_default() += 1;
            self.put([
                Change::DropDead(entry.id),
                Change::Defer { due: now, entry: Box::new(entry) },
            ]);
        }
        moved.into_iter().for_each(|(host, letters)| self.move_entries(host, Move::dead(letters)));
        self.deferred_until(now);
        self.hurry();
        self.when_durable(Then::Requeued(answer, count));
    }

    /// R2: the rules changed: sleepers are read, a part at a time.
    pub(super) fn read_sleepers(&mut self, host: HostId, after: Option<UrlId>) {
        if let Some(resident) = self.residents.get_mut(&host) {
            resident.sleepers_after = Some(after);
        }
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let read = store.sleepers(host, after, SLEEPERS_AT_ONCE).await;
                let read = read.map(|rows| {
                    let more = rows.len() == SLEEPERS_AT_ONCE;
                    (rows.into_iter().map(|(entry, _)| entry).collect(), more)
                });
                ShardMsg::Store(StoreReply::SleepersRead(host, read.map_err(fault)))
            });
        });
    }

    /// R2: URLs that the old rules refused are back in the queue, to be judged by the new ones.
    pub(super) fn sleepers_read(
        &mut self,
        host: HostId,
        read: Result<(Vec<QueueEntry>, bool), StoreFault>,
    ) {
        let Some(resident) = self.residents.get_mut(&host) else { return };
        let after = resident.sleepers_after.take().flatten();
        match read {
            Ok((entries, more)) if !entries.is_empty() => {
                let last = entries.last().map(|entry| entry.id);
                let woken = HostCounts {
                    queued: u64::try_from(entries.len()).unwrap_or(0),
                    ..HostCounts::default()
                };
                for counts in [&mut resident.counts, &mut self.totals.counts] {
                    counts.sleeping = counts.sleeping.saturating_sub(woken.queued);
                    add(counts, woken);
                }
                let counts = resident.counts;
                for entry in &entries {
                    let entry = entry.clone();
                    self.put([Change::Unsleep(entry.id), Change::Enqueue(Box::new(entry))]);
                }
                self.put([Change::PutCounts(host, counts)]);
                self.tell(host, HostMsg::Admitted(entries));
                match more {
                    true => self.read_sleepers(host, last),
                    false => self.sleepers_judged(host),
                }
            }
            // One more step, after which an idle host can go to rest.
            Ok(_) => {
                self.sleepers_judged(host);
                self.tell(host, HostMsg::Wake);
            }
            Err(_) => self.read_sleepers(host, after),
        }
    }
}
