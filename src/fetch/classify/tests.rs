//! The outcome table, and what completions carry.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::types::{
    CrawlUrl, Epoch, HostKey, LeaseId, QueueEntry, SizeLimit, TimeLimit, Timestamp, UrlId,
    UrlVersion,
};

pub(crate) fn lease(url: &str, kind: LeaseKind) -> Lease {
    let url = CrawlUrl::parse(url).unwrap();
    let host = url.host_key();
    let id = UrlId { host: host.id(), hash: 7, disambiguator: 0 };
    let at = Timestamp::from_secs(1_000_000);
    Lease {
        id: LeaseId(1),
        kind,
        host,
        entry: QueueEntry {
            id,
            version: UrlVersion(3),
            url,
            depth: 1,
            band: 0,
            order: 0,
            attempts: 0,
            redirects: 0,
            validators: None,
            discovered_from: None,
        },
        epoch: Epoch(1),
        granted_at: at,
        not_before: at + Duration::from_secs(5),
        expires_at: at + Duration::from_secs(300),
        address: Some([192, 0, 2, 1].into()),
    }
}

pub(crate) fn robots_kind() -> LeaseKind {
    LeaseKind::Robots { for_host: HostKey::parse("http://site.test").unwrap(), hops: 0 }
}

pub(crate) fn exchanged(status: u16, headers: &[(&str, &str)], body: &str) -> Exchanged {
    let pair =
        |(name, value): &(&str, &str)| ((*name).to_owned(), Bytes::from((*value).to_owned()));
    Exchanged {
        request_head: Bytes::from("GET / HTTP/1.1\r\n\r\n"),
        protocol: "HTTP/1.1",
        status,
        status_line: None,
        headers: headers.iter().map(pair).collect(),
        body: Bytes::from(body.to_owned()),
        truncated: None,
        reason: None,
        sent_at: Timestamp::from_secs(1_000_005),
        ended_at: Timestamp::from_secs(1_000_006),
        remote: SocketAddr::from(([192, 0, 2, 1], 80)),
    }
}

fn page() -> Lease {
    lease("http://site.test/a", LeaseKind::Page)
}

fn report(lease: &Lease, got: &Exchanged) -> Completion {
    completion(lease, got, Oversize::Truncate, 1000)
}

#[test]
fn a_part_that_was_not_asked_for_is_no_page() {
    for (range, expected) in [
        ("bytes 0-4/500", Outcome::Protocol),
        ("bytes 5-9/10", Outcome::Protocol),
        ("bytes 0-4/*", Outcome::Protocol),
        ("bytes 0-18446744073709551615/0", Outcome::Protocol),
        ("", Outcome::Protocol),
        ("bytes 0-4/5", Outcome::Ok),
    ] {
        let got = exchanged(206, &[("Content-Range", range)], "hello");
        assert_eq!(report(&page(), &got).outcome, expected, "{range}");
    }
}

#[test]
fn the_status_decides() {
    let location = [("location", "/b")];
    let cases = [
        (101, Outcome::Protocol),
        (200, Outcome::Ok),
        (204, Outcome::Ok),
        (304, Outcome::Protocol),
        (301, Outcome::Redirect),
        (404, Outcome::ClientError),
        (429, Outcome::RateLimited),
        (500, Outcome::ServerError),
        (503, Outcome::RateLimited),
    ];
    for (status, outcome) in cases {
        let report = report(&page(), &exchanged(status, &location, "abc"));
        assert_eq!(report.outcome, outcome, "{status}");
        assert_eq!((report.status, report.bytes), (Some(status), 3));
        assert_eq!(report.location.is_some(), outcome == Outcome::Redirect);
        assert_eq!(report.took(), Duration::from_secs(1));
    }
}

#[test]
fn of_a_good_status_the_end_of_the_body_decides() {
    let total = Duration::from_secs(60);
    let time = Reason::TimedOut { limit: TimeLimit::Total, after: total };
    let size = Reason::TooLarge { limit: SizeLimit::Body, max: 9 };
    let cases = [
        (Truncation::Length, Oversize::Truncate, size.clone(), Outcome::Truncated),
        (Truncation::Length, Oversize::Skip, size, Outcome::TooLarge),
        (Truncation::Time, Oversize::Truncate, time, Outcome::Timeout),
        (Truncation::Disconnect, Oversize::Skip, Reason::WorkerDied, Outcome::Protocol),
        (Truncation::Unspecified, Oversize::Skip, Reason::WorkerDied, Outcome::UnwantedType),
    ];
    for (truncated, oversize, reason, outcome) in cases {
        let cut = |status| Exchanged {
            truncated: Some(truncated),
            reason: Some(reason.clone()),
            ..exchanged(status, &[], "abc")
        };
        let report = completion(&page(), &cut(200), oversize, 1000);
        assert_eq!((report.outcome, report.reason), (outcome, Some(reason.clone())));
        let report = completion(&page(), &cut(404), oversize, 1000);
        assert_eq!(report.outcome, Outcome::ClientError);
    }
}

