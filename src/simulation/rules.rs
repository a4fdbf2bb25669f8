//! What the simulated sites say in their robots.txt, and what it means in their own eyes.
//!
//! Prefixes only, so that the judgement here is a few obvious lines and shares nothing with the
//! crawler's own matching, which it checks.

use std::fmt::Write as _;
use std::time::Duration;

/// The rules of one group for everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SiteRules {
    /// Prefixes that are refused.
    pub(super) disallow: Vec<&'static str>,
    /// Prefixes that are allowed all the same, where they are longer.
    pub(super) allow: Vec<&'static str>,
    /// Seconds between two visits.
    pub(super) crawl_delay: Option<u64>,
}

impl SiteRules {
    /// Nothing is refused.
    pub(super) fn open() -> Self {
        Self::default()
    }

    /// These prefixes are refused.
    pub(super) fn refusing(disallow: &[&'static str]) -> Self {
        Self { disallow: disallow.to_vec(), ..Self::default() }
    }

    /// As a robots.txt says it.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("User-agent: *\n");
        for prefix in &self.disallow {
            writeln!(text, "Disallow: {prefix}").ok();
        }
        for prefix in &self.allow {
            writeln!(text, "Allow: {prefix}").ok();
        }
        if let Some(seconds) = self.crawl_delay {
            writeln!(text, "Crawl-delay: {seconds}").ok();
        }
        text
    }

    /// RFC 9309: the longest prefix that fits decides, and of two the one that allows.
    pub(super) fn allows(&self, path: &str) -> bool {
        let longest = |prefixes: &[&'static str]| {
            let fitting = prefixes.iter().filter(|prefix| path.starts_with(**prefix));
            fitting.map(|prefix| prefix.len()).max()
        };
        longest(&self.disallow).is_none_or(|refused| longest(&self.allow) >= Some(refused))
    }

    /// How long the site wants to be left alone between two visits.
    pub(super) fn delay(&self) -> Duration {
        Duration::from_secs(self.crawl_delay.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides() {
        let mut rules = SiteRules::refusing(&["/private"]);
        rules.allow.push("/private/open");
        assert!(rules.allows("/p/1") && rules.allows("/private/open/1"));
        assert!(!rules.allows("/private/1"));
        assert!(SiteRules::open().allows("/private"));
        rules.crawl_delay = Some(3);
        assert!(rules.text().ends_with("Allow: /private/open\nCrawl-delay: 3\n"));
    }
}
