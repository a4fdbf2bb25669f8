//! The clocks and budgets of registered domains (F4, F11): all hosts of a domain live in one shard.
//!
//! D-1: with a minimum delay set, one request of the domain is in flight at a time, and the next
//! departs no sooner than the delay after its end.
//!
//! D-2: a domain that was visited before the book began counts as just visited then (I3); one that
//! never was is free at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::types::{Reason, Timestamp};

/// `politeness.per_domain_min_delay` and `domain_daily_pages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainRules {
    /// Zero: domains have no clock of their own.
    pub min_delay: Duration,
    /// Requests a day.
    pub daily_pages: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Domain {
    next: Timestamp,
    in_flight: u32,
    day: u32,
    requests: u64,
    /// D-2: an earlier run visited it, nobody knows when.
    before: bool,
}

/// The domains of one shard that have been visited lately.
#[derive(Clone, Debug)]
pub struct DomainBook {
    rules: DomainRules,
    domains: BTreeMap<Box<str>, Domain>,
    /// D-2: when this book began.
    opened_at: Timestamp,
}

impl DomainBook {
    /// A book that begins now.
    pub fn new(rules: DomainRules, opened_at: Timestamp) -> Self {
        Self { rules, domains: BTreeMap::new(), opened_at }
    }

    /// Other rules from here on; running clocks are not shortened.
    pub fn set_rules(&mut self, rules: DomainRules) {
        self.rules = rules;
    }

    /// Why a request of the domain may not be granted for `departure`, if it may not.
    pub fn refusal(&self, domain: &str, departure: Timestamp) -> Option<Reason> {
        let found = self.domains.get(domain).copied().unwrap_or_default();
        if !self.rules.min_delay.is_zero() {
            if found.in_flight > 0 {
                return Some(Reason::DomainClock { until: departure + self.rules.min_delay });
            }
            let until = if found.before { found.next.max(self.began()) } else { found.next };
            if departure < until {
                return Some(Reason::DomainClock { until });
            }
        }
        if found.day == departure.day() && found.requests >= self.rules.daily_pages {
            let (max, until) = (self.rules.daily_pages, departure.next_day());
            return Some(Reason::DailyBudget { max, until });
        }
        None
    }

    /// What the domains say of a request now, those that say anything.
    pub fn refusals(&self, now: Timestamp) -> BTreeMap<Box<str>, Reason> {
        let domains = self.domains.keys();
        let refusing = domains.filter_map(|name| Some((name.clone(), self.refusal(name, now)?)));
        refusing.collect()
    }

    /// D-2: by the rules in force now, whatever they were when the book began.
    fn began(&self) -> Timestamp {
        self.opened_at + self.rules.min_delay
    }

    /// I3: an earlier run visited a host of the domain.
    pub fn visited_before(&mut self, domain: &str) {
        self.domains.entry(domain.into()).or_default().before = true;
    }

    /// F11: requests of a day that an earlier run made.
    pub fn asked_before(&mut self, domain: &str, day: u32, requests: u64) {
        let begun = Domain { day, before: true, ..Domain::default() };
        let found = self.domains.entry(domain.into()).or_insert(begun);
        found.before = true;
        if found.day != day {
            (found.day, found.requests) = (day, 0);
        }
        found.requests += requests;
    }

    /// A request of the domain was granted.
    pub fn granted(&mut self, domain: &str, departure: Timestamp) {
        let found = self.domains.entry(domain.into()).or_default();
        found.in_flight += 1;
        if found.day != departure.day() {
            (found.day, found.requests) = (departure.day(), 0);
        }
        found.requests += 1;
        found.next = found.next.max(departure + self.rules.min_delay);
    }

    /// A request of the domain ended.
    pub fn ended(&mut self, domain: &str, at: Timestamp) {
        if let Some(found) = self.domains.get_mut(domain) {
            found.in_flight = found.in_flight.saturating_sub(1);
            found.next = found.next.max(at + self.rules.min_delay);
        }
    }

    /// Forgets domains whose clock has run out and whose day is over: memory stays bounded.
    pub fn sweep(&mut self, now: Timestamp) {
        let began = self.began();
        self.domains.retain(|_, domain| {
            let clock = domain.next > now || (domain.before && began > now);
            domain.in_flight > 0 || clock || domain.day == now.day()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn book(delay: u64, pages: u64) -> DomainBook {
        let rules = DomainRules { min_delay: Duration::from_secs(delay), daily_pages: pages };
        DomainBook::new(rules, at(0))
    }

    #[test]
    fn a_domain_with_a_clock_is_asked_once_at_a_time() {
        let mut book = book(70, 100);
        book.visited_before("a.test");
        assert_eq!(book.refusal("a.test", at(69)), Some(Reason::DomainClock { until: at(70) }));
        assert_eq!(book.refusal("a.test", at(70)), None);
        book.granted("a.test", at(70));
        assert!(book.refusal("a.test", at(500)).is_some());
        book.ended("a.test", at(75));
        assert_eq!(book.refusal("a.test", at(144)), Some(Reason::DomainClock { until: at(145) }));
        assert_eq!(book.refusal("a.test", at(145)), None);
    }

    #[test]
    fn a_domain_that_was_never_visited_is_free_when_the_book_begins() {
        let mut book = book(70, 100);
        assert_eq!(book.refusal("new.test", at(0)), None);
        book.visited_before("old.test");
        book.asked_before("today.test", 0, 1);
        book.sweep(at(30));
        for domain in ["old.test", "today.test"] {
            assert_eq!(book.refusal(domain, at(69)), Some(Reason::DomainClock { until: at(70) }));
        }
        // A longer delay holds from the beginning as well.
        book.set_rules(DomainRules { min_delay: Duration::from_secs(100), daily_pages: 100 });
        assert_eq!(book.refusal("old.test", at(80)), Some(Reason::DomainClock { until: at(100) }));
        book.sweep(at(100));
        assert_eq!(book.refusal("old.test", at(100)), None);
    }

    #[test]
    fn without_a_clock_only_the_budget_counts() {
        let mut book = book(0, 2);
        book.granted("a.test", at(1));
        book.granted("a.test", at(1));
        let tomorrow = at(86_400);
        let spent = Reason::DailyBudget { max: 2, until: tomorrow };
        assert_eq!(book.refusal("a.test", at(1)), Some(spent));
        assert_eq!(book.refusal("a.test", tomorrow), None);
        assert_eq!(book.refusal("b.test", at(1)), None);
        book.asked_before("b.test", 0, 2);
        assert!(book.refusal("b.test", at(1)).is_some());
    }
}
