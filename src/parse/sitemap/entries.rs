//! What a sitemap or a feed names, each URL once.

use super::bare;
use crate::parse::date;
use crate::parse::handler::{Input, Parsed};
use crate::parse::links::{Base, LinkRef, Links, URL_BYTES_MAX};
use crate::parse::memory::Memory;
use crate::parse::seen::Seen;
use crate::types::{CrawlUrl, LinkKind, Reason};

/// URLs of one file, as sitemaps.org bounds it.
const ENTRIES_MAX: usize = 50_000;
/// What they may take together, and not more than their share of the document's memory: a file must
/// not multiply a long URL of its own by its entries (P2).
const ENTRIES_BYTES_MAX: usize = 50 << 20;

/// A longer value is no URL, no date and no title.
pub(super) const VALUE_BYTES_MAX: usize = 16 << 10;

/// What a file turned out to be.
#[derive(Debug)]
pub(super) enum Found {
    /// A sitemap or a feed, with its title, and why it was not read to its end.
    Entries { title: Option<String>, cut: Option<Reason> },
    /// Neither.
    SomethingElse,
}

/// The URLs found so far.
#[derive(Debug)]
pub(super) struct Entries {
    base: Base,
    scheme: &'static str,
    host: String,
    links: Links,
    seen: Seen<usize>,
    bytes_max: usize,
    entry_bytes_max: usize,
    is_cut: bool,
    left_out: LeftOut,
}

/// How many were left out, and why.
#[derive(Debug, Default)]
struct LeftOut {
    /// No URL, or none of http or https.
    no_http: u64,
    /// URLs longer than [`URL_BYTES_MAX`].
    long_urls: u64,
    /// Titles, dates and URLs longer than [`VALUE_BYTES_MAX`].
    long_values: u64,
    /// Parts of entries that hold more than an entry may.
    long_entries: u64,
}

impl LeftOut {
    fn reasons(&self, entry_bytes_max: usize) -> impl Iterator<Item = Reason> {
        [
            (self.no_http, "no http or https URL".to_owned()),
            (self.long_urls, format!("a URL longer than {URL_BYTES_MAX} bytes")),
            (self.long_values, format!("a title, date or URL of over {VALUE_BYTES_MAX} bytes")),
            (self.long_entries, format!("a URL beyond {entry_bytes_max} bytes of one entry")),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| Reason::LeftOut { count, what })
    }
}

impl Entries {
    /// Relative references and missing schemes are taken from the file's own URL.
    pub(super) fn new(file: &CrawlUrl, memory: Memory) -> Self {
        let own = file.as_url();
        Self {
            base: Base::new(own, None, encoding_rs::UTF_8),
            scheme: if own.scheme() == "http" { "http" } else { "https" },
            host: own.host_str().unwrap_or_default().to_owned(),
            links: Links::default(),
            seen: Seen::with_capacity(0),
            bytes_max: memory.entries().min(ENTRIES_BYTES_MAX),
            entry_bytes_max: memory.entry(),
            is_cut: false,
            left_out: LeftOut::default(),
        }
    }

    /// There was more than there is room for.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What one entry may hold while it is read, in bytes.
    pub(super) fn entry_bytes_max(&self) -> usize {
        self.entry_bytes_max
    }

    /// Nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Adds a URL as written; what is none, or no http(s) one, is passed over.
    pub(super) fn add(&mut self, kind: LinkKind, entry: &Entry<'_>) {
        let written = entry.url.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if written.is_empty() {
            return;
        }
        let with_scheme =
            self.lacks_scheme(written).then(|| format!("{}://{written}", self.scheme));
        let written = with_scheme.as_deref().unwrap_or(written);
        let is_http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        let Some(url) = self.base.resolve(written).filter(is_http) else {
            self.left_out.no_http += 1;
            return;
        };
        if url.len() > URL_BYTES_MAX {
            self.left_out.long_urls += 1;
            return;
        }
        let room = self.bytes_max.saturating_sub(self.links.bytes());
        if self.links.len() >= ENTRIES_MAX || room < url.len() + entry.title.len() {
            self.is_cut = true;
            return;
        }
        let lastmod = entry.lastmod.and_then(date::changed_at);
        let link =
            LinkRef { url: &url, text: entry.title, rel: "", kind, nofollow: false, lastmod };
        self.links.push_new(link, &mut self.seen, self.bytes_max);
    }

    /// A field was longer than [`VALUE_BYTES_MAX`].
    pub(super) fn value_too_long(&mut self) {
        self.left_out.long_values += 1;
    }

    /// An entry named more than [`Self::entry_bytes_max`] holds: so many parts were left out.
    pub(super) fn entry_too_long(&mut self, parts: u64) {
        self.left_out.long_entries += parts;
    }

    /// `www.example.com/page` in a file of `www.example.com`.
    pub(super) fn lacks_scheme(&self, written: &str) -> bool {
        let host = written.split(['/', '?', ':']).next().unwrap_or_default();
        !self.host.is_empty() && host.eq_ignore_ascii_case(&self.host)
    }

    /// As a document without text.
    pub(super) fn into_parsed(self, input: &Input<'_>) -> Parsed {
        let limit = format!("{ENTRIES_MAX} entries or {} bytes of a sitemap", self.bytes_max);
        let cut = self.is_cut.then_some(Reason::ParseLimit { limit });
        let reasons = cut.into_iter().chain(self.left_out.reasons(self.entry_bytes_max)).collect();
        Parsed { links: self.links, reasons, ..bare(input) }
    }
}

/// One entry as written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry<'e> {
    /// Its URL.
    pub(super) url: &'e str,
    /// Its title, where feeds give one.
    pub(super) title: &'e str,
    /// When it changed.
    pub(super) lastmod: Option<&'e str>,
}