#[test]
fn a_redirect_needs_a_location() {
    for headers in [&[][..], &[("location", "")][..]] {
        let report = report(&page(), &exchanged(302, headers, ""));
        assert_eq!(report.reason, Some(Reason::NoLocation));
        assert_eq!(report.location.as_deref().unwrap_or_default(), "");
    }
    let mut latin = exchanged(302, &[], "");
    latin.headers.push(("location".to_owned(), Bytes::from_static(b"/caf\xe9")));
    assert_eq!(report(&page(), &latin).location.as_deref(), Some("/caf\u{e9}"));
}

#[test]
fn validators_are_kept_and_confirmed() {
    let headers = [("etag", "\"v1\""), ("last-modified", "Mon, 01 Jun 2026 00:00:00 GMT")];
    let kept = report(&page(), &exchanged(200, &headers, "")).validators.unwrap();
    assert_eq!(kept.etag.as_deref(), Some("\"v1\""));
    assert_eq!(kept.last_modified.as_deref(), Some("Mon, 01 Jun 2026 00:00:00 GMT"));
    assert_eq!(report(&page(), &exchanged(404, &headers, "")).validators, None);
    let long = "x".repeat(2000);
    for bad in ["", "\u{e9}", "a\u{1}b", long.as_str()] {
        assert_eq!(report(&page(), &exchanged(200, &[("etag", bad)], "")).validators, None);
    }
    let mut revisit = page();
    revisit.entry.validators = Some(Validators { digest: Some("sha1:A".to_owned()), ..kept });
    let report = report(&revisit, &exchanged(304, &[("etag", "\"v2\"")], ""));
    assert_eq!(report.outcome, Outcome::NotModified);
    let confirmed = report.validators.unwrap();
    assert_eq!(confirmed.etag.as_deref(), Some("\"v2\""));
    assert!(confirmed.last_modified.is_some());
    assert_eq!(confirmed.digest.as_deref(), Some("sha1:A"));
}

#[test]
fn waits_that_a_site_asks_for_are_passed_on() {
    let asked = |status, value| {
        let got = exchanged(status, &[("retry-after", value)], "");
        report(&page(), &got).retry_after.map(|wait| wait.as_secs())
    };
    assert_eq!(asked(503, "120"), Some(120));
    assert_eq!(asked(429, " 7 "), Some(7));
    assert_eq!(asked(301, "3600"), Some(3600));
    // The exchange ended at 1_000_006 s.
    assert_eq!(asked(503, "Mon, 12 Jan 1970 13:47:46 GMT"), Some(60));
    assert_eq!(asked(503, "Mon, 12 Jan 1970 13:00:00 GMT"), Some(0));
    let dated = [
        ("retry-after", "Mon, 12 Jan 1970 13:47:46 GMT"),
        ("date", "Mon, 12 Jan 1970 13:46:46 GMT"),
    ];
    let wait = report(&page(), &exchanged(503, &dated, "")).retry_after;
    assert_eq!(wait, Some(Duration::from_secs(60)), "by the site's clock");
    let behind = [dated[0], ("date", "Mon, 12 Jan 1970 12:47:46 GMT")];
    let wait = report(&page(), &exchanged(503, &behind, "")).retry_after;
    assert_eq!(wait, Some(Duration::from_secs(3600)), "by the site's clock");
    assert_eq!(asked(503, "soon"), None);
    assert_eq!(asked(200, "120"), None);
}

#[test]
fn robots_bodies_ride_along() {
    let robots = lease("http://site.test/robots.txt", robots_kind());
    let headers = [("cache-control", "public, Max-Age=\"600\""), ("content-type", "text/plain")];
    let report = completion(&robots, &exchanged(200, &headers, "User-agent: *"), Oversize::Skip, 5);
    assert_eq!(report.robots_body.as_deref(), Some(&b"User-"[..]));
    assert_eq!(report.max_age, Some(Duration::from_secs(600)));
    let absent = completion(&robots, &exchanged(404, &headers, "no"), Oversize::Skip, 5);
    assert_eq!((absent.robots_body, absent.outcome), (None, Outcome::ClientError));
    let broken = exchanged(200, &[("content-encoding", "gzip")], "plain");
    let broken = completion(&robots, &broken, Oversize::Skip, 5);
    assert_eq!((broken.robots_body, broken.outcome), (None, Outcome::Decode));
    let page = completion(&page(), &exchanged(200, &headers, "x"), Oversize::Skip, 5);
    assert_eq!((page.robots_body, page.max_age), (None, None));
}

#[test]
fn a_failure_keeps_what_is_known() {
    let reason = Reason::Connect { why: "refused".to_owned() };
    let at = Timestamp::from_secs(9);
    let failure = ExchangeFailure {
        outcome: Outcome::Connect,
        reason: reason.clone(),
        sent_at: Some(at),
        ended_at: at,
    };
    let report = failed(&page(), failure);
    assert_eq!((report.outcome, report.reason), (Outcome::Connect, Some(reason)));
    assert_eq!((report.sent_at, report.status), (Some(at), None));
    assert_eq!((report.lease, report.version), (LeaseId(1), UrlVersion(3)));
}
