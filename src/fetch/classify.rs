//! From a response to the report of its lease: outcome, and what the next visit needs.

use std::time::Duration;

use super::robots;
use super::settings::condition;
use crate::policy::retry_after::{retry_after, time_of_site};
use crate::policy::robots::freshness;
use crate::types::{
    Completion, Headers, Lease, LeaseKind, Outcome, Reason, Truncation, Validators, header,
};
use crate::world::{ExchangeFailure, Exchanged, Oversize};

/// A validator that is longer is not kept: it would be sent with every revisit.
const VALIDATOR_BYTES_MAX: usize = 1024;

/// What a response means for its lease. The archive adds pointer and digest.
pub(super) fn completion(
    lease: &Lease,
    got: &Exchanged,
    oversize: Oversize,
    robots_bytes_max: u64,
) -> Completion {
    let (outcome, reason) = outcome(lease, got, oversize);
    let mut report = Completion {
        lease: lease.id,
        id: lease.entry.id,
        url: lease.entry.url.clone(),
        version: lease.entry.version,
        outcome,
        status: Some(got.status),
        sent_at: Some(got.sent_at),
        ended_at: got.ended_at,
        bytes: u64::try_from(got.body.len()).unwrap_or(u64::MAX),
        retry_after: asked_wait(got),
        reason,
        archive: None,
        digest: None,
        validators: validators(lease, got, outcome),
        content_type: text(&got.headers, "content-type"),
        location: text(&got.headers, "location").filter(|_| outcome == Outcome::Redirect),
        address: Some(got.remote.ip()),
        robots_body: None,
        max_age: None,
    };
    match lease.kind {
        LeaseKind::Page => {}
        LeaseKind::Robots { .. } => add_robots(&mut report, got, robots_bytes_max),
    }
    report
}

/// The report of an exchange without a response.
pub(super) fn failed(lease: &Lease, failure: ExchangeFailure) -> Completion {
    let ExchangeFailure { outcome, reason, sent_at, ended_at } = failure;
    Completion { sent_at, ..Completion::failed(lease, ended_at, outcome, reason) }
}

/// The outcome table: the status decides, and of a 2xx how its body ended.
fn outcome(lease: &Lease, got: &Exchanged, oversize: Oversize) -> (Outcome, Option<Reason>) {
    let protocol = |why: &str| (Outcome::Protocol, Some(Reason::Protocol { why: why.to_owned() }));
    match Outcome::of_status(got.status) {
        None => protocol("an interim status ended the exchange"),
        Some(Outcome::NotModified) if condition(lease).is_none() => {
            protocol("304 to a request without a condition")
        }
        // RFC 9110 15.3.7: we ask for no range.
        Some(Outcome::Ok) if got.status == 206 && !is_whole_range(got) => {
            protocol("206 with a part that was not asked for")
        }
        Some(Outcome::Redirect) if header(&got.headers, "location").is_none_or(str::is_empty) => {
            (Outcome::Redirect, Some(Reason::NoLocation))
        }
        Some(Outcome::Ok) => (of_body(got.truncated, oversize), got.reason.clone()),
        Some(other) => (other, got.reason.clone()),
    }
}

/// RFC 9110 14.4: a part that is all there is.
fn is_whole_range(got: &Exchanged) -> bool {
    let range =
        header(&got.headers, "content-range").and_then(|range| range.strip_prefix("bytes "));
    let whole = range.and_then(|range| range.trim().strip_prefix("0-"));
    let ends = whole.and_then(|whole| whole.split_once('/'));
    let number = |text: &str| text.parse::<u64>().ok();
    ends.is_some_and(|(last, length)| {
        number(last)
            .and_then(|last| last.checked_add(1))
            .is_some_and(|end| number(length) == Some(end))
    })
}

fn of_body(truncated: Option<Truncation>, oversize: Oversize) -> Outcome {
    match (truncated, oversize) {
        (None, _) => Outcome::Ok,
        (Some(Truncation::Length), Oversize::Truncate) => Outcome::Truncated,
        (Some(Truncation::Length), Oversize::Skip) => Outcome::TooLarge,
        (Some(Truncation::Time), _) => Outcome::Timeout,
        (Some(Truncation::Disconnect), _) => Outcome::Protocol,
        (Some(Truncation::Unspecified), _) => Outcome::UnwantedType,
    }
}

/// H3: validators of what was kept; a 304 confirms those that were sent.
fn validators(lease: &Lease, got: &Exchanged, outcome: Outcome) -> Option<Validators> {
    let fit = |name| {
        header(&got.headers, name)
            .filter(|value| value.len() <= VALIDATOR_BYTES_MAX && !value.is_empty())
            .filter(|value| value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()))
            .map(str::to_owned)
    };
    let found = Validators { etag: fit("etag"), last_modified: fit("last-modified"), digest: None };
    if outcome == Outcome::NotModified {
        let sent = lease.entry.validators.clone().unwrap_or_default();
        return Some(Validators {
            etag: found.etag.or(sent.etag),
            last_modified: found.last_modified.or(sent.last_modified),
            digest: sent.digest,
        });
    }
    let is_kept = matches!(outcome, Outcome::Ok | Outcome::Truncated);
    (is_kept && found != Validators::default()).then_some(found)
}

/// F7: how long the site asked to stay away, whatever the status of its refusal or redirect. A date
/// is counted from the site's own, where it says what time it is (A4): our clock may be wrong.
fn asked_wait(got: &Exchanged) -> Option<Duration> {
    let value = header(&got.headers, "retry-after").filter(|_| got.status >= 300)?;
    retry_after(value, time_of_site(header(&got.headers, "date"), got.ended_at))
}

/// R2: the rules themselves, where they came whole or were cut at their bound.
fn add_robots(report: &mut Completion, got: &Exchanged, bytes_max: u64) {
    report.max_age = freshness(&got.headers, got.ended_at);
    if !matches!(report.outcome, Outcome::Ok | Outcome::Truncated) {
        return;
    }
    match robots::decode(&got.headers, &got.body, bytes_max, got.truncated.is_some()) {
        Ok(rules) => report.robots_body = Some(rules),
        Err(reason) => {
            report.outcome = Outcome::Decode;
            report.reason = Some(reason);
        }
    }
}

/// A header's first value as text: UTF-8, or else every byte a character, as HTTP once meant it.
fn text(headers: &Headers, name: &str) -> Option<String> {
    let (_, value) = headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    let text = match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().copied().map(char::from).collect(),
    };
    Some(text.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests;
