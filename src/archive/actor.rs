//! ArchiveActor: one file at a time, written in groups.
//!
//! A response becomes a request record and a response or revisit record in the gathered group. A
//! group is appended and synced by a task, at most one at a time; then its completions go out (I7).
//! When the disk fails, the responses stay and go to a fresh file later: nothing is dropped (I8).
//! No handler waits: the disk, the payload index and the clock answer by messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::watch;
use tracing::info;

use super::digest::sha1_of;
use super::group::{Group, Syncing, may_be_known};
use super::member::{ArchiveFormat, MemberWriter, size};
use super::publish::{self, ClosedFile};
use super::{ArchiveError, CrawlerInfo, warc};
use crate::policy::exclusion::Exclusions;
use crate::protocol::archive::{ArchiveView, StoreJob};
use crate::protocol::{Answer, ArchiveMsg, Owners, RoutesWatch, ShardMsg};
use crate::supervise::{Alarm, Retry};
use crate::telemetry::{DiskFailed, Metrics};
use crate::types::{ContentRecord, Timestamp, in_full, tally};
use crate::world::{Clock, Dice, Spool};
use rotation::Rotation;

/// A group is synced at the latest this long after its first record.
const GROUP_DELAY: Duration = Duration::from_millis(20);
/// A group this large is synced at once.
const GROUP_BYTES: usize = 4 << 20;

/// What the archive is told once.
#[derive(Clone, Debug)]
pub struct ArchiveSettings {
    /// `archive.format`.
    pub format: ArchiveFormat,
    /// `archive.max_file_size`, in bytes; a file grows beyond it by at most one group.
    pub file_bytes_max: u64,
    /// `archive.max_file_age`.
    pub file_age_max: Duration,
    /// Which of the archive's writers this is, from 0.
    pub index: u16,
    /// How many writers there are; a file that one left open is published by the one that has
    /// `index = its index % count`.
    pub count: u16,
    /// For warcinfo.
    pub crawler: CrawlerInfo,
}

/// What an ArchiveActor needs.
#[derive(Clone, Debug)]
pub struct ArchiveArgs {
    /// The disk: `archive/` and `index/` are under its root.
    pub spool: Arc<dyn Spool>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// For record ids.
    pub dice: Arc<dyn Dice>,
    /// Where the payload index is (D3).
    pub routes: RoutesWatch,
    /// What is being removed (R5).
    pub exclusions: watch::Receiver<Arc<Exclusions>>,
    /// The node's.
    pub metrics: Arc<Metrics>,
    /// What is configured.
    pub settings: ArchiveSettings,
}

/// The writer of one open file.
#[derive(Debug)]
pub struct ArchiveActor;

/// What an ArchiveActor knows.
pub struct ArchiveState {
    me: ActorRef<ArchiveMsg>,
    args: ArchiveArgs,
    writer: MemberWriter,
    /// Responses whose payload may lie in the archive already, by job number.
    looked_up: BTreeMap<u64, StoreJob>,
    next_job: u64,
    next_serial: u64,
    gathered: Group,
    /// When the gathered group is to be synced.
    due: Option<Timestamp>,
    syncing: Option<Syncing>,
    file: Option<OpenFile>,
    retry: Retry,
    /// Closed and not yet published.
    publishing: BTreeMap<String, Publishing>,
    alarm: Alarm<ArchiveMsg>,
    closing: Option<Answer<()>>,
    rotation: Rotation,
    records: u64,
    bytes: u64,
}

struct OpenFile {
    /// What is on the disk for sure.
    synced: ClosedFile,
    opened_at: Timestamp,
}

struct Publishing {
    file: ClosedFile,
    retry: Retry,
    running: bool,
}

impl Actor for ArchiveActor {
    type Msg = ArchiveMsg;
    type State = ArchiveState;
    type Arguments = ArchiveArgs;

    async fn pre_start(
        &self,
        me: ActorRef<ArchiveMsg>,
        args: ArchiveArgs,
    ) -> Result<ArchiveState, ActorProcessingErr> {
        let next_serial = publish_leftovers(&args).await?;
        Ok(ArchiveState::new(me, args, next_serial))
    }

