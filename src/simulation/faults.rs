//! The faults that can be asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::draw::happens;
use crate::types::Timestamp;

/// A class of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Responses that never come, until the crawler hangs up.
    Lost,
    /// Ends of exchanges that are reported twice: at once, late, in the next life, or with another
    /// story.
    Doubled,
    /// Pages that wait for a parser for long, bodies that have to be read back from the archive,
    /// outputs that stand still.
    Parser,
    /// An object store that fails, is slow or hangs for a while.
    Store,
    /// Files that cannot be written for a while.
    Disk,
    /// A wall clock that is set forward and back.
    Clock,
    /// Actors of every kind that die over a message, and exchanges that take their worker with
    /// them.
    Panic,
    /// The whole node dies at a step, or is stopped, and is started again on what had become
    /// durable.
    Crash,
}

impl Fault {
    /// Every class.
    pub const ALL: [Self; 8] = [
        Self::Lost,
        Self::Doubled,
        Self::Parser,
        Self::Store,
        Self::Disk,
        Self::Clock,
        Self::Panic,
        Self::Crash,
    ];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Parser => "parser",
            Self::Store => "store",
            Self::Disk => "disk",
            Self::Clock => "clock",
            Self::Panic => "panic",
            Self::Crash => "crash",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|fault| fault.as_str() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is no class of faults; there are {names}")
        })
    }
}

/// The faults of a run: which, until when, and how many there were.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    pub(super) seed: u64,
    start: Timestamp,
    wanted: BTreeSet<Fault>,
    injected: Arc<Mutex<BTreeMap<Fault, u64>>>,
}

/// Of a thousand exchanges.
const LOST: u64 = 30;
/// Of a thousand exchanges.
const PANICS: u64 = 20;
/// Faults that last, and crashes, come within this time; what is left then must still be done.
pub(super) const FAULTS_FOR: Duration = Duration::from_secs(45 * 60);

/// What begins within that time is over after this at the latest.
const LASTS_MAX: Duration = Duration::from_secs(20 * 60);

impl Faults {
    /// Faults of these classes in a run that begins at `start`.
    pub(super) fn new(seed: u64, start: Timestamp, wanted: BTreeSet<Fault>) -> Self {
        Self { seed, start, wanted, injected: Arc::default() }
    }

    /// Whether this class is wanted.
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.wanted.contains(&fault)
    }

    /// Whether this class is wanted and still happens at this time.
    pub(super) fn has_at(&self, fault: Fault, at: Timestamp) -> bool {
        self.has(fault) && self.age(at) < FAULTS_FOR
    }

    /// Whether disk or store may be in no state to start or to stop a node with.
    pub(super) fn may_hinder(&self, at: Timestamp) -> bool {
        let lasting = [Fault::Store, Fault::Disk, Fault::Parser];
        self.age(at) < FAULTS_FOR + LASTS_MAX && lasting.into_iter().any(|fault| self.has(fault))
    }

    /// The time since the run began.
    pub(super) fn age(&self, at: Timestamp) -> Duration {
        at.since(self.start)
    }

    /// What happens to the exchange that `about` names, if anything.
    pub(super) fn of_exchange(&self, about: &str) -> Option<Fault> {
        let classes = [(Fault::Lost, LOST), (Fault::Panic, PANICS)];
        let (fault, _) = classes.into_iter().find(|(fault, often)| {
            self.has(*fault) && happens(*often, self.seed, format_args!("{fault} {about}"))
        })?;
        self.count(fault);
        Some(fault)
    }

    /// One more happened.
    pub(super) fn count(&self, fault: Fault) {
        let mut injected = self.injected.lock().unwrap_or_else(PoisonError::into_inner);
        *injected.entry(fault).or_default() += 1;
    }

    /// How many of each there were.
    pub(super) fn injected(&self) -> BTreeMap<Fault, u64> {
        self.injected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
