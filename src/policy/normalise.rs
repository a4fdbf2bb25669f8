//! D1: the form by which a URL is recognised as known. It only identifies, and is never requested.
//!
//! Two URLs share it only where they mean the same to every server: on top of what the WHATWG
//! parser does (scheme and host in lower case, default port, dot segments), unreserved characters
//! are decoded, other escapes have upper-case digits, and the dot at the end of a host name goes.
//! The query is never reordered or stripped, and an empty one (`/?`) stays: RFC 3986 6.2.3 lets a
//! delimiter be dropped only where the scheme says so, and http does not.

use std::borrow::Cow;
use std::fmt::Write as _;

use url::Position;

use crate::types::CrawlUrl;

/// The version of the form, kept with every shard. Higher when one URL gives another form than
/// before: the URLs of older shards would no longer be recognised.
pub const FORM_VERSION: u16 = 1;

/// The recognised form; borrowed where the URL already has it.
pub fn recognised(url: &CrawlUrl) -> Cow<'_, str> {
    let parsed = url.as_url();
    let authority = &parsed[..Position::AfterHost];
    let host = authority.trim_end_matches('.');
    let dotted = host.len() < authority.len() && !host.ends_with('/');
    let rest = &parsed[Position::AfterHost..];
    match (dotted, unescaped(rest)) {
        (false, Cow::Borrowed(_)) => Cow::Borrowed(url.as_str()),
        (false, Cow::Owned(rest)) => Cow::Owned(format!("{authority}{rest}")),
        (true, rest) => Cow::Owned(format!("{host}{rest}")),
    }
}

/// The hash in a URL's id.
pub fn url_hash(recognised: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(recognised.as_bytes())
}

/// D2: 128 bits that tell a known URL without a read. `secret` is the shard's own, so that nobody
/// outside can look for two URLs that share it.
///
/// With seed 0 the lower half would be [`url_hash`] itself, and two URLs with one hash would agree
/// in half of their fingerprint: so 0 is no seed.
pub fn fingerprint(recognised: &str, secret: u64) -> u128 {
    let seed = if secret == 0 { u64::MAX } else { secret };
    xxhash_rust::xxh3::xxh3_128_with_seed(recognised.as_bytes(), seed)
}

/// Decodes unreserved characters and raises the digits of what stays escaped.
///
/// A digit behind a `%` that escapes nothing stays escaped: decoded, it would make a new escape.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut stray = false;
    let mut since_stray = 0;
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        if !before.is_empty() {
            since_stray += before.len();
            stray &= since_stray < 2 && before.bytes().all(|byte| byte.is_ascii_hexdigit());
        }
        let after = after.get(1..).unwrap_or_default();
        let Some(octet) = octet(after.as_bytes()) else {
            out.push('%');
            (stray, since_stray) = (true, 0);
            rest = after;
            continue;
        };
        let unreserved = octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
        if unreserved && !(stray && octet.is_ascii_hexdigit()) {
            out.push(char::from(octet));
        } else {
            write!(out, "%{octet:02X}").expect("writing to a String cannot fail");
        }
        stray = false;
        rest = after.get(2..).unwrap_or_default();
    }
    out.push_str(rest);
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// The octet that two hexadecimal digits at the front of `digits` stand for.
fn octet(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests;
