//! The links of a page, absolute: one arena of text, spans into it, never a `String` each.
//!
//! References are made absolute against the document's base as browsers do. Plain paths take a
//! short way that gives the same as the `url` crate, everything else goes through it.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding};
use url::Url;

use super::html::RawLink;
use super::memory::{Memory, bound_growth};
use super::seen::Seen;
use crate::types::{CrawlUrl, Link, LinkKind, Reason, Timestamp};

/// A longer absolute URL is left out: its page must not multiply a long base by its links (P2).
pub const URL_BYTES_MAX: usize = 8192;
/// A longer reference is left out before it is made absolute, which may make it longer.
const REFERENCE_BYTES_MAX: usize = 2 * URL_BYTES_MAX;
/// Of an anchor's text or an alternative.
const TEXT_BYTES_MAX: usize = 1024;
/// How often the time limit is asked about, in links.
const LINKS_PER_CHECK: usize = 256;

/// A piece of the arena, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    url: Span,
    text: Span,
    rel: Span,
    kind: LinkKind,
    nofollow: bool,
    lastmod: Option<Timestamp>,
}

/// One link, borrowed from the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRef<'l> {
    /// The target, absolute, without fragment.
    pub url: &'l str,
    /// Anchor text, or the image's alternative.
    pub text: &'l str,
    /// `rel` as written.
    pub rel: &'l str,
    /// What carries it.
    pub kind: LinkKind,
    /// Its `rel` asks not to follow it (R4).
    pub nofollow: bool,
    /// When the target changed, as a sitemap or a feed has it.
    pub lastmod: Option<Timestamp>,
}

/// The links of a page, each target once per kind, in the order found.
#[derive(Clone, Debug, Default)]
pub struct Links {
    arena: String,
    items: Vec<Item>,
}

impl Links {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The links in the order found.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = LinkRef<'_>> {
        self.items.iter().map(|item| LinkRef {
            url: self.piece(item.url),
            text: self.piece(item.text),
            rel: self.piece(item.rel),
            kind: item.kind,
            nofollow: item.nofollow,
            lastmod: item.lastmod,
        })
    }

    /// As the page record has them.
    pub fn to_record(&self) -> Vec<Link> {
        self.iter()
            .map(|link| Link {
                url: link.url.to_owned(),
                text: link.text.to_owned(),
                rel: link.rel.to_owned(),
                kind: link.kind,
                lastmod: link.lastmod,
            })
            .collect()
    }

    /// Adds a link whose URL is absolute already.
    pub fn push(&mut self, link: LinkRef<'_>) {
        let item = Item {
            url: self.keep(link.url),
            text: self.keep(link.text),
            rel: self.keep(link.rel),
            kind: link.kind,
            nofollow: link.nofollow,
            lastmod: link.lastmod,
        };
        self.items.push(item);
    }

    /// Adds a link whose URL is absolute already, unless it is there.
    pub(super) fn push_new(&mut self, link: LinkRef<'_>, seen: &mut Seen<usize>, bytes_max: usize) {
        bound_growth(&mut self.arena, bytes_max);
        let hash = seen.hash(link.kind, link.url);
        if !seen.get(hash).is_some_and(|at| self.is_at(at, link.kind, link.url)) {
            seen.insert(hash, self.items.len());
            self.push(link);
        }
    }

    /// Bytes of all URLs and texts.
    pub(super) fn bytes(&self) -> usize {
        self.arena.len()
    }

    fn is_at(&self, at: usize, kind: LinkKind, url: &str) -> bool {
        self.items.get(at).is_some_and(|item| item.kind == kind && self.piece(item.url) == url)
    }

    fn keep(&mut self, piece: &str) -> Span {
        let start = self.arena.len();
        self.arena.push_str(piece);
        Span { start, end: self.arena.len() }
    }

    fn piece(&self, span: Span) -> &str {
        self.arena.get(span.start..span.end).unwrap_or_default()
    }
}

/// What references are resolved against.
#[derive(Clone, Debug)]
pub struct Base {
    url: Url,
    /// `https://host:port`, for paths from the root.
    origin: String,
    /// The URL up to the last `/` of its path, for plain relative paths.
    directory: String,
    /// The encoding of the page: queries are written in it, as the URL standard says.
    encoding: &'static Encoding,
}

impl Base {
    /// The base of a document: its first `<base href>` where that is a usable URL, else its own.
    pub fn new(document: &Url, href: Option<&str>, encoding: &'static Encoding) -> Self {
        let url = href
            .filter(|href| href.len() <= URL_BYTES_MAX)
            .and_then(|href| resolve(document, href, encoding).ok())
            .filter(|url| !matches!(url.scheme(), "data" | "javascript"))
            .unwrap_or_else(|| document.clone());
        let origin = match url.scheme() {
            "http" | "https" => url[..url::Position::BeforePath].to_owned(),
            _ => String::new(),
        };
        let path = url[..url::Position::AfterPath].rsplit_once('/');
        let directory = match path {
            Some((directory, _)) if !origin.is_empty() => format!("{directory}/"),
            Some(_) | None => String::new(),
        };
        Self { url, origin, directory, encoding: encoding.output_encoding() }
    }

