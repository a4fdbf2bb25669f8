//! Page-level wishes: meta robots and X-Robots-Tag (R4), and the evidence of wishes on use (R6).
//!
//! Rules for everybody and rules for us are added up, so the more restrictive one holds; nothing a
//! page says lifts what it says elsewhere. This file reads; what follows from it is policy.

use super::date;
use crate::policy::wishes::keep;
use crate::types::{Headers, Timestamp, UsageWish};

/// Directives kept; more are noise.
const DIRECTIVES_MAX: usize = 64;
/// Bytes of a directive that are kept.
const DIRECTIVE_BYTES_MAX: usize = 1024;

/// Headers whose text is a wish on use.
const USAGE_HEADERS: [&str; 4] =
    ["content-usage", "content-signal", "tdm-reservation", "tdm-policy"];
/// Directives that carry a value after a colon, so the colon does not follow an agent.
const WITH_VALUE: [&str; 4] =
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

/// What a page asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageWishes {
    /// The directives that apply to us, lower case, each once, in the order found.
    pub directives: Vec<String>,
    /// `noindex` or `none`.
    pub noindex: bool,
    /// `nofollow` or `none`.
    pub nofollow: bool,
    /// `noarchive`.
    pub noarchive: bool,
    /// R6: what it says on use, as found.
    pub usage: Vec<UsageWish>,
}

/// The names of `<meta>` that [`page_wishes`] reads, besides the product token.
pub const META_NAMES: [&str; 3] = ["robots", "tdm-reservation", "tdm-policy"];

/// Reads the wishes in headers and metas (names in lower case) that apply to `product`.
pub fn page_wishes(headers: &Headers, metas: &[(String, String)], product: &str) -> PageWishes {
    let mut wishes = PageWishes::default();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value);
        if name.eq_ignore_ascii_case("x-robots-tag") {
            wishes.add_rules("header", name, &value, product);
        } else if USAGE_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            wishes.add_usage("header", name, &value);
        }
    }
    for (name, content) in metas {
        if name == "robots" || name.eq_ignore_ascii_case(product) {
            wishes.add_rules("meta", name, content, product);
        } else if META_NAMES.contains(&name.as_str()) {
            wishes.add_usage("meta", name, content);
        }
    }
    wishes
}

/// Whether one of the directives names a time up to which the page is to be found, and it is past
/// at `at`: from then on the page is as if it said `noindex`. Of several the earliest holds.
pub fn is_over(directives: &[String], at: Timestamp) -> bool {
    directives.iter().filter_map(|directive| end_of(directive)).any(|end| end <= at)
}

/// The date of an `unavailable_after`, in any form that [`date`] reads.
fn end_of(directive: &str) -> Option<Timestamp> {
    let date = directive.strip_prefix("unavailable_after")?.trim_start();
    date::parse(date.strip_prefix(':').unwrap_or(date).trim())
}

impl PageWishes {
    /// One header or `<meta>`. An agent named before a colon owns the rules up to the next one.
    fn add_rules(&mut self, source: &str, name: &str, value: &str, product: &str) {
        let mut ours = true;
        let mut on_use = false;
        for part in parts(value) {
            let (agent, rule) = split_agent(&part);
            if let Some(agent) = agent {
                let token = agent.split('/').next().unwrap_or_default();
                ours = token.eq_ignore_ascii_case(product) || matches!(agent, "*" | "robots");
            }
            if ours && !rule.is_empty() {
                on_use |= self.add_directive(rule);
            }
        }
        if on_use {
            self.add_usage(source, name, value);
        }
    }

    /// Adds what one part says; `true` if it is a wish on use.
    fn add_directive(&mut self, rule: &str) -> bool {
        // A date has spaces; other parts are words that somebody forgot to put commas between.
        let rule = rule.to_lowercase();
        let words: Vec<&str> = match rule.split_once(':') {
            Some(_) => vec![&rule],
            None => rule.split_whitespace().collect(),
        };
        let mut on_use = false;
        for word in words {
            match word {
                "noindex" => self.noindex = true,
                "nofollow" => self.nofollow = true,
                "none" => (self.noindex, self.nofollow) = (true, true),
                "noarchive" => self.noarchive = true,
                "noai" | "noimageai" => on_use = true,
                _ => {}
            }
            let known = self.directives.iter().any(|found| found == word);
            if !known && self.directives.len() < DIRECTIVES_MAX {
                self.directives.push(cut(word).to_owned());
            }
        }
        on_use
    }

    fn add_usage(&mut self, source: &str, name: &str, value: &str) {
        // When it was said is known to whoever has the page's row.
        keep(&mut self.usage, source, &format!("{}: {}", name.to_lowercase(), value.trim()), None);
    }
}

/// Split at commas and semicolons, but for commas inside a date.
fn parts(value: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for piece in value.split([',', ';']).map(str::trim) {
        match parts.last_mut() {
            // A weekday alone is the start of a date: `Wed, 25 Jun 2025 …`.
            Some(last) if is_open_date(last) => {
                last.push_str(", ");
                last.push_str(piece);
            }
            Some(_) | None => parts.push(piece.to_owned()),
        }
    }
    parts
}

fn is_open_date(part: &str) -> bool {
    !part.contains(',')
        && part.to_ascii_lowercase().contains("unavailable_after")
        && !part.bytes().any(|byte| byte.is_ascii_digit())
}

/// The agent before a colon, and the rule after it.
fn split_agent(part: &str) -> (Option<&str>, &str) {
    let Some((before, after)) = part.split_once(':') else { return (None, part) };
    let before = before.trim();
    if before.contains(char::is_whitespace)
        || WITH_VALUE.iter().any(|known| before.eq_ignore_ascii_case(known))
    {
        return (None, part);
    }
    (Some(before), after.trim())
}

fn cut(text: &str) -> &str {
    let end =
        (0..=text.len().min(DIRECTIVE_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