    async fn handle(
        &self,
        _: ActorRef<ArchiveMsg>,
        message: ArchiveMsg,
        archive: &mut ArchiveState,
    ) -> Result<(), ActorProcessingErr> {
        archive.args.clock.step("archive");
        match message {
            ArchiveMsg::Store(job) => archive.take(*job),
            ArchiveMsg::PayloadKnown { job, found } => archive.payload_known(job, found.as_deref()),
            ArchiveMsg::Synced(result) => archive.synced(result),
            ArchiveMsg::Published { file, result } => archive.published(&file, result),
            ArchiveMsg::Tick => archive.alarm.rang(),
            ArchiveMsg::Rotate(answer) => archive.rotate(answer),
            ArchiveMsg::Close(answer) => archive.close(answer),
            ArchiveMsg::Observe(answer) => answer.send(archive.observe()),
        }
        archive.advance();
        Ok(())
    }
}

/// Publishes what an earlier run left open; answers with the first free serial number.
async fn publish_leftovers(args: &ArchiveArgs) -> Result<u64, ArchiveError> {
    let mut next_serial = 0;
    for (path, bytes) in publish::list(&args.spool).await? {
        let Some((serial, index)) = publish::numbers_of(&path) else { continue };
        next_serial = next_serial.max(serial + 1);
        let mine = index % args.settings.count.max(1) == args.settings.index;
        let open = path.strip_suffix(publish::OPEN).and_then(|path| path.rsplit_once('/'));
        if let Some((_, name)) = open.filter(|_| mine) {
            info!(file = name, bytes, "publishing a file that was left open");
            match publish::recover(&args.spool, name, bytes, &args.metrics).await {
                // It was put aside, and the crawl goes on.
                Ok(()) | Err(ArchiveError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(next_serial)
}

impl ArchiveState {
    fn new(me: ActorRef<ArchiveMsg>, args: ArchiveArgs, next_serial: u64) -> Self {
        let alarm = Alarm::new(Arc::clone(&args.clock), me.clone(), || ArchiveMsg::Tick);
        Self {
            me,
            writer: MemberWriter::new(args.settings.format),
            args,
            looked_up: BTreeMap::new(),
            next_job: 0,
            next_serial,
            gathered: Group::default(),
            due: None,
            syncing: None,
            file: None,
            retry: Retry::default(),
            publishing: BTreeMap::new(),
            alarm,
            closing: None,
            rotation: Rotation::default(),
            records: 0,
            bytes: 0,
        }
    }

    fn take(&mut self, job: StoreJob) {
        let Some(mut job) = self.refuse_removed(job) else { return };
        let old = job.response.lease.entry.validators.as_ref().and_then(|v| v.digest.clone());
        let not_modified = job.response.status == 304;
        let digest = match old {
            // A 304 stands for the payload that its validators belong to.
            Some(old) if not_modified => old,
            _ => sha1_of(&[&job.response.body]),
        };
        job.completion.digest = Some(digest.clone());
        if let Some(validators) = &mut job.completion.validators {
            validators.digest = Some(digest.clone());
        }
        if self.closing.is_none() && may_be_known(&job) {
            self.look_up(job, digest);
        } else {
            self.gather(job, None);
        }
    }

    /// D3: asks the owner of the digest; no answer means that the payload is stored once more.
    fn look_up(&mut self, job: StoreJob, digest: String) {
        let number = self.next_job;
        self.next_job += 1;
        self.looked_up.insert(number, job);
        let me = self.me.clone();
        let answer = Answer::to(move |found: Option<Option<Box<ContentRecord>>>| {
            let known = ArchiveMsg::PayloadKnown { job: number, found: found.flatten() };
            // When the archive is gone, so is the response.
            me.send_message(known).ok();
        });
        let routes = Arc::clone(&self.args.routes.borrow());
        if let Some(route) = routes.content_shard(&digest) {
            // A message that does not arrive drops the answer, which says so.
            route.shard.send_message(ShardMsg::LookUpPayload(digest, answer)).ok();
        }
    }

    fn payload_known(&mut self, job: u64, found: Option<&ContentRecord>) {
        if let Some(job) = self.looked_up.remove(&job) {
            let exclusions = Arc::clone(&self.args.exclusions.borrow());
            // R5: a record that is gone, or about to go, holds no payload for others.
            self.gather(job, found.filter(|found| !exclusions.forgets(&found.url)));
        }
    }

    fn gather(&mut self, job: StoreJob, earlier: Option<&ContentRecord>) {
        if self.gathered.is_empty() {
            self.due = Some(self.args.clock.now() + GROUP_DELAY);
        }
        self.gathered.add(job, earlier, &mut self.writer, &*self.args.dice);
    }

    /// Does what is due; called after every message.
    fn advance(&mut self) {
        let now = self.args.clock.now();
        if self.syncing.is_none() && self.file_is_full(now) {
            self.close_file();
        }
        self.go_on_rotating();
        if self.syncing.is_none() && self.group_is_due(now) && self.retry.allows(now) {
            self.rotation.syncing();
            self.sync(now);
        }
        self.publish_closed(now);
        self.end_if_closed();
        self.arm(now);
    }

    fn file_is_full(&self, now: Timestamp) -> bool {
        let settings = &self.args.settings;
        self.file.as_ref().is_some_and(|file| {
            let nothing_more = self.closing.is_some() && self.gathered.is_empty();
            file.synced.bytes >= settings.file_bytes_max
                || now.since(file.opened_at) >= settings.file_age_max
                || nothing_more
        })
    }

    fn group_is_due(&self, now: Timestamp) -> bool {
        let waited_for = self.closing.is_some() || self.rotation.hurries();
        let hurry = waited_for || self.gathered.bytes.len() >= GROUP_BYTES;
        !self.gathered.is_empty() && (hurry || self.due.is_some_and(|due| due <= now))
    }

    /// Hands the gathered group to a task that appends and syncs it.
    fn sync(&mut self, now: Timestamp) {
        let mut group = std::mem::take(&mut self.gathered);
        self.due = None;
        let file = match self.file.take() {
            Some(file) => file,
            None => self.new_file(now),
        };
        let mut bytes = Vec::new();
        if file.synced.bytes == 0 {
            let crawler = &self.args.settings.crawler;
            let info = warc::warcinfo(crawler, &file.synced.name, file.opened_at, &*self.args.dice);
            self.writer.write(&info.parts(), false, &mut bytes);
        }
        let header_bytes = size(bytes.len());
        if bytes.is_empty() {
            // All groups of a file but the first: their bytes are moved, not copied.
            std::mem::swap(&mut bytes, &mut group.bytes);
        } else {
            bytes.append(&mut group.bytes);
        }
        let syncing = Syncing { group, bytes: bytes.into(), header_bytes };
        let (spool, me) = (Arc::clone(&self.args.spool), self.me.clone());
        let (path, offset) = (publish::open_path(&file.synced.name), file.synced.bytes);
        let bytes = syncing.bytes.clone();
        tokio::spawn(async move {
            let result = spool.append(&path, offset, bytes).await;
            // When the archive is gone, the leases of its responses run out.
            me.send_message(ArchiveMsg::Synced(result.map_err(|error| error.to_string()))).ok();
        });
        self.syncing = Some(syncing);
        self.file = Some(file);
    }

    fn new_file(&mut self, now: Timestamp) -> OpenFile {
        let ArchiveSettings { index, format, .. } = self.args.settings;
        let name = format!(
            "{}{}-{:05}-{index}{}",
            warc::FILE_PREFIX,
            now.to_fourteen_digits(),
            self.next_serial,
            format.extension()
        );
        self.next_serial += 1;
        let synced = ClosedFile { name, ..ClosedFile::default() };
        OpenFile { synced, opened_at: now }
    }

    fn synced(&mut self, result: Result<(), String>) {
        let Some(syncing) = self.syncing.take() else { return };
        match (result, &mut self.file) {
            (Ok(()), Some(file)) => {
                let at = file.synced.bytes;
                syncing.count_in(&mut file.synced);
                let name: Arc<str> = file.synced.name.as_str().into();
                self.retry = Retry::default();
                self.records += size(syncing.group.members.len());
                self.bytes += size(syncing.bytes.len());
                let ArchiveArgs { routes, clock, .. } = &self.args;
                let owners = Owners { routes: routes.clone(), clock: Arc::clone(clock) };
                syncing.report(&name, at, &owners);
            }
            (Ok(()), None) => {}
            (Err(why), _) => self.put_back(syncing.into_group(), why),
        }
    }

    /// The group goes to a fresh file once the disk works again: after a failed sync nobody knows
    /// what of a file reached the disk.
    fn put_back(&mut self, group: Group, why: String) {
        let now = self.args.clock.now();
        DiskFailed { what: "archive", why: &why }.emit(&self.args.metrics);
        self.retry.failed(now, why);
        self.gathered = group.followed_by(std::mem::take(&mut self.gathered));
        self.due = Some(now);
        if self.file.as_ref().is_some_and(|file| file.synced.bytes > 0) {
            self.close_file();
        }
    }

    fn close_file(&mut self) {
        let Some(OpenFile { synced, .. }) = self.file.take() else { return };
        if synced.bytes > 0 {
            let (name, retry) = (synced.name.clone(), Retry::default());
            self.publishing.insert(name, Publishing { file: synced, retry, running: false });
        }
    }

    fn publish_closed(&mut self, now: Timestamp) {
        for (name, publishing) in &mut self.publishing {
            if publishing.running || !publishing.retry.allows(now) {
                continue;
            }
            publishing.running = true;
            let (spool, me) = (Arc::clone(&self.args.spool), self.me.clone());
            let metrics = Arc::clone(&self.args.metrics);
            let (file, name) = (publishing.file.clone(), name.clone());
            tokio::spawn(async move {
                let result = match publish::publish(&spool, &file, &metrics).await {
                    // It was put aside; trying again would not mend it.
                    Ok(()) | Err(ArchiveError::Damaged { .. }) => Ok(()),
                    Err(error) => Err(in_full(&error)),
                };
                // When the archive is gone, the next one publishes the file.
                me.send_message(ArchiveMsg::Published { file: name, result }).ok();
            });
        }
    }

    fn published(&mut self, file: &str, result: Result<(), String>) {
        let now = self.args.clock.now();
        match (result, self.publishing.get_mut(file)) {
            (Ok(()), _) => drop(self.publishing.remove(file)),
            (Err(_), None) => {}
            (Err(why), Some(publishing)) => {
                DiskFailed { what: file, why: &why }.emit(&self.args.metrics);
                publishing.running = false;
                publishing.retry.failed(now, why);
            }
        }
    }

    fn close(&mut self, answer: Answer<()>) {
        self.closing = Some(answer);
        self.gather_looked_up();
    }

    /// What waits for the word of an index is stored as it is.
    fn gather_looked_up(&mut self) {
        for (_, job) in std::mem::take(&mut self.looked_up) {
            self.gather(job, None);
        }
    }

    fn end_if_closed(&mut self) {
        let writing = self.syncing.is_some() || self.file.is_some() || !self.gathered.is_empty();
        let idle = !writing && self.publishing.is_empty();
        if let Some(answer) = self.closing.take_if(|_| idle) {
            answer.send(());
            self.me.stop(None);
        }
    }

    fn arm(&mut self, now: Timestamp) {
        let group = self.due.filter(|_| self.syncing.is_none());
        let group = group.map(|due| due.max(self.retry.at().unwrap_or(due)));
        let age = self.args.settings.file_age_max;
        let file = self.file.as_ref().filter(|_| self.syncing.is_none());
        let waiting = self.publishing.values().filter(|file| !file.running);
        let next = waiting
            .filter_map(|file| file.retry.at())
            .chain(group)
            .chain(file.map(|file| file.opened_at + age))
            .min();
        if let Some(at) = next {
            self.alarm.set(at.max(now));
        }
    }

    fn observe(&self) -> ArchiveView {
        let in_flight = self.syncing.as_ref().map_or(0, |syncing| syncing.group.waiting.len());
        let waiting = in_flight + self.gathered.waiting.len() + self.looked_up.len();
        let unpublished = self.publishing.values().find_map(|file| file.retry.failure());
        ArchiveView {
            file: self.file.as_ref().map(|file| file.synced.name.clone()),
            file_bytes: self.file.as_ref().map_or(0, |file| file.synced.bytes),
            records: self.records,
            bytes: self.bytes,
            waiting: tally(waiting),
            failure: self.retry.failure().or(unpublished).map(str::to_owned),
        }
    }
}

mod rotation;
#[cfg(test)]
mod tests;
