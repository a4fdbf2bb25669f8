//! A content type is one handler (P3); a response is decoded, sniffed where its type says nothing,
//! and given to the handler of its type.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::charset::to_text;
use super::decode::{DecodeLimits, decode};
use super::html::fold;
use super::links::Links;
use super::memory::Memory;
use super::mime::{Mime, Sniffed, sniff};
use super::page::HtmlHandler;
use super::robots_meta::{PageWishes, page_wishes};
use super::select::Extractor;
use super::simhash::fingerprints;
use super::sitemap::{
    GzipHandler, JsonFeedHandler, XmlHandler, is_list_of_urls, is_named_sitemap,
    is_sitemap_or_feed, looks_like_list, text_sitemap,
};
use crate::types::{CrawlUrl, Headers, Reason};

/// The version of the parser: higher when the same bytes give other links, text or fingerprints.
pub const PARSER_VERSION: u32 = 4;

/// What one document may cost (P2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `parse.max_memory`: what one document may hold at once, all its parts together.
    pub memory: Memory,
    /// Of the decoded body.
    pub decode: DecodeLimits,
    /// `parse.max_links`: distinct links kept.
    pub links_max: usize,
    /// Bytes of text kept.
    pub text_bytes_max: usize,
}

impl Default for Limits {
    /// The defaults: 256 MiB of memory, 20 MiB decoded, ratio 200, 10,000 links; and 4 MiB of text.
    fn default() -> Self {
        Self {
            memory: Memory::new(256 << 20),
            decode: DecodeLimits { decoded_bytes_max: 20 << 20, ratio_max: 200 },
            links_max: 10_000,
            text_bytes_max: 4 << 20,
        }
    }
}

/// A response to be parsed.
#[derive(Clone, Copy)]
pub struct Input<'i> {
    /// What was requested.
    pub url: &'i CrawlUrl,
    /// The response's headers.
    pub headers: &'i Headers,
    /// The body: for [`parse`] as received, for a [`Handler`] with its content coding undone.
    pub body: &'i Bytes,
    /// The product token that page-level rules may name.
    pub product: &'i str,
    /// The `[[extract]]` sections.
    pub extractors: &'i [Extractor],
    /// The document's time is up (P2). Asked at coarse intervals.
    pub out_of_time: &'i dyn Fn() -> bool,
}

/// What a document holds.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The type it was parsed as, without parameters.
    pub content_type: Option<String>,
    /// The encoding used to read it, by its WHATWG name.
    pub charset: Option<&'static str>,
    /// The language it declares.
    pub language: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its canonical URL, absolute.
    pub canonical: Option<String>,
    /// Its text, white space folded.
    pub text: String,
    /// Its links, absolute.
    pub links: Links,
    /// R4, R6: what it asks for.
    pub wishes: PageWishes,
    /// `None` where there is too little text.
    pub simhash: Option<u64>,
    /// `None` where there is no text.
    pub text_fingerprint: Option<u128>,
    /// BLAKE3 of the decoded body, hexadecimal.
    pub digest: String,
    /// Why anything is missing or cut.
    pub reasons: Vec<Reason>,
    /// From `[[extract]]`.
    pub fields: BTreeMap<String, Vec<String>>,
}

/// Reads the documents of some content types.
pub trait Handler: Sync {
    /// It reads this type (`type/subtype`, lower case).
    fn accepts(&self, content_type: &str) -> bool;

    /// Reads a document whose content coding is undone. Bounded by the limits, whatever it holds.
    fn parse(&self, input: &Input<'_>, limits: &Limits) -> Parsed;
}

static HANDLERS: [&dyn Handler; 5] =
    [&HtmlHandler, &XmlHandler, &GzipHandler, &JsonFeedHandler, &TextHandler];

/// The type that a body is read as: the declared one, or what it looks like where that says
/// nothing or says XML and the root is HTML's.
pub fn effective_type<'t>(declared: Option<&'t str>, body: &[u8]) -> Option<&'t str> {
    match declared {
        None | Some("unknown/unknown" | "application/unknown" | "application/octet-stream") => {
            sniffed_type(body).or(declared)
        }
        Some("text/xml" | "application/xml") if is_xhtml(body) => Some("application/xhtml+xml"),
        Some("text/html" | "text/plain") if is_sitemap_or_feed(body) => Some("text/xml"),
        Some("text/html") if is_list_of_urls(body) => Some("text/plain"),
        Some(declared) => Some(declared),
    }
}

