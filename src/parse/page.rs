//! The handler of HTML pages (P1).

use super::charset::{Text, to_text};
use super::handler::{Handler, Input, Limits, Parsed, header_language};
use super::html::{Scan, ScanOptions, scan};
use super::links::{Base, resolve_links};
use super::mime::Mime;
use super::robots_meta::{META_NAMES, page_wishes};
use super::select::extract;
use crate::types::Reason;

/// Beyond these a tree costs more than its page: its builder is not linear in them (P2).
const EXTRACT_DEPTH_MAX: usize = 256;
const EXTRACT_ATTRIBUTES_MAX: usize = 1000;
const EXTRACT_BYTES_MAX: usize = 4 << 20;

/// `text/html` and XHTML.
pub struct HtmlHandler;

impl Handler for HtmlHandler {
    fn accepts(&self, content_type: &str) -> bool {
        matches!(content_type, "text/html" | "application/xhtml+xml")
    }

    fn parse(&self, input: &Input<'_>, limits: &Limits) -> Parsed {
        let mime = Mime::of_response(input.headers);
        let charset = mime.as_ref().and_then(|mime| mime.charset.as_deref());
        let read = to_text(input.body, charset, true);
        let mut meta_names = META_NAMES.to_vec();
        meta_names.push(input.product);
        let options = ScanOptions {
            links_max: limits.links_max,
            text_bytes_max: limits.text_bytes_max,
            meta_names: &meta_names,
            measures_depth: input.extractors.iter().any(|one| one.matches(input.url)),
            is_xml: mime.is_some_and(|mime| mime.essence.ends_with("xml")),
            out_of_time: input.out_of_time,
        };
        let page = scan(&read.text, &options);
        document(page, &read, input)
    }
}

fn document(page: Scan<'_>, read: &Text<'_>, input: &Input<'_>) -> Parsed {
    let own = input.url.as_url();
    let base = Base::new(own, page.base_href.as_deref(), read.encoding);
    let (links, cut) = resolve_links(&page.links, &page.text, &base, input.out_of_time);
    let canonical = page.canonical.as_deref().and_then(|href| base.resolve(href));
    let mut parsed = Parsed {
        charset: Some(read.encoding.name()),
        canonical,
        links,
        wishes: page_wishes(input.headers, &page.metas, input.product),
        ..Parsed::default()
    };
    if input.extractors.iter().any(|extractor| extractor.matches(input.url)) {
        match too_hard_for_a_tree(&page, &read.text, input) {
            Some(limit) => parsed.reasons.push(Reason::ParseLimit { limit }),
            None => parsed.fields = extract(input.extractors, &read.text, input.url),
        }
    }
    parsed.reasons.extend(page.reasons);
    for reason in cut {
        if !parsed.reasons.contains(&reason) {
            parsed.reasons.push(reason);
        }
    }
    parsed.language =
        page.language.or(page.content_language).or_else(|| header_language(input.headers));
    parsed.title = page.title.filter(|title| !title.is_empty());
    parsed.description = page.description;
    parsed.text = page.text;
    parsed
}

/// The limit that keeps the extractors from a page; the scan has counted what a tree would hold.
fn too_hard_for_a_tree(page: &Scan<'_>, html: &str, input: &Input<'_>) -> Option<String> {
    if page.depth_max > EXTRACT_DEPTH_MAX {
        return Some(format!("extract: {EXTRACT_DEPTH_MAX} nested elements"));
    }
    if page.attributes_max > EXTRACT_ATTRIBUTES_MAX {
        return Some(format!("extract: {EXTRACT_ATTRIBUTES_MAX} attributes"));
    }
    if html.len() > EXTRACT_BYTES_MAX {
        return Some(format!("extract: {EXTRACT_BYTES_MAX} bytes"));
    }
    (input.out_of_time)().then(|| "parse.max_time".to_owned())
}
