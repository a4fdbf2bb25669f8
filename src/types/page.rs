//! What came back: the response as received, where it lies, and what was found in it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{CrawlUrl, Lease, Reason, Timestamp, UrlId, UrlVersion};

/// A record in the archive: one gzip (or zstd) member.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArchivePointer {
    /// Final file name, without directory and without `.open`.
    pub file: Arc<str>,
    /// Where the member begins, in bytes.
    pub offset: u64,
    /// The member's length in bytes.
    pub length: u64,
}

/// Why a body was cut; the value of WARC-Truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncation {
    /// A size limit.
    Length,
    /// A time limit.
    Time,
    /// The peer went away.
    Disconnect,
    /// Anything else: the type was not wanted.
    Unspecified,
}

impl Truncation {
    /// The word in WARC-Truncated.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
            Self::Unspecified => "unspecified",
        }
    }
}

/// Header names and values in the order received. Names are spelt as received too, so whoever looks
/// for one does so whatever its case.
pub type Headers = Vec<(String, Bytes)>;

/// The first value of a header, as text, whatever the case of its name.
pub fn header<'h>(headers: &'h Headers, name: &str) -> Option<&'h str> {
    let (_, value) = headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(value).ok().map(str::trim)
}

/// A response as received: one `Bytes` from socket to parser.
#[derive(Clone, Debug)]
pub struct Response {
    /// What was asked for.
    pub lease: Arc<Lease>,
    /// The request line and headers as sent, with the final blank line.
    pub request_head: Bytes,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub protocol: &'static str,
    /// The status code.
    pub status: u16,
    /// The status line as received, without its end; HTTP/2 has none.
    pub status_line: Option<Bytes>,
    /// The headers; transfer coding undone, content coding kept.
    pub headers: Headers,
    /// The body, content coding kept.
    pub body: Bytes,
    /// Where it was cut.
    pub truncated: Option<Truncation>,
    /// When the request was sent.
    pub sent_at: Timestamp,
    /// When the last byte came.
    pub ended_at: Timestamp,
    /// The address that was connected to.
    pub address: SocketAddr,
}

/// P4: a fetched page that waits to be parsed; durable until its links and document are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToParse {
    /// The URL.
    pub id: UrlId,
    /// The version fetched.
    pub version: UrlVersion,
    /// What was requested.
    pub url: CrawlUrl,
    /// Its depth.
    pub depth: u16,
    /// Redirects that led to it.
    pub redirects: u8,
    /// The status.
    pub status: u16,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// The response record.
    pub archive: ArchivePointer,
    /// Where the link to it was found.
    pub discovered_from: Option<CrawlUrl>,
    /// Why it is not whole, if it is not.
    pub reason: Option<Reason>,
    /// Parsers that died over it.
    pub attempts: u8,
    /// R6: what robots.txt said on the use of it when it was fetched. Last, so that a row without
    /// it is one byte short of a row with none.
    pub usage: Vec<UsageWish>,
}

/// What a link is, by the element that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// `<a href>`.
    A,
    /// `<area href>`.
    Area,
    /// `<frame src>`.
    Frame,
    /// `<iframe src>`.
    Iframe,
    /// `<meta http-equiv=refresh>`.
    MetaRefresh,
    /// `<link rel=next|prev|alternate|canonical>`.
    LinkRel,
    /// `<link>` of another kind: stylesheets, icons, preloads.
    LinkResource,
    /// `<img>`, `<source>` in a picture, `srcset`.
    Image,
    /// `<script src>`.
    Script,
    /// `<video>`, `<audio>`, `<source>`, `<track>`, `<embed>`, `<object>`.
    Media,
    /// `<form action>`.
    Form,
    /// `cite`, `longdesc` and the like.
    Cite,
    /// Location of a 3xx.
    Redirect,
    /// A sitemap entry.
    Sitemap,
    /// A feed entry.
    Feed,
}

impl LinkKind {
    /// The name in records and in `scope.follow_links`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::Area => "area",
            Self::Frame => "frame",
            Self::Iframe => "iframe",
            Self::MetaRefresh => "meta-refresh",
            Self::LinkRel => "link-rel",
            Self::LinkResource => "link-resource",
            Self::Image => "image",
            Self::Script => "script",
            Self::Media => "media",
            Self::Form => "form",
            Self::Cite => "cite",
            Self::Redirect => "redirect",
            Self::Sitemap => "sitemap",
            Self::Feed => "feed",
        }
    }

    /// The kind of a name; `None` when there is none such.
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::A,
            Self::Area,
            Self::Frame,
            Self::Iframe,
            Self::MetaRefresh,
            Self::LinkRel,
            Self::LinkResource,
            Self::Image,
            Self::Script,
            Self::Media,
            Self::Form,
            Self::Cite,
            Self::Redirect,
            Self::Sitemap,
            Self::Feed,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

/// A link of a page record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The target, absolute.
    pub url: String,
    /// Anchor text, or the image's alternative.
    pub text: String,
    /// `rel` as written.
    pub rel: String,
    /// What carries it.
    pub kind: LinkKind,
    /// When the target changed, as a sitemap or a feed has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Timestamp>,
}

/// The page record of docs/interface.md, as JSON Lines show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What was requested.
    pub url: CrawlUrl,
    /// Its identity.
    pub url_id: UrlId,
    /// The version fetched.
    pub version: UrlVersion,
    /// When.
    pub fetched_at: Timestamp,
    /// The status.
    pub status: u16,
    /// Content-Type without parameters, lower case.
    pub content_type: Option<String>,
    /// The encoding used to read it, by its WHATWG name.
    pub charset: Option<String>,
    /// The language the page declares.
    pub language: Option<String>,
    /// `<title>`.
    pub title: Option<String>,
    /// `<meta name=description>`.
    pub description: Option<String>,
    /// `<link rel=canonical>`, absolute.
    pub canonical: Option<String>,
    /// The visible text, white space folded.
    pub text: String,
    /// Links of all kinds, each target once per kind.
    pub links: Vec<Link>,
    /// BLAKE3 of the decoded body, hexadecimal.
    pub digest: String,
    /// SimHash of the text, 16 hexadecimal digits; `None` where there is too little text.
    pub simhash: Option<String>,
    /// URL of the page with the same text.
    pub duplicate_of: Option<String>,
    /// URL of a page with nearly the same text.
    pub near_duplicate_of: Option<String>,
    /// Why anything is missing, cut or left out: one sentence each.
    pub reason: Vec<String>,
    /// Wishes on use, each with its source and text (R6).
    pub usage: Vec<UsageWish>,
    /// Page-level directives, lower case (R4).
    pub robots: Vec<String>,
    /// Links away from a seed.
    pub depth: u16,
    /// Where the link to it was found.
    pub discovered_from: Option<CrawlUrl>,
    /// The version of the parser.
    pub parser_version: u32,
    /// The response record.
    pub archive: ArchivePointer,
    /// From `[[extract]]`.
    pub fields: std::collections::BTreeMap<String, Vec<String>>,
}

/// R6: one wish on use, as found: the evidence that [`crate::policy::wishes`] judges by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageWish {
    /// Where it was found: `header`, `meta`, `robots.txt`, `tdmrep.json`; `bound` where more was
    /// said than is kept.
    pub source: String,
    /// Its text: the name in lower case and the value as found, or the line of robots.txt as
    /// written; ends with a mark where it was too long to be kept whole.
    pub text: String,
    /// When it was said: when the page, or the robots.txt in force for it, was fetched. `None`
    /// where an older copy of robots.txt served on, or an older version wrote the record.
    #[serde(default)]
    pub at: Option<Timestamp>,
}