/// What a body looks like; `None` for binary data.
fn sniffed_type(body: &[u8]) -> Option<&'static str> {
    match sniff(body) {
        Sniffed::Html | Sniffed::Xml | Sniffed::Text if is_sitemap_or_feed(body) => {
            Some("text/xml")
        }
        Sniffed::Html => Some("text/html"),
        Sniffed::Xml if is_xhtml(body) => Some("application/xhtml+xml"),
        Sniffed::Xml => Some("text/xml"),
        Sniffed::Text => Some("text/plain"),
        Sniffed::Binary if body.starts_with(b"\x1f\x8b") => Some("application/gzip"),
        Sniffed::Binary => None,
    }
}

fn is_xhtml(body: &[u8]) -> bool {
    let head = body.get(..1024).unwrap_or(body);
    memchr::memmem::find(head, b"<html").is_some()
}

/// The handler of a content type; `None` where nobody reads it.
pub fn handler_for(content_type: &str) -> Option<&'static dyn Handler> {
    HANDLERS.into_iter().find(|handler| handler.accepts(content_type))
}

/// Whether a body of this type (`type/subtype`, lower case; empty where none is declared) is worth
/// receiving: some handler reads it. Archives of all kinds are gzip files and files of unknown
/// type; of those only what its name calls a sitemap is received.
pub fn is_wanted(url: &CrawlUrl, content_type: &str) -> bool {
    if is_named_sitemap(url) {
        return true;
    }
    let handler = handler_for(content_type).is_some() && !GzipHandler.accepts(content_type);
    content_type.is_empty() || handler
}

/// Parses a response: undoes its content coding, finds its handler, and takes its fingerprints.
pub fn parse(input: &Input<'_>, limits: &Limits) -> Parsed {
    let decoded = decode(input.headers, input.body, &limits.decode, limits.memory);
    let mime = Mime::of_response(input.headers);
    let declared = mime.as_ref().map(|mime| mime.essence.as_str());
    let content_type = effective_type(declared, &decoded.bytes);
    // A sitemap by name or by look is read, whatever its type says.
    let by_look = || {
        let is_list = is_named_sitemap(input.url) || looks_like_list(&decoded.bytes, limits.memory);
        sniffed_type(&decoded.bytes).filter(|_| is_list)
    };
    let handler = content_type.and_then(handler_for);
    let content_type = if handler.is_some() { content_type } else { by_look().or(content_type) };
    let mut parsed = match handler.or_else(|| content_type.and_then(handler_for)) {
        Some(handler) => handler.parse(&Input { body: &decoded.bytes, ..*input }, limits),
        None => unread(input, content_type),
    };
    parsed.content_type = content_type.map(str::to_owned);
    parsed.digest = blake3::hash(&decoded.bytes).to_hex().to_string();
    parsed.reasons.splice(0..0, decoded.reason);
    if !parsed.text.is_empty() {
        let found = fingerprints(&parsed.text);
        parsed.simhash = found.simhash;
        parsed.text_fingerprint = Some(found.text);
    }
    parsed
}

/// What nobody reads still has its headers' wishes, and its reason.
fn unread(input: &Input<'_>, content_type: Option<&str>) -> Parsed {
    let content_type = content_type.unwrap_or("an unknown binary type").to_owned();
    Parsed {
        wishes: page_wishes(input.headers, &[], input.product),
        reasons: vec![Reason::UnwantedType { content_type }],
        ..Parsed::default()
    }
}

/// The language in Content-Language, where it names one only.
pub(super) fn header_language(headers: &Headers) -> Option<String> {
    let value = crate::types::header(headers, "content-language")?;
    Some(value).filter(|value| !value.is_empty() && !value.contains(',')).map(str::to_owned)
}

/// `text/plain`: text only; what looks like a URL in it is no link, but in a text sitemap.
pub struct TextHandler;

impl Handler for TextHandler {
    fn accepts(&self, content_type: &str) -> bool {
        content_type == "text/plain"
    }

    fn parse(&self, input: &Input<'_>, limits: &Limits) -> Parsed {
        let charset = Mime::of_response(input.headers).and_then(|mime| mime.charset);
        let read = to_text(input.body, charset.as_deref(), false, limits.memory.text());
        if let Some(mut sitemap) = text_sitemap(&read.text, input, limits.memory) {
            sitemap.reasons.extend(read.cut_at(limits.memory.text()));
            return Parsed { charset: Some(read.encoding.name()), ..sitemap };
        }
        let bytes_max = limits.text_bytes_max.min(limits.memory.kept_text());
        let (text, cut) = fold(&read.text, bytes_max);
        let limit = format!("{bytes_max} bytes of text");
        let cut = cut.then_some(Reason::ParseLimit { limit });
        Parsed {
            charset: Some(read.encoding.name()),
            language: header_language(input.headers),
            text,
            wishes: page_wishes(input.headers, &[], input.product),
            reasons: read.cut_at(limits.memory.text()).into_iter().chain(cut).collect(),
            ..Parsed::default()
        }
    }
}

#[cfg(test)]
mod tests;
