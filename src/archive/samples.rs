//! Responses for the tests of the archive.

use std::sync::Arc;

use bytes::Bytes;

use crate::types::{
    Completion, CrawlUrl, Epoch, Headers, Lease, LeaseId, LeaseKind, Outcome, QueueEntry, Response,
    Timestamp, UrlId, UrlVersion, Validators,
};

pub(super) const START: i64 = 1_767_225_600_000;

pub(super) fn lease(url: &str) -> Lease {
    let url = CrawlUrl::parse(url).unwrap();
    let host = url.host_key();
    let id = UrlId { host: host.id(), hash: 7, disambiguator: 0 };
    let entry = QueueEntry {
        id,
        version: UrlVersion(1),
        url,
        depth: 0,
        band: 0,
        order: 0,
        attempts: 0,
        redirects: 0,
        validators: None,
        discovered_from: None,
    };
    Lease {
        id: LeaseId(1),
        kind: LeaseKind::Page,
        host,
        entry,
        epoch: Epoch(1),
        granted_at: Timestamp::from_millis(START),
        not_before: Timestamp::from_millis(START),
        expires_at: Timestamp::NEVER,
        address: None,
    }
}

pub(super) fn response(url: &str, status: u16, headers: Headers, body: &[u8]) -> Response {
    Response {
        lease: Arc::new(lease(url)),
        request_head: Bytes::from_static(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        protocol: "HTTP/1.1",
        status,
        status_line: None,
        headers,
        body: Bytes::copy_from_slice(body),
        truncated: None,
        sent_at: Timestamp::from_millis(START + 1_500),
        ended_at: Timestamp::from_millis(START + 2_000),
        address: "127.0.0.1:80".parse().unwrap(),
    }
}

pub(super) fn page(url: &str, body: &[u8]) -> Response {
    response(url, 200, headers(&[("Content-Type", "text/html; charset=utf-8")]), body)
}

pub(super) fn headers(pairs: &[(&str, &str)]) -> Headers {
    let owned = |(name, value): &(&str, &str)| {
        ((*name).to_owned(), Bytes::copy_from_slice(value.as_bytes()))
    };
    pairs.iter().map(owned).collect()
}

/// The answer to a conditional request for a payload with this digest.
pub(super) fn not_modified(url: &str, digest: &str) -> Response {
    let mut response = response(url, 304, headers(&[("ETag", "\"1\"")]), b"");
    let mut lease = lease(url);
    let digest = Some(digest.to_owned());
    lease.entry.validators = Some(Validators { digest, ..Validators::default() });
    response.lease = Arc::new(lease);
    response
}

pub(super) fn completion(response: &Response) -> Completion {
    let outcome = Outcome::of_status(response.status).unwrap();
    let lease = &response.lease;
    Completion {
        outcome,
        status: Some(response.status),
        sent_at: Some(response.sent_at),
        reason: None,
        validators: Some(Validators { etag: Some("\"1\"".to_owned()), ..Validators::default() }),
        ..Completion::failed(lease, response.ended_at, outcome, crate::types::Reason::Queued)
    }
}
