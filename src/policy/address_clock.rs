//! The clocks of IP addresses: a shorter discipline under the hosts' own (F4).
//!
//! never more than `max_in_flight` places of an address are taken. A-2: a request departs no
//! sooner than `min_delay` after the last departure and after the last end of that address.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::types::{LeaseId, Timestamp};

/// `politeness.per_address_*`; exempt addresses never come here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRules {
    /// Between two requests to the address.
    pub min_delay: Duration,
    /// Exchanges with the address at once.
    pub max_in_flight: u16,
}

#[derive(Clone, Debug, Default)]
struct Clock {
    next: Timestamp,
    held: Vec<LeaseId>,
    waiting: VecDeque<LeaseId>,
}

/// The clocks of the addresses that one owner keeps.
#[derive(Clone, Debug)]
pub struct AddressBook {
    rules: AddressRules,
    clocks: BTreeMap<IpAddr, Clock>,
    /// I3: an owner that has just started knows of no visit, so every address counts as just
    /// visited.
    started_at: Timestamp,
}

impl AddressBook {
    /// A book that starts now: the safe rule is that every address was just visited.
    pub fn new(rules: AddressRules, started_at: Timestamp) -> Self {
        Self { rules, clocks: BTreeMap::new(), started_at }
    }

    /// Other rules from here on; running clocks are not shortened.
    pub fn set_rules(&mut self, rules: AddressRules) {
        self.rules = rules;
    }

    /// Asks for a place. The earliest time of sending when there is one, else it waits in line.
    pub fn ask(&mut self, address: IpAddr, lease: LeaseId) -> Option<Timestamp> {
        let next = self.started_at + self.rules.min_delay;
        let clock =
            self.clocks.entry(address).or_insert_with(|| Clock { next, ..Clock::default() });
        if clock.held.contains(&lease) {
            return Some(clock.next);
        }
        if clock.held.len() < usize::from(self.rules.max_in_flight.max(1)) {
            clock.held.push(lease);
            Some(clock.next)
        } else {
            clock.waiting.push_back(lease);
            None
        }
    }

    /// A request is about to be sent: `Ok` when it may go now, else the time to ask again.
    pub fn depart(&mut self, address: IpAddr, now: Timestamp) -> Result<(), Timestamp> {
        let Some(clock) = self.clocks.get_mut(&address) else { return Ok(()) };
        if now < clock.next {
            return Err(clock.next);
        }
        clock.next = now + self.rules.min_delay;
        Ok(())
    }

    /// A place is free again. Who gets it, with the earliest time of sending.
    pub fn left(
        &mut self,
        address: IpAddr,
        lease: LeaseId,
        ended_at: Option<Timestamp>,
    ) -> Option<(LeaseId, Timestamp)> {
        let clock = self.clocks.get_mut(&address)?;
        clock.waiting.retain(|waiting| *waiting != lease);
        let held = clock.held.len();
        clock.held.retain(|holder| *holder != lease);
        if let Some(ended_at) = ended_at {
            clock.next = clock.next.max(ended_at + self.rules.min_delay);
        }
        if clock.held.len() == held {
            return None;
        }
        let next = clock.waiting.pop_front()?;
        clock.held.push(next);
        Some((next, clock.next))
    }

    /// Forgets addresses that nobody uses and whose clock has run out: memory stays bounded.
    pub fn sweep(&mut self, now: Timestamp) {
        self.clocks.retain(|_, clock| {
            !clock.held.is_empty() || !clock.waiting.is_empty() || clock.next > now
        });
        if self.clocks.is_empty() && self.started_at + self.rules.min_delay < now {
            self.started_at = Timestamp::EPOCH;
        }
    }

    /// Addresses known, places taken, leases in line.
    pub fn counts(&self) -> (usize, usize, usize) {
        let held = self.clocks.values().map(|clock| clock.held.len()).sum();
        let waiting = self.clocks.values().map(|clock| clock.waiting.len()).sum();
        (self.clocks.len(), held, waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: AddressRules =
        AddressRules { min_delay: Duration::from_millis(100), max_in_flight: 2 };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn address() -> IpAddr {
        "127.0.0.1".parse().unwrap()
    }

    #[test]
    fn a_new_owner_takes_every_address_as_just_visited() {
        let mut book = AddressBook::new(RULES, at(5000));
        assert_eq!(book.ask(address(), LeaseId(1)), Some(at(5100)));
        assert_eq!(book.depart(address(), at(5050)), Err(at(5100)));
        assert_eq!(book.depart(address(), at(5100)), Ok(()));
    }

    #[test]
    fn departures_keep_their_distance_from_departures_and_ends() {
        let mut book = AddressBook::new(RULES, at(0));
        book.ask(address(), LeaseId(1));
        book.ask(address(), LeaseId(2));
        assert_eq!(book.depart(address(), at(1000)), Ok(()));
        assert_eq!(book.depart(address(), at(1050)), Err(at(1100)));
        book.left(address(), LeaseId(1), Some(at(1090)));
        assert_eq!(book.depart(address(), at(1100)), Err(at(1190)));
    }

    #[test]
    fn places_are_bounded_and_given_in_turn() {
        let mut book = AddressBook::new(RULES, at(0));
        assert!(book.ask(address(), LeaseId(1)).is_some());
        assert!(book.ask(address(), LeaseId(2)).is_some());
        assert_eq!(book.ask(address(), LeaseId(3)), None);
        let given = book.left(address(), LeaseId(1), Some(at(500)));
        assert_eq!(given, Some((LeaseId(3), at(600))));
        assert_eq!(book.left(address(), LeaseId(1), None), None);
    }

    #[test]
    fn idle_addresses_are_forgotten() {
        let mut book = AddressBook::new(RULES, at(0));
        book.ask(address(), LeaseId(1));
        book.left(address(), LeaseId(1), Some(at(10)));
        book.sweep(at(50));
        assert_eq!(book.counts().0, 1);
        book.sweep(at(111));
        assert_eq!(book.counts().0, 0);
    }
}
