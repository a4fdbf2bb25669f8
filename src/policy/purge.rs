//! R5: removing what is stored of an exclusion, as steps in an order that loses nothing and leaves
//! nothing.
//!
//! - P-1 Nothing is removed before nothing can be added: the exclusion is in force, what had
//!   arrived is in published files, what was with parsers is in the outputs, and rows lead to none
//!   of it.
//! - P-2 What goes from a file is written down before the file is touched, so a crash at any place
//!   leaves every file whole, old or new, and every number right.
//! - P-3 A step may be done again: it finds less to do, or nothing.
//! - P-4 A file that cannot be read to its end is told of, and holds up no other.

use std::collections::VecDeque;

use crate::types::{PurgeRecord, Removed, Timestamp};

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeStep {
    /// P-1: the archive publishes all that it has been given.
    Settle,
    /// P-1: every shard ends what is under way, and clears the rows.
    Forget,
    /// P-1: every output begins another file, durably.
    Close,
    /// Find the files there are.
    List,
    /// Look through this one.
    Look(String),
    /// P-2: write down how far it is.
    Note,
    /// Rewrite the file that was looked through last.
    Rewrite(String),
    /// It is done: tell everybody.
    Finish,
}

/// One order being carried out.
#[derive(Clone, Debug)]
pub struct PurgeRun {
    record: PurgeRecord,
    step: PurgeStep,
    files: VecDeque<String>,
    /// What another life wrote down last, and may not have done.
    resumed: Option<(String, Removed)>,
}

impl PurgeRun {
    /// Begins, or begins again after a restart: P-3, from the first step on.
    pub fn new(record: PurgeRecord) -> Self {
        let resumed = record.rewriting.clone();
        // What could not be read is found again.
        let record = PurgeRecord { unreadable: 0, ..record };
        Self { record, step: PurgeStep::Settle, files: VecDeque::new(), resumed }
    }

    /// What is to be done now; again, where it failed.
    pub fn step(&self) -> &PurgeStep {
        &self.step
    }

    /// How far it is.
    pub fn record(&self) -> &PurgeRecord {
        &self.record
    }

    /// All that has been given is in files.
    pub fn settled(&mut self) {
        self.step = PurgeStep::Forget;
    }

    /// The rows of so many URLs are clear.
    pub fn forgotten(&mut self, urls: u64) {
        self.record.urls = urls;
        self.step = PurgeStep::Close;
    }

    /// The files of the outputs are closed.
    pub fn closed(&mut self) {
        self.step = PurgeStep::List;
    }

    /// The files there are. One that another life had begun with comes first: its count stands.
    pub fn listed(&mut self, files: Vec<String>, now: Timestamp) {
        self.files = files.into();
        if let Some((begun, _)) = &self.resumed
            && let Some(at) = self.files.iter().position(|file| file == begun)
            && let Some(file) = self.files.remove(at)
        {
            self.files.push_front(file);
        }
        self.next_file(now);
    }

    /// What of the file in hand goes; `None` where it could not be read to its end.
    pub fn looked(&mut self, found: Removed, unreadable: bool, now: Timestamp) {
        self.record.unreadable += u32::from(unreadable);
        let PurgeStep::Look(file) = &self.step else { return };
        if found.is_none() {
            return self.next_file(now);
        }
        let file = file.clone();
        if self.resumed.take_if(|(begun, _)| *begun == file).is_none() {
            self.count();
            self.record.rewriting = Some((file.clone(), found));
        }
        self.files.push_front(file);
        self.step = PurgeStep::Note;
    }

    /// It is written down how far it is.
    pub fn noted(&mut self) {
        if let Some(file) = self.files.pop_front() {
            self.step = PurgeStep::Rewrite(file);
        }
    }

    /// The file in hand is as it should be.
    pub fn rewritten(&mut self, now: Timestamp) {
        self.next_file(now);
    }

    fn next_file(&mut self, now: Timestamp) {
        if let Some(file) = self.files.pop_front() {
            self.step = PurgeStep::Look(file);
            return;
        }
        self.count();
        self.record.done_at = Some(now);
        self.step = PurgeStep::Finish;
    }

    /// What was written down is done.
    fn count(&mut self) {
        if let Some((_, removed)) = self.record.rewriting.take() {
            self.record.removed = self.record.removed.and(removed);
        }
    }
}

#[cfg(test)]
mod tests;
