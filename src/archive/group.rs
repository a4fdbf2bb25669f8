//! Records that are written and synced together, and the responses that wait for it.

use std::sync::Arc;

use bytes::Bytes;

use super::member::{MemberWriter, size};
use super::publish::ClosedFile;
use super::warc::ExchangeRecords;
use crate::protocol::ShardMsg;
use crate::protocol::archive::StoreJob;
use crate::protocol::shard::EndedReport;
use crate::types::{ArchivePointer, ContentRecord};
use crate::world::Dice;

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
}

/// A group whose bytes are on their way to the disk.
pub(super) struct Syncing {
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
        self.waiting.push(Waiting { job, place });
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
    pub(super) fn report(self, file: &Arc<str>, at: u64) {
        let at = at + self.header_bytes;
        for waiting in self.group.waiting {
            let StoreJob { response, mut completion, shard, permit } = waiting.job;
            let (offset, length) = waiting.place;
            let file = Arc::clone(file);
            completion.archive = Some(ArchivePointer { file, offset: at + offset, length });
            let response = Some(Box::new(response));
            let report = EndedReport { completion, response, permit };
            // When its shard is gone, the lease comes again from the shard's next owner.
            shard.send_message(ShardMsg::Ended(Box::new(report))).ok();
        }
    }
}
