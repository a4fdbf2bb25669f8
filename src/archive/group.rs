//! Records that are written and synced together, and the responses that wait for it.

use std::sync::Arc;

use bytes::Bytes;

use super::member::{MemberWriter, size};
use super::publish::ClosedFile;
use super::warc::ExchangeRecords;
use crate::protocol::archive::StoreJob;
use crate::protocol::shard::EndedReport;
use crate::protocol::{Owners, Routes, ShardMsg};
use crate::types::{ArchivePointer, Completion, ContentRecord, LeaseKind};
use crate::world::Dice;

/// A revisit record would hardly be smaller than the response.
const REVISIT_BODY_BYTES_MIN: usize = 1024;

/// Members one after the other, and who waits for them.
#[derive(Default)]
pub(super) struct Group {
    /// What is appended to the file.
    pub(super) bytes: Vec<u8>,
    /// Offset within `bytes` and length of each member.
    pub(super) members: Vec<(u64, u64)>,
    /// In the order of their records.
    pub(super) waiting: Vec<Waiting>,
}

/// A response whose records are in a group.
pub(super) struct Waiting {
    /// The job, its completion whole but for the pointer.
    pub(super) job: StoreJob,
    /// The place of its response or revisit within the group's bytes.
    pub(super) place: (u64, u64),
    /// Its payload is a new one, to be known to later captures (D3).
    pub(super) is_new: bool,
}

/// A group whose bytes are on their way to the disk.
pub(super) struct Syncing {
    /// The group, without its bytes.
    pub(super) group: Group,
    /// The file's header, where it begins with this group, and the group.
    pub(super) bytes: Bytes,
    /// What stands before the group in `bytes`.
    pub(super) header_bytes: u64,
}

impl Group {
    /// No member waits.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Writes the records of a response.
    pub(super) fn add(
        &mut self,
        job: StoreJob,
        earlier: Option<&ContentRecord>,
        writer: &mut MemberWriter,
        dice: &dyn Dice,
    ) {
        let payload_digest = job.completion.digest.as_deref().unwrap_or_default();
        let records = ExchangeRecords { response: &job.response, payload_digest, earlier };
        let mut place = (0, 0);
        for record in records.build(dice) {
            let offset = size(self.bytes.len());
            place = (offset, writer.write(&record.parts(), record.packed, &mut self.bytes));
            self.members.push(place);
        }
        let is_new = earlier.is_none() && may_be_known(&job) && job.response.status == 200;
        self.waiting.push(Waiting { job, place, is_new });
    }

    /// This group with a later one behind it.
    pub(super) fn followed_by(mut self, later: Self) -> Self {
        let shift = size(self.bytes.len());
        let moved = |(offset, length): (u64, u64)| (offset + shift, length);
        self.bytes.extend_from_slice(&later.bytes);
        self.members.extend(later.members.into_iter().map(moved));
        let waiting = later.waiting.into_iter();
        self.waiting.extend(waiting.map(|w| Waiting { place: moved(w.place), ..w }));
        self
    }
}

impl Syncing {
    /// The group with its bytes again, for another file.
    pub(super) fn into_group(self) -> Group {
        let header_bytes = usize::try_from(self.header_bytes).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(header_bytes..).unwrap_or_default().to_vec();
        Group { bytes, ..self.group }
    }

    /// Counts what is on the disk now.
    pub(super) fn count_in(&self, file: &mut ClosedFile) {
        if self.header_bytes > 0 {
            file.members.push((0, self.header_bytes));
        }
        let at = file.bytes + self.header_bytes;
        let members = self.group.members.iter();
        file.members.extend(members.map(|(offset, length)| (at + offset, *length)));
        file.bytes += size(self.bytes.len());
    }

    /// I7: the records are synced from `at` on, so the completions may become durable.
    pub(super) fn report(self, file: &Arc<str>, at: u64, owners: &Owners) {
        let at = at + self.header_bytes;
        for waiting in self.group.waiting {
            let StoreJob { response, mut completion, shard, permit, unheard } = waiting.job;
            let (offset, length) = waiting.place;
            let file = Arc::clone(file);
            let archive = ArchivePointer { file, offset: at + offset, length };
            if waiting.is_new {
                tell_payload(&completion, archive.clone(), &owners.routes.borrow());
            }
            completion.archive = Some(archive);
            let response = Some(Box::new(response));
            let report = EndedReport { completion, response, permit };
            unheard.heard();
            owners.tell_end(&shard, report);
        }
    }
}

/// D3: the payload is in the archive; the owner of its digest remembers the first place it has.
fn tell_payload(completion: &Completion, archive: ArchivePointer, routes: &Routes) {
    let Some(digest) = &completion.digest else { return };
    let fetched_at = completion.sent_at.unwrap_or(completion.ended_at);
    let record = ContentRecord { url: completion.url.clone(), fetched_at, archive };
    if let Some(route) = routes.content_shard(digest) {
        let known = ShardMsg::KnowPayload(digest.clone(), Box::new(record));
        // A shard that is gone knows the payload after the next capture.
        route.shard.send_message(known).ok();
    }
}

/// Whether the payload is worth asking for, and remembering.
pub(super) fn may_be_known(job: &StoreJob) -> bool {
    let response = &job.response;
    let has_digest =
        response.lease.entry.validators.as_ref().is_some_and(|old| old.digest.is_some());
    let large = response.body.len() >= REVISIT_BODY_BYTES_MIN && response.truncated.is_none();
    let worth = match response.status {
        200 => large,
        304 => has_digest,
        _ => false,
    };
    worth && response.lease.kind == LeaseKind::Page
}
