//! What the sandbox saw: a bounded log of requests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::types::Timestamp;

/// Visits that are kept; the oldest go first.
const VISITS_MAX: usize = 100_000;

/// A request as the site saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The host of the Host header, in lower case, without port.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// When the request had been read.
    pub at: Timestamp,
    /// The User-Agent header.
    pub user_agent: Option<String>,
    /// The status that was answered.
    pub status: u16,
}

/// The log.
#[derive(Debug, Default)]
pub(super) struct VisitLog(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    visits: VecDeque<Visit>,
    total: u64,
}

impl VisitLog {
    /// Takes a visit down.
    pub(super) fn add(&self, visit: Visit) {
        let mut kept = self.kept();
        if kept.visits.len() >= VISITS_MAX {
            kept.visits.pop_front();
        }
        kept.visits.push_back(visit);
        kept.total += 1;
    }

    /// The visits that are kept, oldest first.
    pub(super) fn all(&self) -> Vec<Visit> {
        self.kept().visits.iter().cloned().collect()
    }

    /// How many there were, those no longer kept included.
    pub(super) fn total(&self) -> u64 {
        self.kept().total
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