    /// The base itself.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// Makes a reference absolute, without its fragment; `None` where it is no URL, or longer than
    /// twice [`URL_BYTES_MAX`].
    pub fn resolve(&self, reference: &str) -> Option<String> {
        let mut url = String::new();
        self.resolve_into(reference, &mut url).ok()?;
        Some(url)
    }

    /// Appends the absolute form of a reference; else nothing.
    fn resolve_into(&self, reference: &str, out: &mut String) -> Result<(), Taken> {
        let plain = reference.split_once('#').map_or(reference, |(before, _)| before);
        if plain.len() > REFERENCE_BYTES_MAX {
            return Err(Taken::TooLong);
        }
        let before = match shape(plain) {
            Shape::Absolute => Some(""),
            Shape::FromRoot => Some(self.origin.as_str()).filter(|origin| !origin.is_empty()),
            Shape::FromDirectory => {
                Some(self.directory.as_str()).filter(|directory| !directory.is_empty())
            }
            Shape::Other => None,
        };
        if let Some(before) = before {
            out.push_str(before);
            out.push_str(plain);
            return Ok(());
        }
        // With its `#`, which keeps a space before it, and without what follows.
        let reference = reference.get(..plain.len() + 1).unwrap_or(reference);
        let url = resolve(&self.url, reference, self.encoding);
        let mut url = url.map_err(|_| Taken::Dropped)?;
        url.set_fragment(None);
        out.push_str(url.as_str());
        Ok(())
    }
}

fn resolve(base: &Url, href: &str, encoding: &'static Encoding) -> Result<Url, url::ParseError> {
    if encoding == encoding_rs::UTF_8 {
        return base.join(href);
    }
    let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| Cow::Owned(encoded(query, encoding));
    Url::options().base_url(Some(base)).encoding_override(Some(encode)).parse(href)
}

/// D1: a query in the charset of its page, as the URL standard has it. A character that the charset
/// lacks becomes `&#8224;`, escaped: bare, its `&` would end the parameter.
fn encoded(query: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut out = Vec::with_capacity(query.len() + 16);
    let mut rest = query;
    loop {
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => out.reserve(rest.len() + 16),
            EncoderResult::Unmappable(lacking) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(lacking)).as_bytes());
            }
        }
    }
}

/// The forms whose absolute URL is known without parsing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `https://host/path`, in the form the parser would give it.
    Absolute,
    /// `/path`.
    FromRoot,
    /// `path`.
    FromDirectory,
    Other,
}

fn shape(reference: &str) -> Shape {
    let bytes = reference.as_bytes();
    let path = match bytes {
        [b'/', rest @ ..] => return of_path(rest, b'/', Shape::FromRoot),
        [first, ..] if first.is_ascii_alphanumeric() || matches!(first, b'_' | b'~') => {
            let rest = [b"https://".as_slice(), b"http://"]
                .into_iter()
                .find_map(|scheme| bytes.strip_prefix(scheme));
            match rest {
                Some(rest) => rest,
                None if bytes.contains(&b':') => return Shape::Other,
                None => return of_path(bytes, b'/', Shape::FromDirectory),
            }
        }
        _ => return Shape::Other,
    };
    let host = memchr::memchr(b'/', path).and_then(|at| path.split_at_checked(at));
    match host {
        Some((host, [_, rest @ ..])) if is_plain_host(host) => of_path(rest, b'/', Shape::Absolute),
        _ => Shape::Other,
    }
}

/// Bytes that stand for themselves wherever they are in a path or a query.
static PLAIN: [bool; 256] = {
    let marks = b"-_~=&+,;@!$*():";
    let mut set = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        set[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        set[marks[at] as usize] = true;
        at += 1;
    }
    set
};

/// `plain` if nothing in the path would be rewritten: no dot segment, nothing to encode.
fn of_path(path: &[u8], before: u8, plain: Shape) -> Shape {
    let mut previous = before;
    let mut in_query = false;
    for (at, byte) in path.iter().enumerate() {
        let fits = match byte {
            _ if PLAIN[usize::from(*byte)] => true,
            // A segment that begins with a dot, encoded or not, may be a dot segment.
            b'.' | b'%' => in_query || previous != b'/',
            // `//` at the start is a host.
            b'/' => at > 0 || plain == Shape::Absolute,
            b'?' => {
                in_query = true;
                true
            }
            _ => false,
        };
        if !fits {
            return Shape::Other;
        }
        previous = *byte;
    }
    plain
}

/// A lower-case name the parser leaves as it is: no port, no user, no number, no Punycode.
fn is_plain_host(host: &[u8]) -> bool {
    let fits = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    let mut labels = host.split(|b| *b == b'.');
    host.iter().all(fits)
        && labels.all(|label| !label.is_empty() && !label.starts_with(b"xn--"))
        && host
            .rsplit(|b| *b == b'.')
            .next()
            .is_some_and(|last| last.first().is_some_and(u8::is_ascii_lowercase))
}

