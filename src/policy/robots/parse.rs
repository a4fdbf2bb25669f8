//! R1: the text of robots.txt to the rules for one product token.
//!
//! `robotstxt` reads the lines, behind a filter that hands it only what it reads well: one line per
//! line of the file, without byte order mark, cut to a bound, the key exact, the value encoded.
//! (Left alone it loses the first group behind a byte order mark, takes `Allowlist` for `Allow`,
//! drops characters after a stray `%` and panics on a long line of multi-byte text.)
//!
//! A pattern that is too long to keep errs towards refusing: a `Disallow` is cut, which makes it
//! refuse more; an `Allow` is dropped. What lies beyond the number or the size of the rules that
//! are kept is not read, and both bounds hold more than the 500 KiB that RFC 9309 asks for. All of
//! it is counted in [`Skipped`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use robotstxt::RobotsParseHandler;
use serde::{Deserialize, Serialize};

use super::agents::{names, names_everyone};
use super::matching::{Pattern, canonical};
use crate::policy::asked::wait;

/// Bytes of a line that are read.
const LINE_BYTES_MAX: usize = 32 * 1024;
/// Octets of an encoded pattern that are kept.
const PATTERN_BYTES_MAX: usize = 32 * 1024;
/// Rules kept: more than the 500 KiB that RFC 9309 asks for can hold.
const RULES_MAX: usize = 65_536;
/// Bytes of the patterns and texts of all rules that are kept, whatever `robots.max_size` allows.
/// An octet of the file becomes at most three of a pattern and three of a text.
const RULES_BYTES_MAX: usize = 4 << 20;
/// Lines that are read: twice as many as 500 KiB can hold.
const LINES_MAX: usize = 1 << 20;
/// Sitemap lines kept, and the bytes of each: no URL that is asked for is longer.
const SITEMAPS_MAX: usize = 1_000;
const SITEMAP_BYTES_MAX: usize = 8 * 1024;
/// Characters of a rule's line kept for people.
const TEXT_CHARS_MAX: usize = 500;

/// The rules of one robots.txt for one product token. A clone shares them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules(Arc<Inner>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Inner {
    text: Bytes,
    group: Group,
    /// The most specific first, `Allow` before `Disallow`: the first match is the verdict.
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
    skipped: Skipped,
}

/// Which groups of the file speak to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Group {
    /// Those that name the product token.
    Named,
    /// Nobody names it, so those for `*`.
    Everyone,
    /// No group applies: everything is allowed.
    None,
}

/// What the bounds left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Lines that were cut.
    pub lines_cut: u32,
    /// Patterns that were cut (`Disallow`) or dropped (`Allow`) for their length.
    pub long_patterns: u32,
    /// Rules beyond the number, or the bytes of all rules, that are kept.
    pub rules: u32,
    /// Sitemap lines beyond the number or the length that is kept.
    pub sitemaps: u32,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) allow: bool,
    /// From 1.
    pub(super) line: u32,
    pub(super) pattern: Pattern,
    /// The line as written, without comment.
    pub(super) text: String,
}

impl Rules {
    /// Reads the text of a robots.txt for the product token `product` (any case).
    pub fn parse(text: &Bytes, product: &str) -> Self {
        let mut skipped = Skipped::default();
        let utf8 = utf8(text);
        let lines: Vec<Line<'_>> = lines(&utf8)
            .take(LINES_MAX)
            .map(|line| Line::read(line, &mut skipped.lines_cut))
            .collect();
        let mut collector = Collector::new(product, &lines, skipped);
        robotstxt::parse_robotstxt(&cleaned(&lines), &mut collector);
        let (group, draft) = match (collector.named, collector.everyone) {
            (Some(named), _) => (Group::Named, named),
            (None, Some(everyone)) => (Group::Everyone, everyone),
            (None, None) => (Group::None, Draft::default()),
        };
        let mut rules = draft.rules;
        rules.sort_by_key(|rule| (std::cmp::Reverse(rule.pattern.octets()), !rule.allow));
        Self(Arc::new(Inner {
            text: text.clone(),
            group,
            rules,
            crawl_delay: draft.crawl_delay,
            sitemaps: collector.sitemaps,
            skipped: collector.skipped,
        }))
    }

