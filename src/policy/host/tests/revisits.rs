//! F8: what is known of a page stays while later visits of it fail.

use super::bench::{Bench, secs, settings};
use crate::types::{ArchivePointer, Completion, Lease, Outcome, UrlStatus, UrlVersion};

fn brought(completion: &mut Completion, digest: &str, offset: u64) {
    completion.digest = Some(digest.to_owned());
    let file = "a.warc.gz".into();
    completion.archive = Some(ArchivePointer { file, offset, length: 10 });
}

fn ended(bench: &mut Bench, lease: &Lease, outcome: Outcome, digest: &str, offset: u64) {
    let mut completion = bench.completion(lease, 0, outcome);
    brought(&mut completion, digest, offset);
    bench.ended(completion);
}

/// The lease of the next visit, once it is due.
fn due(bench: &mut Bench, lease: &Lease) -> Lease {
    bench.now = bench.deferred[&lease.entry.id].0.max(bench.now);
    bench.move_due();
    bench.next_lease()
}

fn visited_once() -> (Bench, Lease) {
    let mut settings = settings();
    settings.revisit_after = Some(secs(3600));
    settings.retries.max_attempts = 2;
    let mut bench = Bench::with_rules(settings, super::ALLOW, &["/1"]);
    let lease = bench.granted();
    ended(&mut bench, &lease, Outcome::Ok, "sha1:GOOD", 100);
    (bench, lease)
}

#[test]
fn a_known_page_past_its_cap_keeps_its_last_good_state() {
    let (mut bench, first) = visited_once();
    let good = bench.visit(first.entry.id);
    for status in [UrlStatus::Retrying, UrlStatus::Dead] {
        let lease = due(&mut bench, &first);
        assert_eq!(lease.entry.version, UrlVersion(2));
        ended(&mut bench, &lease, Outcome::ServerError, "sha1:ERROR", 900);
        let visit = bench.visit(lease.entry.id);
        assert_eq!((visit.status, visit.version), (status, UrlVersion(2)));
        assert_eq!(visit.outcome, Some(Outcome::ServerError));
        assert_eq!(visit.digest.as_deref(), Some("sha1:GOOD"));
        assert_eq!((&visit.archive, visit.last_fetched_at), (&good.archive, good.last_fetched_at));
    }
}

#[test]
fn a_visit_that_succeeds_in_the_end_replaces_what_was_known() {
    let (mut bench, first) = visited_once();
    let failed = due(&mut bench, &first);
    ended(&mut bench, &failed, Outcome::ServerError, "sha1:ERROR", 900);
    let again = due(&mut bench, &first);
    ended(&mut bench, &again, Outcome::Ok, "sha1:NEW", 300);
    let visit = bench.visit(again.entry.id);
    assert_eq!((visit.status, visit.version), (UrlStatus::Fetched, UrlVersion(2)));
    assert_eq!((visit.digest.as_deref(), visit.outcome), (Some("sha1:NEW"), Some(Outcome::Ok)));
    assert!(bench.failing.is_empty(), "a row that says nothing more is left");
}

#[test]
fn a_page_that_was_never_had_shows_its_failure() {
    let mut bench = Bench::with_rules(settings(), super::ALLOW, &["/1"]);
    let lease = bench.granted();
    ended(&mut bench, &lease, Outcome::ServerError, "sha1:ERROR", 900);
    assert_eq!(bench.visit(lease.entry.id).digest.as_deref(), Some("sha1:ERROR"));
    assert!(bench.failing.is_empty());
}
