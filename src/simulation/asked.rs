//! What a site asked for, with its past: after a crash the last moments may not have been heard.

use std::time::Duration;

use crate::types::Timestamp;

/// What a site asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Its Crawl-delay.
    pub(super) delay: Duration,
    /// Not before this.
    pub(super) wait_until: Timestamp,
}

/// The wishes of a site, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes(Vec<(Timestamp, Asked)>);

/// Wishes remembered of one site: more than can be uttered within a crash's grace.
const WISHES_KEPT: usize = 64;

impl Wishes {
    /// What it asks for at present.
    pub(super) fn last(&self) -> Asked {
        self.0.last().map_or_else(Asked::default, |(_, asked)| *asked)
    }

    /// It asks for something else.
    pub(super) fn ask(&mut self, at: Timestamp, asked: Asked) {
        if asked != self.last() {
            if self.0.len() == WISHES_KEPT {
                self.0.remove(0);
            }
            self.0.push((at, asked));
        }
    }

    /// What it asked for within `grace` before `at` need not have been heard.
    pub(super) fn forget_since(&mut self, at: Timestamp, grace: Duration) {
        self.0.retain(|(asked_at, _)| at.since(*asked_at) > grace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn only_the_last_moments_are_forgotten() {
        let mut wishes = Wishes::default();
        let three = Asked { delay: Duration::from_secs(3), wait_until: secs(0) };
        let later = Asked { wait_until: secs(500), ..three };
        wishes.ask(secs(10), three);
        wishes.ask(secs(20), later);
        wishes.forget_since(secs(30), Duration::from_secs(2));
        assert_eq!(wishes.last(), later);
        wishes.forget_since(secs(21), Duration::from_secs(2));
        assert_eq!(wishes.last(), three);
    }
}
