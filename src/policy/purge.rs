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
//! - P-5 A file whose rewriting failed may be the old one, the new one, or a part of each: it is
//!   looked through again before anything else is done to it.

use std::collections::VecDeque;

use crate::types::{PurgeRecord, Removed, Timestamp};

/// P-4: how often a file is looked through, should its disk fail.
const LOOKS_MAX: u32 = 5;

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
    /// What was written down last, by another life or before a failure, and may not be done.
    resumed: Option<(String, Removed)>,
    /// How often looking through the file in hand has failed.
    looks_failed: u32,
    /// The file in hand counts as one that could not be read to its end.
    is_unreadable: bool,
}

impl PurgeRun {
    /// Begins, or begins again after a restart: P-3, from the first step on.
    pub fn new(record: PurgeRecord) -> Self {
        let resumed = record.rewriting.clone();
        // What could not be read is found again.
        let record = PurgeRecord { unreadable: 0, ..record };
        let (step, files) = (PurgeStep::Settle, VecDeque::new());
        Self { record, step, files, resumed, looks_failed: 0, is_unreadable: false }
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
        // P-3: another life has cleared the others.
        self.record.urls = self.record.urls.max(urls);
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

    /// The step in hand failed. It is done again, but for what may have been done in part (P-5),
    /// and for a file that cannot be read again and again (P-4).
    pub fn failed(&mut self, now: Timestamp) {
        match &self.step {
            PurgeStep::Rewrite(file) => {
                self.record.unreadable -= u32::from(self.is_unreadable);
                self.resumed = self.record.rewriting.clone();
                self.step = PurgeStep::Look(file.clone());
            }
            PurgeStep::Look(file) => {
                self.looks_failed += 1;
                if self.looks_failed >= LOOKS_MAX {
                    self.record.rewriting.take_if(|(begun, _)| begun == file);
                    self.record.unreadable += 1;
                    self.next_file(now);
                }
            }
            PurgeStep::Settle
            | PurgeStep::Forget
            | PurgeStep::Close
            | PurgeStep::List
            | PurgeStep::Note
            | PurgeStep::Finish => {}
        }
    }

    /// What of the file in hand goes, and whether something of it could not be read.
    pub fn looked(&mut self, found: Removed, unreadable: bool, now: Timestamp) {
        self.record.unreadable += u32::from(unreadable);
        self.is_unreadable = unreadable;
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
        (self.looks_failed, self.is_unreadable) = (0, false);
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
