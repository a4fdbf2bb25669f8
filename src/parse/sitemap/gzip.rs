//! Sitemaps that are gzip files, as sitemaps.org allows.

use bytes::Bytes;

use super::{bare, is_list_of_urls, is_sitemap_or_feed};
use crate::parse::decode::{DecodeLimits, gunzip};
use crate::parse::handler::{Handler, Input, Limits, Parsed, handler_for};
use crate::parse::memory::Memory;
use crate::parse::mime::{Sniffed, sniff};
use crate::types::{Headers, Reason};

/// What a sitemap may hold, as sitemaps.org bounds it.
const FILE_BYTES_MAX: usize = 50 << 20;

/// What is unpacked of a file of another type to see what it is.
const LOOK_BYTES: usize = 8 << 10;

/// A sitemap or a feed by its first bytes, packed or not, whatever its type and name say (P3).
pub(in crate::parse) fn looks_like_list(body: &Bytes, memory: Memory) -> bool {
    let is_list = |bytes: &[u8]| is_sitemap_or_feed(bytes) || is_list_of_urls(bytes);
    if !body.starts_with(b"\x1f\x8b") {
        return is_list(body);
    }
    let begin = DecodeLimits { decoded_bytes_max: LOOK_BYTES, ratio_max: usize::MAX };
    is_list(&gunzip(body, &begin, memory).bytes)
}

/// A gzip file with a sitemap or a feed in it. What is in it is looked at, not its name; a file
/// that is no gzip, whatever its type says, is read as what it is.
pub struct GzipHandler;

impl Handler for GzipHandler {
    fn accepts(&self, content_type: &str) -> bool {
        matches!(
            content_type,
            "application/gzip"
                | "application/x-gzip"
                | "application/x-gunzip"
                | "application/gzipped"
                | "application/gzip-compressed"
                | "gzip/document"
        )
    }

    fn parse(&self, input: &Input<'_>, limits: &Limits) -> Parsed {
        let max = DecodeLimits { decoded_bytes_max: FILE_BYTES_MAX, ..limits.decode };
        let (inside, cut) = if input.body.starts_with(b"\x1f\x8b") {
            let decoded = gunzip(input.body, &max, limits.memory);
            (decoded.bytes, decoded.reason)
        } else {
            (input.body.clone(), None)
        };
        // Of a damaged file nobody knows which bytes are right.
        let is_damaged = matches!(cut, Some(Reason::Decode { .. }));
        let mut parsed = match handler_of(&inside).filter(|_| !is_damaged) {
            Some(handler) => read(handler, input, &inside, limits),
            None => bare(input),
        };
        parsed.reasons.splice(0..0, cut);
        parsed
    }
}

fn handler_of(inside: &Bytes) -> Option<&'static dyn Handler> {
    match sniff(inside) {
        Sniffed::Html | Sniffed::Xml | Sniffed::Text if is_sitemap_or_feed(inside) => {
            handler_for("text/xml")
        }
        Sniffed::Xml => handler_for("text/xml"),
        Sniffed::Text => handler_for("text/plain"),
        Sniffed::Html | Sniffed::Binary => None,
    }
}

/// Read by the handler of what is inside; only links matter, and the type was that of the shell.
fn read(handler: &dyn Handler, input: &Input<'_>, inside: &Bytes, limits: &Limits) -> Parsed {
    let is_type = |name: &str| name.eq_ignore_ascii_case("content-type");
    let headers: Headers =
        input.headers.iter().filter(|(name, _)| !is_type(name)).cloned().collect();
    let parsed = handler.parse(&Input { headers: &headers, body: inside, ..*input }, limits);
    Parsed { text: String::new(), ..parsed }
}