    /// The text the rules were read from.
    pub fn text(&self) -> &Bytes {
        &self.0.text
    }

    /// Which groups apply.
    pub fn group(&self) -> Group {
        self.0.group
    }

    /// Number of `Allow` and `Disallow` rules that apply.
    pub fn len(&self) -> usize {
        self.0.rules.len()
    }

    /// Whether no rule applies, so that everything is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.rules.is_empty()
    }

    /// R3: the Crawl-delay of the groups that apply, the longest where they have several.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.0.crawl_delay
    }

    /// R3: the Sitemap lines of the whole file as written (a few are relative), each once.
    pub fn sitemaps(&self) -> &[String] {
        &self.0.sitemaps
    }

    /// What the bounds left out.
    pub fn skipped(&self) -> Skipped {
        self.0.skipped
    }

    pub(super) fn rules(&self) -> &[Rule] {
        &self.0.rules
    }
}

/// The keys that are read; a key spelled otherwise is an extension, which has no say in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
    /// What it says is read by [`crate::policy::wishes`].
    ContentUsage,
}

impl Key {
    fn parse(text: &[u8]) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_slice() {
            b"user-agent" | b"useragent" | b"user agent" => Self::UserAgent,
            b"allow" => Self::Allow,
            b"disallow" | b"dissallow" | b"dissalow" | b"disalow" | b"diasllow" | b"disallaw" => {
                Self::Disallow
            }
            b"crawl-delay" | b"crawldelay" | b"crawl delay" | b"crawl_delay" => Self::CrawlDelay,
            b"sitemap" | b"site-map" => Self::Sitemap,
            b"content-usage" => Self::ContentUsage,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::UserAgent => "user-agent",
            Self::Allow => "allow",
            Self::Disallow => "disallow",
            Self::CrawlDelay => "crawl-delay",
            Self::Sitemap => "sitemap",
            Self::ContentUsage => "content-usage",
        }
    }
}

/// One line of the file, cut and taken apart; `key` is absent where nothing is to be read.
pub(in crate::policy) struct Line<'a> {
    text: &'a [u8],
    key: Option<Key>,
    value: &'a [u8],
    /// The line was longer than is read.
    cut: bool,
}

impl<'a> Line<'a> {
    pub(in crate::policy) fn read(line: &'a [u8], lines_cut: &mut u32) -> Self {
        let whole = line.len();
        let line = &line[..whole.min(LINE_BYTES_MAX)];
        let comment = memchr::memchr(b'#', line);
        let text = without_break(line[..comment.unwrap_or(line.len())].trim_ascii());
        let cut = whole > LINE_BYTES_MAX && comment.is_none();
        *lines_cut += u32::from(cut);
        let (key, value) = match memchr::memchr(b':', text) {
            Some(colon) => (&text[..colon], &text[colon + 1..]),
            None => without_colon(text),
        };
        Self { text, key: Key::parse(key.trim_ascii()), value: value.trim_ascii(), cut }
    }

    /// The key, where it is one that is read.
    pub(in crate::policy) fn key(&self) -> Option<Key> {
        self.key
    }

    /// What stands behind the key.
    pub(in crate::policy) fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The line as written, without comment.
    pub(in crate::policy) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// As much of the text as is kept for people.
    pub(in crate::policy) fn shown(&self) -> String {
        String::from_utf8_lossy(self.text).chars().take(TEXT_CHARS_MAX).collect()
    }
}

