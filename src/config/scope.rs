//! What belongs to the crawl: `[scope]` and `[traps]` (P1, T1).

use super::define::section;
use super::reader::Checked;
use super::value::words;
use crate::types::LinkKind;

words! {
    /// Which links belong to the crawl.
    pub enum ScopeMode {
        /// Those to the hosts of the seeds.
        Host = "host",
        /// Those to the registered domains of the seeds.
        Domain = "domain",
        /// The seeds alone.
        Seeds = "seeds",
        /// All.
        Any = "any",
    }
}

section! {
    /// What belongs to the crawl.
    pub struct Scope {
        /// `"host"`: the hosts of the seeds; `"domain"`: their registered domains; `"seeds"`: the
        /// seeds alone; `"any"`: everything.
        mode: ScopeMode = ScopeMode::Host;
        /// Rules that take URLs in although the mode would not: `"surt:…"`, `"domain:…"`,
        /// `"host:…"`, `"regex:…"`, `"file:PATH"` with one rule a line.
        include: Vec<String> = Vec::new(), each(|rule| is_rule(rule), RULE);
        /// Rules that leave URLs out, stronger than `include`.
        exclude: Vec<String> = Vec::new(), each(|rule| is_rule(rule), RULE);
        /// Links away from a seed.
        max_depth: u16 = 20;
        /// Completed exchanges other than robots.txt, redirects included, in the life of the data
        /// directory; then the crawl is done.
        max_pages: Option<u64> = None, within(1..=1_000_000_000_000_000);
        /// Length of a URL in bytes.
        max_url_length: u32 = 2000, within(16..=65_536);
        /// Links that are followed, by the element that carries them; all are recorded.
        /// `link-rel` means next, prev, alternate and canonical. What sitemaps and feeds list is
        /// always followed.
        follow_links: Vec<LinkKind> = vec![
            LinkKind::A,
            LinkKind::Area,
            LinkKind::Frame,
            LinkKind::Iframe,
            LinkKind::MetaRefresh,
            LinkKind::LinkRel,
        ];
    }
}

impl Checked for Scope {}

/// What [`is_rule`] wants.
pub(super) const RULE: &str =
    "that begins with surt:, domain:, host:, regex: or file: and says something behind it";

/// Whether a rule is of a known kind; what stands behind the kind is checked by its compiler.
pub(super) fn is_rule(rule: &str) -> bool {
    let (kind, behind) = rule.split_once(':').unwrap_or_default();
    matches!(kind, "surt" | "domain" | "host" | "regex" | "file") && !behind.trim().is_empty()
}

section! {
    /// Where a site without end is cut off (T1).
    pub struct Traps {
        /// Segments of a path.
        max_path_segments: u16 = 30, within(1..=1000);
        /// How often one segment may occur in a path: `/a/b/a/b/a/b`.
        max_repeated_segments: u16 = 4, within(1..=1000);
        /// Parameters of a query.
        max_query_parameters: u16 = 30, within(0..=1000);
    }
}

impl Checked for Traps {}
