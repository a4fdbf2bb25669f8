//! Text sitemaps: one URL a line, and nothing else.

use super::entries::{Entries, Entry};
use super::is_named_sitemap;
use crate::parse::handler::{Input, Parsed};
use crate::parse::memory::Memory;
use crate::types::LinkKind;

/// What is looked at of a body whose type says something else.
const HEAD_BYTES: usize = 4 << 10;

/// The URLs of a text that is a sitemap: every line is a URL, or its name says that it is one.
/// `None` for any other text.
pub(in crate::parse) fn text_sitemap(
    text: &str,
    input: &Input<'_>,
    memory: Memory,
) -> Option<Parsed> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek()?;
    if !is_named_sitemap(input.url) && !lines.clone().all(is_url) {
        return None;
    }
    let mut entries = Entries::new(input.url, memory);
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

/// The beginning of a body is lines of URLs and nothing else.
pub(in crate::parse) fn is_list_of_urls(body: &[u8]) -> bool {
    let head = body.get(..HEAD_BYTES).unwrap_or(body);
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    if body.len() > HEAD_BYTES {
        // Nobody knows how the last of them goes on.
        lines.pop();
    }
    lines.retain(|line| !line.is_empty());
    let are_urls = lines.iter().all(|line| std::str::from_utf8(line).is_ok_and(is_url));
    !lines.is_empty() && are_urls
}

fn is_url(line: &str) -> bool {
    let scheme = line.get(..8).unwrap_or(line).to_ascii_lowercase();
    (scheme.starts_with("http://") || scheme.starts_with("https://"))
        && !line.contains(char::is_whitespace)
}
