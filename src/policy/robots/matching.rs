//! R1: rules to a verdict. The most specific match wins, `Allow` wins a tie (RFC 9309 2.2.2).
//!
//! Time is linear in path and pattern, whatever the pattern: the segments between the `*` are
//! found one after the other, each as early as possible, and nothing is ever tried twice.
//!
//! Path and pattern are compared in one form, always ASCII: unreserved characters decoded, the
//! hexadecimal digits of other escapes in upper case, octets that no URL carries bare escaped.
//! In a path `*` is escaped, so that `%2A` in a pattern means it; `%24` is `$` in both, since the
//! `$` that anchors has been taken off before. Behind a `?` the characters that delimit nothing
//! there (`/`, `:`, `?`, `@`) are the same bare and escaped, as figure 4 of the RFC has it.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::parse::Rules;

/// What the rules say about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It may be requested.
    Allowed {
        /// The line that says so, from 1; `None` when no rule matches, or for `/robots.txt`.
        line: Option<u32>,
        /// That line as written.
        rule: Option<&'a str>,
    },
    /// It may not.
    Disallowed {
        /// The line that says so, from 1.
        line: u32,
        /// That line as written.
        rule: &'a str,
    },
}

impl Verdict<'_> {
    /// Whether the path may be requested.
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::Allowed { .. } => true,
            Self::Disallowed { .. } => false,
        }
    }
}

impl Rules {
    /// Judges `/path?query` as it would be requested.
    pub fn verdict(&self, path_and_query: &str) -> Verdict<'_> {
        let path = canonical(path_and_query.as_bytes(), false);
        let relaxed = relaxed(&path);
        let matched = (path != "/robots.txt")
            .then(|| self.rules().iter().find(|rule| rule.pattern.matches(&path, &relaxed)))
            .flatten();
        match matched {
            None => Verdict::Allowed { line: None, rule: None },
            Some(rule) if rule.allow => {
                Verdict::Allowed { line: Some(rule.line), rule: Some(&rule.text) }
            }
            Some(rule) => Verdict::Disallowed { line: rule.line, rule: &rule.text },
        }
    }
}

/// A path pattern in the compared form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::policy) struct Pattern {
    text: String,
    /// A `$` stood at its end.
    anchored: bool,
    /// It speaks of a query, so it is compared with the relaxed form of the path.
    has_query: bool,
}

impl Pattern {
    /// A pattern from its canonical text, the anchoring `$` taken off.
    pub(super) fn new(text: &str, anchored: bool) -> Self {
        Self { text: relaxed(text).into_owned(), anchored, has_query: text.contains('?') }
    }

    /// A pattern as written.
    pub(in crate::policy) fn read(value: &[u8]) -> Self {
        let (value, anchored) = match value.strip_suffix(b"$") {
            Some(value) => (value, true),
            None => (value, false),
        };
        Self::new(&canonical(value, true), anchored)
    }

    /// How specific it is.
    pub(in crate::policy) fn octets(&self) -> usize {
        self.text.len() + usize::from(self.anchored)
    }

    fn matches(&self, path: &str, relaxed: &str) -> bool {
        let path = if self.has_query { relaxed } else { path };
        Search { rest: path.as_bytes(), looked_at: 0 }.runs(self.text.as_bytes(), self.anchored)
    }
}

/// What is left of a path while a pattern is looked for in it.
struct Search<'a> {
    rest: &'a [u8],
    /// Octets of the path that were compared, however often: the law of linear time, counted.
    looked_at: usize,
}

impl<'a> Search<'a> {
    /// Whether the pattern matches the path.
    fn runs(&mut self, pattern: &[u8], anchored: bool) -> bool {
        let Some(star) = memchr::memchr(b'*', pattern) else {
            return self.starts_with(pattern) && (!anchored || self.rest.is_empty());
        };
        let (first, tail) = (&pattern[..star], &pattern[star + 1..]);
        if !self.starts_with(first) {
            return false;
        }
        let last_star = memchr::memrchr(b'*', tail);
        let segments = tail[..last_star.unwrap_or(0)].split(|byte| *byte == b'*');
        for segment in segments {
            if !self.finds(segment) {
                return false;
            }
        }
        let last = &tail[last_star.map_or(0, |star| star + 1)..];
        if anchored { self.ends_with(last) } else { self.finds(last) }
    }

