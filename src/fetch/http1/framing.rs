//! What body follows a head, and whether its connection may be used again: RFC 9112 6.3 as a table.
//!
//! Only for answers to GET. Where a length or coding is not to be trusted, the response is refused,
//! as the RFC asks of a user agent (rule 5); a wrong guess would give another body.

use bytes::Bytes;

use super::head::Head;
use crate::types::Headers;

/// As much of a wrong value is shown.
const SHOWN_BYTES_MAX: usize = 40;

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// With the head (rule 1).
    NoBody,
    /// With the last chunk (rule 4).
    Chunked,
    /// After so many bytes (rule 6).
    Length(u64),
    /// With its connection (rule 8).
    ToClose,
}

/// How a response is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framed {
    /// Where its body ends.
    pub(super) framing: Framing,
    /// The connection may carry another request, once the body is whole.
    pub(super) is_kept: bool,
}

/// What follows a head.
///
/// # Errors
/// What is wrong with its length or transfer coding.
pub(super) fn framed(head: &Head) -> Result<Framed, String> {
    let headers = &head.headers;
    let has_coding = has(headers, "transfer-encoding");
    let (framing, is_clear) = match (head.status, coding(headers)) {
        (100..=199 | 204 | 304, _) => (Framing::NoBody, true),
        (_, Ok(None)) => match length(headers)? {
            Some(length) => (Framing::Length(length), !has_coding),
            None => (Framing::ToClose, false),
        },
        (_, Ok(Some(times))) => {
            let is_clear = times == 1 && !head.is_http_10 && !has(headers, "content-length");
            (Framing::Chunked, is_clear)
        }
        (_, Err(why)) => return Err(why),
    };
    let is_kept = is_clear && !head.is_odd && stays_open(head);
    Ok(Framed { framing, is_kept })
}

/// RFC 9112 9.3.
fn stays_open(head: &Head) -> bool {
    let says = |word: &str| {
        elements(&head.headers, "connection").any(|said| said.eq_ignore_ascii_case(word.as_bytes()))
    };
    !says("close") && (!head.is_http_10 || says("keep-alive"))
}

/// RFC 9112 6.1: how often `chunked` is named, where it is the only coding; `None` without one.
/// `identity`, which once meant none, may stand before it.
fn coding(headers: &Headers) -> Result<Option<usize>, String> {
    let mut chunked = 0;
    for coding in elements(headers, "transfer-encoding").filter(|coding| !coding.is_empty()) {
        let is = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
        if is("chunked") {
            chunked += 1;
        } else if !is("identity") || chunked > 0 {
            return Err(format!("the transfer coding `{}` was not asked for", shown(coding)));
        }
    }
    Ok((chunked > 0).then_some(chunked))
}

/// RFC 9110 8.6: one length, or the same one several times. A number that no counter holds is more
/// than can come.
fn length(headers: &Headers) -> Result<Option<u64>, String> {
    let mut found = None;
    for value in elements(headers, "content-length") {
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(format!("`{}` is no Content-Length", shown(value)));
        }
        let digit =
            |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        let length = value.iter().fold(0, digit);
        if found.is_some_and(|found| found != length) {
            return Err("two Content-Lengths that differ".to_owned());
        }
        found = Some(length);
    }
    Ok(found)
}

/// Values of all headers of a name.
fn values<'h>(headers: &'h Headers, name: &str) -> impl Iterator<Item = &'h Bytes> {
    headers.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, it)| it)
}

/// Elements of the lists in all headers of a name.
fn elements<'h>(headers: &'h Headers, name: &str) -> impl Iterator<Item = &'h [u8]> {
    values(headers, name)
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

fn has(headers: &Headers, name: &str) -> bool {
    values(headers, name).next().is_some()
}

fn shown(value: &[u8]) -> std::slice::EscapeAscii<'_> {
    value[..value.len().min(SHOWN_BYTES_MAX)].escape_ascii()
}

#[cfg(test)]
mod tests;
