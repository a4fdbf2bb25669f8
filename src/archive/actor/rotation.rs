//! R5: all that was given so far is published before anything is removed from published files, and
//! of what is being removed nothing more is taken.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ArchiveState;
use crate::protocol::archive::StoreJob;
use crate::protocol::shard::EndedReport;
use crate::protocol::{Answer, Owners};
use crate::types::Reason;

/// Who waits until what was given before is published.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    /// Those that came while one was under way.
    waiting: Vec<Answer<()>>,
    current: Option<(Stage, Vec<Answer<()>>)>,
}

#[derive(Debug)]
enum Stage {
    /// What was given is in the gathered group, or is being synced.
    Gathered,
    /// The group that holds the last of it is being synced.
    Syncing,
    /// These files hold all of it.
    Publishing(BTreeSet<String>),
}

impl Rotation {
    /// Whether the gathered group is waited for.
    pub(super) fn hurries(&self) -> bool {
        matches!(self.current, Some((Stage::Gathered, _)))
    }

    /// The gathered group is on its way.
    pub(super) fn syncing(&mut self) {
        if let Some((stage @ Stage::Gathered, _)) = &mut self.current {
            *stage = Stage::Syncing;
        }
    }
}

impl ArchiveState {
    /// Answered when all that was given so far is in published files.
    pub(super) fn rotate(&mut self, answer: Answer<()>) {
        self.gather_looked_up();
        self.rotation.waiting.push(answer);
    }

    /// Called when a group or a file may have come to its end.
    pub(super) fn go_on_rotating(&mut self) {
        if self.rotation.current.is_none() && !self.rotation.waiting.is_empty() {
            let answers = std::mem::take(&mut self.rotation.waiting);
            self.rotation.current = Some((Stage::Gathered, answers));
        }
        let Some((stage, answers)) = self.rotation.current.take() else { return };
        let idle = self.syncing.is_none();
        let stage = match stage {
            Stage::Gathered if idle && self.gathered.is_empty() => self.close_for_rotation(),
            // A group that failed is in the gathered one again.
            Stage::Syncing if idle && self.retry.failure().is_some() => Stage::Gathered,
            Stage::Syncing if idle => self.close_for_rotation(),
            stage @ (Stage::Gathered | Stage::Syncing | Stage::Publishing(_)) => stage,
        };
        let is_done = matches!(&stage, Stage::Publishing(files)
            if files.iter().all(|file| !self.publishing.contains_key(file)));
        if is_done {
            answers.into_iter().for_each(|answer| answer.send(()));
            // Those who asked meanwhile may wait for nothing else.
            return self.go_on_rotating();
        }
        self.rotation.current = Some((stage, answers));
    }

    fn close_for_rotation(&mut self) -> Stage {
        self.close_file();
        Stage::Publishing(self.publishing.keys().cloned().collect())
    }

    /// What is being removed is not stored: its shard hears that an exclusion cut the exchange, and
    /// what the site asked for with it (I3). Gives back what may be stored.
    pub(super) fn refuse_removed(&self, job: StoreJob) -> Option<StoreJob> {
        let lease = &job.response.lease;
        let order = self.args.exclusions.borrow();
        let Some(order) = order.purging(&lease.entry.url) else { return Some(job) };
        let reason = Reason::Excluded { id: order.id.clone() };
        let completion = job.completion.without_content(lease, reason);
        let report = EndedReport { completion, response: None, permit: job.permit };
        let owners =
            Owners { routes: self.args.routes.clone(), clock: Arc::clone(&self.args.clock) };
        job.unheard.heard();
        owners.tell_end(&job.shard, report);
        None
    }
}
