//! Records that are written and synced together, and the responses that wait for it.

use bytes::Bytes;

use super::member::MemberWriter;
use super::warc::ExchangeRecords;
use crate::protocol::archive::StoreJob;
use crate::types::ContentRecord;
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
            let offset = super::member::size(self.bytes.len());
            place = (offset, writer.write(&record.parts(), record.packed, &mut self.bytes));
            self.members.push(place);
        }
        self.waiting.push(Waiting { job, place });
    }

    /// This group with a later one behind it.
    pub(super) fn followed_by(mut self, later: Self) -> Self {
        let shift = super::member::size(self.bytes.len());
        let moved = |(offset, length): (u64, u64)| (offset + shift, length);
        self.bytes.extend_from_slice(&later.bytes);
        self.members.extend(later.members.into_iter().map(moved));
        let waiting = later.waiting.into_iter();
        self.waiting.extend(waiting.map(|w| Waiting { place: moved(w.place), ..w }));
        self
    }
}
