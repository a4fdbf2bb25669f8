//! Sitemaps and feeds (P3): XML sitemaps and their indexes, text sitemaps, RSS, Atom, JSON Feed.
//!
//! They are read as generously as the web writes them: namespaces right, wrong or missing, broken
//! XML as far as it goes, schemes left out. Only http and https URLs come out, each once, at most
//! 50,000, as sitemaps.org bounds a file; a longer one is cut, with a reason.

mod entries;
mod entry;
mod gzip;
mod json;
mod lines;
mod xml;

use super::charset::to_text;
use super::handler::{Handler, Input, Limits, Parsed, header_language};
use super::mime::Mime;
use super::robots_meta::page_wishes;
use crate::types::{CrawlUrl, Reason};

use entries::{Entries, Found};

pub use gzip::GzipHandler;
pub(super) use gzip::looks_like_list;
pub use json::JsonFeedHandler;
pub(super) use lines::{is_list_of_urls, text_sitemap};
pub(super) use xml::is_sitemap_or_feed;

/// XML that may be a sitemap or a feed.
pub struct XmlHandler;

impl Handler for XmlHandler {
    fn accepts(&self, content_type: &str) -> bool {
        matches!(
            content_type,
            "text/xml"
                | "application/xml"
                | "application/x-xml"
                | "application/rss+xml"
                | "application/atom+xml"
                | "application/rdf+xml"
                | "application/x-rss+xml"
                | "text/rss+xml"
        )
    }

    fn parse(&self, input: &Input<'_>, limits: &Limits) -> Parsed {
        let mime = Mime::of_response(input.headers);
        let charset = mime.as_ref().and_then(|mime| mime.charset.as_deref());
        let read = to_text(input.body, charset, true, limits.memory.text());
        let mut entries = Entries::new(input.url, limits.memory);
        let found = xml::read(&read.text, &mut entries, input.out_of_time);
        let mut parsed = entries.into_parsed(input);
        parsed.charset = Some(read.encoding.name());
        parsed.reasons.extend(read.cut_at(limits.memory.text()));
        match found {
            Found::Entries { title, cut } => {
                parsed.title = title;
                parsed.reasons.extend(cut);
            }
            Found::SomethingElse => parsed.reasons.push(unread(mime)),
        }
        parsed
    }
}

/// What is neither a sitemap nor a feed has no reader.
fn unread(mime: Option<Mime>) -> Reason {
    let content_type = mime.map_or_else(|| "XML".to_owned(), |mime| mime.essence);
    Reason::UnwantedType { content_type }
}

/// The last part of the path says that this is a sitemap: then its type counts for less.
pub(super) fn is_named_sitemap(url: &CrawlUrl) -> bool {
    let path = url.path_and_query().to_ascii_lowercase();
    let path = path.split_once('?').map_or(path.as_str(), |(path, _)| path);
    path.rsplit('/').next().is_some_and(|file| {
        let is_file = [".xml", ".xml.gz", ".txt.gz", ".rss", ".atom"];
        file.contains("sitemap") || is_file.iter().any(|end| file.ends_with(end))
    })
}

/// What every handler here has in common with a page.
fn bare(input: &Input<'_>) -> Parsed {
    Parsed {
        language: header_language(input.headers),
        wishes: page_wishes(input.headers, &[], input.product),
        ..Parsed::default()
    }
}

#[cfg(test)]
mod tests;