/// Some files are served as a web page, with `<br>` behind every line.
fn without_break(text: &[u8]) -> &[u8] {
    let tag = memchr::memrchr(b'<', text).and_then(|at| text.split_at_checked(at));
    match tag {
        Some((before, tag)) if tag.to_ascii_lowercase().starts_with(b"<br") => before.trim_ascii(),
        _ => text,
    }
}

/// A forgotten colon is forgiven where exactly two words stand on the line, as Google does.
fn without_colon(text: &[u8]) -> (&[u8], &[u8]) {
    let space = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (key, value) = text.split_at(space);
    let value = value.trim_ascii();
    if value.iter().any(u8::is_ascii_whitespace) { (b"", b"") } else { (key, value) }
}

/// The text as UTF-8, which RFC 9309 wants. UTF-16 with its mark, as some editors save it, is read
/// too: its rules are plain, and whoever wrote them means them. A mark alone is not believed: the
/// first character has to be one of ASCII, as a robots.txt begins.
pub(in crate::policy) fn utf8(text: &[u8]) -> Cow<'_, [u8]> {
    let unit: fn([u8; 2]) -> u16 = match text {
        [0xFF, 0xFE, _, 0, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, 0, ..] => u16::from_be_bytes,
        _ => return Cow::Borrowed(text),
    };
    let (pairs, _) = text.as_chunks();
    let units = pairs.iter().skip(1).map(|pair| unit(*pair));
    let decoded: String =
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Cow::Owned(decoded.into_bytes())
}

/// Lines end with LF, CR or CRLF; a byte order mark in front is no part of the first.
pub(in crate::policy) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text));
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr::memchr2(b'\n', b'\r', text) else {
            rest = None;
            return Some(text);
        };
        let after = &text[end + 1..];
        let crlf = text[end] == b'\r' && after.first() == Some(&b'\n');
        rest = Some(if crlf { &after[1..] } else { after });
        Some(&text[..end])
    })
}

/// The text `robotstxt` gets to see: line for line, so that its numbers are those of the file.
fn cleaned(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for line in lines {
        if let Some(key) = line.key {
            text.push_str(key.name());
            text.push(':');
            match key {
                // The handler takes the pattern from the line; the crate needs a value only.
                Key::Allow | Key::Disallow | Key::ContentUsage => {}
                Key::UserAgent | Key::CrawlDelay | Key::Sitemap => {
                    text.push_str(&String::from_utf8_lossy(line.value).replace('\u{FEFF}', ""));
                }
            }
        }
        text.push('\n');
    }
    text
}

/// What the groups of one selection have said so far.
#[derive(Default)]
struct Draft {
    rules: Vec<Rule>,
    /// Of their patterns and texts.
    bytes: usize,
    crawl_delay: Option<Duration>,
}

/// The user-agent lines that the next directive belongs to.
#[derive(Clone, Copy, Default)]
struct Run {
    named: bool,
    everyone: bool,
    /// A directive has followed, so the next user-agent line begins a new run.
    closed: bool,
}

impl Run {
    fn join(&mut self, named: bool, everyone: bool) {
        if self.closed {
            *self = Self::default();
        }
        self.named |= named;
        self.everyone |= everyone;
    }
}

struct Collector<'a> {
    product: &'a str,
    lines: &'a [Line<'a>],
    /// `None` until a group names us; an empty group that does still counts.
    named: Option<Draft>,
    everyone: Option<Draft>,
    /// `Allow` and `Disallow` end a run of user-agent lines. RFC 9309 gives no other line a say;
    /// draft-ietf-aipref-attach makes one more line a rule: Content-Usage.
    rule_run: Run,
    /// A Crawl-delay ends it too: sites write a list of `User-agent`, `Crawl-delay` pairs, and
    /// mean each delay for its own agent.
    delay_run: Run,
    sitemaps: Vec<String>,
    skipped: Skipped,
}

