//! R5: what an exclusion covers is not granted, and is judged again when it is gone.

use std::sync::Arc;

use super::bench::{Bench, at, settings};
use crate::policy::exclusion::{Exclusions, id_of, parse_rule};
use crate::policy::host::HostEvent;
use crate::types::{
    ExclusionRecord, Lease, Outcome, PurgeRecord, QueueEntry, Reason, Timestamp, UrlStatus,
    Validators,
};

fn excluded(rule: &str, until: Option<Timestamp>) -> Arc<Exclusions> {
    let rule = parse_rule(rule).unwrap();
    let (id, rule) = (id_of(&rule), rule.to_string());
    Arc::new(Exclusions::new([ExclusionRecord { id, rule, reason: None, until, made_at: at(0) }]))
}

fn bench(paths: &[&str]) -> Bench {
    Bench::with_rules(settings(), super::ALLOW, paths)
}

/// The end that a worker or the shard gives a lease for an exclusion.
fn cut(bench: &mut Bench, lease: &Lease) {
    let mut completion = bench.completion(lease, 0, Outcome::Cancelled);
    completion.reason = Some(Reason::Excluded { id: "any".to_owned() });
    bench.ended(completion);
}

#[test]
fn covered_entries_go_to_sleep_on_the_way_to_one_that_is_free() {
    let mut bench = bench(&["/a/1", "/a/2", "/b", "/a/3"]);
    bench.step(HostEvent::Excluded(excluded("surt:test,a)/a/", None)));
    assert_eq!(bench.next_lease().entry.url.path_and_query(), "/b");
    while bench.sleeping.len() < 3 {
        bench.now = bench.now + super::secs(10);
        let lease = bench.leases.values().next().cloned();
        match lease {
            Some(lease) => drop(bench.answer(&lease, 0, Outcome::Ok)),
            None => assert_eq!(bench.withheld(), None),
        }
    }
    let asleep = bench.sleeping.keys().next().copied().unwrap();
    let visit = bench.visit(asleep);
    assert_eq!((visit.status, visit.outcome, visit.attempts), (UrlStatus::Sleeping, None, 0));
    assert!(matches!(visit.reason, Some(Reason::Excluded { .. })));
}

#[test]
fn a_cut_exchange_is_no_try_and_its_entry_sleeps() {
    let mut bench = bench(&["/a"]);
    let lease = bench.granted();
    bench.step(HostEvent::Excluded(excluded("host:a.test", None)));
    cut(&mut bench, &lease);
    assert_eq!(bench.sleeping[&lease.entry.id].attempts, 0);
    assert!(bench.queue.is_empty() && bench.deferred.is_empty() && bench.dead.is_empty());
    assert!(bench.events.is_empty(), "nothing was fetched: {:?}", bench.events);
}

#[test]
fn a_lease_cut_by_an_exclusion_that_is_gone_by_now_comes_back_at_once() {
    let mut bench = bench(&["/a"]);
    let lease = bench.granted();
    cut(&mut bench, &lease);
    let (due, entry) = &bench.deferred[&lease.entry.id];
    assert_eq!((*due, entry.attempts), (bench.now, 0));
    assert!(bench.sleeping.is_empty());
}

#[test]
fn sleepers_are_judged_again_only_for_rules_that_are_gone_and_touched_the_host() {
    let mut bench = bench(&["/a"]);
    let wakes = |bench: &mut Bench, set| bench.step(HostEvent::Excluded(set)).wake_sleepers;
    assert!(!wakes(&mut bench, excluded("surt:test,a)/a", None)));
    assert!(!wakes(&mut bench, excluded("surt:test,a)/a", Some(at(9_000)))), "the same, changed");
    assert!(wakes(&mut bench, excluded("host:b.test", None)), "it is gone");
    assert!(!wakes(&mut bench, Arc::default()), "of another host");
}

#[test]
fn an_exclusion_counts_no_more_at_its_end_whoever_has_noticed() {
    let mut bench = bench(&["/a"]);
    let end = bench.now + super::secs(60);
    bench.step(HostEvent::Excluded(excluded("surt:test,a)/", Some(end))));
    bench.now = end;
    assert_eq!(bench.granted().entry.url.path_and_query(), "/a");
}

#[test]
fn what_an_entry_knows_of_content_that_was_removed_is_not_sent() {
    for (rule, kept) in [("host:a.test", false), ("surt:test,a)/a", false), ("host:b.test", true)] {
        let mut bench = bench(&["/first"]);
        let lease = bench.next_lease();
        bench.answer(&lease, 0, Outcome::Ok);
        bench.now = bench.now + super::secs(10);
        let etag = Some("\"1\"".to_owned());
        let validators = Some(Validators { etag, ..Validators::default() });
        bench.enqueue(vec![QueueEntry { validators, ..bench.entry("/a") }]);
        let (id, done_at) = ("1f".to_owned(), Some(at(1)));
        let order = PurgeRecord { done_at, ..PurgeRecord::new(id, rule.to_owned(), at(0)) };
        bench.step(HostEvent::Excluded(Arc::new(Exclusions::default().with_purge(order))));
        assert_eq!(bench.next_lease().entry.validators.is_some(), kept, "{rule}");
    }
}
