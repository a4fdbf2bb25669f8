//! What a site asked for, with its past: after a crash the last moments may not have been heard.

use std::time::Duration;

use crate::types::Timestamp;

/// A wish of a site, and what it was before, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked<T>(Vec<(Timestamp, T)>);

/// Changes remembered: more than can be uttered within a crash's grace.
const CHANGES_KEPT: usize = 64;

impl<T: Copy + Default + Ord> Asked<T> {
    /// What it asks for at present.
    pub(super) fn last(&self) -> T {
        self.0.last().map_or_else(T::default, |(_, asked)| *asked)
    }

    /// It asks for something else.
    pub(super) fn ask(&mut self, at: Timestamp, asked: T) {
        if asked != self.last() {
            if self.0.len() == CHANGES_KEPT {
                self.0.remove(0);
            }
            self.0.push((at, asked));
        }
    }

    /// Every wish becomes another.
    pub(super) fn change(&mut self, change: impl Fn(T) -> T) {
        self.0.iter_mut().for_each(|(_, asked)| *asked = change(*asked));
    }

    /// What it asked for within `grace` before `at` need not have been heard, and may have been:
    /// what it asked for before counts, unless it has asked for less since.
    pub(super) fn forget_since(&mut self, at: Timestamp, grace: Duration) {
        let late = |(asked_at, _): &(Timestamp, T)| at.since(*asked_at) <= grace;
        let least = self.0.iter().filter(|change| late(change)).map(|(_, asked)| *asked).min();
        self.0.retain(|change| !late(change));
        if let Some(least) = least.filter(|least| *least < self.last()) {
            self.0.push((at, least));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_moments_are_forgotten() {
        let secs = Timestamp::from_secs;
        let mut asked = Asked::default();
        asked.ask(secs(10), 3);
        asked.ask(secs(20), 5);
        asked.forget_since(secs(30), Duration::from_secs(2));
        assert_eq!(asked.last(), 5);
        asked.forget_since(secs(21), Duration::from_secs(2));
        assert_eq!(asked.last(), 3);
    }

    #[test]
    fn less_that_was_asked_for_in_the_last_moments_may_have_been_heard() {
        let secs = Timestamp::from_secs;
        let mut asked = Asked::default();
        asked.ask(secs(10), 6);
        asked.ask(secs(20), 0);
        asked.ask(secs(21), 9);
        for again in [22, 23] {
            asked.forget_since(secs(again), Duration::from_secs(5));
            assert_eq!(asked.last(), 0);
        }
        asked.ask(secs(40), 4);
        asked.forget_since(secs(50), Duration::from_secs(5));
        assert_eq!(asked.last(), 4);
    }
}