/// P1: the links of a page, absolute and unique, and why any are missing.
///
/// `text` is the page's text that the raw links point into, `bytes_max` what URLs and texts may
/// take together; `out_of_time` is asked at coarse intervals.
pub fn resolve_links(
    raw: &[RawLink<'_>],
    text: &str,
    base: &Base,
    bytes_max: usize,
    out_of_time: &dyn Fn() -> bool,
) -> (Links, Vec<Reason>) {
    let mut links = Links { items: Vec::with_capacity(raw.len()), ..Links::default() };
    let mut reasons = Vec::new();
    let mut seen = Seen::with_capacity(raw.len());
    for (at, link) in raw.iter().enumerate() {
        if (at + 1) % LINKS_PER_CHECK == 0 && out_of_time() {
            reasons.push(Reason::ParseLimit { limit: "parse.max_time".to_owned() });
            break;
        }
        let start = links.arena.len();
        let shown = text.get(link.text.0..link.text.1).unwrap_or_default();
        let shown = shown.get(..shown.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default();
        // What is escaped becomes three times as long.
        let url_most = base.url.as_str().len() + 3 * link.url.len().min(REFERENCE_BYTES_MAX);
        if start + url_most + shown.len() + link.rel.len() > bytes_max {
            reasons.push(Memory::reason(bytes_max, "links"));
            break;
        }
        bound_growth(&mut links.arena, bytes_max);
        let taken = match base.resolve_into(&link.url, &mut links.arena) {
            Ok(()) => links.take(start, link, shown, &mut seen),
            Err(dropped) => dropped,
        };
        match taken {
            Taken::Kept | Taken::Dropped => {}
            Taken::TooLong => note(&mut reasons, &format!("{URL_BYTES_MAX} bytes of a link")),
        }
    }
    (links, reasons)
}

/// What became of a link.
#[derive(Debug)]
enum Taken {
    /// It is among the links.
    Kept,
    /// It is there already, or leads nowhere.
    Dropped,
    /// It is longer than [`URL_BYTES_MAX`], or its reference than twice that.
    TooLong,
}

impl Links {
    /// Makes a link of the URL that stands at the end of the arena, or takes it away again.
    fn take(
        &mut self,
        start: usize,
        raw: &RawLink<'_>,
        shown: &str,
        seen: &mut Seen<usize>,
    ) -> Taken {
        let span = Span { start, end: self.arena.len() };
        let url = self.piece(span);
        let hash = seen.hash(raw.kind, url);
        let known = seen.get(hash).filter(|at| self.is_at(*at, raw.kind, url));
        let dropped = if !leads_somewhere(url) {
            Taken::Dropped
        } else if url.len() > URL_BYTES_MAX {
            Taken::TooLong
        } else if known.is_some() {
            Taken::Dropped
        } else {
            seen.insert(hash, self.items.len());
            let (text, rel) = (self.keep(shown), self.keep(&raw.rel));
            let (kind, nofollow) = (raw.kind, raw.nofollow);
            self.items.push(Item { url: span, text, rel, kind, nofollow, lastmod: None });
            return Taken::Kept;
        };
        self.arena.truncate(start);
        if let Some(first) = known {
            self.merge(first, raw.nofollow, shown);
        }
        dropped
    }

    fn merge(&mut self, at: usize, nofollow: bool, text: &str) {
        let span = self.items.get(at).map(|item| item.text);
        let wanted = span.is_some_and(|span| self.piece(span).is_empty()) && !text.is_empty();
        let text = wanted.then(|| self.keep(text));
        if let Some(item) = self.items.get_mut(at) {
            item.nofollow &= nofollow;
            item.text = text.unwrap_or(item.text);
        }
    }
}

fn note(reasons: &mut Vec<Reason>, limit: &str) {
    let reason = Reason::ParseLimit { limit: limit.to_owned() };
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}

/// Scripts and embedded data name no place to go to.
fn leads_somewhere(url: &str) -> bool {
    url.starts_with("http")
        || !["javascript:", "data:", "about:", "blob:"].iter().any(|scheme| url.starts_with(scheme))
}

/// H2: the target of a redirect, as browsers read Location: relative, with spaces, in UTF-8; bytes
/// that are no UTF-8 are percent-encoded as they came, so the server sees its own bytes again.
///
/// # Errors
/// [`Reason::NoLocation`] where it is empty, else why the target cannot be crawled.
pub fn redirect_link(base: &CrawlUrl, location: &[u8]) -> Result<CrawlUrl, Reason> {
    let text = match std::str::from_utf8(location) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => percent_encoding::percent_encode(location, percent_encoding::CONTROLS).into(),
    };
    let text = text.trim_matches(|c: char| c <= ' ');
    if text.is_empty() {
        return Err(Reason::NoLocation);
    }
    base.join(text)
}

#[cfg(test)]
mod tests;
