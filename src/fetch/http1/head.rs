//! The head of a response: where it ends, and what its lines say (RFC 9112 2 to 5).
//!
//! HD-1: never more than [`HEADER_BYTES_MAX`] bytes are held, interim responses included, and each
//! byte is looked at a few times, however it arrives. HD-2: names and values are as they were sent;
//! a folded value has its lines joined by one space. HD-3: where only a lenient reading makes sense
//! of a head, it is marked, and whoever reads on must not trust its connection any further.

use std::mem::MaybeUninit;

use bytes::Bytes;
use httparse::{Error, ParserConfig};

use crate::types::Headers;

/// Bytes of a response's heads, interim ones included.
pub(in crate::fetch) const HEADER_BYTES_MAX: u32 = 417_792;
/// Header lines of a response.
pub(in crate::fetch) const HEADERS_MAX: usize = 256;
/// Interim responses before the one that counts.
pub(in crate::fetch) const INTERIM_MAX: u32 = 16;
/// What every response begins with.
const BEGIN: &[u8] = b"HTTP/1.";
/// As much of a foreign protocol is shown.
const SHOWN_BYTES_MAX: usize = 40;

/// A head that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// 200 to 999.
    pub(super) status: u16,
    /// HTTP/1.0 and not HTTP/1.1.
    pub(super) is_http_10: bool,
    /// The status line as sent, without its end.
    pub(super) status_line: Bytes,
    /// In the order and spelling received.
    pub(super) headers: Headers,
    /// HD-3: another reader may see another response.
    pub(super) is_odd: bool,
}

/// Why bytes are no head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadFault {
    /// More headers than are taken, by number or bytes.
    TooLarge,
    /// What is wrong.
    Malformed(String),
}

/// Takes bytes until a final response's head is whole.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    bytes: Vec<u8>,
    /// No head ends before here.
    scanned: usize,
    /// Bytes of what was taken off before: blank lines, interim responses.
    spent: usize,
    interim: u32,
    is_odd: bool,
}

impl HeadReader {
    /// Takes what came next; a head once it is whole.
    ///
    /// # Errors
    /// What came is no response, or too much of one.
    pub(super) fn take(&mut self, came: &[u8]) -> Result<Option<Head>, HeadFault> {
        self.bytes.extend_from_slice(came);
        loop {
            self.skip_blank_lines();
            if !begins_like_http(&self.bytes) {
                return Err(not_http(&self.bytes));
            }
            let end = end_of_head(&self.bytes, self.scanned);
            self.scanned = self.bytes.len();
            if self.spent + end.unwrap_or(self.scanned) > HEADER_BYTES_MAX as usize {
                return Err(HeadFault::TooLarge);
            }
            let Some(end) = end else { return Ok(None) };
            let head = parse(&Bytes::copy_from_slice(&self.bytes[..end]))?;
            self.drop_first(end);
            match head.status {
                101 => return Err(malformed("the server switches protocols without being asked")),
                100..=199 => self.interim += 1,
                _ => return Ok(Some(Head { is_odd: head.is_odd || self.is_odd, ..head })),
            }
            self.is_odd |= head.is_odd;
            if self.interim > INTERIM_MAX {
                return Err(HeadFault::Malformed(format!(
                    "more than {INTERIM_MAX} interim responses before the final one"
                )));
            }
        }
    }

    /// Whether nothing came at all.
    pub(super) fn is_untouched(&self) -> bool {
        self.bytes.is_empty() && self.spent == 0
    }

    /// What came after the head.
    pub(super) fn into_rest(self) -> Vec<u8> {
        self.bytes
    }

