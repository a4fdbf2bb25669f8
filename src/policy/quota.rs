//! Caps on the whole crawl: pages in total, requests a day (F11).
//!
//! places reserved and pages counted never exceed the cap, so the crawl stops at exactly it.

use crate::types::{Reason, Timestamp};

/// `scope.max_pages` and `limits.daily_fetches`; `None` is no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaRules {
    /// Completed exchanges other than robots.txt.
    pub max_pages: Option<u64>,
    /// Requests a day, robots.txt included.
    pub daily_fetches: Option<u64>,
}

/// What has been used of the caps.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    rules: QuotaRules,
    pages: u64,
    reserved: u64,
    day: u32,
    fetches: u64,
}

impl Quota {
    /// Begins with the pages that earlier runs counted.
    pub fn new(rules: QuotaRules, pages: u64) -> Self {
        Self { rules, pages, ..Self::default() }
    }

    /// Other caps from here on.
    pub fn set_rules(&mut self, rules: QuotaRules) {
        self.rules = rules;
    }

    /// Adds pages that an earlier run counted.
    pub fn add_pages(&mut self, pages: u64) {
        self.pages += pages;
    }

    /// Adds requests of a day that an earlier run made.
    pub fn asked_before(&mut self, day: u32, requests: u64) {
        if self.day < day {
            (self.day, self.fetches) = (day, 0);
        }
        if self.day == day {
            self.fetches += requests;
        }
    }

    /// Takes away pages that are counted again when their shard is opened again.
    pub fn remove_pages(&mut self, pages: u64) {
        self.pages = self.pages.saturating_sub(pages);
    }

    /// Why there is no place for a grant now.
    pub fn refusal(&self, now: Timestamp) -> Option<Reason> {
        let today = if self.day == now.day() { self.fetches } else { 0 };
        let day = self.rules.daily_fetches.filter(|max| today >= *max);
        let day = day.map(|max| Reason::DailyBudget { max, until: now.next_day() });
        let pages = self.rules.max_pages.filter(|max| self.pages + self.reserved >= *max);
        day.or(pages.map(|max| Reason::PageCap { max }))
    }

    /// Takes a place for one grant.
    ///
    /// # Errors
    /// Why there is none.
    pub fn reserve(&mut self, now: Timestamp) -> Result<(), Reason> {
        if self.day != now.day() {
            (self.day, self.fetches) = (now.day(), 0);
        }
        if let Some(reason) = self.refusal(now) {
            return Err(reason);
        }
        self.reserved += 1;
        self.fetches += 1;
        Ok(())
    }

    /// The offer was not taken: neither page nor fetch.
    pub fn give_back(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
        self.fetches = self.fetches.saturating_sub(1);
    }

    /// The grant ended; `page` when it counts as one.
    pub fn ended(&mut self, page: bool) {
        self.reserved = self.reserved.saturating_sub(1);
        self.pages += u64::from(page);
    }

    /// The cap on pages is reached and nothing in flight can give a place back.
    pub fn is_used_up(&self) -> bool {
        self.rules.max_pages.is_some_and(|max| self.pages >= max)
    }

    /// Pages counted.
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crawl_stops_at_exactly_its_cap() {
        let rules = QuotaRules { max_pages: Some(2), daily_fetches: None };
        let mut quota = Quota::new(rules, 0);
        let now = Timestamp::from_secs(1);
        assert!(quota.reserve(now).is_ok());
        assert!(quota.reserve(now).is_ok());
        assert_eq!(quota.reserve(now), Err(Reason::PageCap { max: 2 }));
        quota.ended(false);
        assert!(quota.reserve(now).is_ok());
        quota.ended(true);
        quota.ended(true);
        assert!(quota.is_used_up());
        assert!(quota.reserve(now).is_err());
    }

    #[test]
    fn every_request_counts_for_the_day() {
        let rules = QuotaRules { max_pages: None, daily_fetches: Some(1) };
        let mut quota = Quota::new(rules, 0);
        let now = Timestamp::from_secs(1);
        assert!(quota.reserve(now).is_ok());
        quota.ended(false);
        assert!(quota.reserve(now).is_err());
        assert!(quota.reserve(now.next_day()).is_ok());
        let mut next_run = Quota::new(rules, 0);
        next_run.asked_before(now.day(), 1);
        assert!(next_run.reserve(now).is_err());
        assert!(next_run.reserve(now.next_day()).is_ok());
    }
}