impl<'a> Collector<'a> {
    fn new(product: &'a str, lines: &'a [Line<'a>], skipped: Skipped) -> Self {
        Self {
            product,
            lines,
            named: None,
            everyone: None,
            rule_run: Run::default(),
            delay_run: Run::default(),
            sitemaps: Vec::new(),
            skipped,
        }
    }

    fn drafts(&mut self, run: Run) -> impl Iterator<Item = &mut Draft> {
        let named = self.named.as_mut().filter(|_| run.named);
        named.into_iter().chain(self.everyone.as_mut().filter(|_| run.everyone))
    }

    fn rule(&mut self, number: u32, allow: bool) {
        let run = self.rule_run;
        if !(run.named || run.everyone) {
            return;
        }
        self.rule_run.closed = true;
        self.delay_run.closed = true;
        let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(line) = self.lines.get(index).filter(|line| !line.value.is_empty()) else {
            return;
        };
        let (pattern, cut) = pattern_of(line);
        self.skipped.long_patterns += u32::from(cut);
        if cut && allow {
            return;
        }
        let text = line.shown();
        let bytes = pattern.octets() + text.len();
        let mut beyond = 0;
        for draft in self.drafts(run) {
            if draft.rules.len() < RULES_MAX && draft.bytes + bytes <= RULES_BYTES_MAX {
                draft.bytes += bytes;
                let (pattern, text) = (pattern.clone(), String::clone(&text));
                draft.rules.push(Rule { allow, line: number, pattern, text });
            } else {
                beyond = 1;
            }
        }
        self.skipped.rules += beyond;
    }
}

/// The encoded pattern of a rule's line, and whether it had to be cut.
pub(in crate::policy) fn pattern_of(line: &Line<'_>) -> (Pattern, bool) {
    let (value, anchored) = match line.value.strip_suffix(b"$") {
        Some(value) if !line.cut => (value, true),
        _ => (line.value, false),
    };
    let mut text = canonical(value, true).into_owned();
    let long = text.len() > PATTERN_BYTES_MAX;
    if long {
        let escape = text.as_bytes()[PATTERN_BYTES_MAX - 2..PATTERN_BYTES_MAX].iter();
        let inside = escape.rev().position(|byte| *byte == b'%').map_or(0, |back| back + 1);
        text.truncate(PATTERN_BYTES_MAX - inside);
    }
    (Pattern::new(&text, anchored && !long), long || line.cut)
}

impl RobotsParseHandler for Collector<'_> {
    fn handle_robots_start(&mut self) {}

    fn handle_robots_end(&mut self) {}

    fn handle_user_agent(&mut self, _line: u32, value: &str) {
        let everyone = names_everyone(value);
        let named = names(value, self.product);
        self.rule_run.join(named, everyone);
        self.delay_run.join(named, everyone);
        if named {
            self.named.get_or_insert_default();
        }
        if everyone {
            self.everyone.get_or_insert_default();
        }
    }

    fn handle_allow(&mut self, line: u32, _value: &str) {
        self.rule(line, true);
    }

    fn handle_disallow(&mut self, line: u32, _value: &str) {
        self.rule(line, false);
    }

    fn handle_sitemap(&mut self, _line: u32, value: &str) {
        if value.is_empty() || self.sitemaps.iter().any(|known| known == value) {
            return;
        }
        if self.sitemaps.len() < SITEMAPS_MAX && value.len() <= SITEMAP_BYTES_MAX {
            self.sitemaps.push(value.to_owned());
        } else {
            self.skipped.sitemaps += 1;
        }
    }

    fn handle_unknown_action(&mut self, _line: u32, action: &str, value: &str) {
        if action == Key::ContentUsage.name() {
            self.rule_run.closed = true;
            self.delay_run.closed = true;
            return;
        }
        let Some(delay) = (action == Key::CrawlDelay.name()).then(|| wait(value)).flatten() else {
            return;
        };
        self.delay_run.closed = true;
        for draft in self.drafts(self.delay_run) {
            draft.crawl_delay = draft.crawl_delay.max(Some(delay));
        }
    }
}

#[cfg(test)]
mod tests;
