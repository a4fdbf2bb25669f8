//! The handler of HTML pages (P1).

use super::charset::{Text, to_text};
use super::handler::{Handler, Input, Limits, Parsed, header_language};
use super::html::{Scan, ScanOptions, scan};
use super::links::{Base, URL_BYTES_MAX, resolve_links};
use super::memory::Memory;
use super::mime::Mime;
use super::robots_meta::{META_NAMES, page_wishes};
use super::select::extract;
use crate::types::Reason;

/// Beyond these a tree costs more than its page: its builder is not linear in them (P2).
const EXTRACT_DEPTH_MAX: usize = 256;
const EXTRACT_ATTRIBUTES_MAX: usize = 1000;

/// `text/html` and XHTML.
pub struct HtmlHandler;

impl Handler for HtmlHandler {
    fn accepts(&self, content_type: &str) -> bool {
        matches!(content_type, "text/html" | "application/xhtml+xml")
    }

    fn parse(&self, input: &Input<'_>, limits: &Limits) -> Parsed {
        let mime = Mime::of_response(input.headers);
        let charset = mime.as_ref().and_then(|mime| mime.charset.as_deref());
        let read = to_text(input.body, charset, true, limits.memory.text());
        let mut meta_names = META_NAMES.to_vec();
        meta_names.push(input.product);
        let options = ScanOptions {
            links_max: limits.links_max.min(limits.memory.links()),
            text_bytes_max: limits.text_bytes_max.min(limits.memory.kept_text()),
            references_bytes_max: limits.memory.references(),
            meta_names: &meta_names,
            measures_depth: input.extractors.iter().any(|one| one.matches(input.url)),
            is_xml: mime.is_some_and(|mime| mime.essence.ends_with("xml")),
            out_of_time: input.out_of_time,
        };
        let page = scan(&read.text, &options);
        document(page, &read, input, limits.memory)
    }
}

fn document(page: Scan<'_>, read: &Text<'_>, input: &Input<'_>, memory: Memory) -> Parsed {
    let own = input.url.as_url();
    let base = Base::new(own, page.base_href.as_deref(), read.encoding);
    let (links, cut) =
        resolve_links(&page.links, &page.text, &base, memory.urls(), input.out_of_time);
    let canonical = page.canonical.as_deref().and_then(|href| base.resolve(href));
    let canonical = canonical.filter(|url| url.len() <= URL_BYTES_MAX);
    let mut parsed = Parsed {
        charset: Some(read.encoding.name()),
        canonical,
        links,
        wishes: page_wishes(input.headers, &page.metas, input.product),
        ..Parsed::default()
    };
    if input.extractors.iter().any(|extractor| extractor.matches(input.url)) {
        match too_hard_for_a_tree(&page, &read.text, input, memory) {
            Some(reason) => parsed.reasons.push(reason),
            None => {
                let found =
                    extract(input.extractors, &read.text, input.url, memory, input.out_of_time);
                parsed.fields = found.fields;
                parsed.reasons.extend(found.cut);
            }
        }
    }
    parsed.reasons.extend(read.cut_at(memory.text()));
    for reason in page.reasons.into_iter().chain(cut) {
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
fn too_hard_for_a_tree(
    page: &Scan<'_>,
    html: &str,
    input: &Input<'_>,
    memory: Memory,
) -> Option<Reason> {
    let limit = if page.depth_max > EXTRACT_DEPTH_MAX {
        format!("extract: {EXTRACT_DEPTH_MAX} nested elements")
    } else if page.attributes_max > EXTRACT_ATTRIBUTES_MAX {
        format!("extract: {EXTRACT_ATTRIBUTES_MAX} attributes")
    } else if html.len() > memory.markup() {
        return Some(Memory::reason(memory.markup(), "extract: markup"));
    } else if (input.out_of_time)() {
        "parse.max_time".to_owned()
    } else {
        return None;
    };
    Some(Reason::ParseLimit { limit })
}
