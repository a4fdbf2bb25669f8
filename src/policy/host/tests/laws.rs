//! The laws of a host's machine, whatever happens to it.

use proptest::prelude::*;

use super::bench::{Bench, settings};
use crate::policy::host::HostEvent;
use crate::policy::invariants;
use crate::policy::window::WindowRequest;
use crate::types::{HostOverrides, LeaseId, LeaseKind, Outcome, UrlId, UrlStatus};

#[derive(Clone, Debug)]
enum Act {
    Admit(u8),
    Offer,
    /// The rows asked for come; true: as they were when they were asked for.
    Load(bool),
    End(u8, Outcome, u64),
    Robots(u8),
    Pass(u64),
    MoveDue,
    /// The address's clock moves a lease.
    MoveLease(u8, u64),
    Pause(bool),
    Rest,
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let outcome = prop_oneof![
        6 => Just(Outcome::Ok),
        1 => Just(Outcome::ClientError),
        1 => Just(Outcome::Timeout),
        1 => Just(Outcome::ServerError),
        1 => Just(Outcome::RateLimited),
        1 => Just(Outcome::Redirect),
    ];
    prop_oneof![
        4 => (1u8..12).prop_map(Act::Admit),
        8 => Just(Act::Offer),
        8 => any::<bool>().prop_map(Act::Load),
        8 => (any::<u8>(), outcome, 0u64..3_000).prop_map(|(n, how, took)| Act::End(n, how, took)),
        2 => any::<u8>().prop_map(Act::Robots),
        8 => (0u64..5_000).prop_map(Act::Pass),
        1 => (0u64..400_000).prop_map(Act::Pass),
        2 => Just(Act::MoveDue),
        1 => (any::<u8>(), 0u64..30_000).prop_map(|(n, late)| Act::MoveLease(n, late)),
        1 => any::<bool>().prop_map(Act::Pause),
        2 => Just(Act::Rest),
        1 => Just(Act::Reopen),
    ]
}

struct Run {
    bench: Bench,
    admitted: Vec<UrlId>,
    pending: Option<LeaseId>,
    reading: Option<(WindowRequest, crate::policy::window::WindowRows)>,
    visited_twice: bool,
}

impl Run {
    fn new(max_in_flight: u16) -> Self {
        let mut settings = settings();
        settings.politeness.max_in_flight = max_in_flight;
        settings.politeness.jitter = 0.1;
        settings.lease = std::time::Duration::from_secs(60);
        settings.window = 4;
        let bench = Bench::new(settings);
        Self { bench, admitted: Vec::new(), pending: None, reading: None, visited_twice: false }
    }

    fn act(&mut self, act: Act) {
        self.bench.dice = self.bench.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match act {
            Act::Admit(count) => self.admit(count),
            Act::Offer if self.pending.is_none() => self.offer(),
            Act::Offer => {}
            Act::Load(early) => self.load(early),
            Act::End(which, outcome, took) => self.end(which, outcome, took),
            Act::Robots(which) => self.robots(which),
            Act::Pass(millis) => {
                self.bench.now = self.bench.now + std::time::Duration::from_millis(millis);
                self.step(HostEvent::TimerRang);
            }
            Act::MoveDue => self.bench.move_due(),
            Act::MoveLease(which, late) => self.move_lease(which, late),
            Act::Pause(paused) => {
                let before = self.bench.machine.record().overrides.clone();
                self.step(HostEvent::Ordered(HostOverrides { paused, ..before }));
            }
            Act::Rest if self.bench.machine.is_idle() => self.bench.rest_and_wake(),
            Act::Rest => {}
            Act::Reopen => {
                (self.pending, self.reading) = (None, None);
                self.bench.reopen();
            }
        }
    }

    fn admit(&mut self, count: u8) {
        let first = self.admitted.len();
        let paths: Vec<String> =
            (first..first + usize::from(count)).map(|n| format!("/{}/{n}", n % 3)).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        self.admitted.extend(paths.iter().map(|path| self.bench.entry(path).id));
        self.bench.admit(&paths);
    }

    fn offer(&mut self) {
        let lease = LeaseId(1_000_000 + self.bench.dice % 1_000_000_007);
        self.pending = Some(lease);
        self.step(HostEvent::Offered(lease));
    }

    fn load(&mut self, early: bool) {
        let Some((request, rows)) = self.reading.take() else { return };
        let rows = if early { rows } else { self.bench.rows(&request) };
        self.step(HostEvent::WindowLoaded { request: Box::new(request), rows: Box::new(rows) });
    }

    fn end(&mut self, which: u8, outcome: Outcome, took: u64) {
        let leases: Vec<_> = self.bench.leases.values().cloned().collect();
        let Some(lease) = leases.get(usize::from(which) % leases.len().max(1)) else { return };
        let mut completion = self.bench.completion(lease, took, outcome);
        if completion.ended_at >= lease.expires_at {
            return;
        }
        if outcome == Outcome::Redirect {
            completion.location = Some("/elsewhere".to_owned());
        }
        if outcome == Outcome::RateLimited && took.is_multiple_of(2) {
            completion.retry_after = Some(std::time::Duration::from_secs(took / 100));
        }
        if lease.kind == LeaseKind::Page {
            let before = self.bench.visits.get(&lease.entry.id);
            self.visited_twice |= before.is_some_and(|visit| visit.status == UrlStatus::Fetched);
        }
        self.bench.now = self.bench.now.max(completion.ended_at);
        self.step(HostEvent::Ended(Box::new(completion)));
    }

