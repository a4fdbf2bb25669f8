//! What was found in a page, as the page record of docs/interface.md.

use super::handler::{PARSER_VERSION, Parsed};
use super::robots_meta::is_over;
use crate::types::{Document, Timestamp, ToParse, UsageWish};

/// R6: what robots.txt said on its use, and what the page says itself.
fn usage(row: &ToParse, said: Vec<UsageWish>) -> Vec<UsageWish> {
    let said = said.into_iter().map(|wish| UsageWish { at: Some(row.fetched_at), ..wish });
    row.usage.iter().cloned().chain(said).collect()
}

/// The page record of a parsed page.
pub(super) fn record(row: &ToParse, parsed: Parsed, duplicate_of: Option<String>) -> Document {
    let reasons = row.reason.iter().chain(&parsed.reasons).map(ToString::to_string);
    Document {
        url: row.url.clone(),
        url_id: row.id,
        version: row.version,
        fetched_at: row.fetched_at,
        status: row.status,
        reason: reasons.collect(),
        content_type: parsed.content_type,
        charset: parsed.charset.map(str::to_owned),
        language: parsed.language,
        title: parsed.title,
        description: parsed.description,
        canonical: parsed.canonical,
        text: parsed.text,
        links: parsed.links.to_record(),
        digest: parsed.digest,
        simhash: parsed.simhash.map(|hash| format!("{hash:016x}")),
        duplicate_of,
        near_duplicate_of: None,
        usage: usage(row, parsed.wishes.usage),
        robots: directives(parsed.wishes.directives, row.fetched_at),
        depth: row.depth,
        discovered_from: row.discovered_from.clone(),
        parser_version: PARSER_VERSION,
        archive: row.archive.clone(),
        fields: parsed.fields,
    }
}

/// R4: the directives as found, and the `noindex` that a page whose time was over says by its date.
fn directives(mut found: Vec<String>, fetched_at: Timestamp) -> Vec<String> {
    if is_over(&found, fetched_at) && !found.iter().any(|word| word == "noindex") {
        found.push("noindex".to_owned());
    }
    found
}
