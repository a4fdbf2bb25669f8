//! Text sitemaps: one URL a line, and nothing else.

use super::entries::{Entries, Entry};
use super::is_named_sitemap;
use crate::parse::handler::{Input, Parsed};
use crate::types::LinkKind;

/// The URLs of a text that is a sitemap: every line is a URL, or its name says that it is one.
/// `None` for any other text.
pub(in crate::parse) fn text_sitemap(text: &str, input: &Input<'_>) -> Option<Parsed> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek()?;
    if !is_named_sitemap(input.url) && !lines.clone().all(is_url) {
        return None;
    }
    let mut entries = Entries::new(input.url);
    for url in lines.filter(|line| !line.contains(char::is_whitespace)) {
        // What has no scheme may be a URL, and may be a word.
        if is_url(url) || entries.lacks_scheme(url) {
            entries.add(LinkKind::Sitemap, &Entry { url, ..Entry::default() });
        }
        if entries.is_cut() {
            break;
        }
    }
    (!entries.is_empty()).then(|| entries.into_parsed(input))
}

fn is_url(line: &str) -> bool {
    let scheme = line.get(..8).unwrap_or(line).to_ascii_lowercase();
    (scheme.starts_with("http://") || scheme.starts_with("https://"))
        && !line.contains(char::is_whitespace)
}