    fn move_lease(&mut self, which: u8, late: u64) {
        let count = self.bench.leases.len().max(1);
        let late = std::time::Duration::from_millis(late);
        let Some(lease) = self.bench.leases.values_mut().nth(usize::from(which) % count) else {
            return;
        };
        lease.not_before = lease.not_before + late;
        lease.expires_at = lease.expires_at + late;
        let (lease, not_before, expires_at) = (lease.id, lease.not_before, lease.expires_at);
        self.step(HostEvent::Moved { lease, not_before, expires_at });
    }

    fn robots(&mut self, which: u8) {
        let robots = |lease: &&crate::types::Lease| lease.kind != LeaseKind::Page;
        let Some(lease) = self.bench.leases.values().find(robots).cloned() else { return };
        let mut completion = self.bench.completion(&lease, 50, Outcome::Ok);
        if completion.ended_at >= lease.expires_at {
            return;
        }
        let rules = format!("User-agent: *\nDisallow: /{}/\n", which % 6);
        completion.robots_body = Some(rules.into());
        self.bench.now = self.bench.now.max(completion.ended_at);
        self.step(HostEvent::Ended(Box::new(completion)));
    }

    /// One step with what holds after each.
    fn step(&mut self, event: HostEvent) {
        let row = self.bench.machine.record().clone();
        let flying: Vec<_> = self.bench.leases.values().cloned().collect();
        let effects = self.bench.step(event);
        if let Some(request) = &effects.load {
            assert!(self.reading.is_none(), "one read at a time");
            self.reading = Some((request.clone(), self.bench.rows(request)));
        }
        if effects.offer.is_some() {
            assert!(self.pending.take().is_some(), "an offer is answered once");
        }
        if let Some(grant) = &effects.grant {
            let allowed = self.bench.machine.allowed_in_flight();
            let lease = &grant.lease;
            let departs = invariants::may_depart(lease.not_before, &row, 0, allowed);
            assert!(departs, "H-2");
            let second = std::time::Duration::from_secs(1);
            let apart = |other: &&crate::types::Lease| other.not_before + second;
            let ahead = flying.iter().filter(|other| other.expires_at > self.bench.now);
            assert!(ahead.map(|other| apart(&other)).all(|at| at <= lease.not_before), "I2");
            assert!(lease.not_before >= self.bench.now, "never in the past");
            assert!(lease.not_before <= self.bench.now + std::time::Duration::from_secs(1));
        }
        if effects.wake_sleepers {
            self.wake_sleepers();
        }
        let waits = self.pending.is_some() && self.reading.is_none();
        assert!(!waits, "an offer is answered or waits for rows");
    }

    fn wake_sleepers(&mut self) {
        let woken: Vec<_> = std::mem::take(&mut self.bench.sleeping).into_values().collect();
        self.bench.counts.sleeping = 0;
        if !woken.is_empty() {
            self.bench.enqueue(woken);
        }
    }

    fn everything_is_somewhere(&self) {
        for id in &self.admitted {
            let places = self.bench.place_of(*id);
            assert_eq!(places.len(), 1, "W-1: {id} is in {places:?}");
        }
        assert_eq!(self.bench.counts.queued, self.queued(), "the count of the queue");
        assert!(!self.visited_twice, "W-1: granted twice");
    }

    fn queued(&self) -> u64 {
        let ids = self.admitted.iter();
        let queued = ids.filter(|id| self.bench.place_of(**id) == ["queued"]).count();
        u64::try_from(queued).unwrap()
    }

    /// From here on all goes well: every URL must be served, asleep or given up.
    fn serve_the_rest(&mut self) {
        self.act(Act::Load(true));
        self.act(Act::Pause(false));
        for _ in 0..2_000 {
            self.bench.dice = self.bench.dice.wrapping_add(1);
            self.bench.move_due();
            self.load(false);
            self.step(HostEvent::TimerRang);
            if self.bench.leases.is_empty() && self.pending.is_none() {
                let due = self.bench.deferred.values().map(|(due, _)| *due).min();
                let wake = self.bench.machine.next_wake();
                let Some(next) = [due, wake].into_iter().flatten().min() else { return };
                self.bench.now = self.bench.now.max(next);
                if wake.is_some_and(|at| at <= self.bench.now) {
                    self.offer();
                }
            }
            self.robots(5);
            self.end(0, Outcome::Ok, 1);
            self.bench.now = self.bench.now + std::time::Duration::from_millis(1);
        }
        panic!("it never ends: {:?}", self.bench.machine);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_is_lost_doubled_or_early(
        acts in prop::collection::vec(act(), 1..120),
        max_in_flight in 1u16..3,
    ) {
        let mut run = Run::new(max_in_flight);
        for act in acts {
            run.act(act);
            run.everything_is_somewhere();
        }
        run.serve_the_rest();
        run.everything_is_somewhere();
        prop_assert_eq!(run.queued(), 0, "something is never offered again");
    }
}