    fn starts_with(&mut self, text: &[u8]) -> bool {
        self.looked_at += text.len().min(self.rest.len());
        self.rest.strip_prefix(text).map(|rest| self.rest = rest).is_some()
    }

    fn ends_with(&mut self, text: &[u8]) -> bool {
        self.looked_at += text.len().min(self.rest.len());
        self.rest.ends_with(text)
    }

    /// As early as possible; what was passed is never looked at again. `memmem` is linear.
    fn finds(&mut self, text: &[u8]) -> bool {
        let end = memmem::find(self.rest, text).map(|at| at + text.len());
        let (passed, rest): (&'a [u8], &'a [u8]) =
            self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.looked_at += passed.len();
        self.rest = rest;
        end.is_some()
    }
}

/// A path ready to be compared with many patterns.
pub(in crate::policy) struct Path<'p> {
    canonical: Cow<'p, str>,
    relaxed: String,
}

impl<'p> Path<'p> {
    /// `/path?query` as it would be requested.
    pub(in crate::policy) fn new(path_and_query: &'p str) -> Self {
        let canonical = canonical(path_and_query.as_bytes(), false);
        let relaxed = relaxed(&canonical).into_owned();
        Self { canonical, relaxed }
    }

    /// Whether the pattern speaks of it.
    pub(in crate::policy) fn matches(&self, pattern: &Pattern) -> bool {
        pattern.matches(&self.canonical, &self.relaxed)
    }
}

/// The form in which path and pattern are compared; borrowed when `text` already has it.
pub(super) fn canonical(text: &[u8], is_pattern: bool) -> Cow<'_, str> {
    let plain = |byte: &u8| !is_escaped(*byte) && *byte != b'%' && (is_pattern || *byte != b'*');
    if let Some(text) = std::str::from_utf8(text).ok().filter(|_| text.iter().all(plain)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, escape(after)) {
            (b'%', Some(octet)) => {
                rest = &after[2..];
                if is_unreserved(octet) || octet == b'$' {
                    out.push(char::from(octet));
                } else {
                    push_escape(&mut out, octet);
                }
            }
            (b'*', _) if !is_pattern => push_escape(&mut out, byte),
            _ if is_escaped(byte) => push_escape(&mut out, byte),
            _ => out.push(char::from(byte)),
        }
    }
    Cow::Owned(out)
}

/// A canonical form with what delimits nothing in a query decoded there.
fn relaxed(canonical: &str) -> Cow<'_, str> {
    let Some((path, query)) = canonical.split_once('?').filter(|(_, query)| query.contains('%'))
    else {
        return Cow::Borrowed(canonical);
    };
    let mut out = format!("{path}?");
    let mut pieces = query.split('%');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let bare = [("2F", '/'), ("3A", ':'), ("3F", '?'), ("40", '@')]
            .into_iter()
            .find_map(|(digits, bare)| Some((bare, piece.strip_prefix(digits)?)));
        match bare {
            Some((bare, rest)) => {
                out.push(bare);
                out.push_str(rest);
            }
            None => {
                out.push('%');
                out.push_str(piece);
            }
        }
    }
    Cow::Owned(out)
}

/// The octet that two hexadecimal digits at the front of `digits` stand for.
fn escape(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn push_escape(out: &mut String, octet: u8) {
    write!(out, "%{octet:02X}").expect("writing to a String cannot fail");
}

/// RFC 3986 2.3.
fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// Octets that RFC 3986 lets no URL carry bare.
fn is_escaped(octet: u8) -> bool {
    !octet.is_ascii_graphic()
        || matches!(octet, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

#[cfg(test)]
mod tests;