    /// RFC 9112 2.2: blank lines before a message are left aside.
    fn skip_blank_lines(&mut self) {
        let mut skipped = 0;
        loop {
            let rest = &self.bytes[skipped..];
            skipped += match rest {
                [b'\n', ..] => 1,
                [b'\r', b'\n', ..] => 2,
                _ => break,
            };
        }
        if skipped > 0 {
            self.is_odd = true;
            self.drop_first(skipped);
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.spent += count;
        self.scanned = 0;
    }
}

/// Whether the bytes may still become a response: a foreign protocol is known by its first bytes.
fn begins_like_http(bytes: &[u8]) -> bool {
    let known = bytes.len().min(BEGIN.len());
    bytes == b"\r" || bytes[..known] == BEGIN[..known]
}

/// Where the first head ends, behind its blank line; `from` bytes are known to hold no end.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    // A line end of two bytes may be halfway in what is known.
    let from = from.saturating_sub(2);
    memchr::memchr_iter(b'\n', &bytes[from..]).map(|at| from + at + 1).find_map(|line| match &bytes
        [line..]
    {
        [b'\n', ..] => Some(line + 1),
        [b'\r', b'\n', ..] => Some(line + 2),
        _ => None,
    })
}

/// Reads a head that has its end: strictly, and leniently where that fails (HD-3).
fn parse(bytes: &Bytes) -> Result<Head, HeadFault> {
    let is_plain = |head: Head| Head { is_odd: has_bare_line_feed(bytes), ..head };
    match read(bytes, &ParserConfig::default()) {
        Ok(head) => Ok(is_plain(head)),
        Err(Error::TooManyHeaders) => Err(HeadFault::TooLarge),
        Err(_) => match read(bytes, &lenient()) {
            Ok(head) => Ok(Head { is_odd: true, ..head }),
            Err(Error::TooManyHeaders) => Err(HeadFault::TooLarge),
            Err(why) => Err(malformed(words(why))),
        },
    }
    .and_then(|head| match head.status {
        0..100 => Err(HeadFault::Malformed(format!("{:03} is no status", head.status))),
        _ => Ok(head),
    })
}

/// What browsers forgive: lines that are no header are left out, folded values are joined.
fn lenient() -> ParserConfig {
    let mut config = ParserConfig::default();
    config
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .ignore_invalid_headers_in_responses(true);
    config
}

fn read(bytes: &Bytes, config: &ParserConfig) -> Result<Head, Error> {
    let mut places = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut found = httparse::Response::new(&mut []);
    let read = config.parse_response_with_uninit_headers(&mut found, bytes, &mut places)?;
    let (Some(status), Some(version), true) = (found.code, found.version, read.is_complete())
    else {
        return Err(Error::NewLine);
    };
    let pair = |header: &httparse::Header<'_>| (header.name.to_owned(), value(bytes, header.value));
    Ok(Head {
        status,
        is_http_10: version == 0,
        status_line: bytes.slice(..end_of_line(bytes)),
        headers: found.headers.iter().map(pair).collect(),
        is_odd: false,
    })
}

fn end_of_line(bytes: &[u8]) -> usize {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    if bytes[..end].ends_with(b"\r") { end - 1 } else { end }
}

/// HD-2: a slice of the head; RFC 9112 5.2 for one that is folded.
fn value(head: &Bytes, value: &[u8]) -> Bytes {
    if memchr::memchr(b'\n', value).is_none() {
        return head.slice_ref(value);
    }
    let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    Bytes::from(lines.join(&b' '))
}

fn has_bare_line_feed(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| !bytes[..at].ends_with(b"\r"))
}

fn words(why: Error) -> &'static str {
    match why {
        Error::Version => "the status line names neither HTTP/1.0 nor HTTP/1.1",
        Error::Status => "the status line has no status of three digits, or a control character",
        Error::HeaderName => "a header name with a NUL, or with a CR that ends no line",
        Error::HeaderValue => "a header value with a NUL, or with a CR that ends no line",
        Error::NewLine | Error::Token | Error::TooManyHeaders => "a head without an end",
    }
}

fn malformed(why: &str) -> HeadFault {
    HeadFault::Malformed(why.to_owned())
}

fn not_http(bytes: &[u8]) -> HeadFault {
    let begin = bytes[..bytes.len().min(SHOWN_BYTES_MAX)].escape_ascii();
    HeadFault::Malformed(format!("no HTTP/1 response, it begins with `{begin}`"))
}

#[cfg(test)]
mod tests;
